package analyze_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func scrubbed(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if _, err := analyze.Scrub(context.Background(), path, out, analyze.Shown{}, analyze.Options{}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestScrubKeepsEveryNumber: every trace analyses to the same report before and after, but for what says which file it was, and
// that there were tables which no report reads.
func TestScrubKeepsEveryNumber(t *testing.T) {
	traces, err := filepath.Glob("../testdata/*.sqlite")
	if err != nil || len(traces) == 0 {
		t.Fatalf("no traces in testdata (%v)", err)
	}
	for _, trace := range append(traces, longtest.Captures(t)...) {
		t.Run(strings.TrimSuffix(filepath.Base(trace), ".sqlite"), func(t *testing.T) {
			t.Parallel()
			var text [2]string
			for i, path := range []string{trace, scrubbed(t, trace)} {
				res, err := analyze.Run(context.Background(), path, analyze.Options{})
				if err != nil {
					t.Fatal(err)
				}
				res.Report.Trace.Name, res.Report.Trace.Bytes = "", 0
				forgetUnread(res.Report)
				var b bytes.Buffer
				if err := report.Write(&b, res.Report); err != nil {
					t.Fatal(err)
				}
				text[i] = b.String()
			}
			if d := cmp.Diff(strings.Split(text[0], "\n"), strings.Split(text[1], "\n")); d != "" {
				t.Errorf("-before +after:\n%.4000s", d)
			}
		})
	}
}

func forgetUnread(r *report.Report) {
	for i := range r.Sections {
		for k := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[k]
			if t.ID == "tables" {
				t.Rows = slices.DeleteFunc(t.Rows, func(row []report.Cell) bool { return row[1].Equal(report.S("not read")) })
				t.TotalRows = int64(len(t.Rows))
			}
		}
	}
}

// TestScrubLeavesSecretsBehind: none of the texts planted in an export is in the bytes of its copy.
func TestScrubLeavesSecretsBehind(t *testing.T) {
	for _, schema := range longtest.Some([]string{"3.0.0", "3.16.1", "3.25.0"}, 2) {
		b := tracetest.Serving(tracetest.Schema(schema))
		planted := b.Canaries(func(table, column string) string { return fmt.Sprintf("SECRET-%s-%s-hunter2", table, column) })
		out, err := os.ReadFile(scrubbed(t, b.WriteTB(t)))
		if err != nil {
			t.Fatal(err)
		}
		if len(planted) < 5 {
			t.Fatalf("%d secrets", len(planted))
		}
		for _, c := range planted {
			if bytes.Contains(out, []byte(c.Text)) {
				t.Errorf("schema %s: %s.%s comes through", schema, c.Table, c.Column)
			}
		}
	}
}

// TestScrubOfAnotherSpelling: SQLite does not tell the case of a column's name apart, and neither does what is hidden.
func TestScrubOfAnotherSpelling(t *testing.T) {
	b := tracetest.Serving()
	b.GPU(tracetest.GPU{ID: 0, UUID: "SECRET-hunter2"})
	path := b.WriteTB(t)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("alter table TARGET_INFO_GPU rename column uuid to UUID"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(scrubbed(t, path))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(out, []byte("hunter2")) || !bytes.Contains(out, []byte("sha256:")) {
		t.Error("the UUID of a GPU comes through")
	}
}

// TestScrubCountsWhatItLeaves by hand: against the same capture without them, a table, a column, two rows of metadata and three strings
// that nothing refers to are left behind, and one name is redacted.
func TestScrubCountsWhatItLeaves(t *testing.T) {
	dir := t.TempDir()
	plain, more := "../testdata/serving.sqlite", filepath.Join(dir, "more.sqlite")
	content, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(more, content, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", more)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []string{
		"create table DIARY(day, text)", "insert into DIARY values (1, 'a'), (2, 'b')",
		"alter table CUPTI_ACTIVITY_KIND_KERNEL add column remark",
		"insert into TARGET_INFO_SYSTEM_ENV(name, value, devStateName, nameEnum) values ('Hostname', 'h', '', 0), ('Environment', 'e', '', 0)",
		"insert into StringIds(id, value) values (900001, 'x'), (900002, 'y'), (900003, 'z')",
		"update StringIds set value = value || ' hf_abcdefghijklmnopqrst0123456789' where id = (select min(demangledName) from CUPTI_ACTIVITY_KIND_KERNEL)",
	} {
		if _, err := db.Exec(do); err != nil {
			t.Fatalf("%s: %v", do, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var done [2]analyze.Scrubbed
	for i, path := range []string{plain, more} {
		if done[i], err = analyze.Scrub(context.Background(), path, filepath.Join(dir, fmt.Sprint(i)), analyze.Shown{}, analyze.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := &done[0], &done[1]
	const kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
	if b.Tables != a.Tables || b.Rows != a.Rows || len(b.LeftTables) != len(a.LeftTables)+1 || !slices.Contains(b.LeftTables, "DIARY") ||
		!slices.Equal(b.LeftColumns[kernels], append(a.LeftColumns[kernels], "remark")) || b.LeftRows["TARGET_INFO_SYSTEM_ENV"] != a.LeftRows["TARGET_INFO_SYSTEM_ENV"]+2 || b.LeftRows["StringIds"] != a.LeftRows["StringIds"]+3 || a.Redacted != 0 || b.Redacted != 1 {
		t.Errorf("%+v, before %+v", b, a)
	}
}
