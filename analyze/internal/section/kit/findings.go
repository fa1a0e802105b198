package kit

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

// highWorth is the least share of the analysed time that a finding of high severity is worth, where its worth is known.
const highWorth = 0.01

// sameTime names, of findings about the same time, the one that says it all.
var sameTime = map[string]string{"unit_idle": "gpu_idle", "gpu_low_use": "gpu_idle"}

// whereTimeGoes names the findings that say where time goes and not what could win some of it.
var whereTimeGoes = map[string]bool{"dominant_phase": true, "dominant_phase_wall": true}

// rankFindings puts first what is severe, and within that what could win most of the analysed time. What is worth less
// than 1 % of it is low, time is named once, and what only says where time goes comes after all that could win some.
func rankFindings(list []report.Finding) []report.Finding {
	made := map[string]bool{}
	for i := range list {
		made[list[i].ID] = true
	}
	list = slices.DeleteFunc(list, func(f report.Finding) bool { return made[sameTime[f.ID]] })
	severity := map[report.Severity]int{report.High: 0, report.Medium: 1, report.Low: 2}
	share := func(f *report.Finding) float64 {
		if f.Worth == nil {
			return 0
		}
		return f.Worth.Share()
	}
	for i := range list {
		if f := &list[i]; f.Worth != nil && share(f) < highWorth {
			f.Severity = report.Low
		}
	}
	rank := func(f *report.Finding) int {
		switch {
		case whereTimeGoes[f.ID]:
			return 3
		case f.Severity == report.Low && share(f) == 0:
			return 4
		}
		return severity[f.Severity]
	}
	slices.SortStableFunc(list, func(a, b report.Finding) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(share(&b), share(&a)))
	})
	return list
}

// Worth is what ns of a device's time in the window are worth; nil where the window has no length.
func (in *Input) Worth(device int32, ns int64) *report.Worth {
	if in.Span.Len() <= 0 {
		return nil
	}
	return &report.Worth{Time: min(ns, in.Span.Len()), Of: in.Span.Len(), Units: in.unitsOn()[device]}
}

// HostWorth is what ns that the host spent in calls are worth: no more than the time for which a device neither
// computed nor communicated, of the device with most of it.
func (in *Input) HostWorth(ns int64) *report.Worth {
	var most int64
	var device int32
	for i := range in.Timeline.Devices {
		if d := &in.Timeline.Devices[i]; d.Idle+d.ExposedCopy > most {
			most, device = d.Idle+d.ExposedCopy, d.ID
		}
	}
	return in.Worth(device, min(ns, most))
}

// unitsOn counts the units of work that start in the window, by device.
func (in *Input) unitsOn() map[int32]int64 {
	return Once(in, "units on devices", func() map[int32]int64 {
		count := map[int32]int64{}
		if in.Units == nil || in.Units.Kind == workunit.KindNone {
			return count
		}
		for i := range in.Units.Units {
			if u := &in.Units.Units[i]; u.Start >= in.Span.Start && u.Start < in.Span.End {
				count[u.Device]++
			}
		}
		return count
	})
}

// sayOfSteady replaces the findings of sections that look at the steady part, and the metrics that they quote: what is
// quoted of the steady part becomes a metric of its own, steady.ID. A number without such a metric is not quoted.
func sayOfSteady(whole, steady []*Output, defs map[string]*report.MetricDef, r *report.Report) {
	seen, values := map[string]bool{}, map[string]*report.Metric{}
	for _, out := range steady {
		if out == nil {
			continue
		}
		for _, m := range out.metrics {
			values[m.ID+"{"+m.Labels.String()+"}"] = m
		}
	}
	for i, out := range steady {
		if out == nil {
			continue
		}
		for _, f := range out.findings {
			f.Evidence = slices.DeleteFunc(f.Evidence, func(ref report.MetricRef) bool {
				return defs[steadyPrefix+ref.ID] == nil || values[ref.ID+"{"+ref.Labels.String()+"}"] == nil
			})
			for j := range f.Evidence {
				ref := &f.Evidence[j]
				key := ref.ID + "{" + ref.Labels.String() + "}"
				def := defs[steadyPrefix+ref.ID]
				ref.ID = def.ID
				if seen[key] {
					continue
				}
				seen[key] = true
				m := *values[key]
				m.ID, m.Scale, m.Summary, m.Histogram = def.ID, def.Scale, nil, nil
				r.Metrics = append(r.Metrics, m)
			}
		}
		whole[i].findings = out.findings
	}
}

const steadyPrefix = "steady."

// NarrowFlags names the flags that narrow the window of this capture: those that need units or NVTX ranges only where
// it has them.
func (in *Input) NarrowFlags() string {
	var flags []string
	if in.Units != nil && in.Units.Kind != workunit.KindNone && in.Window.Mode != "steady" {
		flags = append(flags, "--steady")
	}
	if in.Trace.Ranges.Len() > 0 {
		flags = append(flags, "--window nvtx:REGEX")
	}
	return strings.Join(append(flags, "--from", "--to"), ", ")
}

// TraceArg is the trace's name as a command takes it, or TRACE where the name would have to be quoted.
func (in *Input) TraceArg() string {
	if name := in.Trace.File.Name; plainFile.MatchString(name) {
		return name
	}
	return "TRACE"
}

var plainFile = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}$`)

// RanKernels reports whether the capture holds kernels or whole CUDA graphs: without any, idle and waiting say nothing.
func (in *Input) RanKernels() bool { return in.Trace.Kernels.Len() > 0 || in.Trace.Graphs.Len() > 0 }
