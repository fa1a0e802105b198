package steps

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

// unitRun is the state of the section.
type unitRun struct {
	in     *kit.Input
	out    *kit.Output
	costs  []unitCost
	lateOn []*lateCalls // by device
	sets   []unitSet
	main   *unitSet // the primary group on its slowest device
	// slowest is, by group, the set of its slowest device, or -1.
	slowest []int
	ids     []string // by group, see GroupIDs
	work    *unitWork
	// between is whether kernels were launched between the markers of units.
	between bool
	rows    int // of GPU work that belongs to units
}

// from sets the source of the next metrics: the tables that hold the units' work.
func (r *unitRun) from(columns ...string) {
	first := true
	for _, role := range []trace.Role{trace.RoleKernel, trace.RoleGraph, trace.RoleMemcpy, trace.RoleMemset} {
		switch {
		case !r.in.Trace.Tables.Has(role):
		case first:
			r.out.From(role, r.rows, columns...)
			first = false
		default:
			r.out.Source.With(role)
		}
	}
	if r.in.Units.Kind == workunit.KindNVTX {
		r.out.Source.With(trace.RoleNVTX, "text", "textId")
	}
}

// countRows is how many pieces of work belong to units.
func countRows(units *workunit.Result) (rows int) {
	for d := range units.Of {
		members, n := units.Of[d].Walk(), units.Timeline.Devices[d].Len()
		for i := 0; i < n; {
			u, end := members.Run(i, n)
			if u != trace.None {
				rows += end - i
			}
			i = end
		}
	}
	return rows
}

// byTime are the groups with kept units, those with most time first.
func (r *unitRun) byTime(slowest []int) []int {
	groups := r.in.Units.Groups
	order := make([]int, 0, len(groups))
	for g := range groups {
		if slowest[g] >= 0 {
			order = append(order, g)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(groups[b].Time, groups[a].Time) })
	return order
}

func (r *unitRun) groupLabels(g int) report.Labels {
	group := &r.in.Units.Groups[g]
	l := kit.Labels("phase", group.Phase, "batch", strconv.FormatInt(group.Batch, 10))
	if group.Tokens >= 0 {
		l["tokens"] = strconv.FormatInt(group.Tokens, 10)
	}
	return l
}

// summary emits the median of a sample of the kind of unit that the set is of.
func (r *unitRun) summary(s *unitSet, id string, l report.Labels, sample []int64) {
	r.out.Summary(id, l, sample).Group = r.ids[s.group]
}

// mean of a cost over a set of units.
func (r *unitRun) mean(s *unitSet, of func(c *unitCost) int64) float64 {
	var total int64
	for _, u := range s.units {
		total += of(&r.costs[u])
	}
	return float64(total) / float64(len(s.units))
}

// graphCategory is the category of graphLabel: the kernels inside are not known.
const graphCategory = "graph"

// others are the kinds of unit with most time that are not the main kind of any phase.
func (r *unitRun) others(slowest, mains []int) []int {
	var list []int
	for _, g := range r.byTime(slowest) {
		if len(list) < maxKinds && !slices.Contains(mains, g) && r.in.Units.Groups[g].Batch >= 0 {
			list = append(list, g)
		}
	}
	return list
}
