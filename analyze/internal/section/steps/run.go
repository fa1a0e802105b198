package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// unitRun is what the section is made from.
type unitRun struct {
	in  *kit.Input
	out *kit.Output
	kinds
	costs   unitCosts
	work    *unitWork // of the main set
	between bool      // whether kernels were launched between the markers of units
	rows    int       // of GPU work that belongs to units
}

// unitless says why there are no kept units, if so.
func unitless(in *kit.Input, out *kit.Output) bool {
	switch x := in.Units; {
	case len(x.Timeline.Devices) == 0:
		out.Status(report.Unavailable, in.NoWork())
	case x.Kind == workunit.KindNone:
		out.Status(report.NotApplicable, x.Why)
	case x.Primary < 0:
		out.Status(report.NotApplicable, "no complete unit of work starts in the window")
	default:
		return false
	}
	return true
}

// kinds are the kinds of unit of a capture with kept units.
type kinds struct {
	sets    []*unitSet
	devices []*unitSet // the primary group, on each device
	main    *unitSet   // the same on its slowest device
	byTime  []*unitSet // each group on its slowest device, those with most time first
	phases  []*unitSet // those of byTime that are the main kind of a phase, phases with most time first
}

func kindsOf(in *kit.Input) kinds {
	x, ids := in.Units, kit.GroupIDs(in.Units)
	var k kinds
	slowest := make([]*unitSet, len(x.Groups))
	for _, s := range x.Sets() {
		set := &unitSet{s, ids[s.Group]}
		if k.sets = append(k.sets, set); s.Slowest {
			slowest[s.Group] = set
		}
	}
	k.main = slowest[x.Primary]
	k.devices = lists.Filter(k.sets, func(s *unitSet) bool { return s.Group == k.main.Group })
	k.byTime = lists.Filter(slowest, func(s *unitSet) bool { return s != nil })
	lists.Sort(k.byTime, func(a, b *unitSet) int {
		return cmp.Compare(x.Groups[b.Group].Time, x.Groups[a.Group].Time)
	})
	k.phases = lists.Map(x.PhaseMains(), func(g int) *unitSet { return slowest[g] })
	return k
}

// elsewhere are the main kind of unit on its other devices, of which another report may compare one.
func (k *kinds) elsewhere() []*unitSet {
	return lists.Filter(k.devices, func(s *unitSet) bool { return s != k.main })
}

// labelled is a set of units, the labels of its metrics, and how many of its kernels have metrics.
type labelled struct {
	labels  report.Labels
	set     *unitSet
	kernels int
}

// detailed are the kinds of unit whose kernels, calls and copies the report lists: the main one, the main one of each
// phase, and those with most time of the others, because one of these may be the main one of another capture.
func (k *kinds) detailed(x *workunit.Result) []labelled {
	list := []labelled{{nil, k.main, maxUnitKernels}}
	if len(k.phases) < 2 && x.Kind != workunit.KindNVTX {
		return list
	}
	for _, s := range k.phases[:min(len(k.phases), maxPhases)] {
		list = append(list, labelled{kit.Labels("phase", x.Groups[s.Group].Phase), s, maxPhaseKernels})
	}
	others := 0
	for _, s := range k.byTime {
		if g := &x.Groups[s.Group]; others < maxKinds && !slices.Contains(k.phases, s) && g.Batch >= 0 {
			list = append(list, labelled{groupLabels(g), s, maxKindKernels})
			others++
		}
	}
	return list
}

const (
	maxPhases = 4 // whose kernels the report lists one by one
	maxKinds  = 4 // further kinds of unit, likewise
)

// from sets the source of the next metrics: the tables that hold the units' work.
func (r *unitRun) from(columns ...string) {
	roles := []trace.Role{trace.RoleKernel, trace.RoleGraph, trace.RoleMemcpy, trace.RoleMemset}
	r.out.FromAny(r.rows, roles, columns...)
	if r.in.Units.Kind == workunit.KindNVTX {
		r.out.Source.With(trace.RoleNVTX, "text", "textId")
	}
}

func groupLabels(g *workunit.Group) report.Labels {
	l := kit.Labels("phase", g.Phase, "batch", strconv.FormatInt(g.Batch, 10))
	if g.Tokens >= 0 {
		l["tokens"] = strconv.FormatInt(g.Tokens, 10)
	}
	return l
}

// graphCategory is the category of graphLabel: the kernels inside are not known.
const graphCategory = "graph"
