package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/report"
)

// browser starts a headless Chromium, or skips. The function that it returns opens a page in a new tab and gives, besides
// the tab, everything that the page complained of or asked the network for.
func browser(t *testing.T) func(t *testing.T, file string, scripts bool) (context.Context, func() []string) {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("no Chromium on this machine")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.Flag("force-prefers-reduced-motion", true), chromedp.UserDataDir(t.TempDir()))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	root, closeAll := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		if err := chromedp.Cancel(root); err != nil && !errors.Is(err, context.Canceled) {
			t.Logf("closing the browser: %v", err)
		}
		closeAll()
		stop()
	})
	if err := chromedp.Run(root); err != nil {
		t.Skipf("Chromium does not start: %v", err)
	}
	return func(t *testing.T, file string, scripts bool) (context.Context, func() []string) {
		t.Helper()
		tab, cancel := chromedp.NewContext(root)
		ctx, expire := context.WithTimeout(tab, time.Minute)
		t.Cleanup(func() { expire(); cancel() })
		var complaints []string
		seen := make(chan string, 1000)
		chromedp.ListenTarget(ctx, func(event any) {
			say := ""
			switch e := event.(type) {
			case *runtime.EventConsoleAPICalled:
				say = "console: " + string(e.Type)
			case *runtime.EventExceptionThrown:
				say = "exception: " + e.ExceptionDetails.Text
			case *log.EventEntryAdded:
				say = "log: " + e.Entry.Text
			case *network.EventRequestWillBeSent:
				if !strings.HasPrefix(e.Request.URL, "file://") {
					say = "request: " + e.Request.URL
				}
			}
			if say != "" {
				select {
				case seen <- say:
				default:
				}
			}
		})
		abs, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		err = chromedp.Run(ctx, network.Enable(), log.Enable(), runtime.Enable(), emulation.SetScriptExecutionDisabled(!scripts), chromedp.Navigate("file://"+abs), chromedp.WaitReady("main"))
		if err != nil {
			t.Fatal(err)
		}
		return ctx, func() []string {
			for {
				select {
				case s := <-seen:
					complaints = append(complaints, s)
				default:
					return complaints
				}
			}
		}
	}
}

// evaluate runs an expression in the page.
func evaluate[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	var v T
	if err := chromedp.Run(ctx, chromedp.Evaluate(expression, &v)); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// pageOf writes the report of a trace and returns its page and its JSON.
func pageOf(t *testing.T, trace string, args ...string) (string, *report.Report) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var out, errs bytes.Buffer
	code := run(context.Background(), append([]string{trace, "--quiet", "--out", dir}, args...), &world{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	r, err := report.Read(strings.NewReader(string(read(t, filepath.Join(dir, "report.json")))))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "report.html"), r
}

// TestPageInABrowser: every page opens without a complaint and asks for nothing; every chart is there with the numbers of
// the JSON beside it; with scripts off all tables are there.
func TestPageInABrowser(t *testing.T) {
	open := browser(t)
	for i, trace := range allTraces(t) {
		if os.Getenv("EXPLAIN_EVERY_PAGE") == "" && i%4 != 3 { // a browser is slow: a sample, and all of them when asked for
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(trace), ".sqlite"), func(t *testing.T) {
			file, r := pageOf(t, trace)
			ctx, complaints := open(t, file, true)
			checkCharts(t, ctx, r)
			if list := complaints(); len(list) > 0 {
				t.Errorf("the page complains: %q", list)
			}
			withScripts := evaluate[int](t, ctx, "document.querySelectorAll('tbody tr').length")
			ctx, complaints = open(t, file, false)
			var without int
			if err := chromedp.Run(ctx, chromedp.EvaluateAsDevTools("document.querySelectorAll('tbody tr').length", &without)); err != nil {
				t.Fatal(err)
			}
			if without != withScripts || without == 0 {
				t.Errorf("%d rows without scripts, %d with them", without, withScripts)
			}
			if list := complaints(); len(list) > 0 {
				t.Errorf("without scripts the page complains: %q", list)
			}
		})
	}
}

// checkCharts holds the numbers beside each chart to the report.
func checkCharts(t *testing.T, ctx context.Context, r *report.Report) {
	t.Helper()
	type drawn struct {
		ID     string    `json:"id"`
		Values []float64 `json:"values"`
		Marks  int       `json:"marks"`
		Wide   bool      `json:"wide"`
	}
	list := evaluate[[]drawn](t, ctx, `[...document.querySelectorAll("figure.chart")].map(f => ({
		id: f.id, values: [...f.querySelectorAll("data")].map(d => +d.value),
		marks: f.querySelectorAll("svg[role=img] rect, svg[role=img] circle, svg[role=img] polyline").length,
		wide: f.scrollWidth > f.clientWidth + 1}))`)
	byID := map[string]drawn{}
	for _, d := range list {
		byID[d.ID] = d
		if d.Marks == 0 {
			t.Errorf("%s: nothing is drawn", d.ID)
		}
		if d.Wide {
			t.Errorf("%s is wider than its place", d.ID)
		}
	}
	for i := range r.Sections {
		s := &r.Sections[i]
		if s.Status == report.Unavailable || s.Status == report.NotApplicable {
			continue
		}
		for _, c := range s.Charts {
			var want []float64
			for _, e := range c.Series {
				want = append(want, e.Values...)
			}
			if len(want) == 0 {
				continue
			}
			d, ok := byID["chart-"+c.ID]
			if !ok {
				t.Errorf("the chart %s is not on the page", c.ID)
				continue
			}
			got := slices.Clone(d.Values)
			slices.Sort(got)
			slices.Sort(want)
			if len(want) <= 3000 && !slices.Equal(got, want) {
				t.Errorf("the numbers of chart %s are not those of the report: %d and %d values", c.ID, len(got), len(want))
			}
		}
	}
}

// TestPageSortsAndSearches on the table of kernels of the serving trace.
func TestPageSortsAndSearches(t *testing.T) {
	open := browser(t)
	file, _ := pageOf(t, "../../testdata/serving.sqlite")
	ctx, _ := open(t, file, true)
	const table = `[...document.querySelectorAll("section[aria-labelledby=kernels] table")].find(t => t.tHead && t.tHead.textContent.includes("Calls"))`
	column := func() []float64 {
		return evaluate[[]float64](t, ctx, `(() => { const t = `+table+`; const i = [...t.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === "Calls");
			return [...t.tBodies[0].rows].map(r => +r.cells[i].textContent.replaceAll(",", "")) })()`)
	}
	click := `[...` + table + `.tHead.rows[0].cells].find(c => c.textContent.trim() === "Calls").querySelector("button").click()`
	evaluate[any](t, ctx, click)
	if got := column(); !slices.IsSortedFunc(got, func(a, b float64) int { return int(b - a) }) || len(got) < 10 {
		t.Errorf("not sorted downwards: %v", got)
	}
	evaluate[any](t, ctx, click)
	if got := column(); !slices.IsSorted(got) {
		t.Errorf("not sorted upwards: %v", got)
	}
	shown := evaluate[[]string](t, ctx, `(() => { const t = `+table+`; const box = t.parentNode.previousElementSibling; box.value = "nccl"; box.dispatchEvent(new Event("input"));
		return [...t.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent) })()`)
	if len(shown) == 0 || slices.ContainsFunc(shown, func(s string) bool { return !strings.Contains(strings.ToLower(s), "nccl") }) {
		t.Errorf("the search for nccl shows %q", shown)
	}
}

// TestHostilePage: nothing that a capture holds runs, and every name is there to read.
func TestHostilePage(t *testing.T) {
	open := browser(t)
	file, r := pageOf(t, "../../testdata/hostile.sqlite")
	ctx, complaints := open(t, file, true)
	if n := evaluate[int](t, ctx, `document.querySelectorAll("img, iframe, object, embed, form, link, [onerror], [onload], [onclick], [style]").length`); n != 0 {
		t.Errorf("%d elements that only a name can have brought", n)
	}
	if n := evaluate[int](t, ctx, `document.querySelectorAll("script").length`); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
	text := evaluate[string](t, ctx, "document.body.textContent")
	found := 0
	for _, m := range r.Metrics {
		if k := m.Labels["kernel"]; m.ID == "kernel.total_time" && strings.Contains(k, "<") && strings.Contains(text, clean(k)) {
			found++
		}
	}
	if found == 0 {
		t.Error("no hostile name is on the page literally")
	}
}

// TestPageIsAccessible asks axe-core, whose script EXPLAIN_AXE names.
func TestPageIsAccessible(t *testing.T) {
	axe := os.Getenv("EXPLAIN_AXE")
	if axe == "" {
		t.Skip("EXPLAIN_AXE does not name axe.min.js (.ci/run fetches it)")
	}
	script := string(read(t, axe))
	open := browser(t)
	file, _ := pageOf(t, "../../testdata/serving.sqlite")
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 380}, {"dark", 1280}} {
		t.Run(fmt.Sprintf("%s %d", look.scheme, look.width), func(t *testing.T) {
			ctx, _ := open(t, file, true)
			seen(t, ctx, look.scheme, look.width)
			evaluate[any](t, ctx, "document.querySelectorAll('details').forEach(d => d.open = true)")
			if err := chromedp.Run(ctx, chromedp.EvaluateAsDevTools(script+"; null", nil)); err != nil {
				t.Fatal(err)
			}
			var found string
			await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
			if err := chromedp.Run(ctx, chromedp.Evaluate(`axe.run().then(r => JSON.stringify(r.violations.map(v => ({id: v.id, impact: v.impact, nodes: v.nodes.slice(0, 3).map(n => n.html)}))))`, &found, await)); err != nil {
				t.Fatal(err)
			}
			var list []struct {
				ID, Impact string
				Nodes      []string
			}
			if err := json.Unmarshal([]byte(found), &list); err != nil {
				t.Fatal(err)
			}
			for _, v := range list {
				if v.Impact == "serious" || v.Impact == "critical" {
					t.Errorf("%s (%s): %q", v.ID, v.Impact, v.Nodes)
				}
			}
		})
	}
}

// seen shows the page in a window of the width, in light or dark.
func seen(t *testing.T, ctx context.Context, scheme string, width int64) {
	t.Helper()
	media := emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}})
	if err := chromedp.Run(ctx, chromedp.EmulateViewport(width, 1200), media); err != nil {
		t.Fatal(err)
	}
}

// TestPageFitsEveryWindow: only tables scroll sideways, never the page.
func TestPageFitsEveryWindow(t *testing.T) {
	open := browser(t)
	for _, trace := range []string{"serving", "hostile"} {
		file, _ := pageOf(t, "../../testdata/"+trace+".sqlite")
		ctx, _ := open(t, file, true)
		for _, width := range []int64{380, 800, 1280, 2560} {
			seen(t, ctx, "light", width)
			if n := evaluate[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
				t.Errorf("%s: the page is %d pixels wider than a window of %d", trace, n, width)
			}
		}
	}
}

// TestScreenshots writes pictures of the pages for people to look at, into the folder that EXPLAIN_SHOTS names.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("EXPLAIN_SHOTS")
	if dir == "" {
		t.Skip("EXPLAIN_SHOTS names no folder")
	}
	open := browser(t)
	file, r := pageOf(t, "../../testdata/serving.sqlite", "--evidence", "../../testdata/evidence")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{380, 1280, 2560} {
			ctx, _ := open(t, file, true)
			seen(t, ctx, scheme, width)
			parts := []string{"header"}
			for _, s := range r.Sections {
				parts = append(parts, "section[aria-labelledby="+s.ID+"]")
			}
			for i, part := range parts {
				if evaluate[int](t, ctx, "document.querySelectorAll('"+part+"').length") == 0 {
					continue
				}
				box := evaluate[[]float64](t, ctx, "(() => { const b = document.querySelector('"+part+"').getBoundingClientRect(); return [b.x + scrollX, b.y + scrollY, b.width, b.height] })()")
				clip := &page.Viewport{X: box[0], Y: box[1], Width: box[2], Height: box[3], Scale: 1}
				var png []byte
				shoot := chromedp.ActionFunc(func(ctx context.Context) (err error) {
					png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).WithClip(clip).Do(ctx)
					return err
				})
				if err := chromedp.Run(ctx, shoot); err != nil || len(png) < 1000 {
					t.Fatalf("%s: %v, %d bytes", part, err, len(png))
				}
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d-%02d.png", scheme, width, i)), png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
