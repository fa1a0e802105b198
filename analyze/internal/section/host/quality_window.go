package host

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// window finds one long time without work, which makes totals over the window an average of two different parts.
func (c *checks) window() {
	const check = "no single gap dominates the window"
	in := c.in
	if len(in.Timeline.Devices) == 0 || in.Span.Len() <= 0 {
		c.unchecked(check, "no GPU work")
		return
	}
	// Activity of all devices: its length, the number of gaps, and how much of it comes before the longest gap.
	var longest interval.Interval
	var stretches int
	var busy, before int64
	reached := in.Span.Start
	gap := func(to int64) {
		if to-reached > longest.Len() {
			longest, before = interval.Interval{Start: reached, End: to}, busy
		}
	}
	in.Timeline.Together(func(start, end int64) {
		gap(start)
		stretches++
		busy += end - start
		reached = end
	})
	gap(in.Span.End)
	ratio := stat.Ratio(longest.Len(), in.Span.Len())
	c.out.From(trace.RoleKernel, stretches, "start", "end")
	for _, r := range []trace.Role{trace.RoleMemcpy, trace.RoleMemset, trace.RoleGraph} {
		if in.Has(r) {
			c.out.With(r)
		}
	}
	c.out.Int("quality.longest_gap", nil, longest.Len())
	c.out.Metric("quality.longest_gap_ratio", nil, ratio)
	from, to := longest.Start-in.Span.Start, longest.End-in.Span.Start
	part, narrow := "load or warm-up before it", "--from "+flagTime(to)
	if before > busy-before {
		part, narrow = "a tail after it", "--to "+flagTime(from)
	}
	if s := in.Steady; s != nil && (longest.End <= s.Span.Start || longest.Start >= s.Span.End) {
		narrow = "" // the findings are of the steady part, which the gap is no part of
	} else {
		narrow = ": narrow it with " + narrow
		if flags := in.NarrowFlags(); strings.HasPrefix(flags, "--steady") || strings.HasPrefix(flags, "--window") {
			flags, _, _ = strings.Cut(flags, ", --from")
			narrow = strings.Replace(narrow, "narrow it with ", "narrow it with "+flags+" or ", 1)
		}
	}
	c.that(*ratio > kit.GapWarn, check, timed(longest.Len(), ratio), "window_gap",
		"One gap without GPU work is "+formatRatio(*ratio)+" of the window ("+formatTime(longest.Len())+
			", from "+formatTime(from)+" to "+formatTime(to)+" after its start)"+narrow+
			". The window mixes the work with "+part+", and idle time, rates and shares of the window are averages of both"+ofSteady(in)+".")
}

// ofSteady says that findings are not affected by the part of the window outside the work.
func ofSteady(in *kit.Input) string {
	if in.Steady == nil {
		return ""
	}
	return "; findings are of the steady part alone"
}
