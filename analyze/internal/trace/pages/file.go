// Package pages reads the rows of SQLite tables straight from the pages of the file, several times faster than SQLite,
// for two reasons: a record is decoded by a plan that is made once per shape of record, and pages are read in the order
// of the file by several goroutines.
//
// A table is a b-tree. Interior pages lead to leaves, and a leaf holds rows, each in a cell:
//
//	leaf   | header, 8 bytes | where each cell begins | free space | cell | cell | cell |
//	cell   | 22 | 7 | 05 00 06 06 01 | start, 8 bytes | end, 8 bytes | device, 1 byte |
//	        size rowid   header                        body
//
// That is row 7 of a table (id integer primary key, start, end, device). The header is 5 bytes long and gives a type
// for each column: 0 is NULL (the rowid is the id), 6 an integer of 8 bytes, 1 one of 1 byte. Every record that begins
// with 05 00 06 06 01 has its start at byte 5, its end at byte 13 and its device at byte 21. A plan records this; if
// the next record has the same header, its columns are read from the same offsets. A table of an Nsight export has a
// handful of different headers.
//
// A scan has two steps. Prepare walks the interior pages, finds the leaves of all tables and gives each leaf a range of
// row numbers. Then goroutines read blocks of 1 MiB in the order of the file, whichever tables their leaves belong to,
// and put each row in its place: the result is in the order of rowids.
//
// The package does not know SQL: SQLite says which tables there are, and what their columns are (see [Table]). It reads
// plain tables in UTF-8; for everything else it returns [ErrUnusual], and SQLite has to read it. It is stricter than
// SQLite about damage, which it reports as a *[PageError]; the caller can then ask SQLite to check the file.
//
// The format is https://www.sqlite.org/fileformat2.html; section numbers in comments refer to that page.
package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// File is an open SQLite file. It is safe for use by several goroutines.
type File struct {
	r      io.ReaderAt
	size   int64
	page   int    // bytes of a page: 512 to 65536
	usable int    // usable bytes of a page: without those reserved at its end
	pages  uint32 // whole pages in the file
}

// ErrUnusual means that this package cannot read a file or table, and SQLite must.
var ErrUnusual = errors.New("made in a way that SQLite itself must read")

func unusual(what string) error { return fmt.Errorf("%w: %s", ErrUnusual, what) }

// PageError names a damaged page and its damage.
type PageError struct {
	Page uint32
	What string
	Err  error // of reading the page, if reading failed
}

func (e *PageError) Error() string {
	s := fmt.Sprintf("page %d %s", e.Page, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *PageError) Unwrap() error { return e.Err }

func bad(page uint32, what string) error { return &PageError{Page: page, What: what} }

// minUsable is the smallest number of usable bytes per page that SQLite allows (section 1.3.4).
const minUsable = 480

// Open reads the header of a SQLite file of size bytes (section 1.3).
func Open(r io.ReaderAt, size int64) (*File, error) {
	var head [100]byte
	if n, err := r.ReadAt(head[:], 0); n < len(head) {
		return nil, &PageError{Page: 1, What: "cannot be read", Err: err}
	}
	f := &File{r: r, size: size, page: int(binary.BigEndian.Uint16(head[16:]))}
	if f.page == 1 {
		f.page = 65536
	}
	f.usable = f.page - int(head[20])
	switch {
	case string(head[:16]) != "SQLite format 3\x00":
		return nil, bad(1, "does not begin as a SQLite file does")
	case f.page < 512 || f.page&(f.page-1) != 0 || f.usable < minUsable:
		return nil, bad(1, "states an impossible page size")
	case head[18] > 2 || head[19] > 2 || head[18] == 0 || head[19] == 0:
		return nil, unusual("its file format is of a version to come")
	case head[21] != 64 || head[22] != 32 || head[23] != 32:
		return nil, unusual("its payload fractions are not 64, 32 and 32")
	}
	if encoding := binary.BigEndian.Uint32(head[56:]); encoding != 1 {
		return nil, unusual("its text is not in UTF-8")
	}
	count := size / int64(f.page)
	if count > maxPages {
		return nil, unusual("it has more pages than a SQLite file can have")
	}
	f.pages = uint32(count)
	// A header may state fewer pages than the file has: SQLite then ignores the pages after them.
	if stated := binary.BigEndian.Uint32(head[28:]); stated > 0 && stated < f.pages &&
		string(head[24:28]) == string(head[92:96]) {
		f.pages = stated
	}
	return f, nil
}

// maxPages is SQLite's own limit (SQLITE_MAX_PAGE_COUNT).
const maxPages = 1<<32 - 2

// slack is how many bytes may be read, and ignored, after the last value of a page: integers are read eight bytes at a
// time.
const slack = 8

// read fills b with the bytes of the file that start at page first.
func (f *File) read(first uint32, b []byte) error {
	if n, err := f.r.ReadAt(b, int64(first-1)*int64(f.page)); n < len(b) {
		return &PageError{Page: first + uint32(n/f.page), What: "cannot be read", Err: err}
	}
	return nil
}

// varint reads a variable-length integer (section 1.6) and returns its length in bytes; 0 means that b is too short.
func varint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	return longVarint(b)
}

func longVarint(b []byte) (v uint64, n int) {
	if len(b) >= 4 { // rowids of large tables take three or four bytes
		switch {
		case b[1] < 0x80:
			return uint64(b[0]&0x7f)<<7 | uint64(b[1]), 2
		case b[2] < 0x80:
			return uint64(b[0]&0x7f)<<14 | uint64(b[1]&0x7f)<<7 | uint64(b[2]), 3
		case b[3] < 0x80:
			return uint64(b[0]&0x7f)<<21 | uint64(b[1]&0x7f)<<14 | uint64(b[2]&0x7f)<<7 | uint64(b[3]), 4
		}
	}
	for i, c := range b {
		if i == 8 {
			return v<<8 | uint64(c), 9
		}
		v = v<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}
