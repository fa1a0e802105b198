package analyze

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// What a report of a real capture must conclude and what it must not, worked out from the event rows: patterns of the
// first three findings, title and advice.
func TestConclusionsOfRealTraces(t *testing.T) {
	dir := shared(t, "traces")
	for name, c := range map[string]struct{ first, any, none string }{
		"aip_baseline_nvtx":       {`GPU idle 95\.\d %.*poll.*DataLoader`, `enumerate\(DataLoader\).*__next__`, `(?i)graph|launch-bound|clocks`},
		"aip_opt1":                {`GPU idle 9\d\.\d %.*DataLoader`, `steps alternate between \d`, `(?i)graph|launch-bound|clocks`},
		"nsightful_power_iter":    {"", "inside `IO #`", `more CPUs|scheduler`},
		"cs336_hoponga_exp2023_4": {`FP32, without tensor cores, takes 6\d\.\d % of the step`, "", `635|more CPUs`},
		"cs336_hoponga_exp2024_2": {`FP32, without tensor cores, takes 6\d\.\d % of the step`, "", `635|more CPUs`},
		"cs336_tianshi_a":         {"", `Pointwise and copy kernels take 4\d\.\d %`, `most of (it|its)|FP32`},
		"nsysai_mfu_2gpu_before":  {"`flash_fwd.* takes 45\\.\\d % of the step", "", "ncclDev"},
		"nsysai_mfu_2gpu_after":   {"`flash_fwd.* takes 40\\.\\d % of the step", "cudaStreamSynchronize", "ncclDev"},
	} {
		r := reportOnce(t, filepath.Join(dir, name+".sqlite"))
		var said []string
		for i := range r.Findings[:min(3, len(r.Findings))] {
			f := &r.Findings[i]
			said = append(said, f.Title+"\n"+strings.Join(f.Advice, "\n"))
			if w := f.Worth; w != nil && w.Units > 0 {
				time := r.Find("unit.time", nil)
				if mean, per := time.Summary.Mean, float64(w.Of)/float64(w.Units); per < 0.98*mean || per > 1.02*mean {
					t.Errorf("%s: %s is of %.0f ns per step, and the step is %.0f", name, f.ID, per, mean)
				}
			}
		}
		text := strings.Join(said, "\n")
		if len(said) == 0 || !regexp.MustCompile(c.first).MatchString(said[0]) || !regexp.MustCompile(c.any).MatchString(text) {
			t.Errorf("%s: want %q first and %q among\n%s", name, c.first, c.any, text)
		}
		if found := regexp.MustCompile(c.none).FindString(text); c.none != "" && found != "" {
			t.Errorf("%s: says %q\n%s", name, found, text)
		}
		idle := 0
		for i := range r.Findings[:min(3, len(r.Findings))] {
			if id := r.Findings[i].ID; id == "gpu_idle" || id == "no_graphs" || id == "sync" && r.Findings[i].Worth.Share() >= 0.5 {
				idle++
			}
		}
		if idle > 1 {
			t.Errorf("%s: the first three findings hold idle time twice", name)
		}
	}
}

// The example: its head reads a value back in every step, for which the GPU idles 131 of 2,678 µs, and that comes first; no
// kernel of it is a third of the step. The base reads none back.
func TestConclusionsOfTheExample(t *testing.T) {
	head, base := runReport(t, "../testdata/head.sqlite", Options{}), runReport(t, "../testdata/base.sqlite", Options{})
	f := &head.Findings[0]
	if w := f.Worth; f.ID != "read_backs" || f.Severity != report.Medium || w.Time/w.Units < 129_000 || w.Time/w.Units > 133_000 {
		t.Errorf("head: first %s, %s, worth %+v", f.ID, f.Severity, f.Worth)
	}
	for i := range base.Findings {
		if base.Findings[i].ID == "read_backs" {
			t.Errorf("base: %s", base.Findings[i].Title)
		}
	}
}

// idleFindings are of idle time: together they are worth no more than there is.
var idleFindings = map[string]bool{
	"gpu_idle": true, "work_waits": true, "host_profiler": true, "host_gil": true, "allocations": true,
	"sync": true, "sync_copy": true, "sync_old": true, "read_backs": true, "async_pageable": true,
	"no_graphs": true, "few_graphs": true, "launch_storm": true, "launch_rate": true, "slow_launches": true,
}

// The figures that findings are held to, over every real trace and every trace of testdata: what is worth under 5 % is not
// high, a step of a finding is the mean step, the first three findings hold no time twice, and a range with 30 % of the
// host's time is named where idle time of the host comes first.
func TestFiguresOfFindings(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "shared", "traces", "*.sqlite"))
	more, _ := filepath.Glob(filepath.Join("..", "testdata", "*.sqlite"))
	high, off, twice, unnamed, named := 0, 0, 0, 0, 0
	for _, path := range append(paths, more...) {
		r := reportOnce(t, path)
		var claimed, idle float64 // shares of the judged time
		first := r.Findings[:min(3, len(r.Findings))]
		for i := range first {
			f := &first[i]
			w := f.Worth
			if w == nil {
				continue
			}
			if f.Severity == report.High && w.Share() < 0.05 {
				high++
				t.Errorf("%s: %s is high and worth %.3f", path, f.ID, w.Share())
			}
			if mean := r.Find("unit.time", nil); w.Units > 0 {
				if per := float64(w.Of) / float64(w.Units); per < 0.98*mean.Summary.Mean || per > 1.02*mean.Summary.Mean {
					off++
					t.Errorf("%s: %s is of %.0f ns per step, and the step is %.0f", path, f.ID, per, mean.Summary.Mean)
				}
			}
			claimed += w.Share()
			if idleFindings[f.ID] {
				idle += w.Share()
			}
		}
		if is := judgedIdle(r); claimed > 1.001 || idle > is+0.001 {
			twice++
			t.Errorf("%s: the first findings are worth %.3f of the judged time, those on idle time %.3f of the %.3f that is idle", path, claimed, idle, is)
		}
		switch place, told := leadingRange(r); {
		case place != "" && told:
			named++
		case place != "":
			unnamed++
			t.Errorf("%s: %q holds 30 %% of the host's time, and no finding of the first three names it", path, place)
		}
	}
	t.Logf("%d traces: high under 5 %%: %d, steps off: %d, time twice: %d, ranges named %d, not named %d", len(paths)+len(more), high, off, twice, named, unnamed)
}

// Where steps idle for 5 % or more, findings hold that time but for a hundredth of the step, which is too little for
// one: also where another finding holds most of it, as in both captures of two GPUs, whose host waits for each copy.
func TestFindingsHoldTheIdleTimeOfSteps(t *testing.T) {
	dir := shared(t, "traces")
	for _, name := range []string{
		"nsysai_mfu_2gpu_before",
		"nsysai_mfu_2gpu_after",
		"rodinia_report3_native",
		"cs336_tianshi_a",
		"cs336_jsun_4ae893",
	} {
		r, held := reportOnce(t, filepath.Join(dir, name+".sqlite")), 0.0
		for i := range r.Findings {
			if f := &r.Findings[i]; idleFindings[f.ID] && f.Worth != nil {
				held += f.Worth.Share()
			}
		}
		if is := judgedIdle(r); is < 0.05 || held < is-0.01 || held > is+0.01 {
			t.Errorf("%s: findings hold %.3f of the %.3f that is idle", name, held, is)
		}
	}
}

// judgedIdle is the share of the judged time in which the GPU idles.
func judgedIdle(r *report.Report) float64 {
	if time, idle := r.Find("unit.time", nil), r.Find("unit.gpu_idle", nil); time != nil && idle != nil {
		return idle.Summary.Mean / time.Summary.Mean
	}
	most := 0.0
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.ID == "gpu.idle_ratio" && m.Value != nil {
			most = max(most, *m.Value)
		}
	}
	return most
}

// leadingRange is a range that holds 30 % of the host's time in the judged part, where that is most of the idle time and a
// finding; and whether one of the first three findings names it. Empty where there is none.
func leadingRange(r *report.Report) (name string, told bool) {
	judged := r.Window.Length
	if steady := r.Find("steady.window", nil); steady != nil && *steady.Value < 0.9*float64(judged) {
		return "", false // the table is of another time
	}
	idle, host := 0.0, 0.0
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.ID == "gpu.idle_cause_time" && m.Value != nil {
			idle += *m.Value
			if m.Labels["cause"] == "host" {
				host += *m.Value
			}
		}
	}
	if judgedIdle(r) < 0.05 || host < 0.5*idle {
		return "", false
	}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		if m.ID != "host.range_time" || *m.Value < 0.3*host {
			continue
		}
		name = m.Labels["range"]
		for j := range r.Findings[:min(3, len(r.Findings))] {
			f := &r.Findings[j]
			told = told || strings.Contains(f.Title+f.Place, name)
		}
		if told {
			return name, true
		}
	}
	return name, told
}

// What a change would win at most, of the same captures: a step that waits for its data loader gains all of its idle time
// from a free host; one that computes gains 3.03 % in the mean of its 11 steps, and "up to" 3.3 %, the upper end over steps.
// No ceiling is below zero.
func TestCeilingsOfRealTraces(t *testing.T) {
	dir := shared(t, "traces")
	for name, c := range map[string]struct{ low, high, upTo float64 }{ // of the step, by a free host
		"aip_baseline_nvtx":       {0.94, 0.97, 0.97},
		"cs336_hoponga_exp2023_4": {0.030, 0.031, 0.034}, "cs336_hoponga_exp2024_2": {0.030, 0.031, 0.034},
	} {
		res, err := WhatIf(t.Context(), filepath.Join(dir, name+".sqlite"), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range res.Scenarios {
			step := &s.Steps[0]
			if step.Gain < 0 || step.Ceiling < 0 {
				t.Errorf("%s %v: gains %v", name, s.Changes, step.Gain)
			}
			gain, upTo := step.Gain/step.Time, step.UpTo/step.Time
			if s.Changes[0] == "--host-free" && (gain < c.low || gain > c.high || upTo < gain || upTo > c.upTo) {
				t.Errorf("%s %v: %.4f, up to %.4f of the step, want %v", name, s.Changes, gain, upTo, c)
			}
		}
	}
	r := runReport(t, filepath.Join(dir, "cs336_hoponga_exp2023_4.sqlite"), Options{})
	if compute, all := r.Find("unit.path_time", report.Labels{"part": "compute"}), r.Find("unit.time", nil); *compute.Value < 0.8**all.Value {
		t.Errorf("hoponga: %v of %v ns of the critical path compute", *compute.Value, *all.Value)
	}
}

// Of the ranks of a Jacobi solver number 3 comes last in 957 of 1,001 all-reduces, and nobody came late before it; half of
// its steps take 1.05 ms and half 3.5 ms, which the first sentence says beside their mean.
func TestConclusionsOfRanks(t *testing.T) {
	var parts [][]byte
	for _, n := range jacobiReports {
		parts = append(parts, jacobi(t, n))
	}
	r := mergeReport(t, merge.Options{}, parts...)
	const title = "Rank 3 arrives last in 95.6 % of collectives and holds up rank 6: a slow SendRecv with rank 4 before " +
		"957 of 1,001 AllReduces"
	if len(r.Findings) == 0 || r.Findings[0].ID != "rank_straggler" || r.Findings[0].Title != title {
		t.Errorf("%+v", r.Findings)
	}
	h := &head{Report: r}
	for mode, want := range map[string]float64{"short": 1.055e6, "long": 3.502e6} {
		if got := h.mean("unit.mode_time", "mode", mode); got < 0.99*want || got > 1.01*want {
			t.Errorf("%s steps take %v, want %v", mode, got, want)
		}
		if got := h.mean("unit.mode_share", "mode", mode); got < 0.49 || got > 0.51 {
			t.Errorf("%v of the steps are %s", got, mode)
		}
	}
	if h.answer(); len(h.wrong) > 0 || h.n == 0 {
		t.Errorf("%v", h.wrong)
	}
}

// Of 20 steps of 1 ms one is held up for 60 ms in a range: the mean says that it is one, and so does the finding, which
// speaks of no time of each step. Steps that all idle alike have no such gap, nor has the longest of steps that differ.
func TestAStallOfOneStep(t *testing.T) {
	for name, c := range map[string]struct {
		more        func(i int64) int64 // µs that step i is held up
		first, idle string              // what the sentence and the finding say
	}{
		"a stall": {
			func(i int64) int64 { return i / 10 % 2 * (1 - min(1, i%10)) * 60_000 },
			"; one of them 61 ms, 1 ms without it)", "one gap of 60.4 ms is 88.",
		},
		"alike":     {func(int64) int64 { return 400 }, "", ""},
		"different": {func(i int64) int64 { return i % 4 * 400 }, "", ""},
	} {
		b, at := newCapture(), int64(0)
		for i := range int64(21) {
			b.kernel("gemm", at, at, at+600)
			b.th.Range("gc", (at+610)*us, (at+990+c.more(i))*us)
			at += 1000 + c.more(i)
		}
		r := runReport(t, b.b.WriteTB(t), Options{Unit: "kernel:gemm"})
		h := &head{Report: r}
		h.answer()
		n := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "gpu_idle" })
		if n < 0 {
			t.Fatalf("%s: %+v", name, r.Findings)
		}
		f := &r.Findings[n]
		told := strings.Contains(h.text, "one of them")
		if len(h.wrong) > 0 || !strings.Contains(h.text, c.first) || told != (c.first != "") {
			t.Errorf("%s: %q, %v", name, h.text, h.wrong)
		}
		if !strings.Contains(f.Title, c.idle) || strings.Contains(f.Title, "one gap") != (c.idle != "") ||
			strings.Contains(f.Title, "of each step") != (c.idle == "") {
			t.Errorf("%s: %q", name, f.Title)
		}
	}
}

// A thread launches three kernels in each step (6, 2 and 1 ms), another waits for them, and the next step is launched 0.3 ms
// after that: the first kernel is worth 6 of 9.3 ms, whoever waits.
func TestConclusionsOfTwoThreads(t *testing.T) {
	const ms = 1_000_000
	for _, threads := range []int64{1, 2} {
		b := tracetest.New()
		p := b.Process(7, "python")
		a, wait := p.Thread(10, ""), p.Thread(10*threads, "")
		now := int64(ms)
		for range 60 {
			a.Range("execute_context_0(0)_generation_32(32)", now-20*us, now+300*us)
			gpu, host := now+5*us, now
			for _, k := range []struct {
				name string
				ns   int64
			}{{"flash_fwd_splitkv_kernel", 6 * ms}, {"nvjet_tst_64x8", 2 * ms}, {"sample_kernel", ms}} {
				a.Launch(k.name, host, host+4*us, tracetest.Kernel{Start: gpu, End: gpu + k.ns})
				gpu, host = gpu+k.ns+us, host+6*us
			}
			wait.StreamSynchronize(host+20*us, gpu+4*us, 0, 7)
			now = gpu - us + 300*us
		}
		r := runReport(t, b.WriteTB(t), Options{})
		if f := &r.Findings[0]; f.ID != "dominant_kernel" || f.Severity != report.High || f.Worth.Share() < 0.63 || f.Worth.Share() > 0.65 {
			t.Errorf("%d threads: %s, %s, worth %+v", threads, f.Title, f.Severity, f.Worth)
		}
	}
}
