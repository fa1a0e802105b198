package comparison

import "errors"

// Distribution is how the times of single units of both sides are spread, in bins that both share. Bin i holds the
// times from Edges[i] up to Edges[i+1]; the last one has no upper edge.
type Distribution struct {
	Metric string    `json:"metric"`
	Edges  []float64 `json:"edges"` // ns, lower edges; empty if single units are not known
	Base   []int64   `json:"base"`  // units
	Head   []int64   `json:"head"`
	// Captures are the times of single units by capture, the base's first; absent if they are not known.
	Captures []CaptureUnits `json:"captures,omitempty"`
}

// CaptureUnits are the units of one capture.
type CaptureUnits struct {
	Side  string    `json:"side"`  // base or head
	Name  string    `json:"name"`  // of the capture
	Count int64     `json:"count"` // units that the report lists
	Times []float64 `json:"times"` // ns, in the order in which they ran; every k-th if there are many
}

// Validate reports what makes the bins none.
func (d *Distribution) Validate() error {
	if len(d.Base) != len(d.Edges) || len(d.Head) != len(d.Edges) || len(d.Edges) > maxFewRows {
		return errors.New("comparison: the distribution's bins do not fit together")
	}
	for i := range d.Captures {
		if c := &d.Captures[i]; c.Side != "base" && c.Side != "head" || int64(len(c.Times)) > c.Count {
			return errors.New("comparison: the units of a capture are of no side, or more than it has")
		}
	}
	for i := range d.Edges {
		if d.Base[i] < 0 || d.Head[i] < 0 || i > 0 && d.Edges[i] < d.Edges[i-1] {
			return errors.New("comparison: the distribution's bins are not in order, or hold less than nothing")
		}
	}
	return nil
}
