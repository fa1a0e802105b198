package diff_test

import (
	"fmt"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// TestCollectiveInTheStep: in a step of 12 kernels of 300 µs an all-reduce of 800 µs follows the sixth. The seventh
// waits for it, or runs beside it; or the all-reduce takes 400 µs longer. No other kernel changes.
func TestCollectiveInTheStep(t *testing.T) {
	const allReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"
	trace := func(overlap bool, ns int64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range int64(24) {
			host, end := at, at+20_000
			launch := func(name string, stream, ns int64) int64 {
				k := tracetest.Kernel{Place: tracetest.Place{Stream: stream}, Name: name, Start: end + 2000}
				k.End = k.Start + ns
				th.Launch(name, host, host+4000, k)
				host += 6000
				return k.End
			}
			for k := range int64(12) {
				end = launch(fmt.Sprintf("gemm%d", k), 7, 300_000+100*((i+k)%5))
				if k == 5 {
					if joined := launch(allReduce, 20, ns); !overlap {
						end = joined
					}
				}
			}
			th.StreamSynchronize(host, end+4000, 0, 7)
			at = end + 40_000
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	serial, beside, longer := trace(false, 800_000), trace(true, 800_000), trace(false, 1_200_000)
	const name, exposed = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL ", " µs exposed communication "
	const overlaps = " of it overlaps with compute"
	says(t, ofReports(t, serial, beside), "% faster", exposed, name+"takes as long, and more"+overlaps)
	says(t, ofReports(t, beside, serial), "% slower", exposed, name+"takes as long, and less"+overlaps)
	says(t, ofReports(t, serial, longer), "% slower", "+400"+exposed+"+50.0 %: "+name+"+50.0 %: 1 × 800 µs → 1.2 ms")
}
