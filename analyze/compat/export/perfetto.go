package export

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// ErrNoStep says that a report has no unit of work to show event by event.
var ErrNoStep = errors.New("no unit of work was found that could be shown")

// PerfettoUnit is one unit of work for [Perfetto].
type PerfettoUnit struct {
	Side  string // "base" or "head"; empty if there is one side
	Steps *report.UnitSteps
	Step  *report.UnitStep
	Shown *report.UnitShown
	// Changes are how many ns longer the kernel at each position, from 0, takes on the head; nil if there is one side.
	Changes map[int64]float64
}

// PerfettoUnits are the units that a report shows of its main kind: the median one and the slowest.
func PerfettoUnits(r *report.Report) ([]PerfettoUnit, error) {
	if r.Unit.Steps == nil || len(r.Unit.Steps.List) == 0 || len(r.Unit.Steps.List[0].Shown) == 0 {
		return nil, ErrNoStep
	}
	step := r.Unit.Steps.List[0]
	return lists.Map(step.Shown, func(u *report.UnitShown) PerfettoUnit {
		return PerfettoUnit{Steps: r.Unit.Steps, Step: step, Shown: u}
	}), nil
}

// PerfettoMedian is the median unit of a kind of a report on a device, or on the slowest device if that one has none.
// An empty kind is the main one.
func PerfettoMedian(r *report.Report, kind string, device int64, side string) (PerfettoUnit, error) {
	list, err := PerfettoUnits(r)
	if err != nil {
		return PerfettoUnit{}, err
	}
	kind = cmp.Or(kind, list[0].Step.Group)
	s := cmp.Or(r.Unit.Step(kind, device), r.Unit.Step(kind, -1))
	if s == nil || len(s.Shown) == 0 {
		return PerfettoUnit{}, ErrNoStep
	}
	return PerfettoUnit{Side: side, Steps: r.Unit.Steps, Step: s, Shown: s.Shown[0]}, nil
}

// traceEvent is one event of the Trace Event Format, which Perfetto reads. Times are µs.
type traceEvent struct {
	Name     string         `json:"name"`
	Phase    string         `json:"ph"` // X: complete; M: metadata; s and f: start and end of a flow
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Start    *float64       `json:"ts,omitempty"`
	Duration *float64       `json:"dur,omitempty"`
	Category string         `json:"cat,omitempty"`
	Flow     int            `json:"id,omitempty"`
	Bind     string         `json:"bp,omitempty"` // e: a flow ends at the event around its end
	Args     map[string]any `json:"args,omitempty"`
}

// Perfetto writes units of work as a trace in the JSON form of the Trace Event Format. Each unit is a process, and all
// start at 0, so that they lie above each other. Tracks show nested NVTX ranges, the calls of each launching thread,
// each stream, idle time by cause and the critical path. GPU work carries its whole name, its stream and the geometry
// of its launch; if the report's positions are those of the events, also its position and its change. A flow leads to
// it from the call that launched it, if that call is in the unit.
func Perfetto(w io.Writer, units []PerfettoUnit) error {
	p := &perfetto{w: bufio.NewWriter(w)}
	p.w.WriteString(`{"displayTimeUnit":"ns","traceEvents":[`)
	for i, u := range units {
		p.unit(i+1, &u)
	}
	p.w.WriteString("\n]}\n")
	return cmp.Or(p.err, p.w.Flush())
}

type perfetto struct {
	w       *bufio.Writer
	n       int // events
	flows   int
	process int
	thread  int
	err     error
}

// slice is an event on a track.
type slice struct {
	report.UnitEvent
	args   map[string]any
	thread int // that it is written to
}

func (p *perfetto) event(e traceEvent) {
	e.Process = p.process
	b, err := json.Marshal(e)
	p.err = cmp.Or(p.err, err)
	if p.n++; p.n > 1 {
		p.w.WriteByte(',')
	}
	p.w.WriteByte('\n')
	p.w.Write(b)
}

func (p *perfetto) meta(what, key string, value any) {
	p.event(traceEvent{Name: what, Phase: "M", Thread: p.thread, Args: map[string]any{key: value}})
}

// track begins a track; tracks stand in the order in which they begin.
func (p *perfetto) track(name string) {
	p.thread++
	p.meta("thread_name", "name", name)
	p.meta("thread_sort_index", "sort_index", p.thread)
}

func (p *perfetto) complete(name, category string, start, duration int64, more map[string]any) {
	from, length := float64(start)/1e3, float64(duration)/1e3
	args := map[string]any{"ns": duration}
	maps.Copy(args, more)
	p.event(traceEvent{Name: name, Phase: "X", Thread: p.thread, Start: &from, Duration: &length, Category: category, Args: args})
}

// flow leads from the start of one event to that of another.
func (p *perfetto) flow(from, to *slice) {
	p.flows++
	start, end := float64(from.Start)/1e3, float64(to.Start)/1e3
	event := traceEvent{Name: "launch", Phase: "s", Thread: from.thread, Start: &start, Category: "launch", Flow: p.flows}
	p.event(event)
	event.Phase, event.Thread, event.Start, event.Bind = "f", to.thread, &end, "e"
	p.event(event)
}

func (p *perfetto) unit(process int, u *PerfettoUnit) {
	p.process, p.thread = process, 0
	name := fmt.Sprintf("%s unit, number %d on GPU %d, %s", u.Shown.Which, u.Shown.Number, u.Step.Device,
		unit.Format(float64(u.Shown.Duration), report.Nanoseconds))
	if u.Side != "" {
		name = u.Side + ": " + name
	}
	p.meta("process_name", "name", name)
	p.meta("process_sort_index", "sort_index", process)
	work, calls, ranges, gaps := u.Shown.Events()
	host := cmp.Or(u.Shown.Thread, "host")
	lists.Sort(ranges, func(a, b report.UnitEvent) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Lane, b.Lane)) // the outer one first
	})
	for i := range ranges {
		ranges[i].Lane = 0
	}
	p.lanes(u, host+": NVTX", slicesOf(ranges))
	launching := slicesOf(calls)
	p.lanes(u, host+": CUDA calls", launching)
	for i := range u.Shown.Others {
		more := slicesOf(u.Shown.Others[i].Events())
		p.lanes(u, u.Shown.Others[i].Thread+": CUDA calls", more)
		launching = append(launching, more...)
	}
	p.work(u, work, launching)
	if len(gaps) > 0 {
		p.track("GPU idle, by cause")
	}
	for _, g := range gaps {
		at := g.Start
		for c, ns := range g.Causes {
			if ns > 0 {
				p.complete(report.StepCauses[c], "idle", at, ns, nil)
				at += ns
			}
		}
	}
	if len(u.Shown.Path) > 0 {
		p.track("critical path")
	}
	for i, at := 0, int64(0); i+1 < len(u.Shown.Path); i += 2 {
		p.complete(report.PathParts[u.Shown.Path[i]], "path", at, u.Shown.Path[i+1], nil)
		at += u.Shown.Path[i+1]
	}
}

func slicesOf(events []report.UnitEvent) []*slice {
	return lists.Map(events, func(e report.UnitEvent) *slice { return &slice{UnitEvent: e} })
}

// work writes GPU work by stream: each piece with its attributes, and a flow from the call that launched it.
func (p *perfetto) work(u *PerfettoUnit, work []report.UnitEvent, calls []*slice) {
	list, at, origins := slicesOf(work), positions(u, work), u.Shown.WorkOrigins()
	for i, e := range list {
		e.args = map[string]any{"name": u.Steps.Names[e.Name], "stream": e.Lane}
		if at != nil && at[i] >= 0 {
			e.args["position"] = at[i]
			if d, changed := u.Changes[at[i]]; changed {
				e.args["head less base, ns"] = d
			}
		}
		if i < len(origins) && origins[i].Shape >= 0 {
			for part := range strings.SplitSeq(u.Steps.Names[origins[i].Shape], ", ") { // grid 8×4, block 128
				what, size, _ := strings.Cut(part, " ")
				e.args[what] = size
			}
		}
	}
	p.lanes(u, "stream", list)
	for i, o := range origins[:min(len(origins), len(list))] {
		if o.Call >= 0 && o.Call < int64(len(calls)) {
			p.flow(calls[o.Call], list[i])
		}
	}
}

// positions are the places in the step, from 0, of the kernels that start in the unit, and -1 for other work; nil if
// these kernels are not those of the step's positions one by one.
func positions(u *PerfettoUnit, work []report.UnitEvent) []int64 {
	list, err := u.Step.Positions()
	if err != nil {
		return nil
	}
	at, n := make([]int64, len(work)), 0
	for i, e := range work {
		if c := u.Steps.Categories[e.Name]; e.Start < 0 || e.Start >= u.Shown.Duration || c == "copy" {
			at[i] = -1
			continue
		}
		if n >= len(list) || list[n].Name != e.Name {
			return nil
		}
		at[i] = int64(n)
		n++
	}
	if n != len(list) {
		return nil
	}
	return at
}

// lanes writes events, one track for each lane. The format does not allow partly overlapping events on a track: those
// go to a further track of the lane.
func (p *perfetto) lanes(u *PerfettoUnit, title string, events []*slice) {
	lanes := lists.Groups(events, func(e *slice) int64 { return e.Lane })
	for _, list := range lanes {
		name := title
		if len(lanes) > 1 || title == "stream" {
			name += " " + strconv.FormatInt(list[0].Lane, 10)
		}
		for ; len(list) > 0; name = strings.TrimSuffix(name, ", overlapping") + ", overlapping" {
			p.track(name)
			list = p.nested(u, list)
		}
	}
}

// nested writes the events that fit on one track, and returns the others.
func (p *perfetto) nested(u *PerfettoUnit, list []*slice) (left []*slice) {
	var ends []int64
	for _, e := range list {
		for len(ends) > 0 && ends[len(ends)-1] <= e.Start {
			ends = ends[:len(ends)-1]
		}
		if len(ends) > 0 && e.Start+e.Duration > ends[len(ends)-1] {
			left = append(left, e)
			continue
		}
		ends = append(ends, e.Start+e.Duration)
		e.thread = p.thread
		p.complete(u.Steps.Names[e.Name], u.Steps.Categories[e.Name], e.Start, e.Duration, e.args)
	}
	return left
}
