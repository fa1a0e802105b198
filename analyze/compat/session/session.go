// Package session reads the files that profilemate records inside a vLLM server: the CSV and JSON files of a session
// folder, those of its simple variant included. Formats: openshift-psap/profilemate, sitecustomize.py and
// simple/sitecustomize.py.
package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
)

// Kind is what the report calls this evidence: profilemate's CSV and JSON files.
const Kind file.Kind = "profiler-session"

// Tables are the numbers that both the tables of a session and its summaries state.
type Tables struct {
	Forward    map[string]*Forward // by phase
	AllForward Forward
	Operations map[Operation]*Sample // ns
	Components map[string]*Sample    // ns; parts of the model by name
	Batches    Batches
	Requests   Requests
	Cache      Cache
}

// Data is what profiler sessions recorded. Files of the same form, of several processes or sessions, are taken
// together.
type Data struct {
	Tables
	Summaries Tables // of a distribution only the number and the sum

	Throughput Series // tokens per second of forward time
	ModelType  string // of types, empty if not stated
	CUDAEvents *bool  // whether forward times were taken with CUDA events, nil if not stated
	Graphs     Graphs
	MoE        MoE

	Rows map[string]int64 // rows understood, by the name profilemate gives the file
	Had  map[string]int   // files, likewise

	Lacks map[string]string // likewise: a file that lacks columns, and which

	cut, broken, long []string // files without the end of their last row, with damage, and with something too long
}

// Is reports whether a file that starts with head, and is named name, is of this kind.
func Is(name string, head []byte) bool {
	f, _ := formOf(name, head)
	return f != nil || kindOf(name, head) != noSummary
}

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{Rows: map[string]int64{}, Had: map[string]int{}, Lacks: map[string]string{},
		Tables: Tables{Requests: Requests{waiting: map[uint64]float64{}}}}
	err := file.Each(ctx, files, func(in *file.Input, r io.Reader) error { return d.read(ctx, in, r) })
	if err != nil {
		return nil, err
	}
	d.Requests.finish()
	d.MoE.finish()
	d.fillIn()
	return d, nil
}

func (d *Data) read(ctx context.Context, in *file.Input, r io.Reader) error {
	head, err := in.Head()
	if err != nil {
		return err
	}
	f, missing := formOf(in.Name, head)
	switch {
	case len(missing) > 0:
		d.Lacks[f.name] = in.Name + " (" + strings.Join(missing, ", ") + ")"
		return nil
	case f != nil:
		in.Tally.Format = f.name
		err = d.eachRow(ctx, in, r, f)
	default:
		in.Tally.Format = kindOf(in.Name, head)
		d.readSummary(in, r)
	}
	d.Had[in.Tally.Format]++
	d.Rows[in.Tally.Format] += in.Tally.Understood
	return err
}

// fillIn takes what the timeline of graphs and summaries state for tables that are missing.
func (d *Data) fillIn() {
	if d.Rows["cuda_graph_usage.csv"] == 0 {
		for _, g := range d.Graphs.ByBatch {
			g.Replays = g.Time.N()
		}
	}
	s := &d.Summaries
	if d.AllForward.Time.N() == 0 {
		d.Forward, d.AllForward = s.Forward, s.AllForward
	}
	if len(d.Operations) == 0 {
		d.Operations = s.Operations
	}
	if len(d.Components) == 0 {
		d.Components = s.Components
	}
	if d.Cache.Evictions == 0 {
		d.Cache.Lifetime, d.Cache.Idle = s.Cache.Lifetime, s.Cache.Idle
	}
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list report.Warnings
	list.If(len(d.cut) > 0, "session_cut", "The last row of %s has no end: the file was cut off, and that row may be "+
		"wrong or missing.", file.Some(d.cut, 3))
	list.If(len(d.broken) > 0, "session_damaged", "The file is damaged, and was read up to there: %s.",
		file.Some(d.broken, 3))
	list.If(len(d.long) > 0, "session_long", "A value is too long to be profilemate's, and was skipped: %s.",
		file.Some(d.long, 3))
	list.If(len(d.Lacks) > 0, "session_columns", "Not read, because columns are missing: %s.",
		strings.Join(slices.Sorted(maps.Values(d.Lacks)), ", "))
	lost := d.MoE.lost + d.Graphs.lost + d.Requests.lost
	list.If(lost > 0, "session_bounds", "%d rows exceed the number that explain keeps (layers, experts, pairs of "+
		"experts, batch sizes) and are left out.", lost)
	what := d.disagreements()
	list.If(len(what) > 0, "session_summary", "Summaries and tables of the session disagree on %s. The numbers come "+
		"from the tables: either file may have been cut off, or belong to another session.", strings.Join(what, ", "))
	return list
}

// disagreements compares the summaries with the tables.
func (d *Data) disagreements() []string {
	var list []string
	differ := func(what string, x, stated *Sample) {
		if x == nil || stated == nil || x.n == 0 || stated.n == 0 {
			return
		}
		// Tables have three decimals: half a percent is far more than rounding explains.
		if x.n != stated.n || math.Abs(x.sum-stated.sum) > 0.005*max(x.sum, stated.sum)+float64(x.n)*1e3 {
			list = append(list, what)
		}
	}
	s := &d.Summaries
	for _, phase := range Phases {
		if f, stated := d.Forward[phase], s.Forward[phase]; f != nil && stated != nil {
			differ("forward passes ("+phase+")", &f.Time, &stated.Time)
		}
	}
	for _, name := range operations {
		o := Operation{Name: name}
		differ("CPU operations ("+name+")", d.Operations[o], s.Operations[o])
	}
	for _, name := range stated {
		differ("parts of the model ("+name+")", d.Components[name], s.Components[name])
	}
	if n, stated := d.Batches.Steps, s.Batches.Steps; n > 0 && stated > 0 && n != stated {
		list = append(list, "the number of batches")
	}
	if d.Rows[preemptionSummary] > 0 && d.Had["preemption_events.csv"] > 0 && s.Requests.Preempted != d.Requests.Preempted {
		list = append(list, "the number of preemptions")
	}
	if d.Rows[cacheSummary] > 0 && d.Had["kv_cache_evictions.csv"] > 0 && s.Cache.Evictions != d.Cache.Evictions {
		list = append(list, "the number of KV cache evictions")
	}
	layers := 0
	for _, l := range d.MoE.Layers {
		total, hit := int64(0), int64(0)
		for _, x := range l.summary {
			total, hit = total+x.total, max(hit, x.hit)
		}
		if l.contradicts || l.stated > 0 && int64(len(l.Hits)) > l.stated || l.Counted > 0 && len(l.summary) > 0 &&
			(total != l.Counted || hit > l.hit) {
			layers++
		}
	}
	if layers > 0 {
		list = append(list, fmt.Sprintf("the experts of %d layers", layers))
	}
	return list
}

// Environment fills in the fields of e that are empty and that the files state.
func (d *Data) Environment(e *report.Environment) {
	limit := &d.Batches.MaxSeqs
	if limit.value == 0 {
		limit = &d.Summaries.Batches.MaxSeqs
	}
	e.MaxNumSeqs = cmp.Or(e.MaxNumSeqs, limit.Value())
}
