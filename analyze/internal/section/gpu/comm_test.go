package gpu_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
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
			th.Launch(name, at, at+1, tracetest.Kernel{Place: place, Start: kernels[i][0] * sectiontest.Us, End: kernels[i][1] * sectiontest.Us})
		}
	}
	return b
}

func TestCollectives(t *testing.T) {
	l := sectiontest.Look(t, twoRanks(), analyze.Options{})
	sectiontest.Metric(t, l.Report, (70+40+30+35)*sectiontest.Us, "comm.time")
	sectiontest.Metric(t, l.Report, 4, "comm.count")
	sectiontest.Metric(t, l.Report, 100*sectiontest.Us, "comm.exposed_time")
	for _, c := range []struct {
		collective               string
		time0, time1, exp0, exp1 float64
	}{{"AllReduce", 70, 30, 20, 30}, {"AllGather", 40, 35, 20, 30}} {
		sectiontest.Metric(t, l.Report, (c.time0+c.time1)*sectiontest.Us, "comm.time", "collective", c.collective)
		sectiontest.Metric(t, l.Report, 2, "comm.count", "collective", c.collective)
		sectiontest.Metric(t, l.Report, (c.exp0+c.exp1)*sectiontest.Us, "comm.exposed_time", "collective", c.collective)
		sectiontest.Metric(t, l.Report, c.time0*sectiontest.Us, "comm.time", "collective", c.collective, "device", "0")
		sectiontest.Metric(t, l.Report, c.time1*sectiontest.Us, "comm.time", "collective", c.collective, "device", "1")
		sectiontest.Metric(t, l.Report, c.exp0*sectiontest.Us, "comm.exposed_time", "collective", c.collective, "device", "0")
		sectiontest.Metric(t, l.Report, c.exp1*sectiontest.Us, "comm.exposed_time", "collective", c.collective, "device", "1")
	}
	hidden, busy := 60.0, 100.0 // device 0: 50-150, of which 100-140 is exposed
	sectiontest.Metric(t, l.Report, hidden/busy, "comm.hidden_ratio", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "comm.hidden_ratio", "device", "1")
	sectiontest.Metric(t, l.Report, 45*sectiontest.Us, "comm.wait_time", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "comm.wait_time", "device", "1")
	l.Finding("comm_skew", report.High) // 45 of 200

	s := l.Find("comm.time", report.Labels{"collective": "AllReduce"}).Summary
	if s.N != 2 || s.Min != 30*sectiontest.Us || s.P50 != 50*sectiontest.Us || s.Max != 70*sectiontest.Us {
		t.Errorf("summary of the all-reduces: %+v", *s)
	}
	tab := l.Table("comm", "comm")
	l.Row(tab, 0, "collective", `"AllReduce"`, "library", `"nccl"`, "count", "2", "total", "100000", "mean", "50000", "max", "70000", "exposed", "50000")
	l.Row(tab, 1, "collective", `"AllGather"`, "total", "75000", "exposed", "50000")
	l.CsvHas(tab, "comm.csv", "collective", "library", "call_count", "total_time_ms", "exposed_ms")
	l.Row(l.Table("comm", "comm_devices"), 0, "device_id", "0", "total", "110000", "busy", "100000", "exposed", "40000", "hidden", "0.6", "wait", "45000")
}

// NCCL's and the engine's own all-reduce are one collective and two rows.
func TestCustomAllReduceIsItsOwnRow(t *testing.T) {
	const custom = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)"
	l := sectiontest.Look(t, kinds(map[string]int64{custom: 10, allReduceKernel: 30, "gemm": 60}, custom, allReduceKernel, "gemm"), analyze.Options{})
	sectiontest.Metric(t, l.Report, 40*sectiontest.Us, "comm.time", "collective", "AllReduce")
	tab := l.Table("comm", "comm")
	l.Row(tab, 0, "library", `"nccl"`, "total", "30000", "share", "0.3")
	l.Row(tab, 1, "library", `"vllm"`, "total", "10000", "share", "0.1")
	sectiontest.NoMetric(t, l.Report, "comm.wait_time", "device", "0") // one device waits for nobody
}

// A kernel that began before the window adds to what is exposed in it, and is not counted. From 110 on: device 0 is
// exposed 110-140, device 1 110-150; the all-reduces own the time until 120.
func TestCommunicationOfANarrowWindow(t *testing.T) {
	l := sectiontest.Look(t, twoRanks(), analyze.Options{Window: between(110*sectiontest.Us, 200*sectiontest.Us)})
	sectiontest.Metric(t, l.Report, 2, "comm.count")
	sectiontest.Metric(t, l.Report, 75*sectiontest.Us, "comm.time")
	sectiontest.Metric(t, l.Report, 0, "comm.count", "collective", "AllReduce")
	sectiontest.Metric(t, l.Report, 20*sectiontest.Us, "comm.exposed_time", "collective", "AllReduce")
	sectiontest.Metric(t, l.Report, 50*sectiontest.Us, "comm.exposed_time", "collective", "AllGather")
}

// Collectives that do not happen together are not paired: same number, other times.
func TestUnrelatedCollectivesAreNotPaired(t *testing.T) {
	b := tracetest.New()
	for d := range int64(2) {
		th := b.Process(100+d, "p").Thread(100+d, "")
		for i := range int64(3) {
			at := (1000*d + 100*i) * sectiontest.Us
			th.Launch(allReduceKernel, at, at+1, tracetest.Kernel{Place: tracetest.Place{Device: d}, Start: at, End: at + 50*sectiontest.Us})
		}
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 6, "comm.count")
	sectiontest.NoMetric(t, l.Report, "comm.wait_time", "device", "0")
	l.Row(l.Table("comm", "comm_devices"), 0, "wait", "null")
}

// Of forty pairs one does not overlap, as happens at the ends of a capture: its kernel waited no longer than it ran.
func TestAPairApartWaitsNoLongerThanItRuns(t *testing.T) {
	b := tracetest.New()
	for d := range int64(2) {
		th := b.Process(100+d, "p").Thread(100+d, "")
		for i := range int64(40) {
			at := (100*i + 10*d) * sectiontest.Us // device 1 joins 10 µs later
			if i == 39 {
				at += 70 * d * sectiontest.Us // and the last time 80, after device 0 is done
			}
			th.Launch(allReduceKernel, at, at+1, tracetest.Kernel{Place: tracetest.Place{Device: d}, Start: at, End: at + 50*sectiontest.Us})
		}
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, (39*10+50)*sectiontest.Us, "comm.wait_time", "device", "0")
	sectiontest.Metric(t, l.Report, 0, "comm.wait_time", "device", "1")
}

// What two devices send each other waits for the later one. Of three devices it is unknown who sends to whom.
func TestTwoDevicesWaitForEachOther(t *testing.T) {
	for devices, want := range map[int64]bool{2: true, 3: false} {
		b := tracetest.New()
		for d := range devices {
			th := b.Process(100+d, "p").Thread(100+d, "")
			for i := range int64(10) {
				at := (100*i + 10*d) * sectiontest.Us
				th.Launch("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", at, at+1, tracetest.Kernel{Place: tracetest.Place{Device: d}, Start: at, End: at + 50*sectiontest.Us})
			}
		}
		l := sectiontest.Look(t, b, analyze.Options{})
		advice := strings.Join(sectiontest.FindingOf(l.Report, "exposed_comm").Advice, " ")
		if strings.Contains(advice, "column Waiting") != want || strings.Contains(advice, "a report of all ranks") == want {
			t.Errorf("%d devices: %s", devices, advice)
		}
		if !want {
			sectiontest.NoMetric(t, l.Report, "comm.wait_time", "device", "0")
			continue
		}
		sectiontest.Metric(t, l.Report, 10*10*sectiontest.Us, "comm.wait_time", "device", "0")
		sectiontest.Metric(t, l.Report, 0, "comm.wait_time", "device", "1")
	}
}

func TestNoCommunication(t *testing.T) {
	l := sectiontest.Look(t, tracetest.TwoProcs(), analyze.Options{})
	l.Status("comm", report.NotApplicable)
	sectiontest.NoMetric(t, l.Report, "comm.time")
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
	for seed := range uint64(longtest.N(4, 10)) {
		check("random", sectiontest.Analyse(t, newRandomTrace(seed, 0).builder, analyze.Options{}).Report)
	}
	serving := sectiontest.ReportOf(t, "../../../../testdata/serving.sqlite")
	check("serving", serving)
	if serving.Find("comm.wait_time", report.Labels{"device": "0"}) == nil {
		t.Error("the ranks of the serving trace run in lockstep: their collectives pair")
	}
	for trace := range oracle(t, "cuda_gpu_kern_sum") {
		check(trace, sectiontest.ReportOf(t, realTrace(trace)))
	}
}

// Rank 2 of 4 sends six all-reduces of 1 MiB. Its kernels run from when the rank is there to the end of the collective;
// what the links carry is 2·3/4 of the message.
func TestMessageSizes(t *testing.T) {
	rank := tracetest.Fleet{Ranks: 4, Steps: 3, Layers: 2}.Run()[2]
	l := sectiontest.Look(t, rank.Build(tracetest.Schema("3.25.0")), analyze.Options{})
	var time int64
	for _, m := range rank.Met {
		time += m.End - m.Start
	}
	const bytes = 6 << 20
	algorithm := bytes * 1e9 / float64(time)
	sectiontest.Metric(t, l.Report, bytes, "comm.bytes")
	sectiontest.Metric(t, l.Report, bytes, "comm.bytes", "collective", "AllReduce")
	sectiontest.Metric(t, l.Report, algorithm, "comm.algorithm_bandwidth", "collective", "AllReduce")
	sectiontest.Metric(t, l.Report, algorithm*1.5, "comm.bus_bandwidth", "collective", "AllReduce")
	sectiontest.Metric(t, l.Report, algorithm*1.5, "comm.bus_bandwidth", "collective", "AllReduce", "size", "1048576")
	tab := l.Table("comm", "comm_sizes")
	l.Row(tab, 0, "collective", `"AllReduce"`, "size", "1048576", "ranks", "4", "count", "6")
	l.CsvHas(tab, "comm_sizes.csv", "collective", "size", "ranks", "algbw_gbps", "busbw_gbps")

	rank = tracetest.Fleet{Ranks: 4, Steps: 3, Layers: 2, NoPayload: true}.Run()[2]
	l = sectiontest.Look(t, rank.Build(tracetest.Schema("3.25.0")), analyze.Options{})
	sectiontest.NoMetric(t, l.Report, "comm.bytes")
}

// Steps of 1000 µs on two GPUs: GPU 0 computes for 600 and waits for GPU 1, which computes for 800, before both communicate
// for 100. The wait and the communication are two findings on two times, and the first names the GPU that is late.
func TestWaitingForASlowerDeviceIsNoCommunication(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	threads := []*tracetest.Thread{b.Process(10, "p").Thread(10, ""), b.Process(11, "p").Thread(11, "")}
	for i := range int64(12) {
		at := (1000 + 1000*i) * us
		for d, compute := range []int64{600, 800} {
			th := threads[d]
			place := tracetest.Place{Device: int64(d), Stream: 7}
			th.Launch("gemm", at, at+us, tracetest.Kernel{Place: place, Start: at + 2*us, End: at + compute*us})
			th.Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", at+2*us, at+3*us, tracetest.Kernel{Place: place, Start: at + compute*us, End: at + 900*us})
		}
	}
	l := sectiontest.Look(t, b, analyze.Options{Unit: "kernel:gemm"})
	f := sectiontest.FindingOf(l.Report, "comm_skew")
	if f == nil || f.Worth == nil || f.Title != "GPU 0 waits in collectives for GPU 1: 200 µs of each step" || f.Worth.Time/f.Worth.Units != 200*us {
		t.Errorf("%+v", f)
	}
	f = sectiontest.FindingOf(l.Report, "exposed_comm")
	if f == nil || f.Title != "Communication is not hidden behind compute: 30.0 %, of it 20.0 % waiting for another GPU" ||
		f.Worth != nil && f.Worth.Time/f.Worth.Units > 100*us {
		t.Errorf("%+v", f)
	}
}

// 24 decode steps on two GPUs, which are judged, and four prefills of which one GPU computes for 3.3 ms and the other
// for 0.3, so that it waits for 12 ms. In the first capture, of steps of 800 µs, both GPUs reach each all-reduce of
// decode together; in the second GPU 0 waits in each step for 200 µs, 20 % of 1000, although in prefills GPU 1 waits for
// it.
func TestWaitsOfOtherStepsAreNotOfTheJudgedOnes(t *testing.T) {
	const us = sectiontest.Us
	for _, c := range []struct {
		decode, prefill [2]int64 // µs of compute, by GPU
		waits           string
		skew, say       string
	}{
		{[2]int64{500, 500}, [2]int64{300, 3300}, "0", "", "Communication is not hidden behind compute: 12.5 %"},
		{[2]int64{500, 700}, [2]int64{3300, 300}, "1", "GPU 0 waits in collectives for GPU 1: 200 µs of each step",
			"Communication is not hidden behind compute: 30.0 %, of it 20.0 % waiting for another GPU"},
	} {
		r := sectiontest.Analyse(t, decodeAndPrefill(c.decode, c.prefill), analyze.Options{}).Report
		sectiontest.Metric(t, r, 12_000*us, "comm.wait_time", "device", c.waits)
		var said []string
		for _, f := range r.Findings {
			said = append(said, f.Title)
		}
		for _, f := range r.Remarks {
			said = append(said, f.Title)
		}
		if skew := sectiontest.FindingOf(r, "comm_skew"); skew == nil != (c.skew == "") || skew != nil && skew.Title != c.skew ||
			!slices.Contains(said, c.say) {
			t.Errorf("%v: %q", c.decode, said)
		}
	}
}

func decodeAndPrefill(decode, prefill [2]int64) *tracetest.Builder {
	const us = sectiontest.Us
	b := tracetest.New()
	threads := []*tracetest.Thread{b.Process(10, "p").Thread(10, ""), b.Process(11, "p").Thread(11, "")}
	at := int64(1000 * us)
	step := func(marker string, compute [2]int64) {
		met := at + max(compute[0], compute[1])*us
		for d, th := range threads {
			place := tracetest.Place{Device: int64(d)}
			th.Range(marker, at-10*us, at)
			th.Launch("gemm", at-9*us, at-8*us, tracetest.Kernel{Place: place, Start: at, End: at + compute[d]*us})
			th.Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", at-7*us, at-6*us,
				tracetest.Kernel{Place: place, Start: at + compute[d]*us, End: met + 100*us})
		}
		at = met + 300*us
	}
	for range 24 {
		step("execute_context_0(0)_generation_8(8)", decode)
	}
	for range 4 {
		step("execute_context_1(512)_generation_0(0)", prefill)
	}
	return b
}
