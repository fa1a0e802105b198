package attribute

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// computePart says which kernels a change of compute time comes from. All kernels are blamed only where their common
// shift has the sign of the change and explains at least half of it.
func (x *Parts) computePart(d float64) string {
	if x.C.Depth != comparison.DepthKernel {
		if busy := x.C.Row("unit.gpu_busy.mean"); busy != nil {
			return "GPU busy " + rowChange(busy)
		}
		return "GPU compute " + x.classChange(comparison.ClassCompute)
	}
	shift, ok := x.common()
	if ok && shift*d > 0 && math.Abs(shift)*x.class(comparison.ClassCompute).Base >= math.Abs(d)/2 {
		text := fmt.Sprintf("all kernels %s, by %s", more(shift, "slower", "faster"), unit.Change(shift))
		clock, text2, known := x.clockChange()
		switch {
		case !known:
			return text + " (clocks, power or temperature?)"
		case math.Abs(clock-shift) <= max(math.Abs(shift)/4, clockAlike):
			return comparison.Clocks + ": " + text + ", as the GPU's clock went " + text2
		case math.Abs(clock) < clockAlike:
			return text + ", at unchanged clocks (" + text2 + ")"
		}
		return text + ", of which the GPU's clock explains " + unit.Change(clock) + " (" + text2 + ")"
	}
	text := x.kernelPart(d)
	if x.Shift != nil && math.Abs(math.Expm1(*x.Shift)) >= commonLeast {
		text += fmt.Sprintf(", most kernels %s (clocks, power or temperature?)", unit.Change(math.Expm1(*x.Shift)))
	}
	return text
}

// kernelPart names the kernels that most of a change of compute time comes from.
func (x *Parts) kernelPart(d float64) string {
	var rows []*comparison.AttributionRow
	for i := range x.C.Attribution.Rows {
		if r := &x.C.Attribution.Rows[i]; r.Kind == comparison.KindKernel && r.Delta*d > 0 &&
			r.Category != side.Communication {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows,
		func(a, b *comparison.AttributionRow) int { return cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta)) })
	if len(rows) == 0 {
		return "GPU compute " + x.classChange(comparison.ClassCompute) + ", spread over small kernels"
	}
	if text := x.splitText(d); text != "" {
		return text
	}
	top := rows[0]
	if math.Abs(top.Delta) >= math.Abs(d)/2 {
		return "kernel " + x.kernelText(top)
	}
	if c := x.category(d); c != nil {
		by := unit.Change(c.Delta / max(c.Base, 1))
		if math.Abs(comparison.Value(c.CountEffect)) > math.Abs(c.Delta)/2 {
			return fmt.Sprintf("%s %s kernels (%s per unit), most of all %s", more(d, "more", "fewer"), c.ID,
				delta(c.Delta), x.kernelText(top))
		}
		return fmt.Sprintf("%s kernels %s (%s per unit), most of all %s", c.ID, by, delta(c.Delta), x.kernelText(top))
	}
	return "GPU compute " + x.classChange(comparison.ClassCompute) + ", most of all " + x.kernelText(top)
}

// splitText says that a kernel was replaced by several, where at least half of a change of compute time
// comes from that.
func (x *Parts) splitText(d float64) string {
	for i := range x.C.Kernels {
		k := &x.C.Kernels[i]
		if k.BaseName == nil || k.HeadName == nil {
			continue
		}
		if n, sum := x.splits(k); n > 1 && sum*d > 0 && math.Abs(sum) >= math.Abs(d)/2 {
			return fmt.Sprintf("kernel %s%s%d kernels, %s among them (%s per unit)", x.shown(*k.BaseName),
				splitWord, n, x.shown(*k.HeadName), delta(sum))
		}
	}
	return ""
}

const splitWord = " replaced by "

// splits counts the kernels that a paired kernel was replaced by, and sums their changes.
func (x *Parts) splits(k *comparison.Kernel) (n int, sum float64) {
	n, sum = 1, k.Delta
	for i := range x.C.Kernels {
		if o := &x.C.Kernels[i]; o.SplitOf != nil && *o.SplitOf == *k.BaseName {
			n++
			sum += o.Delta
		}
	}
	return n, sum
}

// category is the one that at least half of a change of compute time comes from, or nil.
func (x *Parts) category(d float64) *comparison.AttributionRow {
	var best *comparison.AttributionRow
	for i := range x.C.Attribution.Rows {
		r := &x.C.Attribution.Rows[i]
		if r.Kind == comparison.KindCategory && r.ID != side.Communication && r.Delta*d > 0 &&
			math.Abs(r.Delta) >= math.Abs(d)/2 &&
			(best == nil || math.Abs(r.Delta) > math.Abs(best.Delta)) {
			best = r
		}
	}
	return best
}

// kernelText names a kernel, what replaced it, whether it runs more often or takes longer, and what changed in its
// launches.
func (x *Parts) kernelText(r *comparison.AttributionRow) string {
	text, launch := x.pairName(r.ID), ""
	for i := range x.C.Kernels {
		k := &x.C.Kernels[i]
		if kernelID(k) != r.ID {
			continue
		}
		if k.Launch != "" {
			launch = ": " + k.Launch
		}
		switch {
		case k.BaseCount == nil && k.HeadCount != nil:
			return fmt.Sprintf("%s, new: %s per unit, %s", text, count(*k.HeadCount), delta(r.Delta))
		case k.BaseCount == nil || k.HeadCount == nil:
			return fmt.Sprintf("%s, no longer run: %s per unit", text, delta(r.Delta))
		case *k.BaseCount != *k.HeadCount && math.Abs(k.CountEffect) > math.Abs(k.Delta)/2:
			return fmt.Sprintf("%s %s, run %s instead of %s times per unit", text, delta(r.Delta), count(*k.HeadCount),
				count(*k.BaseCount))
		}
	}
	if r.Base > 0 {
		return fmt.Sprintf("%s %s (%s per unit)%s", text, unit.Change(r.Delta/r.Base), delta(r.Delta), launch)
	}
	return text + " " + delta(r.Delta) + " per unit" + launch
}

// pairName is the name of a kernel, or of one and what replaced it, as tables have them.
func (x *Parts) pairName(id string) string {
	var names []string
	for _, n := range strings.Split(id, " → ") {
		names = append(names, x.shown(n))
	}
	return strings.Join(names, " → ")
}

// kernelID is the attribution row's id of a kernel row.
func kernelID(k *comparison.Kernel) string {
	switch {
	case k.BaseName == nil:
		return *k.HeadName
	case k.HeadName == nil || *k.BaseName == *k.HeadName:
		return *k.BaseName
	}
	return *k.BaseName + " → " + *k.HeadName
}

// shown is a kernel's name as tables have it, short enough for a sentence.
func (x *Parts) shown(name string) string {
	if x.names == nil {
		x.names = x.Base.DisplayNames()
		for full, text := range x.Head.DisplayNames() {
			x.names[full] = text
		}
	}
	if text, ok := x.names[name]; ok {
		name = text
	}
	return match.Shorten(name)
}
