//go:build unix

package atomicfile

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// A file that cannot be opened is not called somebody else's: the error is the system's, and none of usage.
func TestFileThatCannotBeRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, []byte(`{"schema":"explain.noise/1"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	over := Over{Begins: `{"schema":"explain.noise/`}
	if err := Check(path, over); err != nil {
		t.Fatal(err)
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	none := files
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	err := Check(path, over)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	var wrong usage.Error
	if !errors.Is(err, syscall.EMFILE) || errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
	if err := Check(path, Over{Own: func(string) (bool, error) { return false, syscall.EIO }}); !errors.Is(err, syscall.EIO) || errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}

// A socket is refused before any work.
func TestSocketIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	var wrong usage.Error
	if err := Check(path, Over{}); !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}
