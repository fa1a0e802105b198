package browser

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestLinksLandWhereTheyPoint: every link inside a page brings its target to within 80 pixels of the window's top, or as
// near as the end of the page lets it; the head of a table may cover so much. With motion and without.
func TestLinksLandWhereTheyPoint(t *testing.T) {
	t.Parallel()
	pages := somePages(t)
	for name, file := range pages {
		for _, motion := range longtest.Some([]string{"no-preference", "reduce"}, 1) {
			ctx, _ := open(t, file, true)
			if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900), emulation.SetEmulatedMedia().WithFeatures(
				[]*emulation.MediaFeature{{Name: "prefers-reduced-motion", Value: motion}})); err != nil {
				t.Fatal(err)
			}
			type miss struct {
				Link string
				Top  float64
			}
			type result struct {
				Links  int
				Misses []miss
			}
			got := evaluate[result](t, ctx, `(() => {
				const links = [...new Set([...document.querySelectorAll("a[href^='#']:not(.skip)")].map((a) => a.hash))], misses = [];
				for (const link of links) {
					const target = document.getElementById(decodeURIComponent(link.slice(1)));
					scrollTo(0, 0);
					for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
					location.hash = "";
					location.hash = link;
					const top = target.getBoundingClientRect().top;
					const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
					if (top < -1 || top > 80 && !end) misses.push({ link, top });
				}
				return { links: links.length, misses };
			})()`)
			if got.Links < 3 {
				t.Errorf("%s: %d links", name, got.Links)
			}
			for _, m := range got.Misses {
				t.Errorf("%s, motion %s: %s lands at %.0f px", name, motion, m.Link, m.Top)
			}
		}
	}
}

// somePages are pages of several kinds, and twelve of all kinds with -long; those of real traces only where these are.
func somePages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	pages["evidence"], _ = pageOf(t, explaintest.Testdata("serving.sqlite"), "--evidence", explaintest.Testdata("evidence"))
	pages["diff"], _ = comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	pages["regression"], _ = comparisonPage(t, explaintest.Testdata("base.sqlite"), explaintest.Testdata("head.sqlite"))
	shared := func(name string) (string, bool) {
		file := explaintest.Shared("traces", name+".sqlite")
		_, err := os.Stat(file)
		return file, err == nil
	}
	before, ok := shared("nsysai_mfu_2gpu_before")
	after, _ := shared("nsysai_mfu_2gpu_after")
	if ok {
		pages["mfu diff"], _ = comparisonPage(t, before, after)
	}
	if !longtest.On() {
		return pages
	}
	for _, name := range []string{"twoprocs", "serving_graph", "head", "hostile"} {
		pages[name], _ = pageOf(t, explaintest.Testdata(name+".sqlite"))
	}
	pages["report"], _ = pageOf(t, explaintest.Testdata("serving.sqlite"))
	if ok {
		pages["mfu"], _ = pageOf(t, after)
	}
	if training, ok := shared("cs336_hoponga_exp2023_4"); ok {
		pages["training"], _ = pageOf(t, training)
	}
	if ranks, err := filepath.Glob(explaintest.Shared("traces", "ranks", "jacobi*.sqlite")); err == nil && len(ranks) > 1 {
		pages["ranks"], _ = pageOf(t, ranks[0], ranks[1:]...)
	}
	return pages
}

// TestFirstScreens: at 1440 × 900 the first screen says what it is of, how much it is and why, with a figure, and before the
// figure stand at most 150 words in a report and 90 in a comparison. The answer of a report has at most 25.
func TestFirstScreens(t *testing.T) {
	t.Parallel()
	report, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
	head, _ := pageOf(t, explaintest.Testdata("head.sqlite"))
	diff, _ := comparisonPage(t, explaintest.Testdata("base.sqlite"), explaintest.Testdata("head.sqlite"))
	scaled, _ := comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	for _, page := range []struct {
		name, file string
		words      int
		above      []string // by selector, what has to be in sight
		says       []string
	}{
		{"report", report, 150, []string{".answer", "#chart-step", "figure.step", "#table-first-findings tbody tr:first-child"}, []string{"per decode step", "compute", "idle", "≤ "}},
		{"head", head, 150, []string{".answer", "#chart-step", "figure.step", "#table-first-findings tbody tr:first-child"}, []string{"per decode step", "compute", "idle", "≤ "}},
		{"diff", diff, 90, []string{"h1", "#table-answer tbody tr:nth-child(2)", "figure.step"}, []string{"FAIL", "slower", "per decode step", "flash_fwd_splitkv", "cudaStreamSynchronize"}},
		{"scaled", scaled, 90, []string{"h1", "#table-answer tbody tr", "figure.step"}, []string{"FAIL", "slower", "per prefill", "all kernels slower"}},
	} {
		ctx, _ := open(t, page.file, true)
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
			t.Fatal(err)
		}
		type screen struct {
			Words, Answer int
			Text          string
		}
		got := evaluate[screen](t, ctx, `(() => { const words = (s) => s.trim().split(/\s+/).filter((w) => w).length, before = document.createRange(), answer = document.querySelector(".answer");
			before.setStart(document.querySelector("main"), 0);
			before.setEndBefore(document.querySelector("figure"));
			const seen = [...document.querySelectorAll("h1, .answer, header p, td, figcaption")].filter((e) => e.getBoundingClientRect().bottom <= innerHeight);
			return { words: words(before.toString()), answer: answer ? words(answer.innerText) : 0, text: seen.map((e) => e.textContent).join("\n") } })()`)
		if got.Words > page.words || got.Answer > 25 {
			t.Errorf("%s: %d words before the first figure, %d in the answer", page.name, got.Words, got.Answer)
		}
		for _, selector := range page.above {
			if bottom := evaluate[float64](t, ctx, `(() => { const e = document.querySelector("`+selector+`"); return e ? e.getBoundingClientRect().top + 20 : 1e6 })()`); bottom > 900 {
				t.Errorf("%s: %s begins at %.0f px", page.name, selector, bottom-20)
			}
		}
		for _, want := range page.says {
			if !strings.Contains(got.Text, want) {
				t.Errorf("%s: the first screen does not say %q:\n%s", page.name, want, got.Text)
			}
		}
	}
}

// TestPagesAreShort: a report has at most twelve sections, 9,000 pixels at a width of 1440, and 150 stops of the tab key
// before anything is unfolded; a comparison prints on at most eight pages.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	for name, file := range somePages(t) {
		ctx, _ := open(t, file, true)
		if err := chromedp.Run(ctx, chromedp.EmulateViewport(1440, 900)); err != nil {
			t.Fatal(err)
		}
		type size struct{ Sections, Height, Stops int }
		got := evaluate[size](t, ctx, `({ sections: document.querySelectorAll("main > section").length, height: document.documentElement.scrollHeight,
			stops: [...document.querySelectorAll("a[href], button, input, summary, [tabindex]")].filter((e) => e.tabIndex >= 0 && e.checkVisibility()).length })`)
		t.Logf("%s: %+v", name, got)
		if got.Sections > 12 || got.Stops > 150 || got.Height > 9000 {
			t.Errorf("%s: %+v", name, got)
		}
		if name != "regression" && name != "mfu diff" {
			continue
		}
		if n := pagesOnPaper(t, ctx); n > 8 {
			t.Errorf("%s prints on %d pages", name, n)
		}
	}
}

// pagesOnPaper is how many pages a browser prints the page on.
func pagesOnPaper(t *testing.T, ctx context.Context) int {
	t.Helper()
	var pdf []byte
	run := chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).WithPrintBackground(true).Do(ctx)
		return err
	})
	if err := chromedp.Run(ctx, run); err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`/Type\s*/Page[^s]`).FindAll(pdf, -1))
}
