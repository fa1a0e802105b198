package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestScreenshots writes pictures of every part of the pages for people to look at, into the folder that EXPLAIN_SHOTS
// names: at three widths, light and dark, and as printed. EXPLAIN_SHOTS_PAGES has other pages, separated by commas; .ci/shots
// calls it.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("EXPLAIN_SHOTS")
	if dir == "" {
		t.Skip("EXPLAIN_SHOTS names no folder (see .ci/shots)")
	}
	pages := map[string]string{}
	for _, file := range strings.FieldsFunc(os.Getenv("EXPLAIN_SHOTS_PAGES"), func(r rune) bool { return r == ',' }) {
		pages[filepath.Base(filepath.Dir(file))+"-"+strings.TrimSuffix(filepath.Base(file), ".html")] = file
	}
	if len(pages) == 0 {
		pages["report"], _ = pageOf(t, explaintest.Testdata("serving.sqlite"), "--evidence", explaintest.Testdata("evidence"))
		pages["diff"], _ = comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	}
	looks := []struct {
		name, scheme, media string
		width               int64
	}{{"1440-light", "light", "", 1440}, {"1440-dark", "dark", "", 1440}, {"1024-light", "light", "", 1024}, {"1024-dark", "dark", "", 1024},
		{"390-light", "light", "", 390}, {"390-dark", "dark", "", 390}, {"print", "light", "print", 1040}}
	for name, file := range pages {
		for _, look := range looks {
			if only := os.Getenv("EXPLAIN_SHOTS_LOOK"); only != "" && only != look.name {
				continue
			}
			ctx, _ := open(t, file, true)
			seen(t, ctx, look.scheme, look.width)
			if look.media != "" {
				if err := chromedp.Run(ctx, emulation.SetEmulatedMedia().WithMedia(look.media)); err != nil {
					t.Fatal(err)
				}
			}
			parts := evaluate[[]string](t, ctx, `["nav", "header", ...[...document.querySelectorAll("main > section[aria-labelledby]")].map(s => s.getAttribute("aria-labelledby"))]`)
			for i, part := range parts {
				selector := part
				if i > 1 {
					selector = "section[aria-labelledby=" + part + "]"
				} else if i == 0 && look.media == "print" {
					continue
				}
				png := shot(t, ctx, selector)
				out := filepath.Join(dir, name, look.name, fmt.Sprintf("%02d-%s.png", i, part))
				if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(out, png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if look.media == "print" {
				printed(t, ctx, filepath.Join(dir, name, "print.pdf"))
			}
		}
	}
}

// shot is a picture of one part of a page.
func shot(t *testing.T, ctx context.Context, selector string) (png []byte) {
	t.Helper()
	box := evaluate[[]float64](t, ctx, "(() => { const b = document.querySelector('"+selector+"').getBoundingClientRect(); return [b.x + scrollX, b.y + scrollY, b.width, b.height] })()")
	clip := &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: min(box[3], 12_000), Scale: 1}
	take := chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithClip(clip).Do(ctx)
		return err
	})
	if err := chromedp.Run(ctx, take); err != nil || len(png) < 200 {
		t.Fatalf("%s: %v, %d bytes", selector, err, len(png))
	}
	return png
}

// printed writes the page as a browser prints it.
func printed(t *testing.T, ctx context.Context, file string) {
	t.Helper()
	var pdf []byte
	run := chromedp.ActionFunc(func(ctx context.Context) (err error) {
		pdf, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).WithPrintBackground(true).Do(ctx)
		return err
	})
	if err := chromedp.Run(ctx, run); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pdf, 0o644); err != nil {
		t.Fatal(err)
	}
}
