package breakdown

import (
	"fmt"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Least changes for a number that no rule judges to be named in the cause, as ratios.
const (
	tokenMoved  = 0.05 // of the time per token or sequence, at each side's batch sizes
	windowMoved = 0.02 // of the base's window, for time outside the units
)

// Unjudged fills in the numbers that are shown with their change and never judged: the time per token and per sequence
// at each side's batch sizes, the time of the captures outside their units (before, between, after), and the GPU clock.
func Unjudged(base, head *side.Side) (list []comparison.Unjudged) {
	measure := report.Nanoseconds
	add := func(id, text string, of func(c *side.Capture) (float64, bool)) {
		b, h, ok := means(base.Captures, head.Captures, of)
		if !ok || b == 0 && h == 0 {
			return
		}
		u := comparison.Unjudged{ID: id, Text: text, Unit: measure, Base: b, Head: h, Delta: h - b}
		if b > 0 {
			u.Ratio = new(h / b)
		}
		list = append(list, u)
	}
	perSequence := func(phase string) func(c *side.Capture) (float64, bool) {
		return func(c *side.Capture) (float64, bool) { return side.TimePerSequence(c.Kinds, phase) }
	}
	add(comparison.TimePerToken, "time per output token", perSequence("decode"))
	add(comparison.TimePerPrompt, "prefill time per sequence", perSequence("prefill"))
	device := int64(-1)
	if len(base.Views) > 0 {
		device = base.Views[0].Device()
	}
	for _, part := range []struct {
		id, text string
		of       func(o side.Outside) float64
	}{
		{comparison.BeforeUnits, "before the first unit", func(o side.Outside) float64 { return o.Before }},
		{comparison.BetweenUnits, "between two units, mean", func(o side.Outside) float64 { return o.Between }},
		{comparison.AfterUnits, "after the last unit", func(o side.Outside) float64 { return o.After }},
	} {
		add(part.id, part.text, func(c *side.Capture) (float64, bool) {
			o, ok := side.OutsideUnits(c.Report, device)
			return part.of(o), ok
		})
	}
	measure = report.PerSecond
	add(comparison.Clocks, "GPU clock while it worked", func(c *side.Capture) (float64, bool) { return side.Clock(c.Index, device) })
	return list
}

// clockChange is by what ratio work takes longer at the head's clock than at the base's; ok is false if a capture lacks
// the clocks.
func clockChange(base, head *side.Side) (change float64, text string, ok bool) {
	if len(base.Views) == 0 {
		return 0, "", false
	}
	device := base.Views[0].Device()
	of := func(c *side.Capture) (float64, bool) { return side.Clock(c.Index, device) }
	b, h, ok := means(base.Captures, head.Captures, of)
	if !ok || b <= 0 || h <= 0 {
		return 0, "", false
	}
	return b/h - 1, fmt.Sprintf("%.0f → %.0f MHz", b/1e6, h/1e6), true
}

// unjudgedText names those of these changes that are large. base holds the base's captures.
func unjudgedText(c *comparison.Comparison, base []*side.Capture) string {
	window, _ := side.MeanOf(base, func(c *side.Capture) (float64, bool) {
		return float64(c.Report.Window.Length), true
	})
	units := float64(c.Unit.BaseN) / float64(len(base))
	var costs, outside []string
	for _, u := range c.Unjudged {
		text := u.Text + " " + delta(u.Delta)
		if u.Base > 0 {
			text += fmt.Sprintf(" (%s → %s)", pairing.NS(u.Base), pairing.NS(u.Head))
		}
		size := math.Abs(u.Delta)
		switch u.ID {
		case comparison.TimePerToken, comparison.TimePerPrompt:
			if size >= tokenMoved*u.Base && len(c.Mix) > 1 {
				costs = append(costs, text+" at the batch sizes that each side ran")
			}
			continue
		case comparison.Clocks:
			continue // named beside the shift of all kernels
		case comparison.BetweenUnits:
			size *= units
		}
		if size >= windowMoved*window {
			outside = append(outside, text)
		}
	}
	if len(outside) > 0 {
		costs = append(costs, "outside the units, which is not judged: "+strings.Join(outside, ", "))
	}
	return strings.Join(costs, "; ")
}
