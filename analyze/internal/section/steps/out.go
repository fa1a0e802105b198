package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// maxUnitRows is how many units the report itself lists; units.csv has more.
const maxUnitRows = 300

// unitTable lists the units of the window by start.
func unitTable(in *kit.Input, out *kit.Output, costs unitCosts, k *kinds) {
	x := in.Units
	list := lists.Where(len(x.Units), func(i int32) bool { return x.Units[i].State != workunit.Outside })
	lists.Sort(list, func(a, b int32) int { return cmp.Compare(x.Units[a].Start, x.Units[b].Start) })
	if len(list) <= maxUnitRows {
		unitRows(in, out, costs, list).Add()
		return
	}
	t := unitRows(in, out, costs, list[:min(len(list), in.Options.DetailRows)])
	if len(list) > in.Options.DetailRows {
		costs.others(t, list[in.Options.DetailRows:])
	}
	t.Attach()
	shown, rest := k.sampleUnits(list, len(x.Units))
	t = unitRows(in, out, costs, shown)
	t.File = ""
	out.Note("The table lists " + strconv.Itoa(maxUnitRows) +
		" units, evenly spaced within each kind; units.csv has more.")
	costs.others(t, rest)
	t.Add()
}

// sampleUnits chooses by start the maxUnitRows units to list, so that a comparison of two reports has units from all
// over the capture. The primary group on its slowest device gets up to two thirds, evenly spaced; every other kind on
// its slowest device gets an equal part of the rest; the remainder goes to the first of the others.
func (k *kinds) sampleUnits(list []int32, all int) (shown, rest []int32) {
	chosen := make([]bool, all)
	left := maxUnitRows
	spread := func(units []int32, most int) {
		n := min(len(units), most, left)
		for i := range n {
			chosen[units[i*len(units)/n]] = true
		}
		left -= n
	}
	spread(k.main.Units, maxUnitRows*2/3)
	for i, s := range k.byTime {
		if s != k.main {
			spread(s.Units, max(1, left/(len(k.byTime)-i)))
		}
	}
	for _, u := range list {
		if !chosen[u] && left > 0 {
			chosen[u] = true
			left--
		}
	}
	return lists.Filter(list, func(u int32) bool { return chosen[u] }),
		lists.Filter(list, func(u int32) bool { return !chosen[u] })
}

func unitRows(in *kit.Input, out *kit.Output, costs unitCosts, list []int32) *kit.Table {
	x := in.Units
	t := out.Table("units")
	for _, i := range list {
		u := &x.Units[i]
		pid, phase, batch, tokens := report.Null, report.Null, report.Null, report.Null
		if u.Proc != trace.None {
			pid = report.I(in.Trace.Procs[u.Proc].PID)
		}
		if u.Group >= 0 {
			g := &x.Groups[u.Group]
			phase, batch, tokens = report.S(g.Phase), kit.Known(g.Batch), kit.Known(g.Tokens)
		}
		t.Row(append(costs.fields(i),
			kit.Int("device_id", int64(u.Device)), kit.Put("pid", pid), kit.Put("phase", phase),
			kit.Put("batch", batch), kit.Put("tokens", tokens), kit.Text("state", u.State.String()),
			kit.Int("start", u.Start))...)
	}
	return t
}

// others ends the table of units with one row for those that it does not list.
func (costs unitCosts) others(t *kit.Table, list []int32) {
	t.TotalRows, t.Others = int64(t.Len()+len(list)), true
	t.Partial(append(costs.fields(list...), kit.Text("phase", "(others)"))...)
}

const maxGroupRows = 100

// groupTable shows the kinds of unit side by side.
func (r *unitRun) groupTable() {
	groups := r.in.Units.Groups
	t := r.out.Table("unit_groups")
	all := lists.Sum(r.byTime, func(s *unitSet) int64 { return groups[s.Group].Time })
	for _, s := range r.byTime {
		group := &groups[s.Group]
		m := stat.Summarize(r.costs.of(s, func(c *unitCost) int64 { return c.time }))
		rate := tokenRate(r.in, r.sets, s, m.P50)
		if rate != nil && group.Batch >= 0 {
			r.from("start", "end")
			r.out.Metric("unit.token_rate", groupLabels(group), rate).N = int64(len(s.Units))
		}
		t.Row(
			kit.Text("phase", group.Phase), kit.Put("batch", kit.Known(group.Batch)),
			kit.Put("tokens", kit.Known(group.Tokens)), kit.Int("units", group.Count),
			kit.Int("kernels", group.Kernels), kit.Int("device_id", int64(s.Device)), kit.Float("p50", m.P50),
			kit.Float("mean", m.Mean), kit.Float("p90", m.P90), kit.Maybe("token_rate", rate), kit.Float("min", m.Min), kit.Float("max", m.Max),
			kit.Float("busy", r.costs.mean(s, func(c *unitCost) int64 { return c.Busy() })),
			kit.Float("idle", r.costs.mean(s, func(c *unitCost) int64 { return c.time - c.Busy() })),
			kit.Maybe("share", stat.Ratio(group.Time, all)), kit.Text("signature", group.Signature))
	}
	t.Cut(maxGroupRows, "units", "share").Add()
}

// timeTable lists how the time of a unit of the primary group is spent.
func (r *unitRun) timeTable() {
	c := r.out.Table("unit_time")
	total := r.costs.mean(r.main, func(c *unitCost) int64 { return c.time })
	row := func(name string, of func(c *unitCost) int64) {
		v := r.costs.mean(r.main, of)
		c.Row(
			kit.Text("class", name), kit.Float("time", v), kit.Maybe("share", stat.Ratio(v, total)))
	}
	row("compute", func(c *unitCost) int64 { return c.Compute })
	row("exposed communication", func(c *unitCost) int64 { return c.ExposedComm })
	row("exposed copy", func(c *unitCost) int64 { return c.ExposedCopy })
	for cause, name := range timeline.CauseNames {
		row("idle: "+name, func(c *unitCost) int64 { return c.Cause[cause] })
	}
	c.Add()
}

// kernelTable lists the kernels of the primary group with the columns by which a comparison pairs them.
func (r *unitRun) kernelTable() {
	t := r.out.Table("unit_kernels")
	w := r.work
	units := float64(w.units)
	unitTime := r.costs.mean(r.main, func(c *unitCost) int64 { return c.time })
	time, alone, count := w.total(w.time, partTime), w.total(w.exclusive, partTime), w.total(w.time, partCount)
	first, between := w.positions(r.in, r.main.Group), make([]report.Cell, w.names)
	shapes, threads := w.geometries(r.in, r.main)
	if r.between {
		between = w.launchedBetween(r.in, r.main)
	}
	names := w.ranked(r.in)
	for _, n := range names {
		k := w.info(r.in, n)
		mean := float64(time[n]) / units
		t.Row(
			kit.Text("kernel_name", w.label(r.in, n)), kit.Text("category", string(k.Category)),
			kit.Text("library", k.Library), kit.Text("family", k.Family), kit.Text("canonical", k.Canonical),
			kit.Put("position", first[n]), kit.Put("geometry", report.OrNull(shapes[n])), kit.Put("threads", threads[n]),
			kit.Put("between", between[n]),
			kit.Float("count", float64(count[n])/units), kit.Float("time", mean),
			kit.Float("exclusive", float64(alone[n])/units),
			kit.Maybe("share", stat.Ratio(float64(alone[n])/units, unitTime)))
	}
	t.Cut(w.fitting(r.in, names, maxUnitKernels), "count", "time", "exclusive", "share", "between").Add()
}

// positions is, by kernel name, the position of its first run in the unit that is the group's example.
func (w *unitWork) positions(in *kit.Input, group int32) []report.Cell {
	first, at := make([]report.Cell, w.names), int64(0)
	example := in.Units.Groups[group].Example
	if example < 0 {
		return first
	}
	eachPiece(in, oneUnit(example), func(d *timeline.Device, i int, _ int32) {
		if n := w.name(in, d, i); n >= 0 {
			if first[n].IsNull() {
				first[n] = report.I(at)
			}
			at++
		}
	}, in.Units.Of)
	return first
}

// geometries is, by kernel name, the geometry of its launches in the units of a set, empty if it is not known or they are
// not alike, and the mean number of their threads.
func (w *unitWork) geometries(in *kit.Input, s *unitSet) (shapes []string, threads []report.Cell) {
	kernels := &in.Trace.Kernels
	texts, of := lists.Map(kernels.Configs, geometry), lists.Map(kernels.Configs, threadsOf)
	shapes, threads = make([]string, w.names), make([]report.Cell, w.names)
	sum, runs := make([]float64, w.names), make([]float64, w.names)
	eachPiece(in, s, func(d *timeline.Device, i int, _ int32) {
		if d.Kind(i) != timeline.KernelWork {
			return
		}
		n, c := kernels.Name(d.Row(i)), kernels.Config(d.Row(i))
		if runs[n] == 0 {
			shapes[n] = texts[c]
		} else if shapes[n] != texts[c] {
			shapes[n] = ""
		}
		sum[n], runs[n] = sum[n]+of[c], runs[n]+1
	}, in.Units.Of)
	for n := range sum {
		if sum[n] > 0 {
			threads[n] = report.F(sum[n] / runs[n])
		}
	}
	return shapes, threads
}

// threadsOf is the number of threads of a launch; 0 if the capture does not say.
func threadsOf(c trace.LaunchConfig) float64 {
	if geometry(c) == "" {
		return 0
	}
	n := 1.0
	for _, extent := range slices.Concat(c.Grid[:], c.Block[:]) {
		n *= float64(max(1, extent))
	}
	return n
}

// geometry is a launch's grid and block, and its shared memory if it has any: "grid 256×256, block 16×16, shared 4096
// B"; empty if the capture does not say. Registers belong to the kernel.
func geometry(c trace.LaunchConfig) string {
	if c.Grid[0] <= 0 || c.Block[0] <= 0 {
		return ""
	}
	extent := func(v [3]int32) string {
		text := strconv.Itoa(int(v[0]))
		if v[1] > 1 || v[2] > 1 {
			text += "×" + strconv.Itoa(int(v[1]))
		}
		if v[2] > 1 {
			text += "×" + strconv.Itoa(int(v[2]))
		}
		return text
	}
	text := "grid " + extent(c.Grid) + ", block " + extent(c.Block)
	if shared := int64(c.SharedStatic) + int64(c.SharedDynamic); shared > 0 {
		text += ", shared " + strconv.FormatInt(shared, 10) + " B"
	}
	return text
}

// launchedBetween is, by kernel name, how often it was launched between the markers of units of a set, per unit.
func (w *unitWork) launchedBetween(in *kit.Input, s *unitSet) []report.Cell {
	count := make([]int64, w.names)
	eachPiece(in, s, func(d *timeline.Device, i int, _ int32) {
		if n := w.name(in, d, i); n >= 0 {
			count[n]++
		}
	}, in.Units.Between)
	return lists.Map(count, func(k int64) report.Cell { return report.F(float64(k) / float64(w.units)) })
}

// maxPoints bounds the points of the chart over all devices.
const maxPoints = 1200

// chart draws the time of the primary group's units, one after the other. The warm-up units, which no number counts,
// are points of their own.
func (r *unitRun) chart() {
	c := report.Chart{ID: "unit_time", Title: "Time of each unit", Kind: "line", Unit: report.Nanoseconds,
		XTitle: "Step (run order, warm-up excluded)"}
	for _, s := range r.devices {
		c.Series = append(c.Series, seriesOf(r.in.Units, s, max(1, maxPoints/len(r.devices)))...)
	}
	r.out.Chart(c)
}

// seriesOf are at most most times of a set's units and of the warm-up units of its kind and device, numbered in the
// order in which they ran.
func seriesOf(x *workunit.Result, s *unitSet, most int) []report.Series {
	name := "GPU " + strconv.Itoa(int(s.Device))
	kept := report.Series{Name: name, Labels: []string{}, Values: []float64{}}
	warm := report.Series{Name: name + ", warm-up", Style: "points", Labels: []string{}, Values: []float64{}}
	number := 0
	for i := range x.Units {
		u := &x.Units[i]
		if u.Device != s.Device || u.Group != s.Group || u.State != workunit.Kept && u.State != workunit.Warmup {
			continue
		}
		if number++; number > most {
			break
		}
		to := &kept
		if u.State == workunit.Warmup {
			to = &warm
		}
		to.Labels, to.Values = append(to.Labels, strconv.Itoa(number)), append(to.Values, float64(u.Time()))
	}
	if len(warm.Values) == 0 {
		return []report.Series{kept}
	}
	return []report.Series{kept, warm}
}

// Limits from which a finding is made.
const (
	unitUneven    = 1.25 // p90 over p50
	unitImbalance = 1.05 // slowest over fastest device, of busy time
	manyUnits     = 10   // from which a spread means something
)

func (r *unitRun) findings() {
	if len(r.main.Units) < manyUnits {
		return
	}
	times := r.costs.of(r.main, func(c *unitCost) int64 { return c.time })
	slices.Sort(times)
	b := kit.TwoTimes(r.in.Units)
	if b == nil && stat.Percentile(times, 0.9) <= unitUneven*stat.Percentile(times, 0.5) {
		return
	}
	title := "Steps of the same kernels take very different time"
	if b != nil {
		title = "Steps of the same kernels take two unlike times: " + b.String()
		emit := func(mode string, time, share float64) {
			r.out.Float("unit.mode_time", kit.Labels("mode", mode), time)
			r.out.Float("unit.mode_share", kit.Labels("mode", mode), share)
		}
		emit("short", b.Short, 1-b.Slow)
		emit("long", b.Long, b.Slow)
	}
	r.out.FindAs("unit_uneven", title,
		kit.Refs("unit.time", "unit.gpu_busy", "unit.gpu_idle"),
		"Compare the slow rows of the units table with the others: if busy time is alike, the host delays them (garbage collection, scheduling, another process on the machine); if it is not, the work differs (sequence lengths, batch size).",
		"Before comparing two captures, capture more units: a mean over uneven units is noisy.")
}

// imbalance looks for a device whose units are busier than another's.
func (r *unitRun) imbalance() {
	busy := func(s *unitSet) float64 {
		return r.costs.mean(s, func(c *unitCost) int64 { return c.Busy() - c.ExposedComm })
	}
	byBusy := func(a, b *unitSet) int { return cmp.Compare(busy(a), busy(b)) }
	low, high := slices.MinFunc(r.devices, byBusy), slices.MaxFunc(r.devices, byBusy)
	if low == high || busy(low) <= 0 || busy(high) < unitImbalance*busy(low) {
		return
	}
	r.out.Find("unit_imbalance",
		[]report.MetricRef{kit.Ref("unit.compute_time", "device", strconv.Itoa(int(high.Device))),
			kit.Ref("unit.compute_time", "device", strconv.Itoa(int(low.Device)))},
		"All devices wait for the busiest one: look at what it alone does (embedding, sampling, uneven experts or pipeline stages), and whether it runs at a lower clock.")
}
