package diff_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
)

// GEMMs take 30 % longer and all other kernels 2 % less, two captures a side: the step is slower, so the shift of most
// kernels, which goes the other way, is not what made it so. It comes second.
func TestACommonShiftNeverContradictsTheVerdict(t *testing.T) {
	side := func(all, scale float64) (list []*report.Report) {
		for seed := range int64(2) {
			list = append(list, engineReport(t, engine{seed: seed, all: all, scale: scale}))
		}
		return list
	}
	c, err := diff.Compare(side(1, 1), side(0.98, 1.3/0.98), diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c.Cause)
	says(t, c, "Slower", engineGEMM)
	if gemm, all := strings.Index(c.Cause, engineGEMM), strings.Index(c.Cause, "clocks"); all >= 0 && all < gemm {
		t.Errorf("the shift comes first: %s", c.Cause)
	}
	if strings.Contains(c.Cause, "all kernels") {
		t.Errorf("all kernels are blamed: %s", c.Cause)
	}
}

// The host takes 6 µs more before a step of about 0.6 ms: 1 %, which one capture a side cannot tell from noise.
func TestNoiseHasNoCause(t *testing.T) {
	c := injected(t, engine{}, engine{gap: 6_000})
	within(t, "change of the unit", c.Attribution.TotalDelta, 6_000)
	if strings.Contains(c.Cause, "host") || strings.Contains(c.Cause, "idle") {
		t.Errorf("noise is explained: %s", c.Cause)
	}
}
