package browser

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// Bounds of a page: bytes, and what the browser lays out when it opens.
const (
	reportWeight = 800_000
	diffWeight   = 400_000
	layOut       = 3_000 // elements
	layouts      = 30
)

// TestPagesAreLight: no page of a real trace, and none of a pair of them, weighs more than it may.
func TestPagesAreLight(t *testing.T) {
	t.Parallel()
	list := longtest.Captures(t)
	if len(list) == 0 {
		t.Skip("the real traces are not part of the project")
	}
	weight := func(t *testing.T, file string, most int64) {
		t.Helper()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%s: %d bytes", filepath.Base(file), info.Size()); info.Size() > most {
			t.Errorf("more than %d", most)
		}
	}
	for i, trace := range list {
		t.Run(explaintest.TraceName(trace), func(t *testing.T) {
			file, _ := pageOf(t, trace)
			weight(t, file, reportWeight)
			diff, _ := comparisonPage(t, list[max(i-1, 0)], trace) // neighbours by name: exports and versions of one program
			weight(t, diff, diffWeight)
		})
	}
}

// TestPageOpensAtOnce: of the heaviest page of the shared traces only what is near the window is laid out when it opens, and
// its script does not ask for a layout again and again. Both are counted, since how long they take depends on the machine.
func TestPageOpensAtOnce(t *testing.T) {
	t.Parallel()
	trace := explaintest.Shared("traces", "nsysai_mfu_2gpu_after.sqlite")
	if _, err := os.Stat(trace); err != nil {
		t.Skip("the real traces are not part of the project")
	}
	file, _ := pageOf(t, trace)
	ctx, _ := open(t, file, true)
	seen(t, ctx, "light", 1440)
	var laidOut, elements int
	took := map[string]float64{}
	if err := chromedp.Run(ctx, performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks), chromedp.Navigate("file://"+file),
		chromedp.Evaluate(`document.querySelectorAll('main *').length`, &elements),
		chromedp.Evaluate(`[...document.querySelectorAll('main *')].filter(e => e.checkVisibility({contentVisibilityAuto: true})).length`, &laidOut),
		chromedp.ActionFunc(func(ctx context.Context) error {
			list, err := performance.GetMetrics().Do(ctx)
			for _, m := range list {
				took[m.Name] = m.Value
			}
			return err
		})); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d elements laid out in %.0f layouts; %.0f ms of the main thread, of it script %.0f, layout %.0f, style %.0f", laidOut, elements,
		took["LayoutCount"], 1000*took["TaskDuration"], 1000*took["ScriptDuration"], 1000*took["LayoutDuration"], 1000*took["RecalcStyleDuration"])
	if laidOut > layOut {
		t.Errorf("%d elements are laid out when the page opens, %d are allowed", laidOut, layOut)
	}
	if n := took["LayoutCount"]; n > layouts {
		t.Errorf("the page is laid out %.0f times, %d are allowed", n, layouts)
	}
}
