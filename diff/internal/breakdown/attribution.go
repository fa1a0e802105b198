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
	add := func(id, kind, category string, b, h float64, count, perCall *float64) {
		a.Rows = append(a.Rows, comparison.AttributionRow{ID: id, Kind: kind, Category: category, Base: b, Head: h,
			Delta: h - b, CountEffect: count, PerCallEffect: perCall})
		if kind == comparison.KindKernel || kind == comparison.KindOthers || kind == comparison.KindCause ||
			id == comparison.ClassCopy {
			fine += h - b
		}
	}
	compute0, compute1 := both(func(v *side.View) *report.Summary { return v.Compute })
	comm0, comm1 := both(func(v *side.View) *report.Summary { return v.Comm })
	copy0, copy1 := both(func(v *side.View) *report.Summary { return v.Copied })
	idle0, idle1 := both(func(v *side.View) *report.Summary { return v.Idle })
	add(comparison.ClassCompute, comparison.KindClass, "", compute0, compute1, nil, nil)
	add(comparison.ClassComm, comparison.KindClass, "", comm0, comm1, nil, nil)
	add(comparison.ClassCopy, comparison.KindClass, "", copy0, copy1, nil, nil)
	add(comparison.ClassIdle, comparison.KindClass, "", idle0, idle1, nil, nil)
	for i, cause := range report.StepCauses {
		b, h := both(func(v *side.View) *report.Summary { return v.Causes[i] })
		add(cause, comparison.KindCause, "", b, h, nil, nil)
	}
	hostRows(onBase, onHead, split(a.Rows).part("host"), add)
	if depth != comparison.DepthKernel {
		add("kernels", comparison.KindOthers, "", compute0+comm0, compute1+comm1, nil, nil)
		a.Residual = a.TotalDelta - fine
		return a
	}
	categoryRows(onBase.MergedCategories(), onHead.MergedCategories(), add)
	rows, rest := pairing.KernelRows(onBase, onHead, limits.MinShare, limits.Top)
	for _, p := range rows {
		b, h := p.Works()
		count, perCall := pairing.Effects(b.Count, b.Alone, h.Count, h.Alone)
		category := b.Category
		if p.Base == nil {
			category = h.Category
		}
		add(p.Name(), comparison.KindKernel, category, b.Alone, h.Alone, &count, &perCall)
	}
	_, others := onBase.Merged()
	_, headOthers := onHead.Merged()
	for _, p := range rest {
		b, h := p.Works()
		others.Alone += b.Alone
		headOthers.Alone += h.Alone
	}
	add("others", comparison.KindOthers, "", others.Alone, headOthers.Alone, nil, nil)
	a.Residual = a.TotalDelta - fine
	return a
}

type adder func(id, kind, category string, b, h float64, count, perCall *float64)

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
			add(cause, comparison.KindHost, "host", base[i], head[i], nil, nil)
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
		add(k.name, comparison.KindCall, k.cause, calls[k][0], calls[k][1], nil, nil)
	}
}

// maxCalls is the most host calls that an attribution names.
const maxCalls = 12

// sumsTo reports whether parts sum to a total, up to the rounding of means.
func sumsTo(parts []float64, total float64) bool {
	return math.Abs(lists.Total(parts)-total) <= 1
}

func categoryRows(base, head []side.Work, add adder) {
	row := func(name string, b, h side.Work) {
		count, perCall := pairing.Effects(b.Count, b.Alone, h.Count, h.Alone)
		add(name, comparison.KindCategory, name, b.Alone, h.Alone, &count, &perCall)
	}
	for _, b := range base {
		row(b.Name, b, comparison.Value(lists.Find(head, func(h *side.Work) bool { return h.Name == b.Name })))
	}
	for _, h := range head {
		if !slices.ContainsFunc(base, func(b side.Work) bool { return b.Name == h.Name }) {
			row(h.Name, side.Work{}, h)
		}
	}
}
