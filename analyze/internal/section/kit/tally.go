package kit

import "github.com/nsys-llm/explain/analyze/report/lists"

// Tally holds a value for each distinct key, in order of first appearance.
type Tally[K comparable, V any] struct {
	lists.Numbering[K]
	Values []*V // by number of the key
}

func NewTally[K comparable, V any]() *Tally[K, V] { return &Tally[K, V]{} }

// At is the value of a key; the first call makes one that is zero.
func (t *Tally[K, V]) At(k K) *V {
	n := t.Of(k)
	if int(n) == len(t.Values) {
		t.Values = append(t.Values, new(V))
	}
	return t.Values[n]
}
