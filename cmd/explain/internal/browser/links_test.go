package browser

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestLinksLandWhereTheyPoint: every link inside a page brings its target to within 80 pixels of the window's top, or as
// near as the end of the page lets it; the head of a table may cover so much. With motion and without.
func TestLinksLandWhereTheyPoint(t *testing.T) {
	t.Parallel()
	report, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
	comparison, _ := comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	for _, file := range []string{report, comparison} {
		for _, motion := range []string{"no-preference", "reduce"} {
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
			if got.Links < 5 {
				t.Errorf("%s: %d links", file, got.Links)
			}
			for _, m := range got.Misses {
				t.Errorf("%s, motion %s: %s lands at %.0f px", file, motion, m.Link, m.Top)
			}
		}
	}
}
