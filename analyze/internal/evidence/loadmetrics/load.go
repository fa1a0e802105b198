// Package loadmetrics reads the results of explain load, or of another load generator, measured by the client.
package loadmetrics

import (
	"bufio"
	"cmp"
	"context"
	"io"
	"regexp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
)

// Data is the load that the report describes.
type Data struct {
	Result *loadfile.Result
	Name   string // of its file
	others []string
	runs   int // in its file, of which the last is read
}

var (
	own    = regexp.MustCompile(`^\s*\{\s*"schema"\s*:\s*"explain\.load/`)
	object = regexp.MustCompile(`^\s*\{\s*"`)
	// fields near the start of a result of vllm bench serve or bench_serving, of GenAI-Perf or AIPerf, of GuideLLM
	others = []*regexp.Regexp{
		regexp.MustCompile(`"(num_prompts|max_concurrency|request_rate)"\s*:(?s:.*)"(duration|completed)"\s*:`),
		regexp.MustCompile(`"(request_throughput|request_latency|time_to_first_token)"\s*:\s*\{\s*"(unit|avg)"\s*:`),
		regexp.MustCompile(`"guidellm_version"\s*:|"benchmarks"\s*:\s*\[\s*\{(?s:.*)"(benchmark_id|run_id|scheduler|type_|id_)"\s*:`),
	}
)

// Is reports whether a file that starts with head, and is named name, is of this kind.
func Is(_ string, head []byte) bool {
	return own.Match(head) || object.Match(head) &&
		slices.ContainsFunc(others, func(form *regexp.Regexp) bool { return form.Match(head) })
}

// Read reads the files. The percentiles of two runs cannot be combined, so the report describes the first run; a
// warning names the others.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	return d, file.Each(ctx, files, func(in *file.Input, text io.Reader) error {
		r, runs, err := read(text)
		if err != nil {
			return err
		}
		t := in.Tally
		t.Format, t.Version = loadfile.SchemaID, r.Tool.Version
		if r.Tool.Name != "explain" {
			t.Format = r.Tool.Name
		}
		t.Records, t.Known = r.Counts.Sent, r.Counts.Cancelled
		t.Understood = t.Records - t.Known
		if d.Result != nil {
			d.others = append(d.others, in.Name)
			return nil
		}
		d.Result, d.Name, d.runs = r, in.Name, runs
		return nil
	})
}

func read(text io.Reader) (r *loadfile.Result, runs int, err error) {
	buffered := bufio.NewReaderSize(text, file.HeadBytes)
	if head, _ := buffered.Peek(file.HeadBytes); own.Match(head) {
		r, err = loadfile.Read(buffered)
		return r, 1, err
	}
	return loadfile.ReadGenerator(buffered)
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list report.Warnings
	list.If(d.runs > 1, "load_several", "%s holds %d runs: the report describes the last.", d.Name, d.runs)
	list.If(len(d.others) > 0, "load_several",
		"%d results of explain load were given, and percentiles of several runs do not add up: the report describes "+
			"%s. Make a report of each, and compare them with explain diff.", 1+len(d.others), d.Name)
	return list
}

// Environment fills in the fields of e that are empty and that the files state.
func (d *Data) Environment(e *report.Environment) {
	e.Model = cmp.Or(e.Model, d.Result.Model)
	if w := &d.Result.Workload; w.Fingerprint != "" {
		e.Load = new(w.Text())
	}
}
