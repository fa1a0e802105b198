package steps_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Thirty steps of the same two kernels: every third one waits 900 µs before its second kernel. A step begins with its first
// kernel and ends with the next one's: 20 take 100 µs and 10 take 1,000 µs.
func TestModesOfSteps(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(100)
	for i := range int64(31) {
		wait := int64(0)
		if i%3 == 2 {
			wait = 900
		}
		for k, start := range []int64{at, at + 50 + wait} {
			us := start * sectiontest.Us
			th.Launch([]string{"first", "second"}[k], us-9*sectiontest.Us, us-4*sectiontest.Us, tracetest.Kernel{Start: us, End: us + 40*sectiontest.Us})
		}
		at += 100 + wait
	}
	l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:first"})
	l.Finding("unit_uneven", "remark")
	slow := 10.0
	slow /= 30 // as a number of 64 bits, and not as a constant
	for mode, want := range map[string]struct{ us, share float64 }{"short": {100, 1 - slow}, "long": {1000, slow}} {
		sectiontest.Metric(t, l.Report, want.us*sectiontest.Us, "unit.mode_time", "mode", mode)
		sectiontest.Metric(t, l.Report, want.share, "unit.mode_share", "mode", mode)
	}
}
