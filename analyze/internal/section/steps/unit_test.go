package steps_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

const unitUS = 1_000 // ns

const unitNCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)"

// unitSteps is five steps of 200 µs under torch.profiler's markers, on one device, at 1000 + 200·i. In µs from there:
//
//	copy     0- 10   launched [-30,-28]
//	gemm    10- 60   launched [-26,-24]
//	softmax 50- 80   launched [-22,-20], on stream 9: 10 under the gemm
//	nccl    70-110   launched [-18,-16], on stream 21: 10 under the softmax, 30 exposed
//	gemm   130-170   launched [125,128]: idle 110-130 is 15 of host, 3 of launch, 2 of dependency
//	idle   170-200   the next step's copy is launched at [170,172]: launch 2, dependency 28
//
// cudaStreamSynchronize [100,120] makes 10 (110-120) of the host's 15 sync. So, of 200: compute 50+20+40 = 110 (gemm 50,
// softmax 20 alone of 30, gemm 40), exposed communication 30, exposed copy 10, idle 50 = sync 10 + host 5 + launch 5 +
// dependency 30. Step 3 is 40 longer: its last idle part is 70, host 40, launch 2 and dependency 28.
func unitSteps(opts ...tracetest.Option) *tracetest.Builder {
	b := tracetest.New(opts...)
	b.GPU(tracetest.GPU{})
	th := b.Process(100, "python").Thread(100, "python")
	at := int64(1000 * unitUS)
	for i := range 5 {
		t := func(us int64) int64 { return at + us*unitUS }
		launch := func(name string, from, to, start, end, stream int64) {
			th.Launch(name, t(from), t(to), tracetest.Kernel{Place: tracetest.Place{Stream: stream}, Start: t(start), End: t(end)})
		}
		th.Range("ProfilerStep#"+string(rune('0'+i)), t(-31), t(160))
		th.Memcpy(t(-30), t(-28), tracetest.Memcpy{Start: t(0), End: t(10), Bytes: 4096, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
		launch("gemm", -26, -24, 10, 60, 7)
		launch("softmax", -22, -20, 50, 80, 9)
		launch(unitNCCL, -18, -16, 70, 110, 21)
		th.StreamSynchronize(t(100), t(120), 0, 9)
		launch("gemm", 125, 128, 130, 170, 7)
		at += 200 * unitUS
		if i == 3 {
			at += 40 * unitUS
		}
	}
	return b
}

func unitMean(tb testing.TB, r *report.Report, want float64, id string, pairs ...string) {
	tb.Helper()
	l := report.Labels{}
	for i := 0; i+1 < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	m := r.Find(id, l)
	if m == nil || m.Summary == nil {
		tb.Errorf("%s{%s}: missing", id, l)
		return
	}
	if math.Abs(m.Summary.Mean-want) > 1e-6 {
		tb.Errorf("mean of %s{%s} = %v, want %v", id, l, m.Summary.Mean, want)
	}
}

func TestUnit(t *testing.T) {
	r := sectiontest.Analyse(t, unitSteps(), analyze.Options{}).Report
	if r.Unit.Kind != "nvtx" || r.Unit.Name != "ProfilerStep#N" || len(r.Unit.Groups) != 1 {
		t.Fatalf("unit %+v", r.Unit)
	}
	g := r.Unit.Groups[0]
	if g.Phase != "step" || g.Batch != nil || g.Tokens != nil || g.Kernels != 4 || g.Count != 4 || len(g.Signature) != 16 {
		t.Errorf("group %+v", g)
	}
	// The last step is cut: nothing closes it, and steps leave idle time before the next.
	if r.Unit.Trimmed.Cut != 1 || r.Unit.Trimmed.Warmup != 0 || r.Unit.Trimmed.Other != 0 || r.Unit.Trimmed.Rule == "" {
		t.Errorf("trimmed %+v", r.Unit.Trimmed)
	}
	// Four units of 200, 200, 200, 240: median 200, mean 210.
	for _, labels := range [][]string{nil, {"device", "0"}, {"phase", "step"}} {
		sectiontest.Metric(t, r, 4, "unit.count", labels...)
		sectiontest.Metric(t, r, 200_000, "unit.time", labels...)
		unitMean(t, r, 210_000, "unit.time", labels...)
		sectiontest.Metric(t, r, 150_000, "unit.gpu_busy", labels...)
		sectiontest.Metric(t, r, 50_000, "unit.gpu_idle", labels...)
		unitMean(t, r, 60_000, "unit.gpu_idle", labels...)
		sectiontest.Metric(t, r, 4, "unit.launches", labels...) // the copy is no launch
		sectiontest.Metric(t, r, 4, "unit.kernels", labels...)
		sectiontest.Metric(t, r, 110_000, "unit.compute_time", labels...)
		sectiontest.Metric(t, r, 30_000, "unit.exposed_comm_time", labels...)
		sectiontest.Metric(t, r, 10_000, "unit.exposed_copy_time", labels...)
		cause := func(name string) []string { return append(slices.Clone(labels), "cause", name) }
		sectiontest.Metric(t, r, 10_000, "unit.idle_cause_time", cause("sync")...)
		sectiontest.Metric(t, r, 5_000, "unit.idle_cause_time", cause("host")...)
		sectiontest.Metric(t, r, 5_000, "unit.idle_cause_time", cause("launch")...)
		sectiontest.Metric(t, r, 30_000, "unit.idle_cause_time", cause("dependency")...)
		sectiontest.Metric(t, r, 0, "unit.idle_cause_time", cause("unknown")...)
	}
	// In step 3 the next copy is called 40 later, at 210-212: 40 more of host, not of dependency.
	unitMean(t, r, 15_000, "unit.idle_cause_time", "cause", "host") // 5, 5, 5, 45

	sectiontest.Metric(t, r, 90_000, "kernel.time_per_unit", "kernel", "gemm") // 50 + 40
	sectiontest.Metric(t, r, 2, "kernel.count_per_unit", "kernel", "gemm")
	sectiontest.Metric(t, r, 90_000, "kernel.exclusive_time_per_unit", "kernel", "gemm")
	sectiontest.Metric(t, r, 30_000, "kernel.time_per_unit", "kernel", "softmax")
	sectiontest.Metric(t, r, 20_000, "kernel.exclusive_time_per_unit", "kernel", "softmax")
	sectiontest.Metric(t, r, 40_000, "kernel.time_per_unit", "kernel", unitNCCL)
	sectiontest.Metric(t, r, 30_000, "kernel.exclusive_time_per_unit", "kernel", unitNCCL)
	sectiontest.Metric(t, r, 40_000, "kernel.time_per_unit", "category", "comm")
	sectiontest.Metric(t, r, 1, "kernel.count_per_unit", "category", "comm")
	sectiontest.Metric(t, r, 30_000, "kernel.exclusive_time_per_unit", "category", "comm")
	sectiontest.Metric(t, r, 160_000, "kernel.time_per_unit") // 90 + 30 + 40
	sectiontest.Metric(t, r, 160_000, "kernel.time_per_unit", "phase", "step")
	sectiontest.Metric(t, r, 4, "kernel.count_per_unit", "phase", "step")
	sectiontest.Metric(t, r, 140_000, "kernel.exclusive_time_per_unit", "phase", "step") // compute 110 and exposed communication 30
	sectiontest.Metric(t, r, 90_000, "kernel.time_per_unit", "kernel", "gemm", "phase", "step")
	sectiontest.Metric(t, r, 40_000, "kernel.time_per_unit", "category", "comm", "phase", "step")

	// From marker to marker: launches of 2, 2, 2 and 3 µs, a copy's call of 2, a sync of 20.
	sectiontest.Metric(t, r, 9_000, "api.time_per_unit", "api", "cudaLaunchKernel", "phase", "step")
	sectiontest.Metric(t, r, 9_000, "api.time_per_unit", "api", "cudaLaunchKernel")
	sectiontest.Metric(t, r, 4, "api.count_per_unit", "api", "cudaLaunchKernel")
	sectiontest.Metric(t, r, 2_000, "api.time_per_unit", "api", "cudaMemcpyAsync")
	sectiontest.Metric(t, r, 20_000, "api.time_per_unit", "api", "cudaStreamSynchronize")
	sectiontest.Metric(t, r, 1, "api.count_per_unit", "api", "cudaStreamSynchronize")

	// One copy of 4096 bytes from pinned memory in each step.
	for _, labels := range [][]string{{"direction", "HtoD", "kind", "pinned"}, {"direction", "HtoD", "kind", "pinned", "phase", "step"}} {
		sectiontest.Metric(t, r, 1, "memcpy.count_per_unit", labels...)
		sectiontest.Metric(t, r, 4096, "memcpy.bytes_per_unit", labels...)
	}
}

// closes checks that a unit's time is accounted for, to the nanosecond.
func closes(t *testing.T, r *report.Report) {
	t.Helper()
	mean := func(id string, l report.Labels) float64 {
		if m := r.Find(id, l); m != nil && m.Summary != nil {
			return m.Summary.Mean
		}
		t.Errorf("no %s{%s}", id, l)
		return 0
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if m.ID != "unit.time" {
			continue
		}
		sum := mean("unit.compute_time", m.Labels) + mean("unit.exposed_comm_time", m.Labels) + mean("unit.exposed_copy_time", m.Labels)
		idle := 0.0
		for _, cause := range []string{"sync", "host", "launch", "dependency", "unknown"} {
			l := report.Labels{"cause": cause}
			for k, v := range m.Labels {
				l[k] = v
			}
			idle += mean("unit.idle_cause_time", l)
		}
		if math.Abs(sum+idle-m.Summary.Mean) > 0.01 {
			t.Errorf("{%s}: classes sum to %.3f, unit.time is %.3f", m.Labels, sum+idle, m.Summary.Mean)
		}
		if got := mean("unit.gpu_idle", m.Labels); math.Abs(got-idle) > 0.01 {
			t.Errorf("{%s}: causes sum to %.3f, unit.gpu_idle is %.3f", m.Labels, idle, got)
		}
		if got := mean("unit.gpu_busy", m.Labels); math.Abs(got-sum) > 0.01 {
			t.Errorf("{%s}: classes sum to %.3f, unit.gpu_busy is %.3f", m.Labels, sum, got)
		}
		if *m.Value != m.Summary.P50 || m.N != m.Summary.N || float64(m.N) != *r.Find("unit.count", m.Labels).Value {
			t.Errorf("{%s}: value %v, n %d, summary %+v", m.Labels, *m.Value, m.N, *m.Summary)
		}
	}
	var byKernel, byCategory float64
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.ID == "kernel.exclusive_time_per_unit" && len(m.Labels) == 1 {
			switch {
			case m.Labels["kernel"] != "":
				byKernel += m.Summary.Mean
			case m.Labels["category"] != "":
				byCategory += m.Summary.Mean
			}
		}
	}
	want := mean("unit.compute_time", nil) + mean("unit.exposed_comm_time", nil)
	if math.Abs(byCategory-want) > 0.01 || byKernel > want+0.01 || byKernel < 0.98*want { // the report may leave small kernels out
		t.Errorf("exclusive time: kernels %.3f, categories %.3f, want %.3f", byKernel, byCategory, want)
	}
}

func TestUnitTimeIsAccountedFor(t *testing.T) {
	for name, b := range map[string]*tracetest.Builder{
		"steps": unitSteps(), "serving": tracetest.Serving(), "graph mode": tracetest.ServingGraphMode(), "hidden": tracetest.GraphHidden(),
		"without markers": tracetest.Serving(tracetest.WithoutTable("NVTX_EVENTS")),
	} {
		t.Run(name, func(t *testing.T) { closes(t, sectiontest.Analyse(t, b, analyze.Options{}).Report) })
	}
	for _, f := range longtest.Captures(t) {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if r := sectiontest.ReportOf(t, f); r.Unit.Kind != "none" {
				closes(t, r)
			} else if r.Find("unit.time", nil) != nil || r.Unit.Why == "" {
				t.Error("a unit's time without a unit")
			}
		})
	}
}

// The pair of which totals say the opposite: blocks take 13.8 % longer, their compute as long as before.
func TestUnitOfMFU(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no shared/traces: the real traces are not part of the project")
	}
	before := sectiontest.ReportOf(t, filepath.Join(dir, "nsysai_mfu_2gpu_before.sqlite"))
	after := sectiontest.AnalyseFile(t, filepath.Join(dir, "nsysai_mfu_2gpu_after.sqlite"), analyze.Options{}).Report
	for _, device := range []string{"0", "1"} {
		l := report.Labels{"device": device}
		mean := func(r *report.Report, id string) float64 { return r.Find(id, l).Summary.Mean / 1e6 }
		a, b := mean(before, "unit.time"), mean(after, "unit.time")
		if math.Abs(a-17.53) > 0.005 || math.Abs(b-19.95) > 0.005 || math.Abs(b/a-1.138) > 0.001 {
			t.Errorf("device %s: %.3f and %.3f ms, want 17.53 and 19.95", device, a, b)
		}
		if x := mean(after, "unit.compute_time") / mean(before, "unit.compute_time"); x < 1.0 || x > 1.006 {
			t.Errorf("device %s: compute changed by %.4f", device, x)
		}
		for _, r := range []*report.Report{before, after} {
			m := r.Find("unit.kernels", l)
			if m.Summary.Min != 119 || m.Summary.Max != 119 || *r.Find("unit.launches", l).Value != 119 {
				t.Errorf("device %s: kernels %+v", device, *m.Summary)
			}
		}
	}
	idle := func(r *report.Report, device string) float64 {
		return r.Find("unit.gpu_idle", report.Labels{"device": device}).Summary.Mean / 1e6
	}
	for device, want := range map[string]float64{"0": 2.7, "1": 1.3} {
		if got := idle(after, device) - idle(before, device); math.Abs(got-want) > 0.06 {
			t.Errorf("device %s: idle changed by %.2f ms, want %.1f", device, got, want)
		}
	}
	if before.Unit.Groups[0].Signature != after.Unit.Groups[0].Signature || before.Unit.Name != after.Unit.Name {
		t.Error("the two captures are not of the same unit")
	}
}

func TestUnitWindows(t *testing.T) {
	b := unitSteps()
	path := b.WriteTB(t)
	// Steps start at 1000, 1200, 1400, 1600 (240 long) and 1840 µs.
	r := sectiontest.AnalyseFile(t, path, analyze.Options{Window: analyze.WindowOptions{Steady: true}}).Report
	if r.Window.Mode != "steady" || r.Window.Start != 1000*unitUS || r.Window.End != 1840*unitUS {
		t.Errorf("window %+v", r.Window)
	}
	sectiontest.Metric(t, r, 4, "unit.count")
	unitMean(t, r, 210_000, "unit.time")

	from, to := 150*time.Microsecond, 500*time.Microsecond // 1150 to 1500: the steps at 1200 and 1400, whole
	r = sectiontest.AnalyseFile(t, path, analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}}).Report
	sectiontest.Metric(t, r, 2, "unit.count")
	unitMean(t, r, 200_000, "unit.time")
	sectiontest.Metric(t, r, 90_000, "kernel.time_per_unit", "kernel", "gemm")

	from, to = 10*time.Microsecond, 20*time.Microsecond // no step starts
	r = sectiontest.AnalyseFile(t, path, analyze.Options{Window: analyze.WindowOptions{From: &from, To: &to}}).Report
	sectiontest.NoMetric(t, r, "unit.time")
	if s := unitSection(t, r); s.Status != report.NotApplicable || s.Reason == "" {
		t.Errorf("section %s: %s", s.Status, s.Reason)
	}
}

func unitSection(tb testing.TB, r *report.Report) *report.Section {
	tb.Helper()
	for i := range r.Sections {
		if r.Sections[i].ID == "unit" {
			return &r.Sections[i]
		}
	}
	tb.Fatal("no section unit")
	return nil
}

func TestUnitByPhase(t *testing.T) {
	r := sectiontest.ReportOf(t, "../../../../testdata/serving.sqlite")
	sectiontest.Metric(t, r, 16, "unit.count", "phase", "decode", "batch", "16")
	sectiontest.Metric(t, r, 4, "unit.count", "phase", "prefill", "batch", "1", "tokens", "512")
	sectiontest.Metric(t, r, 4, "unit.count", "phase", "prefill", "batch", "1", "tokens", "2048")
	sectiontest.Metric(t, r, 4, "unit.count", "phase", "mixed")
	sectiontest.Metric(t, r, 71, "unit.kernels") // a graph of 66, and 5
	sectiontest.Metric(t, r, 6, "unit.launches") // the graph is one launch
	sectiontest.Metric(t, r, 16, "unit.count")   // decode of 32 on the slower device
	sectiontest.Metric(t, r, 16, "unit.count", "phase", "decode")
	sectiontest.Metric(t, r, 1, "api.count_per_unit", "api", "cudaGraphLaunch")
	sectiontest.Metric(t, r, 5, "api.count_per_unit", "api", "cudaLaunchKernel")
	sectiontest.Metric(t, r, 4, "api.count_per_unit", "api", "cudaMemcpyAsync")
	small, large := r.Find("unit.time", report.Labels{"phase": "prefill", "batch": "1", "tokens": "512"}), r.Find("unit.time", report.Labels{"phase": "prefill", "batch": "1", "tokens": "2048"})
	if *large.Value < 2*(*small.Value) {
		t.Errorf("a prefill of 2048 tokens takes %v ns, one of 512 %v", *large.Value, *small.Value)
	}

	whole := sectiontest.ReportOf(t, "../../../../testdata/serving_graph.sqlite")
	sectiontest.Metric(t, whole, 5, "unit.kernels")
	sectiontest.Metric(t, whole, 6, "unit.launches")
	sectiontest.Metric(t, whole, 1, "kernel.count_per_unit", "kernel", "[CUDA graph]")
	sectiontest.Metric(t, whole, 1, "kernel.count_per_unit", "category", "graph")
}

func TestUnitTables(t *testing.T) {
	res := sectiontest.Analyse(t, unitSteps(), analyze.Options{})
	s := unitSection(t, res.Report)
	tables := map[string]*report.Table{}
	for i := range s.Tables {
		tables[s.Tables[i].ID] = &s.Tables[i]
	}
	for _, id := range []string{"units", "unit_groups", "unit_time", "unit_kernels", "unit_api"} {
		if tables[id] == nil {
			t.Fatalf("no table %s", id)
		}
	}
	units := tables["units"]
	if len(units.Rows) != 5 || units.File != "units.csv" {
		t.Fatalf("units: %d rows, file %q", len(units.Rows), units.File)
	}
	states := ""
	for _, row := range units.Rows {
		text, _ := row[column(t, units, "state")].Str()
		states += text + " "
	}
	if states != "kept kept kept kept cut " {
		t.Errorf("states %q", states)
	}
	if v, _ := units.Rows[3][column(t, units, "duration")].Int(); v != 240*unitUS {
		t.Errorf("the fourth step takes %d ns", v)
	}
	sum := 0.0
	for _, row := range tables["unit_time"].Rows {
		v, _ := row[column(t, tables["unit_time"], "time")].Num()
		sum += v
	}
	if math.Abs(sum-210_000) > 1e-6 {
		t.Errorf("classes sum to %v, want 210000", sum)
	}
	kernels := tables["unit_kernels"]
	if n := len(kernels.Rows); n != 3 {
		t.Fatalf("%d kernels", n)
	}
	if name, _ := kernels.Rows[0][0].Str(); name != "gemm" {
		t.Errorf("the first kernel is %s", name)
	}
	if v, _ := kernels.Rows[0][column(t, kernels, "position")].Int(); v != 0 {
		t.Errorf("gemm is at %d", v)
	}
}

func column(tb testing.TB, t *report.Table, id string) int {
	tb.Helper()
	i := slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.ID == id })
	if i < 0 {
		tb.Fatalf("table %s has no column %s", t.ID, id)
	}
	return i
}

// Two thousand units: the report lists the first ones and sums the rest, the CSV file has them all.
func TestManyUnits(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	for i := range int64(2000) {
		at := (100 + 50*i) * unitUS
		th.Launch("a", at-9*unitUS, at-8*unitUS, tracetest.Kernel{Start: at, End: at + 10*unitUS})
		th.Launch("b", at-7*unitUS, at-6*unitUS, tracetest.Kernel{Start: at + 10*unitUS, End: at + 40*unitUS})
	}
	res := sectiontest.Analyse(t, b, analyze.Options{})
	s := unitSection(t, res.Report)
	for i := range s.Tables {
		if u := &s.Tables[i]; u.ID == "units" {
			if len(u.Rows) != 301 || !u.Others || u.File != "" {
				t.Errorf("%d rows, others %v, file %q", len(u.Rows), u.Others, u.File)
			}
			var sum int64
			for _, row := range u.Rows {
				v, _ := row[column(t, u, "busy")].Int()
				sum += v
			}
			if sum != 2000*40*unitUS { // a before the first cut and after the last included
				t.Errorf("busy sums to %d", sum)
			}
		}
	}
	found := false
	for i := range res.Details {
		if d := &res.Details[i]; d.File == "units.csv" {
			found = true
			if len(d.Rows) < 1999 {
				t.Errorf("units.csv has %d rows", len(d.Rows))
			}
		}
	}
	if !found {
		t.Error("no units.csv")
	}
}

func TestUnitOptions(t *testing.T) {
	path := unitSteps().WriteTB(t)
	r := sectiontest.AnalyseFile(t, path, analyze.Options{Unit: "none"}).Report
	if r.Unit.Kind != "none" || !strings.Contains(r.Unit.Why, "--unit none") || len(r.Unit.Groups) != 0 {
		t.Errorf("unit %+v", r.Unit)
	}
	r = sectiontest.AnalyseFile(t, path, analyze.Options{Unit: "kernel:^softmax$"}).Report
	// From softmax to softmax: 1050, 1250, 1450, 1650, 1890.
	if r.Unit.Kind != "kernel" || r.Unit.Name != "^softmax$" {
		t.Errorf("unit %+v", r.Unit)
	}
	sectiontest.Metric(t, r, 4, "unit.count")
	unitMean(t, r, 210_000, "unit.time")
	r = sectiontest.AnalyseFile(t, path, analyze.Options{Unit: "nvtx:^ProfilerStep#[0-2]$"}).Report
	sectiontest.Metric(t, r, 2, "unit.count") // the third is not closed by one of them
	for _, bad := range []string{"nvtx:(", "kernel:", "steps"} {
		if _, err := analyze.Run(t.Context(), path, analyze.Options{Unit: bad}); err == nil || !strings.Contains(err.Error(), "--unit") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := analyze.Run(t.Context(), path, analyze.Options{Unit: "none", Window: analyze.WindowOptions{Steady: true}}); err == nil || !strings.Contains(err.Error(), "--steady") {
		t.Errorf("--steady without a unit: %v", err)
	}
}

// What an export lacks makes a metric absent, not zero.
func TestUnitWithoutColumns(t *testing.T) {
	b := func(opts ...tracetest.Option) *tracetest.Builder {
		b := tracetest.New(opts...)
		th := b.Process(1, "python").Thread(1, "python")
		for i := range int64(40) {
			at := (100 + 50*i) * unitUS
			th.Launch("a", at-9*unitUS, at-8*unitUS, tracetest.Kernel{Start: at, End: at + 10*unitUS})
			th.Launch("b", at-7*unitUS, at-6*unitUS, tracetest.Kernel{Start: at + 10*unitUS, End: at + 40*unitUS})
		}
		return b
	}
	r := sectiontest.Analyse(t, b(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 50_000, "unit.time")
	sectiontest.NoMetric(t, r, "unit.launches")
	sectiontest.Metric(t, r, 10_000, "unit.idle_cause_time", "cause", "unknown")
	sectiontest.NoMetric(t, r, "api.time_per_unit", "api", "cudaLaunchKernel")
	r = sectiontest.Analyse(t, b(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 50_000, "unit.time")
	r = sectiontest.Analyse(t, b(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 50_000, "unit.time")
	sectiontest.Metric(t, r, 2, "unit.launches") // their correlation ids tell
	r = sectiontest.Analyse(t, b(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_KERNEL")), analyze.Options{}).Report
	if s := unitSection(t, r); s.Status != report.Unavailable {
		t.Errorf("without kernels: %s", s.Status)
	}
}
