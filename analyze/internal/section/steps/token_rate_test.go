package steps_test

import (
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Decode steps of batch 8 take 1 ms on each of two GPUs at the same time: 8 tokens a step are 8,000 per second. With an
// all-reduce in each the two are one server of 4,000 each; without one each GPU serves its own requests. Two processes
// that share one GPU yield 16,000 on it. If they communicate, they are ranks of one server on GPUs that the capture does
// not tell apart: the 8,000 of a step are those of both.
func TestTokensPerSecondAndGPU(t *testing.T) {
	const ms = 1000 * sectiontest.Us
	for _, c := range []struct {
		reduce, shared bool
		want           float64
	}{{true, false, 4000}, {false, false, 8000}, {false, true, 16000}, {true, true, 8000}} {
		b := tracetest.New()
		p := b.Process(1, "p")
		for rank := range int64(2) {
			th, device := p.Thread(1+rank, ""), rank
			if c.shared {
				th, device = b.Process(10+rank, "p").Thread(10+rank, ""), 0
			}
			for i := range int64(12) {
				at := i * ms
				th.Range("execute_context_0(0)_generation_8(8)", at, at+900*sectiontest.Us)
				for k := range int64(4) {
					name := "k" + strconv.Itoa(int(k))
					if k == 3 && c.reduce {
						name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
					}
					start := at + (10+k*100)*sectiontest.Us
					th.Launch(name, at+10+k*10, at+15+k*10, tracetest.Kernel{Place: tracetest.Place{Device: device}, Start: start, End: start + 90*sectiontest.Us})
				}
			}
		}
		r := sectiontest.Look(t, b, analyze.Options{}).Report
		sectiontest.Metric(t, r, c.want, "unit.token_rate", "phase", "decode", "batch", "8")
	}
}
