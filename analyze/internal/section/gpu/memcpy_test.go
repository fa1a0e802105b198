package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const copyTable = "CUPTI_ACTIVITY_KIND_MEMCPY"

// TestMemcpyTiny: 4 MiB up from pinned memory in 40 µs, 1 KiB down to pageable memory in 10 µs, a memset of 4096 bytes
// in 10 µs.
func TestMemcpyTiny(t *testing.T) {
	res := sectiontest.Analyse(t, tracetest.Tiny(), analyze.Options{})
	r := res.Report
	sectiontest.Metric(t, r, 2, "memcpy.count")
	sectiontest.Metric(t, r, 50*sectiontest.Us, "memcpy.time")
	sectiontest.Metric(t, r, 4<<20+1024, "memcpy.bytes")
	for _, l := range [][]string{{"direction", "HtoD"}, {"direction", "HtoD", "kind", "pinned"}} {
		sectiontest.Metric(t, r, 1, "memcpy.count", l...)
		sectiontest.Metric(t, r, 40*sectiontest.Us, "memcpy.time", l...)
		sectiontest.Metric(t, r, 4<<20, "memcpy.bytes", l...)
		sectiontest.Metric(t, r, 104.8576e9, "memcpy.throughput", l...) // 4 MiB in 40 µs
	}
	sectiontest.Metric(t, r, 1024, "memcpy.bytes", "direction", "DtoH", "kind", "pageable")
	sectiontest.Metric(t, r, 102.4e6, "memcpy.throughput", "direction", "DtoH") // 1 KiB in 10 µs
	sectiontest.Metric(t, r, 1024, "memcpy.bytes", "kind", "pageable")
	sectiontest.Metric(t, r, 10_000, "memcpy.time", "kind", "pageable")
	sectiontest.NoMetric(t, r, "memcpy.time", "direction", "HtoD", "kind", "pageable")
	for _, l := range [][]string{nil, {"kind", "device"}} {
		sectiontest.Metric(t, r, 1, "memset.count", l...)
		sectiontest.Metric(t, r, 10*sectiontest.Us, "memset.time", l...)
		sectiontest.Metric(t, r, 4096, "memset.bytes", l...)
	}
	sectiontest.Metric(t, r, 1, "memcpy.tiny_count")
	sectiontest.Metric(t, r, 0, "memcpy.tiny_count", "direction", "HtoD")
	sectiontest.Metric(t, r, 1, "memcpy.tiny_count", "direction", "DtoH")
	sectiontest.Metric(t, r, 0, "memcpy.sync_count")
	sectiontest.Metric(t, r, 1, "memcpy.rule_count", "rule", "async_pageable")
	sectiontest.Metric(t, r, 5*sectiontest.Us, "memcpy.rule_time", "rule", "async_pageable") // the call 800-805
	sectiontest.Metric(t, r, 0, "memcpy.rule_count", "rule", "sync_copy")
	sectiontest.Metric(t, r, 0, "memcpy.rule_count", "rule", "sync_memset")
	if f := sectiontest.FindingOf(r, "async_pageable"); f == nil || f.Severity != sectiontest.Remark {
		t.Errorf("async_pageable: %+v, want a remark: 5 of 1000 µs, of a small copy", f)
	}

	var stats *report.Table
	for i := range res.Details {
		if res.Details[i].File == "memcpy_stats.csv" {
			stats = &res.Details[i]
		}
	}
	if stats == nil {
		t.Fatal("no memcpy_stats.csv")
	}
	var names []string
	for _, c := range stats.Columns[:4] {
		name := c.ID
		if len(c.CSV) > 0 {
			name = c.CSV[0].Name
		}
		names = append(names, name)
	}
	if got := strings.Join(names, ","); got != "duration_us,bytes,bandwidth_gbps,direction" { // as profilemate documents it
		t.Errorf("memcpy_stats.csv begins with %s", got)
	}
	if row := stats.Rows[0]; len(stats.Rows) != 2 || !row[0].Equal(report.I(40*sectiontest.Us)) || !row[1].Equal(report.I(4<<20)) || !row[2].Equal(report.F(104.8576e9)) || !row[3].Equal(report.S("HtoD")) {
		t.Errorf("memcpy_stats.csv: %v", stats.Rows)
	}
}

// TestMemcpyDirections has every direction and the side whose memory counts; copies that are odd in some way.
func TestMemcpyDirections(t *testing.T) {
	b := tracetest.New()
	p := b.Process(100, "python")
	at := int64(0)
	add := func(kind tracetest.CopyKind, src, dst tracetest.MemKind, start, end int64) {
		b.Memcpy(tracetest.Memcpy{Place: tracetest.Place{Process: p}, Start: at + start, End: at + end, Bytes: 1000, Kind: kind, Src: src, Dst: dst})
		at += 100
	}
	const dev, pinned, pageable, managed = tracetest.DeviceMemory, tracetest.Pinned, tracetest.Pageable, tracetest.Managed
	add(tracetest.HtoD, pageable, dev, 0, 10)
	add(tracetest.DtoH, dev, pinned, 0, 10)
	add(tracetest.DtoD, dev, dev, 0, 10)
	add(tracetest.DtoD, managed, dev, 0, 10)
	add(tracetest.PtoP, dev, dev, 0, 10)
	add(tracetest.HtoH, pinned, pageable, 0, 10)
	add(11, managed, managed, 0, 10)
	add(42, 9, 9, 0, 10) // numbers no version knows
	add(tracetest.PtoP, dev, managed, 0, 0)
	add(tracetest.PtoP, dev, dev, 10, 0) // ends before it starts: not counted
	b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: p}, Name: "gemm", Start: 0, End: 2000})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 9, "memcpy.count")
	sectiontest.Metric(t, r, 80, "memcpy.time")
	for _, l := range [][2]string{{"HtoD", "pageable"}, {"DtoH", "pinned"}, {"DtoD", "device"}, {"DtoD", "managed"}, {"PtoP", "device"}, {"HtoH", "pageable"}, {"UVM_HtoD", "managed"}, {"unknown", "unknown"}} {
		sectiontest.Metric(t, r, 10, "memcpy.time", "direction", l[0], "kind", l[1])
		sectiontest.Metric(t, r, 100e9, "memcpy.throughput", "direction", l[0], "kind", l[1]) // 1000 bytes in 10 ns
	}
	sectiontest.Metric(t, r, 2, "memcpy.count", "direction", "DtoD")
	sectiontest.Metric(t, r, 2, "memcpy.count", "direction", "PtoP")
	sectiontest.Metric(t, r, 200e9, "memcpy.throughput", "direction", "PtoP") // 2000 bytes in 10 ns: bytes over time, not a mean of rates
	if m := r.Find("memcpy.throughput", report.Labels{"direction": "PtoP", "kind": "managed"}); m == nil || m.Value != nil {
		t.Errorf("throughput of a copy without duration: %+v, want null", m)
	}
}

// TestCopyRules has what nsys's expert rules mark and what they leave out.
func TestCopyRules(t *testing.T) {
	b := tracetest.New()
	p := b.Process(100, "python")
	th := p.Thread(100, "")
	at := int64(0)
	th.Range("load", 0, 200*sectiontest.Us)
	call := func(name string) tracetest.Place {
		at += 10 * sectiontest.Us
		return tracetest.Place{Process: p, Correlation: th.Call(name, at, at+4*sectiontest.Us)}
	}
	memcpy := func(name string, kind tracetest.CopyKind, bytes int64, src, dst tracetest.MemKind) {
		place := call(name)
		b.Memcpy(tracetest.Memcpy{Place: place, Start: at + 1*sectiontest.Us, End: at + 3*sectiontest.Us, Bytes: bytes, Kind: kind, Src: src, Dst: dst})
	}
	memset := func(name string, kind tracetest.MemKind) {
		place := call(name)
		b.Memset(tracetest.Memset{Place: place, Start: at + 1*sectiontest.Us, End: at + 3*sectiontest.Us, Bytes: 10, Set: tracetest.Row{"memKind": tracetest.Int(int64(kind))}})
	}
	const dev, pinned, pageable, managed = tracetest.DeviceMemory, tracetest.Pinned, tracetest.Pageable, tracetest.Managed
	memcpy("cudaMemcpy_v3020", tracetest.HtoD, 64_000, pageable, dev)   // small upload: left out
	memcpy("cudaMemcpy_v3020", tracetest.HtoD, 64_001, pageable, dev)   // marked
	memcpy("cudaMemcpy_v3020", tracetest.DtoH, 4, dev, pageable)        // marked, whatever its size
	memcpy("cudaMemcpy_v3020", tracetest.DtoH, 4, dev, pageable)        // marked
	memcpy("cuMemcpyDtoD_v2", tracetest.DtoD, 1<<20, dev, dev)          // same device: left out
	memcpy("cudaMemcpyPeer_v4000", tracetest.PtoP, 1<<20, dev, dev)     // marked
	memcpy("cudaMemcpyAsync_v3020", tracetest.HtoD, 8, pageable, dev)   // marked as asynchronous
	memcpy("cudaMemcpyAsync_v3020", tracetest.HtoD, 8, pinned, dev)     // pinned: left out
	memcpy("cuMemcpyDtoHAsync_v2", tracetest.DtoH, 8, dev, pageable)    // marked as asynchronous
	memset("cudaMemset_v3020", dev)                                     // device: left out
	memset("cudaMemset_v3020", pinned)                                  // marked
	memset("cudaMemset_v3020", managed)                                 // marked
	memset("cudaMemsetAsync_v3020", pinned)                             // asynchronous: left out
	th.Call("cudaMemcpy_v3020", 150*sectiontest.Us, 160*sectiontest.Us) // no copy in the capture: counted as a call
	b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: p}, Name: "gemm", Start: 0, End: 10 * sectiontest.Us})
	b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: p}, Name: "gemm", Start: 190 * sectiontest.Us, End: 200 * sectiontest.Us})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 4, "memcpy.rule_count", "rule", "sync_copy")
	sectiontest.Metric(t, r, 16*sectiontest.Us, "memcpy.rule_time", "rule", "sync_copy")
	sectiontest.Metric(t, r, 2, "memcpy.rule_count", "rule", "async_pageable")
	sectiontest.Metric(t, r, 8*sectiontest.Us, "memcpy.rule_time", "rule", "async_pageable")
	sectiontest.Metric(t, r, 2, "memcpy.rule_count", "rule", "sync_memset")
	sectiontest.Metric(t, r, 8*sectiontest.Us, "memcpy.rule_time", "rule", "sync_memset")
	sectiontest.Metric(t, r, 7, "memcpy.sync_count")
	sectiontest.Metric(t, r, 34*sectiontest.Us, "memcpy.sync_time") // 6 of 4, 1 of 10
	sectiontest.Metric(t, r, 5, "memcpy.sync_count", "api", "cudaMemcpy")
	sectiontest.Metric(t, r, 26*sectiontest.Us, "memcpy.sync_time", "api", "cudaMemcpy")
	sectiontest.Metric(t, r, 1, "memset.count", "kind", "managed")
	sectiontest.Metric(t, r, 2, "memset.count", "kind", "pinned")
	for id, want := range map[string]report.Severity{"sync_copy": report.Medium, "async_pageable": sectiontest.Remark, "sync_memset": sectiontest.Remark} {
		if f := sectiontest.FindingOf(r, id); f == nil || f.Severity != want { // 16, 8 and 8 of 200 µs
			t.Errorf("%s: %+v, want it %s", id, f, want)
		}
	}
	rules := sectiontest.FindTable(t, r, "memcpy", "copy_rules")
	if first := rules.Rows[0]; len(rules.Rows) != 7 || !first[1].Equal(report.S("cudaMemcpy")) || !first[2].Equal(report.S("DtoH")) || !first[5].Equal(report.S("load")) || !first[7].Equal(report.I(2)) || !first[8].Equal(report.I(8*sectiontest.Us)) {
		t.Errorf("rules: %v, want the two downloads first of seven places", rules.Rows)
	}
	calls := sectiontest.FindTable(t, r, "memcpy", "sync_copies").Rows
	if len(calls) != 5 || !calls[0][1].IsNull() || !calls[0][4].Equal(report.I(10*sectiontest.Us)) {
		t.Errorf("synchronous calls: %v, want the one without a copy first of five", calls)
	}
}

func TestTinyCopies(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	for i := range int64(150) {
		at := i * 10 * sectiontest.Us
		th.Memcpy(at, at+2*sectiontest.Us, tracetest.Memcpy{Start: at + 3*sectiontest.Us, End: at + 4*sectiontest.Us, Bytes: 4, Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pinned})
		if i < 99 {
			th.Memcpy(at+4*sectiontest.Us, at+5*sectiontest.Us, tracetest.Memcpy{Start: at + 5*sectiontest.Us, End: at + 6*sectiontest.Us, Bytes: 4096, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
		}
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 150, "memcpy.tiny_count", "direction", "DtoH")
	sectiontest.Metric(t, r, 99, "memcpy.tiny_count", "direction", "HtoD")
	sectiontest.Metric(t, r, 249, "memcpy.tiny_count")
	if f := sectiontest.FindingOf(r, "tiny_copies"); f == nil || len(f.Evidence) != 2 || f.Evidence[0].Labels["direction"] != "DtoH" {
		t.Errorf("tiny_copies: %+v, want it for downloads alone", f)
	}
}

func TestMemcpyWithoutTables(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutColumn(copyTable, "srcKind"), tracetest.WithoutColumn(copyTable, "dstKind")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 40*sectiontest.Us, "memcpy.time", "direction", "HtoD", "kind", "unknown")
	if s := sectiontest.SectionOf(t, r, "memcpy"); s.Status != report.Partial {
		t.Errorf("without kinds of memory: %s", s.Status)
	}
	sectiontest.Metric(t, r, 0, "memcpy.rule_count", "rule", "sync_copy")
	sectiontest.NoMetric(t, r, "memcpy.rule_count", "rule", "async_pageable") // not known
	r = sectiontest.Analyse(t, tracetest.Tiny(tracetest.WithoutTable(sectiontest.RuntimeTable)), analyze.Options{}).Report
	sectiontest.Metric(t, r, 40*sectiontest.Us, "memcpy.time", "direction", "HtoD")
	sectiontest.NoMetric(t, r, "memcpy.sync_count")
	sectiontest.NoMetric(t, r, "memcpy.rule_count", "rule", "sync_copy")
	for _, c := range []struct {
		b    *tracetest.Builder
		want report.Status
	}{
		{tracetest.Tiny(tracetest.WithoutTable(copyTable), tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_MEMSET")), report.Unavailable}, // calls, but no copies
		{tracetest.TwoProcs(), report.NotApplicable}, // neither
		{tracetest.TwoProcs(tracetest.WithoutTable(sectiontest.RuntimeTable)), report.Unavailable},
	} {
		if s := sectiontest.SectionOf(t, sectiontest.Analyse(t, c.b, analyze.Options{}).Report, "memcpy"); s.Status != c.want {
			t.Errorf("%s (%s), want %s", s.Status, s.Reason, c.want)
		}
	}
	r = sectiontest.ReportOf(t, "../../../../testdata/serving_graph.sqlite")
	if s := sectiontest.SectionOf(t, r, "memcpy"); s.Status != report.Partial || !strings.Contains(s.Reason, "--cuda-graph-trace=graph") {
		t.Errorf("with graphs traced as a whole: %s (%s)", s.Status, s.Reason)
	}
}

// operations are NVIDIA's names of our directions.
var operations = map[string]string{"Host-to-Device": "HtoD", "Device-to-Host": "DtoH", "Device-to-Device": "DtoD", "Peer-to-Peer": "PtoP", "Host-to-Host": "HtoH"}

// TestMemcpyOracle holds copies and memsets against NVIDIA's summaries by time and by size.
func TestMemcpyOracle(t *testing.T) {
	find := func(t *testing.T, r *report.Report, operation, what string) *report.Metric {
		t.Helper()
		name := strings.TrimSuffix(strings.TrimPrefix(operation, "[CUDA "), "]")
		prefix, labels := "memset", report.Labels{}
		if direction, ok := strings.CutPrefix(name, "memcpy "); ok {
			prefix, labels = "memcpy", report.Labels{"direction": operations[direction]}
		}
		m := r.Find(prefix+what, labels)
		if m == nil {
			t.Fatalf("%s: no %s%s", operation, prefix, what)
		}
		return m
	}
	sectiontest.EachOracle(t, "cuda_gpu_mem_time_sum", func(t *testing.T, r *report.Report, rows []sectiontest.OracleRow) {
		for _, row := range rows {
			m := find(t, r, row.Text("Operation"), ".time")
			if *m.Value != row.Num("Total Time (ns)") || m.N != int64(row.Num("Count")) {
				t.Errorf("%s: %v in %d, NVIDIA's %v in %v", row.Text("Operation"), *m.Value, m.N, row.Num("Total Time (ns)"), row.Num("Count"))
			}
			row.Summary(t, row.Text("Operation"), m.Summary, " (ns)", 1, 0.051)
		}
	})
	sectiontest.EachOracle(t, "cuda_gpu_mem_size_sum", func(t *testing.T, r *report.Report, rows []sectiontest.OracleRow) {
		for _, row := range rows {
			m := find(t, r, row.Text("Operation"), ".bytes")
			if !sectiontest.Near(*m.Value/1e6, row.Num("Total (MB)"), 0.00051) || m.N != int64(row.Num("Count")) {
				t.Errorf("%s: %v in %d, NVIDIA's %v MB in %v", row.Text("Operation"), *m.Value, m.N, row.Num("Total (MB)"), row.Num("Count"))
			}
			row.Summary(t, row.Text("Operation"), m.Summary, " (MB)", 1e6, 0.00051)
		}
	})
}

// Ten steps of 1 ms: the GPU works for 590 µs, while the host waits to read 4 bytes back (a copy that is called at 20 and
// returns at 700, and a synchronisation to 800), and launches the next step at 1000, which begins at 1010. The GPU copies for
// 50 and idles for 150 of the call and its wait. The read-back also costs the idle time that follows: the 210 µs to the next
// kernel. 180 µs of it are in the sampler, 160 in a call there. A copy of 1 kB is not a read-back. Without the wait
// the host would be ahead of the GPU.
func TestReadBacks(t *testing.T) {
	const ms = 1000 * sectiontest.Us
	for bytes, want := range map[int64]int64{4: 10, 1024: 0} {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "")
		for i := range int64(11) {
			at := i * ms
			th.Range("optimizer", at+15*sectiontest.Us, at+805*sectiontest.Us)
			th.Range("sampler", at+810*sectiontest.Us, at+990*sectiontest.Us)
			th.Call("cuModuleLoadData", at+820*sectiontest.Us, at+980*sectiontest.Us)
			th.Launch("gemm", at, at+10*sectiontest.Us, tracetest.Kernel{Start: at + 10*sectiontest.Us, End: at + 600*sectiontest.Us})
			th.Memcpy(at+20*sectiontest.Us, at+700*sectiontest.Us, tracetest.Memcpy{Start: at + 620*sectiontest.Us, End: at + 670*sectiontest.Us, Bytes: bytes, Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
			th.StreamSynchronize(at+700*sectiontest.Us, at+800*sectiontest.Us, 0, 7)
		}
		r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
		f := sectiontest.FindingOf(r, "read_backs")
		if want == 0 {
			if f != nil {
				t.Errorf("copies of %d B: %+v", bytes, f)
			}
			continue
		}
		sectiontest.Metric(t, r, float64(want), "memcpy.read_back_count")
		sectiontest.Metric(t, r, float64(want)*360*sectiontest.Us, "memcpy.read_back_idle") // 600 to 620, 670 to 1010
		sectiontest.Metric(t, r, 1, "unit.read_back_count")
		sectiontest.Metric(t, r, 360*sectiontest.Us, "unit.read_back_idle")
		if f == nil || f.Place != "optimizer" || f.Severity != report.High ||
			!strings.Contains(f.Title, "in `optimizer`, 1 per step") ||
			!strings.HasSuffix(f.Title, "360 µs of each step, "+
				"160 µs of it in `cuModuleLoadData`, 180 µs of it inside `sampler`") {
			t.Errorf("%+v", f)
		}
	}
}

// A step of 1 ms is idle for 300 µs around a read-back, and for 200 between two other kernels: the finding has both.
func TestIdleBesidesReadBacks(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "gpu_idle", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+10*us, tracetest.Kernel{Start: at + 10*us, End: at + 210*us})
		th.Launch("late", at+400*us, at+410*us, tracetest.Kernel{Start: at + 410*us, End: at + 700*us})
		th.Memcpy(at+420*us, at+760*us, tracetest.Memcpy{Start: at + 710*us, End: at + 720*us, Bytes: 4,
			Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
	})
	if want := "GPU idle 50.0 %: 30.0 % after read-backs; in the other 20.0 %, the main thread does not launch, and no reason was recorded"; f == nil || f.Title != want {
		t.Errorf("%+v", f)
	}
}

// In steps of 1 ms the GPU works for 600 µs, which the call that copies 4 bytes to pageable memory waits for, with no
// other call. Without that wait the host would be ahead: the GPU would run dry no more for 1 + 395 µs.
func TestReadBacksThatWaitInTheCopy(t *testing.T) {
	const us = sectiontest.Us
	b := sectiontest.Steps(20, func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 605*us})
		th.Memcpy(at+10*us, at+620*us, tracetest.Memcpy{Start: at + 606*us, End: at + 610*us, Bytes: 4,
			Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
	})
	f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report, "read_backs")
	if f == nil || f.Worth == nil || !f.Worth.Replayed || f.Worth.Share() < 0.38 || f.Worth.Share() > 0.396 {
		t.Fatalf("%+v", f)
	}
}

// In steps of 1 ms the GPU works for 300 µs and copies 4 bytes by 310, and the copy's call lasts to 990 for a reason
// of its own. A replay without the wait for the value gains nothing, so the finding on idle time has the 695 + 1 µs.
func TestIdleOfReadBacksThatDoNotWait(t *testing.T) {
	const us = sectiontest.Us
	b := sectiontest.Steps(20, func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 305*us})
		th.Memcpy(at+10*us, at+990*us, tracetest.Memcpy{Start: at + 306*us, End: at + 310*us, Bytes: 4,
			Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
	})
	r := sectiontest.Analyse(t, b, analyze.Options{Unit: "kernel:gemm"}).Report
	want := "GPU idle 69.6 %: the main thread is in `cudaMemcpyAsync`"
	if len(r.Findings) != 1 || r.Findings[0].Title != want || r.Findings[0].Severity != report.High {
		t.Errorf("%+v", r.Findings)
	}
}
