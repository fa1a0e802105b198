package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"
)

// TestDemoCapturesAreThoseOfTestdata: the program carries the two files, packed; -update packs them anew.
func TestDemoCapturesAreThoseOfTestdata(t *testing.T) {
	for _, name := range []string{"base.sqlite", "head.sqlite"} {
		want := read(t, filepath.Join("../../testdata", name))
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
		got, err := demoCapture(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("demo/%s.gz is not testdata/%s: go test ./cmd/explain -run TestDemoCaptures -update", name, name)
		}
	}
}
