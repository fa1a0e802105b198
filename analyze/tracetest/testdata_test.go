package tracetest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the recipes to testdata")

// The committed traces in testdata are what the recipes give. A newer SQLite may lay a file out differently, so bytes
// that differ are not an error where the content is the same.
func TestTestdata(t *testing.T) {
	for _, r := range recipes {
		path := filepath.Join(moduleRoot(t), "testdata", r.file+".sqlite")
		if *update {
			if err := r.build().Write(path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		committed, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("%v (go test ./analyze/tracetest -run TestTestdata -update writes it)", err)
			continue
		}
		fresh := r.build().WriteTB(t)
		made, err := os.ReadFile(fresh)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(committed, made) {
			continue
		}
		copied := filepath.Join(t.TempDir(), "committed.sqlite")
		if err := os.WriteFile(copied, committed, 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(dump(t, copied), dump(t, fresh)); diff != "" {
			t.Errorf("%s is not what its recipe gives (-committed +recipe): go test ./analyze/tracetest -run TestTestdata -update\n%s", r.file, diff)
		}
	}
}
