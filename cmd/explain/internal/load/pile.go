package load

// pile is a list that is only added to. It never copies what it holds while it grows: a copy of millions of values would hold up
// everything that waits for it.
type pile[T any] struct {
	full [][]T
	last []T
}

// pileChunk is how many values are allocated at a time.
const pileChunk = 16 << 10

func (p *pile[T]) add(values ...T) {
	for len(values) > 0 {
		if len(p.last) == cap(p.last) {
			if p.last != nil {
				p.full = append(p.full, p.last)
			}
			p.last = make([]T, 0, pileChunk)
		}
		n := min(len(values), cap(p.last)-len(p.last))
		p.last = append(p.last, values[:n]...)
		values = values[n:]
	}
}

// take is one list of everything; the pile is empty afterwards.
func (p *pile[T]) take() []T {
	list := make([]T, 0, len(p.full)*pileChunk+len(p.last))
	for i, chunk := range p.full {
		list = append(list, chunk...)
		p.full[i] = nil // the collector may have it: there are two of everything for a moment only
	}
	list = append(list, p.last...)
	*p = pile[T]{}
	return list
}
