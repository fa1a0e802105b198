package input

import (
	"os"
	"path/filepath"
	"testing"
)

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
