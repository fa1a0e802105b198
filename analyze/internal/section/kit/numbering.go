package kit

func (n *Numbering[K]) Of(k K) int32 {
	if len(n.Keys) > 0 && n.Keys[n.last] == k {
		return n.last
	}
	i, ok := n.index[k]
	if !ok {
		i = int32(len(n.Keys))
		n.index[k] = i
		n.Keys = append(n.Keys, k)
	}
	n.last = i
	return i
}

func NewNumbering[K comparable]() *Numbering[K] {
	return &Numbering[K]{index: map[K]int32{}}
}

// Numbering gives each distinct key a small number, in order of first appearance.
type Numbering[K comparable] struct {
	index map[K]int32
	Keys  []K
	last  int32 // neighbouring events mostly have the same key
}

// Tally holds a value for each distinct key, in order of first appearance.
type Tally[K comparable, V any] struct {
	*Numbering[K]
	Values []*V // by number of the key
}

func NewTally[K comparable, V any]() *Tally[K, V] { return &Tally[K, V]{Numbering: NewNumbering[K]()} }

// At is the value of a key; the first call makes one that is zero.
func (t *Tally[K, V]) At(k K) *V {
	n := t.Of(k)
	if int(n) == len(t.Values) {
		t.Values = append(t.Values, new(V))
	}
	return t.Values[n]
}
