package browser

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// stepMark is one mark of a step's figure, in pixels from the left of its drawing.
type stepMark struct {
	X, W, Whole float64
	Class       string
	Title       string
}

const stepMarks = `[...document.querySelector('figure.step').querySelectorAll('.wide rect')].filter(r => r.querySelector('title')).map(r => {
	const b = r.getBoundingClientRect(), s = r.ownerSVGElement.getBoundingClientRect();
	return {X: b.left - s.left, W: b.width, Whole: s.width, Class: r.getAttribute('class'), Title: r.textContent};
})`

// TestStepIsDrawnAsItIs parses every mark of the median step back and finds what report.json has at that place, to half a
// pixel; nothing on the GPU that takes a hundredth of the step is missing. The figure is complete without scripts.
func TestStepIsDrawnAsItIs(t *testing.T) {
	t.Parallel()
	for _, trace := range []string{explaintest.Testdata("serving.sqlite"), explaintest.Shared("traces", "nsysai_mfu_2gpu_before.sqlite")} {
		if strings.Contains(trace, "shared") {
			if _, err := os.Stat(trace); err != nil {
				t.Skip("the real traces are not part of the project")
			}
		}
		file, r := pageOf(t, trace)
		ctx, complaints := open(t, file, false)
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 1200)); err != nil {
			t.Fatal(err)
		}
		if marks := evaluate[[]stepMark](t, ctx, stepMarks); len(marks) < 20 {
			t.Fatalf("%s: %d marks", trace, len(marks))
		}
		evaluate[any](t, ctx, "for (const d of document.querySelectorAll('details')) d.open = true; null")
		if figures, _ := checkSteps(t, ctx, r.Unit.Steps); figures < 2 {
			t.Errorf("%s: %d figures", trace, figures)
		}
		for _, c := range complaints() {
			t.Errorf("%s: %s", trace, c)
		}
	}
}

// TestStepByKeys: arrow keys say what is under them, + widens the drawing.
func TestStepByKeys(t *testing.T) {
	t.Parallel()
	file, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
	ctx, complaints := open(t, file, true)
	press := func(key string) {
		evaluate[any](t, ctx, `document.querySelector('figure.step .wide').dispatchEvent(new KeyboardEvent('keydown', {key: '`+key+`', bubbles: true})); null`)
	}
	says := func() string {
		return evaluate[string](t, ctx, `document.querySelector('figure.step output').textContent`)
	}
	marks := evaluate[[]stepMark](t, ctx, stepMarks)
	press("ArrowRight")
	if got := says(); got != marks[0].Title {
		t.Errorf("first: %q, want %q", got, marks[0].Title)
	}
	press("End")
	if got := says(); got != marks[len(marks)-1].Title {
		t.Errorf("last: %q", got)
	}
	press("ArrowLeft")
	if got := says(); got != marks[len(marks)-2].Title {
		t.Errorf("the one before: %q", got)
	}
	press("+")
	wide := evaluate[[]stepMark](t, ctx, stepMarks)
	if math.Abs(wide[0].Whole-2*marks[0].Whole) > 1 {
		t.Errorf("widened from %v to %v", marks[0].Whole, wide[0].Whole)
	}
	if n := evaluate[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
		t.Errorf("the page is %d pixels wider than the window", n)
	}
	for _, c := range complaints() {
		t.Error(c)
	}
}
