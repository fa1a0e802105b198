package section_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// twoRanks runs an all-reduce and an all-gather on two devices, in µs:
//
//	device 0: compute 0-100, all-reduce 50-120, all-gather 110-150, compute 140-200
//	device 1: compute 0-90, all-reduce 90-120, all-gather 115-150, compute 150-200
//
// Exposed on device 0: 100-140; the all-reduce owns it until it ends at 120, the all-gather from there. On device 1:
// 90-150, the all-reduce until 120. Device 0 waits 40 for device 1's all-reduce, and 5 for its all-gather.
func twoRanks() *tracetest.Builder {
	b := tracetest.New()
	at := int64(0)
	for d, kernels := range [][4][2]int64{{{0, 100}, {50, 120}, {110, 150}, {140, 200}}, {{0, 90}, {90, 120}, {115, 150}, {150, 200}}} {
		th := b.Process(100+int64(d), "p").Thread(100+int64(d), "")
		for i, name := range []string{"gemm", allReduceKernel, allGatherKernel, "gemm"} {
			at += 2
			place := tracetest.Place{Device: int64(d), Stream: 7 + int64(i%3)}
			th.Launch(name, at, at+1, tracetest.Kernel{Place: place, Start: kernels[i][0] * us, End: kernels[i][1] * us})
		}
	}
	return b
}

func TestCollectives(t *testing.T) {
	l := look(t, twoRanks(), analyze.Options{})
	metric(t, l.Report, (70+40+30+35)*us, "comm.time")
	metric(t, l.Report, 4, "comm.count")
	metric(t, l.Report, 100*us, "comm.exposed_time")
	for _, c := range []struct {
		collective               string
		time0, time1, exp0, exp1 float64
	}{{"AllReduce", 70, 30, 20, 30}, {"AllGather", 40, 35, 20, 30}} {
		metric(t, l.Report, (c.time0+c.time1)*us, "comm.time", "collective", c.collective)
		metric(t, l.Report, 2, "comm.count", "collective", c.collective)
		metric(t, l.Report, (c.exp0+c.exp1)*us, "comm.exposed_time", "collective", c.collective)
		metric(t, l.Report, c.time0*us, "comm.time", "collective", c.collective, "device", "0")
		metric(t, l.Report, c.time1*us, "comm.time", "collective", c.collective, "device", "1")
		metric(t, l.Report, c.exp0*us, "comm.exposed_time", "collective", c.collective, "device", "0")
		metric(t, l.Report, c.exp1*us, "comm.exposed_time", "collective", c.collective, "device", "1")
	}
	hidden, busy := 60.0, 100.0 // device 0: 50-150, of which 100-140 is exposed
	metric(t, l.Report, hidden/busy, "comm.hidden_ratio", "device", "0")
	metric(t, l.Report, 0, "comm.hidden_ratio", "device", "1")
	metric(t, l.Report, 45*us, "comm.wait_time", "device", "0")
	metric(t, l.Report, 0, "comm.wait_time", "device", "1")
	l.finding("comm_skew", report.Medium) // 45 of 200

	s := l.Find("comm.time", report.Labels{"collective": "AllReduce"}).Summary
	if s.N != 2 || s.Min != 30*us || s.P50 != 50*us || s.Max != 70*us {
		t.Errorf("summary of the all-reduces: %+v", *s)
	}
	tab := l.table("comm", "comm")
	l.row(tab, 0, "collective", `"AllReduce"`, "library", `"nccl"`, "count", "2", "total", "100000", "mean", "50000", "max", "70000", "exposed", "50000")
	l.row(tab, 1, "collective", `"AllGather"`, "total", "75000", "exposed", "50000")
	l.csvHas(tab, "comm.csv", "collective", "library", "call_count", "total_time_ms", "exposed_ms")
	l.row(l.table("comm", "comm_devices"), 0, "device_id", "0", "total", "110000", "busy", "100000", "exposed", "40000", "hidden", "0.6", "wait", "45000")
}

// NCCL's and the engine's own all-reduce are one collective and two rows.
func TestCustomAllReduceIsItsOwnRow(t *testing.T) {
	const custom = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)"
	l := look(t, kinds(map[string]int64{custom: 10, allReduceKernel: 30, "gemm": 60}, custom, allReduceKernel, "gemm"), analyze.Options{})
	metric(t, l.Report, 40*us, "comm.time", "collective", "AllReduce")
	tab := l.table("comm", "comm")
	l.row(tab, 0, "library", `"nccl"`, "total", "30000", "share", "0.3")
	l.row(tab, 1, "library", `"vllm"`, "total", "10000", "share", "0.1")
	noMetric(t, l.Report, "comm.wait_time", "device", "0") // one device waits for nobody
}

// A kernel that began before the window adds to what is exposed in it, and is not counted. From 110 on: device 0 is
// exposed 110-140, device 1 110-150; the all-reduces own the time until 120.
func TestCommunicationOfANarrowWindow(t *testing.T) {
	l := look(t, twoRanks(), analyze.Options{Window: between(110*us, 200*us)})
	metric(t, l.Report, 2, "comm.count")
	metric(t, l.Report, 75*us, "comm.time")
	metric(t, l.Report, 0, "comm.count", "collective", "AllReduce")
	metric(t, l.Report, 20*us, "comm.exposed_time", "collective", "AllReduce")
	metric(t, l.Report, 50*us, "comm.exposed_time", "collective", "AllGather")
}

// Collectives that do not happen together are not paired: same number, other times.
func TestUnrelatedCollectivesAreNotPaired(t *testing.T) {
	b := tracetest.New()
	for d := range int64(2) {
		th := b.Process(100+d, "p").Thread(100+d, "")
		for i := range int64(3) {
			at := (1000*d + 100*i) * us
			th.Launch(allReduceKernel, at, at+1, tracetest.Kernel{Place: tracetest.Place{Device: d}, Start: at, End: at + 50*us})
		}
	}
	l := look(t, b, analyze.Options{})
	metric(t, l.Report, 6, "comm.count")
	noMetric(t, l.Report, "comm.wait_time", "device", "0")
	l.row(l.table("comm", "comm_devices"), 0, "wait", "null")
}

// Of forty pairs one does not overlap, as happens at the ends of a capture: its kernel waited no longer than it ran.
func TestAPairApartWaitsNoLongerThanItRuns(t *testing.T) {
	b := tracetest.New()
	for d := range int64(2) {
		th := b.Process(100+d, "p").Thread(100+d, "")
		for i := range int64(40) {
			at := (100*i + 10*d) * us // device 1 joins 10 µs later
			if i == 39 {
				at += 70 * d * us // and the last time 80, after device 0 is done
			}
			th.Launch(allReduceKernel, at, at+1, tracetest.Kernel{Place: tracetest.Place{Device: d}, Start: at, End: at + 50*us})
		}
	}
	l := look(t, b, analyze.Options{})
	metric(t, l.Report, (39*10+50)*us, "comm.wait_time", "device", "0")
	metric(t, l.Report, 0, "comm.wait_time", "device", "1")
}

func TestNoCommunication(t *testing.T) {
	l := look(t, tracetest.TwoProcs(), analyze.Options{})
	l.status("comm", report.NotApplicable)
	noMetric(t, l.Report, "comm.time")
}

// On every device collectives sum to what the device exposes.
func TestExposedCommunicationSums(t *testing.T) {
	check := func(name string, r *report.Report) {
		seen := map[string]float64{}
		for _, m := range r.Metrics {
			if m.ID == "comm.exposed_time" && len(m.Labels) == 2 {
				seen[m.Labels["device"]] += *m.Value
			}
		}
		for _, m := range r.Metrics {
			if d := m.Labels["device"]; m.ID == "gpu.exposed_comm_time" && seen[d] != *m.Value {
				t.Errorf("%s: collectives of device %s expose %v, the device %v", name, d, seen[d], *m.Value)
			}
		}
	}
	for seed := range uint64(10) {
		check("random", analyse(t, newRandomTrace(seed, 0).builder, analyze.Options{}).Report)
	}
	serving := analyse(t, tracetest.Serving(), analyze.Options{}).Report
	check("serving", serving)
	if serving.Find("comm.wait_time", report.Labels{"device": "0"}) == nil {
		t.Error("the ranks of the serving trace run in lockstep: their collectives pair")
	}
	for trace := range oracle(t, "cuda_gpu_kern_sum") {
		res, err := analyze.Run(t.Context(), realTrace(trace), analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		check(trace, res.Report)
	}
}
