package kit

// Covered is the length of a union of intervals that are sorted by start.
type Covered struct{ Ns, Reached int64 }

// Add adds an interval, and returns how much longer the union is with it.
func (c *Covered) Add(start, end int64) (more int64) {
	if from := max(start, c.Reached); end > from {
		more = end - from
		c.Ns, c.Reached = c.Ns+more, end
	}
	return more
}
