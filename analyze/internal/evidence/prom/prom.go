// Package prom reads dumps of a server's Prometheus metrics, as /metrics gives them: one, or the difference of two.
package prom

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/report"
)

// Data is the content of one dump, or the difference of two.
type Data struct {
	Numbers
	Delta  bool   // the difference of two dumps: what happened between them
	Model  string // by a strict pattern; empty if not known or if there are several
	Models int    // different values of the model's label
	Series int    // lines that a number was taken from
	Power  Power

	warnings report.Warnings
}

// Numbers are what the metrics of an engine state, by the names of this package. Values that a dump lacks are missing.
type Numbers struct {
	Engine   string // vLLM, SGLang, TensorRT-LLM; empty if none
	Hists    map[string]*Histogram
	Counters map[string]float64
	Gauges   map[string]float64 // of the later dump
	Finished map[string]float64 // requests by the reason for which they ended
}

// maxOther is how many lines of something else may stand before a dump: what curl -i shows, a prompt.
const maxOther = 16

// Is reports whether a file that starts with head, and is named name, is of this kind: it has a line that declares the
// type of a metric, or a sample of one of the engines, and few other lines before it.
func Is(name string, head []byte) bool {
	other := 0
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		if bytes.HasPrefix(line, []byte("# TYPE ")) {
			f := bytes.Fields(line)
			return len(f) == 4 &&
				slices.Contains([]string{"counter", "gauge", "histogram", "summary", "untyped", "unknown", "info",
					"stateset"}, string(f[3]))
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		s, ok := parseSample(line)
		if ok && isOwn(s.name) && len(s.labels) > 0 {
			return true
		}
		if !ok {
			if other++; other > maxOther {
				return false
			}
		}
	}
	return false
}

// Read reads the files, in their order. Anomalies are counted in their tallies and listed in Warnings; an error is
// about a file that cannot be read at all.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{}
	var dumps []*dump
	err := file.Each(ctx, files, func(in *file.Input, r io.Reader) error {
		dumps = append(dumps, d.read(in, r)...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.Power = powerOf(dumps)
	triton := slices.ContainsFunc(dumps, func(x *dump) bool { return x.triton })
	dumps = slices.DeleteFunc(dumps, func(x *dump) bool { return x.Engine == "" }) // of another program
	if len(dumps) == 0 {
		d.warnings.If(triton, "prometheus_triton", "Triton adds up the times of its requests and states no distribution: no "+
			"latencies are given. Measure them with explain load, or give the log of the engine (--server-log)")
		dumps = append(dumps, newDump(""))
	}
	switch n := len(dumps); {
	case n > 2 && !rise(dumps):
		d.warn("prometheus_reset", "Between some of the %d dumps counters went down, or the process was another one: the "+
			"server was started again, these are several servers, or the dumps are not in the order of their times; the last "+
			"one, of %s, stands alone", n, dumps[n-1].name)
		dumps = dumps[n-1:]
	case n > 2:
		d.warn("prometheus_dumps", "%d dumps were given: the difference of the last and the first is taken", n)
		dumps = []*dump{dumps[0], dumps[n-1]}
	}
	last := dumps[len(dumps)-1]
	if len(dumps) == 2 {
		last = d.difference(dumps[0], dumps[1])
	}
	d.Numbers = last.Numbers
	for _, x := range dumps {
		d.Series += x.series
	}
	d.Models = len(last.models)
	if d.Models == 1 {
		for m := range last.models {
			d.Model = serverlog.ModelID(m)
		}
	}
	d.warnings.If(d.Models > 1, "prometheus_models", "The dump has metrics of %d models; numbers are over all of them",
		d.Models)
	d.warnings.If(last.mixed > 0, "prometheus_buckets",
		"%d histograms have different buckets for different engines or models; only the first of each is used", last.mixed)
	d.warnings.If(last.unsound > 0, "prometheus_unsound",
		"%d series of histograms are not used: their numbers do not fit together", last.unsound)
	return d, nil
}

func (d *Data) warn(code, format string, args ...any) { d.warnings.If(true, code, format, args...) }

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning { return d.warnings }

// Environment fills in the facts that the dumps state.
func (d *Data) Environment(e *report.Environment) {
	e.Model = cmp.Or(report.Stated(d.Model), e.Model)
}

// rise reports whether the counters rise from each dump to the next, or from each to the one before.
func rise(dumps []*dump) bool {
	up, down := true, true
	for i, x := range dumps[1:] {
		up, down = up && x.since(dumps[i]) != nil, down && dumps[i].since(x) != nil
	}
	return up || down
}

// difference is the change between two dumps of one server. Their counters show which is the later one. If the server
// was started in between, or if the dumps come from two servers, the second dump stands alone.
func (d *Data) difference(a, b *dump) *dump {
	if later := b.since(a); later != nil {
		d.Delta = true
		return later
	}
	if later := a.since(b); later != nil {
		d.Delta = true
		d.warn("prometheus_order",
			"By its counters the first dump is the later one: the difference is taken the other way round")
		return later
	}
	d.warn("prometheus_reset", "%s and %s are not of one process, or counters went down: the server was started again "+
		"in between, or these are two servers; %s stands alone", a.name, b.name, b.name)
	return b
}
