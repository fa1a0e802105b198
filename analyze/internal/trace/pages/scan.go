package pages

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Sink receives the rows of one table from one goroutine.
type Sink interface {
	// Leaf begins a leaf: its number in order of rowid, and the slot reserved for its first row.
	Leaf(leaf, slot int)
	// Row receives a row of that leaf, in order of rowid. The cells and their contents are valid during the call.
	Row(row []Cell) error
}

// Part is one table of a scan.
type Part struct {
	Table   *Table
	Columns []string // columns to read

	wanted []int
	leaves []node
	slots  []uint32 // by leaf: slot of its first row; at the end: the number of slots
	first  int      // index of its first leaf among those of all parts
}

// Leaves is the number of leaves of the table.
func (p *Part) Leaves() int { return len(p.leaves) }

// Slots is how many rows the leaves have room for: at least the number of rows, and usually exactly that.
func (p *Part) Slots() int { return int(p.slots[len(p.slots)-1]) }

// Scan reads several tables in the order of the file.
type Scan struct {
	f      *File
	parts  []*Part
	owner  []uint32 // by page: 1 + index of the leaf among those of all parts; interior: taken; 0: none
	blocks []block
	reads  int64 // bytes of all blocks
	seen   pageSet
}

// block is a range of the file that is read at once.
type block struct{ first, last uint32 } // pages, both included

const (
	taken      = 1<<32 - 1
	blockBytes = 1 << 20
	gapBytes   = 64 << 10 // gaps up to this are read rather than skipped, bytes
	maxSlots   = 1<<31 - 1
)

// Prepare finds the leaves of the tables. It reads only their interior pages and, for tables whose rowids have large
// gaps, the leaves' headers.
func (f *File) Prepare(parts []*Part) (*Scan, error) {
	s := &Scan{f: f, parts: parts, owner: make([]uint32, f.pages+1), seen: newPageSet(f.pages)}
	total := 0
	for _, p := range parts {
		var err error
		if p.wanted, err = p.Table.find(p.Columns); err != nil {
			return nil, err
		}
		leaves, err := f.leaves(p.Table.Root, func(page uint32) bool {
			if s.owner[page] != 0 {
				return false
			}
			s.owner[page] = taken
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", p.Table.Name, err)
		}
		p.first, p.leaves = total, leaves
		for i, l := range leaves {
			s.owner[l.page] = uint32(total + i + 1)
		}
		if total += len(leaves); int64(total) >= taken {
			return nil, unusual("it has too many pages")
		}
		rooms, err := f.tight(leaves)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", p.Table.Name, err)
		}
		p.slots = make([]uint32, len(leaves)+1)
		var sum int64
		for i, room := range rooms {
			p.slots[i] = uint32(sum)
			if sum += int64(room); sum > maxSlots {
				return nil, unusual("table " + p.Table.Name + " has more rows than can be held")
			}
		}
		p.slots[len(leaves)] = uint32(sum)
	}
	s.split()
	return s, nil
}

// samples is how many leaves are examined to see whether rowids are dense.
const samples = 16

// tight bounds the rows of each leaf. If rowids have few gaps, as in every export of nsys, they give the bound at no
// cost; else the leaves' headers are read.
func (f *File) tight(leaves []node) ([]uint32, error) {
	rooms, sum := f.rooms(leaves)
	b := make([]byte, leafHeader)
	counted := func(every int) (rows []uint32, err error) {
		for i := 0; i < len(leaves); i += every {
			if err := f.read(leaves[i].page, b); err != nil {
				return nil, err
			}
			n, err := f.cells(leaves[i].page, b, len(leaves) == 1)
			if err != nil {
				return nil, err
			}
			rows = append(rows, uint32(n))
		}
		return rows, nil
	}
	some, err := counted(len(leaves)/samples + 1)
	if err != nil {
		return nil, err
	}
	rows := lists.Sum(some, func(n uint32) int64 { return int64(n) })
	if sum <= 2*int64(f.most()) || sum <= int64(len(leaves))*rows/int64(len(some))*5/4+int64(f.most()) {
		return rooms, nil
	}
	return counted(1)
}

// split divides the scan into blocks.
func (s *Scan) split() {
	perBlock, gap := uint32(max(1, blockBytes/s.f.page)), uint32(gapBytes/s.f.page)
	var b block
	flush := func() {
		if b.first > 0 {
			s.blocks = append(s.blocks, b)
			s.reads += int64(b.last-b.first+1) * int64(s.f.page)
		}
	}
	for page, o := range s.owner {
		if o == 0 || o == taken {
			continue
		}
		at := uint32(page)
		if b.first == 0 || at-b.first >= perBlock || at-b.last > gap+1 {
			flush()
			b.first = at
		}
		b.last = at
	}
	flush()
}

// Bytes is how many bytes of the file Run reads.
func (s *Scan) Bytes() int64 { return s.reads }

// Run reads all leaves with the given number of goroutines. sink returns the sink of a part for one goroutine; progress
// receives the number of bytes read so far. If several pages are damaged, the error names the first one in the file.
func (s *Scan) Run(ctx context.Context, workers int, sink func(part, worker int) Sink,
	progress func(bytes int64)) error {
	var next, done atomic.Int64
	var mu sync.Mutex
	var failed error
	failedAt := int64(len(s.blocks))
	parallel.Each(workers, func(worker int) {
		w := &reader{s: s, worker: worker, sink: sink, parts: make([]*partReader, len(s.parts))}
		w.buf = make([]byte, max(blockBytes, s.f.page)+slack)
		for {
			i := next.Add(1) - 1
			if i >= int64(len(s.blocks)) {
				return
			}
			b := s.blocks[i]
			err := ctx.Err()
			if err == nil {
				err = w.block(b)
			}
			if err != nil {
				next.Store(int64(len(s.blocks)))
				mu.Lock()
				if i < failedAt {
					failed, failedAt = err, i
				}
				mu.Unlock()
				return
			}
			progress(done.Add(int64(b.last-b.first+1) * int64(s.f.page)))
		}
	})
	return failed
}

// reader is one goroutine of a scan.
type reader struct {
	s      *Scan
	worker int
	sink   func(part, worker int) Sink
	parts  []*partReader
	buf    []byte
}

type partReader struct {
	d    *decoder
	sink Sink
}

func (w *reader) block(b block) error {
	s, size := w.s, w.s.f.page
	if err := s.f.read(b.first, w.buf[:int(b.last-b.first+1)*size]); err != nil {
		return err
	}
	for page := b.first; page <= b.last; page++ {
		o := s.owner[page]
		if o == 0 || o == taken {
			continue
		}
		at := len(s.parts) - 1
		for s.parts[at].first > int(o-1) {
			at--
		}
		if err := w.leaf(page, w.buf[int(page-b.first)*size:], at, int(o-1)-s.parts[at].first); err != nil {
			return fmt.Errorf("table %s: %w", s.parts[at].Table.Name, err)
		}
	}
	return nil
}

func (w *reader) leaf(page uint32, b []byte, at, leaf int) error {
	p := w.s.parts[at]
	if w.parts[at] == nil {
		w.parts[at] = &partReader{newDecoder(w.s.f, p.Table, p.wanted, w.claim), w.sink(at, w.worker)}
	}
	r := w.parts[at]
	n, err := w.s.f.cells(page, b, p.Leaves() == 1)
	if err != nil {
		return err
	}
	if n > int(p.slots[leaf+1]-p.slots[leaf]) {
		return bad(page, "holds more rows than there are rowids for")
	}
	r.sink.Leaf(leaf, int(p.slots[leaf]))
	return r.d.rows(p.leaves[leaf], b, n, r.sink.Row)
}

// claim claims an overflow page.
func (w *reader) claim(page uint32) bool { return w.s.owner[page] == 0 && w.s.seen.add(page) }

// pageSet is a set of pages that several goroutines can add to.
type pageSet []atomic.Uint32

func newPageSet(pages uint32) pageSet { return make(pageSet, pages/32+1) }

// add reports whether the page is new.
func (s pageSet) add(page uint32) bool {
	bit := uint32(1) << (page % 32)
	return s[page/32].Or(bit)&bit == 0
}

// Rows calls each for every row of a table, in order of rowid.
func (f *File) Rows(t *Table, columns []string, each func(row []Cell) error) error {
	wanted, err := t.find(columns)
	if err != nil {
		return err
	}
	seen := newPageSet(f.pages)
	leaves, err := f.leaves(t.Root, seen.add)
	if err != nil {
		return err
	}
	d, b := newDecoder(f, t, wanted, seen.add), make([]byte, f.page+slack)
	for _, l := range leaves {
		if err := f.read(l.page, b[:f.page]); err != nil {
			return err
		}
		n, err := f.cells(l.page, b, len(leaves) == 1)
		if err != nil {
			return err
		}
		if err := d.rows(l, b, n, each); err != nil {
			return err
		}
	}
	return nil
}
