//go:build linux

package capturesession_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestDecisionsOutliveAFailedProgram: a program that fails after its capture ends the call with an error, and what was
// decided until then is written all the same.
func TestDecisionsOutliveAFailedProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	base, err := filepath.Abs("../../../../testdata/base.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	c := explaintest.Process(t, dir, nil, "capture", "--out", "out", "--pair", "--until-decided", "true "+base, "false "+base)
	said, err := c.CombinedOutput()
	if err == nil || c.ProcessState.ExitCode() != 3 {
		t.Errorf("%v: %s", err, said)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out", "comparison", "decisions.json"))
	if err != nil || !strings.Contains(string(b), `"answer": "within"`) {
		t.Errorf("%v, %s: %s", err, b, said)
	}
}
