package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// explainTrace runs explain as a user would and returns everything it wrote: files by name, and "stdout" and "stderr".
func explainTrace(t *testing.T, trace string, args ...string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	var out, errs bytes.Buffer
	code := run(context.Background(), append([]string{trace, "--out", dir, "--verbose"}, args...), &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
	if code != exitOK {
		t.Fatalf("explain %s: exit %d: %s", filepath.Base(trace), code, errs.String())
	}
	all := map[string]string{"stdout": out.String(), "stderr": errs.String()}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEveryReportKeepsTheContract: valid by the published schema and an independent validator, readable by our own
// reader, under 2 MB, equal between runs, with every promised file.
func TestEveryReportKeepsTheContract(t *testing.T) {
	t.Parallel()
	published := explaintest.Schema(t, "report")
	for _, trace := range explaintest.Traces(t) {
		t.Run(explaintest.TraceName(trace), func(t *testing.T) {
			t.Parallel()
			files := explainTrace(t, trace)
			body := files["report.json"]
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if err := published.Validate(value); err != nil {
				t.Errorf("schema: %v", err)
			}
			r, err := report.Read(strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			var again bytes.Buffer
			if err := report.Write(&again, r); err != nil || again.String() != body {
				t.Errorf("reading and writing the report changes it (%v)", err)
			}
			if len(body) >= 2e6 {
				t.Errorf("report.json has %d bytes", len(body))
			}
			if page := files["report.html"]; len(page) >= 1.5e6 {
				t.Errorf("report.html has %d bytes", len(page))
			}
			for _, s := range r.Sections {
				if s.Status == report.Error {
					t.Errorf("section %s: %s", s.ID, s.Reason)
				}
			}
			for name, content := range explainTrace(t, trace) {
				if name != "stdout" && name != "stderr" && content != files[name] {
					t.Errorf("%s differs between two runs", name)
				}
			}
			if lines := strings.Count(files["stdout"], "\n"); lines > 50 {
				t.Errorf("the summary has %d lines", lines)
			}
			checkTables(t, files)
		})
	}
}

// checkSchema holds a file to its published schema.
func checkSchema(t *testing.T, name string, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = explaintest.Schema(t, name).Validate(value)
	}
	if err != nil {
		t.Errorf("%s: %v in %.300s", name, err, text)
	}
}

// promised are the tables that other people's scripts read, with the columns they rely on (nsys-llm-explainer's and
// profilemate's). They are there even when empty.
var promised = map[string]string{
	"kernels.csv":        "kernel_name,device_id,call_count,total_time_ns,total_time_ms,avg_duration_us,min_duration_us,max_duration_us,p50_duration_us,p90_duration_us,pct_total_kernel_time",
	"gpu_idle_gaps.csv":  "device_id,gap_start_ns,gap_end_ns,gap_ms",
	"nvtx_ranges.csv":    "range_name,count,total_time_ms,avg_duration_us",
	"kernels_by_pid.csv": "pid,pid_total_kernel_time_ms,pid_pct_of_total_kernel_time,kernel_name,device_id,call_count,total_time_ms,avg_duration_us,pct_of_pid_kernel_time,pct_of_total_kernel_time",
	"sync_by_pid.csv":    "pid,api_name,call_count,total_time_ms,avg_duration_us",
	"nvtx_by_pid.csv":    "pid,range_name,nvtx_count,nvtx_total_time_ms,attributed_kernel_time_ms,attributed_kernel_count,pid_attribution_coverage_pct",
	"sync.csv":           "api_name,call_count,total_time_ms",
	"launches.csv":       "api_name,call_count,total_time_ms",
	"phases.csv":         "phase",
	"devices.csv":        "device_id",
	"memcpy.csv":         "direction",
	"units.csv":          "device_id,phase",
	"nvtx_instances.csv": "range_name,start_ns,end_ns,dur_ms,pid,tid",
	"kernel_stats.csv":   "kernel_name,duration_us,start_ns,grid_size,block_size,shared_mem_bytes,registersPerThread",
	"memcpy_stats.csv":   "duration_us,bytes,bandwidth_gbps,direction",
}

func checkTables(t *testing.T, files map[string]string) {
	t.Helper()
	for name, columns := range promised {
		rows, err := csv.NewReader(strings.NewReader(files["tables/"+name])).ReadAll()
		if err != nil || len(rows) == 0 {
			t.Errorf("%s: no header (%v)", name, err)
			continue
		}
		have := map[string]bool{}
		for _, c := range rows[0] {
			have[c] = true
		}
		for _, c := range strings.Split(columns, ",") {
			if !have[c] {
				t.Errorf("%s lacks column %s: %v", name, c, rows[0])
			}
		}
	}
}

// TestSecretsStayInside plants a secret in every text column that nsys fills and looks for them in all that is written.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	for _, build := range []func(...tracetest.Option) *tracetest.Builder{tracetest.Tiny, tracetest.ServingGraphMode, tracetest.Oldest} {
		b := build()
		planted := b.Canaries(func(table, column string) string { return fmt.Sprintf("SECRET-%s-%s-hunter2", table, column) })
		if len(planted) < 3 {
			t.Fatalf("only %d secrets planted", len(planted))
		}
		path := b.WriteTB(t)
		all := explainTrace(t, path)
		var schemaOut bytes.Buffer
		run(context.Background(), []string{path, "--print-schema"}, &env{Out: &schemaOut, Err: &schemaOut, Getenv: os.Getenv})
		all["--print-schema"] = schemaOut.String()
		for name, content := range all {
			if strings.Contains(content, "hunter2") || strings.Contains(content, filepath.Dir(path)) {
				at := strings.Index(content, "hunter2")
				t.Errorf("%s leaks a secret or a path: …%q", name, content[max(0, at-80):min(len(content), max(at, 0)+20)])
			}
			for _, c := range planted {
				if strings.Contains(content, c.Text) {
					t.Errorf("%s leaks the text of %s.%s", name, c.Table, c.Column)
				}
			}
		}
	}
}

// TestHostileNamesAreLiteral: whatever a kernel, a range or a process is called, every format shows it as text.
func TestHostileNamesAreLiteral(t *testing.T) {
	t.Parallel()
	files := explainTrace(t, "../../testdata/hostile.sqlite")
	for name, content := range files {
		if strings.HasSuffix(name, ".json") {
			if !json.Valid([]byte(content)) {
				t.Errorf("%s is no JSON", name)
			}
			continue
		}
		for i, line := range strings.Split(content, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("%s:%d starts like a workflow command: %q", name, i+1, line)
			}
			for _, r := range line {
				if r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
					t.Errorf("%s:%d holds the character %U", name, i+1, r)
					break
				}
			}
		}
		if strings.HasSuffix(name, ".csv") {
			checkFormulas(t, name, content)
		}
		if strings.HasSuffix(name, ".md") {
			checkMarkdown(t, name, content)
		}
	}
	shown := 0
	for _, hostile := range tracetest.HostileNames() {
		if strings.Contains(files["tables/kernels.csv"], strings.ReplaceAll(render.Visible(hostile), `"`, `""`)) {
			shown++
		}
	}
	if shown < len(tracetest.HostileNames())/2 {
		t.Errorf("only %d of %d hostile names are in kernels.csv: names were lost, not escaped", shown, len(tracetest.HostileNames()))
	}
}

func checkFormulas(t *testing.T, name, content string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(content)).ReadAll()
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	for _, row := range rows {
		for _, c := range row {
			if c != "" && strings.ContainsRune("=+@\t\r", rune(c[0])) {
				t.Errorf("%s: a spreadsheet would compute %q", name, c)
			}
		}
	}
}

// checkMarkdown parses the page as GitHub does and wants no element that a name could have smuggled in.
func checkMarkdown(t *testing.T, name, content string) {
	t.Helper()
	src := []byte(content)
	page := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(src))
	err := ast.Walk(page, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.RawHTML, *ast.AutoLink, *ast.Image:
			t.Errorf("%s: a name became %s", name, n.Kind())
		case *ast.HTMLBlock:
			for i := range n.Lines().Len() {
				line := n.Lines().At(i)
				s := strings.TrimSpace(string(line.Value(src)))
				if s != "<details>" && s != "</details>" && !strings.HasPrefix(s, "<summary>") {
					t.Errorf("%s: HTML %q", name, s)
				}
			}
		case *ast.Text:
			if s := string(n.Segment.Value(src)); strings.Contains(s, "@org") && n.Parent().Kind() != ast.KindCodeSpan {
				t.Errorf("%s: a mention outside a code span: %q", name, s)
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTwoExportsOfOneCaptureAreEqual: the exporter's version says nothing about the workload.
func TestTwoExportsOfOneCaptureAreEqual(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"cs336_hoponga_exp2023_4", "cs336_hoponga_exp2024_2"}, {"mordred_native_old_b", "mordred_exp2023_4"}} {
		var metrics [2][]byte
		for i, name := range pair {
			path := filepath.Join("../../../shared/traces", name+".sqlite")
			if _, err := os.Stat(path); err != nil {
				t.Skip("no shared/traces: the real traces are not part of the project")
			}
			r, err := report.Read(strings.NewReader(explainTrace(t, path)["report.json"]))
			if err != nil {
				t.Fatal(err)
			}
			for j := range r.Metrics {
				r.Metrics[j].Source = report.Source{} // table and column names may differ
			}
			if metrics[i], err = json.Marshal(r.Metrics); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(metrics[0], metrics[1]) {
			t.Errorf("%s and %s are one capture and have different metrics", pair[0], pair[1])
		}
	}
}

// TestInterruptLeavesNothing: a cancelled run writes no folder.
func TestInterruptLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	parent := t.TempDir()
	var errs bytes.Buffer
	code := run(ctx, []string{"../../testdata/tiny.sqlite", "--out", filepath.Join(parent, "out")}, &env{Out: &errs, Err: &errs, Getenv: os.Getenv})
	left, err := os.ReadDir(parent)
	if code != exitInput || err != nil || len(left) > 0 || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d, left %v (%v), said %q", code, left, err, errs.String())
	}
}
