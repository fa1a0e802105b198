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

// Positions is the unit of work kernel by kernel.
var Positions = kit.Section{
	ID: "unit_positions", Group: report.GroupStep, Title: "The step, kernel by kernel",
	Derivation: "The kernels of every kept unit, or of 4,096 of them, evenly spread, are aligned with those of the median " +
		"unit, stream by stream; a kernel without a partner has no position. Each nanosecond of a unit goes to one " +
		"running kernel (compute before communication, then the one that started first), or, if none runs, to the next kernel: idle " +
		"time by cause, and time in which only copies ran. Time after the last kernel is the end, kernels of " +
		"other units are the rest. All positions, the end and the rest sum to unit.time, to the nanosecond.",
	Metrics: []report.MetricDef{
		kit.UnitTime("unit.hiccup_time", report.Lower, report.OfStep, "idle time before kernels in a mean unit minus "+
			"the sum of the medians by position: idle time of some units only"),
	},
	Tables: []report.Table{
		{ID: "unit_positions", Title: "Positions of the unit", File: "unit_positions.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("position", "#"),
			kit.NameCol("kernel_name", "Kernel"),
			kit.TextCol("category", "Category"),
			kit.Wide(kit.IDCol("stream", "Stream")),
			kit.MeanCol("start", "Start", "start_ns", "start_us"),
			kit.Wide(kit.MeanCol("start_median", "Start, median", "start_median_ns")),
			kit.MeanCol("duration", "Duration", "duration_ns", "duration_us"),
			kit.Wide(kit.MeanCol("duration_median", "Duration, median", "duration_median_ns")),
			kit.Wide(kit.MeanCol("alone", "Exclusive", "exclusive_ns")),
			kit.MeanCol("gap", "Gap before", "gap_ns", "gap_us"),
			kit.MeanCol("gap_median", "Gap, median", "gap_median_ns"),
			kit.TextCol("cause", "Mostly"),
			kit.Wide(kit.MeanCol("sync", "Sync", "sync_ns")),
			kit.Wide(kit.MeanCol("host", "Host", "host_ns")),
			kit.Wide(kit.MeanCol("launch", "Launch", "launch_ns")),
			kit.Wide(kit.MeanCol("dependency", "Dependency", "dependency_ns")),
			kit.Wide(kit.MeanCol("unknown", "Unknown", "unknown_ns")),
			kit.Wide(kit.MeanCol("copies", "Copies before", "copies_ns")),
			kit.CountCol("units", "In units"),
			kit.RatioCol("share", "Share of unit", "pct_of_unit"),
		}},
	},
	Early: func(in *kit.Input) { stepsOf(in) },
	Run:   positions,
}

// Bounds of the sequence in a report.
const (
	maxPositionRows = 150   // of the table; the file has all rows
	maxAllPositions = 2_000 // of all kinds and devices except the main kind on its slowest device
	maxShownSets    = 4     // kinds and devices with units that are shown
	maxShownSize    = 500   // kernels of a unit; above, only the main kind is shown, on its slowest device
)

// stepData is what Steps and the section share.
type stepData struct {
	steps *report.UnitSteps
	main  *report.UnitStep
	units int64 // of the main kind, which main may be of a sample of
}

// Steps is every unit of the input kernel by kernel; group gives the id of a kind. It is nil if there is no unit.
func Steps(in *kit.Input) *report.UnitSteps { return stepsOf(in).steps }

func stepsOf(in *kit.Input) *stepData {
	return kit.Once(in, "unit steps", func() *stepData { return newSteps(in) })
}

func newSteps(in *kit.Input) *stepData {
	x := in.Units
	d := &stepData{}
	if x == nil || x.Kind == workunit.KindNone || x.Primary < 0 {
		return d
	}
	names := &nameTable{}
	d.steps = &report.UnitSteps{List: []*report.UnitStep{}}
	stacks := &stackTable{in: in, names: names}
	list := stepSets(in)
	if in.Brief {
		list = list[:1]
	}
	room := maxAllPositions
	for i, s := range list {
		kernels := x.Groups[s.Group].Kernels
		if i > 0 && kernels > int64(room) {
			continue
		}
		shown := i == 0 || i < maxShownSets && kernels <= maxShownSize
		step := newStep(in, s, stacks, shown && !in.Brief)
		if i == 0 {
			d.main, d.units = step, int64(len(s.Units))
		} else {
			room -= len(step.Name)
		}
		d.steps.List = append(d.steps.List, step)
	}
	d.steps.Names, d.steps.Categories, d.steps.Stacks = []string{}, []string{}, stacks.list
	for _, n := range names.Keys {
		d.steps.Names, d.steps.Categories = append(d.steps.Names, n.name), append(d.steps.Categories, n.category)
	}
	return d
}

// stepSets are the sets of units whose sequence is reported: the main kind on its slowest device, the main kind on
// other devices, then the main kind of each other phase.
func stepSets(in *kit.Input) []*unitSet {
	k := kindsOf(in)
	phases := lists.Filter(k.phases, func(s *unitSet) bool { return s != k.main })
	list := slices.Concat([]*unitSet{k.main}, k.elsewhere(), phases)
	return list[:min(len(list), maxStepSets)]
}

// maxStepSets bounds the kinds and devices: each takes some passes over the device's work.
const maxStepSets = 8

func newStep(in *kit.Input, set *unitSet, stacks *stackTable, shown bool) *report.UnitStep {
	step := &report.UnitStep{Group: set.id, Device: int64(set.Device), Hiccups: []int64{}, Shown: []*report.UnitShown{}}
	names, s := stacks.names, newStepTimes(newSequence(in, set), step)
	defer s.free()
	step.Units, step.Sampled, step.Kernels = int64(len(s.set.Units)), int64(s.n), int64(len(s.work))
	step.Folded = len(s.first) < len(s.positions)
	step.Aligned = int64(lists.Count(s.at, func(position int32) bool { return position >= 0 }))
	step.Time = lists.Sum(s.set.Units, func(u int32) int64 { return in.Units.Units[u].Time() })
	for p, w := range s.first {
		x := &s.list[p]
		x.Name, x.Stream = names.label(in, s.device, int(w)), s.device.Stream(int(w))
		x.Inside = stacks.around(s.device.Call(int(w)))
		if s.count[p] > 1 {
			category := names.Keys[x.Name].category
			x.Name = names.of("["+category+" × "+strconv.Itoa(int(s.count[p]))+"]", category)
		}
	}
	end := s.list[len(s.first)]
	step.End = report.StepEnd{Gap: end.Gap[:], Copies: end.Copies, GapMedian: end.GapMedian}
	step.SetPositions(s.list[:len(s.first)])
	if shown {
		median, slowest := s.set.Units[s.sequence.median], s.slowest()
		step.Shown = append(step.Shown, showUnit(in, "median", median, names))
		if slowest != median {
			step.Shown = append(step.Shown, showUnit(in, "slowest", slowest, names))
		}
	}
	return step
}

func positions(in *kit.Input, out *kit.Output) {
	if unitless(in, out) {
		return
	}
	d := stepsOf(in)
	list, err := d.main.Positions()
	if err != nil {
		out.Status(report.Error, err.Error())
		return
	}
	s := d.main
	if !in.Trace.Tables.Has(trace.RoleKernel) {
		out.From(trace.RoleGraph, int(s.Kernels), "start", "end", "deviceId")
	} else {
		out.From(trace.RoleKernel, int(s.Kernels), "start", "end", "deviceId", "streamId", "correlationId")
	}
	out.Source.With(trace.RoleAPI, "start", "end")
	out.Coverage(stat.Ratio(float64(s.Aligned), float64(s.Kernels)))
	gaps, medians := lists.Total(s.End.Gap), int64(0)
	for i := range list {
		gaps, medians = gaps+list[i].Idle(), medians+list[i].GapMedian
	}
	m := out.Float("unit.hiccup_time", nil, float64(gaps)/float64(s.Units)-float64(medians+s.End.GapMedian))
	m.N, m.Group = s.Units, s.Group
	positionNotes(s, len(list), d.units, out)
	positionTable(d, list, out)
}

func positionNotes(s *report.UnitStep, n int, all int64, out *kit.Output) {
	out.Note("Coverage is the share of the units' kernels that are at a position.")
	which := ""
	if s.Units < all {
		which = " of the " + strconv.FormatInt(all, 10) + ", evenly spread"
	}
	out.Note("Means and medians are over " + strconv.FormatInt(s.Units, 10) + " units on GPU " +
		strconv.FormatInt(s.Device, 10) + which + "; a gap is idle time of the whole device.")
	if s.Sampled < s.Units {
		out.Note("Medians are over " + strconv.FormatInt(s.Sampled, 10) + " of the units, evenly spaced.")
	}
	if s.Folded {
		out.Note("The unit has more kernels than the sequence has room for: neighbours of one category on one stream " +
			"share one of its " + strconv.Itoa(n) + " positions.")
	}
	if s.Aligned < s.Kernels {
		out.Note(strconv.FormatInt(s.Kernels-s.Aligned, 10) + " of " + strconv.FormatInt(s.Kernels, 10) +
			" kernels have no partner in the median unit; their time is in the rest.")
	}
}

// positionTable lists the positions in their order, the end and the rest; if there are many, those with most time.
func positionTable(d *stepData, list []report.Position, out *kit.Output) {
	s := d.main
	t := out.Table("unit_positions")
	n := float64(s.Units)
	row := func(at int, name, category string, p *report.Position) {
		fields := []kit.Field{kit.Put("position", kit.Known(int64(at))), kit.Text("kernel_name", name),
			kit.Put("category", report.OrNull(category)), kit.Float("alone", float64(p.Alone)/n),
			kit.Float("gap", float64(p.Idle())/n), kit.Float("copies", float64(p.Copies)/n),
			kit.Maybe("share", stat.Ratio(float64(p.Sum()), float64(s.Time)))}
		if p.Idle() > 0 {
			main := slices.Index(p.Gap[:], slices.Max(p.Gap[:]))
			fields = append(fields, kit.Text("cause", report.StepCauses[main]))
		}
		for c, ns := range p.Gap {
			fields = append(fields, kit.Float(report.StepCauses[c], float64(ns)/n))
		}
		if at >= 0 {
			fields = append(fields, kit.Int("stream", p.Stream), kit.Float("duration", float64(p.Time)/n),
				kit.Float("duration_median", float64(p.TimeMedian)),
				kit.Float("start", float64(p.Start)/float64(max(p.Ran, 1))),
				kit.Float("start_median", float64(p.StartMedian)), kit.Int("units", p.Ran))
		}
		if name != restName {
			fields = append(fields, kit.Float("gap_median", float64(p.GapMedian)))
		}
		t.Partial(fields...)
	}
	for i := range list {
		p := &list[i]
		row(i, d.steps.Names[p.Name], d.steps.Categories[p.Name], p)
	}
	row(-1, "(until the next unit)", "", &report.Position{Gap: [timeline.Causes]int64(s.End.Gap), Copies: s.End.Copies,
		GapMedian: s.End.GapMedian})
	if s.Rest > 0 {
		row(-1, restName, "", &report.Position{Alone: s.Rest})
	}
	t.Attach() // every row and column
	t.Table.TotalRows = int64(t.Len())
	reportPositions(t, out)
}

// csvOnly are the columns that the report leaves to the file.
var csvOnly = []string{"start_median", "duration_median", "sync", "host", "launch", "dependency", "unknown"}

// reportPositions puts the table into the report; if there are many positions, those with most time and the others in
// one row.
func reportPositions(t *kit.Table, out *kit.Output) {
	if t.Len() > maxPositionRows {
		at := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == "share" })
		share := func(row []report.Cell) float64 { v, _ := row[at].Num(); return v }
		byShare := slices.Clone(t.Rows)
		lists.Sort(byShare, func(a, b []report.Cell) int { return cmp.Compare(share(b), share(a)) })
		least := share(byShare[maxPositionRows-1])
		var shown, left [][]report.Cell
		for _, r := range t.Rows {
			if share(r) >= least && len(shown) < maxPositionRows {
				shown = append(shown, r)
			} else {
				left = append(left, r)
			}
		}
		t.Table.Rows = append(shown, left...)
		out.Note("The table lists the " + strconv.Itoa(maxPositionRows) +
			" positions with most time; unit_positions.csv has all.")
	}
	var columns []report.Column
	rows := make([][]report.Cell, t.Len())
	for k, c := range t.Columns {
		if slices.Contains(csvOnly, c.ID) {
			continue
		}
		columns = append(columns, c)
		for i := range rows {
			rows[i] = append(rows[i], t.Rows[i][k])
		}
	}
	t.Table.Columns, t.Table.Rows = columns, rows
	if t.Len() > maxPositionRows {
		t.File = "" // what is attached is the file
	}
	t.Cut(maxPositionRows, "duration", "alone", "gap", "copies", "share").Add()
}

// restName labels the time of kernels without a position.
const restName = "(other units' kernels)"
