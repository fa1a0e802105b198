package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// collapse keeps the independent captures of a side: the first of several copies of a capture, and the longest of
// several windows of one session. It warns of each capture that it leaves out.
func collapse(c *comparison.Comparison, name string, captures []*side.Capture) []*side.Capture {
	var kept []*side.Capture
	for _, x := range captures {
		code, text := comparison.SameCapture, "the same capture, which counts once"
		at := slices.IndexFunc(kept, func(k *side.Capture) bool { return copied(k, x) })
		if at < 0 {
			code, text = comparison.OneSession, "windows of one session, of which the longest counts"
			at = slices.IndexFunc(kept, func(k *side.Capture) bool { return pairing.OneSession(k, x) })
		}
		if at < 0 {
			kept = append(kept, x)
			continue
		}
		c.Warn(code, fmt.Sprintf("%s: %s and %s are %s", name, kept[at].Report.Trace.Name, x.Report.Trace.Name, text))
		if code == comparison.OneSession && x.Report.Window.Length > kept[at].Report.Window.Length {
			kept[at] = x
		}
	}
	return kept
}

// copied reports whether two reports are of one capture. Without a hash of the events, as for evidence and in reports
// of older versions, it compares all numbers: no timing repeats to the nanosecond in another capture.
func copied(a, b *side.Capture) bool {
	if same, known := sameContent(a, b); known {
		return same
	}
	return a.EvidenceOnly() == b.EvidenceOnly() && a.HoldsWork() && a.Within(b) && b.Within(a)
}

// sameContent reports whether two captures hold the same events; known is false if a report lacks their hash.
func sameContent(a, b *side.Capture) (same, known bool) {
	x, y := a.Report.Capture.Content, b.Report.Capture.Content
	if x == nil || y == nil {
		return false, false
	}
	return *x == *y, true
}

// acrossSides warns of captures that are on both sides, and of windows of one session.
func acrossSides(c *comparison.Comparison, base, head []*side.Capture) {
	var same []string
	session := len(base) == 1 && len(head) == 1 && pairing.OneSession(base[0], head[0])
	for _, b := range base {
		for _, h := range head {
			if equal, _ := sameContent(b, h); equal {
				same = append(same, b.Report.Trace.Name)
			}
		}
	}
	switch {
	case len(same) > 0 && len(same) == len(base) && len(same) == len(head):
		c.Reason(comparison.SameCapture, "head is a copy of base, not a second capture, and shows no change")
	case len(same) > 0:
		c.Reason(comparison.SameCapture, strings.Join(same, ", ")+" is on both sides: name each capture on one")
	case session && pairing.SameTime(base[0], head[0]):
		c.Warn(comparison.OneSession, "base and head cover the same time of one session, and every number "+
			"that both have is equal: they are one capture, copied with other names")
	case session:
		c.Warn(comparison.OneSession, "base and head are windows of one session: one run at two times is compared, "+
			"not two programs")
	}
}

// Shares beyond which a capture is incomplete. Up to the first, units that miss events are left out of its numbers; the
// second is for captures in which nobody looked for such units.
const (
	incompleteUnits = 0.5
	lostKernels     = 0.02 // of launches, without their kernel; complete captures have 0 to 0.5 %
	hiddenLaunches  = 0.02 // of launches of CUDA graphs, without GPU time; complete captures have none
	skippedRows     = 0.01 // of a table
)

// incomplete reports captures that miss events, and other limits of trust. It repeats nsys' own message that events may
// be missing once, as information: nsys writes it for most captures of programs that outlive it.
func incomplete(c *comparison.Comparison, base, head []*side.Capture) {
	messages, apart := 0.0, []string(nil)
	for of, x := range side.Each(base, head) {
		name := of + ": " + x.Report.Trace.Name
		n, _ := x.Value("quality.lost_data_messages", nil)
		messages += n
		if what := whatIsMissing(x); len(what) > 0 {
			c.Reason(comparison.IncompleteCapture,
				name+": "+strings.Join(what, ", ")+": counts, busy times and launches are lower bounds")
		} else if v, _ := x.Value("quality.incomplete_units", nil); v > 0 {
			c.Warn(comparison.IncompleteCapture, name+": "+unit.Percent(v)+" of the units miss events and are left out")
		}
		for i := range x.Report.Warnings {
			w := &x.Report.Warnings[i]
			switch {
			case w.Code == comparison.OtherRun:
				lists.Place[int32](&apart, of)
			case slices.Contains(comparison.Doubts(), comparison.Code(w.Code)):
				c.Warn(comparison.Code(w.Code), name+": "+w.Text)
			}
		}
	}
	if len(apart) > 0 {
		c.Warn(comparison.OtherRun, strings.Join(apart, " and ")+": what the log says may be of another run")
	}
	if messages > 0 && !c.Has(comparison.IncompleteCapture) {
		c.Warn("lost_data", "nsys says that events may be missing; no unit that is compared misses any")
	}
}

// overhead reports captures that slowed the program by more than the policy allows, so that they describe it badly, and
// captures for which the overhead was not measured.
func overhead(c *comparison.Comparison, most float64, base, head []*side.Capture) {
	if most <= 0 {
		return
	}
	for of, x := range side.Each(base, head) {
		name := of + ": " + x.Report.Trace.Name
		switch o := x.Report.Capture.Overhead; {
		case o == nil && !x.EvidenceOnly():
			c.Warn(comparison.HighOverhead, name+": the cost of profiling was not measured, and the policy allows "+
				unit.Percent(most)+": capture with --overhead")
		case o != nil && o.Ratio > most:
			c.Reason(comparison.HighOverhead, name+": profiling cost "+unit.Percent(o.Ratio)+", and the policy allows "+
				unit.Percent(most)+" (max_overhead): record less, with --mode light or --trace cuda,nvtx")
		}
	}
}

// whatIsMissing lists the missing parts of a capture, by evidence.
func whatIsMissing(x *side.Capture) []string {
	var what []string
	if v, known := x.Value("quality.incomplete_units", nil); known && v > incompleteUnits {
		what = append(what, unit.Percent(v)+" of the units miss events")
	} else if v, _ := x.Value("quality.lost_kernels", nil); !known && v >= lostKernels {
		what = append(what, unit.Percent(v)+" of the launches have no kernel")
	}
	if v, _ := x.Value("quality.hidden_graph_launches", nil); v >= hiddenLaunches {
		what = append(what, unit.Percent(v)+" of the launches of CUDA graphs have no GPU time under them")
	}
	for _, t := range x.Report.Trace.Tables {
		beside := besideGPU(t.Name) || t.Name == "NVTX_EVENTS" && x.Report.Unit.Kind != "nvtx"
		if t.Rows > 0 && float64(t.Skipped) >= skippedRows*float64(t.Rows) && t.Skipped > 0 && !beside {
			what = append(what, fmt.Sprintf("%s of %s rows of %s cannot be used", unit.Int(t.Skipped), unit.Int(t.Rows), t.Name))
		}
	}
	return what
}

// besideGPU reports whether no number per unit comes from a table.
func besideGPU(table string) bool {
	return comparison.Begins(table, "OSRT_", "SCHED_", "COMPOSITE_", "GPU_METRICS", "GENERIC_", "PROFILER_OVERHEAD")
}

// doubt withdraws the classes of counts of an incomplete capture: it keeps the numbers, without a conclusion.
func doubt(c *comparison.Comparison) {
	if !c.Has(comparison.IncompleteCapture) {
		return
	}
	const why = "incomplete_capture: events are missing, and this is a lower bound"
	withdraw(c, why, comparison.CountsEvents)
	withdrawParts(c, why)
}
