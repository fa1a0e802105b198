package analyze

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
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
		r := runReport(t, filepath.Join(dir, name+".sqlite"), Options{})
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
		r := runReport(t, path, Options{})
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
