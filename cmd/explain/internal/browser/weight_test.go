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

// Bounds of a page: bytes, and ms that it takes to open above those of an empty page.
const (
	reportWeight = 800_000
	diffWeight   = 400_000
	opening      = 500.0
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

// TestPageOpensAtOnce: the main thread works half a second more for the heaviest page of the shared traces than for an
// empty one, at most, to read it, lay it out and run its script. It is the thread's own time, which a machine that does other
// things too does not stretch.
func TestPageOpensAtOnce(t *testing.T) {
	t.Parallel()
	trace := explaintest.Shared("traces", "nsysai_mfu_2gpu_after.sqlite")
	if _, err := os.Stat(trace); err != nil {
		t.Skip("the real traces are not part of the project")
	}
	empty := filepath.Join(t.TempDir(), "empty.html")
	if err := os.WriteFile(empty, []byte("<!doctype html><title>empty</title><main>.</main>"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, _ := pageOf(t, trace)
	work := func(file string) (least float64, all map[string]float64) {
		for i := range 3 {
			ctx, _ := open(t, empty, true)
			seen(t, ctx, "light", 1440)
			took := map[string]float64{}
			if err := chromedp.Run(ctx, performance.Enable().WithTimeDomain(performance.EnableTimeDomainThreadTicks), chromedp.Navigate("file://"+file),
				chromedp.ActionFunc(func(ctx context.Context) error {
					list, err := performance.GetMetrics().Do(ctx)
					for _, m := range list {
						took[m.Name] = 1000 * m.Value
					}
					return err
				})); err != nil {
				t.Fatal(err)
			}
			if ms := took["TaskDuration"]; i == 0 || ms < least {
				least, all = ms, took
			}
		}
		return least, all
	}
	page, all := work(file)
	none, _ := work(empty)
	t.Logf("%.0f ms, of it script %.0f, layout %.0f, style %.0f; an empty page %.0f ms", page, all["ScriptDuration"],
		all["LayoutDuration"], all["RecalcStyleDuration"], none)
	if page-none > opening {
		t.Errorf("the page takes %.0f ms more than an empty one, %.0f are allowed", page-none, opening)
	}
}
