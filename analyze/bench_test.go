package analyze

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// benchTrace is the trace that benchmarks run on: $EXPLAIN_BENCH_TRACE, or the synthetic serving trace.
func benchTrace(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("EXPLAIN_BENCH_TRACE"); path != "" {
		return path
	}
	return filepath.FromSlash("../testdata/serving.sqlite")
}

func benchBytes(b *testing.B, path string) {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	b.ReportAllocs()
}

// BenchmarkRun is the whole analysis, from the file to the report.
func BenchmarkRun(b *testing.B) {
	path := benchTrace(b)
	benchBytes(b, path)
	for b.Loop() {
		if _, err := Run(context.Background(), path, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoad is opening the file and loading its events into columns.
func BenchmarkLoad(b *testing.B) {
	path := benchTrace(b)
	tags, err := newTagger(&Options{})
	if err != nil {
		b.Fatal(err)
	}
	benchBytes(b, path)
	for b.Loop() {
		t, err := trace.Open(context.Background(), path, trace.Options{Tag: tags.tag, CoarseTag: tags.coarse()})
		if err != nil {
			b.Fatal(err)
		}
		if err := t.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPrepare is what the sections share: attribution, timeline, unit of work.
func BenchmarkPrepare(b *testing.B) {
	path := benchTrace(b)
	t, tags := benchOpen(b, path)
	benchBytes(b, path)
	for b.Loop() {
		if _, err := prepare(t, &Options{}, tags); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSection is each section by itself.
func BenchmarkSection(b *testing.B) {
	path := benchTrace(b)
	t, tags := benchOpen(b, path)
	in, err := prepare(t, &Options{}, tags)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range section.All() {
		b.Run(s.ID, func(b *testing.B) {
			benchBytes(b, path)
			for b.Loop() {
				if status := s.Compute(in); status == "error" {
					b.Fatal("the section failed")
				}
			}
		})
	}
}

func benchOpen(b *testing.B, path string) (*trace.Trace, *tagger) {
	b.Helper()
	tags, err := newTagger(&Options{})
	if err != nil {
		b.Fatal(err)
	}
	t, err := trace.Open(context.Background(), path, trace.Options{Tag: tags.tag, CoarseTag: tags.coarse()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { t.Close() })
	return t, tags
}
