package pairing

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// devices returns, in order, the devices on which every capture ran units of the main kind, if there are several.
func devices(base, head *side.Side) []int64 {
	var list []int64
	for i, v := range slices.Concat(base.Views, head.Views) {
		here := devicesOf(v)
		if i == 0 {
			list = here
		}
		list = slices.DeleteFunc(list, func(d int64) bool { return !slices.Contains(here, d) })
	}
	if len(list) < 2 {
		return nil
	}
	slices.Sort(list)
	return list
}

// devicesOf returns the devices on which a capture ran units of the view's kind, if there are several.
func devicesOf(v *side.View) (list []int64) {
	for _, m := range v.C.Metrics("unit.time") {
		if len(m.Labels) != len(v.Labels)+1 || m.Summary == nil {
			continue
		}
		if d, err := strconv.ParseInt(m.Labels["device"], 10, 64); err == nil {
			list = append(list, d)
		}
	}
	return list
}

// GPUs says which GPU of each side is compared; nil if no side has several, or not all captures are compared on one.
func GPUs(base, head *side.Side) (b, h *comparison.OneGPU) {
	several := false
	of := func(s *side.Side) *comparison.OneGPU {
		g := &comparison.OneGPU{}
		for i, v := range s.Views {
			// of some kinds only the slowest is known
			n := cmp.Or(int64(len(devicesOf(v))), int64(len(v.C.Report.Environment.GPUs)))
			if several = several || n > 1; i == 0 {
				*g = comparison.OneGPU{Device: v.Device(), Of: max(n, 1)}
			} else if g.Device != v.Device() || g.Of != max(n, 1) {
				return nil
			}
		}
		return g
	}
	if b, h = of(base), of(head); b == nil || h == nil || !several {
		return nil, nil
	}
	return b, h
}

// On returns both sides as seen on one device, or nil if a capture says too little of it. Not every report lists host
// calls and copies of another device than its slowest; if one does not, their counts prove nothing.
func On(base, head *side.Side, device int64) (b, h *side.Side) {
	all := slices.Concat(base.Views, head.Views)
	mixed := slices.ContainsFunc(all, func(v *side.View) bool { return v.Device() != device })
	unlisted := false
	views := func(s *side.Side) *side.Side {
		out := &side.Side{Captures: s.Captures}
		for _, v := range s.Views {
			if v = v.On(device); v == nil {
				return nil
			}
			if mixed {
				v = v.WithoutRanges()
			}
			unlisted = unlisted || mixed && len(v.Api)+len(v.Copies) == 0
			out.Views = append(out.Views, v)
		}
		return out
	}
	if b, h = views(base), views(head); b == nil || h == nil {
		return nil, nil
	}
	if unlisted {
		for _, v := range slices.Concat(b.Views, h.Views) {
			v.DropCalls()
		}
	}
	return b, h
}

// oneDevice picks the same device on both sides: the one that the caller names, else the slowest. The result is false if
// no units ran there.
func (x *Sides) oneDevice() bool {
	var base, head *side.Side
	var device int64
	if want := x.Opt.Device; want != nil {
		var text string
		device = *want
		if base, head, text = onDevice(x.Base, x.Head, device); text != "" {
			x.found.refuse(comparison.NoUnit, text)
			return false
		}
	} else {
		base, head, device, x.Moved = slowest(x.Base, x.Head)
	}
	if base != nil {
		x.Main.BaseViews, x.Main.HeadViews = base.Views, head.Views
		x.Base.Views, x.Head.Views, x.Device = base.Views, head.Views, device
	}
	return true
}

// slowest returns both sides on the device whose median units take longest over all captures; nil unless there are
// several. Each report shows its own slowest device, which is a coin toss if the ranks are nearly equal. moved says that
// the slowest device changed.
func slowest(base, head *side.Side) (b, h *side.Side, device int64, moved string) {
	most := 0.0
	median := func(v *side.View) (float64, bool) { return v.Time.P50, true }
	for _, d := range devices(base, head) {
		onBase, onHead := On(base, head, d)
		if onBase == nil {
			continue
		}
		was, _ := onBase.Mean(median)
		is, _ := onHead.Mean(median)
		if was+is > most {
			most, b, h, device = was+is, onBase, onHead, d
		}
	}
	if b == nil {
		return nil, nil, 0, ""
	}
	if was, is := base.Views[0].Device(), head.Views[0].Device(); was != is {
		moved = fmt.Sprintf("the slowest device moved from %d to %d; device %d is compared, the slowest over both sides", was, is, device)
	}
	return b, h, device, moved
}

// onDevice returns both sides on a device; nil if it is the only one. refused says that no units of both sides ran there.
func onDevice(base, head *side.Side, device int64) (b, h *side.Side, refused string) {
	list := devices(base, head)
	if slices.Contains(list, device) {
		if b, h = On(base, head, device); b != nil {
			return b, h, ""
		}
	}
	if list == nil {
		list = []int64{base.Views[0].Device()}
		if device == list[0] && device == head.Views[0].Device() {
			return nil, nil, ""
		}
	}
	ran := lists.Map(list, func(d int64) string { return strconv.FormatInt(d, 10) })
	return nil, nil, fmt.Sprintf("no units of both sides ran on GPU %d: compare GPU %s (--device)", device, strings.Join(ran, " or "))
}

// unequalCoverage describes two cases: the units of one side hold more than twice the other's share of the compute time;
// or a unit of one side seems to hold several of the other's, as there are at most 0.7 times as many, each with at
// least a third more kernels.
func unequalCoverage(base, head *side.Side) string {
	type cover struct{ share, units, kernels float64 }
	of := func(s *side.Side) (c cover, ok bool) {
		for _, v := range s.Views {
			if v.C.Report.Unit.Coverage == nil || v.Kernels == nil {
				return c, false
			}
			t := v.C.Report.Unit.Trimmed
			kept := lists.Sum(v.C.Kinds, func(g side.Group) float64 { return float64(g.Count) })
			if kept == 0 {
				return c, false
			}
			n := float64(len(s.Views))
			c.share += *v.C.Report.Unit.Coverage / n
			c.units += (kept + float64(t.Cut+t.Warmup)) / n
			c.kernels += v.Kernels.Mean / n
		}
		return c, true
	}
	b, ok := of(base)
	h, ok2 := of(head)
	if !ok || !ok2 || b.kernels <= 0 || h.kernels <= 0 {
		return ""
	}
	name, of2, few, many := "head", "base", h, b
	if h.units > b.units {
		name, of2, few, many = "base", "head", b, h
	}
	const halfAsMany, moreKernels = 0.7, 4.0 / 3
	if ratio := few.kernels / many.kernels; few.units <= halfAsMany*many.units && ratio >= moreKernels && ratio < 1.9 {
		return fmt.Sprintf("a unit of %s holds %.3g times the kernels of one of %s, and there are %.0f instead of %.0f: half of "+
			"the steps are of another kind, or several were taken as one; name the unit on both sides with --unit",
			name, ratio, of2, few.units, many.units)
	}
	const fewUnits = 8 // below this, warm-up and cut units are too large a part
	if few.units >= fewUnits && (b.share > 2*h.share || h.share > 2*b.share) {
		return fmt.Sprintf("units of work hold %.0f %% of the GPU's compute time on base and %.0f %% on head: "+
			"what lies outside them differs too much to compare the rest", 100*b.share, 100*h.share)
	}
	return ""
}
