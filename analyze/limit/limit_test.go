package limit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ten bytes may be read of a limit of ten, and of eleven the first ten with an error.
func TestReader(t *testing.T) {
	for n, whole := range map[int]bool{0: true, 9: true, 10: true, 11: false, 5000: false} {
		b, err := io.ReadAll(Limit{Bytes: 10}.Reader(bytes.NewReader(make([]byte, n))))
		var beyond *Error
		if whole != (err == nil) || errors.As(err, &beyond) == whole || len(b) != min(n, 10) {
			t.Errorf("%d bytes: %d read, %v", n, len(b), err)
		}
	}
}

type slow struct{}

func (slow) Read(b []byte) (int, error) { time.Sleep(time.Millisecond); return 1, nil }

func TestTime(t *testing.T) {
	begun := time.Now()
	_, err := io.ReadAll(Limit{Bytes: 1 << 40, Time: 20 * time.Millisecond}.Reader(slow{}))
	if err == nil || !strings.Contains(err.Error(), "within 20ms") || time.Since(begun) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// A packed trace may hold 64 times its size, other evidence 200 times, and both 256 MiB in any case.
func TestPacked(t *testing.T) {
	for packed, want := range map[int64]int64{1 << 10: 256 << 20, 8 << 20: 512 << 20, 1 << 30: 64 << 30} {
		if got := Packed(packed).Bytes; got != want {
			t.Errorf("%d: %d, want %d", packed, got, want)
		}
	}
	if got := Evidence.Unpacked(1 << 30).Bytes; got != Evidence.Bytes {
		t.Errorf("evidence: %d", got)
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("twelve bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := (Limit{Bytes: 12}).ReadFile(path); err != nil || string(b) != "twelve bytes" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := (Limit{Bytes: 11}).ReadFile(path); err == nil || !strings.Contains(err.Error(), "x is larger than 11 B") {
		t.Errorf("%v", err)
	}
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	if _, ok := Free(dir); !ok {
		t.Skip("this system does not say how much room there is")
	}
	if err := Room(dir, 1); err != nil {
		t.Error(err)
	}
	if err := Room(dir, 1<<62); err == nil {
		t.Error("there is room for 4 EiB")
	}
}
