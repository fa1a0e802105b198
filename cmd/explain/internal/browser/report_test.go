package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestPageInABrowser: every page opens without a complaint and asks for nothing; every chart is there with the numbers of
// the JSON beside it; with scripts off all tables are there.
func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	for i, trace := range explaintest.Traces(t) {
		if !longtest.On() && i%4 != 3 { // a browser is slow
			continue
		}
		t.Run(explaintest.TraceName(trace), func(t *testing.T) {
			t.Parallel()
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
	t.Parallel()
	file, r := pageOf(t, explaintest.Testdata("serving.sqlite"), "--evidence", explaintest.Testdata("evidence"))
	ctx, complaints := open(t, file, true)
	checkCharts(t, ctx, r)
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
	if lost := evaluate[[]string](t, ctx, `[...document.querySelectorAll("a[href^='#']")].map(a => a.getAttribute("href")).filter(h => !document.getElementById(h.slice(1)))`); len(lost) > 0 {
		t.Errorf("links lead nowhere: %q", lost)
	}
}

// TestLongTable: a table of 10,000 rows is whole, sorts and searches.
func TestLongTable(t *testing.T) {
	t.Parallel()
	const rows = 10_000
	table := doc.Table{ID: "long", Columns: doc.Cols("Name", ">Value")}
	for i := range rows {
		table.Row(doc.Name(fmt.Sprintf("kernel_%05d", i)), fmt.Sprint(i*7919%rows))
	}
	var page bytes.Buffer
	if err := render.HTML(&page, doc.Document{doc.H(2, "long", "Long"), table}, ""); err != nil {
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
		const first = body.rows[0].cells[1].textContent.trim(), last = body.rows[body.rows.length - 1].cells[1].textContent.trim();
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
		marks: f.querySelectorAll("svg[role] rect, svg[role] circle, svg[role] polyline").length,
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
			if _, dots := byID["chart-unit_dots"]; !ok && c.ID == "unit_time" && dots {
				continue // each unit is a dot already
			}
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
	t.Parallel()
	file, _ := pageOf(t, explaintest.Testdata("serving.sqlite"))
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
	t.Parallel()
	file, r := pageOf(t, explaintest.Testdata("hostile.sqlite"))
	ctx, complaints := open(t, file, true)
	checkNothingRuns(t, ctx, complaints)
	text := evaluate[string](t, ctx, "document.body.textContent")
	found := 0
	for _, m := range r.Metrics {
		if k := m.Labels["kernel"]; m.ID == "kernel.total_time" && strings.Contains(k, "<") && strings.Contains(text, render.Visible(k)) {
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

// TestPageIsAccessible asks axe-core, whose script EXPLAIN_AXE names: it has nothing to say at any size, light or dark.
func TestPageIsAccessible(t *testing.T) {
	t.Parallel()
	axe := os.Getenv("EXPLAIN_AXE")
	if axe == "" {
		t.Skip("EXPLAIN_AXE does not name axe.min.js (.ci/run fetches it)")
	}
	script := string(explaintest.Read(t, axe))
	file, _ := pageOf(t, explaintest.Testdata("serving.sqlite"), "--evidence", explaintest.Testdata("evidence"))
	comparison, _ := comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	type look struct {
		name, file, scheme string
		width              int64
	}
	history := historyPage(t)
	// What follows in a table or a drawing is like what comes before, and axe looks at each element for milliseconds.
	const shorten = `document.querySelectorAll('details').forEach(d => d.open = true);
		document.querySelectorAll('tbody').forEach(b => [...b.rows].slice(4).forEach(r => r.remove()));
		document.querySelectorAll('svg, g').forEach(s => [...s.children].slice(100).forEach(e => e.remove()))`
	var looks []look
	for _, width := range []int64{390, 1024, 1440} {
		for _, scheme := range []string{"light", "dark"} {
			looks = append(looks, look{"diff", comparison, scheme, width}, look{"history", history, scheme, width})
			if (scheme == "dark") == (width == 1024) { // the long page: each size once
				looks = append(looks, look{"report", file, scheme, width})
			}
		}
	}
	for _, look := range looks {
		t.Run(fmt.Sprintf("%s %s %d", look.name, look.scheme, look.width), func(t *testing.T) {
			file := look.file
			ctx, _ := open(t, file, true)
			seen(t, ctx, look.scheme, look.width)
			evaluate[any](t, ctx, shorten)
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
				t.Errorf("%s (%s): %q", v.ID, v.Impact, v.Nodes)
			}
		})
	}
}

// TestPageFitsEveryWindow: only tables scroll sideways, never the page; no two labels of an axis lie on each other, and
// numbers keep the head that names them.
func TestPageFitsEveryWindow(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"serving", "hostile", "history"} {
		file := ""
		if name == "history" {
			file = historyPage(t)
		} else {
			file, _ = pageOf(t, explaintest.Testdata(name+".sqlite"))
		}
		ctx, _ := open(t, file, true)
		for _, width := range []int64{380, 800, 1280, 2560} {
			seen(t, ctx, "light", width)
			if n := evaluate[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
				t.Errorf("%s: the page is %d pixels wider than a window of %d", name, n, width)
			}
			if name == "serving" && !evaluate[bool](t, ctx, `document.querySelector("#table-serving thead").getBoundingClientRect().height > 0`) {
				t.Errorf("a window of %d: the steps of the server are numbers without a head", width)
			}
			for _, pair := range evaluate[[]string](t, ctx, `[...document.querySelectorAll("svg.xaxis")].flatMap((axis) => {
				const list = [...axis.querySelectorAll("text")].map((e) => ({text: e.textContent, ...e.getBoundingClientRect().toJSON()})).filter((b) => b.width > 0);
				return list.filter((b, i) => list.some((a, k) => k < i && b.left < a.right - 1 && a.left < b.right - 1 && b.top < a.bottom && a.top < b.bottom)).map((b) => b.text);
			})`) {
				t.Errorf("%s, a window of %d: the label %q of an axis lies on another", name, width, pair)
			}
		}
	}
}
