package diff

import (
	"cmp"
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

// leastOthers, in ns, is what the rounding of means stays below: kernels that take more together are others.
const leastOthers = 0.5

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
	v.time = c.Summary("unit.time", l)
	v.busy, v.idle = c.Summary("unit.gpu_busy", l), c.Summary("unit.gpu_idle", l)
	v.compute, v.comm, v.copied = c.Summary("unit.compute_time", l), c.Summary("unit.exposed_comm_time", l), c.Summary("unit.exposed_copy_time", l)
	v.launches, v.kernels = c.Summary("unit.launches", l), c.Summary("unit.kernels", l)
	if v.time != nil && c.evidenceOnly() { // an iteration of a log has a duration and no parts
		v.series()
		return v
	}
	if v.time == nil || v.busy == nil || v.idle == nil || v.compute == nil || v.comm == nil || v.copied == nil {
		return nil
	}
	for _, cause := range causes() {
		v.causes = append(v.causes, c.Summary("unit.idle_cause_time", with(l, "cause", cause)))
	}
	v.kernelsOf(at == c.main)
	v.hostCalls()
	v.copyCounts()
	v.byCategory()
	v.series()
	return v
}

func with(l report.Labels, key, value string) report.Labels {
	out := l.Clone()
	out[key] = value
	return out
}

// kernelsOf reads the kernels of the group, of which the report keeps the largest: their numbers are metrics, and what they
// are called and belong to is in tables. Where a kernel first runs is known in units of the main group alone.
func (v *view) kernelsOf(main bool) {
	known := map[string]work{}
	t := v.c.Table("kernels", "kernels")
	for i := range t.Len() {
		name := t.Str(i, "kernel_name")
		known[name] = work{category: t.Str(i, "category"), family: name, canonical: name, position: -1}
	}
	t = v.c.Table("unit", "unit_kernels")
	for i := range t.Len() {
		w := work{category: t.Str(i, "category"), family: t.Str(i, "family"), canonical: t.Str(i, "canonical"), position: -1}
		if main {
			w.position = float64(t.Whole(i, "position"))
		}
		known[t.Str(i, "kernel_name")] = w
	}
	for _, m := range v.c.Metrics("kernel.time_per_unit") {
		if !labelled(m.Labels, v.labels, "kernel") || m.Summary == nil {
			continue
		}
		name := m.Labels["kernel"]
		w, ok := known[name]
		if !ok {
			w = work{canonical: name, family: name, position: -1}
		}
		w.name, w.time, w.spread, w.units = name, m.Summary.Mean, m.Summary.Stddev, m.Summary.N
		if s := v.c.Summary("kernel.count_per_unit", m.Labels); s != nil {
			w.count = s.Mean
		}
		if s := v.c.Summary("kernel.exclusive_time_per_unit", m.Labels); s != nil {
			w.alone = s.Mean
		}
		if name == graphName {
			v.hidden = true
		}
		v.work = append(v.work, w)
	}
	slices.SortFunc(v.work, func(a, b work) int {
		return cmp.Or(cmp.Compare(max(b.time, b.alone), max(a.time, a.alone)), cmp.Compare(a.name, b.name))
	})
	v.hasWork = len(v.work) > 0
	if !v.hasWork {
		return
	}
	rest := work{name: "(others)", position: -1, alone: v.compute.Mean + v.comm.Mean}
	if v.kernels != nil {
		rest.count = v.kernels.Mean
	}
	for i := range v.work {
		rest.alone -= v.work[i].alone
		rest.count -= v.work[i].count
	}
	rest.count = max(rest.count, 0)
	if v.hasOthers = rest.alone > leastOthers; v.hasOthers {
		v.others = rest
	}
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

// byCategory reads the categories of the kernels, all of them, those with most time first.
func (v *view) byCategory() {
	for _, m := range v.c.Metrics("kernel.exclusive_time_per_unit") {
		name := m.Labels["category"]
		if !labelled(m.Labels, v.labels, "category") || m.Summary == nil {
			continue
		}
		w := work{name: name, category: name, alone: m.Summary.Mean}
		if s := v.c.Summary("kernel.count_per_unit", m.Labels); s != nil {
			w.count = s.Mean
		}
		if s := v.c.Summary("kernel.time_per_unit", m.Labels); s != nil {
			w.time = s.Mean
		}
		v.categories = append(v.categories, w)
	}
	slices.SortFunc(v.categories, func(a, b work) int { return cmp.Or(cmp.Compare(b.alone, a.alone), cmp.Compare(a.name, b.name)) })
}

// hostCalls reads what the host did during the units.
func (v *view) hostCalls() {
	for _, m := range v.c.Metrics("api.time_per_unit") {
		if !labelled(m.Labels, v.labels, "api") || m.Summary == nil {
			continue
		}
		x := call{name: m.Labels["api"], time: m.Summary.Mean, spread: m.Summary.Stddev}
		if s := v.c.Summary("api.count_per_unit", m.Labels); s != nil {
			x.count = s.Mean
		}
		v.api = append(v.api, x)
	}
	slices.SortFunc(v.api, func(a, b call) int { return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name)) })
	v.hasAPI = len(v.api) > 0
}

// copyCounts reads the copies of the units.
func (v *view) copyCounts() {
	for _, m := range v.c.Metrics("memcpy.count_per_unit") {
		if !labelled(m.Labels, v.labels, "direction", "kind") || m.Summary == nil {
			continue
		}
		x := copies{direction: m.Labels["direction"], kind: m.Labels["kind"], count: m.Summary.Mean}
		if s := v.c.Summary("memcpy.bytes_per_unit", m.Labels); s != nil {
			x.bytes = s.Mean
		}
		v.copies = append(v.copies, x)
	}
	v.hasCopies = len(v.copies) > 0
}

// series reads the units themselves: those of the group on its slowest device.
func (v *view) series() {
	t := v.c.Table("unit", "units")
	if t.Len() == 0 {
		t = v.c.Table("iterations", "iteration_units")
	}
	n := t.Len()
	if t.Cut() {
		n--
	}
	alike := 0
	for i := range v.c.groups {
		if v.c.groups[i].kind == v.group.kind {
			alike++
		}
	}
	for i := range n {
		k := kind{phase: t.Str(i, "phase"), batch: t.Whole(i, "batch"), tokens: t.Whole(i, "tokens")}
		if s := t.Str(i, "state"); s != "kept" && s != "" || k != v.group.kind || t.Whole(i, "device_id") != v.group.Device {
			continue
		}
		var u unitRow
		u.time, _ = t.Num(i, "duration")
		u.busy, _ = t.Num(i, "busy")
		u.idle, _ = t.Num(i, "idle")
		u.compute, _ = t.Num(i, "compute")
		u.launches, _ = t.Num(i, "launches")
		u.kernels, _ = t.Num(i, "kernels")
		if alike > 1 && u.kernels != float64(v.group.Kernels) {
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
