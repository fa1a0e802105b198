package diff

import (
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// causes of idle time, as reports label them.
func causes() []string { return []string{"sync", "host", "launch", "dependency", "unknown"} }

// view is what one report says of the kind of unit that is compared. Missing summaries are nil.
type view struct {
	c      *capture
	group  *group
	labels report.Labels

	time, busy, idle           *report.Summary
	compute, comm, copied      *report.Summary
	launches, kernels          *report.Summary
	causes                     []*report.Summary // in the order of causes()
	work                       []work            // its kernels, those with most time first
	others                     work              // the kernels that the report sums up, without a name
	hasOthers, hasWork, hidden bool              // hidden: CUDA graphs traced as a whole hide kernels
	categories                 []work
	api                        []call
	hasAPI                     bool
	copies                     []copies
	hasCopies                  bool
	units                      []unitRow // kept units in the order in which they ran, or a sample of them
}

// work is one kernel, or one category of kernels, in one unit. Times and counts are means over units.
type work struct {
	name, category, family, canonical string
	position                          float64 // of its first run in the unit; -1 unknown
	count                             float64
	time                              float64 // ns, durations
	alone                             float64 // ns, exclusive
	spread                            float64 // standard deviation over units of time
	units                             int64
}

// call is one API in one unit, means over units.
type call struct {
	name        string
	count, time float64
	spread      float64 // standard deviation over units of time
}

// copies of one direction and kind of memory in one unit, means over units.
type copies struct {
	direction, kind string
	count, bytes    float64
}

// unitRow is one unit of work.
type unitRow struct{ time, busy, idle, compute, launches, kernels float64 }

// graphName is how reports name CUDA graphs that were traced as a whole.
const graphName = "[CUDA graph]"

// newView collects what a capture says of a kind; nil where it says nothing.
func newView(c *capture, k kind, signature string) *view {
	at := c.find(k, signature)
	if at < 0 {
		return nil
	}
	l, ok := c.labels(at)
	if !ok {
		return nil
	}
	v := &view{c: c, group: &c.groups[at], labels: l}
	v.time = c.summary("unit.time", l)
	v.busy, v.idle = c.summary("unit.gpu_busy", l), c.summary("unit.gpu_idle", l)
	v.compute, v.comm, v.copied = c.summary("unit.compute_time", l), c.summary("unit.exposed_comm_time", l), c.summary("unit.exposed_copy_time", l)
	v.launches, v.kernels = c.summary("unit.launches", l), c.summary("unit.kernels", l)
	if v.time != nil && c.evidenceOnly() { // an iteration of a log has a duration and no parts
		v.series()
		return v
	}
	if v.time == nil || v.busy == nil || v.idle == nil || v.compute == nil || v.comm == nil || v.copied == nil {
		return nil
	}
	for _, cause := range causes() {
		v.causes = append(v.causes, c.summary("unit.idle_cause_time", with(l, "cause", cause)))
	}
	main := at == c.main
	if main {
		v.fromTable()
		v.hostCalls(report.Labels{})
		v.copyCounts(report.Labels{})
		v.byCategory(report.Labels{})
	} else {
		of := l
		if c.phaseMain(v.group.phase) == at {
			of = report.Labels{"phase": v.group.phase}
		}
		v.fromMetrics(of)
		v.hostCalls(of)
		v.copyCounts(of)
		v.byCategory(of)
	}
	v.series()
	return v
}

func with(l report.Labels, key, value string) report.Labels {
	out := cloneLabels(l)
	out[key] = value
	return out
}

// fromTable reads the kernels of the main group.
func (v *view) fromTable() {
	t := v.c.table("unit", "unit_kernels")
	for i := range t.rows() {
		w := work{name: t.str(i, "kernel_name"), category: t.str(i, "category"), family: t.str(i, "family"), canonical: t.str(i, "canonical"), position: float64(t.whole(i, "position"))}
		w.count, _ = t.num(i, "count")
		w.time, _ = t.num(i, "time")
		w.alone, _ = t.num(i, "exclusive")
		if t.cut() && i == t.rows()-1 {
			v.others, v.hasOthers = w, true
			continue
		}
		if s := v.c.summary("kernel.time_per_unit", report.Labels{"kernel": w.name}); s != nil {
			w.spread, w.units = s.Stddev, s.N
		}
		if w.name == graphName {
			v.hidden = true
		}
		v.work = append(v.work, w)
	}
	v.hasWork = t.rows() > 0
}

// fromMetrics reads the kernels of another group, of which the report keeps the largest. What it does not say of these,
// family and canonical name, is known where the main group has the kernel too.
func (v *view) fromMetrics(l report.Labels) {
	known := map[string]work{}
	t := v.c.table("kernels", "kernels")
	for i := range t.rows() {
		name := t.str(i, "kernel_name")
		known[name] = work{category: t.str(i, "category"), family: name, canonical: name}
	}
	t = v.c.table("unit", "unit_kernels")
	for i := range t.rows() {
		known[t.str(i, "kernel_name")] = work{category: t.str(i, "category"), family: t.str(i, "family"), canonical: t.str(i, "canonical")}
	}
	for i := range v.c.report.Metrics {
		m := &v.c.report.Metrics[i]
		name := m.Labels["kernel"]
		if m.ID != "kernel.time_per_unit" || !labelled(m.Labels, l, "kernel") || m.Summary == nil {
			continue
		}
		w := work{name: name, canonical: name, family: name, position: -1, time: m.Summary.Mean, spread: m.Summary.Stddev, units: m.Summary.N}
		if k, ok := known[name]; ok {
			w.category, w.family, w.canonical = k.category, k.family, k.canonical
		}
		labels := with(l, "kernel", name)
		if s := v.c.summary("kernel.count_per_unit", labels); s != nil {
			w.count = s.Mean
		}
		if s := v.c.summary("kernel.exclusive_time_per_unit", labels); s != nil {
			w.alone = s.Mean
		}
		if name == graphName {
			v.hidden = true
		}
		v.work = append(v.work, w)
	}
	v.hasWork = len(v.work) > 0
	if !v.hasWork {
		return
	}
	v.others = work{name: "(others)", position: -1, alone: v.compute.Mean + v.comm.Mean}
	if v.kernels != nil {
		v.others.count = v.kernels.Mean
	}
	for i := range v.work {
		v.others.alone -= v.work[i].alone
		v.others.count -= v.work[i].count
	}
	v.others.count = max(v.others.count, 0)
	v.hasOthers = v.others.alone > closeEnough
}

// labelled reports whether a metric has the labels l and exactly the keys more.
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

// byCategory reads the categories of the kernels, all of them, in the report's order.
func (v *view) byCategory(l report.Labels) {
	for i := range v.c.report.Metrics {
		m := &v.c.report.Metrics[i]
		name := m.Labels["category"]
		if m.ID != "kernel.exclusive_time_per_unit" || !labelled(m.Labels, l, "category") || m.Summary == nil {
			continue
		}
		w := work{name: name, category: name, alone: m.Summary.Mean}
		if s := v.c.summary("kernel.count_per_unit", m.Labels); s != nil {
			w.count = s.Mean
		}
		if s := v.c.summary("kernel.time_per_unit", m.Labels); s != nil {
			w.time = s.Mean
		}
		v.categories = append(v.categories, w)
	}
}

// hostCalls reads what the host did during the units.
func (v *view) hostCalls(l report.Labels) {
	for i := range v.c.report.Metrics {
		m := &v.c.report.Metrics[i]
		if m.ID != "api.time_per_unit" || !labelled(m.Labels, l, "api") || m.Summary == nil {
			continue
		}
		x := call{name: m.Labels["api"], time: m.Summary.Mean, spread: m.Summary.Stddev}
		if s := v.c.summary("api.count_per_unit", m.Labels); s != nil {
			x.count = s.Mean
		}
		v.api = append(v.api, x)
	}
	v.hasAPI = len(v.api) > 0
}

// copyCounts reads the copies of the units.
func (v *view) copyCounts(l report.Labels) {
	for i := range v.c.report.Metrics {
		m := &v.c.report.Metrics[i]
		if m.ID != "memcpy.count_per_unit" || !labelled(m.Labels, l, "direction", "kind") || m.Summary == nil {
			continue
		}
		x := copies{direction: m.Labels["direction"], kind: m.Labels["kind"], count: m.Summary.Mean}
		if s := v.c.summary("memcpy.bytes_per_unit", m.Labels); s != nil {
			x.bytes = s.Mean
		}
		v.copies = append(v.copies, x)
	}
	v.hasCopies = len(v.copies) > 0
}

// series reads the units themselves: those of the group on its slowest device.
func (v *view) series() {
	t := v.c.table("unit", "units")
	if t.t == nil {
		t = v.c.table("iterations", "iteration_units")
	}
	n := t.rows()
	if t.cut() {
		n--
	}
	alike := 0
	for i := range v.c.groups {
		if v.c.groups[i].kind == v.group.kind {
			alike++
		}
	}
	for i := range n {
		k := kind{phase: t.str(i, "phase"), batch: t.whole(i, "batch"), tokens: t.whole(i, "tokens")}
		if s := t.str(i, "state"); s != "kept" && s != "" || k != v.group.kind || t.whole(i, "device_id") != v.group.device {
			continue
		}
		var u unitRow
		u.time, _ = t.num(i, "duration")
		u.busy, _ = t.num(i, "busy")
		u.idle, _ = t.num(i, "idle")
		u.compute, _ = t.num(i, "compute")
		u.launches, _ = t.num(i, "launches")
		u.kernels, _ = t.num(i, "kernels")
		if alike > 1 && u.kernels != float64(v.group.kernels) {
			continue // of another kind, told apart by its signature, which the table does not have
		}
		v.units = append(v.units, u)
	}
}

// call is a call of the API by its name, or nil.
func (v *view) call(name string) *call {
	if i := slices.IndexFunc(v.api, func(c call) bool { return c.name == name }); i >= 0 {
		return &v.api[i]
	}
	return nil
}

// kindOfCall sorts API names: launch, sync, copy or other. Memsets count as copies.
func kindOfCall(name string) string {
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

// blocks reports whether a call waits for the device: it synchronises, or copies and does not say Async.
func blocks(name string) bool {
	return strings.Contains(name, "Synchronize") || strings.Contains(name, "Memcpy") && !strings.Contains(name, "Async")
}
