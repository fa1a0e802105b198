package trace

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// FuzzOpen damages a sound trace: each five bytes of the input are an offset and the byte that goes there, and a first
// byte of 1 cuts the file instead. Whatever comes of it is a trace, the same by pages and by SQLite, or an *InputError
// from both, or a page in which SQLite's own check finds a fault, within bounded time. $EXPLAIN_FUZZ_TRACE names another trace to damage.
func FuzzOpen(f *testing.F) {
	base := os.Getenv("EXPLAIN_FUZZ_TRACE")
	if base == "" {
		base = tracetest.Tiny(tracetest.Schema(tracetest.OldestSchema)).WriteTB(f)
	}
	plain, err := os.ReadFile(base)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{nil, {0, 0, 0, 18, 2}, {0, 0, 0, 28, 255}, {0, 0, 0, 100, 5}, {0, 0, 16, 0, 13, 0, 16, 3, 255}, {1, 0, 16, 0, 0}} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, edits []byte) {
		b := append([]byte{}, plain...)
		if len(edits) > 4 && edits[0] == 1 {
			b = b[:int(binary.BigEndian.Uint32(edits[1:]))%len(b)]
		}
		for ; len(edits) >= 5; edits = edits[5:] {
			if len(b) > 0 {
				b[int(binary.BigEndian.Uint32(edits)>>1)%len(b)] = edits[4]
			}
		}
		path := filepath.Join(dir, "fuzzed.sqlite")
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		tr, err := Open(ctx, path, Options{})
		if err != nil && strings.Contains(err.Error(), "is damaged: page ") && checked(t, path) != "ok" {
			return // SQLite reads what its own check refuses
		}
		want, wantErr := reference(t, path, Options{})
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("by pages: error %v, by SQLite: %v", err, wantErr)
		}
		if err != nil {
			var input *InputError
			if !errors.As(err, &input) {
				t.Fatalf("error is no *InputError: %v", err)
			}
			return
		}
		defer want.Close()
		got, ref := contents(t, tr), contents(t, want)
		for name := range ref {
			if !equal(got[name], ref[name]) {
				t.Fatalf("%s: by pages %.2000v\nby SQLite %.2000v", name, got[name], ref[name])
			}
		}
		for i := range tr.Kernels.Len() {
			if tr.Kernels.End(i) < tr.Kernels.Start(i) || tr.Kernels.Name(i) < 0 {
				t.Fatalf("kernel %d is unsound", i)
			}
		}
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
