package merge

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Source is a file of partials that can be opened more than once.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// entry is a capture of a source.
type entry struct {
	Head
	source, at int // at: number of captures before it in the source
}

// MaxExact is how many ranks a run may have for its report to be exact. A larger run is reported from samples.
const MaxExact = 256

// stored is a capture as read: its sample, and the whole capture if the file has it.
type stored struct {
	source       string
	head         Head
	sample, body []byte
}

// Union writes the captures of all sources into one partial. A capture that several sources hold is written once,
// preferably from its trace. If the copies differ, other versions or other flags made them, which is an error.
func Union(ctx context.Context, w io.Writer, sources []Source) error {
	l, err := index(ctx, sources)
	if err != nil {
		return err
	}
	out := begin(w, l.heads(), l.sampled)
	if err := l.each(ctx, func(s *stored) error { return out.raw(s.head, s.sample, s.body) }); err != nil {
		return err
	}
	return out.close()
}

// listing records which captures there are, and in which sources.
type listing struct {
	sources []Source
	entries []entry         // by key; of several copies the preferred one first
	sampled bool            // the run has more than MaxExact ranks
	keep    map[string]bool // of a sampled run: captures that are kept whole
}

// heads returns the head of each capture once.
func (l *listing) heads() []Head {
	list := lists.Map(l.entries, func(e entry) Head { return e.Head })
	return slices.CompactFunc(list, func(a, b Head) bool { return a.Key == b.Key })
}

// If there are many captures, the first ones in each of these orders are kept whole.
const (
	keptSlowest = 8 // by the time of their steps
	keptMost    = 4 // by the time of their kernels
	keptLeast   = 4
	keptAny     = 8 // by their identity, which is a hash
)

// choose decides whether the run is sampled, and which captures are then kept whole. A capture that is kept whole here
// is also kept whole in every partial that holds it.
func (l *listing) choose() {
	heads := l.heads()
	ranks := lists.Sum(heads, func(h Head) int64 { return max(1, h.Ranks) })
	if l.sampled = ranks > MaxExact; !l.sampled {
		return
	}
	l.keep = map[string]bool{}
	first := func(n int, order func(a, b *Head) int) {
		lists.Sort(heads, func(a, b Head) int { return cmp.Or(order(&a, &b), cmp.Compare(a.Key, b.Key)) })
		for _, h := range heads[:min(n, len(heads))] {
			l.keep[h.Key] = true
		}
	}
	first(keptSlowest, func(a, b *Head) int { return cmp.Compare(b.Step, a.Step) })
	first(keptMost, func(a, b *Head) int { return cmp.Compare(b.Kernels, a.Kernels) })
	first(keptLeast, func(a, b *Head) int { return cmp.Compare(a.Kernels, b.Kernels) })
	first(keptAny, func(a, b *Head) int { return 0 })
}

// each visits every capture once, by key. A source stays open while it has captures left; a source with a single
// capture is closed right after reading.
func (l *listing) each(ctx context.Context, visit func(s *stored) error) error {
	open := map[int]*Reader{}
	defer func() {
		for _, r := range open {
			r.source.Close()
		}
	}()
	for i := 0; i < len(l.entries); {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &l.entries[i]
		one, err := l.read(open, e)
		if err != nil {
			return err
		}
		for i++; i < len(l.entries) && l.entries[i].Key == e.Key; i++ {
			if l.entries[i].From != e.From {
				continue // a report has nothing that the trace lacks
			}
			again, err := l.read(open, &l.entries[i])
			if err != nil {
				return err
			}
			if !bytes.Equal(one.sample, again.sample) || one.body != nil && again.body != nil && !bytes.Equal(one.body, again.body) {
				return fmt.Errorf("%s and %s hold the same capture and do not agree about it: make both again with one version of explain and the same flags",
					one.source, again.source)
			}
			if one.body == nil {
				one.body = again.body
			}
		}
		if l.sampled && one.sample == nil || one.body == nil && (!l.sampled || l.keep[e.Key]) {
			return fmt.Errorf("%s: %w: it holds too little of %s: make it again from its trace", one.source, errPartial, e.Name)
		}
		if err := visit(one); err != nil {
			return err
		}
	}
	return nil
}

// index reads which captures the sources hold, and sorts them by key. Copies of one capture are sorted too, those from
// traces first and then by name, so that the order of files does not matter.
func index(ctx context.Context, sources []Source) (*listing, error) {
	l := &listing{sources: sources}
	for i := range sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := open(&sources[i])
		if err != nil {
			return nil, err
		}
		if len(r.heads) == 0 { // it is empty, or what it holds would be left out unseen
			_, err = r.Next()
		}
		for at, h := range r.heads {
			if h.Sampled, h.Left = false, false; h.Key == "" || at > 0 && h.Key <= r.heads[at-1].Key {
				err = r.bad(nil, "its captures are not in order")
			}
			l.entries = append(l.entries, entry{h, i, at})
		}
		if err = cmp.Or(err, r.source.Close()); err != nil {
			return nil, err
		}
	}
	lists.Sort(l.entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.From, b.From), cmp.Compare(a.Name, b.Name))
	})
	l.choose()
	return l, nil
}

func open(s *Source) (*Reader, error) {
	f, err := s.Open()
	if err != nil {
		return nil, err
	}
	r, err := NewReader(s.Name, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.source = f
	return r, nil
}

// read reads the capture of an entry, the whole one if it is kept. Entries of one source come in the source's order.
func (l *listing) read(list map[int]*Reader, e *entry) (s *stored, err error) {
	r := list[e.source]
	if r == nil {
		if r, err = open(&l.sources[e.source]); err != nil {
			return nil, err
		}
		list[e.source] = r
	}
	for r.n <= e.at {
		if h, err := r.Next(); err != nil || h == nil {
			return nil, cmp.Or(err, fmt.Errorf("%s changed while it was read", l.sources[e.source].Name))
		}
	}
	s = &stored{source: l.sources[e.source].Name, head: e.Head, sample: r.sample}
	if !l.sampled || l.keep[e.Key] {
		if s.body, err = r.body(); err != nil {
			return nil, err
		}
	}
	if r.n == len(r.heads) { // nothing follows
		delete(list, e.source)
		if !l.sampled { // else the rest is not read
			_, err = r.Next()
		}
		return s, cmp.Or(err, r.source.Close())
	}
	return s, nil
}
