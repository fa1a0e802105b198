//go:build linux

package capturesession_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestFullDiskAtEveryStage captures on file systems that are full at one stage after the other: before the folder can be, while nsys writes,
// while it imports and exports, while explain writes what it knows, and the report. It is said each time, no process is left and nothing is
// half there; where something was recorded it is kept, and the last one has room for all.
func TestFullDiskAtEveryStage(t *testing.T) {
	t.Parallel()
	serving := explaintest.Testdata("serving.sqlite")
	for name, args := range map[string][]string{
		"program": {"capture", "--out", "out", "--", "true", serving},
		"server":  {"capture", "vllm", "--out", "out", "--model", "m", "--num-requests", "4", "--warmup-requests", "0", "--grace", "300ms", "--", serving},
		"import":  {"capture", "--out", "out", "--", "true", serving},
	} {
		var lost, kept, done atomic.Int32
		t.Run(name, func(t *testing.T) {
			for _, size := range longtest.Some([]string{"4k", "8k", "16k", "32k", "996k", "512k", "1100k", "1400k", "24m"}, 3) {
				t.Run(size, func(t *testing.T) {
					t.Parallel()
					dir, temp := t.TempDir(), t.TempDir()
					mountSmall(t, dir, size)
					env := []string{"TMPDIR=" + temp}
					if name == "import" {
						env = append(env, "NSYS_STANDIN=fault=qdstrm")
					}
					c := explaintest.Process(t, dir, env, args...)
					code, said := signalWhen(t, c, 0, "", 0)
					if left := processesOf(dir); len(left) > 0 {
						t.Errorf("processes are left: %v", left)
					}
					if scratch, _ := filepath.Glob(filepath.Join(dir, ".explain-*")); len(scratch) > 0 {
						t.Errorf("scratch folders are left: %q", scratch)
					}
					_, err := os.Stat(filepath.Join(dir, "out"))
					recorded := len(capture.Recordings(filepath.Join(dir, "out.failed"))) > 0
					switch {
					case code == cmdenv.OK && err == nil && !recorded:
						done.Add(1)
					case code != cmdenv.Input || !strings.Contains(said, "the disk is full") || strings.Count(said, "explain: ") != 1 || err == nil:
						t.Errorf("exit code %d, the folder is there: %v; said:\n%s", code, err == nil, said)
					case recorded:
						kept.Add(1)
					default:
						lost.Add(1)
					}
				})
			}
		})
		l, k, d := lost.Load(), kept.Load(), done.Load()
		if l+k+d > 0 && (l == 0 || k == 0 || d == 0) {
			t.Errorf("%s: nothing recorded %d times, kept %d times, done %d times: not every stage was met", name, l, k, d)
		}
		t.Logf("%s: nothing recorded %d times, kept %d times, done %d times", name, l, k, d)
	}
}
