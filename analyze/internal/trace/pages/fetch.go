package pages

import "slices"

// Fetch calls each for the rows of the given rowids, those that there are, in order of rowid. It reads the pages on the
// way to them, each once.
func (f *File) Fetch(t *Table, columns []string, rowids []int64, each func(rowid int64, row []Cell) error) error {
	wanted, err := t.find(columns)
	if err != nil {
		return err
	}
	seen := newPageSet(f.pages)
	w := &fetcher{walker: walker{f: f, claim: seen.add, buf: make([]byte, f.page)}, each: each,
		d: newDecoder(f, t, append(wanted, rowidColumn), seen.add), leaf: make([]byte, f.page+slack)}
	if err := w.take(t.Root, 1); err != nil {
		return err
	}
	if w.levels, err = w.depth(t.Root); err != nil {
		return err
	}
	return w.below(node{page: t.Root, high: 1<<64 - 1}, w.levels, slices.Compact(slices.Sorted(slices.Values(rowids))))
}

// fetcher goes down to single rows.
type fetcher struct {
	walker
	d      *decoder
	leaf   []byte
	levels int // of interior pages
	each   func(rowid int64, row []Cell) error
}

// below fetches rows below a page that stands levels above the leaves. ids are in order.
func (w *fetcher) below(p node, levels int, ids []int64) error {
	if levels == 0 {
		return w.rows(p, ids)
	}
	children, err := w.children(p, nil)
	if err != nil {
		return err
	}
	for _, c := range children {
		n := slices.IndexFunc(ids, func(id int64) bool { return ordered(uint64(id)) > c.high })
		if n < 0 {
			n = len(ids)
		}
		if n > 0 {
			if err := w.below(c, levels-1, ids[:n]); err != nil {
				return err
			}
		}
		ids = ids[n:]
	}
	return nil
}

func (w *fetcher) rows(l node, ids []int64) error {
	if err := w.f.read(l.page, w.leaf[:w.f.page]); err != nil {
		return err
	}
	n, err := w.f.cells(l.page, w.leaf, w.levels == 0)
	if err != nil {
		return err
	}
	return w.d.rows(l, w.leaf, n, func(row []Cell) error {
		last := len(row) - 1
		rowid := row[last].Bits
		for len(ids) > 0 && ids[0] < rowid {
			ids = ids[1:]
		}
		if len(ids) == 0 || ids[0] != rowid {
			return nil
		}
		return w.each(rowid, row[:last])
	})
}
