package render_test

import (
	"bytes"
	"encoding/csv"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with testdata/name, or writes it.
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

func csvOf(t testing.TB, tab report.Table) string {
	t.Helper()
	var b bytes.Buffer
	if err := render.CSV(&b, &tab); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var kernelColumns = []report.Column{
	{ID: "kernel_name", Title: "Kernel", Kind: report.Name},
	{ID: "device", Title: "GPU", Kind: report.Int, CSV: []report.CSVCol{{Name: "device_id"}}},
	{ID: "total", Title: "Total", Kind: report.Int, Unit: report.Nanoseconds, CSV: []report.CSVCol{{Name: "total_time_ns"}, {Name: "total_time_ms", Exp10: -6}}},
	{ID: "mean", Title: "Mean", Kind: report.Float, Unit: report.Nanoseconds, CSV: []report.CSVCol{{Name: "avg_duration_us", Exp10: -3}}},
	{ID: "share", Title: "Share", Kind: report.Float, Unit: report.Ratio, CSV: []report.CSVCol{{Name: "pct_total_kernel_time", Exp10: 2}}},
	{ID: "tiny", Title: "Tiny", Kind: report.Bool},
	{ID: "note", Title: "Note", Kind: report.Text},
}

func TestCSV(t *testing.T) {
	golden(t, "kernels.csv", []byte(csvOf(t, report.Table{
		Columns: kernelColumns,
		Rows: [][]report.Cell{
			{report.S("gemm<float, 4>(T1 \"q\")"), report.I(0), report.I(124533600), report.F(1245.336), report.F(0.138), report.B(true), report.S("-5 % of something")},
			{report.S("=HYPERLINK(\"http://x\")"), report.Null, report.I(7), report.F(0.5), report.F(1e-9), report.B(false), report.Null},
			{report.S("-minus"), report.I(1), report.I(124000000), report.I(3), report.F(1), report.B(false), report.S("")},
			{report.S("\tb\r\nc"), report.I(1), report.I(-1500), report.Null, report.F(0), report.B(false), report.S("a\nb")},
			{report.S("::error::boom"), report.I(1), report.I(9007199254740993), report.F(1e21), report.F(0.5), report.B(false), report.S("")},
			{report.S("\u202egnp\x1b[31m"), report.I(1), report.I(0), report.F(0), report.F(0), report.B(false), report.S("")},
			{report.S("others (12 kernels)"), report.Null, report.I(10), report.Null, report.F(0.01), report.Null, report.Null},
		},
		TotalRows: 18, Others: true,
	})))
}

func TestCSVHasAHeaderWithoutRows(t *testing.T) {
	want := "kernel_name,device_id,total_time_ns,total_time_ms,avg_duration_us,pct_total_kernel_time,tiny,note\n"
	if got := csvOf(t, report.Table{Columns: kernelColumns}); got != want {
		t.Errorf("%q", got)
	}
	if got := csvOf(t, report.Table{}); got != "" {
		t.Errorf("%q", got)
	}
}

func TestCSVRowWithMissingCells(t *testing.T) {
	got := csvOf(t, report.Table{Columns: kernelColumns[:2], Rows: [][]report.Cell{{report.S("a")}, {}}})
	if got != "kernel_name,device_id\na,\n,\n" {
		t.Errorf("%q", got)
	}
}

func checkCSV(t *testing.T, name, text string) {
	t.Helper()
	columns := []report.Column{{ID: "kernel_name", Kind: report.Name}, {ID: "note", Kind: report.Text}, {ID: "n", Kind: report.Int}}
	for _, cols := range [][]report.Column{columns, columns[:1]} {
		row := []report.Cell{report.S(name), report.S(text), report.I(1)}[:len(cols)]
		out := csvOf(t, report.Table{Columns: cols, Rows: [][]report.Cell{row, row}})
		records, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatalf("%v in %q", err, out)
		}
		if len(records) != 3 {
			t.Fatalf("%d records in %q", len(records), out)
		}
		field := records[1][0]
		want := render.Visible(name)
		if field != want && field != "'"+want {
			t.Fatalf("%q is read back as %q", name, field)
		}
		if field == want && want != "" && strings.ContainsRune("=+-@＝＋－＠", []rune(want)[0]) {
			t.Fatalf("%q is a formula", field)
		}
		if len(cols) == 3 && (records[1][1] != render.Visible(text) || records[1][2] != "1") {
			t.Fatalf("%q is read back as %q", text, records[1])
		}
		for _, r := range out {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("%q in the output", r)
			}
		}
	}
}

func TestHostileTextInCSV(t *testing.T) {
	for _, name := range hostile {
		for _, text := range hostile {
			checkCSV(t, name, text)
		}
	}
}

func FuzzCSV(f *testing.F) {
	for i, name := range hostile {
		f.Add(name, hostile[(i*7+3)%len(hostile)])
	}
	f.Fuzz(checkCSV)
}

func TestNamesAreNoFormulas(t *testing.T) {
	for text, want := range map[string]string{"=1+1": "'=1+1", "@SUM": "'@SUM", "-x": "'-x", "kernel=a": "kernel=a", "": "", "::error": "'::error", "＝1": "'＝1"} {
		if got := render.CSVName(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
