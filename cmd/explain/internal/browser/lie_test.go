package browser

import (
	"math"
	"slices"
	"testing"
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
	case "histogram":
		return mark.Box.H, v, true
	case "flame":
		return mark.Box.W, s.Values[2], true
	case "strip":
		if s.Style == "marks" {
			return mark.Box.W, v, true
		}
		return mark.Box.H, v, slices.Min(s.Values) >= 0 // else its bottom is not zero
	case "heat": // a shade is as dark as its value is large, up to the cap that the page states
		return 100 * mark.Opacity, v, mark.Opacity < 1
	}
	return 0, 0, false
}

// lieOfStep holds a step's figure to its lie factor: every mark with words against its length, and all marks together
// against the sum of theirs, since the shortest have no words.
func lieOfStep(t *testing.T, f *stepFigure, length func(m *stepMark) float64, sum, whole float64) {
	t.Helper()
	drawn, most, least := f.Small, 0.0, math.Inf(1)
	for i := range f.Marks {
		m := &f.Marks[i]
		drawn += m.W
		if v := length(m); m.W >= leastSeen && v > 0 {
			most, least = max(most, m.W/v), min(least, m.W/v)
		}
	}
	if most > 0 && most/least > mostLie {
		t.Errorf("%s: the lie factor of marks is %.2f, want at most %.1f", f.ID, most/least, mostLie)
	}
	if len(f.Marks) == 0 || drawn < leastSeen {
		return
	}
	if factor := drawn / f.Marks[0].Whole / (sum / whole); factor > mostLie {
		t.Errorf("%s: all marks take %.2f times the room of their values, want at most %.1f", f.ID, factor, mostLie)
	}
}

// lie holds every pair of marks of a chart to its lie factor: the largest and the smallest size for its value are within it.
func (m *marksChecker) lie() {
	m.t.Helper()
	type ends struct{ most, least float64 }
	of := map[string]ends{} // by style: stretches lie below the strip that they are of
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		if mark.Series < 0 || mark.Series >= len(m.c.Series) || mark.Value >= len(m.c.Series[mark.Series].Values) {
			continue // another check says so
		}
		if size, v, ok := m.looks(mark); ok && size >= leastSeen && v > 0 {
			style := m.c.Series[mark.Series].Style
			e, seen := of[style]
			if !seen {
				e.least = math.Inf(1)
			}
			of[style] = ends{max(e.most, size/v), min(e.least, size/v)}
		}
	}
	for style, e := range of {
		if factor := e.most / e.least; factor > mostLie {
			m.errorf("the lie factor of %q is %.2f, want at most %.1f", style, factor, mostLie)
		}
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
