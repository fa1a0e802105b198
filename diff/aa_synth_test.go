package diff_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// source is a real capture (or the synthetic server's) from which others are made: its report, and its steady units.
type source struct {
	name   string
	report *report.Report
	units  []aaUnit
	main   report.Labels // of the group that the unlabelled metrics are of, where it has any
	device string
	at     int // of the main group in unit_groups
}

// aaUnit is what one unit took, ns.
type aaUnit struct{ compute, comm, copied, idle float64 }

func (u aaUnit) time() float64 { return u.compute + u.comm + u.copied + u.idle }

// sum of one number over units.
func sum(units []aaUnit, of func(u aaUnit) float64) float64 {
	var s float64
	for _, u := range units {
		s += of(u)
	}
	return s
}

// world is what differs between captures when nothing changed; standard deviations of ln.
type world struct {
	clock  float64 // of a whole capture: common to all kernels
	kernel float64 // of each kernel in each capture, on its own
	host   float64 // of idle time in each capture
	comm   float64 // of communication in each capture
	drift  float64 // from the first unit of a capture to the last, either way, at most
	wander float64 // of a unit's clock, first-order autoregressive
	rho    float64 // of wander
	block  int     // real units are drawn in runs of this many, which keeps how they depend on each other
}

// change is what was injected into a capture.
type change struct {
	family string // of kernels; empty: none
	factor float64
}

const kernelTimePerUnit = "kernel.time_per_unit"

// sources are the steady real captures that are there, two of them without -long and -aa, and the synthetic server, which
// always is.
func sources(tb testing.TB) []*source {
	tb.Helper()
	names := []string{"cs336zx_2_7B_clean", "nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after", "cs336_hoponga_exp2024_2"}
	if *aaRuns == 0 {
		names = longtest.Some(names, 2)
	}
	var list []*source
	for _, name := range names {
		path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
		if _, err := os.Stat(path); err == nil {
			list = append(list, newSource(tb, name, path))
		}
	}
	return append(list, newSource(tb, "synthetic server", servingTrace))
}

func newSource(tb testing.TB, name, path string) *source {
	tb.Helper()
	result, err := analyze.Run(context.Background(), path, analyze.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	r := result.Report
	s := &source{name: name, report: lean(r), at: -1}
	time := r.Find("unit.time", nil)
	groups := table(s.report, "unit_groups")
	for i, row := range groups.Rows {
		p50, _ := row[column(groups, "p50")].Num()
		mean, _ := row[column(groups, "mean")].Num()
		if s.at < 0 && p50 == time.Summary.P50 && mean == time.Summary.Mean {
			s.at = i
		}
	}
	if s.at < 0 {
		tb.Fatalf("%s: the main kind of unit is not in its table", name)
	}
	key := func(t *report.Table, row []report.Cell) string {
		k := ""
		for _, c := range []string{"device_id", "phase", "batch", "tokens"} {
			b, _ := row[column(t, c)].MarshalJSON()
			k += string(b) + " "
		}
		return k
	}
	main := groups.Rows[s.at]
	device, _ := main[column(groups, "device_id")].Int()
	s.device = strconv.FormatInt(device, 10)
	phase, _ := main[column(groups, "phase")].Str()
	s.main = report.Labels{"phase": phase}
	for _, c := range []string{"batch", "tokens"} {
		if v, ok := main[column(groups, c)].Int(); ok {
			s.main[c] = strconv.FormatInt(v, 10)
		}
	}
	units := table(s.report, "units")
	kernels := r.Find("unit.kernels", nil).Summary.P50
	for _, row := range units.Rows {
		state, _ := row[column(units, "state")].Str()
		num := func(c string) float64 { v, _ := row[column(units, c)].Num(); return v }
		if state == "kept" && key(units, row) == key(groups, main) && num("kernels") == kernels {
			s.units = append(s.units, aaUnit{num("compute"), num("exposed_comm"), num("exposed_copy"), num("idle")})
		}
	}
	if len(s.units) != int(time.N) {
		tb.Fatalf("%s: %d units in the table, %d in the metric", name, len(s.units), time.N)
	}
	return s
}

// lean keeps what a comparison looks at, so that thousands of reports can be made of one.
func lean(r *report.Report) *report.Report {
	c := *r
	c.Metrics = nil
	for _, m := range r.Metrics {
		keep := strings.HasPrefix(m.ID, "unit.") || strings.HasSuffix(m.ID, "_per_unit") || strings.HasPrefix(m.ID, "graph.") || m.ID == "kernel.count" || m.ID == "gpu.compute_time"
		if keep {
			m.Histogram = nil
			c.Metrics = append(c.Metrics, m)
		}
	}
	c.Sections = nil
	for _, s := range r.Sections {
		if s.ID == "unit" {
			s.Charts = []report.Chart{}
			c.Sections = append(c.Sections, s)
		}
	}
	c.Findings = []report.Finding{}
	return &c
}

func table(r *report.Report, id string) *report.Table {
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			if r.Sections[i].Tables[j].ID == id {
				return &r.Sections[i].Tables[j]
			}
		}
	}
	return &report.Table{}
}

func column(t *report.Table, id string) int {
	return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
}

// capture makes one more capture of a source: n units, drawn in runs from the real ones, in a world, with a change.
func (s *source) capture(rng *rand.Rand, n int, w world, ch change) *report.Report {
	units := make([]aaUnit, 0, n)
	for len(units) < n {
		at := rng.IntN(len(s.units))
		for k := 0; k < w.block && len(units) < n; k++ {
			units = append(units, s.units[(at+k)%len(s.units)])
		}
	}
	clock := w.clock * rng.NormFloat64()
	host := math.Exp(w.host * rng.NormFloat64())
	comm := math.Exp(w.comm * rng.NormFloat64())
	drift := w.drift * (2*rng.Float64() - 1)
	e := rng.NormFloat64()
	for i := range units {
		e = w.rho*e + math.Sqrt(1-w.rho*w.rho)*rng.NormFloat64()
		f := math.Exp(clock + drift*(float64(i)/float64(n)-0.5) + w.wander*e)
		units[i].compute *= f
		units[i].comm *= comm
		units[i].idle *= host
	}
	kernel := make(map[string]float64)
	own := func(name, family string) float64 {
		if _, ok := kernel[name]; !ok {
			kernel[name] = math.Exp(w.kernel * rng.NormFloat64())
			if ch.family != "" && family == ch.family {
				kernel[name] *= ch.factor
			}
		}
		return kernel[name]
	}
	return s.with(units, own, host, rng.Uint64())
}

// with is the source's report with other units, each kernel's time changed by a factor of its own.
func (s *source) with(units []aaUnit, own func(name, family string) float64, host float64, id uint64) *report.Report {
	units = slices.Clone(units)
	compute := func(u aaUnit) float64 { return u.compute }
	comm := func(u aaUnit) float64 { return u.comm }
	perUnit := func(of func(aaUnit) float64) float64 {
		old := sum(s.units, of) / float64(len(s.units))
		if old == 0 {
			return 1
		}
		return sum(units, of) / float64(len(units)) / old
	}
	wasCompute, wasComm := perUnit(compute), perUnit(comm)

	r := *s.report
	r.Capture = report.Capture{} // another capture
	r.Trace.Name = s.name + " " + strconv.FormatUint(id%1e6, 10)
	r.Sections = slices.Clone(r.Sections)
	for i := range r.Sections {
		r.Sections[i].Tables = slices.Clone(r.Sections[i].Tables)
	}
	// The kernels' factors, and what they make of compute and of communication as a whole.
	kernels := table(&r, "unit_kernels")
	kernels.Rows = slices.Clone(kernels.Rows)
	factor := make(map[string]float64, len(kernels.Rows))
	byCategory := map[string][2]float64{}
	var before, after [2]float64 // compute, communication
	name, category, family := column(kernels, "kernel_name"), column(kernels, "category"), column(kernels, "family")
	for i, row := range kernels.Rows {
		row = slices.Clone(row)
		kernels.Rows[i] = row
		k, _ := row[name].Str()
		c, _ := row[category].Str()
		fam, _ := row[family].Str()
		class, f := 0, wasCompute
		if c == "comm" {
			class, f = 1, wasComm
		}
		x := own(k, fam)
		f *= x
		alone, _ := row[column(kernels, "exclusive")].Num()
		before[class] += alone
		after[class] += alone * x
		factor[k] = f
		sums := byCategory[c]
		byCategory[c] = [2]float64{sums[0] + alone, sums[1] + alone*f}
		for _, col := range []string{"time", "exclusive"} {
			v, _ := row[column(kernels, col)].Num()
			row[column(kernels, col)] = report.F(v * f)
		}
	}
	for i := range units {
		if before[0] > 0 {
			units[i].compute *= after[0] / before[0]
		}
		if before[1] > 0 {
			units[i].comm *= after[1] / before[1]
		}
	}
	wasIdle := perUnit(func(u aaUnit) float64 { return u.idle })

	r.Metrics = slices.Clone(r.Metrics)
	all := map[string]func(u aaUnit) float64{
		"unit.time": aaUnit.time, "unit.compute_time": compute, "unit.exposed_comm_time": comm,
		"unit.gpu_busy":          func(u aaUnit) float64 { return u.compute + u.comm + u.copied },
		"unit.gpu_idle":          func(u aaUnit) float64 { return u.idle },
		"unit.exposed_copy_time": func(u aaUnit) float64 { return u.copied },
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		switch of := all[m.ID]; {
		case of != nil && s.isMain(m.Labels):
			values := make([]float64, len(units))
			for k, u := range units {
				values[k] = of(u)
			}
			m.Summary = summarize(values)
			m.Value, m.N = &m.Summary.P50, m.Summary.N
		case of != nil:
			scale(m, wasCompute*after[0]/before[0])
		case m.ID == "unit.idle_cause_time":
			scale(m, wasIdle)
		case m.ID == "api.time_per_unit":
			scale(m, host)
		case m.ID == kernelTimePerUnit || m.ID == "kernel.exclusive_time_per_unit":
			if f, ok := factor[m.Labels["kernel"]]; ok {
				scale(m, f)
			} else if c, ok := byCategory[m.Labels["category"]]; ok && c[0] > 0 {
				scale(m, c[1]/c[0])
			}
		}
	}
	s.tables(&r, units)
	return &r
}

// isMain reports whether a metric of one unit with these labels is of the main kind on its slowest device.
func (s *source) isMain(l report.Labels) bool {
	for k, v := range l {
		if k == "device" && v != s.device || k != "device" && s.main[k] != v {
			return false
		}
	}
	_, byDevice := l["device"]
	_, byPhase := l["phase"]
	return byDevice || byPhase || len(l) == 0
}

func scale(m *report.Metric, f float64) {
	if m.Value != nil {
		v := *m.Value * f
		m.Value = &v
	}
	if m.Summary != nil {
		s := *m.Summary
		for _, v := range []*float64{&s.Min, &s.P50, &s.P90, &s.P99, &s.Max, &s.Mean, &s.Stddev} {
			*v *= f
		}
		m.Summary = &s
	}
}

func summarize(values []float64) *report.Summary {
	v := slices.Clone(values)
	slices.Sort(v)
	at := func(p float64) float64 {
		x := p * float64(len(v)-1)
		i := int(x)
		return v[i] + (x-float64(i))*(v[min(i+1, len(v)-1)]-v[i])
	}
	s := &report.Summary{N: int64(len(v)), Min: v[0], P50: at(0.5), P90: at(0.9), P99: at(0.99), Max: v[len(v)-1]}
	for _, x := range v {
		s.Mean += x / float64(len(v))
	}
	for _, x := range v {
		s.Stddev += (x - s.Mean) * (x - s.Mean) / float64(len(v))
	}
	s.Stddev = math.Sqrt(s.Stddev)
	return s
}

// tables puts the units into the tables of units and of their kinds.
func (s *source) tables(r *report.Report, units []aaUnit) {
	groups := table(r, "unit_groups")
	groups.Rows = slices.Clone(groups.Rows)
	main := slices.Clone(groups.Rows[s.at])
	groups.Rows[s.at] = main
	time := r.Find("unit.time", nil).Summary
	main[column(groups, "p50")], main[column(groups, "mean")] = report.F(time.P50), report.F(time.Mean)
	main[column(groups, "units")] = report.I(int64(len(units)))

	list := table(r, "units")
	old := list.Rows
	list.Rows = nil
	var example []report.Cell
	for _, row := range old {
		state, _ := row[column(list, "state")].Str()
		if device, _ := row[column(list, "device_id")].Int(); state == "kept" && strconv.FormatInt(device, 10) == s.device && s.kindOf(list, row) {
			example = row
		}
	}
	for _, u := range units {
		row := slices.Clone(example)
		for c, v := range map[string]float64{"duration": u.time(), "busy": u.time() - u.idle, "idle": u.idle, "compute": u.compute, "exposed_comm": u.comm, "exposed_copy": u.copied} {
			row[column(list, c)] = report.I(int64(math.Round(v)))
		}
		list.Rows = append(list.Rows, row)
	}
	list.TotalRows, list.Others = int64(len(list.Rows)), false
	s.series(r, units)
}

// series puts the units into the list of all units, in place of those of the main kind on its device.
func (s *source) series(r *report.Report, units []aaUnit) {
	if r.Unit.Series == nil {
		return
	}
	points, err := r.Unit.Series.Decode()
	if err != nil {
		panic(err)
	}
	group := int64(slices.IndexFunc(r.Unit.Groups, func(g report.UnitGroup) bool { return g.Main }))
	var list []report.UnitPoint
	for _, p := range points {
		if p.Group != group || p.State != 0 || strconv.FormatInt(p.Device, 10) != s.device {
			list = append(list, p)
			continue
		}
		if units == nil {
			continue
		}
		for i, u := range units {
			p.Number, p.Duration = int64(i), int64(math.Round(u.time()))
			p.Busy, p.Compute = p.Duration-int64(math.Round(u.idle)), int64(math.Round(u.compute))
			p.Compute = min(p.Compute, p.Busy)
			list = append(list, p)
			p.Start += p.Duration
		}
		units = nil
	}
	r.Unit.Series = report.NewUnitSeries(list)
}

// kindOf reports whether a row of the units table is of the main kind.
func (s *source) kindOf(t *report.Table, row []report.Cell) bool {
	for k, v := range s.main {
		b, _ := row[column(t, k)].MarshalJSON()
		if strings.Trim(string(b), `"`) != v {
			return false
		}
	}
	return true
}
