package merge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

// report makes the report of the captures that were added.
func (f *fold) report() *report.Report {
	x := f.study()
	first := map[int]int{} // by capture: the place of its first rank
	for i := len(x.ranks) - 1; i >= 0; i-- {
		first[x.ranks[i].capture] = i
	}
	renumbered := f.devices.settle(func(a, b int) int {
		i, ok1 := first[a]
		k, ok2 := first[b]
		if !ok1 || !ok2 {
			return cmp.Compare(b2i(ok2), b2i(ok1))
		}
		return cmp.Compare(i, k)
	})
	s := f.rankReport(x)
	r := &report.Report{Schema: report.SchemaID,
		Tool:     report.Tool{Name: "explain", Version: cmp.Or(f.opt.Version, "devel")},
		Evidence: []report.EvidenceFile{}, Trace: f.provenance(), Capture: f.identity(), Environment: f.environment(),
		Window: f.window(x), Unit: f.unit(), Metrics: f.merged(), Sections: []report.Section{s.section},
		Findings: s.findings, Warnings: append(s.warnings, f.warnings...)}
	r.Metrics = append(append(s.metrics, r.Metrics...), f.unitMetrics()...)
	r.Sections = append(r.Sections, f.mergedSections()...)
	if renumbered {
		r.Warnings = append(r.Warnings, report.Warning{Code: "devices_renumbered", Section: "ranks",
			Text: "Several captures use the same GPU numbers: this report renumbers GPUs in the order of ranks."})
	}
	if len(f.devices.list) > maxDevices {
		r.Warnings = append(r.Warnings, report.Warning{Code: "limited_metrics", Section: "ranks",
			Text: fmt.Sprintf("Only the first %d of %d GPUs have metrics of their own%s; metrics without this label count all of them.", maxDevices, len(f.devices.list), s.named)})
	}
	r.Fill()
	return r
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// provenance names the run: the capture itself if there is one.
func (f *fold) provenance() report.Provenance {
	p := report.Provenance{Name: fmt.Sprintf("run of %d captures", len(f.captures)), Kind: mergedKind, Bytes: f.bytes,
		Tables: f.inputs}
	if len(f.captures) == 1 {
		p.Name = f.captures[0].Name
	}
	if p.Tables == nil {
		p.Tables = []report.TableCount{}
	}
	slices.SortFunc(p.Tables, func(a, b report.TableCount) int { return cmp.Compare(a.Name, b.Name) })
	p.ExporterVersion = common(f.captures, func(e *report.Environment) *string { return e.ExporterVersion })
	p.SchemaVersion = common(f.captures, func(e *report.Environment) *string { return e.SchemaVersion })
	return p
}

// common returns the text that all captures state; nil if they differ or one has none.
func common(list []*captureFold, of func(*report.Environment) *string) *string {
	var value *string
	for i, c := range list {
		v := of(&c.environ)
		if v == nil || i > 0 && (value == nil || *v != *value) {
			return nil
		}
		value = v
	}
	return value
}

// identity returns the identity of the run: a hash over those of its captures, in the order of their keys.
func (f *fold) identity() report.Capture {
	join := func(what string, of func(*report.Capture) *string, once bool) *string {
		parts := []string{what}
		for _, c := range f.captures {
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
		return hashed(parts...)
	}
	return report.Capture{
		Content:      join("merged content", func(c *report.Capture) *string { return c.Content }, false),
		SessionStart: join("merged session", func(c *report.Capture) *string { return c.SessionStart }, true),
		Host:         join("merged host", func(c *report.Capture) *string { return c.Host }, true),
		Processes:    join("merged processes", func(c *report.Capture) *string { return c.Processes }, false),
		Run:          join("merged run", func(c *report.Capture) *string { return c.Run }, true),
	}
}

// environment returns what all captures agree on, and all of their GPUs.
func (f *fold) environment() report.Environment {
	e := report.Environment{GPUs: []report.GPU{}, TraceSet: []string{}}
	var differ []string
	text := func(name string, of func(*report.Environment) *string) *string {
		v := common(f.captures, of)
		if v == nil {
			seen := map[string]bool{}
			for _, c := range f.captures {
				if x := of(&c.environ); x != nil {
					seen[*x] = true
				}
			}
			if len(seen) > 1 {
				differ = append(differ, name)
			}
		}
		return v
	}
	e.Source = text("who recorded", func(e *report.Environment) *string { return e.Source })
	e.GraphTrace = text("the tracing of CUDA graphs", func(e *report.Environment) *string { return e.GraphTrace })
	e.Model = text("model", func(e *report.Environment) *string { return e.Model })
	e.DType = text("dtype", func(e *report.Environment) *string { return e.DType })
	e.Quantization = text("quantization", func(e *report.Environment) *string { return e.Quantization })
	e.Parallelism = text("parallelism", func(e *report.Environment) *string { return e.Parallelism })
	e.Driver = text("driver", func(e *report.Environment) *string { return e.Driver })
	e.CUDA = text("CUDA", func(e *report.Environment) *string { return e.CUDA })
	e.CaptureVersion = text("the nsys that captured", func(e *report.Environment) *string { return e.CaptureVersion })
	e.OS = text("operating system", func(e *report.Environment) *string { return e.OS })
	e.CPU = text("CPU", func(e *report.Environment) *string { return e.CPU })
	e.ExporterVersion = common(f.captures, func(e *report.Environment) *string { return e.ExporterVersion })
	e.SchemaVersion = common(f.captures, func(e *report.Environment) *string { return e.SchemaVersion })
	for at, c := range f.captures {
		for _, g := range c.environ.GPUs {
			g.Device = int(f.devices.number(deviceKey{at, int64(g.Device)}))
			e.GPUs = append(e.GPUs, g)
		}
		for _, s := range c.environ.TraceSet {
			if !slices.Contains(e.TraceSet, s) {
				e.TraceSet = append(e.TraceSet, s)
			}
		}
	}
	slices.Sort(e.TraceSet)
	slices.SortStableFunc(e.GPUs, func(a, b report.GPU) int { return cmp.Compare(a.Device, b.Device) })
	if len(differ) > 0 {
		f.warnings = append(f.warnings, report.Warning{Code: "mixed_environment", Section: "ranks",
			Text: "The captures of this run differ in " + strings.Join(differ, ", ") + "."})
	}
	return e
}

// window is from the first start to the last end, on the clock of the first rank if the others could be compared with
// it.
func (f *fold) window(x *runFold) report.Window {
	if len(f.captures) == 1 {
		return f.captures[0].window
	}
	start, end := int64(math.MaxInt64), int64(math.MinInt64)
	base := int64(math.MaxInt64)
	tied := true
	for _, c := range f.captures {
		base, tied = min(base, c.Session), tied && c.Session > 0
	}
	clocks := map[int]*ranks.Clock{} // by capture
	for m := range x.members {
		clocks[x.ranks[x.of[m]].capture] = x.aligned.Clock(m)
	}
	longest, compared := int64(0), true
	for at, c := range f.captures {
		if c.window.Length > 0 && tied {
			from, to := c.window.Start+c.Session-base, c.window.End+c.Session-base
			if k := clocks[at]; k != nil && k.Known {
				from, to = from-k.Line.At(from), to-k.Line.At(to)
			} else {
				compared = false
			}
			start, end = min(start, from), max(end, to)
		}
		longest = max(longest, c.window.Length)
	}
	w := report.Window{Start: start, End: end, Length: end - start, Mode: "merged",
		Why: "from the first start to the last end of GPU work in any capture, by when their sessions began; idle time " +
			"and similar numbers are of each capture's own window"}
	if compared && len(x.aligned.Clocks) > 1 {
		w.Why = "from the first start to the last end of GPU work in any capture, on the clock of the first rank; idle " +
			"time and similar numbers are of each capture's own window"
	}
	if !tied || start > end {
		w = report.Window{End: longest, Length: longest, Mode: "merged", Why: "the longest window of the captures: not all say when their session began"}
	}
	return w
}

// merged returns the merged metrics of the captures.
func (f *fold) merged() []report.Metric {
	var list []report.Metric
	for _, key := range f.order {
		x := f.metrics[key]
		m := x.m
		if x.rule.How == report.HowDevice {
			n := f.devices.number(x.of)
			if n >= maxDevices && !f.named[n] {
				continue
			}
			m.Labels = m.Labels.Clone()
			m.Labels["device"] = fmt.Sprint(n)
		}
		m.N, m.Value = x.n, f.value(x)
		m.Coverage = f.coverage(&m)
		if keep, ok := f.eventsOf(&m, &x.rule); ok {
			all, coarse := f.counts.together(x.rule.Events, keep, nil)
			m.Summary = all.Summary()
			if m.Summary != nil && x.rule.How == report.HowMedian {
				m.Value, m.N = &m.Summary.P50, m.Summary.N
			}
			if coarse {
				exactMean(&m)
				m.Source.Query = "percentiles from log-spaced counts: within 1 %"
			}
		}
		if x.rule.How == report.HowMedian && m.Summary == nil {
			if !f.counts.missing {
				continue
			}
			m.Value = nil
		}
		list = append(list, m)
	}
	return list
}

// coverage is the share of captures (0 to 1) that have the table behind a metric; nil if all have it.
func (f *fold) coverage(m *report.Metric) *float64 {
	if len(m.Source.Tables) == 0 {
		return m.Coverage
	}
	n := f.rows[m.Source.Tables[0]]
	if n == len(f.captures) || n == 0 {
		return m.Coverage
	}
	v := float64(n) / float64(len(f.captures))
	return &v
}

// mergedSections returns the sections for which something was merged.
func (f *fold) mergedSections() []report.Section {
	var list []report.Section
	var left []string
	for _, s := range f.sections {
		s.Tables, s.Charts, s.Notes = []report.Table{}, []report.Chart{}, []string{}
		s.Status, s.Reason = f.statusOf(s.ID)
		s.Coverage = nil
		if s.ID == unitSection {
			s.Tables = append(s.Tables, f.unitTables()...)
			s.Derivation = "The numbers of a step are those of the capture in which it takes longest, just as a report of one capture shows its slowest device."
		} else {
			for _, id := range f.tableIDs[s.ID] {
				s.Tables = append(s.Tables, f.tables[id].finish(f))
			}
			s.Derivation = "Counts and times are added up over captures; device times are of each GPU, session by session. Percentiles are of all events together."
		}
		if len(s.Tables) == 0 {
			left = append(left, s.Title)
			continue
		}
		if note := f.opt.Rules.leftOf(s.ID); note != "" {
			s.Notes = append(s.Notes, note)
		}
		list = append(list, s)
	}
	if len(left) > 0 && len(list) > 0 {
		list[0].Notes = append(list[0].Notes, "In the captures' own reports alone: "+strings.Join(left, ", ")+".")
	}
	return list
}

// statusOf is the status of a section of the run: that of the captures if all agree, else partial, with the number of
// captures that have it.
func (f *fold) statusOf(id string) (report.Status, string) {
	status, why := f.status[id].n, f.status[id].why
	good := status[report.OK] + status[report.Partial]
	switch {
	case status[report.OK] == len(f.captures):
		return report.OK, ""
	case len(status) == 1 && good == 0:
		for s := range status {
			return s, why
		}
	case good == 0:
		return report.Unavailable, why
	}
	if good == len(f.captures) {
		return report.Partial, why
	}
	return report.Partial, fmt.Sprintf("%d of %d captures: %s", good, len(f.captures), why)
}
