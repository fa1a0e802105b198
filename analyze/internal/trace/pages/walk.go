package pages

import (
	"encoding/binary"
	"slices"
)

// Types of b-tree pages (section 1.6).
const (
	interiorTable = 0x05
	leafTable     = 0x0d
)

// Lengths of the headers of b-tree pages, in bytes.
const (
	interiorHeader = 12
	leafHeader     = 8
)

// maxDepth is the deepest tree that SQLite allows (BTCURSOR_MAX_DEPTH).
const maxDepth = 20

// node is a page of a table's tree, found but not read.
type node struct {
	page uint32
	low  uint64 // all rowids in it or below it are greater, as ordered; 0: nothing precedes it
	high uint64 // largest rowid that may be in it or below it, as ordered
}

// ordered maps a rowid to an unsigned number that sorts alike.
func ordered(rowid uint64) uint64 { return rowid ^ 1<<63 }

// leaves walks the interior pages of the table that begins at root and returns its leaves in order of rowid. claim
// reports whether a page is new: a page that occurs twice is damage, and would be a loop.
func (f *File) leaves(root uint32, claim func(page uint32) bool) ([]node, error) {
	w := &walker{f: f, claim: claim, buf: make([]byte, f.page)}
	level := []node{{page: root, high: 1<<64 - 1}}
	if err := w.take(root, 1); err != nil {
		return nil, err
	}
	for range maxDepth {
		err := f.read(level[0].page, w.buf) // which all pages of its level resemble
		if err != nil {
			return nil, err
		}
		if w.buf[0] != interiorTable {
			return level, nil
		}
		var next []node
		for i, p := range level {
			if next, err = w.children(p, next); err != nil {
				return nil, err
			}
			if i == 0 {
				next = slices.Grow(next, min((len(level)-1)*len(next), int(f.pages))) // later rowids are longer
			}
		}
		level = next
	}
	return nil, bad(root, "begins a tree that is too deep")
}

type walker struct {
	f     *File
	claim func(page uint32) bool
	buf   []byte // of one page
}

// take claims a page that another page points to.
func (w *walker) take(page, from uint32) error {
	switch {
	case page < 2 || page > w.f.pages:
		return bad(from, "points outside of the file")
	case !w.claim(page):
		return bad(page, "is used twice")
	}
	return nil
}

// children appends the pages below an interior page (section 1.6): for each cell a left child, which holds rowids up to
// the cell's key, then the right-most child.
func (w *walker) children(p node, list []node) ([]node, error) {
	b, low := w.buf, p.low
	if err := w.f.read(p.page, b); err != nil {
		return nil, err
	}
	if b[0] != interiorTable {
		return nil, bad(p.page, "is not an interior page of a table, but stands where one must be")
	}
	n := int(binary.BigEndian.Uint16(b[3:]))
	if n == 0 || n > int(w.f.most()) {
		return nil, bad(p.page, "states more cells than it can have, or none")
	}
	content, rest := w.f.content(b, interiorHeader+2*n)
	for i := range n {
		at := int(binary.BigEndian.Uint16(b[interiorHeader+2*i:]))
		if at < content || at+4 > w.f.usable {
			return nil, bad(p.page, "has a cell outside of the page")
		}
		key, size := varint(b[at+4 : w.f.usable])
		high := ordered(key)
		if size == 0 || high < low || high > p.high {
			return nil, bad(p.page, "has keys out of order")
		}
		child := binary.BigEndian.Uint32(b[at:])
		if err := w.take(child, p.page); err != nil {
			return nil, err
		}
		rest -= 4 + size
		list = append(list, node{child, low, high})
		low = high
	}
	if rest != 0 {
		return nil, bad(p.page, "has cells that overlap or are lost")
	}
	child := binary.BigEndian.Uint32(b[8:])
	if err := w.take(child, p.page); err != nil {
		return nil, err
	}
	return append(list, node{child, low, p.high}), nil
}

// most is the largest number of cells that a page can hold: SQLite's MX_CELL.
func (f *File) most() uint32 { return uint32(f.page-leafHeader) / 6 }

// rooms bounds the number of rows in each leaf, by the rowids of its neighbours, and returns the sum.
func (f *File) rooms(leaves []node) (rooms []uint32, sum int64) {
	rooms = make([]uint32, len(leaves))
	// If rows of the first leaf have no positive rowid, it has more rows than its room allows, which is noticed
	low := ordered(0)
	for i, l := range leaves {
		room := f.most()
		if l.high > low && l.high-low < uint64(room) {
			room = uint32(l.high - low)
		}
		low = l.high
		rooms[i] = room
		sum += int64(room)
	}
	return rooms, sum
}
