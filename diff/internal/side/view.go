package side

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Categories of communication kernels, and of CUDA graphs that were traced as a whole.
const (
	Communication = "comm"
	Graph         = "graph"
)

// Categories of kernels whose name does not show what they do: Uncategorised, and triton for those that Triton
// compiled.
const (
	Uncategorised = "other"
	triton        = "triton"
)

// HostCauses says what the launching thread did in idle time caused by the host, as reports label it.
func HostCauses() []string {
	return []string{"api", "profiler", "os_call", "not_scheduled", "running", "unknown"}
}

// View is what one report says about the compared kind of unit. Missing summaries are nil.
type View struct {
	C      *Capture
	group  *Group
	Labels report.Labels

	Time, Busy, Idle      *report.Summary
	Compute, Comm, Copied *report.Summary
	Launches, Kernels     *report.Summary
	Causes                []*report.Summary // in the order of report.StepCauses
	Host                  []float64         // mean time by HostCauses; nil if the report does not say
	Late                  []LateCall        // calls of the launching thread that the device waited for
	Work                  []Work            // kernels, those with most time first
	Others                Work              // sum of the kernels that the report does not name
	HasWork, Hidden       bool              // hidden: CUDA graphs traced as a whole hide kernels
	Foreign               bool              // the report has kernels of another device alone: Work is of that one
	categories            []Work
	Api                   []Call   // of the host; none if the report does not list them
	Copies                []Copies // likewise
	slowest               bool
	Units                 []UnitRow // kept units in run order, or a sample of them
}

// Work is one kernel, or one category of kernels, in one unit. Times and counts are means over units.
type Work struct {
	Name, Category, Family, Canonical string
	// of its launches: "grid 256×256, block 16×16"; empty if it varies or is unknown
	Geometry string
	Threads  float64 // of a launch, on average; 0 if unknown
	Position float64 // of its first run in the unit; -1 if unknown
	Count    float64
	Time     float64 // ns, durations
	Alone    float64 // ns, exclusive
	Spread   float64 // standard deviation of its time over units; below 0 if unknown
	Units    int64
}

// Unnamed reports whether a kernel's name does not show what it does.
func (w *Work) Unnamed() bool {
	return w.Category == Uncategorised || w.Category == triton
}

// Call is one API call in one unit, means over units.
type Call struct {
	Name        string
	Count, Time float64
}

// Copies of one direction and kind of memory in one unit, means over units.
type Copies struct {
	Direction, Kind string
	Count, Bytes    float64
}

// leastOthers, in ns, exceeds the rounding of means: only kernels that take more together count as others.
const leastOthers = 0.5

// graphName is the reports' name for CUDA graphs that were traced as a whole.
const graphName = "[CUDA graph]"

// NewView collects what a capture says about the kind of unit at an index; nil if nothing.
func NewView(c *Capture, at int) *View {
	l, ok := c.Labels(at)
	if !ok {
		return nil
	}
	return newView(c, &c.Kinds[at], at, l, l)
}

// On returns what the capture says about the kind of unit on one device, or nil. Times are the device's. Reports list
// the kernels, calls and copies of the slowest device and of some others, whose kernels they list in order; where they
// do not, the view is foreign, or without calls.
func (v *View) On(device int64) *View {
	if device == v.group.Device {
		return v
	}
	g := *v.group
	g.Device = device
	w := newView(v.C, &g, g.place(v.C.Kinds), v.Labels, with(v.Labels, "device", strconv.FormatInt(device, 10)))
	if w == nil {
		return nil
	}
	w.Foreign = w.HasWork && !w.kernelsOfStep()
	return w
}

// WithoutRanges returns the view without the ranges in which the device idles: reports list those of the slowest one
// alone.
func (v *View) WithoutRanges() *View {
	w := *v
	w.slowest = false
	return &w
}

// DropCalls forgets host calls and copies.
func (v *View) DropCalls() { v.Late, v.Api, v.Copies = nil, nil, nil }

// Parts says where the units' time went; nil if the report does not say.
func (v *View) Parts() *report.UnitParts { return v.C.Report.Unit.PartsOf(v.group.ID, v.group.Device) }

// Device returns the device of the view's units.
func (v *View) Device() int64 { return v.group.Device }

// newView reads the times under the labels l, and what describes the kind as a whole under the labels of.
func newView(c *Capture, g *Group, at int, of, l report.Labels) *View {
	v := &View{C: c, group: g, Labels: of, slowest: true, Units: c.UnitsOf(g)}
	v.Time = c.Summary("unit.time", l)
	v.Busy, v.Idle = c.Summary("unit.gpu_busy", l), c.Summary("unit.gpu_idle", l)
	v.Compute, v.Comm = c.Summary("unit.compute_time", l), c.Summary("unit.exposed_comm_time", l)
	v.Copied = c.Summary("unit.exposed_copy_time", l)
	v.Launches, v.Kernels = c.Summary("unit.launches", l), c.Summary("unit.kernels", l)
	if v.Time != nil && c.EvidenceOnly() { // an iteration of a log has a duration but no parts
		return v
	}
	if v.Time == nil || v.Busy == nil || v.Idle == nil || v.Compute == nil || v.Comm == nil || v.Copied == nil {
		return nil
	}
	for _, cause := range report.StepCauses {
		v.Causes = append(v.Causes, c.Summary("unit.idle_cause_time", with(l, "cause", cause)))
	}
	v.hostTime(l)
	v.kernelsOf(at == c.main)
	v.hostCalls(l)
	v.copyCounts(l)
	v.byCategory()
	return v
}

// summaries returns the metrics that have a summary and the labels l plus exactly the keys more.
func summaries(c *Capture, metric string, l report.Labels, keys ...string) []*report.Metric {
	return lists.Filter(c.Metrics(metric), func(m *report.Metric) bool { return m.Summary != nil && labelled(m.Labels, l, keys...) })
}

// mean returns the mean of a metric with these labels; 0 if the report lacks it.
func (v *View) mean(metric string, l report.Labels) float64 {
	m, _ := Mean(v.C.Summary(metric, l))
	return m
}

func with(l report.Labels, key, value string) report.Labels {
	out := l.Clone()
	out[key] = value
	return out
}

// LateCall is a call of the launching thread, with the mean time that the device waited for it.
type LateCall struct {
	Cause, Name string
	Time        float64 // ns
}

// hostTime reads why the host was late. The report omits causes that no unit of the capture has.
func (v *View) hostTime(l report.Labels) {
	times, known := make([]float64, len(HostCauses())), v.Causes[slices.Index(report.StepCauses, "host")] != nil
	for i, cause := range HostCauses() {
		times[i] = v.mean("unit.host_cause_time", with(l, "cause", cause))
	}
	if !known || v.C.Metrics("unit.host_cause_time") == nil {
		return
	}
	v.Host = times
	for _, m := range summaries(v.C, "unit.host_call_time", l, "call", "cause") {
		v.Late = append(v.Late, LateCall{m.Labels["cause"], m.Labels["call"], m.Summary.Mean})
	}
}

// IdleRanges returns the mean time, ns, that the device idles in a unit while the host is inside a range. Reports list
// only the ranges that hold much of it.
func (v *View) IdleRanges() map[string]float64 {
	times := map[string]float64{}
	for _, m := range v.C.Metrics("unit.idle_range_time") {
		if v.slowest && labelled(m.Labels, v.Labels, "range") && m.Value != nil {
			times[m.Labels["range"]] = *m.Value
		}
	}
	return times
}

// kernelsOf reads the group's kernels, of which the report keeps the largest: metrics hold their numbers, tables their
// names and categories. When a kernel first runs and how it is launched is known only for the main group.
func (v *View) kernelsOf(main bool) {
	known := v.known(main)
	for _, m := range summaries(v.C, "kernel.time_per_unit", v.Labels, "kernel") {
		name := m.Labels["kernel"]
		w, ok := known[name]
		if !ok {
			w = Work{Canonical: name, Family: name, Position: -1}
		}
		w.Name, w.Time, w.Spread, w.Units = name, m.Summary.Mean, m.Summary.Stddev, m.Summary.N
		w.Count = v.mean("kernel.count_per_unit", m.Labels)
		w.Alone = v.mean("kernel.exclusive_time_per_unit", m.Labels)
		if name == graphName {
			v.Hidden = true
		}
		v.Work = append(v.Work, w)
	}
	v.Work = byTime(v.Work)
	v.HasWork = len(v.Work) > 0
	if v.HasWork {
		v.sumOthers()
	}
}

// known describes kernels by name, without numbers.
func (v *View) known(main bool) map[string]Work {
	known := map[string]Work{}
	t := v.C.Table("kernels", "kernels")
	for i := range t.Len() {
		name := t.Str(i, "kernel_name")
		known[name] = Work{Category: t.Str(i, "category"), Family: name, Canonical: name, Position: -1}
	}
	t = v.C.Table("unit", "unit_kernels")
	for i := range t.Len() {
		w := Work{Category: t.Str(i, "category"), Family: t.Str(i, "family"), Canonical: t.Str(i, "canonical"),
			Position: -1}
		if main {
			w.Position, w.Geometry = float64(t.Whole(i, "position")), t.Str(i, "geometry")
			w.Threads, _ = t.Num(i, "threads")
		}
		known[t.Str(i, "kernel_name")] = w
	}
	return known
}

// sumOthers is what the named kernels leave of the units.
func (v *View) sumOthers() {
	rest := Work{Name: "(others)", Position: -1, Alone: v.Compute.Mean + v.Comm.Mean}
	if v.Kernels != nil {
		rest.Count = v.Kernels.Mean
	}
	for i := range v.Work {
		rest.Alone -= v.Work[i].Alone
		rest.Count -= v.Work[i].Count
	}
	rest.Count = max(rest.Count, 0)
	v.Others = Work{}
	if math.Abs(rest.Alone) > leastOthers {
		v.Others = rest
	}
}

// byTime sorts kernels, those with most time first.
func byTime(list []Work) []Work {
	lists.Sort(list, func(a, b Work) int {
		return cmp.Or(cmp.Compare(max(b.Time, b.Alone), max(a.Time, a.Alone)), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// labelled reports whether a metric has the labels l plus exactly the keys more.
func labelled(m, l report.Labels, keys ...string) bool {
	if len(m) != len(l)+len(keys) {
		return false
	}
	for _, k := range keys {
		if _, ok := m[k]; !ok {
			return false
		}
	}
	for k, v := range l {
		if m[k] != v {
			return false
		}
	}
	return true
}

// byCategory reads all categories of kernels, those with most time first.
func (v *View) byCategory() {
	for _, m := range summaries(v.C, "kernel.exclusive_time_per_unit", v.Labels, "category") {
		name := m.Labels["category"]
		v.categories = append(v.categories, Work{Name: name, Category: name, Alone: m.Summary.Mean,
			Count: v.mean("kernel.count_per_unit", m.Labels), Time: v.mean("kernel.time_per_unit", m.Labels)})
	}
	lists.Sort(v.categories,
		func(a, b Work) int { return cmp.Or(cmp.Compare(b.Alone, a.Alone), cmp.Compare(a.Name, b.Name)) })
}

// hostCalls reads what the host did during the units.
func (v *View) hostCalls(l report.Labels) {
	for _, m := range summaries(v.C, "api.time_per_unit", l, "api") {
		v.Api = append(v.Api, Call{m.Labels["api"], v.mean("api.count_per_unit", m.Labels), m.Summary.Mean})
	}
	lists.Sort(v.Api, func(a, b Call) int { return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name)) })
}

// copyCounts reads the copies of the units.
func (v *View) copyCounts(l report.Labels) {
	for _, m := range summaries(v.C, "memcpy.count_per_unit", l, "direction", "kind") {
		v.Copies = append(v.Copies, Copies{Direction: m.Labels["direction"], Kind: m.Labels["kind"],
			Count: m.Summary.Mean, Bytes: v.mean("memcpy.bytes_per_unit", m.Labels)})
	}
}

// KindOfCall classifies API names: launch, sync, copy or other. Memsets count as copies.
func KindOfCall(name string) string {
	switch {
	case strings.Contains(name, "Synchronize"):
		return "sync"
	case strings.Contains(name, "Memcpy") || strings.Contains(name, "Memset"):
		return "copy"
	case strings.Contains(name, "Launch"):
		return "launch"
	}
	return "other"
}

// Blocks reports whether a call waits for the device: it synchronises, or is a copy without Async in its name.
func Blocks(name string) bool {
	return strings.Contains(name, "Synchronize") || strings.Contains(name, "Memcpy") && !strings.Contains(name, "Async")
}
