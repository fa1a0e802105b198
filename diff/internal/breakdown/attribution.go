package breakdown

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Limits say which kernels have rows of their own.
type Limits struct {
	MinShare float64 // kernels below this share of the shorter unit are summed as others, 0..1
	Top      int     // most rows of kernels
}

// Attribute splits the change of the mean unit.time, ns, as far down as depth. Every row is a difference of means, so the
// parts sum to the total except for rounding, which Residual holds.
func Attribute(onBase, onHead *side.Side, depth comparison.Depth, limits Limits) comparison.Attribution {
	a := comparison.Attribution{Metric: "unit.time"}
	both := func(of func(v *side.View) *report.Summary) (b, h float64) {
		b, h, _ = means(onBase.Views, onHead.Views, func(v *side.View) (float64, bool) { return side.Mean(of(v)) })
		return b, h
	}
	a.Base, a.Head = both(func(v *side.View) *report.Summary { return v.Time })
	a.TotalDelta = a.Head - a.Base
	fine := 0.0
	add := func(id, kind, category string, b, h float64) *comparison.AttributionRow {
		a.Rows = append(a.Rows, comparison.AttributionRow{ID: id, Kind: kind, Category: category, Base: b, Head: h, Delta: h - b})
		if kind == comparison.KindKernel || kind == comparison.KindOthers || kind == comparison.KindCause ||
			id == comparison.ClassCopy {
			fine += h - b
		}
		a.Residual = a.TotalDelta - fine
		return &a.Rows[len(a.Rows)-1]
	}
	for _, class := range []struct {
		id string
		of func(v *side.View) *report.Summary
	}{
		{comparison.ClassCompute, func(v *side.View) *report.Summary { return v.Compute }},
		{comparison.ClassComm, func(v *side.View) *report.Summary { return v.Comm }},
		{comparison.ClassCopy, func(v *side.View) *report.Summary { return v.Copied }},
		{comparison.ClassIdle, func(v *side.View) *report.Summary { return v.Idle }},
	} {
		b, h := both(class.of)
		add(class.id, comparison.KindClass, "", b, h)
	}
	for i, cause := range report.StepCauses {
		b, h := both(func(v *side.View) *report.Summary { return v.Causes[i] })
		add(cause, comparison.KindCause, "", b, h)
	}
	hostRows(onBase, onHead, split(a.Rows).part("host"), add)
	if depth != comparison.DepthKernel {
		compute, comm := split(a.Rows).part(comparison.ClassCompute), split(a.Rows).part(comparison.ClassComm)
		add("kernels", comparison.KindOthers, "", compute.Base+comm.Base, compute.Head+comm.Head)
		return a
	}
	worked := func(id, kind, category string, b, h side.Work) {
		count, perCall := pairing.Effects(b.Count, b.Alone, h.Count, h.Alone)
		r := add(id, kind, category, b.Alone, h.Alone)
		r.CountEffect, r.PerCallEffect = &count, &perCall
	}
	categoryRows(onBase.MergedCategories(), onHead.MergedCategories(), worked)
	rows, rest := pairing.KernelRows(onBase, onHead, limits.MinShare, limits.Top)
	for _, p := range rows {
		b, h := p.Works()
		worked(p.Name(), comparison.KindKernel, cmp.Or(b.Category, h.Category), b, h)
	}
	_, others := onBase.Merged()
	_, headOthers := onHead.Merged()
	for _, p := range rest {
		b, h := p.Works()
		others.Alone += b.Alone
		headOthers.Alone += h.Alone
	}
	add("others", comparison.KindOthers, "", others.Alone, headOthers.Alone)
	return a
}

type adder func(id, kind, category string, b, h float64) *comparison.AttributionRow

// hostRows splits the change of idle time caused by the host by what the launching thread did, and names the calls that
// changed most. It adds nothing if the host's times do not sum to the cause, as on a device whose units the report does
// not split.
func hostRows(onBase, onHead *side.Side, host *comparison.AttributionRow, add adder) {
	times := func(s *side.Side) []float64 {
		sums := make([]float64, len(side.HostCauses()))
		for _, v := range s.Views {
			if v.Host == nil {
				return nil
			}
			for i, ns := range v.Host {
				sums[i] += ns / float64(len(s.Views))
			}
		}
		return sums
	}
	base, head := times(onBase), times(onHead)
	if base == nil || head == nil || !sumsTo(base, host.Base) || !sumsTo(head, host.Head) {
		return
	}
	for i, cause := range side.HostCauses() {
		if base[i] != 0 || head[i] != 0 {
			add(cause, comparison.KindHost, "host", base[i], head[i])
		}
	}
	type call struct{ cause, name string }
	calls := map[call]*[2]float64{}
	for at, s := range []*side.Side{onBase, onHead} {
		for _, v := range s.Views {
			for _, c := range v.Late {
				k := call{c.Cause, c.Name}
				if calls[k] == nil {
					calls[k] = &[2]float64{}
				}
				calls[k][at] += c.Time / float64(len(s.Views))
			}
		}
	}
	moved := func(k call) float64 { return math.Abs(calls[k][1] - calls[k][0]) }
	names := slices.SortedFunc(maps.Keys(calls), func(a, b call) int {
		return cmp.Or(cmp.Compare(moved(b), moved(a)), strings.Compare(a.name, b.name), strings.Compare(a.cause, b.cause))
	})
	for _, k := range names[:min(len(names), maxCalls)] {
		add(k.name, comparison.KindCall, k.cause, calls[k][0], calls[k][1])
	}
}

// maxCalls is the most host calls that an attribution names.
const maxCalls = 12

// sumsTo reports whether parts sum to a total, up to the rounding of means.
func sumsTo(parts []float64, total float64) bool {
	return math.Abs(lists.Total(parts)-total) <= 1
}

func categoryRows(base, head []side.Work, add func(id, kind, category string, b, h side.Work)) {
	var names []string
	for _, w := range slices.Concat(base, head) {
		lists.Place[int32](&names, w.Name)
	}
	for _, name := range names {
		named := func(w *side.Work) bool { return w.Name == name }
		add(name, comparison.KindCategory, name, comparison.Value(lists.Find(base, named)), comparison.Value(lists.Find(head, named)))
	}
}
