package render_test

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// TestTimeline reads every mark back: two kernels, a gap, a range that is too short to be pointed at.
func TestTimeline(t *testing.T) {
	root := htmlPage(t, doc.Document{doc.Timeline{ID: "median", Title: "The step", Unit: "ns", Length: 1e6,
		Lanes: []doc.Lane{
			{Title: "ranges", Rows: 2, Marks: []doc.Mark{{Start: 0, Length: 1e6, Name: "forward"},
				{Start: 1000, Length: 100, Row: 1, Name: "tiny"}}},
			{Title: "stream 7", Rows: 1, Marks: []doc.Mark{{Start: 0, Length: 400_000, Name: "gemm", Colour: "gemm"},
				{Start: 600_000, Length: 400_000, Name: "<b>", Colour: "norm"}}},
			{Joins: []doc.Join{{From: 0, To: 250_000}}},
			{Title: "idle", Rows: 1, Marks: []doc.Mark{{Start: 400_000, Length: 200_000, Name: "idle", Colour: "host",
				Text: "host 200 µs", Label: "200 µs idle, host"}}},
		}}})
	svg := find(find(root, "figure")[0], "svg")[0]
	var got []string
	for _, rect := range find(svg, "rect") {
		got = append(got, strings.Join([]string{attribute(rect, "x"), attribute(rect, "width"), attribute(rect, "class"),
			textOf(rect)}, "|"))
	}
	want := []string{
		"0%|100%|range edge|forward: 1 ms at 0 ns, 100 %",
		"0%|40%|k-gemm edge|gemm: 400 µs at 0 ns, 40.0 %",
		"60%|40%|k-norm edge|<b>: 400 µs at 600 µs, 40.0 %",
		"40%|20%|k-host edge|idle: 200 µs at 400 µs, 20.0 %; host 200 µs",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	paths := find(svg, "path")
	if len(paths) != 1 || attribute(paths[0], "class") != "range" || attribute(paths[0], "d") != "M10 18h1v16h-1z" {
		t.Errorf("%d paths: %v", len(paths), paths)
	}
	texts := []string{}
	for _, n := range find(svg, "text") {
		texts = append(texts, textOf(n))
	}
	for _, s := range []string{"0", "400 µs", "1 ms", "ranges", "stream 7", "idle", "200 µs idle, host"} {
		if !slices.ContainsFunc(texts, func(x string) bool { return x == s || strings.TrimSpace(x) == s }) {
			t.Errorf("no text %q in %q", s, texts)
		}
	}
	join := find(svg, "g")[0].FirstChild
	if attribute(join, "x1") != "0%" || attribute(join, "x2") != "25%" {
		t.Errorf("join from %s to %s", attribute(join, "x1"), attribute(join, "x2"))
	}
	if describe := attribute(svg, "aria-label"); !strings.HasPrefix(describe,
		"The step: lanes with their marks: ranges, 2; stream 7, 2; idle, 1; from 0 to 1 ms") {
		t.Errorf("described as %q", describe)
	}
}

func rendered(t *testing.T, d doc.Document) string {
	t.Helper()
	var b strings.Builder
	if err := render.HTML(&b, d, ""); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestOneColourIsOneEntry: what waits for a launch call has one colour, whether the path or the idle lane names it.
func TestOneColourIsOneEntry(t *testing.T) {
	page := rendered(t, doc.Document{doc.Timeline{ID: "m", Title: "t", Unit: "ns", Length: 10,
		Lanes: []doc.Lane{{Title: "path", Rows: 1, Marks: []doc.Mark{{Length: 4, Name: "k", Colour: "call"},
			{Start: 4, Length: 3, Name: "l", Colour: "launch"}, {Start: 7, Length: 3, Name: "g", Colour: "gemm"}}}}}})
	_, legend, _ := strings.Cut(page, `<ul class="legend">`)
	legend, _, _ = strings.Cut(legend, "</ul>")
	if strings.Count(legend, "<li>") != 2 || !strings.Contains(legend, "call, launch</li>") {
		t.Errorf("the legend is %s", legend)
	}
}

// TestManyMarks draws 20,000 kernels within 100 kB, and the time of every one of them where it is.
func TestManyMarks(t *testing.T) {
	lane, sum := doc.Lane{Title: "stream 7", Rows: 1}, [2]float64{} // by half of the axis
	for i := range 20_000 {
		m := doc.Mark{Start: float64(i) * 50, Length: float64(10 + i*3/1000%30), Name: "k", Colour: "gemm"}
		lane.Marks = append(lane.Marks, m)
		sum[i/10_000] += m.Length
	}
	page := rendered(t, doc.Document{doc.Timeline{ID: "m", Title: "t", Unit: "ns", Length: 1e6,
		Lanes: []doc.Lane{lane}}})
	if len(page) > 100_000 {
		t.Errorf("%d bytes", len(page))
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var drawn [2]float64
	for _, m := range regexp.MustCompile(`M(\d+) 0h([\d.]+)v16h-`).FindAllStringSubmatch(page, -1) {
		drawn[int(number(m[1]))/5000] += number(m[2]) * 100
	}
	for _, m := range regexp.MustCompile(`<rect x="([\d.]+)%" y="34" width="([\d.]+)%"`).FindAllStringSubmatch(page, -1) {
		drawn[int(number(m[1]))/50] += number(m[2]) * 10_000
	}
	for half, want := range sum {
		if math.Abs(drawn[half]-want) > 0.01*want {
			t.Errorf("half %d: %.0f ns are drawn of %.0f", half, drawn[half], want)
		}
	}
}

// hostileTimeline has a text from outside wherever one can stand.
func hostileTimeline(name string) doc.Timeline {
	mark := doc.Mark{Length: 10, Name: name, Colour: name, Text: name, Label: name}
	return doc.Timeline{ID: name, Title: name, Unit: "ns", Length: 10, Note: doc.Spans(doc.Name(name)),
		Lanes: []doc.Lane{{Title: name, Rows: 1, Marks: []doc.Mark{mark}}}}
}

// TestTimelineOfNothing: a lane that is empty, an axis without length and times that are none draw nothing.
func TestTimelineOfNothing(t *testing.T) {
	for _, x := range []doc.Timeline{{}, {Length: 5}, {Length: math.NaN(), Lanes: []doc.Lane{{Marks: []doc.Mark{{Length: 1}}}}}} {
		if page := rendered(t, doc.Document{x}); strings.Contains(page, "<figure") {
			t.Errorf("%s drawn", strconv.FormatFloat(x.Length, 'g', -1, 64))
		}
	}
}
