package lists

// Numbering gives each distinct key a small number, in order of first appearance. The zero value is empty.
type Numbering[K comparable] struct {
	index map[K]int32
	Keys  []K
	last  int32 // neighbouring items mostly have the same key
}

// Of is the number of a key; a new key gets the next one.
func (n *Numbering[K]) Of(k K) int32 {
	if len(n.Keys) > 0 && n.Keys[n.last] == k {
		return n.last
	}
	i, ok := n.index[k]
	if !ok {
		if n.index == nil {
			n.index = map[K]int32{}
		}
		i = int32(len(n.Keys))
		n.index[k] = i
		n.Keys = append(n.Keys, k)
	}
	n.last = i
	return i
}

// Has reports whether a key has a number.
func (n *Numbering[K]) Has(k K) bool {
	_, ok := n.index[k]
	return ok
}
