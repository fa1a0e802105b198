package pairing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// devices returns, in order, the devices on which every capture ran units of the main kind, if there are several.
func devices(base, head *side.Side) []int64 {
	var list []int64
	for i, v := range slices.Concat(base.Views, head.Views) {
		var here []int64
		for _, m := range v.C.Metrics("unit.time") {
			if len(m.Labels) != len(v.Labels)+1 || m.Summary == nil {
				continue
			}
			if d, err := strconv.ParseInt(m.Labels["device"], 10, 64); err == nil {
				here = append(here, d)
			}
		}
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

// On returns both sides as seen on one device, or nil if a capture says too little of it. Host calls and copies are
// known only for each report's own slowest device; if those devices differ, their counts prove nothing.
func On(base, head *side.Side, device int64) (b, h *side.Side) {
	all := slices.Concat(base.Views, head.Views)
	mixed := slices.ContainsFunc(all, func(v *side.View) bool { return v.Device() != all[0].Device() })
	views := func(s *side.Side) *side.Side {
		out := &side.Side{Captures: s.Captures}
		for _, v := range s.Views {
			if v = v.On(device); v == nil {
				return nil
			}
			if mixed {
				v = v.WithoutCalls()
			}
			out.Views = append(out.Views, v)
		}
		return out
	}
	if b, h = views(base), views(head); b == nil || h == nil {
		return nil, nil
	}
	return b, h
}

// oneDevice picks the same device on both sides: the one whose median units take longest over all captures. Each report
// shows its own slowest device, which is a coin toss if the ranks are nearly equal. If the slowest device changed, a
// finding says so. A device that the caller names is used instead; the result is false if no units ran there.
func (x *Sides) oneDevice() bool {
	if want := x.Opt.Device; want != nil {
		return x.thisDevice(*want)
	}
	var base, head *side.Side
	most, device := 0.0, int64(-1)
	for _, d := range devices(x.Base, x.Head) {
		onBase, onHead := On(x.Base, x.Head, d)
		if onBase == nil {
			continue
		}
		median := func(v *side.View) (float64, bool) { return v.Time.P50, true }
		b, _ := onBase.Mean(median)
		h, _ := onHead.Mean(median)
		if b+h > most {
			most, base, head, device = b+h, onBase, onHead, d
		}
	}
	if base == nil {
		return true
	}
	slowest := func(s *side.Side) int64 { return s.Views[0].Device() }
	if b, h := slowest(x.Base), slowest(x.Head); b != h {
		x.Moved = fmt.Sprintf("the slowest device moved from %d to %d; device %d is compared, the slowest over both sides", b, h, device)
	}
	x.settle(base, head, device)
	return true
}

func (x *Sides) settle(base, head *side.Side, device int64) {
	x.Main.BaseViews, x.Main.HeadViews = base.Views, head.Views
	x.Base.Views, x.Head.Views = base.Views, head.Views
	x.Device = device
}

// thisDevice picks the device that the caller named, and refuses if no units of both sides ran there.
func (x *Sides) thisDevice(device int64) bool {
	list := devices(x.Base, x.Head)
	if slices.Contains(list, device) {
		if base, head := On(x.Base, x.Head, device); base != nil {
			x.settle(base, head, device)
			return true
		}
	}
	if list == nil {
		list = []int64{x.Base.Views[0].Device()}
		if device == list[0] && device == x.Head.Views[0].Device() {
			return true
		}
	}
	var ran []string
	for _, d := range list {
		ran = append(ran, strconv.FormatInt(d, 10))
	}
	x.Refuse(comparison.NoUnit, fmt.Sprintf("no units of both sides ran on GPU %d: compare GPU %s (--device)", device,
		strings.Join(ran, " or ")))
	return false
}

// unequalCoverage refuses two cases: the units of one side hold more than twice the other's share of the compute time;
// or a unit of one side seems to hold several of the other's, as there are at most 0.7 times as many, each with at
// least a third more kernels.
func (x *Sides) unequalCoverage() {
	type cover struct{ share, units, kernels float64 }
	of := func(s *side.Side) (c cover, ok bool) {
		for _, v := range s.Views {
			if v.C.Report.Unit.Coverage == nil || v.Kernels == nil {
				return c, false
			}
			t := v.C.Report.Unit.Trimmed
			var kept float64
			for _, g := range v.C.Kinds {
				kept += float64(g.Count)
			}
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
	b, ok := of(x.Base)
	h, ok2 := of(x.Head)
	if !ok || !ok2 || b.kernels <= 0 || h.kernels <= 0 {
		return
	}
	name, of2, few, many := "head", "base", h, b
	if h.units > b.units {
		name, of2, few, many = "base", "head", b, h
	}
	const halfAsMany, moreKernels = 0.7, 4.0 / 3
	if ratio := few.kernels / many.kernels; few.units <= halfAsMany*many.units && ratio >= moreKernels && ratio < 1.9 {
		x.Refuse(comparison.LowCoverage, fmt.Sprintf(
			"a unit of %s holds %.3g times the kernels of one of %s, and there are %.0f instead of %.0f: half of the steps are of another kind, or steps were taken together; name the unit on both sides with --unit",
			name, ratio, of2, few.units, many.units))
		return
	}
	const fewUnits = 8 // below this, warm-up and cut units are too large a part
	if few.units >= fewUnits && (b.share > 2*h.share || h.share > 2*b.share) {
		x.Refuse(comparison.LowCoverage, fmt.Sprintf(
			"units of work hold %.0f %% of the GPU's compute time on base and %.0f %% on head: what lies outside them differs too much to compare the rest",
			100*b.share, 100*h.share))
	}
}
