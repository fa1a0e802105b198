package present_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", path, d)
	}
}

func markdown(t *testing.T, d doc.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := render.Markdown(&b, d, render.MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func terminal(t *testing.T, d doc.Document, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := render.Terminal(&b, d, render.TerminalOptions{Width: width}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var wrote = present.TerminalOptions{Out: "out/pr-412", Files: []string{"report.md", "report.json", "summary.json"}, More: 24}

func TestServe(t *testing.T) {
	r := valid(t, serve())
	golden(t, "serve.md", markdown(t, present.Full(r, "")))
	golden(t, "serve_100.txt", terminal(t, present.Terminal(r, wrote), 100))
	golden(t, "serve_80.txt", terminal(t, present.Terminal(r, wrote), 80))
	golden(t, "serve_kernels.md", markdown(t, export.KernelsMD(r)))
	golden(t, "serve_stakeholder.md", markdown(t, export.StakeholderMD(r)))
	s, err := export.SummaryJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "serve_summary.json", s)
}

func TestEmptyReport(t *testing.T) {
	r := valid(t, empty("empty.sqlite"))
	s, err := export.SummaryJSON(r)
	if err != nil {
		t.Fatal(err)
	}
	var all bytes.Buffer
	for _, part := range [][]byte{markdown(t, present.Full(r, "")),
		terminal(t, present.Terminal(r, present.TerminalOptions{}), 100),
		markdown(t, export.KernelsMD(r)), markdown(t, export.StakeholderMD(r)), s} {
		all.Write(part)
		all.WriteString("----\n")
	}
	golden(t, "empty.txt", all.Bytes())
}

func TestTerminalStaysUnder40Lines(t *testing.T) {
	for name, b := range map[string]*builder{"serve": serve(), "eight": eight()} {
		r := valid(t, b)
		for _, width := range []int{80, 100, 140} {
			out := string(terminal(t, present.Terminal(r, wrote), width))
			if n := strings.Count(out, "\n"); n >= 40 {
				t.Errorf("%s at %d columns has %d lines:\n%s", name, width, n, out)
			}
			for _, want := range []string{"Top kernel", "Launch rate", "GPU idle"} {
				if !strings.Contains(out, want) {
					t.Errorf("%s at %d columns lacks %q:\n%s", name, width, want, out)
				}
			}
		}
	}
}

// Ten warnings about details do not hide the one after which no number means what it says.
func TestWeightiestWarningIsShown(t *testing.T) {
	b := serve()
	for i := range 10 {
		b.r.Warnings = append(b.r.Warnings, report.Warning{Code: "few_units", Text: "Detail " + strconv.Itoa(i)})
	}
	b.r.Warnings = append(b.r.Warnings, report.Warning{Code: "log_other_run", Text: "Another log"},
		report.Warning{Code: "mixed_gpus", Text: "Different GPUs"})
	r := valid(t, b)
	if out := string(terminal(t, present.Terminal(r, wrote), 100)); !strings.Contains(out, "Warnings  Different GPUs") {
		t.Errorf("another warning is first:\n%s", out)
	}
	text := string(markdown(t, present.Full(r, "")))
	if !(strings.Index(text, "Different GPUs") < strings.Index(text, "Another log") &&
		strings.Index(text, "Another log") < strings.Index(text, "Detail 0") && strings.Contains(text, "Detail 9")) {
		t.Error("warnings are not in the order of their weight")
	}
}

// Anything can be missing: every renderer works on every prefix of the metrics and on every subset of one section.
func TestNothingIsRequired(t *testing.T) {
	full := serve().r
	try := func(r *report.Report) {
		markdown(t, present.Full(r, ""))
		markdown(t, present.Page(r, ""))
		terminal(t, present.Terminal(r, wrote), 80)
		markdown(t, export.KernelsMD(r))
		markdown(t, export.StakeholderMD(r))
		if _, err := export.SummaryJSON(r); err != nil {
			t.Error(err)
		}
	}
	for i := range full.Metrics {
		r := *full
		r.Metrics = append(append([]report.Metric{}, full.Metrics[:i]...), full.Metrics[i+1:]...)
		try(&r)
		r.Metrics = append([]report.Metric{}, full.Metrics...)
		r.Metrics[i].Value, r.Metrics[i].Summary = nil, nil
		try(&r)
	}
	for i := range full.Sections {
		r := *full
		r.Sections = full.Sections[i : i+1]
		try(&r)
		for j := range full.Sections[i].Tables {
			for c := range full.Sections[i].Tables[j].Columns {
				s := full.Sections[i]
				s.Tables = append([]report.Table{}, s.Tables...)
				s.Tables[j] = withoutColumn(s.Tables[j], c)
				r.Sections = []report.Section{s}
				try(&r)
				s.Tables[j].Rows = [][]report.Cell{{}}
				try(&r)
			}
		}
	}
	try(&report.Report{})
}

// Whatever a capture calls its things, the page holds no element that the renderer does not write, and the terminal no
// character that cannot be seen.
func TestHostileCapture(t *testing.T) {
	element := regexp.MustCompile(`</?([a-zA-Z0-9]+|!)`)
	for _, name := range []string{
		"a|b`c``|", "<img src=x onerror=alert(1)>", "@org/team", "::error::boom", "##[error]x", "a\nb\r\tc\x1b[31m", "\u202egnp\u200b", "[x](https://example.com)",
		"https://example.com", "www.example.com", "#1", "GH-1", "</details>", "$x$", ":tada:", "\xff", "", " ", "*a* _b_ ~~c~~", "=1+1", "--flag", "`--flag`",
	} {
		r := valid(t, hostile(name))
		r.Sections = append(r.Sections, report.Section{ID: "regions", Title: "Regions", Status: report.OK, Notes: []string{}, Charts: []report.Chart{}, Tables: []report.Table{{ID: "regions", TotalRows: 1,
			Columns: []report.Column{{ID: "region", Kind: report.Name}, {ID: "parent", Kind: report.Name}}, Rows: [][]report.Cell{{report.S(name), report.S(name)}}}}})
		if got := string(markdown(t, present.Page(r, ""))); !strings.Contains(got, render.Visible(name)) && !strings.Contains(got, `a\|b`) {
			t.Errorf("%q is not on the page", name)
		}
		for what, d := range map[string]doc.Document{"full": present.Full(r, ""), "kernels": export.KernelsMD(r),
			"stakeholder": export.StakeholderMD(r), "regions": export.RegionsMD(r)} {
			source := markdown(t, d)
			var page bytes.Buffer
			md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(html.WithUnsafe()))
			if err := md.Convert(source, &page); err != nil {
				t.Fatal(err)
			}
			for _, m := range element.FindAllStringSubmatch(page.String(), -1) {
				if !strings.Contains(" h1 h2 h3 p ul ol li table thead tbody tr th td code strong blockquote details summary ", " "+m[1]+" ") {
					t.Errorf("%q: <%s> on the %s page", name, m[1], what)
				}
			}
			for _, line := range strings.Split(string(source), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "::") || strings.Contains(line, "##[") {
					t.Errorf("%q: the %s page has a line %q", name, what, line)
				}
			}
		}
		for _, c := range string(terminal(t, present.Terminal(r, wrote), 100)) {
			if c != '\n' && !unicode.IsPrint(c) {
				t.Fatalf("%q: %q in the terminal", name, c)
			}
		}
	}
}

// hostile is the report of a server on which everything is called name.
func hostile(name string) *builder {
	b := serve()
	r := b.r
	r.Trace.Name, r.Trace.SchemaVersion, r.Unit.Name = name, &name, name
	r.Environment.GPUs[0].Name, r.Environment.Driver, r.Environment.Model = &name, &name, &name
	for i := range r.Unit.Groups {
		r.Unit.Groups[i].Phase = name
	}
	relabel := func(l report.Labels) {
		for k := range l {
			if k != "device" && k != "cause" {
				l[k] = name
			}
		}
	}
	seen := map[string]bool{}
	metrics := r.Metrics
	r.Metrics = []report.Metric{}
	for _, m := range metrics {
		relabel(m.Labels)
		if k := m.ID + m.Labels.String(); !seen[k] {
			seen[k] = true
			r.Metrics = append(r.Metrics, m)
		}
	}
	for i := range r.Findings {
		for j := range r.Findings[i].Evidence {
			relabel(r.Findings[i].Evidence[j].Labels)
		}
		r.Findings[i].Title += " " + name
		r.Findings[i].Advice = append(r.Findings[i].Advice, "see "+name)
	}
	r.Warnings[0].Text += name
	for i := range r.Sections {
		r.Sections[i].Reason += name
		r.Sections[i].Notes = append(r.Sections[i].Notes, name)
		for j := range r.Sections[i].Tables {
			tab := &r.Sections[i].Tables[j]
			for _, row := range tab.Rows {
				for c := range row {
					if tab.Columns[c].Kind == report.Name && !row[c].IsNull() {
						row[c] = report.S(name)
					}
				}
			}
		}
		if r.Sections[i].Status != report.OK && r.Sections[i].Reason == "" {
			r.Sections[i].Reason = "x"
		}
	}
	return b
}

func withoutColumn(t report.Table, c int) report.Table {
	t.Columns = append(append([]report.Column{}, t.Columns[:c]...), t.Columns[c+1:]...)
	rows := t.Rows
	t.Rows = nil
	for _, r := range rows {
		t.Rows = append(t.Rows, append(append([]report.Cell{}, r[:c]...), r[c+1:]...))
	}
	return t
}

func TestSummaryJSONIsReadable(t *testing.T) {
	s, err := export.SummaryJSON(serve().r)
	if err != nil {
		t.Fatal(err)
	}
	// What check_regression reads of it.
	var read struct {
		PrefillDecode map[string]struct {
			TotalMs float64 `json:"total_ms"`
		} `json:"prefill_decode"`
		TopKernels []struct {
			TotalTimeMs float64 `json:"total_time_ms"`
		} `json:"top_kernels"`
		CUDAGraphs struct {
			GraphCoveragePct float64 `json:"graph_coverage_pct"`
		} `json:"cuda_graphs"`
	}
	if err := json.Unmarshal(s, &read); err != nil {
		t.Fatal(err)
	}
	if read.PrefillDecode["prefill"].TotalMs != 98.003 || read.PrefillDecode["decode"].TotalMs != 640.112 || read.TopKernels[0].TotalTimeMs != 312.41728 || read.CUDAGraphs.GraphCoveragePct != 81088.0/91144*100 {
		t.Errorf("%+v", read)
	}
}

// TestPageAnswersFirst: the first line has the mean step, what it is made of with the largest cause of its idle time, the
// kernel that takes most of it, and what to do; the bar below it is the same step.
func TestPageAnswersFirst(t *testing.T) {
	row := func(class string, ns, share float64) []report.Cell {
		return []report.Cell{report.S(class), report.F(ns), report.F(share)}
	}
	r := valid(t, serve())
	mean := 20e6
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.ID == "unit.time" && len(m.Labels) == 0 {
			m.Value, m.Summary = &mean, &report.Summary{N: 8, P50: 19e6, Mean: mean}
		}
	}
	r.Sections = append(r.Sections, report.Section{ID: "unit", Title: "Unit of work", Group: report.GroupStep, Status: report.OK, Tables: []report.Table{
		{ID: "unit_time", Columns: []report.Column{{ID: "class", Kind: report.Text}, {ID: "time", Kind: report.Float, Unit: "ns"}, {ID: "share", Kind: report.Float, Unit: "ratio"}},
			Rows: [][]report.Cell{row("compute", 15e6, 0.75), row("exposed communication", 1e6, 0.05), row("exposed copy", 2e5, 0.01),
				row("idle: host", 3e6, 0.15), row("idle: launch", 8e5, 0.04)}},
		{ID: "unit_kernels", Columns: []report.Column{{ID: "kernel_name", Kind: report.Name}, {ID: "share", Kind: report.Float, Unit: "ratio"}},
			Rows: [][]report.Cell{{report.S("gemm"), report.F(0.4)}}}}})
	r.Findings = []report.Finding{{ID: "x", Severity: report.High, Title: "The GPU waits", Advice: []string{"Batch more. Or not."},
		Worth: &report.Worth{Time: 16e6, Of: 80e6, Units: 4}}}
	blocks := present.Page(r, "")
	answer, ok := blocks[1].(doc.Answer)
	if !ok {
		t.Fatalf("the page begins with %T", blocks[1])
	}
	text := spansText(answer.Spans)
	what := "step (mean of 8)"
	if g := r.Unit.Groups; len(g) > 0 && g[0].Phase != "" { // the table of kinds has the number
		what = g[0].Phase + " step"
	}
	want := "20 ms per " + what + ": 75.0 % compute (gemm 40.0 %), 5.0 % exposed communication (waiting for other ranks included), GPU idle 19.0 %, mostly host."
	if text != want {
		t.Errorf("the page begins with\n%q, want\n%q", text, want)
	}
	rows, ok := blocks[3].(doc.Table)
	if !ok || len(rows.Rows) != 1 {
		t.Fatalf("under the bar stands %+v", blocks[3])
	}
	for i, want := range []string{"≤ 4 ms, 20.0 %", "The GPU waits x", "Batch more. Or not."} {
		if got := spansText(rows.Rows[0][i]); got != want {
			t.Errorf("the finding says %q, want %q", got, want)
		}
	}
	bar, ok := blocks[2].(doc.Chart)
	if !ok || bar.Kind != "stacked" || !slices.Equal(bar.Series[0].Values, []float64{15e6, 1e6, 2e5, 3e6, 8e5}) {
		t.Errorf("under the answer stands %+v", blocks[2])
	}
	r.Unit = report.Unit{} // a foreign report may not say what its steps are
	text = spansText(present.Page(r, "")[1].(doc.Answer).Spans)
	if want := "20 ms per step (mean of 8): 75.0 % compute"; !strings.HasPrefix(text, want) {
		t.Errorf("without kinds of steps the page begins with\n%q, want\n%q", text, want)
	}
}

// TestPageOfACaptureWithoutKernels: its first line says that it has none, whatever else was found.
func TestPageOfACaptureWithoutKernels(t *testing.T) {
	r := valid(t, serve())
	const none = "No kernel ran in this capture: capture while the workload computes."
	r.Warnings = append(r.Warnings, report.Warning{Code: "no_kernels", Section: "quality", Text: none})
	answer, ok := present.Page(r, "")[1].(doc.Answer)
	if !ok {
		t.Fatalf("the page begins with %T", present.Page(r, "")[1])
	}
	text := spansText(answer.Spans)
	if text != none {
		t.Errorf("the page begins with %q", text)
	}
}

// pageTable is a table as the page has it; the window starts at 60 s.
func pageTable(t *testing.T, table report.Table) doc.Table {
	t.Helper()
	r := valid(t, serve())
	r.Window = report.Window{Start: 60e9, End: 61e9, Length: 1e9}
	table.TotalRows = int64(len(table.Rows))
	r.Sections = []report.Section{{ID: "idle", Title: "Idle gaps", Group: report.GroupTime, Status: report.OK, Tables: []report.Table{table}}}
	for _, b := range present.Page(r, "") {
		if d, ok := b.(doc.Table); ok && d.ID == table.ID {
			return d
		}
	}
	t.Fatal("the table is not on the page")
	return doc.Table{}
}

// TestMomentsHaveNoSayInUnits: a start of 60 s does not turn gaps of milliseconds into fractions of a second, and counts
// from the start of the window, as the charts do.
func TestMomentsHaveNoSayInUnits(t *testing.T) {
	d := pageTable(t, report.Table{ID: "idle_gaps", Columns: []report.Column{{ID: "gap", Title: "Gap", Kind: report.Int, Unit: "ns"},
		{ID: "start", Title: "Start", Kind: report.Moment, Unit: "ns"}},
		Rows: [][]report.Cell{{report.I(4492845), report.I(60401707567)}, {report.I(1215455), report.I(60000000000)}}})
	got := d.Columns[0].Title + " " + d.Rows[0][0][0].Text + " " + d.Rows[1][0][0].Text + ", " + d.Columns[1].Title + " " +
		d.Rows[0][1][0].Text + " " + d.Rows[1][1][0].Text
	if want := "Gap (ms) 4.49 1.22, Start in the window (s) 0.401708 0.000000"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWideSpansHaveTheirOwnUnits: where one unit for a column would leave a value with fewer than two digits, each cell
// has its own.
func TestWideSpansHaveTheirOwnUnits(t *testing.T) {
	d := pageTable(t, report.Table{ID: "x", Columns: []report.Column{{ID: "gap", Title: "Gap", Kind: report.Int, Unit: "ns"}},
		Rows: [][]report.Cell{{report.I(2_500_000_000)}, {report.I(1_234_567)}, {report.I(42)}}})
	got := d.Columns[0].Title + ": " + d.Rows[0][0][0].Text + ", " + d.Rows[1][0][0].Text + ", " + d.Rows[2][0][0].Text
	if want := "Gap: 2.5 s, 1.235 ms, 42 ns"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPrimaryColumnsComeFirst: what no row knows is left out, details stand behind the seven primary columns, and shares
// have bars.
func TestPrimaryColumnsComeFirst(t *testing.T) {
	table := report.Table{ID: "x", File: "x.csv"}
	var row []report.Cell
	for i, c := range []report.Column{{ID: "name", Kind: report.Name}, {ID: "w", Wide: true}, {ID: "share", Unit: "ratio"}, {ID: "none"},
		{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}, {ID: "f"}} {
		if c.Kind == "" {
			c.Kind = report.Float
		}
		c.Title = c.ID
		table.Columns = append(table.Columns, c)
		switch {
		case c.ID == "none":
			row = append(row, report.Null)
		case i == 0:
			row = append(row, report.S("k"))
		default:
			row = append(row, report.F(0.25))
		}
	}
	table.Rows = [][]report.Cell{row}
	d := pageTable(t, table)
	got := d.File
	for _, c := range d.Columns {
		got += " " + c.Title
		if c.Wide {
			got += "+"
		}
		if c.Bars != nil {
			got += fmt.Sprint(c.Bars)
		}
	}
	if want := "tables/x.csv name share (%)[0.25] a b c d e w+ f+"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestPageWithoutSteps: the answer is of the window, and the key numbers of the capture stand in its own part.
func TestPageWithoutSteps(t *testing.T) {
	r := valid(t, serve())
	r.Findings = []report.Finding{
		{ID: "x", Severity: report.High, Title: "The GPU waits", Doc: "gpu_time", Evidence: []report.MetricRef{{ID: "gpu.idle_ratio", Labels: report.Labels{"device": "0"}}}},
	}
	answer, facts, part := "", map[string]string{}, ""
	for _, b := range present.Page(r, "") {
		switch b := b.(type) {
		case doc.Heading:
			part = b.ID
		case doc.Answer:
			answer = spansText(b.Spans)
		case doc.Fields:
			for _, f := range b.Items {
				facts[part+"/"+f.Label] = spansText(f.Value)
			}
		}
	}
	if want := "552 ms of GPU work: idle 20.0 %, mostly host; 34.6 % of the kernel time is flash_fwd_splitkv_kernel<128, 64, 128, 4, bf16>."; answer != want {
		t.Errorf("the page begins with %q", answer)
	}
	if got := facts["capture/GPU idle"]; !strings.HasPrefix(got, "20.0 % GPU ") {
		t.Errorf("idle of the whole capture: %q of %v", got, facts)
	}
}

func spansText(spans []doc.Span) (s string) {
	for _, p := range spans {
		s += p.Text
	}
	return s
}

// A report that can be read can be shown, whoever wrote it.
func FuzzShow(f *testing.F) {
	b := serve()
	chart := func(kind string, series ...report.Series) report.Chart {
		return report.Chart{ID: kind, Title: kind, Kind: kind, Unit: "ns", XUnit: "ns", Series: series}
	}
	late := report.Series{Name: "late", Labels: []string{"9000000000000000000", "9000000000000001024"},
		Values: []float64{1, 2}}
	large := report.Series{Name: "large", Labels: []string{"1"}, Values: []float64{1e308}}
	none := report.Series{Name: "none", Labels: []string{}, Values: []float64{}}
	b.r.Sections = append(b.r.Sections, report.Section{ID: "unit", Title: "Unit of work", Group: report.GroupStep,
		Status: report.OK, Notes: []string{}, Tables: []report.Table{},
		Charts: []report.Chart{chart("line", late), chart("scatter", large), chart("strip", none, large)}})
	b.r.Fill()
	var text bytes.Buffer
	if err := report.Write(&text, b.r); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := report.Read(bytes.NewReader(text))
		if err != nil {
			return
		}
		var page bytes.Buffer
		if err := render.HTML(&page, present.Page(r, ""), ""); err != nil {
			t.Fatal(err)
		}
		markdown(t, present.Full(r, ""))
		terminal(t, present.Terminal(r, wrote), 80)
	})
}
