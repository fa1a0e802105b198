package input

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
)

// A folder of evidence, and JSON files that are evidence, are analysed; other folders and JSON files are mistakes.
func TestFind(t *testing.T) {
	evidence := filepath.FromSlash("../../../../testdata/evidence/")
	for path, want := range map[string]Kind{
		evidence + "session": Trace, filepath.Join(evidence, "session", "moe_expert_tracking", "moe_summary.json"): Trace,
		filepath.Join(evidence, "perfopt", "metrics.json"): Trace, filepath.FromSlash("../../../../examples/serving"): Report, filepath.FromSlash("../../../../examples/serving/summary.json"): Summary,
	} {
		if in, err := Find(path); err != nil || in.Kind != want {
			t.Errorf("%s: %s (%v), want %s", path, in.Kind, err, want)
		}
	}
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "a.json"), []byte(`{"a": 1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{empty, filepath.Join(empty, "a.json")} {
		if in, err := Find(path); err == nil {
			t.Errorf("%s: taken for a %s", path, in.Kind)
		}
	}
}

// An address is refused where only files are read, and no error shows its query. It is no glob either.
func TestAddressesAreNoFiles(t *testing.T) {
	const address = "https://store.example/runs/a,b*.sqlite?sig=s3cret"
	if _, err := Find(address); err == nil || !strings.Contains(err.Error(), "https://store.example/runs/a,b*.sqlite is an address: download it first") ||
		strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
	if list, err := Expand("merge", []string{address}); err != nil || len(list) != 1 || list[0] != address {
		t.Errorf("%q, %v", list, err)
	}
	for _, path := range []string{"-", "a.sqlite", "https:/a.sqlite"} {
		if err := Local(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Traces of one name are Named by the shortest end of their paths that tells them apart; a report.json goes by the trace it
// is of. A name that nothing shares, and one file Named twice, stay.
func TestNamesTellFilesApart(t *testing.T) {
	for _, c := range []struct{ paths, traces, want []string }{
		{[]string{"/data/run-1/trace.sqlite", "/data/run-9/trace.sqlite"}, []string{"trace.sqlite", "trace.sqlite"},
			[]string{"run-1/trace.sqlite", "run-9/trace.sqlite"}},
		{[]string{"a/x/t.sqlite", "b/x/t.sqlite", "b/y/t.sqlite"}, []string{"t.sqlite", "t.sqlite", "t.sqlite"},
			[]string{"a/x/t.sqlite", "b/x/t.sqlite", "y/t.sqlite"}},
		{[]string{"main/report.json", "head/t.sqlite"}, []string{"t.sqlite", "t.sqlite"}, []string{"main/t.sqlite", "head/t.sqlite"}},
		{[]string{"a.json", "b.json"}, []string{"t.sqlite", "t.sqlite"}, []string{"a.json", "b.json"}},
		{[]string{"a/base.sqlite", "a/head.sqlite"}, []string{"base.sqlite", "head.sqlite"}, []string{"base.sqlite", "head.sqlite"}},
		{[]string{"a/t.sqlite", "a/t.sqlite"}, []string{"t.sqlite", "t.sqlite"}, []string{"t.sqlite", "t.sqlite"}},
	} {
		var inputs []File
		var reports []*report.Report
		for i := range c.paths {
			inputs = append(inputs, File{Path: filepath.FromSlash(c.paths[i])})
			reports = append(reports, &report.Report{Trace: report.Provenance{Name: c.traces[i]}})
		}
		for i, r := range Named(inputs, reports) {
			if r.Trace.Name != c.want[i] || reports[i].Trace.Name != c.traces[i] {
				t.Errorf("%v: %q, want %q", c.paths, r.Trace.Name, c.want[i])
			}
		}
	}
}

// Nobody writes to the pipe, and opening it would wait for ever.
func TestAPipeIsNotOpened(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.sqlite")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip(err)
	}
	if in, err := Find(path); err != nil || in != (File{path, Trace}) {
		t.Errorf("%+v, %v", in, err)
	}
}

func TestAsTyped(t *testing.T) {
	err := fmt.Errorf("base: %w", &analyze.InputError{File: "trace.sqlite", What: "does not exist"})
	got := AsTyped(err, "run-1/trace.sqlite")
	if !strings.Contains(errors.Unwrap(got).Error(), "run-1/trace.sqlite: does not exist") {
		t.Errorf("%v", got)
	}
	got = AsTyped(&analyze.InputError{File: "inner.sqlite", What: "is cut"}, "run-1/trace.zip")
	if !strings.HasPrefix(got.Error(), "inner.sqlite: ") {
		t.Errorf("%v", got)
	}
}

func TestPlain(t *testing.T) {
	_, missing := os.ReadFile("no/such.yml")
	_, folder := os.ReadFile(t.TempDir())
	for want, err := range map[string]error{
		"policy: no/such.yml: does not exist; check the path": fmt.Errorf("policy: %w", missing),
		": is a folder; name a file":                          folder,
		"another":                                             errors.New("another"),
	} {
		if got := Plain(err); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSpool(t *testing.T) {
	args := []string{"a.sqlite", "-"}
	remove, err := Spool(t.Context(), strings.NewReader("content"), args)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(args[1])
	if err != nil || string(b) != "content" || filepath.Base(args[1]) != "stdin" || args[0] != "a.sqlite" {
		t.Errorf("%q, %v, %v", b, err, args)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(args[1])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	for want, args := range map[string][]string{"named twice": {"-", "-"}, "nothing came in": {"-"}} {
		remove, err := Spool(t.Context(), strings.NewReader(""), args)
		remove()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// Several captures in a folder are a run; one is not, nor is the folder of a report or of a capture.
func TestRunIn(t *testing.T) {
	for _, x := range []struct {
		files []string
		want  int
	}{
		{[]string{"r0.sqlite", "r1.sqlite.zst", "notes.txt"}, 2},
		{[]string{"r0.sqlite"}, 0},
		{[]string{"r0.sqlite", "r1.sqlite", "report.json"}, 0},
		{[]string{"r0.sqlite", CapturedTrace}, 0},
		{[]string{"r0.sqlite", "r1.sqlite", "a.partial", "b.partial", "c.partial"}, 3},
		{[]string{"r0.nsys-rep", "r1.nsys-rep", "r0.sqlite"}, 2},
	} {
		dir := t.TempDir()
		for _, name := range x.files {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := RunIn(dir); len(got) != x.want {
			t.Errorf("%v: %v, want %d", x.files, got, x.want)
		}
	}
	if got := RunIn(filepath.Join(t.TempDir(), "none")); got != nil {
		t.Errorf("a folder that is not there: %v", got)
	}
}
