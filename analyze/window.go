package analyze

import (
	"fmt"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// wholeCapture is the default window: first start to last end of GPU work on any device; without GPU work, of host
// events.
func wholeCapture(t *trace.Trace) (interval.Interval, report.Window) {
	span, ok := timeline.WorkSpan(t)
	mode, why := "capture", "the whole capture: from the first start to the last end of GPU work on any device"
	if !ok {
		mode, why = "host", "no GPU work: from the first to the last host event"
		span, ok = around(func(int) bool { return true }, &t.API.Span, &t.Ranges.Span)
	}
	if !ok {
		mode, why = "empty", "the capture holds neither GPU work nor host events that explain reads"
	}
	return span, window(span, mode, why)
}

// around is the span from the first start to the last end of the events that is holds of.
func around(is func(i int) bool, lists ...*trace.Span) (span interval.Interval, ok bool) {
	for _, s := range lists {
		for i := range s.Len() {
			switch {
			case !is(i):
			case !ok:
				span, ok = interval.Interval{Start: s.Start(i), End: s.End(i)}, true
			default:
				span.Start, span.End = min(span.Start, s.Start(i)), max(span.End, s.End(i))
			}
		}
	}
	return span, ok
}

func window(span interval.Interval, mode, why string) report.Window {
	return report.Window{Start: span.Start, End: span.End, Length: span.Len(), Mode: mode, Why: why}
}

// narrow applies --from/--to, --window and --steady.
func narrow(in *kit.Input, opt *Options, tags *tagger) error {
	w := &opt.Window
	ways := []bool{w.From != nil || w.To != nil, w.NVTX != "", w.Steady}
	switch lists.Count(ways, func(used bool) bool { return used }) {
	case 0:
		return nil
	case 1:
	default:
		return fmt.Errorf("%w: --from/--to, --window and --steady exclude each other", ErrOptions)
	}
	take := func(span interval.Interval, mode, why string) error {
		if span.Len() <= 0 {
			return fmt.Errorf("%w: the window is empty: %s", ErrOptions, why)
		}
		in.Span, in.Window = span, window(span, mode, why)
		return nil
	}
	switch {
	case w.NVTX != "":
		r := &in.Trace.Ranges
		span, ok := around(func(i int) bool { return r.Names[r.Name(i)].Tag&tagWindow != 0 }, &r.Span)
		if !ok {
			return fmt.Errorf("%w: --window nvtx:%s matches no NVTX range of this capture", ErrOptions, w.NVTX)
		}
		return take(span, "nvtx", "from the first start to the last end of the NVTX ranges that match --window nvtx:"+w.NVTX)
	case w.Steady:
		span, ok := in.Units.Steady()
		if !ok {
			return fmt.Errorf("%w: --steady needs a unit of work, and none was found: %s", ErrOptions, in.Units.Why)
		}
		return take(span, "steady", steadyWhy)
	}
	if w.From != nil && *w.From < 0 {
		return fmt.Errorf("%w: --from %s is before the first GPU work, from which it counts", ErrOptions, *w.From)
	}
	span, from, to := in.Span, "the start", "the end"
	if w.From != nil {
		span.Start, from = in.Span.Start+w.From.Nanoseconds(), w.From.String()
	}
	if w.To != nil {
		span.End, to = min(in.Span.End, in.Span.Start+w.To.Nanoseconds()), w.To.String()
	}
	return take(span, "range", "from "+from+" to "+to+", counted from the first GPU work")
}

// steadyWhy says what a steady window is.
const steadyWhy = "from the first to the last kept unit of work over all devices"

// steadyRest is the share of the window outside its steady part from which the two are told apart.
const steadyRest = 0.02

// steadyPart is the part of the window from its first to its last kept unit of work, where the rest is worth telling
// apart.
func steadyPart(in *kit.Input) (span interval.Interval, ok bool) {
	span, ok = in.Units.Steady()
	span.Start, span.End = max(span.Start, in.Span.Start), min(span.End, in.Span.End)
	return span, ok && span.Len() > 0 && float64(in.Span.Len()-span.Len()) >= steadyRest*float64(in.Span.Len())
}
