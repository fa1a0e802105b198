package render_test

import (
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
)

func drawing(t *testing.T, c doc.Chart) *html.Node {
	t.Helper()
	return htmlPage(t, doc.Document{c})
}

// barTexts are the labels of the rows of a chart, as a reader who hears the page has them.
func barTexts(root *html.Node) []string {
	var list []string
	for _, svg := range find(root, "svg") {
		if attribute(svg, "role") == "img" {
			list = append(list, attribute(svg, "aria-label"))
		}
	}
	return list
}

// TestBarsKeepTheirLabels: a series without a value for one label keeps the others at theirs.
func TestBarsKeepTheirLabels(t *testing.T) {
	got := barTexts(drawing(t, doc.Chart{ID: "x", Title: "chart", Kind: "bar", Unit: "ns", Series: []doc.Series{
		{Name: "p50", Labels: []string{"whole", "queue"}, Values: []float64{10, 20}},
		{Name: "p99", Labels: []string{"queue", "late"}, Values: []float64{40, 30}}}}))
	want := []string{"whole, p50: 10 ns", "whole, p99: unknown", "queue, p50: 20 ns", "queue, p99: 40 ns",
		"late, p50: unknown", "late, p99: 30 ns"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTicksDiffer: an axis of which the ends are close together has ticks with as many digits as tell them apart.
func TestTicksDiffer(t *testing.T) {
	edges := []string{"840900000", "840910000", "840920000", "840930000", "840940000", "840950000"}
	root := drawing(t, doc.Chart{ID: "x", Title: "chart", Kind: "histogram", Unit: "count", XUnit: "ns",
		Series: []doc.Series{{Name: "a", Labels: edges, Values: []float64{1, 2, 3, 4, 5, 6}}}})
	var got []string
	for _, svg := range find(root, "svg") {
		if attribute(svg, "class") == "xaxis" {
			for _, n := range find(svg, "text") {
				got = append(got, textOf(n))
			}
		}
	}
	want := []string{"840.90 ms", "840.91 ms", "840.92 ms", "840.93 ms", "840.94 ms", "840.95 ms"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestJitterLooksFlat: values that differ by less than a percent do not fill the height of a line chart, and an axis that
// is cut says so.
func TestJitterLooksFlat(t *testing.T) {
	root := drawing(t, doc.Chart{ID: "x", Title: "chart", Kind: "line", Unit: "ns",
		Series: []doc.Series{{Name: "a", Labels: []string{"1", "2"}, Values: []float64{999, 1001}}}})
	// 950 to 1050 and 2 % of room: 999 lies at 51/104 of the height, 1001 at 53/104; the two are 0.01/1.02 of the width inside.
	var got string
	for _, n := range find(root, "polyline") {
		got = attribute(n, "points")
	}
	if want := "9.8,509.6 990.2,490.4"; got != want {
		t.Errorf("points %q, want %q", got, want)
	}
	if !strings.Contains(textOf(root), "The axis starts at 948 ns, not at zero.") {
		t.Error("nothing says that the axis is cut")
	}
}

// A foreign report.json may hold a chart of any kind with any series: it is drawn as far as that goes.
func TestForeignCharts(t *testing.T) {
	series := func(style string, values ...float64) doc.Series {
		s := doc.Series{Name: style, Style: style}
		for i, v := range values {
			s.Add(strconv.Itoa(i), v)
		}
		return s
	}
	for _, kind := range []string{"bar", "stacked", "histogram", "strip", "line", "scatter", "heat", "flame",
		"dots", "forest", "trend", "another"} {
		for name, list := range map[string][]doc.Series{
			"empty and full": {series(""), series("", 1, 2)},
			"full and empty": {series("", 1, 2), series("")},
			"uneven":         {series("", -1, 2), series("", 1, 2, 3)},
			"one":            {series("", 1)},
			"zeros":          {series("", 0, 0)},
			"marks":          {series("marks", 1)},
			"large":          {series("", math.MaxFloat64, -math.MaxFloat64)},
			"late": {{Name: "late", Labels: []string{"9000000000000000000", "9000000000000001024"},
				Values: []float64{1, 2}}},
			"a box":    {series("", 9, 0, 5, 1)},
			"a change": {series("", 9, 0, 5, 1, 2)},
			"nights":   {series("points", 1, 2), series("level", 1, 2), series("border", 1), series("change", 2)},
			"an interval": {series("point", 1, 2), series("low", 1), series("high", 2), series("noise", 1),
				series("limit", 1)},
		} {
			for _, unit := range []string{report.Nanoseconds, report.Ratio} {
				t.Run(kind+" "+name+" "+unit, func(t *testing.T) {
					root := drawing(t, doc.Chart{Title: "foreign", Kind: kind, Unit: unit, XUnit: report.Nanoseconds,
						Series: list})
					if n := len(find(root, "data")); n == 0 {
						t.Error("the page does not have the chart's numbers")
					}
				})
			}
		}
	}
}

// TestNumbersOfManySeries: a stranger's report may have a chart of thousands of series or labels. Its numbers are written in
// memory that grows with them, and stop after 3000 rows.
func TestNumbersOfManySeries(t *testing.T) {
	wide, long := doc.Chart{ID: "x", Kind: "other"}, doc.Chart{ID: "x", Kind: "other"}
	for i := range 4000 {
		wide.Series = append(wide.Series, doc.Series{Name: "s", Labels: []string{"a"}, Values: []float64{1}})
		if len(long.Series) < 2 {
			long.Series = append(long.Series, doc.Series{Name: "s"})
		}
		long.Series[i%len(long.Series)].Add(strconv.Itoa(i), 1)
	}
	for _, c := range []doc.Chart{wide, long} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := render.HTML(io.Discard, doc.Document{c}, "")
		if runtime.ReadMemStats(&after); err != nil || after.TotalAlloc-before.TotalAlloc > 64<<20 {
			t.Errorf("%d bytes, %v", after.TotalAlloc-before.TotalAlloc, err)
		}
	}
	if rows := len(find(drawing(t, long), "tr")); rows != 3001 {
		t.Errorf("%d rows, want 3000 below their heading", rows)
	}
}
