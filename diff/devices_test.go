package diff_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// TestPartsAreOfTheComparedDevice: whichever device is compared, the parts of a class are its own: none takes less than
// nothing, and all of them take what the class does, to the nanosecond. The device's steps tell the same kernels.
func TestPartsAreOfTheComparedDevice(t *testing.T) {
	t.Parallel()
	pairs := map[string][2]*report.Report{
		"built": {stepTrace(t, stepChange{}), stepTrace(t, stepChange{stall: 30_000, slower: 20_000})},
	}
	before, after := sharedReport(t, "nsysai_mfu_2gpu_before"), sharedReport(t, "nsysai_mfu_2gpu_after")
	if before != nil {
		pairs["before, after"], pairs["after, before"] = [2]*report.Report{before, after}, [2]*report.Report{after, before}
		other := sharedReport(t, "nsysai_h100_2gpu_1s")
		pairs["another program"] = [2]*report.Report{before, other}
		pairs["itself"] = [2]*report.Report{other, other}
	}
	for name, pair := range pairs {
		for device := range int64(2) {
			partsOfClasses(t, name, device, compareOn(t, pair[0], pair[1], device))
		}
	}
}

// TestKernelsOfAnotherDeviceAreNotShown: device 1 is the slower one, and a report without steps has its kernels alone.
func TestKernelsOfAnotherDeviceAreNotShown(t *testing.T) {
	base, head := stepTrace(t, stepChange{}), stepTrace(t, stepChange{slower: 20_000})
	base.Unit.Steps = nil
	for device, want := range []comparison.Depth{comparison.DepthUnit, comparison.DepthKernel} {
		c := compareOn(t, base, head, int64(device))
		if c.Depth != want || (len(c.Kernels) == 0) != (want == comparison.DepthUnit) {
			t.Errorf("GPU %d: depth %s, kernels %+v", device, c.Depth, c.Kernels)
		}
		for i := range c.Attribution.Rows {
			if r := &c.Attribution.Rows[i]; r.Kind == comparison.KindKernel && want == comparison.DepthUnit {
				t.Errorf("GPU %d: %+v", device, r)
			}
		}
		if said := strings.Contains(c.Cause, "single kernels are not compared"); said != (want == comparison.DepthUnit) {
			t.Errorf("GPU %d: %s", device, c.Cause)
		}
	}
}

// TestOtherDevicesAreTold: the GPU that is compared is named, and so is another one that changed the other way.
func TestOtherDevicesAreTold(t *testing.T) {
	base, head := sharedReport(t, "nsysai_mfu_2gpu_before"), sharedReport(t, "nsysai_mfu_2gpu_after")
	if base == nil {
		t.Skip("the shared captures are not there")
	}
	for device, want := range []string{
		"GPU 1: exposed communication +1.061 ms (+209.2 %): --device 1", "GPU 0: exposed communication -388.3 µs (-36.4 %): --device 0",
	} {
		c := compareOn(t, base, head, int64(device))
		if g := c.Unit.HeadGPU; g == nil || *g != (comparison.OneGPU{Device: int64(device), Of: 2}) {
			t.Errorf("GPU %d: %+v", device, g)
		}
		if !strings.Contains(c.Cause, want) {
			t.Errorf("GPU %d: %q is not in %s", device, want, c.Cause)
		}
	}
	if c := compareOn(t, base, base, 0); strings.Contains(c.Cause, "--device") {
		t.Error(c.Cause)
	}
}

// TestCallsOfTheComparedDevice: device 0 is the slower one on the base and device 1 on the head, where every step of
// both also makes a pageable copy and waits for the device. Each device's calls and copies are compared with its own; a
// report without those of another device than its slowest, as earlier versions wrote, proves nothing about them.
func TestCallsOfTheComparedDevice(t *testing.T) {
	trace := func(kernels [2]int64, more bool) *report.Report {
		b := tracetest.New()
		for device := range int64(2) {
			b.GPU(tracetest.GPU{ID: device})
			th := b.Process(100+device, "python").Thread(100+device, "python")
			at := int64(1_000_000)
			for i := range int64(20) {
				first, place := at, tracetest.Place{Device: device}
				for k := range 8 {
					x := tracetest.Kernel{Place: place, Start: at, End: at + kernels[device]}
					th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, x)
					at = x.End + 1000
				}
				if more {
					th.Memcpy(at-900, at-500, tracetest.Memcpy{Place: place, Start: at, End: at + 20_000, Bytes: 1 << 20,
						Kind: tracetest.HtoD, Src: tracetest.Pageable, Dst: tracetest.DeviceMemory})
					th.DeviceSynchronize(at, at+21_000, device)
					at += 25_000
				}
				th.Range(fmt.Sprintf("ProfilerStep#%d", i), first-1000, at-1000)
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, head := trace([2]int64{12_000, 11_000}, false), trace([2]int64{12_000, 13_000}, true)
	found := func(c *comparison.Comparison) bool {
		return strings.Contains(c.Cause, "pageable HtoD copies 0 → 1 per unit") &&
			strings.Contains(c.Cause, "blocking call cudaDeviceSynchronize, 0 → 1 per unit")
	}
	for device := range int64(2) {
		if c := compareOn(t, base, head, device); !found(c) {
			t.Errorf("GPU %d: %s", device, c.Cause)
		}
	}
	if c := ofReports(t, base, head); !found(c) || !strings.Contains(c.Cause, "the slowest device moved from 0 to 1") {
		t.Error(c.Cause)
	}
	head.Metrics = slices.DeleteFunc(head.Metrics, func(m report.Metric) bool {
		return m.Labels["device"] != "" && (strings.HasPrefix(m.ID, "api.") || strings.HasPrefix(m.ID, "memcpy."))
	})
	if c := compareOn(t, base, head, 0); found(c) || len(c.API) > 0 {
		t.Errorf("of the other device: %s", c.Cause)
	}
}

// TestAStillDeviceIsNotTold: the host of device 0 is 100 µs later in every step. That of device 1 is 1 µs earlier,
// which is nothing, or 30 µs.
func TestAStillDeviceIsNotTold(t *testing.T) {
	trace := func(gaps [2]int64) *report.Report {
		b := tracetest.New()
		for device := range int64(2) {
			b.GPU(tracetest.GPU{ID: device})
			th := b.Process(100+device, "python").Thread(100+device, "python")
			at := int64(1_000_000)
			for range 20 {
				for k := range 8 {
					x := tracetest.Kernel{Place: tracetest.Place{Device: device}, Start: at, End: at + 50_000}
					th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, x)
					at = x.End + 1000
				}
				at += gaps[device]
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base := trace([2]int64{40_000, 40_000})
	for gap, want := range map[int64]bool{39_000: false, 10_000: true} {
		c := compareOn(t, base, trace([2]int64{140_000, gap}), 0)
		if strings.Contains(c.Cause, "GPU 1: GPU idle") != want {
			t.Errorf("%d ns: %s", gap, c.Cause)
		}
	}
}

// TestEachKindNamesItsGPU: a kind of unit of which only the slowest GPU is known names it too, of those that did work.
func TestEachKindNamesItsGPU(t *testing.T) {
	r := reportOfFile(t, "../testdata/serving.sqlite", analyze.Options{})
	batch := int64(8)
	for _, opt := range []diff.Options{{}, {Phase: "prefill"}, {Batch: &batch}, {Phase: "prefill", Study: []string{"gpu"}}} {
		c, err := diff.Compare(one(r), one(r), opt)
		if err != nil {
			t.Fatal(err)
		}
		if b, h := c.Unit.BaseGPU, c.Unit.HeadGPU; b == nil || h == nil || b.Of != 2 || *b != *h {
			t.Errorf("%+v: %+v, %+v", opt, b, h)
		}
	}
	r = reportOfFile(t, "../testdata/base.sqlite", analyze.Options{})
	if c, err := diff.Compare(one(r), one(r), diff.Options{}); err != nil || c.Unit.BaseGPU != nil {
		t.Errorf("the only GPU is named: %+v, %v", c.Unit.BaseGPU, err)
	}
}

func compareOn(t *testing.T, base, head *report.Report, device int64) *comparison.Comparison {
	t.Helper()
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{Device: &device})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func partsOfClasses(t *testing.T, name string, device int64, c *comparison.Comparison) {
	t.Helper()
	class := map[string][2]float64{}
	sum := map[string][2]float64{}
	add := func(to map[string][2]float64, id string, r *comparison.AttributionRow) {
		if r.Base < -0.5 || r.Head < -0.5 {
			t.Errorf("%s, GPU %d: %s takes %v → %v ns", name, device, r.ID, r.Base, r.Head)
		}
		to[id] = [2]float64{to[id][0] + r.Base, to[id][1] + r.Head}
	}
	for i := range c.Attribution.Rows {
		switch r := &c.Attribution.Rows[i]; {
		case r.Kind == comparison.KindClass:
			add(class, r.ID, r)
		case r.Kind == comparison.KindCause:
			add(sum, comparison.ClassIdle, r)
		case r.Kind == comparison.KindHost:
			add(sum, "host", r)
		case (r.Kind == comparison.KindKernel || r.Kind == comparison.KindOthers) && r.Category != "comm":
			add(sum, comparison.ClassCompute, r)
		case r.Kind == comparison.KindKernel:
			add(sum, comparison.ClassComm, r)
		}
		if r := &c.Attribution.Rows[i]; r.Kind == comparison.KindCause && r.ID == "host" {
			class["host"] = [2]float64{r.Base, r.Head}
		}
	}
	if c.Depth != comparison.DepthKernel && c.Comparable {
		t.Errorf("%s, GPU %d: depth %s, though the report lists its steps kernel by kernel", name, device, c.Depth)
	}
	both := comparison.ClassCompute + " and " + comparison.ClassComm // others may be of either
	for _, m := range []map[string][2]float64{class, sum} {
		x, y := m[comparison.ClassCompute], m[comparison.ClassComm]
		m[both] = [2]float64{x[0] + y[0], x[1] + y[1]}
	}
	for side := range 2 {
		if sum[comparison.ClassComm][side] > class[comparison.ClassComm][side]+1 {
			t.Errorf("%s, GPU %d: kernels take %v of %v ns of communication", name, device,
				sum[comparison.ClassComm], class[comparison.ClassComm])
		}
		for _, id := range []string{comparison.ClassIdle, "host", both} {
			if _, told := sum[id]; told && math.Abs(sum[id][side]-class[id][side]) > 1 {
				t.Errorf("%s, GPU %d: the parts of %s take %v, not %v ns", name, device, id, sum[id], class[id])
			}
		}
	}
	if c.Step == nil {
		return
	}
	alone := [2]float64{}
	for i := range c.Step.Rows {
		if r := &c.Step.Rows[i]; r.Category == "comm" {
			alone[0], alone[1] = alone[0]+r.BaseKernel, alone[1]+r.HeadKernel
		}
	}
	if got := sum[comparison.ClassComm]; math.Abs(got[0]-alone[0]) > 1 || math.Abs(got[1]-alone[1]) > 1 {
		t.Errorf("%s, GPU %d: communication kernels take %v ns, in the step %v", name, device, got, alone)
	}
}
