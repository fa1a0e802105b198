package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func TestPhaseMap(t *testing.T) {
	m, err := ParsePhaseMap("p.json", []byte(`{"decode": ["Decode", "re:^gen_[0-9]+$"], "other": "e"}`))
	if err != nil {
		t.Fatal(err)
	}
	// The first phase of the file wins; substrings ignore case, regular expressions do not.
	for raw, want := range map[string]int{"DECODE step": 0, "gen_12": 0, " gen_12 ": 0, "GEN_12": 1, "gen_12 more": 1, "xyz": -1} {
		if got := m.find(raw); got != want {
			t.Errorf("phase of %q = %d, want %d", raw, got, want)
		}
	}
	for text, want := range map[string]string{
		`[]`: "is not a JSON object", ``: "is not a JSON object", `{"a": 1}`: "expected a pattern or a list", `{"a": ["re:["]}`: "error parsing regexp",
		`{"a": "x", "a": "y"}`: "appears twice", `{"a": [" "]}`: "a pattern is empty", `{"a": "x"`: "EOF", `{"a": "x"} {"b": "y"}`: "something after", `{"": "x"}`: "has no name",
	} {
		if _, err := ParsePhaseMap("p.json", []byte(text)); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

func FuzzParsePhaseMap(f *testing.F) {
	for _, s := range []string{`{"decode": ["a", "re:b+"]}`, `{"a": "b"}`, `{"a": [1]}`, `{`, `{"a":"re:("}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParsePhaseMap("fuzz", text)
		if err != nil {
			if !errors.Is(err, ErrOptions) {
				t.Fatal(err)
			}
			return
		}
		if i := m.find("some range"); i >= len(m.phases) {
			t.Fatalf("phase %d of %d", i, len(m.phases))
		}
	})
}

// times of Tiny, in ns (see its doc comment).
const us = 1000

func metricValue(t *testing.T, r *report.Report, id string, pairs ...string) float64 {
	t.Helper()
	l := report.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	m := r.Find(id, l)
	if m == nil || m.Value == nil {
		t.Fatalf("no %s{%s}", id, l)
	}
	return *m.Value
}

// A narrowed window: GPU time is clipped to it, rows count where they start in it.
func TestWindows(t *testing.T) {
	path := tracetest.Tiny().WriteTB(t)
	from, to := 200*us*time.Nanosecond, 400*us*time.Nanosecond
	for _, c := range []struct {
		name             string
		w                WindowOptions
		mode             string
		start, end       int64
		busy, kernels    float64
		launches, kernel float64
	}{
		// 300-500: norm 300-340, gemm 365-400, softmax 460-500 = 115 busy; those three kernels start in it;
		// launches at 360 and 450, 460 start in it.
		{"range", WindowOptions{From: &from, To: &to}, "range", 300 * us, 500 * us, 115 * us, 3, 3, 115 * us},
		// step 1 lasts 80-470: 100-340, 365-400, 460-470 = 285 busy; gemm, softmax, norm, gemm, softmax start in it,
		// 100+100+40+35+40 = 315; launches 90, 100, 110, 360, 450, 460.
		{"nvtx", WindowOptions{NVTX: "^step 1$"}, "nvtx", 80 * us, 470 * us, 285 * us, 5, 6, 315 * us},
		// The whole capture: 12 launches, two of them before the first kernel.
		{"capture", WindowOptions{}, "capture", 100 * us, 1100 * us, 775 * us, 13, 12, 755 * us},
	} {
		r := runReport(t, path, Options{Window: c.w})
		if r.Window.Mode != c.mode || r.Window.Start != c.start || r.Window.End != c.end || r.Window.Length != c.end-c.start {
			t.Errorf("%s: window %+v, want %s from %d to %d", c.name, r.Window, c.mode, c.start, c.end)
		}
		for id, want := range map[string]float64{"kernel.count": c.kernels, "kernel.total_time": c.kernel, "launch.count": c.launches} {
			if got := metricValue(t, r, id); got != want {
				t.Errorf("%s: %s = %v, want %v", c.name, id, got, want)
			}
		}
		if got := metricValue(t, r, "gpu.busy_time", "device", "0"); got != c.busy {
			t.Errorf("%s: busy %v, want %v", c.name, got, c.busy)
		}
	}
	before := -5 * time.Millisecond
	for _, w := range []WindowOptions{{NVTX: "no such range"}, {NVTX: "("}, {NVTX: "step", Steady: true}, {From: &to, To: &from}, {From: &before}} {
		if _, err := Run(context.Background(), path, Options{Window: w}); !errors.Is(err, ErrOptions) {
			t.Errorf("window %+v: error %v, want one of usage", w, err)
		}
	}
}

// Shifting a capture in time changes no metric.
func TestShiftChangesNothing(t *testing.T) {
	dir := t.TempDir()
	for name, build := range map[string]*tracetest.Builder{
		"tiny":   tracetest.Tiny(),
		"graph":  tracetest.GraphHidden(),
		"procs":  tracetest.TwoProcs(),
		"phases": tracetest.Serving(),
	} {
		plain := build.WriteTB(t)
		shifted := filepath.Join(dir, name+".sqlite")
		if err := tracetest.Rewrite(plain, shifted, tracetest.ShiftTime(-60_000_000_000)); err != nil {
			t.Fatal(err)
		}
		a, b := runReport(t, plain, Options{}), runReport(t, shifted, Options{})
		if len(a.Metrics) != len(b.Metrics) {
			t.Fatalf("%s: %d metrics, %d after the shift", name, len(a.Metrics), len(b.Metrics))
		}
		for i := range a.Metrics {
			x, err := json.Marshal(a.Metrics[i])
			if err != nil {
				t.Fatal(err)
			}
			y, err := json.Marshal(b.Metrics[i])
			if err != nil {
				t.Fatal(err)
			}
			if string(x) != string(y) {
				t.Errorf("%s: %s\nbecomes %s", name, x, y)
			}
		}
	}
}

// On every trace, the classes sum to the window and the causes to the idle time, to the nanosecond.
func TestEveryNanosecondIsAccountedForOnce(t *testing.T) {
	paths, err := filepath.Glob("../testdata/*.sqlite")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no traces in testdata (%v)", err)
	}
	for _, path := range append(paths, longtest.Captures(t)...) {
		r := runReport(t, path, Options{})
		for _, g := range r.Environment.GPUs {
			d := report.Labels{"device": itoa(g.Device)}
			get := func(id string) float64 { return metricValue(t, r, id, "device", d["device"]) }
			if sum, window := get("gpu.compute_time")+get("gpu.exposed_comm_time")+get("gpu.exposed_copy_time")+get("gpu.idle_time"), get("gpu.window"); sum != window {
				t.Errorf("%s GPU %d: classes sum to %v, the window is %v", filepath.Base(path), g.Device, sum, window)
			}
			if sum := get("gpu.busy_time") + get("gpu.idle_time"); sum != get("gpu.window") {
				t.Errorf("%s GPU %d: busy and idle sum to %v", filepath.Base(path), g.Device, sum)
			}
			causes := 0.0
			for _, m := range r.Metrics {
				if m.ID == "gpu.idle_cause_time" && m.Labels["device"] == d["device"] {
					causes += *m.Value
				}
			}
			if causes != get("gpu.idle_time") {
				t.Errorf("%s GPU %d: causes sum to %v, idle is %v", filepath.Base(path), g.Device, causes, get("gpu.idle_time"))
			}
		}
	}
}

func itoa(n int) string { b, _ := json.Marshal(n); return string(b) }

// The lists that the command line prints are complete and sorted.
func TestLists(t *testing.T) {
	metrics := Metrics()
	if !slices.IsSortedFunc(metrics, func(a, b report.MetricDef) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("metrics are not sorted by id")
	}
	for _, m := range metrics {
		if m.Meaning == "" || m.Unit == "" || len(m.Labels) == 0 || len(m.Sections) == 0 {
			t.Errorf("metric %s is not fully described: %+v", m.ID, m)
		}
	}
	for _, id := range contractIDs {
		if !slices.ContainsFunc(metrics, func(m report.MetricDef) bool { return m.ID == id }) {
			t.Errorf("no section emits %s, which is contract", id)
		}
	}
	for _, s := range Sections() {
		if page, err := SectionPage(s.ID); err != nil || !strings.HasPrefix(page, "# ") {
			t.Errorf("section %s: page %.20q (%v)", s.ID, page, err)
		}
	}
}

// contractIDs are the metric ids that other people's scripts rely on.
var contractIDs = strings.Fields(`kernel.total_time kernel.count gpu.window gpu.busy_time gpu.idle_time gpu.idle_ratio gpu.kernel_idle_ratio
	gpu.compute_time gpu.comm_time gpu.exposed_comm_time gpu.copy_time gpu.exposed_copy_time gpu.idle_cause_time kernel.time_per_unit
	kernel.count_per_unit launch.count launch.rate launch.api_time sync.total_time sync.count memcpy.time memcpy.bytes memcpy.throughput
	nvtx.coverage nvtx.gpu_time nvtx.gpu_time_self nvtx.wall_time phase.gpu_time phase.wall_time component.gpu_time graph.coverage
	graph.launches unit.count unit.time unit.gpu_busy unit.gpu_idle unit.launches unit.kernels`)

// Of 203 kinds of unit the 200 most frequent are listed, and the three others counted together.
func TestOnlyTheFrequentKindsOfUnitAreListed(t *testing.T) {
	groups := make([]report.UnitGroup, maxGroups+3)
	for i := range groups {
		groups[i] = report.UnitGroup{Phase: "decode", Count: 2}
	}
	groups[1].Count, groups[5].Count, groups[9].Count = 1, 1, 1
	got := mostFrequent(groups)
	if len(got) != maxGroups+1 || got[maxGroups].Phase != "(others)" || got[maxGroups].Count != 3 || got[1].Count != 2 {
		t.Errorf("%d kinds, last %+v", len(got), got[len(got)-1])
	}
	if got := mostFrequent(groups[:maxGroups]); len(got) != maxGroups || got[1].Count != 1 {
		t.Errorf("%d kinds where all fit", len(got))
	}
}

// Of kinds of unit with equally many units the first ones are listed, however late a more frequent one and the main one
// come; all stay in their order.
func TestEquallyFrequentKindsOfUnit(t *testing.T) {
	groups := make([]report.UnitGroup, maxGroups+4)
	for i := range groups {
		groups[i] = report.UnitGroup{ID: strconv.Itoa(i), Count: 2}
	}
	groups[maxGroups+1].Count = 5
	groups[maxGroups+3].Count, groups[maxGroups+3].Main = 1, true
	var ids, want []string
	for _, g := range mostFrequent(groups) {
		ids = append(ids, g.ID)
	}
	for i := range maxGroups - 2 {
		want = append(want, strconv.Itoa(i))
	}
	want = append(want, strconv.Itoa(maxGroups+1), strconv.Itoa(maxGroups+3), "(others)")
	if !slices.Equal(ids, want) {
		t.Errorf("%q, want %q", ids, want)
	}
}

// A row number has 29 bits: 536,870,912 rows can be told apart, and one more cannot.
func TestTooManyRowsAreRefused(t *testing.T) {
	if err := numberable("t.sqlite", 1<<29, 0, 3); err != nil {
		t.Error(err)
	}
	var wrong *InputError
	err := numberable("dir/t.sqlite", 3, 1<<29+1)
	if !errors.As(err, &wrong) || wrong.File != "t.sqlite" || wrong.Do == "" {
		t.Errorf("%v", err)
	}
}

// Without the details the report is the same.
func TestDetailsCanBeLeftOut(t *testing.T) {
	path := filepath.Join("..", "testdata", "head.sqlite")
	with, err := Run(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := Run(t.Context(), path, Options{NoDetails: true})
	if err != nil {
		t.Fatal(err)
	}
	var texts [2][]byte
	for i, r := range []*Result{with, without} {
		if texts[i], err = json.Marshal(r.Report); err != nil {
			t.Fatal(err)
		}
	}
	if len(with.Details) == 0 || len(without.Details) != 0 || string(texts[0]) != string(texts[1]) {
		t.Errorf("%d tables with and %d without the details; reports of %d and %d bytes",
			len(with.Details), len(without.Details), len(texts[0]), len(texts[1]))
	}
}
