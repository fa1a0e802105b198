// Command beam merges the captures of one run, or of many, as an Apache Beam pipeline: the map makes a partial of each
// capture, CombinePerKey merges those of a run. What it writes is, byte for byte, what explain merge writes of the same
// captures.
//
//	go run . --manifest manifest.txt --out parts/                                  on this machine (Prism)
//	go run . --manifest manifest.txt --out /shared/parts --runner flink --endpoint HOST:8099
//	go run -tags dataflow . --manifest gs://B/manifest.txt --out gs://B/parts --runner dataflow --project P --region R …
//	explain merge parts/ --out report/
//
// The manifest has a capture in each line: a path or an address that Beam's file systems read, or a run and a path with a
// tab between them. The partial of a run is OUT/RUN.partial; that of a manifest without runs is OUT/run.partial.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/flink"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/spark"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/merge"
)

func init() {
	register.Function3x1(makePartial)
	register.Emitter2[string, []byte]()
	register.Combiner3[parts, []byte, []byte](&mergePartials{})
	register.DoFn3x1[context.Context, string, []byte, error](&writePartial{})
	beam.RegisterType(reflect.TypeFor[parts]())
}

func main() {
	manifest := flag.String("manifest", "manifest.txt", "`FILE` with a capture in each line")
	runner := flag.String("runner", "prism", "`NAME` of Beam's runner: prism, flink, spark; built with -tags dataflow also dataflow")
	out := flag.String("out", "parts", "write the partial of each run into this `DIR`")
	flag.Parse()
	beam.Init()
	ctx := context.Background()
	fs, err := filesystem.New(ctx, *manifest)
	if err != nil {
		log.Fatal(err)
	}
	text, err := filesystem.Read(ctx, fs, *manifest)
	fs.Close()
	if err != nil {
		log.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		log.Fatalf("%s names no capture", *manifest)
	}
	p, s := beam.NewPipelineWithRoot()
	mergeRuns(s, lines, *out)
	if _, err := beam.Run(ctx, *runner, p); err != nil {
		log.Fatal(err)
	}
}

// mergeRuns makes a partial of the capture of each line, and one of those of each run.
func mergeRuns(s beam.Scope, lines []string, out string) {
	captures := beam.Reshuffle(s, beam.CreateList(s, lines)) // each may be on a machine of its own
	partials := beam.ParDo(s, makePartial, captures)
	beam.ParDo0(s, &writePartial{Out: out}, beam.CombinePerKey(s, &mergePartials{}, partials))
}

// makePartial is explain partial of the capture in a line, by its run.
func makePartial(ctx context.Context, line string, emit func(run string, partial []byte)) error {
	run, trace, ok := strings.Cut(line, "\t")
	if !ok {
		run, trace = "run", line
	}
	if run == "" || strings.ContainsAny(run, `/\`) {
		return fmt.Errorf("%q is no name for a run: it names a file", run)
	}
	local, remove, err := fetched(ctx, trace)
	if err != nil {
		return err
	}
	defer remove()
	c, err := analyze.Digest(ctx, local, analyze.Options{})
	if err != nil {
		return err
	}
	partial, err := c.Partial()
	if err == nil {
		emit(run, partial)
	}
	return err
}

// fetched is a local file of the capture, under its own name: the name is part of what the report says.
func fetched(ctx context.Context, trace string) (local string, remove func(), err error) {
	if !strings.Contains(trace, "://") {
		return trace, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "explain-beam-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) }
	local = filepath.Join(dir, path.Base(trace))
	if err := download(ctx, trace, local); err != nil {
		remove()
		return "", nil, err
	}
	return local, remove, nil
}

func download(ctx context.Context, from, to string) error {
	fs, err := filesystem.New(ctx, from)
	if err != nil {
		return err
	}
	defer fs.Close()
	in, err := fs.OpenRead(ctx, from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// parts are partials that are not merged yet.
type parts struct{ List [][]byte }

// mergePartials is explain merge --out RUN.partial: the union of what the partials hold, in whatever order they come.
type mergePartials struct{}

func (*mergePartials) CreateAccumulator() parts { return parts{} }

func (*mergePartials) AddInput(a parts, partial []byte) parts {
	a.List = append(a.List, partial)
	return a
}

func (*mergePartials) MergeAccumulators(a, b parts) parts {
	a.List = append(a.List, b.List...)
	return a
}

func (*mergePartials) ExtractOutput(a parts) ([]byte, error) {
	return unionOf(context.Background(), a.List)
}

func unionOf(ctx context.Context, list [][]byte) ([]byte, error) {
	var sources []merge.Source
	for i, p := range list {
		sources = append(sources, merge.Source{Name: fmt.Sprintf("partial %d", i),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p)), nil }})
	}
	var b bytes.Buffer
	err := merge.Union(ctx, &b, sources)
	return b.Bytes(), err
}

// writePartial writes the partial of a run.
type writePartial struct{ Out string }

// ProcessElement writes one.
func (w *writePartial) ProcessElement(ctx context.Context, run string, partial []byte) error {
	to := strings.TrimSuffix(w.Out, "/") + "/" + run + ".partial"
	fs, err := filesystem.New(ctx, to)
	if err != nil {
		return err
	}
	defer fs.Close()
	return filesystem.Write(ctx, fs, to, partial)
}
