package analyze

import (
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// head checks the first screen of a report: how many sentences it holds, and those that are not true.
type head struct {
	*report.Report
	n     int
	wrong []string
	text  string // the first sentence
}

// TestHeadSentences holds the sentences of the first screen to the metrics and the series of steps that they are about, over
// every real capture and those of testdata: the time of the step, shares, names, "mostly" and "most of it" above half, and
// what findings are worth.
func TestHeadSentences(t *testing.T) {
	var paths []string
	for _, dir := range []string{"../testdata/*.sqlite", "../../shared/traces/*.sqlite", "../../shared/traces/ranks/*.sqlite", "../../shared/kineto/*.json.gz"} {
		list, _ := filepath.Glob(filepath.FromSlash(dir))
		if few := map[string]int{"../../shared/traces/ranks/*.sqlite": 2, "../../shared/kineto/*.json.gz": 3}[dir]; few > 0 {
			list = longtest.Some(list, few) // the others are analysed for other tests anyway
		}
		paths = append(paths, list...)
	}
	n, wrong := 0, 0
	for _, path := range paths {
		h := &head{Report: reportOnce(t, path)}
		h.answer()
		for i := range h.Findings[:min(3, len(h.Findings))] {
			h.finding(&h.Findings[i])
		}
		n, wrong = n+h.n, wrong+len(h.wrong)
		for _, w := range h.wrong {
			t.Errorf("%s: %s", filepath.Base(path), w)
		}
	}
	t.Logf("%d captures, %d sentences, %d not true", len(paths), n, wrong)
}

// is holds what a sentence says, as it is printed, to what it is about.
func (h *head) is(what, said string, want float64, unitOf string) {
	if got := unit.Format(want, unitOf); said != got {
		h.wrong = append(h.wrong, what+" "+said+", and is "+got)
	}
}

func (h *head) not(format string) { h.wrong = append(h.wrong, format) }

// mean is that of a metric of a step, 0 where there is none.
func (h *head) mean(id string, pairs ...string) float64 {
	l := report.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	switch m := h.Find(id, l); {
	case m == nil || m.Value == nil:
		return 0
	case m.Summary != nil:
		return m.Summary.Mean
	default:
		return *m.Value
	}
}

var (
	stepSentence = regexp.MustCompile(`^(\S+ \S+) per (?:\S+ )?step(?: \((?:mean of [0-9,]+)?(?:; )?` +
		`(?:(\S+ %) of them about (\S+ \S+) and (\S+ %) about (\S+ \S+))?` +
		`(?:one of them \S+ \S+, \S+ \S+ without it)?\))?: ` +
		`(\S+ %) compute(?: \((.+?) (\S+ %)\))?(?:, (\S+ %) exposed communication(?: \([^)]*\))?)?(?:, (\S+ %) exposed copy)?, ` +
		`GPU idle (\S+ %)(?:, (mostly|the largest part) ([^.]+))?\.$`)
	stallSentence  = regexp.MustCompile(`one of them (\S+ \S+), (\S+ \S+) without it`)
	windowSentence = regexp.MustCompile(`^(\S+ \S+) of GPU work: idle (\S+ %)(?:, (mostly|the largest part) ([^;.]+))?(?:; (\S+ %) of the kernel time is (.+))?\.$`)
)

// answer checks the first sentence.
func (h *head) answer() {
	text, full := "", ""
	page := present.Page(h.Report, "")
	for _, b := range page {
		if a, ok := b.(doc.Answer); ok {
			for _, s := range a.Spans {
				text += s.Text
				if s.Kind == doc.KindName && full == "" {
					full = s.Behind()
				}
			}
		}
	}
	if h.text = text; text == "" {
		return
	}
	h.n++
	if m := stallSentence.FindStringSubmatch(text); m != nil {
		s := h.Find("unit.time", nil).Summary
		h.is("the longest step takes", m[1], s.Max, report.Nanoseconds)
		h.is("the others take", m[2], (s.Mean*float64(s.N)-s.Max)/float64(s.N-1), report.Nanoseconds)
	}
	if m := stepSentence.FindStringSubmatch(text); m != nil {
		h.step(m, full)
	} else if m := windowSentence.FindStringSubmatch(text); m != nil {
		h.window(m)
	} else if len(h.Warnings) == 0 || !strings.Contains(plain(h.Warnings[0].Text), plain(text)) {
		h.not("a sentence of no known form: " + text)
	}
}

func plain(s string) string { return strings.ReplaceAll(s, "`", "") }

// step checks the sentence on the mean step: its time against the series of units, shares against metrics.
func (h *head) step(m []string, kernel string) {
	time := h.mean("unit.time")
	h.is("step takes", m[1], time, report.Nanoseconds)
	if at := h.seriesMean(); at > 0 && math.Abs(at-time) > 0.001*time {
		h.not("the mean step is " + unit.Format(at, report.Nanoseconds) + " by the series of steps, and " + m[1] + " is said")
	}
	share := func(what, said string, ns float64) {
		if said != "" {
			h.is(what, said, ns/time, report.Ratio)
		}
	}
	if m[2] != "" {
		h.is("short steps", m[2], h.mean("unit.mode_share", "mode", "short"), report.Ratio)
		h.is("long steps", m[4], h.mean("unit.mode_share", "mode", "long"), report.Ratio)
		h.is("short steps take", m[3], h.mean("unit.mode_time", "mode", "short"), report.Nanoseconds)
		h.is("long steps take", m[5], h.mean("unit.mode_time", "mode", "long"), report.Nanoseconds)
	}
	share("compute", m[6], h.mean("unit.compute_time"))
	share("communication", m[9], h.mean("unit.exposed_comm_time"))
	share("copies", m[10], h.mean("unit.exposed_copy_time"))
	idle := h.mean("unit.gpu_idle")
	share("idle", m[11], idle)
	if m[12] != "" {
		h.largest(m[12], m[13], idle, func(cause string) float64 { return h.mean("unit.idle_cause_time", "cause", cause) })
	}
	if m[7] == "" {
		return
	}
	if kernelname.Classify(kernel).Category == kernelname.Comm {
		h.not(kernel + " communicates, and is named as compute")
	}
	if !strings.Contains(kernel, "[CUDA graph]") {
		share(m[7], m[8], h.mean("kernel.exclusive_time_per_unit", "kernel", kernel))
	}
}

// largest checks that a cause is the one with most idle time, and "mostly" that it is more than half.
func (h *head) largest(word, cause string, idle float64, of func(cause string) float64) {
	for _, other := range []string{"sync", "host", "launch", "dependency", "unknown"} {
		if of(other) > of(cause) {
			h.not("idle " + word + " " + cause + ", and " + other + " is more")
		}
	}
	if (word == "mostly") != (2*of(cause) > idle) {
		h.not("idle " + word + " " + cause + ", which is " + unit.Percent(of(cause)/idle))
	}
}

// seriesMean is the mean time of the kept units of the main kind on the device that is slowest by its median; 0 where there
// is no series of all.
func (h *head) seriesMean() float64 {
	s := h.Unit.Series
	if s == nil || s.Every != 1 {
		return 0
	}
	points, err := s.Decode()
	if err != nil {
		h.not(err.Error())
		return 0
	}
	sum, n := map[int64]float64{}, map[int64]float64{}
	for _, p := range points {
		if report.UnitStates[p.State] == "kept" && p.Group >= 0 && h.Unit.Groups[p.Group].Main {
			sum[p.Device] += float64(p.Duration)
			n[p.Device]++
		}
	}
	most, at := 0.0, 0.0
	for d := range sum {
		if m := h.Find("unit.time", report.Labels{"device": strconv.FormatInt(d, 10)}); m != nil && m.Value != nil && *m.Value > most {
			most, at = *m.Value, sum[d]/n[d]
		}
	}
	return at
}

// window checks the sentence on a capture without steps.
func (h *head) window(m []string) {
	h.is("window", m[1], float64(h.Window.Length), report.Nanoseconds)
	most, device := -1.0, ""
	for i := range h.Metrics {
		if x := &h.Metrics[i]; x.ID == "gpu.idle_ratio" && x.Value != nil && *x.Value > most {
			most, device = *x.Value, x.Labels["device"]
		}
	}
	h.is("idle", m[2], most, report.Ratio)
	if m[3] != "" {
		h.largest(m[3], m[4], h.mean("gpu.idle_time", "device", device), func(cause string) float64 {
			return h.mean("gpu.idle_cause_time", "cause", cause, "device", device)
		})
	}
	if m[5] != "" {
		top := 0.0
		for i := range h.Metrics {
			if x := &h.Metrics[i]; x.ID == "kernel.total_time" && len(x.Labels) == 1 && x.Labels["kernel"] != "" {
				top = max(top, *x.Value)
			}
		}
		h.is("the top kernel", m[5], top/h.mean("kernel.total_time"), report.Ratio)
	}
}

var (
	takes     = regexp.MustCompile(`takes? ([^ ]+ %) of the (step|window)`)
	idleShare = regexp.MustCompile(`^GPU idle ([^ ]+ %)`)
)

// finding checks the title and the worth of a finding: shares of the step, and that "most of" is more than half.
func (h *head) finding(f *report.Finding) {
	h.n++
	w, time := f.Worth, h.mean("unit.time")
	if w != nil && w.Units > 0 {
		h.is(f.ID+" is of a step of", unit.Format(float64(w.Of)/float64(w.Units), report.Nanoseconds), time, report.Nanoseconds)
	}
	of := func(id string, labels report.Labels) float64 {
		var pairs []string
		for k, v := range labels {
			pairs = append(pairs, k, v)
		}
		return h.mean(id, pairs...)
	}
	if m := idleShare.FindStringSubmatch(f.Title); m != nil && w != nil && w.Units > 0 && f.ID == "gpu_idle" {
		h.is(f.ID, m[1], h.mean("unit.gpu_idle")/time, report.Ratio)
	}
	m := takes.FindStringSubmatch(f.Title)
	if m == nil || w == nil || w.Units == 0 || len(f.Evidence) == 0 {
		return
	}
	switch f.ID {
	case "dominant_kernel", "large_kernel":
		at := of(f.Evidence[0].ID, f.Evidence[0].Labels)
		h.is(f.ID, m[1], at/time, report.Ratio)
		if strings.Contains(f.Title, "most of its compute") && 2*at <= h.mean("unit.compute_time") {
			h.not(f.Title + ", which is no more than half")
		}
	case "pointwise_kernels", "dominant_category":
		sum, top := 0.0, 0.0
		for _, ref := range f.Evidence {
			if ref.Labels["category"] != "" {
				sum += of(ref.ID, ref.Labels)
			} else {
				top = of(ref.ID, ref.Labels)
			}
		}
		// Names that are recognised by a weak word, and layout conversions, are of a category and not told with it.
		if said := percentOf(m[1]); said > sum/time+0.0005 {
			h.not(f.Title + ", and the categories take " + unit.Percent(sum/time))
		} else if strings.Contains(f.Title, "most of it") && 2*top <= said*time {
			h.not(f.Title + ", which is no more than half")
		}
	case "fp32_math", "fp64_math":
		if top := of(f.Evidence[0].ID, f.Evidence[0].Labels); strings.Contains(f.Title, "most of it") != (2*top > percentOf(m[1])*time) {
			h.not(f.Title + ", and the kernel takes " + unit.Percent(top/time))
		}
	}
}

// percentOf is a printed share.
func percentOf(said string) float64 {
	v, err := strconv.ParseFloat(strings.Trim(strings.TrimSuffix(said, " %"), "<>"), 64)
	if err != nil {
		return math.NaN()
	}
	return v / 100
}
