//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRealNsys captures with the nsys that is installed here ($NSYS, or on PATH). It needs no GPU: what it wants is that the flags are
// accepted, that a window opens and shuts, that a raw stream is imported, and that nothing is left running.
func TestRealNsys(t *testing.T) {
	name := os.Getenv("NSYS")
	if name == "" {
		name = "nsys"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("nsys is not installed here")
	}
	for _, x := range []struct {
		name string
		args []string
		code int
		want string // on standard error
	}{
		{"whole run", []string{"--", "sh", "-c", "sleep 0.2"}, 0, "Exporting"},
		{"window", []string{"--ready", "flag", "--duration", "500ms", "--", "sh", "-c", "sleep 1; touch flag; while :; do sleep 0.1; done"}, 0, "Exporting"},
		{"duration", []string{"--duration", "1s", "--", "sleep", "30"}, 0, "Exporting"},
		{"no such range", []string{"--nvtx", "decode", "--", "sleep", "0.1"}, 3, "explain: nothing was recorded"},
		{"program fails", []string{"--", "sh", "-c", "exit 7"}, 3, "the program failed"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			c := explainProcess(t, dir, nil, append([]string{"capture", "--nsys", path, "--out", "out", "--no-report"}, x.args...)...)
			c.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
			var errs strings.Builder
			c.Stderr = &errs
			if code := exitOf(t, c.Run()); code != x.code || !strings.Contains(errs.String(), x.want) {
				t.Fatalf("exit code %d, want %d; said:\n%s", code, x.code, errs.String())
			}
			checkLeft(t, c, dir, x.code == 0)
			if x.code == 0 {
				if info, err := os.Stat(filepath.Join(dir, "out", "trace.sqlite")); err != nil || info.Size() == 0 {
					t.Errorf("no trace: %v", err)
				}
			}
		})
	}
}
