package browser

import (
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

func (m *marksChecker) bars() {
	m.all(func(*report.Series, float64) bool { return true })
	most := 0.0
	for _, s := range m.c.Series {
		most = max(most, slices.Max(append([]float64{0}, s.Values...)))
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		v := m.value(mark)
		if most > 0 {
			m.near("the width", mark, mark.Box.W, max(v, 0)/most*mark.Frame.W)
		}
		m.near("the start", mark, mark.Box.X, mark.Frame.X)
		m.labelled(mark, unit.Format(v, m.c.Unit))
	}
}

func (m *marksChecker) stacked() {
	m.all(func(_ *report.Series, v float64) bool { return v > 0 })
	most := 0.0
	before := make([][]float64, len(m.c.Series))
	for k, s := range m.c.Series {
		sum := 0.0
		for _, v := range s.Values {
			before[k] = append(before[k], sum)
			sum += max(v, 0)
		}
		most = max(most, sum)
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		m.near("the width", mark, mark.Box.W, m.value(mark)/most*mark.Frame.W)
		m.near("the start", mark, mark.Box.X-mark.Frame.X, before[mark.Series][mark.Value]/most*mark.Frame.W)
	}
}

func (m *marksChecker) histogram() {
	m.all(func(_ *report.Series, v float64) bool { return v > 0 })
	most, bins := 0.0, 0
	sums := make([]float64, len(m.c.Series))
	for k, s := range m.c.Series {
		sums[k] = 1
		if len(m.c.Series) > 1 {
			sums[k] = 0
			for _, v := range s.Values {
				sums[k] += v
			}
		}
		bins = max(bins, len(s.Values))
		for _, v := range s.Values {
			most = max(most, v/sums[k])
		}
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		m.near("the height", mark, mark.Box.H, m.value(mark)/sums[mark.Series]/most*mark.Frame.H)
		m.near("the start", mark, mark.Box.X-mark.Frame.X, float64(mark.Value)/float64(bins)*mark.Frame.W)
	}
}

func (m *marksChecker) strip() {
	m.all(func(*report.Series, float64) bool { return true })
	most, least := math.Inf(-1), math.Inf(1)
	for _, s := range m.c.Series {
		if s.Style != "marks" {
			most, least = max(most, slices.Max(s.Values)), min(least, slices.Min(s.Values))
		}
	}
	if m.c.Unit == report.Ratio {
		most, least = 1, 0
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		v, s := m.value(mark), &m.c.Series[mark.Series]
		if s.Style != "marks" {
			if most > 0 {
				m.near("the height", mark, mark.Box.H, (v-min(least, 0))/(most-min(least, 0))*mark.Frame.H)
			}
			m.near("the start", mark, mark.Box.X-mark.Frame.X, float64(mark.Value)/float64(len(s.Values))*mark.Frame.W)
			continue
		}
		first, last := number(m.t, m.c.Series[0].Labels[0]), number(m.t, m.c.Series[0].Labels[len(m.c.Series[0].Labels)-1])
		n := float64(len(m.c.Series[0].Labels))
		whole := (last - first) * n / (n - 1)
		m.near("the start", mark, mark.Box.X-mark.Frame.X, number(m.t, s.Labels[mark.Value])/whole*mark.Frame.W)
		m.near("the width", mark, mark.Box.W, v*mark.Frame.W)
	}
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// lines are points and paths in a plane. Their axes are fixed by their own extremes; the numbers beside the upright axis
// have to lie on it too.
func (m *marksChecker) lines(log bool) {
	scale := func(v float64) float64 {
		if log {
			return math.Log(v)
		}
		return v
	}
	var xs, ys, px, py []float64
	points := 0
	add := func(series, value int, x, y float64) {
		s := &m.c.Series[series]
		points++
		at := float64(value + 1)
		if value < len(s.Labels) {
			if v, err := strconv.ParseFloat(s.Labels[value], 64); err == nil {
				at = v
			}
		}
		if log && (at <= 0 || s.Values[value] <= 0) {
			return // has no place on a logarithmic axis
		}
		xs, ys = append(xs, scale(at)), append(ys, scale(s.Values[value]))
		px, py = append(px, x), append(py, y)
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		if m.value(mark); mark.Series < len(m.c.Series) {
			add(mark.Series, mark.Value, mark.Box.X+mark.Box.W/2, mark.Box.Y+mark.Box.H/2)
		}
	}
	for _, path := range m.d.Paths {
		if len(path.Points) != len(m.c.Series[path.Series].Values) {
			m.errorf("series %d is a line of %d points, want %d", path.Series, len(path.Points), len(m.c.Series[path.Series].Values))
			return
		}
		for i, q := range path.Points {
			add(path.Series, i, q[0], q[1])
		}
	}
	want := 0
	for _, s := range m.c.Series {
		want += len(s.Values)
	}
	if points != want {
		m.errorf("%d points are drawn, want %d", points, want)
	}
	m.affine("across", xs, px)
	up, ok := m.affine("upright", ys, py)
	for _, tick := range m.d.Ticks {
		if v := number(m.t, tick.Text); ok && (!log || v > 0) && math.Abs(up(scale(v))-tick.Y) > tolerance {
			m.errorf("the line of %s is at %.2f px, the values have it at %.2f", tick.Text, tick.Y, up(scale(v)))
		}
	}
}

func (m *marksChecker) heat() {
	var shades []float64
	for _, s := range m.c.Series {
		for _, v := range s.Values {
			if v > 0 {
				shades = append(shades, v)
			}
		}
	}
	if len(m.d.Marks) != len(shades) {
		m.errorf("%d cells, want %d", len(m.d.Marks), len(shades))
	}
	slices.Sort(shades)
	dark := shades[int(0.99*float64(len(shades)-1))] // as dark as it gets
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		mark.Series = int(math.Round((mark.Box.Y - mark.Frame.Y) / mark.Frame.H * float64(len(m.c.Series))))
		mark.Value = int(math.Round((mark.Box.X - mark.Frame.X) / mark.Frame.W * float64(m.d.Heat)))
		if v := m.value(mark); math.Abs(mark.Opacity-min(1, v/dark)) > 0.006 {
			m.errorf("the cell %d of row %d is %g dark, want %g", mark.Value, mark.Series, mark.Opacity, min(1, v/dark))
		}
	}
}

func (m *marksChecker) flame() {
	whole := 0.0
	drawn := map[int]bool{}
	for _, s := range m.c.Series {
		whole = max(whole, s.Values[1]+s.Values[2])
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		m.value(mark)
		s := &m.c.Series[mark.Series]
		drawn[mark.Series] = true
		m.near("the start", mark, mark.Box.X-mark.Frame.X, s.Values[1]/whole*mark.Frame.W)
		m.near("the width", mark, mark.Box.W, s.Values[2]/whole*mark.Frame.W)
		m.near("the top", mark, mark.Box.Y-mark.Frame.Y, s.Values[0]*20)
	}
	for k, s := range m.c.Series {
		if !drawn[k] && s.Values[2] > 0 {
			m.errorf("%q is not drawn", s.Name)
		}
	}
}

// dots lie along one axis for all rows, and one below the other in their order.
func (m *marksChecker) dots() {
	m.all(func(*report.Series, float64) bool { return true })
	var values, places []float64
	below := map[int]float64{}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		values, places = append(values, m.value(mark)), append(places, mark.Box.X+mark.Box.W/2)
		if mark.Value > 0 && mark.Box.Y < below[mark.Series] {
			m.errorf("dot %d of row %d is above the one before it", mark.Value, mark.Series)
		}
		below[mark.Series] = mark.Box.Y
	}
	m.affine("across", values, places)
}

// forest bends its axis: a change of v is at asinh(v / 5 %).
func (m *marksChecker) forest() {
	index := map[string]int{}
	for k, s := range m.c.Series {
		index[s.Name] = k
	}
	var values, places []float64
	points := 0
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		value := func(series string) float64 {
			k, ok := index[series]
			if !ok {
				m.errorf("no series %s", series)
				return math.NaN()
			}
			return math.Asinh(m.c.Series[k].Values[mark.Value] / 0.05)
		}
		switch mark.Series {
		case 0:
			points++
			values, places = append(values, value("change")), append(places, mark.Box.X+mark.Box.W/2)
		case 1:
			values = append(values, value("from"), value("to"))
			places = append(places, mark.Box.X, mark.Box.X+mark.Box.W)
		case 2:
			values, places = append(values, value("limit")), append(places, mark.Box.X)
		}
	}
	want := 0
	for _, v := range m.c.Series[index["change"]].Values {
		if !math.IsNaN(v) {
			want++
		}
	}
	if points != want {
		m.errorf("%d points, want %d", points, want)
	}
	m.affine("across", values, places)
}
