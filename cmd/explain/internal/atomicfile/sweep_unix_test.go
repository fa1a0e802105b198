//go:build linux || darwin

package atomicfile

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// TestScratchOfOthersStays: only what a process of this place left, which is gone, is removed. The lock of a folder
// that another machine writes cannot be seen here: NFS and Lustre lock folders on each machine for itself.
func TestScratchOfOthersStays(t *testing.T) {
	dir := t.TempDir()
	killed := exec.Command("true")
	if err := killed.Run(); err != nil {
		t.Skip(err)
	}
	stays := []string{scratchPrefix + "0123456789abcdef-" + strconv.Itoa(killed.Process.Pid) + "-X", scratchPrefix + "X"}
	for _, name := range append(stays, scratchOf(os.Getpid())+"X", scratchOf(killed.Process.Pid)+"X") {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := File(filepath.Join(dir, "a.txt"), Any, text("a")); err != nil {
		t.Fatal(err)
	}
	for _, name := range append(stays, scratchOf(os.Getpid())+"X") {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, scratchOf(killed.Process.Pid)+"X")); err == nil {
		t.Error("what a killed explain left is there")
	}
}
