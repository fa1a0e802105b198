package comparison

import (
	"errors"
)

// Distribution is how the times of single units of both sides are spread, in bins that both share. Bin i holds the
// times from Edges[i] up to Edges[i+1]; the last one has no upper edge.
type Distribution struct {
	Metric string    `json:"metric"`
	Edges  []float64 `json:"edges"` // ns, lower edges; empty where single units are not known
	Base   []int64   `json:"base"`  // units
	Head   []int64   `json:"head"`
}

// Validate reports what makes the bins none.
func (d *Distribution) Validate() error {
	if d.Edges == nil || d.Base == nil || d.Head == nil || len(d.Base) != len(d.Edges) || len(d.Head) != len(d.Edges) ||
		len(d.Edges) > maxFewRows ||
		!Finite(d.Edges...) {
		return errors.New("comparison: the distribution's bins do not fit together")
	}
	for i := range d.Edges {
		if d.Base[i] < 0 || d.Head[i] < 0 || i > 0 && d.Edges[i] < d.Edges[i-1] {
			return errors.New("comparison: the distribution's bins are not in order, or hold less than nothing")
		}
	}
	return nil
}
