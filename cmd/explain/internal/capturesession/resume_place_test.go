package capturesession

import (
	"os"
	"path/filepath"
	"testing"
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
