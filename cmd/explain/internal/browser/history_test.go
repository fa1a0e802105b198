package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// historyPage is the page of 24 nights, of which the last 8 are slower.
func historyPage(t *testing.T) string {
	t.Helper()
	dir := once(t, "history", func(dir string) error {
		store := filepath.Join(dir, "history.db")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for night := range 24 {
			c := historytest.Capture{Seed: uint64(night + 1), Noise: 0.005}
			if night >= 16 {
				c.Kernels = map[string]float64{"attention": 1.5}
			}
			if _, errs, code := explaintest.Run(t, "history", "add", historytest.Trace(t, c), "--store", store, "--commit", nightCommit(night),
				"--time", fmt.Sprintf("2026-05-%02dT02:00:00Z", night+1)); code != 0 {
				return fmt.Errorf("exit %d: %s", code, errs)
			}
		}
		if _, errs, code := explaintest.Run(t, "history", "page", "--store", store, "--out", filepath.Join(dir, "page"), "--link", "reports/{commit}.html"); code != 0 {
			return fmt.Errorf("exit %d: %s", code, errs)
		}
		return nil
	})
	return filepath.Join(dir, "page", "index.html")
}

// TestHistoryInABrowser: from the seventeenth of 24 nights on attention takes half as long again. The page shows the
// nights, the change with its commit and date at the mark, its whole cause, and leads to the report of each night.
func TestHistoryInABrowser(t *testing.T) {
	t.Parallel()
	ctx, complaints := open(t, historyPage(t), true)
	seen(t, ctx, "light", 1440)
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
		t.Fatal(err)
	}
	type look struct {
		Above string // what is in sight at first
		Dots  int
		Red   []int
		Links []string
	}
	got := evaluate[look](t, ctx, `(() => { const dots = [...document.querySelectorAll("circle.night")];
		const above = [...document.querySelectorAll("h1, h2, dd, figcaption, svg text.change")].filter((e) => e.getBoundingClientRect().bottom < innerHeight).map((e) => e.textContent).join("\n");
		return { above, dots: dots.length, red: dots.flatMap((d, i) => d.classList.contains("bad") ? [i] : []), links: dots.map((d) => d.parentElement.getAttribute("href")) } })()`)
	if got.Dots != 24 || len(got.Red) != 8 || got.Red[0] != 16 {
		t.Errorf("%d nights, red: %v, want the last 8 of 24", got.Dots, got.Red)
	}
	commit := nightCommit(16)
	if want := "reports/" + commit + ".html"; got.Links[16] != want {
		t.Errorf("the night leads to %q, want %q", got.Links[16], want)
	}
	for _, want := range []string{"1 change in 1 series", "+9.7 % ", " at " + commit[:10] + ", 2026-05-17", "flash_fwd_splitkv_kernel", "explain bisect"} {
		if !strings.Contains(got.Above, want) {
			t.Errorf("the first screen lacks %q:\n%s", want, got.Above)
		}
	}
	if strings.Contains(got.Above, "…") {
		t.Errorf("something is cut:\n%s", got.Above)
	}
	if n := checkMarks(t, ctx, "history", map[string]report.Chart{}); n < 24 {
		t.Errorf("%d marks", n)
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
}

func nightCommit(night int) string { return fmt.Sprintf("%08x%032x", 0xabcdef00+night, night) }

// TestRanksInABrowser: the first pictures of a run say who arrived last, whom that held up, and what kinds of step each rank
// has: those of the Jacobi solver take 1.05 or 3.48 ms, none of them their mean of 2.46 ms.
func TestRanksInABrowser(t *testing.T) {
	t.Parallel()
	list, err := filepath.Glob(explaintest.Shared("traces", "ranks", "jacobi*.sqlite"))
	if err != nil || len(list) != 5 {
		t.Skip("the traces of the ranks are not here")
	}
	file, r := pageOf(t, list[0], list[1:]...)
	ctx, _ := open(t, file, true)
	seen(t, ctx, "light", 1440)
	type look struct {
		First  string
		Widths []float64
		Modes  []int
	}
	got := evaluate[look](t, ctx, `(() => { const last = document.getElementById("chart-rank_last");
		const dark = [...document.querySelectorAll("#chart-rank_step_times g rect")].filter((e) => e.getAttribute("y") === "0" && e.getAttribute("fill-opacity") > 0.25);
		return { first: last.querySelector(".bar").textContent, widths: [...last.querySelectorAll("rect[data-m]")].map((e) => e.getBBox().width),
			modes: dark.map((e) => Math.round(e.getAttribute("x") * 60 / 1000)) } })()`)
	if !strings.HasPrefix(got.First, "rank 3") || !strings.HasSuffix(got.First, "958") {
		t.Errorf("the first row is %q", got.First)
	}
	if len(got.Widths) < 2 || got.Widths[0] < 20*got.Widths[1] {
		t.Errorf("rank 3 does not stand out: %v", got.Widths)
	}
	if n := len(got.Modes); n < 2 || got.Modes[0] > 3 || got.Modes[n-1] < 55 || n > 8 {
		t.Errorf("the dark columns are %v of 60, want some at both ends and none between", got.Modes)
	}
	charts := map[string]report.Chart{}
	for k := range r.Sections {
		for _, c := range r.Sections[k].Charts {
			charts[c.ID] = c
		}
	}
	checkMarks(t, ctx, "ranks", charts)
}
