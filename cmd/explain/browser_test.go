package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff/comparison"
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
		ctx, expire := context.WithTimeout(tab, 5*time.Minute) // only a page that hangs takes that long
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
	code := run(context.Background(), append([]string{trace, "--quiet", "--out", dir}, args...), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
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

// TestPageOfAllEvidenceInABrowser: every chart of logs, metrics, profiles and load is there with its numbers.
func TestPageOfAllEvidenceInABrowser(t *testing.T) {
	open := browser(t)
	file, r := pageOf(t, "../../testdata/serving.sqlite", "--evidence", "../../testdata/evidence")
	ctx, complaints := open(t, file, true)
	checkCharts(t, ctx, r)
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
	if lost := evaluate[[]string](t, ctx, `[...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href")).filter(h => !document.getElementById(h.slice(1)))`); len(lost) > 0 {
		t.Errorf("links lead nowhere: %q", lost)
	}
}

// comparisonOf compares a trace with itself, its kernels made half as slow again, and returns the page and the comparison.
func comparisonOf(t *testing.T, trace string) (string, *comparison.Comparison) {
	t.Helper()
	dir := t.TempDir()
	head, out := filepath.Join(dir, "head.sqlite"), filepath.Join(dir, "out")
	if err := tracetest.Rewrite(trace, head, tracetest.ScaleKernels(func(string) bool { return true }, 1.5)); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := explainDiff(t, trace, head, "--out", out, "--quiet"); code == exitUsage || code == exitInput {
		t.Fatalf("exit %d: %s", code, errs)
	}
	c, err := comparison.Read(bytes.NewReader(read(t, filepath.Join(out, "comparison.json"))))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(out, "diff.html"), c
}

// TestComparisonInABrowser: the page of a comparison opens without a complaint, asks for nothing, fits every window, and its
// drawings have the numbers of comparison.json.
func TestComparisonInABrowser(t *testing.T) {
	open := browser(t)
	file, c := comparisonOf(t, "../../testdata/serving.sqlite")
	ctx, complaints := open(t, file, true)
	numbers := func(chart string) []float64 {
		return evaluate[[]float64](t, ctx, `[...document.querySelectorAll("#chart-`+chart+` data")].map(d => +d.value)`)
	}
	rows := func(kind string, of func(r comparison.AttributionRow) []float64) (list []float64) {
		for _, r := range c.Attribution.Rows {
			if r.Kind == kind {
				list = append(list, of(r)...)
			}
		}
		return list
	}
	same := func(chart string, want []float64) {
		t.Helper()
		got := numbers(chart)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, comparison.json has %v", chart, got, want)
		}
	}
	same("classes", rows("class", func(r comparison.AttributionRow) []float64 { return []float64{r.Base, r.Head} }))
	var units []float64
	for _, x := range c.Distribution.Captures {
		units = append(units, x.Times...)
	}
	same("distribution", units)
	steps, sum := numbers("waterfall"), 0.0
	for _, v := range steps[:max(len(steps)-1, 0)] {
		sum += v
	}
	if len(steps) < 3 || steps[0] != c.Attribution.Base || steps[len(steps)-1] != c.Attribution.Head || math.Abs(sum-c.Attribution.Head) > 1 {
		t.Errorf("the waterfall %v does not lead from %g to %g", steps, c.Attribution.Base, c.Attribution.Head)
	}
	of := map[float64]bool{0: true}
	for _, k := range c.Kernels {
		of[k.Delta] = true
	}
	for _, v := range numbers("kernel-deltas") {
		if !of[v] {
			t.Errorf("%g is no change of a kernel in comparison.json", v)
		}
	}
	for _, width := range []int64{380, 1280, 2560} {
		seen(t, ctx, "dark", width)
		if n := evaluate[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
			t.Errorf("the page is %d pixels wider than a window of %d", n, width)
		}
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
}

// TestHostileComparison: nothing that a capture holds runs on the page of a comparison, and names are there to read.
func TestHostileComparison(t *testing.T) {
	open := browser(t)
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	names := tracetest.HostileNames()
	for step := range int64(20) {
		at := step * 1_000_000
		th.Range("step", at, at+900_000)
		for i, name := range names {
			from := at + int64(i)*10_000
			th.Launch(name, from, from+1000, tracetest.Kernel{Start: from + 2000, End: from + 7000})
		}
	}
	file, c := comparisonOf(t, b.WriteTB(t))
	ctx, complaints := open(t, file, true)
	checkNothingRuns(t, ctx, complaints)
	text := evaluate[string](t, ctx, "document.body.textContent")
	found := 0
	for _, k := range c.Kernels {
		if k.BaseShort != nil && strings.ContainsAny(*k.BaseShort, "<@") && strings.Contains(text, clean(*k.BaseShort)) {
			found++
		}
	}
	if found == 0 {
		t.Error("no hostile name is on the page literally")
	}
}

// TestLongTable: a table of 10,000 rows is whole, sorts and searches.
func TestLongTable(t *testing.T) {
	open := browser(t)
	const rows = 10_000
	table := doc.Table{ID: "long", Columns: []doc.Column{{Title: "Name"}, {Title: "Value", Align: doc.Right}}}
	for i := range rows {
		table.Rows = append(table.Rows, []doc.Cell{{doc.Name(fmt.Sprintf("kernel_%05d", i))}, {doc.Text(fmt.Sprint(i * 7919 % rows))}})
	}
	var page bytes.Buffer
	if err := render.HTML(&page, doc.Document{Blocks: []doc.Block{doc.H(2, "long", "Long"), table}}, render.HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "long.html")
	if err := os.WriteFile(file, page.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, complaints := open(t, file, true)
	type result struct {
		Rows, Shown      int
		First, Last      string
		Load, Sort, Find float64
	}
	got := evaluate[result](t, ctx, `(() => { const table = document.querySelector("table"), body = table.tBodies[0], box = document.querySelector(".tools input");
		const timed = (f) => { const at = performance.now(); f(); body.offsetHeight; return performance.now() - at };
		const sort = timed(() => table.tHead.rows[0].cells[1].querySelector("button").click());
		const first = body.rows[0].cells[1].textContent, last = body.rows[body.rows.length - 1].cells[1].textContent;
		const find = timed(() => { box.value = "kernel_0012"; box.dispatchEvent(new Event("input")) });
		const load = performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd;
		return { rows: body.rows.length, shown: [...body.rows].filter((r) => !r.hidden).length, first, last, load, sort, find } })()`)
	t.Logf("loaded in %.0f ms, sorted in %.0f ms, searched in %.0f ms", got.Load, got.Sort, got.Find)
	if got.Rows != rows || got.Shown != 10 || got.First != "9999" || got.Last != "0" {
		t.Errorf("%+v", got)
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
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
	shown := evaluate[[]string](t, ctx, `(() => { const t = `+table+`; const box = t.closest("div.table").querySelector("input"); box.value = "nccl"; box.dispatchEvent(new Event("input"));
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
	checkNothingRuns(t, ctx, complaints)
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

// checkNothingRuns holds a page to the one script and to the elements that it brought itself.
func checkNothingRuns(t *testing.T, ctx context.Context, complaints func() []string) {
	t.Helper()
	if n := evaluate[int](t, ctx, `document.querySelectorAll("img, iframe, object, embed, form, link, [onerror], [onload], [onclick], [style]").length`); n != 0 {
		t.Errorf("%d elements that only a name can have brought", n)
	}
	if n := evaluate[int](t, ctx, `document.querySelectorAll("script").length`); n != 1 {
		t.Errorf("%d scripts", n)
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
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
	file, _ := pageOf(t, "../../testdata/serving.sqlite", "--evidence", "../../testdata/evidence")
	comparison, _ := comparisonOf(t, "../../testdata/serving.sqlite")
	for _, look := range []struct {
		name, file, scheme string
		width              int64
	}{{"report", file, "light", 380}, {"report", file, "dark", 1280}, {"diff", comparison, "light", 1280}, {"diff", comparison, "dark", 380}} {
		t.Run(fmt.Sprintf("%s %s %d", look.name, look.scheme, look.width), func(t *testing.T) {
			file := look.file
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
