// Package sectiontest is what the tests of the sections share: run the analyzer, and look things up in its report.
package sectiontest

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// AnalyseFile runs the analyzer on a trace.
func AnalyseFile(tb testing.TB, path string, opt analyze.Options) *analyze.Result {
	tb.Helper()
	res, err := analyze.Run(context.Background(), path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// once are the reports of ReportOf, by path.
var once sync.Map

// ReportOf is the report of a capture as it is, for tests that only read it: each file is analysed once.
func ReportOf(tb testing.TB, path string) *report.Report {
	tb.Helper()
	if r, ok := once.Load(path); ok {
		return r.(*report.Report)
	}
	r := AnalyseFile(tb, path, analyze.Options{}).Report
	once.Store(path, r)
	return r
}

// Analyse writes the trace and runs the analyzer on it.
func Analyse(tb testing.TB, b *tracetest.Builder, opt analyze.Options) *analyze.Result {
	tb.Helper()
	return AnalyseFile(tb, b.WriteTB(tb), opt)
}

// Steps is a capture of n steps of 1 ms of one thread, the first of which begins after 1 ms. step adds one that begins
// at a moment.
func Steps(n int64, step func(th *tracetest.Thread, at int64)) *tracetest.Builder {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	for i := range n {
		step(th, (i+1)*1000*Us)
	}
	return b
}

// FindingOfSteps is a finding on 20 of these steps; nil if there is none.
func FindingOfSteps(tb testing.TB, id string, step func(th *tracetest.Thread, at int64)) *report.Finding {
	tb.Helper()
	return FindingOf(Analyse(tb, Steps(20, step), analyze.Options{}).Report, id)
}

// Metric checks one metric; labels come as key, value pairs.
func Metric(tb testing.TB, r *report.Report, want float64, id string, pairs ...string) {
	tb.Helper()
	l := kit.Labels(pairs...)
	switch m := r.Find(id, l); {
	case m == nil:
		tb.Errorf("%s{%s}: missing, want %v", id, l, want)
	case m.Value == nil:
		tb.Errorf("%s{%s} = null, want %v", id, l, want)
	case *m.Value != want:
		tb.Errorf("%s{%s} = %s, want %s", id, l, strconv.FormatFloat(*m.Value, 'f', -1, 64),
			strconv.FormatFloat(want, 'f', -1, 64))
	}
}

// NoMetric checks that a metric is absent.
func NoMetric(tb testing.TB, r *report.Report, id string, pairs ...string) {
	tb.Helper()
	l := kit.Labels(pairs...)
	if m := r.Find(id, l); m != nil {
		tb.Errorf("%s{%s} is there, want none", id, l)
	}
}

func Look(tb testing.TB, b *tracetest.Builder, opt analyze.Options) Looker {
	tb.Helper()
	return Looker{tb, Analyse(tb, b, opt).Report}
}

// CsvHas checks that a table's CSV file has these columns.
func (l Looker) CsvHas(t *report.Table, file string, want ...string) {
	l.Helper()
	if t.File != file {
		l.Errorf("table %s goes to %q, want %q", t.ID, t.File, file)
	}
	have := map[string]bool{}
	for _, c := range t.Columns {
		if len(c.CSV) == 0 {
			have[c.ID] = true
		}
		for _, n := range c.CSV {
			have[n.Name] = true
		}
	}
	for _, n := range want {
		if !have[n] {
			l.Errorf("%s has no column %s", file, n)
		}
	}
}

// Finding checks that a finding is there with a severity, or, for an empty one, that it is not.
func (l Looker) Finding(id string, want report.Severity) {
	l.Helper()
	got := report.Severity("")
	if f := FindingOf(l.Report, id); f != nil {
		got = f.Severity
	}
	if got != want {
		l.Errorf("finding %s is %q, want %q", id, got, want)
	}
}

// Sum adds up a column, the others row included.
func (l Looker) Sum(t *report.Table, column string) (sum float64) {
	l.Helper()
	i := l.column(t, column)
	for _, r := range t.Rows {
		v, _ := r[i].Num()
		sum += v
	}
	return sum
}

func (l Looker) column(t *report.Table, id string) int {
	l.Helper()
	i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
	if i < 0 {
		l.Fatalf("table %s has no column %s", t.ID, id)
	}
	return i
}

// Row checks cells of a row; they come as column, JSON pairs.
func (l Looker) Row(t *report.Table, row int, pairs ...string) {
	l.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if got := l.Cell(t, row, pairs[i]); got != pairs[i+1] {
			l.Errorf("table %s row %d: %s = %s, want %s", t.ID, row, pairs[i], got, pairs[i+1])
		}
	}
}

// Cell is a cell as JSON, by row and column id.
func (l Looker) Cell(t *report.Table, row int, column string) string {
	l.Helper()
	i := l.column(t, column)
	if row >= len(t.Rows) {
		l.Fatalf("table %s has no row %d", t.ID, row)
	}
	b, err := t.Rows[row][i].MarshalJSON()
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

func (l Looker) Table(section, id string) *report.Table {
	l.Helper()
	return FindTable(l, l.Report, section, id)
}

func (l Looker) Status(id string, want report.Status) {
	l.Helper()
	WantStatus(l, l.Report, id, want, "")
}

func (l Looker) Section(id string) *report.Section {
	l.Helper()
	return SectionOf(l, l.Report, id)
}

// Looker looks things up in a report.
type Looker struct {
	testing.TB
	*report.Report
}

const Us = 1_000

// RealReport analyses one of the real traces, or skips where they are not there.
func RealReport(t *testing.T, name string) *report.Report {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no shared/traces: the real traces are not part of the project")
	}
	return AnalyseFile(t, path, analyze.Options{}).Report
}

func Near(got, want, within float64) bool {
	return math.Abs(got-want) <= within+1e-9*math.Abs(want)
}

// Summary compares a distribution with the row's, whose cells are rounded: within is half of their last digit.
func (row OracleRow) Summary(t *testing.T, what string, s *report.Summary, unit string, scale, within float64) {
	t.Helper()
	sd := 0.0
	if s.N > 1 {
		sd = s.Stddev * math.Sqrt(float64(s.N)/float64(s.N-1)) // NVIDIA's is the sample's
	}
	for column, got := range map[string]float64{"Avg": s.Mean, "Med": s.P50, "Min": s.Min, "Max": s.Max, "StdDev": sd} {
		if want := row.Num(column + unit); !Near(got/scale, want, within) {
			t.Errorf("%s: %s = %v, NVIDIA's %v", what, column, got/scale, want)
		}
	}
}

// Num is a cell as a number; NVIDIA leaves cells empty that have none.
func (row OracleRow) Num(column string) float64 {
	v, err := strconv.ParseFloat(row[column], 64)
	if err != nil {
		return 0
	}
	return v
}

func (row OracleRow) Text(column string) string { return row[column] }

// OracleRow is one row of NVIDIA's CSV, by column name.
type OracleRow map[string]string

// EachOracle runs a test for every real trace of which NVIDIA's own summary is there.
func EachOracle(t *testing.T, summary string, test func(t *testing.T, r *report.Report, rows []OracleRow)) {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..", "shared")
	files, err := filepath.Glob(filepath.Join(root, "oracle", "*", summary+".csv"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("no shared/oracle: the real traces are not part of the project")
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(root, "traces", name+".sqlite")
			test(t, AnalyseFile(t, path, analyze.Options{Top: 1000}).Report, readOracle(t, file))
		})
	}
}

// FindTable is a table of a section.
func FindTable(tb testing.TB, r *report.Report, section, table string) *report.Table {
	tb.Helper()
	found := lists.Find(SectionOf(tb, r, section).Tables, func(t *report.Table) bool { return t.ID == table })
	if found == nil {
		tb.Fatalf("section %s has no table %s", section, table)
	}
	return found
}

// Remark is the severity by which tests ask for a remark, which has none.
const Remark report.Severity = "remark"

// FindingOf is a finding, or a remark as one of severity [Remark]; nil where the report has neither.
func FindingOf(r *report.Report, id string) *report.Finding {
	if f := lists.Find(r.Findings, func(f *report.Finding) bool { return f.ID == id }); f != nil {
		return f
	}
	for _, m := range r.Remarks {
		if m.ID == id {
			return &report.Finding{ID: id, Severity: Remark, Title: m.Title, Place: m.Place, Evidence: m.Evidence, Advice: m.Advice, Doc: m.Doc}
		}
	}
	return nil
}

func WantStatus(tb testing.TB, r *report.Report, id string, status report.Status, reason string) {
	tb.Helper()
	if s := SectionOf(tb, r, id); s.Status != status || !strings.Contains(s.Reason, reason) {
		tb.Errorf("%s is %s (%s), want %s (…%s…)", id, s.Status, s.Reason, status, reason)
	}
}

func SectionOf(tb testing.TB, r *report.Report, id string) *report.Section {
	tb.Helper()
	found := lists.Find(r.Sections, func(s *report.Section) bool { return s.ID == id })
	if found == nil {
		tb.Fatalf("no section %s", id)
	}
	return found
}

func ShownValue(m *report.Metric) any {
	switch {
	case m == nil:
		return "missing"
	case m.Value == nil:
		return "null"
	}
	return *m.Value
}

const RuntimeTable = "CUPTI_ACTIVITY_KIND_RUNTIME"

func readOracle(t *testing.T, file string) []OracleRow {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []OracleRow
	for _, line := range lines[1:] {
		row := OracleRow{}
		for i, v := range line {
			row[lines[0][i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}

// Warning is the text of the first warning with a code, or empty.
func Warning(r *report.Report, code string) string {
	w := lists.Find(r.Warnings, func(w *report.Warning) bool { return w.Code == code })
	return report.ValueOr(w, report.Warning{}).Text
}
