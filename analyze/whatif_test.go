package analyze_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// engine is a synthetic engine: ranks that run, in each step, a memset, an embedding and layers of a gemm, a norm and an
// all-reduce, and wait for the device at the end of it. A step is from embedding to embedding. Times in ns.
type engine struct {
	gemm, norm, reduce, memset int64
	launch, between            int64 // of a launching call; of host code between calls
	schedule                   int64 // of host code between steps
	sync                       bool
	late                       int64 // by how much rank 1's host code between steps is longer
}

var usualEngine = engine{gemm: 60_000, norm: 15_000, reduce: 30_000, memset: 9_000, launch: 5_000, between: 2_000, schedule: 150_000, sync: true}

const (
	engineSteps, engineLayers = 40, 6
	embedding                 = 8_000
	launchLatency             = 3_000 // from the end of a call to the start on an idle stream
	streamLatency             = 1_000
)

// write runs the engine and returns its capture and the mean time of its steps but the first and the last.
func (e engine) write(t *testing.T) (path string, step float64) {
	t.Helper()
	b := tracetest.New()
	type rank struct {
		th        *tracetest.Thread
		now, free int64
	}
	var ranks [2]rank
	for i := range ranks {
		ranks[i].th = b.Process(int64(10+i), "rank").Thread(int64(10+i), "")
	}
	var starts []int64
	jitter := func(ns, i int64) int64 { return ns + ns*(i*7%11-5)/1000 }
	call := func(r *rank) (from, to int64) {
		from = r.now + e.between
		r.now = from + e.launch
		return from, r.now
	}
	when := func(r *rank, to int64) int64 { return max(to+launchLatency, r.free+streamLatency) }
	run := func(name string, ns int64) {
		for i := range ranks {
			if r := &ranks[i]; ns > 0 {
				from, to := call(r)
				at := when(r, to)
				r.free = at + ns
				r.th.Launch(name, from, to, tracetest.Kernel{Place: tracetest.Place{Device: int64(i)}, Start: at, End: r.free})
			}
		}
	}
	for s := range int64(engineSteps) {
		for i := range ranks {
			r := &ranks[i]
			if e.memset > 0 {
				from, to := call(r)
				at := when(r, to)
				r.free = at + e.memset
				r.th.Memset(from, to, tracetest.Memset{Place: tracetest.Place{Device: int64(i)}, Start: at, End: r.free, Bytes: 1 << 20})
			}
		}
		run("embedding_kernel", embedding)
		starts = append(starts, ranks[1].free-embedding)
		for l := range int64(engineLayers) {
			run("sm90_xmma_gemm_bf16", jitter(e.gemm, s+l))
			run("rms_norm_kernel", jitter(e.norm, s+2*l))
			if e.reduce == 0 {
				continue
			}
			var at, from, to [2]int64
			for i := range ranks {
				from[i], to[i] = call(&ranks[i])
				at[i] = when(&ranks[i], to[i])
			}
			end := max(at[0], at[1]) + jitter(e.reduce, s+3*l)
			for i := range ranks {
				ranks[i].free = end
				ranks[i].th.Launch("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", from[i], to[i], tracetest.Kernel{Place: tracetest.Place{Device: int64(i)}, Start: at[i], End: end})
			}
		}
		for i := range ranks {
			r := &ranks[i]
			if e.sync {
				end := max(r.free, r.now) + 4_000
				r.th.DeviceSynchronize(r.now+500, end, int64(i))
				r.now = end
			}
			r.now += e.schedule + e.late*int64(i)
		}
	}
	n := len(starts)
	return b.WriteTB(t), float64(starts[n-2]-starts[1]) / float64(n-3)
}

func changes(t *testing.T, kindsAndTexts ...string) (list []analyze.Change) {
	t.Helper()
	for i := 0; i < len(kindsAndTexts); i += 2 {
		c, err := analyze.ParseChange(kindsAndTexts[i], kindsAndTexts[i+1])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

// step is the unit of the engine.
var step = analyze.Options{Unit: "kernel:embedding"}

func whatIf(t *testing.T, path string, opt analyze.Options, list ...analyze.Change) *analyze.WhatIfResult {
	t.Helper()
	var scenarios [][]analyze.Change
	if len(list) > 0 {
		scenarios = [][]analyze.Change{list}
	}
	r, err := analyze.WhatIf(context.Background(), path, scenarios, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a replay with a change gives is what the engine takes that was built with the change, within 2 %.
func TestCeilingsOfEnginesWithAKnownAnswer(t *testing.T) {
	hostBound, gpuBound := usualEngine, usualEngine
	hostBound.between, hostBound.gemm, hostBound.norm, hostBound.reduce = 40_000, 20_000, 5_000, 10_000
	gpuBound.schedule, gpuBound.sync = 20_000, false
	late := usualEngine
	late.late = 200_000
	for _, c := range longtest.Some([]struct {
		name    string
		from    engine
		to      func(e *engine)
		changes []string
	}{
		{"nothing", usualEngine, func(*engine) {}, []string{"speedup", "category:gemm=1x"}},
		{"gemm", usualEngine, func(e *engine) { e.gemm /= 2 }, []string{"speedup", "category:gemm=2x"}},
		{"gemm of a busy GPU", gpuBound, func(e *engine) { e.gemm /= 2 }, []string{"speedup", "kernel:*gemm*=2x"}},
		{"gemm of a busy host", hostBound, func(e *engine) { e.gemm /= 4 }, []string{"speedup", "kernel:*gemm*=4x"}},
		{"memset", usualEngine, func(e *engine) { e.memset = 0 }, []string{"remove", "kernel:*memset*"}},
		{"norm", usualEngine, func(e *engine) { e.norm = 0 }, []string{"remove", "kernel:rms_norm*"}},
		{"free host", usualEngine, func(e *engine) { e.between, e.launch, e.schedule = 0, 0, 0 }, []string{"host-free", ""}},
		{"free host, bound by it", hostBound, func(e *engine) { e.between, e.launch, e.schedule = 0, 0, 0 }, []string{"host-free", ""}},
		{"free host of the late rank", late, func(e *engine) { e.between, e.launch, e.schedule, e.late = 0, 0, 0, 0 }, []string{"host-free", ""}},
		{"no wait", usualEngine, func(e *engine) { e.sync = false }, []string{"no-sync", "cudaDeviceSynchronize"}},
		{"launches twice as fast", hostBound, func(e *engine) { e.launch /= 2 }, []string{"speedup", "api:cudaLaunchKernel=2x"}},
		{"gemm and communication", usualEngine, func(e *engine) { e.gemm, e.reduce = e.gemm/2, e.reduce/3 }, []string{"speedup", "category:gemm=2x", "speedup", "category:comm=3x"}},
	}, 7) {
		path, was := c.from.write(t)
		other := c.from
		c.to(&other)
		_, want := other.write(t)
		s := whatIf(t, path, step, changes(t, c.changes...)...).Scenarios[0].Steps[0]
		if math.Abs(s.Time-was) > 0.01*was {
			t.Errorf("%s: a step takes %.0f, the engine %.0f", c.name, s.Time, was)
		}
		if math.Abs(s.Ceiling-want) > 0.02*want {
			t.Errorf("%s: %.0f replayed as %.0f, the engine takes %.0f", c.name, s.Time, s.Ceiling, want)
		}
		if s.Interval == nil || s.Interval[0] > s.Gain+1 || s.Interval[1] < s.Gain-1 || s.N < 30 {
			t.Errorf("%s: gain %.0f, interval %v of %d steps", c.name, s.Gain, s.Interval, s.N)
		}
	}
}

// Communication beside everything else costs nothing as long as there is less of it than of compute, and no step is
// shorter than its communication.
func TestOverlapIsBoundByCommunication(t *testing.T) {
	e := usualEngine
	e.schedule, e.sync, e.between, e.launch = 0, false, 300, 700
	path, _ := e.write(t)
	without := e
	without.reduce = 0
	_, want := without.write(t)
	if s := whatIf(t, path, step, changes(t, "overlap", "comm")...).Scenarios[0].Steps[0]; math.Abs(s.Ceiling-want) > 0.03*want {
		t.Errorf("overlapped %.0f, without communication %.0f", s.Ceiling, want)
	}
	e.reduce = 400_000
	path, _ = e.write(t)
	if s := whatIf(t, path, step, changes(t, "overlap", "comm")...).Scenarios[0].Steps[0]; math.Abs(s.Ceiling-6*400_000) > 0.01*6*400_000 {
		t.Errorf("overlapped %.0f, of it 2,400,000 communication", s.Ceiling)
	}
}

// Of the launches of a step only the first takes time; what the host does between them stays. A launch takes so long that
// the host is what the GPU waits for.
func TestGraphLeavesOneLaunch(t *testing.T) {
	e := usualEngine
	e.between, e.launch, e.gemm, e.norm, e.reduce, e.late = 20_000, 20_000, 5_000, 5_000, 0, 0
	path, was := e.write(t)
	s := whatIf(t, path, step, changes(t, "graph", "")...).Scenarios[0].Steps[0]
	// 13 launches, of which 12 take no time, and the last kernel starts without its latency of 3.
	want := was - 12*20_000 - 3_000
	if math.Abs(s.Ceiling-want) > 0.005*want {
		t.Errorf("%.0f as a graph %.0f, want %.0f", was, s.Ceiling, want)
	}
}

func TestWhatIfErrors(t *testing.T) {
	for _, c := range [][3]string{
		{"speedup", "category:gemm", "say by how much"}, {"speedup", "category:gemm=0x", "not a factor above 0"},
		{"speedup", "category:gemm=NaN", "not a factor above 0"}, {"speedup", "gemm=2x", "say of what"},
		{"remove", "kernels:*", "say of what"}, {"remove", "kernel:", "pattern is empty"}, {"remove", "category:gem", "no category"},
		{"overlap", "copies", "only comm"}, {"no-sync", "", "pattern is empty"},
	} {
		if _, err := analyze.ParseChange(c[0], c[1]); !errors.Is(err, analyze.ErrOptions) || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("--%s %s: %v", c[0], c[1], err)
		}
	}
	path, _ := usualEngine.write(t)
	for _, c := range [][]string{{"remove", "kernel:nothing"}, {"no-sync", "cudaEventSynchronize"}, {"remove", "api:cudaFree"}, {"remove", "copy:HtoD"}} {
		_, err := analyze.WhatIf(context.Background(), path, [][]analyze.Change{changes(t, c...)}, analyze.Options{})
		if !errors.Is(err, analyze.ErrOptions) || !strings.Contains(err.Error(), "matches nothing") {
			t.Errorf("--%s %s: %v", c[0], c[1], err)
		}
	}
	var none *analyze.NoUnitError
	if _, err := analyze.WhatIf(context.Background(), tracetest.Tiny().WriteTB(t), nil, analyze.Options{}); !errors.As(err, &none) {
		t.Errorf("without a unit: %v", err)
	}
}

// The usual scenarios are those that the capture has anything of, and the answer is the same each time.
func TestUsualScenarios(t *testing.T) {
	path, _ := usualEngine.write(t)
	r := whatIf(t, path, step)
	var names []string
	for _, s := range r.Scenarios {
		names = append(names, strings.Join(s.Changes, " "))
	}
	if got, want := strings.Join(names, ", "), "--host-free, --graph, --speedup kernel:sm90_xmma_g*_bf16=2x, --no-sync cudaDeviceSynchronize, --overlap comm"; got != want {
		t.Errorf("scenarios: %s", got)
	}
	if !r.Replay.Fits || r.Schema != "explain.whatif/1" {
		t.Errorf("%+v", r.Replay)
	}
	a, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(whatIf(t, path, step))
	if err != nil || string(a) != string(b) {
		t.Errorf("two runs differ: %v", err)
	}
}

// A step that waits for its data loader, in the operating system, gains almost nothing from CUDA graphs and from waiting
// less for the GPU, and all of its idle time from a free host.
func TestCeilingsBesideADataLoader(t *testing.T) {
	for _, name := range []string{"aip_baseline_nvtx", "aip_opt1"} {
		path := filepath.Join("..", "..", "shared", "traces", name+".sqlite")
		if list, _ := filepath.Glob(path); len(list) == 0 {
			t.Skip("no shared traces beside the checkout")
		}
		for _, c := range []struct {
			change      []string
			least, most float64
		}{{[]string{"graph", ""}, 0, 0.02}, {[]string{"no-sync", "*Synchronize"}, 0, 0.01}, {[]string{"host-free", ""}, 0.94, 0.97}} {
			s := whatIf(t, path, analyze.Options{}, changes(t, c.change...)...).Scenarios[0].Steps[0]
			if share := s.UpTo / s.Time; share < c.least || share > c.most {
				t.Errorf("%s %v: %.1f %%, want %.0f to %.0f", name, c.change, 100*share, 100*c.least, 100*c.most)
			}
		}
	}
}

// The later capture of each pair is what the earlier one, or the later, became: no more was gained than the ceiling. Of
// testdata's pair all is known that was changed, as of rodinia's, and the ceiling is hardly above what was gained.
func TestCeilingsOfRealPairs(t *testing.T) {
	shared := filepath.Join("..", "..", "shared", "traces")
	for _, c := range []struct {
		dir, slow, fast string
		change          []string
		above           float64 // most of the step that a ceiling is above the gain; 1 where the change took less than all of it
	}{
		{shared, "nsysai_mfu_2gpu_after", "nsysai_mfu_2gpu_before", []string{"host-free", ""}, 1},
		{shared, "rodinia_report2_native", "rodinia_report3_native", []string{"remove", "kernel:Fan2*"}, 1},
		{shared, "rodinia_report2_native", "rodinia_report3_native", []string{"speedup", "kernel:Fan2*=3.65x"}, 0.01},
		{shared, "aip_baseline_nvtx", "aip_opt1", []string{"host-free", ""}, 1},
		{filepath.Join("..", "testdata"), "head", "base", []string{"speedup", "kernel:flash_fwd*=1.5x", "no-sync", "cudaStreamSynchronize",
			"remove", "copy:DtoH"}, 0.01},
	} {
		trace := func(name string) string { return filepath.Join(c.dir, name+".sqlite") }
		if list, _ := filepath.Glob(trace("*")); len(list) == 0 {
			t.Log("no shared traces beside the checkout")
			continue
		}
		fast := whatIf(t, trace(c.fast), analyze.Options{}).Scenarios[0].Steps[0]
		slow := whatIf(t, trace(c.slow), analyze.Options{}, changes(t, c.change...)...).Scenarios[0].Steps[0]
		gained := slow.Time - fast.Time
		t.Logf("%s %v: gained %.0f of %.0f, the ceiling is %.0f, up to %.0f", c.slow, c.change, gained, slow.Time, slow.Gain, slow.UpTo)
		if gained <= 0 || gained > slow.UpTo || slow.UpTo > gained+c.above*slow.Time {
			t.Errorf("%s: gained %.0f of %.0f, the ceiling is %.0f", c.slow, gained, slow.Time, slow.UpTo)
		}
	}
}

// TestWhatIfJudgesTheGPUOfTheReport: both look at the same GPU, hidden communication gains no more than what is exposed there, and no
// finding is worth more than the bound of its change.
func TestWhatIfJudgesTheGPUOfTheReport(t *testing.T) {
	traces, err := filepath.Glob("../testdata/*.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	judged, overlapped := 0, 0
	for _, path := range append(traces, longtest.Captures(t)...) {
		var none *analyze.NoUnitError
		res, err := analyze.WhatIf(context.Background(), path, nil, analyze.Options{})
		if errors.As(err, &none) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		full, err := analyze.Run(context.Background(), path, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := full.Report
		var main *report.UnitGroup
		for i := range r.Unit.Groups {
			if r.Unit.Groups[i].Main {
				main = &r.Unit.Groups[i]
			}
		}
		if main == nil || main.Device == nil || len(res.Scenarios) == 0 || !res.Replay.Fits {
			continue
		}
		judged++
		exposed := 0.0
		for i := range r.Metrics {
			if m := &r.Metrics[i]; m.ID == "unit.exposed_comm_time" && len(m.Labels) == 0 && m.Summary != nil {
				exposed = m.Summary.Mean
			}
		}
		upTo := map[string]float64{}
		for _, s := range res.Scenarios {
			step := s.Steps[0]
			upTo[s.Changes[0]] = step.UpTo
			if step.Device != *main.Device {
				t.Errorf("%s: GPU %d, the report judges %d", path, step.Device, *main.Device)
			}
			if s.Changes[0] == "--overlap comm" {
				if overlapped++; step.Gain > 1.05*exposed+1000 {
					t.Errorf("%s: hidden communication gains %.0f ns, %.0f are exposed", path, step.Gain, exposed)
				}
			}
		}
		for id, change := range map[string]string{"sync": "--no-sync cudaStreamSynchronize", "exposed_comm": "--overlap comm"} {
			if f := findingOf(r, id); f != nil && f.Worth != nil && f.Worth.Units > 0 && upTo[change] > 0 &&
				(id != "sync" || strings.Contains(f.Title, "in cudaStreamSynchronize")) {
				if worth := float64(f.Worth.Time) / float64(f.Worth.Units); worth > 1.02*upTo[change] {
					t.Errorf("%s: %s is worth %.0f ns, %s gains %.0f", path, id, worth, change, upTo[change])
				}
			}
		}
	}
	if judged < 3 || overlapped == 0 {
		t.Errorf("%d captures, %d with communication", judged, overlapped)
	}
}

func findingOf(r *report.Report, id string) *report.Finding {
	for i := range r.Findings {
		if r.Findings[i].ID == id {
			return &r.Findings[i]
		}
	}
	return nil
}
