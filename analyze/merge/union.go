package merge

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
)

// Source is a file of partials that can be opened more than once.
type Source struct {
	Name string
	Open func() (io.ReadCloser, error)
}

// entry is a capture of a source.
type entry struct {
	Head
	source, at int // at: how many captures of the source come before
}

// Union writes the captures of all sources into one partial. A capture that several hold is written once, as of its
// trace where one is; where they differ in what they say of it they were made by other versions or with other flags,
// which is an error.
func Union(ctx context.Context, w io.Writer, sources []Source) error {
	out := NewWriter(w)
	err := each(ctx, sources, func(_ string, h *Head, body []byte) error { return out.raw(h, body) })
	if err != nil {
		return err
	}
	return out.Close()
}

// each visits every capture once, by key. A source is open for as long as it has captures left, one with a single
// capture for no longer than it takes to read it.
func each(ctx context.Context, sources []Source, visit func(source string, h *Head, body []byte) error) error {
	entries, err := index(ctx, sources)
	if err != nil {
		return err
	}
	open := map[int]*opened{}
	defer func() {
		for _, o := range open {
			o.file.Close()
		}
	}()
	for i := 0; i < len(entries); {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &entries[i]
		body, err := bodyOf(sources, open, e)
		if err != nil {
			return err
		}
		for i++; i < len(entries) && entries[i].Key == e.Key; i++ {
			if entries[i].From != e.From {
				continue // a report knows nothing that the trace does not
			}
			again, err := bodyOf(sources, open, &entries[i])
			if err != nil {
				return err
			}
			if !bytes.Equal(body, again) {
				return fmt.Errorf("%s and %s hold the same capture and do not agree about it: make both again with one version of explain and the same flags",
					sources[e.source].Name, sources[entries[i].source].Name)
			}
		}
		if err := visit(sources[e.source].Name, &e.Head, body); err != nil {
			return err
		}
	}
	return nil
}

// index reads what captures the sources hold, and sorts them by key; copies of one with those of traces first, and by
// the order of names, so that what is said of it is the same in whatever order files are named.
func index(ctx context.Context, sources []Source) ([]entry, error) {
	var list []entry
	for i := range sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o, err := open(&sources[i])
		if err != nil {
			return nil, err
		}
		for at := 0; ; at++ {
			h, err := o.in.Next()
			if err != nil {
				o.file.Close()
				return nil, err
			}
			if h == nil {
				break
			}
			list = append(list, entry{*h, i, at})
		}
		if err := o.file.Close(); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.From, b.From), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// opened is a source that is being read.
type opened struct {
	file io.Closer
	in   *Reader
	at   int // captures read
}

func open(s *Source) (*opened, error) {
	f, err := s.Open()
	if err != nil {
		return nil, err
	}
	in, err := NewReader(s.Name, f)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &opened{file: f, in: in}, nil
}

// bodyOf reads the capture of an entry. Entries of one source come in its order.
func bodyOf(sources []Source, list map[int]*opened, e *entry) ([]byte, error) {
	o := list[e.source]
	if o == nil {
		var err error
		if o, err = open(&sources[e.source]); err != nil {
			return nil, err
		}
		list[e.source] = o
	}
	for ; o.at <= e.at; o.at++ {
		if h, err := o.in.Next(); err != nil || h == nil {
			return nil, cmp.Or(err, fmt.Errorf("%s changed while it was read", sources[e.source].Name))
		}
	}
	body := o.in.body
	if end, err := o.in.in.Peek(len(endMark)); err != nil || string(end) == endMark {
		delete(list, e.source) // nothing follows
		return body, o.file.Close()
	}
	return body, nil
}

// endMark begins the last line of a partial.
const endMark = `{"captures":`
