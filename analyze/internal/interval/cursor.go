package interval

// Cursor goes through intervals with ascending stretches of time.
type Cursor struct {
	Left   []Interval // those that are not passed yet, by start
	passed int
}

// Advance passes the first intervals up to one that does not end before a stretch, and reports whether that overlaps
// it.
func (c *Cursor) Advance(start, end int64) bool {
	for len(c.Left) > 0 && c.Left[0].End <= start {
		c.Left, c.passed = c.Left[1:], c.passed+1
	}
	return len(c.Left) > 0 && c.Left[0].Start < end
}

// Each calls visit with each part of a stretch that is in an interval, and the place of that among all. The stretch
// must not begin before the last one of Advance.
func (c *Cursor) Each(start, end int64, visit func(i int, start, end int64)) {
	for i := range c.Left {
		x := &c.Left[i]
		if x.Start >= end {
			return
		}
		if lo, hi := max(start, x.Start), min(end, x.End); lo < hi {
			visit(c.passed+i, lo, hi)
		}
	}
}
