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
