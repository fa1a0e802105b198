package browser

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// lit is what pointing at something lights: rows of tables, marks of steps and boxes of flame graphs, by their names.
type lit struct{ Rows, Marks, Boxes []string }

// TestOneKernelInEveryView: pointing at a kernel's row lights its marks in the step and its boxes in the flame graph, and
// the same from each of those; what has another name stays as it is.
func TestOneKernelInEveryView(t *testing.T) {
	t.Parallel()
	file, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
	ctx, complaints := open(t, file, true)
	point := func(selector, with string) lit {
		return evaluate[lit](t, ctx, `(() => {
			const name = (e) => (e.querySelector("title") || e.querySelector("code.name, details.name > summary > code")).textContent.split(": ")[0].replace(/^#\d+ /, "");
			const of = (s) => [...document.querySelectorAll(s)];
			of("h1")[0].dispatchEvent(new Event("pointerover", {bubbles: true}));
			if (of(".lit").length) throw new Error("pointing at a heading lights " + of(".lit").length);
			const e = of("`+selector+`").find((e) => e.textContent.includes("`+with+`"));
			e.dispatchEvent(new Event("pointerover", {bubbles: true}));
			return {rows: of("tr.lit").map(name), marks: of("figure.step rect.lit").map(name), boxes: of("svg.flame > svg.lit").map(name)};
		})()`)
	}
	const kernel = "fused_moe_kernel"
	row := point("section[aria-labelledby=kernels] tbody tr", kernel)
	if len(row.Rows) == 0 || len(row.Marks) == 0 || len(row.Boxes) == 0 {
		t.Fatalf("a row lights %d rows, %d marks and %d boxes", len(row.Rows), len(row.Marks), len(row.Boxes))
	}
	for _, list := range [][]string{row.Rows, row.Marks, row.Boxes} {
		for _, name := range list {
			if !strings.Contains(name, kernel) {
				t.Errorf("a row of %s lights %q", kernel, name)
			}
		}
	}
	for from, selector := range map[string]string{"a mark": "figure.step rect", "a box": "svg.flame > svg"} {
		if got := point(selector, row.Marks[0]); len(got.Rows) != len(row.Rows) || len(got.Marks) != len(row.Marks) || len(got.Boxes) != len(row.Boxes) {
			t.Errorf("%s lights %d rows, %d marks and %d boxes; the row %d, %d and %d", from, len(got.Rows), len(got.Marks), len(got.Boxes),
				len(row.Rows), len(row.Marks), len(row.Boxes))
		}
	}
	for _, c := range complaints() {
		t.Error(c)
	}
}

// TestTicksRefine: the wider a step is drawn, the closer its ticks are in time, at the places that they name.
func TestTicksRefine(t *testing.T) {
	t.Parallel()
	file, r := pageOf(t, explaintest.Testdata("serving.sqlite"))
	ctx, _ := open(t, file, true)
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
		t.Fatal(err)
	}
	whole := float64(r.Unit.Steps.List[0].Shown[0].Duration)
	type tick struct{ X, Text string }
	last := math.Inf(1)
	for range 4 {
		evaluate[any](t, ctx, `document.querySelector('figure.step .wide').dispatchEvent(new KeyboardEvent('keydown', {key: '+', bubbles: true})); null`)
		ticks := evaluate[[]tick](t, ctx, `[...document.querySelectorAll("figure.step svg")[0].querySelectorAll("text.tick")].map((e) => ({x: e.getAttribute("x"), text: e.textContent}))`)
		if len(ticks) < 7 {
			t.Fatalf("%d ticks", len(ticks))
		}
		least := math.Inf(1)
		for _, k := range ticks {
			at, err := strconv.ParseFloat(strings.TrimSuffix(k.X, "%"), 64)
			if err != nil {
				t.Fatal(err)
			}
			number, unit, _ := strings.Cut(k.Text, " ")
			ns, err := strconv.ParseFloat(number, 64)
			ns *= map[string]float64{"": 0, "ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
			if err != nil || math.Abs(ns-at/100*whole) > whole/1000 {
				t.Errorf("the tick %q stands at %s of %.0f ns", k.Text, k.X, whole)
			}
			if ns > 0 {
				least = min(least, ns)
			}
		}
		if least > last || math.IsInf(least, 1) {
			t.Errorf("ticks are %g ns apart, before %g", least, last)
		}
		last = least
	}
	if first := whole / 7; last > first/4 {
		t.Errorf("sixteen times as wide, ticks are still %g ns apart", last)
	}
}

// TestOneSearch: the search of the page leaves the rows and the marks that hold the word, and counts them.
func TestOneSearch(t *testing.T) {
	t.Parallel()
	file, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
	ctx, _ := open(t, file, true)
	evaluate[any](t, ctx, `(() => { const box = document.querySelector("nav input[type=search]"); box.value = "NCCL"; box.dispatchEvent(new Event("input")); })(); null`)
	// The page waits for the next letter first. A tab in the background draws no frames, so look at intervals and not at frames.
	answered := chromedp.Poll(`document.querySelector("nav output").textContent !== ""`, nil, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(0))
	if err := chromedp.Run(ctx, answered); err != nil {
		t.Fatal(err)
	}
	type result struct {
		Says        string
		Rows, Marks []string
	}
	got := evaluate[result](t, ctx, `({says: document.querySelector("nav output").textContent,
		rows: [...document.querySelectorAll("div.table:not([hidden]) tbody tr:not([hidden])")].map((r) => r.textContent.toLowerCase()),
		marks: [...document.querySelectorAll("figure.step rect:not(.miss) > title, svg.flame > svg:not(.miss) title")].map((e) => e.textContent.split(": ")[0].toLowerCase())})`)
	for _, text := range append(got.Rows, got.Marks...) {
		if !strings.Contains(text, "nccl") {
			t.Errorf("still in sight: %q", text)
		}
	}
	if len(got.Rows) == 0 || len(got.Marks) == 0 || !strings.HasPrefix(got.Says, strconv.Itoa(len(got.Rows))+" rows in ") ||
		!strings.Contains(got.Says, ", "+strconv.Itoa(len(got.Marks))+" marks in ") {
		t.Errorf("it says %q of %d rows and %d marks", got.Says, len(got.Rows), len(got.Marks))
	}
}
