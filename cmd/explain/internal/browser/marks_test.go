package browser

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// drawnBox is where a shape is on the page, in pixels.
type drawnBox struct{ X, Y, W, H float64 }

// drawnMark is a shape that stands for a value: which one it says it is, where it is, and where its row or area is.
type drawnMark struct {
	Series, Value int
	Box, Frame    drawnBox
	Opacity       float64
	Label, Text   string // of its row, where it has one
	Class         string
}

// drawnPath is a line through the values of a series, in pixels.
type drawnPath struct {
	Series int
	Points [][2]float64
	Frame  drawnBox
}

// drawnTick is a number beside the upright axis.
type drawnTick struct {
	Y    float64
	Text string
}

// drawnChart is a chart as it is drawn, and its folded numbers.
type drawnChart struct {
	ID, Kind string
	Marks    []drawnMark
	Paths    []drawnPath
	Ticks    []drawnTick
	Heat     int // columns
	Numbers  []struct {
		Series, Label string
		Value         *float64
	}
}

const readCharts = `(() => {
  for (const d of document.querySelectorAll("details")) d.open = true;
  const screen = (e, b) => { const m = e.getScreenCTM(), p = (x, y) => new DOMPoint(x, y).matrixTransform(m),
    a = p(b.x, b.y), c = p(b.x + b.width, b.y + b.height); return { x: a.x, y: a.y, w: c.x - a.x, h: c.y - a.y } };
  const rect = (e) => { const b = e.getBoundingClientRect(); return { x: b.x, y: b.y, w: b.width, h: b.height } };
  const frame = (e) => rect(e.closest("svg[role]"));
  return [...document.querySelectorAll("figure.chart")].map((f) => {
    const marks = [...f.querySelectorAll("[data-m]")].map((e) => { const [s, v] = e.dataset.m.split(".").map(Number), row = e.closest(".bar");
      const label = row && row.querySelector(".barlabel span[title]");
      return { series: s, value: v, box: screen(e, e.getBBox()), frame: frame(e), class: e.getAttribute("class"),
        label: label ? label.title : "", text: row ? row.querySelector(".barvalue").textContent : "" } });
    for (const e of f.querySelectorAll("path[data-s]")) { const steps = [...e.getAttribute("d").matchAll(/V([\d.]+)H([\d.]+)/g)].map((m) => [+m[1], +m[2]]);
      steps.forEach(([y, x], i) => { const from = i ? steps[i - 1][1] : 0; marks.push({ series: +e.dataset.s, value: i, box: screen(e, { x: from, y, width: x - from, height: 1000 - y }), frame: frame(e) }) }) }
    const heat = f.querySelector("g[data-heat]");
    if (heat) for (const e of heat.children) marks.push({ series: -1, value: -1, box: screen(e, e.getBBox()), frame: frame(e), opacity: +e.getAttribute("fill-opacity") });
    const paths = [...f.querySelectorAll("polyline[data-s]")].map((e) => { const m = e.getScreenCTM();
      return { series: +e.dataset.s, frame: frame(e), points: e.getAttribute("points").split(" ").map((q) => { const [x, y] = q.split(",").map(Number), r = new DOMPoint(x, y).matrixTransform(m); return [r.x, r.y] }) } });
    const ticks = [...f.querySelectorAll("svg.yaxis line[data-tick]")].map((e) => ({ y: screen(e, e.getBBox()).y, text: e.dataset.tick }));
    const head = [...f.querySelectorAll("details.numbers thead th")].map((e) => e.textContent.replace(/ [\u2195\u2191\u2193]$/, ""));
    const numbers = [];
    for (const tr of f.querySelectorAll("details.numbers tbody tr")) {
      const cells = [...tr.cells], value = (c) => { const d = c.querySelector("data"); return d ? +d.value : null };
      if (f.dataset.kind === "flame") head.slice(1).forEach((h, i) => numbers.push({ series: cells[0].textContent + "#" + tr.rowIndex, label: h, value: value(cells[i + 1]) }));
      else if (head[0] === "Series") numbers.push({ series: cells[0].textContent, label: cells[1].textContent, value: value(cells[2]) });
      else cells.slice(1).forEach((c, i) => numbers.push({ series: head[i + 1], label: cells[0].textContent, value: value(c) }));
    }
    return { id: f.id.replace(/^chart-/, ""), kind: f.dataset.kind, marks, paths, ticks, heat: heat ? +heat.dataset.heat : 0, numbers };
  });
})()`

// model is the chart that the folded numbers tell of.
func (d *drawnChart) model() report.Chart {
	c := report.Chart{ID: d.ID, Kind: d.Kind}
	at := map[string]int{}
	for _, n := range d.Numbers {
		if _, ok := at[n.Series]; !ok {
			at[n.Series] = len(c.Series)
			c.Series = append(c.Series, report.Series{Name: n.Series})
		}
		s := &c.Series[at[n.Series]]
		v := math.NaN()
		if n.Value != nil {
			v = *n.Value
		}
		s.Labels, s.Values = append(s.Labels, n.Label), append(s.Values, v)
	}
	return c
}

// tolerance is how far a mark may be from where it belongs, in pixels.
const tolerance = 0.5

// marksChecker holds what is drawn of one chart to its values.
type marksChecker struct {
	t    *testing.T
	d    *drawnChart
	c    report.Chart
	page string
}

func (m *marksChecker) errorf(format string, args ...any) {
	m.t.Helper()
	m.t.Errorf("%s, chart %s (%s): %s", m.page, m.d.ID, m.d.Kind, fmt.Sprintf(format, args...))
}

func (m *marksChecker) near(what string, mark *drawnMark, got, want float64) {
	m.t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		m.errorf("%s of value %d of series %d is %.2f px, want %.2f", what, mark.Value, mark.Series, got, want)
	}
}

// value is what a mark stands for.
func (m *marksChecker) value(mark *drawnMark) float64 {
	m.t.Helper()
	if mark.Series >= len(m.c.Series) || mark.Value >= len(m.c.Series[mark.Series].Values) {
		m.errorf("a mark of value %d of series %d, which there is not", mark.Value, mark.Series)
		return math.NaN()
	}
	return m.c.Series[mark.Series].Values[mark.Value]
}

// all checks that every value that can be seen has a mark, and no more than one.
func (m *marksChecker) all(seen func(s *report.Series, v float64) bool) {
	m.t.Helper()
	drawn := map[[2]int]int{}
	for i := range m.d.Marks {
		drawn[[2]int{m.d.Marks[i].Series, m.d.Marks[i].Value}]++
	}
	for k := range m.c.Series {
		s := &m.c.Series[k]
		for i, v := range s.Values {
			want := 0
			if seen(s, v) {
				want = 1
			}
			if got := drawn[[2]int{k, i}]; got != want {
				m.errorf("value %d of series %d (%g) is drawn %d times, want %d", i, k, v, got, want)
			}
		}
	}
}

// affine checks that places follow values along one straight axis; it is fixed by the least and the greatest value.
func (m *marksChecker) affine(what string, values, places []float64) (at func(float64) float64, ok bool) {
	m.t.Helper()
	if len(values) == 0 {
		return nil, false
	}
	low, high := 0, 0
	for i, v := range values {
		if v < values[low] {
			low = i
		}
		if v > values[high] {
			high = i
		}
	}
	slope := 0.0
	if values[high] != values[low] {
		slope = (places[high] - places[low]) / (values[high] - values[low])
	}
	at = func(v float64) float64 { return places[low] + slope*(v-values[low]) }
	for i, v := range values {
		if math.Abs(at(v)-places[i]) > tolerance {
			m.errorf("%s: the value %g is at %.2f px, and by the ends of its axis belongs at %.2f", what, v, places[i], at(v))
		}
	}
	return at, values[high] != values[low]
}

func (m *marksChecker) check() {
	m.t.Helper()
	defer m.lie()
	switch m.d.Kind {
	case "bar":
		m.bars()
	case "stacked":
		m.stacked()
	case "histogram":
		m.histogram()
	case "strip":
		m.strip()
	case "line":
		m.lines(false)
	case "scatter":
		m.lines(true)
	case "heat":
		m.heat()
	case "flame":
		m.flame()
	case "forest":
		m.forest()
	case "dots":
		m.dots()
	case "trend":
		m.trend()
	default:
		m.errorf("no test knows this kind")
	}
}

// labelled checks that the row of a mark has the label and the value of the mark.
func (m *marksChecker) labelled(mark *drawnMark, value string) {
	m.t.Helper()
	label := m.c.Series[mark.Series].Labels[mark.Value]
	if mark.Label != "" && mark.Label != render.Visible(label) && m.c.Unit != "" {
		m.errorf("the row of %q is labelled %q", label, mark.Label)
	}
	if m.c.Unit != "" && mark.Text != value {
		m.errorf("%q has the number %q, want %q", label, mark.Text, value)
	}
}

// checkMarks holds everything that is drawn on the open page to the charts, or where those do not have it to the numbers
// folded under it, and returns how many marks and points there were.
func checkMarks(t *testing.T, ctx context.Context, page string, charts map[string]report.Chart) int {
	t.Helper()
	n := 0
	for _, d := range evaluate[[]drawnChart](t, ctx, readCharts) {
		m := marksChecker{t: t, d: &d, c: d.model(), page: page}
		if c, ok := charts[d.ID]; ok {
			m.c = c
		}
		m.check()
		n += len(d.Marks)
		for _, p := range d.Paths {
			n += len(p.Points)
		}
	}
	return n
}
