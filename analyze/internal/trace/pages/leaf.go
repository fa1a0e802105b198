package pages

import (
	"encoding/binary"
	"io"
)

// decoder reads the rows of a table's leaves. Only one goroutine may use it.
type decoder struct {
	f     *File
	plans plans
	claim func(page uint32) bool // of overflow pages; false: seen before
	long  []byte                 // a record that continues on overflow pages
	tail  []byte                 // an overflow page
}

func newDecoder(f *File, t *Table, wanted []int, claim func(page uint32) bool) *decoder {
	return &decoder{f: f, plans: plans{columns: t.Columns, wanted: wanted}, claim: claim}
}

// cells checks a leaf's header and returns its number of rows (section 1.6). b begins with the page. Only a leaf that
// is the whole table (alone) may be empty.
func (f *File) cells(page uint32, b []byte, alone bool) (int, error) {
	if b[0] != leafTable {
		return 0, bad(page, "is not a leaf of a table, but stands where one must be")
	}
	n := int(binary.BigEndian.Uint16(b[3:]))
	switch {
	case n > int(f.most()):
		return 0, bad(page, "states more cells than it can have")
	case n == 0 && !alone:
		return 0, bad(page, "holds no rows, and is not the only leaf")
	}
	return n, nil
}

// rows calls each for the n rows of a leaf, whose page begins b: rowids must ascend within the leaf's bounds. b must
// have slack bytes after the page. The cells are valid during the call.
func (d *decoder) rows(l node, b []byte, n int, each func(row []Cell) error) (err error) {
	usable, page, last := d.f.usable, l.page, l.low
	content, rest := d.f.content(b, leafHeader+2*n)
	for i := range n {
		at := int(binary.BigEndian.Uint16(b[leafHeader+2*i:]))
		rest += at
		if at < content || at >= usable {
			return bad(page, "has a cell outside of the page")
		}
		size, k := uint64(b[at]), 1 // the usual length; calls are costly here
		if size >= 0x80 {
			size, k = longVarint(b[at:usable])
		}
		if k == 0 || size > maxRecord {
			return bad(page, "has a cell with a record of an impossible size")
		}
		at += k
		rowid, k := varint(b[at:usable])
		if k == 0 {
			return bad(page, "has a cell outside of the page")
		}
		at += k
		if now := ordered(rowid); now > l.high || now <= last && (i > 0 || l.low > 0) {
			return bad(page, "has rows out of order")
		} else {
			last = now
		}
		total := int(size)
		local := d.f.local(total)
		end := at + local
		if local < total {
			end += 4 // number of the first overflow page
		}
		if end > usable {
			return bad(page, "has a cell that reaches outside of the page")
		}
		rest -= end
		record := b[at:]
		if local < total {
			if record, err = d.assemble(page, b[at:at+local+4], total); err != nil {
				return err
			}
			local = len(record) - slack
		}
		if local == 0 {
			return bad(page, "has a record without a header")
		}
		header, k := uint64(record[0]), 1
		if header >= 0x80 {
			header, k = longVarint(record[:local])
		}
		if k == 0 || header > uint64(local) || header < uint64(k) {
			return bad(page, "has a record whose header is longer than itself")
		}
		p, wrong := d.plans.find(record, int(header), total)
		if p == nil {
			return bad(page, wrong)
		}
		if err := each(p.run(record, int64(rowid))); err != nil {
			return err
		}
	}
	if rest != 0 {
		return bad(page, "has cells that overlap or are lost")
	}
	return nil
}

// content returns where the cells of a page begin, given the length of its header and pointers, and how many bytes of
// the page after that cells must fill; -1 if the page contradicts itself (section 1.6).
func (f *File) content(b []byte, header int) (begin, cells int) {
	begin = int(binary.BigEndian.Uint16(b[5:]))
	if begin == 0 {
		begin = 1 << 16
	}
	cells = f.usable - begin - int(b[7]) // fragments
	for at := int(binary.BigEndian.Uint16(b[1:])); at != 0; {
		if at < begin || at+4 > f.usable {
			return begin, -1
		}
		size := int(binary.BigEndian.Uint16(b[at+2:]))
		next := int(binary.BigEndian.Uint16(b[at:]))
		if next != 0 && next < at+size || size < 4 {
			return begin, -1
		}
		cells, at = cells-size, next
	}
	if begin < header {
		return header, -1
	}
	return begin, cells
}

// local is how many of a record's total bytes are in its cell; the others are on overflow pages (section 1.6).
func (f *File) local(total int) int {
	most := f.usable - 35
	if total <= most {
		return total
	}
	least := (f.usable-12)*32/255 - 23
	if k := least + (total-least)%(f.usable-4); k <= most {
		return k
	}
	return least
}

// assemble joins a record that continues on overflow pages, as far as the wanted columns need it, with slack at the
// end. cell holds the local part and the number of the first overflow page (section 1.7).
func (d *decoder) assemble(page uint32, cell []byte, total int) ([]byte, error) {
	if int64(total) > d.f.size {
		return nil, bad(page, "has a record longer than the file")
	}
	next := binary.BigEndian.Uint32(cell[len(cell)-4:])
	d.long = append(d.long[:0], cell[:len(cell)-4]...)
	need := 0 // of the record's bytes; 0 until the header is whole
	from := page
	for {
		if need == 0 {
			header, k := varint(d.long)
			if k == 0 || header > uint64(total) || header < uint64(k) || header > maxHeader {
				return nil, bad(page, "has a record whose header is longer than itself")
			}
			if header <= uint64(len(d.long)) {
				p, wrong := d.plans.find(d.long, int(header), total)
				if p == nil {
					return nil, bad(page, wrong)
				}
				need = p.reach
			}
		}
		if need > 0 && need <= len(d.long) {
			break
		}
		if next < 2 || next > d.f.pages {
			return nil, bad(from, "points outside of the file for the rest of a record")
		}
		if !d.claim(next) {
			return nil, bad(next, "is used twice")
		}
		if d.tail == nil {
			d.tail = make([]byte, d.f.page)
		}
		if err := d.f.read(next, d.tail); err != nil {
			return nil, err
		}
		from = next
		next = binary.BigEndian.Uint32(d.tail)
		part := min(d.f.usable-4, total-len(d.long))
		if part <= 0 {
			return nil, &PageError{Page: from, What: "ends a record too early", Err: io.ErrUnexpectedEOF}
		}
		d.long = append(d.long, d.tail[4:4+part]...)
	}
	d.long = append(d.long, make([]byte, slack)...)
	return d.long, nil
}

// maxHeader is the longest record header that SQLite allows, in bytes.
const maxHeader = 98307
