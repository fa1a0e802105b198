package merge

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

func (f *fold) report() *report.Report {
	x := f.study()
	// by capture: the place of its first rank, those with none last
	first := slices.Repeat([]int{len(x.ranks)}, len(f.captures))
	for i, r := range slices.Backward(x.ranks) {
		first[r.capture] = i
	}
	renumbered := f.devices.settle(func(a, b int) int { return cmp.Compare(first[a], first[b]) })
	s := f.rankReport(x)
	e := f.environment()
	r := &report.Report{Schema: report.SchemaID,
		Tool:     report.Tool{Name: "explain", Version: cmp.Or(f.opt.Version, "devel")},
		Evidence: []report.EvidenceFile{}, Trace: f.provenance(&e), Capture: f.captures.identity(), Environment: e,
		Window: f.captures.window(x), Unit: f.unit(), Sections: append([]report.Section{s.out.section}, f.sections.report(f)...),
		Metrics:  slices.Concat(s.out.metrics, f.metrics.merged(len(f.captures), f.counts, f.sampled), f.unitMetrics()),
		Findings: s.out.findings, Warnings: append(s.out.warnings, f.warnings...)}
	if renumbered {
		r.Warnings = append(r.Warnings, report.Warning{Code: "devices_renumbered", Section: "ranks",
			Text: "Several captures use the same GPU numbers: this report renumbers GPUs in the order of ranks."})
	}
	if n := len(f.devices.places.Keys); n > maxDevices {
		r.Warnings = append(r.Warnings, report.Warning{Code: "limited_metrics", Section: "ranks",
			Text: fmt.Sprintf("Only the first %d of %d GPUs have metrics of their own%s; metrics without this label "+
				"count all of them.", maxDevices, n, s.named)})
	}
	r.Fill()
	return r
}

// provenance names the run: the capture itself if there is one.
func (f *fold) provenance(e *report.Environment) report.Provenance {
	p := report.Provenance{Name: fmt.Sprintf("run of %d captures", len(f.captures)), Kind: mergedKind, Bytes: f.bytes,
		Tables: f.inputs, ExporterVersion: e.ExporterVersion, SchemaVersion: e.SchemaVersion}
	if len(f.captures) == 1 {
		p.Name = f.captures[0].Name
	}
	lists.Sort(p.Tables, func(a, b report.TableCount) int { return cmp.Compare(a.Name, b.Name) })
	return p
}

// identity returns the identity of the run: a hash over those of its captures, in the order of their keys.
func (list captures) identity() report.Capture {
	join := func(what string, of func(*report.Capture) *string, once bool) *string {
		parts := []string{what}
		for _, c := range list {
			v := of(&c.identity)
			if v == nil {
				return nil
			}
			if !once || !slices.Contains(parts[1:], *v) {
				parts = append(parts, *v)
			}
		}
		if len(parts) == 2 {
			return &parts[1]
		}
		slices.Sort(parts[1:])
		return report.Hash(parts...)
	}
	return report.Capture{
		Content:      join("merged content", func(c *report.Capture) *string { return c.Content }, false),
		SessionStart: join("merged session", func(c *report.Capture) *string { return c.SessionStart }, true),
		Host:         join("merged host", func(c *report.Capture) *string { return c.Host }, true),
		Processes:    join("merged processes", func(c *report.Capture) *string { return c.Processes }, false),
		Run:          join("merged run", func(c *report.Capture) *string { return c.Run }, true),
	}
}

// environmentNames are what captures of a run should not differ in, by the fields of their environments.
var environmentNames = map[string]string{
	"Source": "who recorded", "GraphTrace": "the tracing of CUDA graphs", "Model": "model", "DType": "dtype",
	"Quantization": "quantization", "Parallelism": "parallelism", "MaxModelLen": "the longest sequence",
	"MaxNumSeqs": "the most sequences", "Engine": "engine", "EngineSettings": "the settings of the engine",
	"Packages": "packages", "Load": "load", "Driver": "driver", "CUDA": "CUDA", "CaptureVersion": "the nsys that captured",
	"OS": "operating system", "CPU": "CPU", "Clocks": "the clocks of GPUs",
}

// common sets the fields of e to what all captures state, and returns the names of those in which two differ.
func (list captures) common(e *report.Environment) (differ []string) {
	for field, to := range reflect.ValueOf(e).Elem().Fields() {
		if field.Type.Kind() != reflect.Pointer {
			continue // a list
		}
		var first reflect.Value
		all, same := true, true
		for _, c := range list {
			switch v := reflect.ValueOf(&c.environ).Elem().FieldByIndex(field.Index); {
			case v.IsNil():
				all = false
			case !first.IsValid():
				first = v
			default:
				same = same && v.Elem().Equal(first.Elem())
			}
		}
		if all && same {
			to.Set(first)
		}
		if name := environmentNames[field.Name]; !same && name != "" {
			differ = append(differ, name)
		}
	}
	return differ
}

// environment returns what all captures agree on, and all of their GPUs.
func (f *fold) environment() report.Environment {
	e := report.Environment{GPUs: []report.GPU{}, TraceSet: []string{}}
	differ := f.captures.common(&e)
	for at, c := range f.captures {
		for _, g := range c.environ.GPUs {
			g.Device = int(f.devices.number(deviceKey{at, int64(g.Device)}))
			e.GPUs = append(e.GPUs, g)
		}
		e.TraceSet = append(e.TraceSet, c.environ.TraceSet...)
	}
	slices.Sort(e.TraceSet)
	e.TraceSet = slices.Compact(e.TraceSet)
	lists.Sort(e.GPUs, func(a, b report.GPU) int { return cmp.Compare(a.Device, b.Device) })
	if len(differ) > 0 {
		f.warnings = append(f.warnings, report.Warning{Code: "mixed_environment", Section: "ranks",
			Text: "The captures of this run differ in " + strings.Join(differ, ", ") + "."})
	}
	return e
}

// window is from the first start to the last end, on the clock of the first rank if the others could be compared with
// it.
func (list captures) window(x *runFold) report.Window {
	if len(list) == 1 {
		return list[0].window
	}
	length := func(c *captureFold) int64 { return c.window.End - c.window.Start }
	longest := lists.Most(list, length)
	w := report.Window{End: longest, Length: longest, Mode: "merged", Why: "the longest window of the captures: not all say when their session began"}
	base := slices.MinFunc(list, func(a, b *captureFold) int { return cmp.Compare(a.Session, b.Session) }).Session
	if longest == 0 || base <= 0 {
		return w
	}
	clocks, moved := map[int]*ranks.Clock{}, map[int]int64{} // by capture
	for m := range x.members {
		at := x.ranks[x.of[m]].capture
		clocks[at], moved[at] = x.aligned.Clock(m), x.members[m].Moved
	}
	w.Start, w.End = math.MaxInt64, math.MinInt64
	compared := len(x.aligned.Clocks) > 1
	for at, c := range list {
		if length(c) <= 0 {
			continue
		}
		began := c.Session - base - moved[at]
		from, to := c.window.Start+began, c.window.End+began
		if k := clocks[at]; k != nil && k.Known {
			from, to = from-k.Line.At(from), to-k.Line.At(to)
		} else {
			compared = false
		}
		w.Start, w.End = min(w.Start, from), max(w.End, to)
	}
	by := "by when their sessions began"
	if compared {
		by = "on the clock of the first rank"
	}
	w.Length, w.Why = w.End-w.Start, "from the first start to the last end of GPU work in any capture, "+by+
		"; idle time and similar numbers are of each capture's own window"
	return w
}
