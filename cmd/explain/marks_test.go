package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
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
  const frame = (e) => rect(e.closest("svg[role=img]"));
  return [...document.querySelectorAll("figure.chart")].map((f) => {
    const marks = [...f.querySelectorAll("[data-m]")].map((e) => { const [s, v] = e.dataset.m.split(".").map(Number), row = e.closest(".bar");
      const label = row && row.querySelector(".barlabel span[title]");
      return { series: s, value: v, box: screen(e, e.getBBox()), frame: frame(e), class: e.getAttribute("class"),
        label: label ? label.title : "", text: row ? row.querySelector(".barvalue").textContent : "" } });
    for (const e of f.querySelectorAll("path[data-s]")) { const steps = [...e.getAttribute("d").matchAll(/V([\d.]+)H([\d.]+)/g)].map((m) => [+m[1], +m[2]]);
      steps.forEach(([y, x], i) => { const from = i ? steps[i - 1][1] : 0; marks.push({ series: +e.dataset.s, value: i, box: screen(e, { x: from, y, width: x - from, height: 40 - y }), frame: frame(e) }) }) }
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
	switch m.d.Kind {
	case "bar":
		m.bars()
	case "stacked":
		m.stacked()
	case "histogram":
		m.histogram()
	case "strip":
		if len(m.d.Paths) > 0 || len(m.d.Ticks) > 0 {
			m.lines(false)
			return
		}
		m.strip()
	case "line":
		m.lines(false)
	case "scatter":
		m.lines(true)
	case "heat":
		m.heat()
	case "flame":
		m.flame()
	case "treemap":
		m.treemap()
	case "waterfall":
		m.waterfall()
	case "deltas":
		m.deltas()
	case "forest":
		m.forest()
	case "dots":
		m.dots()
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
	most := 0.0
	for _, s := range m.c.Series {
		most = max(most, slices.Max(append([]float64{0}, s.Values...)))
	}
	want := 0
	for _, s := range m.c.Series {
		for _, v := range s.Values {
			if v > 0 {
				want++
			}
		}
	}
	if len(m.d.Marks) != want {
		m.errorf("%d cells, want %d", len(m.d.Marks), want)
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		mark.Series = int(math.Round((mark.Box.Y - mark.Frame.Y) / mark.Frame.H * float64(len(m.c.Series))))
		mark.Value = int(math.Round((mark.Box.X - mark.Frame.X) / mark.Frame.W * float64(m.d.Heat)))
		if v := m.value(mark); math.Abs(mark.Opacity-max(0.05, v/most)) > 0.006 {
			m.errorf("the cell %d of row %d is %g dark, want %g", mark.Value, mark.Series, mark.Opacity, v/most)
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

func (m *marksChecker) treemap() {
	m.all(func(_ *report.Series, v float64) bool { return v > 0 })
	whole, covered := 0.0, 0.0
	for _, s := range m.c.Series {
		for _, v := range s.Values {
			whole += max(v, 0)
		}
	}
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		covered += mark.Box.W * mark.Box.H
		want := m.value(mark) / whole * mark.Frame.W * mark.Frame.H
		if got := mark.Box.W * mark.Box.H; math.Abs(got-want) > tolerance*(mark.Box.W+mark.Box.H)+tolerance {
			m.errorf("the area of value %d of series %d is %.0f px, want %.0f", mark.Value, mark.Series, got, want)
		}
	}
	if n := len(m.d.Marks); n > 0 && math.Abs(covered/m.d.Marks[0].Frame.W/m.d.Marks[0].Frame.H-1) > 0.01 {
		m.errorf("the areas cover %.0f px of %.0f", covered, m.d.Marks[0].Frame.W*m.d.Marks[0].Frame.H)
	}
}

func (m *marksChecker) waterfall() {
	m.all(func(*report.Series, float64) bool { return true })
	s := &m.c.Series[0]
	at := s.Values[0]
	var values, places []float64
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		v := m.value(mark)
		low, high := at, at
		if i > 0 && i < len(s.Values)-1 {
			low, high = min(at, at+v), max(at, at+v)
			at += v
			values, places = append(values, low), append(places, mark.Box.X)
			m.labelled(mark, map[bool]string{true: "▲ ", false: "▼ "}[v > 0]+unit.Delta(v, m.c.Unit))
		} else {
			high = v
			m.near("the start", mark, mark.Box.X, mark.Frame.X)
		}
		values, places = append(values, high), append(places, mark.Box.X+mark.Box.W)
	}
	m.affine("across", values, places)
}

func (m *marksChecker) deltas() {
	var values, places []float64
	for i := range m.d.Marks {
		mark := &m.d.Marks[i]
		if mark.Series > 0 { // an interval: from the second series to the third
			low, high := m.c.Series[1].Values[mark.Value], m.c.Series[2].Values[mark.Value]
			values, places = append(values, low, high), append(places, mark.Box.X, mark.Box.X+mark.Box.W)
			continue
		}
		v := m.value(mark)
		values, places = append(values, min(v, 0), max(v, 0)), append(places, mark.Box.X, mark.Box.X+mark.Box.W)
	}
	if len(m.d.Marks) < len(m.c.Series[0].Values) {
		m.errorf("%d marks, want %d", len(m.d.Marks), len(m.c.Series[0].Values))
	}
	m.affine("across", values, places)
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

// TestDrawnMarksAreTheNumbers parses every mark of every chart back, on twelve reports.
func TestDrawnMarksAreTheNumbers(t *testing.T) {
	open := browser(t)
	list := []string{"../../testdata/serving.sqlite", "../../testdata/serving_graph.sqlite", "../../testdata/hostile.sqlite",
		"../../testdata/twoprocs.sqlite", "../../testdata/oldest.sqlite", "../../testdata/graph_hidden.sqlite"}
	for _, name := range []string{"nsysai_mfu_2gpu_before", "nsysai_h100_2gpu_1s", "cs336_hoponga_exp2024_2", "cs336zx_2_7B_nvtx",
		"sglang_baseline_report", "rodinia_report2_native"} {
		list = append(list, filepath.Join(sharedTraces, name+".sqlite"))
	}
	for i, trace := range list {
		t.Run(strings.TrimSuffix(filepath.Base(trace), ".sqlite"), func(t *testing.T) {
			if _, err := os.Stat(trace); err != nil {
				t.Skip("the trace is not here: ", err)
			}
			var args []string
			if i == 0 {
				args = []string{"--evidence", "../../testdata/evidence"}
			}
			file, r := pageOf(t, trace, args...)
			ctx, _ := open(t, file, true)
			seen(t, ctx, "light", 1440)
			charts := map[string]report.Chart{}
			for k := range r.Sections {
				for _, c := range r.Sections[k].Charts {
					charts[c.ID] = c
				}
			}
			n := checkMarks(t, ctx, filepath.Base(trace), charts)
			t.Logf("%d marks", n)
			if n == 0 {
				t.Error("nothing is drawn")
			}
		})
	}
}

// sharedTraces are real captures, which are not part of the project.
const sharedTraces = "../../../shared/traces"

// TestDrawnMarksOfComparisons parses every mark of every chart back, on six comparisons.
func TestDrawnMarksOfComparisons(t *testing.T) {
	open := browser(t)
	pairs := [][2]string{{"../../testdata/serving.sqlite", "../../testdata/serving_graph.sqlite"}}
	for _, p := range [][2]string{{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, {"cs336zx_2_7B", "cs336zx_2_7B_clean"},
		{"rodinia_report2_native", "rodinia_report3_native"}, {"cs336zx_2_7B_nvtx", "cs336zx_2_7B"}, {"cs336zx_2_7B", "fuser_h200_report1"}} {
		pairs = append(pairs, [2]string{filepath.Join(sharedTraces, p[0]+".sqlite"), filepath.Join(sharedTraces, p[1]+".sqlite")})
	}
	check := func(t *testing.T, file string) {
		ctx, _ := open(t, file, true)
		seen(t, ctx, "light", 1440)
		t.Logf("%d marks", checkMarks(t, ctx, "diff.html", nil))
	}
	t.Run("scaled", func(t *testing.T) {
		file, _ := comparisonOf(t, "../../testdata/serving.sqlite")
		check(t, file)
	})
	for _, p := range pairs {
		t.Run(strings.TrimSuffix(filepath.Base(p[0]), ".sqlite")+" "+strings.TrimSuffix(filepath.Base(p[1]), ".sqlite"), func(t *testing.T) {
			if _, err := os.Stat(p[0]); err != nil {
				t.Skip("the trace is not here: ", err)
			}
			out := filepath.Join(t.TempDir(), "out")
			if _, errs, code := explainDiff(t, p[0], p[1], "--out", out, "--quiet"); code == exitUsage || code == exitInput {
				t.Fatalf("exit %d: %s", code, errs)
			}
			if _, err := comparison.Read(bytes.NewReader(read(t, filepath.Join(out, "comparison.json")))); err != nil {
				t.Fatal(err)
			}
			check(t, filepath.Join(out, "diff.html"))
		})
	}
}
