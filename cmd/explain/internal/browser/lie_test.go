package browser

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// mostLie bounds the lie factor of a picture (Tufte): how many times as large a mark looks beside another as its value is.
const mostLie = 1.1

// leastSeen is the extent in pixels from which sizes are compared: less is a matter of whole pixels.
const leastSeen = 20

// looks is how large a mark looks and the value that it stands for; false where it is a place on an axis and not a size.
func (m *marksChecker) looks(mark *drawnMark) (size, value float64, ok bool) {
	s := &m.c.Series[mark.Series]
	v := math.Abs(s.Values[mark.Value])
	switch m.d.Kind {
	case "bar", "stacked":
		return mark.Box.W, v, true
	case "deltas":
		return mark.Box.W, v, mark.Series == 0
	case "histogram":
		if len(m.c.Series) > 1 { // shares of their own sums
			sum := 0.0
			for _, x := range s.Values {
				sum += x
			}
			v /= sum
		}
		return mark.Box.H, v, true
	case "multiples":
		return mark.Box.H, v, true
	case "treemap":
		return mark.Box.W * mark.Box.H / 20, v, true
	case "flame":
		return mark.Box.W, s.Values[2], true
	}
	return 0, 0, false
}

// lie holds every pair of marks of a chart to its lie factor: the largest and the smallest size for its value are within it.
func (m *marksChecker) lie() {
	m.t.Helper()
	most, least := 0.0, math.Inf(1)
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		if mark.Series < 0 || mark.Series >= len(m.c.Series) || mark.Value >= len(m.c.Series[mark.Series].Values) {
			continue // another check says so
		}
		if size, v, ok := m.looks(mark); ok && size >= leastSeen && v > 0 {
			most, least = max(most, size/v), min(least, size/v)
		}
	}
	if factor := most / least; most > 0 && factor > mostLie {
		m.errorf("the lie factor is %.2f, want at most %.1f", factor, mostLie)
	}
}

// multiples are histograms below each other: all columns on one scale, each at its bin.
func (m *marksChecker) multiples() {
	m.all(func(_ *report.Series, v float64) bool { return v > 0 })
	most := 0.0
	for _, s := range m.c.Series {
		most = max(most, slices.Max(s.Values))
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		v, n := m.value(mark), float64(len(m.c.Series[mark.Series].Values))
		m.near("the height", mark, mark.Box.H, v/most*mark.Frame.H)
		m.near("the start", mark, mark.Box.X-mark.Frame.X, float64(mark.Value)/n*mark.Frame.W)
	}
}

// trend has a dot for every night, in order, on one axis.
func (m *marksChecker) trend() {
	var values, places []float64
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		values, places = append(values, m.value(mark)), append(places, mark.Box.Y+mark.Box.H/2)
		m.near("the middle", mark, mark.Box.X+mark.Box.W/2-mark.Frame.X, (float64(mark.Value)+0.5)/float64(len(m.c.Series[0].Values))*mark.Frame.W)
	}
	if len(m.d.Marks) != len(m.c.Series[0].Values) {
		m.errorf("%d dots for %d nights", len(m.d.Marks), len(m.c.Series[0].Values))
	}
	m.affine("upright", values, places)
}
