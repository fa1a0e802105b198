package analyze

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/analyze/tracetest"
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
		if _, _, err := prepare(context.Background(), t, &Options{}, tags); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAttribute is each part of what the sections share, by itself.
func BenchmarkAttribute(b *testing.B) {
	path := benchTrace(b)
	t, tags := benchOpen(b, path)
	whole, _ := benchOpen(b, path) // prepare gives back the columns that only joining reads
	in, _, err := prepare(context.Background(), t, &Options{}, tags)
	if err != nil {
		b.Fatal(err)
	}
	isComm := make([]bool, len(in.Kinds))
	for n := range isComm {
		isComm[n] = in.Kinds[n].Comm
	}
	for _, part := range []struct {
		name string
		work func()
	}{
		{"join", func() { timeline.Join(whole) }},
		{"contexts", func() { timeline.NewContexts(t) }},
		{"timeline", func() { timeline.New(t, in.Calls, in.Span, isComm) }},
		{"ranges", func() { timeline.Attribute(t, in.Calls, in.Contexts, in.Span) }},
		{"units", func() {
			units := workunit.NewSearch(&workunit.Input{Trace: t, Calls: in.Calls, Timeline: in.Timeline, Kinds: in.Kinds, Spec: tags.unit, Marked: tags.isUnit})
			units.Find()
			units.Free()
		}},
	} {
		b.Run(part.name, func(b *testing.B) {
			benchBytes(b, path)
			for b.Loop() {
				part.work()
			}
		})
	}
}

// BenchmarkSection is each section by itself, with what it takes from the others' work.
func BenchmarkSection(b *testing.B) {
	path := benchTrace(b)
	t, tags := benchOpen(b, path)
	in, _, err := prepare(context.Background(), t, &Options{}, tags)
	if err != nil {
		b.Fatal(err)
	}
	for _, s := range sections {
		if len(s.Evidence) > 0 {
			continue
		}
		b.Run(s.ID, func(b *testing.B) {
			benchBytes(b, path)
			for b.Loop() {
				if section, _ := s.Part(in.With(in.Units)); section.Status == report.Error {
					b.Fatal("the section failed")
				}
			}
		})
	}
}

// BenchmarkSections is all of them, side by side.
func BenchmarkSections(b *testing.B) {
	path := benchTrace(b)
	t, tags := benchOpen(b, path)
	benchBytes(b, path)
	for b.Loop() {
		in, _, err := prepare(context.Background(), t, &Options{}, tags)
		if err != nil {
			b.Fatal(err)
		}
		kit.Begin(sections, in)
		kit.Compute(sections, in).Into(newReport(in, &report.Capture{}, nil, &Options{}))
	}
}

// BenchmarkStepGraph measures the step graph and one ceiling, each alternating with the timeline that the graph is made
// of, which is n log n in the rows of the capture. It reports medians of the ratios: a busy machine does not change
// them, nor does a capture of ten times the rows, unless the graph grows faster than the timeline.
func BenchmarkStepGraph(b *testing.B) {
	t, tags := benchOpen(b, benchTrace(b))
	in, _, err := prepare(context.Background(), t, &Options{}, tags)
	if err != nil {
		b.Fatal(err)
	}
	isComm := make([]bool, len(in.Kinds))
	for n := range isComm {
		isComm[n] = in.Kinds[n].Comm
	}
	taken := func(work func()) float64 {
		at := time.Now()
		work()
		return float64(time.Since(at))
	}
	var graph, ceiling []float64
	for b.Loop() {
		var g *stepgraph.Graph
		base := taken(func() { timeline.New(t, in.Calls, in.Span, isComm) })
		graph = append(graph, taken(func() { g = stepgraph.New(t, in.Calls, in.Timeline) })/base)
		stretch := interval.Interval{Start: in.Span.Start, End: in.Span.End}
		replay := func() { g.Replay(stretch, g.UnitsOf(in.Units), &stepgraph.Change{HostFree: true}) }
		ceiling = append(ceiling, taken(replay)/base)
	}
	for name, list := range map[string][]float64{"graph/timeline": graph, "replay/timeline": ceiling} {
		b.ReportMetric(order.Median(list), name)
	}
}

// TestMakeBenchTrace makes the traces that benchmarks run on, written to $EXPLAIN_BENCH_MAKE: $EXPLAIN_BENCH_REPEATS of
// testdata/serving.sqlite or, where $EXPLAIN_BENCH_CROWD names a trace of so many repeats, that one with what its host
// did: 20,000 calls of the operating system, 4,000 switches and 4,000 frames of samples a repeat.
func TestMakeBenchTrace(t *testing.T) {
	path := os.Getenv("EXPLAIN_BENCH_MAKE")
	if path == "" {
		t.Skip("no benchmark asks for a trace ($EXPLAIN_BENCH_MAKE)")
	}
	repeats, err := strconv.Atoi(os.Getenv("EXPLAIN_BENCH_REPEATS"))
	if err != nil {
		t.Fatalf("EXPLAIN_BENCH_REPEATS: %v", err)
	}
	src, edit := filepath.FromSlash("../testdata/serving.sqlite"), tracetest.Repeat(repeats)
	if crowded := os.Getenv("EXPLAIN_BENCH_CROWD"); crowded != "" {
		src, edit = crowded, tracetest.Crowd(20_000*repeats, 4_000*repeats, 4_000*repeats)
	}
	if err := tracetest.Rewrite(src, path, edit); err != nil {
		t.Fatal(err)
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
