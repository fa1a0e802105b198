package kit

func (c *Covered) Add(start, end int64) {
	if from := max(start, c.Reached); end > from {
		c.Ns += end - from
		c.Reached = end
	}
}

// Covered is the length of a union of intervals that are sorted by start.
type Covered struct{ Ns, Reached int64 }
