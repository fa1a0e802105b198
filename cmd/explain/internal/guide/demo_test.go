package guide

import (
	"bytes"
	"compress/gzip"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

var update = flag.Bool("update", false, "pack the captures of the demo anew")

// TestDemoCapturesAreThoseOfTestdata: the program carries the two files, packed; -update packs them anew.
func TestDemoCapturesAreThoseOfTestdata(t *testing.T) {
	for _, name := range []string{"base.sqlite", "head.sqlite"} {
		want := explaintest.Read(t, explaintest.Testdata(name))
		if *update {
			var packed bytes.Buffer
			wr, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := wr.Write(want); err != nil {
				t.Fatal(err)
			}
			if err := wr.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join("demo", name+".gz"), packed.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		var got bytes.Buffer
		if err := demoCapture(&got, name); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("demo/%s.gz is not testdata/%s: go test ./cmd/explain/internal/guide -update", name, name)
		}
	}
}
