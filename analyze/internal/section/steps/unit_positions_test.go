package steps_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// TestUnitPositions works out by hand what unitSteps says: four units of 200, 200, 200 and 240 µs.
func TestUnitPositions(t *testing.T) {
	res := sectiontest.Analyse(t, unitSteps(), analyze.Options{})
	l := sectiontest.Looker{TB: t, Report: res.Report}
	steps := l.Unit.Steps
	if steps == nil || len(steps.List) != 1 {
		t.Fatalf("steps %+v", steps)
	}
	s := steps.List[0]
	if s.Units != 4 || s.Sampled != 4 || s.Time != 840*unitUS || s.Aligned != 16 || s.Kernels != 16 || s.Rest != 0 ||
		s.Folded || s.Threshold != 10*unitUS || s.Group != l.Unit.Groups[0].ID {
		t.Errorf("step %+v", s)
	}
	list, err := s.Positions()
	if err != nil {
		t.Fatal(err)
	}
	type position struct {
		name, category                       string
		stream, start, dur, alone, copies    int64
		sync, host, launch, dependency, idle int64 // µs in one unit; idle is the median gap
	}
	want := []position{
		{name: "gemm", category: "gemm", stream: 7, start: 10, dur: 50, alone: 50, copies: 10},
		{name: "softmax", category: "softmax", stream: 9, start: 50, dur: 30, alone: 20}, // 10 under the gemm
		{name: unitNCCL, category: "comm", stream: 21, start: 70, dur: 40, alone: 30},    // 10 under the softmax
		{name: "gemm", category: "gemm", stream: 7, start: 130, dur: 40, alone: 40, sync: 10, host: 5, launch: 3,
			dependency: 2, idle: 20},
	}
	if len(list) != len(want) {
		t.Fatalf("%d positions, want %d", len(list), len(want))
	}
	for i, w := range want {
		p := list[i]
		all := func(us int64) int64 { return 4 * us * unitUS } // alike in all four units
		got := report.Position{Name: p.Name, Stream: w.stream, Ran: 4, Start: all(w.start),
			StartMedian: w.start * unitUS, Time: all(w.dur), TimeMedian: w.dur * unitUS, Alone: all(w.alone),
			AloneMedian: w.alone * unitUS, Copies: all(w.copies), GapMedian: w.idle * unitUS,
			Gap: [5]int64{all(w.sync), all(w.host), all(w.launch), all(w.dependency)}}
		if p != got {
			t.Errorf("position %d: %+v, want %+v", i, p, got)
		}
		if steps.Names[p.Name] != w.name || steps.Categories[p.Name] != w.category {
			t.Errorf("position %d is %s, of %s", i, steps.Names[p.Name], steps.Categories[p.Name])
		}
	}
	// 30 until the next step: launch 2, dependency 28; after the long one 40 of host more.
	if e := s.End; !slices.Equal(e.Gap, []int64{0, 40_000, 8_000, 112_000, 0}) || e.GapMedian != 30_000 || e.Copies != 0 {
		t.Errorf("end %+v", e)
	}
	if !slices.Equal(s.Hiccups, []int64{4, 0, 3, 40_000}) || s.HiccupCount != 1 { // unit 3, before the next
		t.Errorf("hiccups %v", s.Hiccups)
	}
	sectiontest.Metric(t, l.Report, 10_000, "unit.hiccup_time") // 60 of idle in the mean unit, 20 + 30 in the median

	table := l.Table("unit_positions", "unit_positions")
	l.CsvHas(table, "unit_positions.csv", "position", "kernel_name", "start_ns", "duration_ns", "gap_ns", "gap_median_ns",
		"copies_ns", "units", "pct_of_unit")
	if len(table.Rows) != 5 {
		t.Fatalf("%d rows", len(table.Rows))
	}
	l.Row(table, 3, "position", "3", "kernel_name", `"gemm"`, "start", "130000", "duration", "40000", "gap", "20000",
		"gap_median", "20000", "cause", `"sync"`, "units", "4")
	l.Row(table, 4, "kernel_name", `"(until the next unit)"`, "gap", "40000", "gap_median", "30000", "cause", `"dependency"`)
	at := slices.IndexFunc(res.Details, func(d report.Table) bool { return d.File == "unit_positions.csv" })
	if at < 0 {
		t.Fatal("no file with all columns")
	}
	l.Row(&res.Details[at], 3, "sync", "10000", "host", "5000", "launch", "3000", "dependency", "2000", "unknown", "0",
		"start_median", "130000", "duration_median", "40000")
	if sum := l.Sum(table, "share"); math.Abs(sum-1) > 1e-12 {
		t.Errorf("shares sum to %v", sum)
	}
}

// TestPositionsOfLongSteps has five steps of 5 s, of which four are complete: a kernel of 3 s, which more than 31 bits of
// nanoseconds hold, a pause of 1 s, a kernel of 10 ms and 990 ms until the next step.
func TestPositionsOfLongSteps(t *testing.T) {
	const second = int64(1e9)
	b := tracetest.New()
	b.GPU(tracetest.GPU{})
	th := b.Process(100, "python").Thread(100, "python")
	for i := range int64(5) {
		at := second + 5*second*i
		th.Range(fmt.Sprintf("ProfilerStep#%d", i), at, at+4*second)
		th.Launch("long", at+10, at+20, tracetest.Kernel{Place: tracetest.Place{Stream: 7}, Start: at + 100, End: at + 100 + 3*second})
		th.Launch("late", at+30, at+40,
			tracetest.Kernel{Place: tracetest.Place{Stream: 7}, Start: at + 100 + 4*second, End: at + 100 + 4*second + second/100})
	}
	steps := sectiontest.Analyse(t, b, analyze.Options{}).Report.Unit.Steps
	if steps == nil || len(steps.List) != 1 {
		t.Fatalf("steps %+v", steps)
	}
	list, err := steps.List[0].Positions()
	if err != nil {
		t.Fatal(err)
	}
	type medians struct{ start, time, alone, gap int64 }
	want := []medians{{0, 3 * second, 3 * second, 0}, {4 * second, second / 100, second / 100, second}}
	var got []medians
	for _, p := range list {
		got = append(got, medians{p.StartMedian - list[0].StartMedian, p.TimeMedian, p.AloneMedian, p.GapMedian})
	}
	if !slices.Equal(got, want) || steps.List[0].End.GapMedian != 5*second-4*second-second/100 {
		t.Errorf("medians %+v, end %d, want %+v", got, steps.List[0].End.GapMedian, want)
	}
}

// TestUnitShown looks at the median unit of unitSteps, at 1000 µs, and the slowest, at 1600.
func TestUnitShown(t *testing.T) {
	r := sectiontest.Analyse(t, unitSteps(), analyze.Options{}).Report
	names := r.Unit.Steps.Names
	shown := r.Unit.Steps.List[0].Shown
	if len(shown) != 2 || shown[0].Which != "median" || shown[0].Number != 0 || shown[0].Duration != 200*unitUS ||
		shown[1].Which != "slowest" || shown[1].Number != 3 || shown[1].Duration != 240*unitUS ||
		shown[0].Start != 1000*unitUS || shown[0].Thread != "python" || shown[0].LeftOut != 0 {
		t.Fatalf("shown %+v", shown)
	}
	text := func(list []report.UnitEvent) (lines string) {
		for _, e := range list {
			lines += fmt.Sprintf("%s %d %d+%d; ", names[e.Name], e.Lane, e.Start/unitUS, e.Duration/unitUS)
		}
		return lines
	}
	work, calls, ranges, gaps := shown[1].Events()
	for _, x := range []struct{ what, got, want string }{
		{"work", text(work), "[copy HtoD] 7 0+10; gemm 7 10+50; softmax 9 50+30; " + unitNCCL + " 21 70+40; gemm 7 130+40; "},
		// The last launches are those of the next step, from 210 on.
		{"calls", text(calls), "cudaStreamSynchronize 0 100+20; cudaLaunchKernel 0 125+3; cudaMemcpyAsync 0 210+2; " +
			"cudaLaunchKernel 0 214+2; cudaLaunchKernel 0 218+2; cudaLaunchKernel 0 222+2; "},
		{"ranges", text(ranges), "ProfilerStep# 0 0+160; ProfilerStep# 0 209+31; "},
		{"gaps", fmt.Sprint(gaps), "[{110000 [10000 5000 3000 2000 0]} {170000 [0 40000 2000 28000 0]}]"},
	} {
		if x.got != x.want {
			t.Errorf("%s: %s\nwant %s", x.what, x.got, x.want)
		}
	}
}

// stepCloses checks every step of a report: to the ns, and against the metrics that say the same of the main kind.
func stepCloses(t testing.TB, r *report.Report) {
	t.Helper()
	if r.Unit.Steps == nil {
		return
	}
	for i, s := range r.Unit.Steps.List {
		list, err := s.Positions()
		if err != nil {
			t.Fatal(err)
		}
		var causes [5]int64
		sum, copies := s.Rest+s.End.Copies, s.End.Copies
		for c, ns := range s.End.Gap {
			sum, causes[c] = sum+ns, causes[c]+ns
		}
		for p := range list {
			sum, copies = sum+list[p].Sum(), copies+list[p].Copies
			for c, ns := range list[p].Gap {
				causes[c] += ns
			}
		}
		if sum != s.Time {
			t.Errorf("step %d: positions, end and rest sum to %d, the units to %d", i, sum, s.Time)
		}
		if i > 0 {
			continue
		}
		same := func(got int64, id string, pairs ...string) {
			labels := report.Labels{}
			for k := 0; k+1 < len(pairs); k += 2 {
				labels[pairs[k]] = pairs[k+1]
			}
			m := r.Find(id, labels)
			if m == nil || m.Summary == nil || math.Abs(m.Summary.Mean*float64(s.Units)-float64(got)) > 1e-9*float64(s.Time) {
				t.Errorf("%s %v is not %d in all units", id, pairs, got)
			}
		}
		same(s.Time, "unit.time")
		same(copies, "unit.exposed_copy_time")
		for c, name := range report.StepCauses {
			same(causes[c], "unit.idle_cause_time", "cause", name)
		}
	}
}

// TestPositionsClose lays out random steps on up to three streams, some with a kernel more or less, and looks at the sums.
func TestPositionsClose(t *testing.T) {
	longtest.Draws(t, 30)
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		b := tracetest.New()
		b.GPU(tracetest.GPU{})
		for pid := range int64(rapid.IntRange(1, 2).Draw(rt, "processes")) { // two share the device
			randomSteps(rt, b.Process(100+pid, "python").Thread(100+pid, "python"), 1000+pid*37)
		}
		path := filepath.Join(dir, "t.sqlite")
		if err := b.Write(path); err != nil {
			rt.Fatal(err)
		}
		defer os.Remove(path)
		r := sectiontest.AnalyseFile(t, path, analyze.Options{}).Report
		if r.Unit.Steps == nil {
			rt.Fatalf("no steps: %s", r.Unit.Why)
		}
		stepCloses(t, r)
		if t.Failed() {
			rt.Fatal("does not close")
		}
	})
}

func randomSteps(rt *rapid.T, th *tracetest.Thread, at int64) {
	n := rapid.IntRange(2, 6).Draw(rt, "kernels")
	for i := range 6 {
		from, host := at, at-20
		extra := rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(rt, "extra")
		for k := range n + extra {
			gap := int64(rapid.SampledFrom([]int{-8, 0, 3, 40}).Draw(rt, "gap"))
			length := int64(rapid.IntRange(1, 30).Draw(rt, "length"))
			stream := int64(7 + rapid.IntRange(0, 2).Draw(rt, "stream"))
			start := max(at+gap, from)
			if k == 0 {
				start, stream = from, 7
			}
			name := []string{"gemm", "softmax", unitNCCL, "norm"}[k%4]
			if rapid.IntRange(0, 4).Draw(rt, "copy") == 0 {
				th.Memcpy(host, host+1, tracetest.Memcpy{Place: tracetest.Place{Stream: 30}, Start: start, End: start + length,
					Bytes: 64, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
				host += 2
			}
			th.Launch(name, host, host+1, tracetest.Kernel{Place: tracetest.Place{Stream: stream}, Start: start,
				End: start + length})
			host += 2
			at = start + length
		}
		th.Range("ProfilerStep#"+string(rune('0'+i)), from-30, host+1)
		at = max(at, host+40) + int64(rapid.IntRange(0, 50).Draw(rt, "pause"))
	}
}

// TestPositionsCloseOnRealTraces looks at the sums on every real trace with a unit.
func TestPositionsCloseOnRealTraces(t *testing.T) {
	paths := longtest.Captures(t)
	if len(paths) == 0 {
		t.Skip("the real traces are not part of the project")
	}
	n := 0
	for _, path := range paths {
		r := sectiontest.ReportOf(t, path)
		stepCloses(t, r)
		if r.Unit.Steps != nil {
			n++
		}
	}
	if few := longtest.N(2, 8); n < few {
		t.Errorf("%d traces have steps", n)
	}
}

// TestPositionsOfServing: CUDA graphs traced by node are kernels of the sequence, traced as a whole one position.
func TestPositionsOfServing(t *testing.T) {
	r := sectiontest.ReportOf(t, "../../../../testdata/serving.sqlite")
	stepCloses(t, r)
	main := r.Unit.Steps.List[0]
	if main.Units != 16 || main.Kernels != 16*71 || len(main.Name) != 71 {
		t.Errorf("decode of 32: %d units, %d kernels, %d positions", main.Units, main.Kernels, len(main.Name))
	}
	if len(r.Unit.Steps.List) != 4 { // the other rank, prefill and mixed steps
		t.Errorf("%d steps", len(r.Unit.Steps.List))
	}
	whole := sectiontest.ReportOf(t, "../../../../testdata/serving_graph.sqlite")
	stepCloses(t, whole)
	list, _ := whole.Unit.Steps.List[0].Positions()
	if len(list) != 6 || whole.Unit.Steps.Names[list[0].Name] != "[CUDA graph]" {
		t.Errorf("%d positions, the first is %s", len(list), whole.Unit.Steps.Names[list[0].Name])
	}
}

// TestPositionsAlign: in the third of five steps a kernel is missing and another runs in its place.
func TestPositionsAlign(t *testing.T) {
	b := tracetest.New()
	b.GPU(tracetest.GPU{})
	th := b.Process(100, "python").Thread(100, "python")
	for i := range int64(6) {
		at := 10_000 + i*1000
		for k, name := range strings.Fields("embed norm gemm norm gemm sample") {
			if i == 2 && k == 3 {
				name = "logging"
			}
			start := at + int64(k)*100
			th.Launch(name, start-50, start-40, tracetest.Kernel{Start: start, End: start + 60})
		}
		th.Range("ProfilerStep#"+string(rune('0'+i)), at-60, at+600)
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	stepCloses(t, r)
	s := r.Unit.Steps.List[0]
	list, _ := s.Positions()
	if s.Units != 5 || len(list) != 6 || s.Aligned != 29 || s.Kernels != 30 {
		t.Fatalf("%d units, %d positions, %d of %d aligned", s.Units, len(list), s.Aligned, s.Kernels)
	}
	if s.Rest != 60 { // the logging kernel
		t.Errorf("rest %d", s.Rest)
	}
	// The gap of 40 before the logging kernel is that of the next position in this unit, which has both.
	if list[3].Ran != 4 || list[3].Time != 240 || list[3].Idle() != 160 || list[4].Idle() != 240 {
		t.Errorf("positions 3 and 4: %+v %+v", list[3], list[4])
	}
	if list[3].GapMedian != 40 || list[4].GapMedian != 40 || list[3].Start != 4*300 {
		t.Errorf("medians %+v %+v", list[3], list[4])
	}
	if c := sectiontest.SectionOf(t, r, "unit_positions").Coverage; c == nil || *c != 29.0/30 {
		t.Errorf("coverage %v", c)
	}
}
