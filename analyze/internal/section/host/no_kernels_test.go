package host_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

// Without kernels the narrowest range with 30 % of the time is named (60 of 100, of which 40 in an inner one), else the
// CUDA call (50 of 100); with a kernel nothing is.
func TestHostOfACaptureWithoutKernels(t *testing.T) {
	for _, c := range []struct {
		ranges, kernel bool
		label, name    string
		ns             float64
	}{{true, false, "range", "read #", 40 * sectiontest.Us}, {false, false, "api", "cudaFree", 50 * sectiontest.Us}, {true, true, "", "", 0}} {
		b := tt.New()
		th := b.Process(1, "p").Thread(1, "")
		th.Call("cudaFree", 10*sectiontest.Us, 60*sectiontest.Us)
		th.Call("cudaMalloc", 90*sectiontest.Us, 110*sectiontest.Us)
		if c.ranges {
			th.Range("outer", 10*sectiontest.Us, 70*sectiontest.Us)
			th.Range("read 1", 10*sectiontest.Us, 30*sectiontest.Us)
			th.Range("read 2", 35*sectiontest.Us, 55*sectiontest.Us)
			th.Range("tail", 100*sectiontest.Us, 110*sectiontest.Us)
		}
		if c.kernel {
			th.Launch("gemm", 0, 1, tt.Kernel{Start: 1, End: 10 * sectiontest.Us})
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		if c.name == "" {
			l.Finding("host_place", "")
			continue
		}
		l.Finding("host_place", report.High)
		sectiontest.Metric(t, l.Report, c.ns, "capture.place_time", c.label, c.name)
		sectiontest.Metric(t, l.Report, 100*sectiontest.Us, "capture.host_time")
	}
}
