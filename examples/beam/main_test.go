package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

var ranks = flag.Int("ranks", 24, "ranks of the larger run")

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	os.Exit(m.Run())
}

// Two runs through Beam's local runner: the bytes of each are those of one process that merges its captures.
func TestBeamMergesToTheSameBytes(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	var lines []string
	want := map[string][]byte{}
	for run, n := range map[string]int{"nightly": *ranks, "small": 3} {
		var alone [][]byte
		for _, r := range (tracetest.Fleet{Ranks: n, PerHost: 8, Steps: 4, Jitter: 20_000, Offset: 1e9, Drift: 50e-6, Seed: uint64(n)}).Run() {
			path := filepath.Join(dir, fmt.Sprintf("%s-rank%d.sqlite", run, r.Rank))
			if err := r.Build(tracetest.Schema("3.25.0")).Write(path); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, run+"\t"+path)
			if err := makePartial(t.Context(), path, func(_ string, p []byte) { alone = append(alone, p) }); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if want[run], err = unionOf(t.Context(), alone); err != nil {
			t.Fatal(err)
		}
	}
	p, s := beam.NewPipelineWithRoot()
	mergeRuns(s, lines, out)
	if _, err := beam.Run(context.Background(), "prism", p); err != nil {
		t.Fatal(err)
	}
	for run, bytesOfOne := range want {
		got, err := os.ReadFile(filepath.Join(out, run+".partial"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, bytesOfOne) {
			t.Errorf("%s: %d bytes, and one process makes %d others", run, len(got), len(bytesOfOne))
		}
	}
}

// A run that names no file is refused before anything is read.
func TestBeamRefusesARunThatIsAPath(t *testing.T) {
	if err := makePartial(t.Context(), "../up\trank0.sqlite", nil); err == nil {
		t.Error("a run with a slash was taken")
	}
}
