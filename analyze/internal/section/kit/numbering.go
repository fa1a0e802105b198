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
