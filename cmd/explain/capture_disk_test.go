//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// TestFullDiskAtEveryStage captures on file systems that are full at one stage after the other: before the folder can be, while nsys writes,
// while it imports and exports, while explain writes what it knows, and the report. It is said each time, no process is left and nothing is
// half there; where something was recorded it is kept, and the last one has room for all.
func TestFullDiskAtEveryStage(t *testing.T) {
	serving, err := filepath.Abs("../../testdata/serving.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"program": {"--", "true", serving},
		"server":  {"vllm", "--model", "m", "--num-requests", "4", "--warmup-requests", "0", "--grace", "300ms", "--", serving},
		"import":  {"--", "true", serving},
	} {
		var lost, kept, done int
		for _, size := range []string{"4k", "8k", "16k", "32k", "512k", "996k", "1100k", "1400k", "24m"} {
			t.Run(name+" "+size, func(t *testing.T) {
				dir, temp := t.TempDir(), t.TempDir()
				mountSmall(t, dir, size)
				env := []string{"TMPDIR=" + temp}
				if name == "import" {
					env = append(env, "NSYS_STANDIN=fault=qdstrm")
				}
				line := []string{"capture", "--out", "out"}
				if args[0] == "vllm" {
					line = []string{"capture", "vllm", "--out", "out"}
				}
				c := explainProcess(t, dir, env, append(line, args[min(len(line)-3, 1):]...)...)
				code, said := signalWhen(t, c, 0, "", 0)
				if left := processesOf(dir); len(left) > 0 {
					t.Errorf("processes are left: %q", left)
				}
				if scratch, _ := filepath.Glob(filepath.Join(dir, ".explain-*")); len(scratch) > 0 {
					t.Errorf("scratch folders are left: %q", scratch)
				}
				_, err := os.Stat(filepath.Join(dir, "out"))
				recorded := len(capture.Recordings(filepath.Join(dir, "out.failed"))) > 0
				switch {
				case code == exitOK && err == nil && !recorded:
					done++
				case code != exitInput || !strings.Contains(said, "the disk is full") || strings.Count(said, "explain: ") != 1 || err == nil:
					t.Errorf("exit code %d, the folder is there: %v; said:\n%s", code, err == nil, said)
				case recorded:
					kept++
				default:
					lost++
				}
			})
		}
		if lost+kept+done > 0 && (lost == 0 || kept == 0 || done == 0) {
			t.Errorf("%s: nothing recorded %d times, kept %d times, done %d times: not every stage was met", name, lost, kept, done)
		}
		t.Logf("%s: nothing recorded %d times, kept %d times, done %d times", name, lost, kept, done)
	}
}
