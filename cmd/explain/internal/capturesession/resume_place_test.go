package capturesession

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// TestResumeReplacesNoFile: a file where the resumed capture belongs is not removed for it.
func TestResumeReplacesNoFile(t *testing.T) {
	dir := t.TempDir()
	out, failed := filepath.Join(dir, "out"), filepath.Join(dir, "out.failed")
	if err := os.WriteFile(out, []byte("of the user"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(failed, 0o755); err != nil {
		t.Fatal(err)
	}
	if to, err := new(Session).resumeTo(failed, "out", []string{"."}); err == nil {
		t.Errorf("resumes to %s", to)
	}
	if err := moveResumed(failed, out, []string{"."}); err == nil {
		t.Error("the file was replaced")
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "of the user" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestStatusStaysUntilTheMove: where the capture cannot be moved, here into a folder of itself, the next attempt still
// knows what the capture was to be.
func TestStatusStaysUntilTheMove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out.failed")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := (&capture.Status{Out: "out", Unit: "none", NoReport: true}).Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := moveResumed(dir, filepath.Join(dir, "sub", "out"), []string{"."}); err == nil {
		t.Error("a folder was moved into itself")
	}
	if s, err := capture.ReadStatus(dir); err != nil || s.Unit != "none" || !s.NoReport {
		t.Errorf("%+v, %v", s, err)
	}
	out := filepath.Join(filepath.Dir(dir), "out")
	if err := moveResumed(dir, out, []string{"."}); err != nil {
		t.Fatal(err)
	}
	if _, err := capture.ReadStatus(out); !os.IsNotExist(err) {
		t.Errorf("a finished capture has a status: %v", err)
	}
}

// TestResumeMakesTheReportThatWasAskedFor: with the maps of the capture's command line, which may have been relative.
func TestResumeMakesTheReportThatWasAskedFor(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"phases.json": `{"prefill": ["prompt"]}`, "kernels.csv": "pattern,category\nmine,gemm\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	captured := Options{Out: "out", Analysis: cmdenv.AnalysisFlags{Unit: "graph", PhaseMap: "phases.json", KernelMap: "kernels.csv"}}
	dir := t.TempDir()
	if err := captured.status("").Write(dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	status, err := capture.ReadStatus(dir)
	if err != nil {
		t.Fatal(err)
	}
	resumed := new(Options)
	resumed.recall(status)
	opt, err := resumed.Analysis.Options(&cmdenv.Env{Getenv: func(string) string { return "" }}, 1)
	if err != nil || opt.Unit != "graph" || opt.Phases == nil || opt.Kernels == nil {
		t.Errorf("%v: %+v", err, opt)
	}
	if err := os.Remove(status.PhaseMap); err != nil {
		t.Fatal(err)
	}
	bare := &Options{NoReport: true} // the way out for the recording alone
	bare.recall(status)
	if opt, err := bare.Analysis.Options(&cmdenv.Env{Getenv: func(string) string { return "" }}, 1); err != nil {
		t.Errorf("%v: %+v", err, opt)
	}
}

// TestTheNextCommandCanBePasted: also where the folder has a blank in its name.
func TestTheNextCommandCanBePasted(t *testing.T) {
	var out bytes.Buffer
	s := Session{Env: &cmdenv.Env{Out: &out}, Want: Options{Out: "my out"}}
	s.Want.Repeat = 2
	if err := s.tell(nil); err != nil || !strings.Contains(out.String(), " init 'my out/run-1' 'my out/run-2' --noise") {
		t.Errorf("%v: %s", err, &out)
	}
}
