package mutant

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

const us = 1000

// tiny is six steps of 100 µs. In each, from its start: A is launched at 0 and runs 5–15 µs, B is launched at 4 and runs
// 16–36, and the host waits from 8 to 38. Before all there is one copy.
func tiny(t *testing.T) *Capture {
	t.Helper()
	b := tracetest.New()
	th := b.Process(1, "loop").Thread(1, "loop")
	b.Diagnostic(tracetest.Diagnostic{Source: 2, Severity: 1, Text: "Profiling has started."})
	th.Memcpy(0, 2*us, tracetest.Memcpy{Start: 5 * us, End: 6 * us, Bytes: 100, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
	for u := range int64(6) {
		at := 1000*us + 100*us*u
		th.Range("step", at-us/2, at+39*us)
		th.Launch("void ns::A<int>(int)", at, at+2*us, tracetest.Kernel{Start: at + 5*us, End: at + 15*us})
		th.Launch("B", at+4*us, at+6*us, tracetest.Kernel{Start: at + 16*us, End: at + 36*us})
		th.StreamSynchronize(at+8*us, at+38*us, 0, 7)
	}
	c := read(t, b.WriteTB(t))
	if err := c.FindUnits(); err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, path string) *Capture {
	t.Helper()
	c, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mutate(t *testing.T, c *Capture, edits ...Edit) *Mutant {
	t.Helper()
	m, err := c.Mutate(edits...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEdits holds the lengths of the five complete steps, in µs, against what the model says by hand.
func TestEdits(t *testing.T) {
	c := tiny(t)
	all := func(us float64) [5]float64 { return [5]float64{us, us, us, us, us} }
	for _, w := range []struct {
		edit  Edit
		steps [5]float64
		names string
	}{
		// B ends at 46, the host goes on at 48 instead of 38.
		{ScaleKernels(On{}, "B", 1.5), all(110), "B"},
		// A ends at 20, B runs 21–41: 43.
		{ScaleKernels(On{}, "A", 1.5), all(105), "A"},
		// A 12, B 24.
		{ScaleKernels(On{}, "", 1.2), all(106), "all kernels"},
		{ScaleKernels(On{Every: 2}, "B", 1.5), [5]float64{100, 110, 100, 110, 100}, "B"},
		{ScaleKernels(On{Once: true}, "B", 1.5), [5]float64{100, 100, 110, 100, 100}, "B"},
		// Calls of 6 µs: B is launched at 8, before A has ended.
		{Launches(On{}, 3), all(100), "aunch"},
		// Calls of 22 µs: B is launched at 24, starts 2.5 later and ends at 46.5. Its call ends at 46, the wait begins at 48
		// and takes its least, 1 µs: 49 instead of 38.
		{Launches(On{}, 11), all(111), "aunch"},
		{Stall(On{}, 7*us), all(107), "host"},
		// It waits for B from 6 to 36 + 3; the step's own wait begins 2 later, and takes 1: 42.
		{Sync(On{}, us), all(104), "cudaDeviceSynchronize"},
		// 37–42 after B; the wait ends 2 later.
		{Copy(On{}, true, 5*us), all(106), "HtoD"},
		{Copy(On{}, false, 5*us), all(106), "HtoD"},
		// 37–40 and 41–44.
		{Extra(On{}, 2, "void log(int)", 3*us), all(108), "log"},
		{Extra(On{Every: 3}, 1, "log", 2*us), [5]float64{100, 100, 103, 100, 100}, "log"},
		// A once more at 16–26, and B at 27–47; A once more at 37–47, after B.
		{Again(On{}, false), all(111), "runs 1"},
		{Again(On{}, true), all(111), "runs 1"},
		{Rename("A", "C"), all(100), "C"},
		{OtherStream("B"), all(100), ""},
		// A takes 30, and the gap of 1 µs is gone.
		{Fuse(On{}, "A", "B", 1), all(99), "fused_A"},
		{Fuse(On{}, "A", "B", 1.5), all(114), "fused_A"},
		// A ends at 15, the wait at 17 instead of 38.
		{Remove(On{}, "B"), all(79), "B"},
		// 62 µs lie between the wait and the next launch.
		{NoGap(On{}, 50*us), all(50), "host"},
		// A starts 3 after its call, which takes nothing, and ends at 13; B runs 14–34, and the next step begins.
		{FreeHost(), all(34), "host"},
		// The wait ends at 9.
		{NoWait("Synchronize"), all(71), "Synchronize"},
		// A ends at 15, the host goes on at 17 instead of 38.
		{Halve(On{}), all(79), "half"},
		{Halve(On{Every: 2}), [5]float64{100, 79, 100, 79, 100}, "half"},
		// The capture's work lasts from 5 to 1,536 µs. In step u, A starts at 1,005 + 100 u and gets (1,000 + 100 u) / 1,531 of
		// its 10 µs more, B at 1,016 + 100 u: together (30,220 + 3,000 u) / 1,531 µs.
		{Drift(2), [5]float64{119.739, 121.698, 123.658, 125.617, 127.577}, "all kernels"},
		{Both(ScaleKernels(On{}, "B", 1.5), Rename("B", "D")), all(110), "D"},
	} {
		t.Run(w.edit.Name, func(t *testing.T) {
			m := mutate(t, c, w.edit)
			sum := 0.0
			spans := m.spans(func(e *event) int64 { return e.at })
			for i, s := range spans {
				if math.Abs(s.ns/us-w.steps[i]) > 0.002 {
					t.Errorf("step %d takes %.3f µs, want %.3f", i, s.ns/us, w.steps[i])
				}
				sum += w.steps[i]
			}
			if len(spans) != 5 {
				t.Fatalf("%d steps", len(spans))
			}
			median := slices.Sorted(slices.Values(w.steps[:]))[2]
			if tr := m.Truth; math.Abs(tr.Work-sum/500) > 1e-4 || math.Abs(tr.Mean-sum/500) > 1e-4 || math.Abs(tr.Median-median/100) > 1e-4 {
				t.Errorf("truth %+v, want %.4f and a median of %.4f", tr, sum/500, median/100)
			}
			if w.names != "" && !slices.ContainsFunc(m.Truth.Names, func(n string) bool { return strings.Contains(n, w.names) }) {
				t.Errorf("names %v, want %s", m.Truth.Names, w.names)
			}
			sameFile(t, m)
		})
	}
}

// Calls on another thread and collectives that wait for each other move nothing here: there are no collectives.
func TestThreads(t *testing.T) {
	c := tiny(t)
	m := mutate(t, c, Threads("Synchronize"), Coupled())
	for _, s := range m.spans(func(e *event) int64 { return e.at }) {
		if s.ns != 100*us {
			t.Errorf("a step takes %.0f", s.ns)
		}
	}
	edited := read(t, m.WriteTB(t))
	count := map[string]int{}
	for i := range edited.events {
		if e := &edited.events[i]; e.kind == call {
			count[fmt.Sprintf("%s %d", e.name[:8], edited.lanes[e.lane].id&0xFFFFFF)]++
		}
	}
	if fmt.Sprint(count) != "map[cudaLaun 1:12 cudaMemc 1:1 cudaStre 8388609:6]" {
		t.Errorf("calls by thread: %v", count)
	}
	if at, ok := mutate(t, c, Remove(On{}, "B")).Moved(0, 1_105*us); !ok || at != 1_084*us {
		t.Errorf("the second step's A starts at %d, want 1,084 µs", at)
	}
}

// sameFile reads the mutant back: its rows are at the times that the truth was computed from, and nothing precedes its call.
func sameFile(t *testing.T, m *Mutant) {
	t.Helper()
	back := read(t, m.WriteTB(t))
	var want, got []string
	for i := range m.events {
		if e := &m.events[i]; !e.dead && !e.lost {
			want = append(want, fmt.Sprint(m.tables[e.table].name, e.name, e.at+m.shift, e.to+m.shift))
		}
	}
	for i := range back.events {
		e := &back.events[i]
		got = append(got, fmt.Sprint(back.tables[e.table].name, e.name, e.start, e.end))
		if e.kind == work && e.call < 0 && e.corr != 0 {
			t.Errorf("%s at %d has no call before it", e.name, e.start)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the file differs:\n%v\n%v", want, got)
	}
}

func TestWholeSteps(t *testing.T) {
	c := tiny(t)
	lengths := func(m *Mutant) (list []float64) {
		for _, s := range m.spans(func(e *event) int64 { return e.at }) {
			list = append(list, s.ns/us)
		}
		return list
	}
	m := mutate(t, c, Drop(On{Every: 2})) // steps 1 and 3; the last one has no end
	if got := lengths(m); !slices.Equal(got, []float64{100, 100, 100}) || m.Truth.Work != 1 {
		t.Errorf("dropped: %v, %+v", got, m.Truth)
	}
	sameFile(t, m)
	m = mutate(t, c, Repeat(On{}))
	if got := lengths(m); !slices.Equal(got, slices.Repeat([]float64{100}, 10)) || m.Truth.Work != 1 {
		t.Errorf("repeated: %v, %+v", got, m.Truth)
	}
	sameFile(t, m)
	if back := read(t, m.WriteTB(t)); back.Mark("^step$") != nil || len(back.units) != 11 {
		t.Errorf("%d marked steps", len(back.units))
	}
}

// A batch of 24 in place of 32 takes two steps for one: 20 of 60 steps, whose share of the time is the loss.
func TestBatchHalved(t *testing.T) {
	c := read(t, Markers(1).WriteTB(t))
	if err := c.Mark("^execute_context"); err != nil {
		t.Fatal(err)
	}
	kinds := c.Kinds()
	at := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == Marker(32) })
	if len(kinds) != 3 || at < 0 || kinds[at].Units != 19 { // of 20 the last has no end
		t.Fatalf("kinds %v", kinds)
	}
	m := mutate(t, c, Smaller(Marker(32), Marker(24)))
	if want := 1 + kinds[at].Share; math.Abs(m.Truth.Work-want) > 0.01 {
		t.Errorf("work %.3f, want %.3f", m.Truth.Work, want)
	}
	back := read(t, m.WriteTB(t))
	if err := back.Mark("^execute_context"); err != nil {
		t.Fatal(err)
	}
	for _, k := range back.Kinds() {
		if k.Name == Marker(32) || k.Name == Marker(24) && k.Units != 38 {
			t.Errorf("kind %v", k)
		}
	}
}

func TestLostEvents(t *testing.T) {
	c := tiny(t)
	for _, said := range []bool{false, true} {
		m := mutate(t, c, Lose(2, 1, said))
		lost := 0
		for i := range m.events {
			if e := &m.events[i]; e.lost {
				lost++
				if !m.isKernel(e) {
					t.Errorf("%s is lost", e.name)
				}
			} else if e.at != e.start || e.to != e.end {
				t.Errorf("%s moved", e.name)
			}
		}
		back := read(t, m.WriteTB(t))
		at := back.table("DIAGNOSTIC_EVENT")
		if n := len(back.tables[at].rows); n != map[bool]int{false: 1, true: 2}[said] {
			t.Errorf("%d messages", n)
		}
		if n := len(back.tables[back.table(kernelTable)].rows); lost < 2 || n != 12-lost || m.Truth.Work != 1 {
			t.Errorf("%d of 12 kernels lost, %d left, %+v", lost, n, m.Truth)
		}
	}
}

// A collective longer on one rank: three of 100 µs a step, the other rank as it was.
func TestCollectives(t *testing.T) {
	c, err := Recipes()[3].Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	m := mutate(t, c, Collectives(1, 2))
	for i := range m.events {
		e := &m.events[i]
		if e.kind == work && m.lanes[e.lane].id == 0 && (e.at != e.start || e.to != e.end) {
			t.Fatalf("%s moved on device 0", e.name)
		}
		if long := e.to - e.at; m.isKernel(e) && strings.Contains(e.name, "nccl") && m.lanes[e.lane].id == 1 && long != 2*(e.end-e.start) {
			t.Fatalf("%d ns instead of %d", long, e.end-e.start)
		}
	}
	if m.Truth.Work < 1.05 || math.Abs(m.Truth.Work-m.Truth.Mean) > 0.001 {
		t.Errorf("%+v", m.Truth)
	}
}

// Another export of the same capture: other rows first, other ids, another origin of time; nothing else.
func TestReexport(t *testing.T) {
	c := tiny(t)
	for _, e := range []Edit{Reexport(1), Shuffle(1)} {
		m := mutate(t, c, e)
		if m.Truth.Work != 1 || m.Truth.Mean != 1 {
			t.Errorf("%+v", m.Truth)
		}
		sameFile(t, m)
		back := read(t, m.WriteTB(t))
		k, was := back.tables[back.table(kernelTable)], c.tables[c.table(kernelTable)]
		same := true
		for i := range k.rows {
			was, _ := was.num(i, "start")
			is, _ := k.num(i, "start")
			same = same && was+m.shift == is
		}
		if same {
			t.Error("the rows are in the same order")
		}
		if old, is := was.cell(0, "shortName"), k.cell(0, "shortName"); m.renumber && is.(int64) < old.(int64)+10_000 {
			t.Errorf("text id %v", is)
		}
	}
}

func TestNoise(t *testing.T) {
	c := tiny(t)
	a, b, other := mutate(t, c, Noise(0.02, 1)), mutate(t, c, Noise(0.02, 1)), mutate(t, c, Noise(0.02, 2))
	if a.Truth.Work != b.Truth.Work || a.Truth.Work == other.Truth.Work || math.Abs(a.Truth.Work-1) > 0.02 || a.Truth.Work == 1 {
		t.Errorf("%v %v %v", a.Truth.Work, b.Truth.Work, other.Truth.Work)
	}
}

// B × (1 + x) makes a step 20 x µs longer: 7 % is x = 0.35. Launch calls have no effect until the queue is empty.
func TestSized(t *testing.T) {
	c := tiny(t)
	for name, f := range map[string]func(x float64) Edit{
		"kernel": func(x float64) Edit { return ScaleKernels(On{}, "B", x) },
		"launch": func(x float64) Edit { return Launches(On{}, x) },
	} {
		edit, truth, err := c.Sized(1.07, 1, 1.1, f)
		if err != nil || math.Abs(truth.Work-1.07) > 0.0014 {
			t.Fatalf("%s: %+v, %v", name, truth, err)
		}
		if m := mutate(t, c, edit); m.Truth.Work != truth.Work {
			t.Errorf("%s: %v, not %v", name, m.Truth.Work, truth.Work)
		}
	}
	if _, _, err := c.Sized(1.07, 1, 1.1, func(float64) Edit { return Rename("A", "C") }); err == nil {
		t.Error("a name makes nothing slower")
	}
	if _, err := c.Mutate(ScaleKernels(On{}, "no such kernel", 2)); err == nil {
		t.Error("nothing to change is no error")
	}
}

// Without an edit the replay is the identity, on every real capture; its units are what the traces are known to hold.
func TestRealCaptures(t *testing.T) {
	for name, kind := range map[string]string{
		"cs336_hoponga_exp2024_2": "746 kernels", "cs336zx_2_7B_clean": "1832 kernels", "cs336zx_2_7B": "1832 kernels", "nsysai_h100_2gpu_1s": "62 kernels",
		"rodinia_report3_native": "2 kernels", "nsysai_mfu_2gpu_before": "119 kernels", "nsysai_healthy_1pct": "2 kernels", "mordred_native_old_b": "",
		"cs336zx_2_7B_compile_cudagraph": "", "testcuda_2026_1": "", "alpa_r1_memcpy_nokernel": "", "cs336_jsun_4ae893": "1978 kernels",
	} {
		path := filepath.Join("..", "..", "..", "..", "shared", "traces", name+".sqlite")
		if _, err := os.Stat(path); err != nil {
			t.Skip("the real captures are not here")
		}
		c := read(t, path)
		if err := c.FindUnits(); kind != "" && (err != nil || c.Kinds()[0].Name != kind) {
			t.Errorf("%s: %v, %v", name, c.Kinds(), err)
		}
		m := mutate(t, c)
		for i := range m.events {
			if e := &m.events[i]; e.at != e.start || e.to != e.end {
				t.Errorf("%s: %s %s of %d–%d moves without an edit, to %d–%d", name, m.tables[e.table].name, e.name, e.start, e.end, e.at, e.to)
				break
			}
		}
		if slices.Contains([]string{"nsysai_healthy_1pct", "nsysai_mfu_2gpu_before", "mordred_native_old_b"}, name) { // inline names, the newest schema, the oldest
			sameRows(t, name, c, read(t, m.WriteTB(t)))
		}
	}
}

// sameRows compares every table that is kept, cell by cell; events may be behind the rows that have no time.
func sameRows(t *testing.T, name string, a, b *Capture) {
	t.Helper()
	for _, x := range a.tables {
		if slices.Contains(left, x.name) {
			continue
		}
		at := b.table(x.name)
		if at < 0 || len(b.tables[at].rows) != len(x.rows) {
			t.Errorf("%s: table %s differs", name, x.name)
			continue
		}
		count := map[string]int{}
		for i := range x.rows {
			count[fmt.Sprint(x.rows[i]...)]++
			count[fmt.Sprint(b.tables[at].rows[i]...)]--
		}
		for row, n := range count {
			if n != 0 {
				t.Errorf("%s: %s: row %s is there %d times too often", name, x.name, row, -n)
				break
			}
		}
	}
}

func BenchmarkMutant(b *testing.B) {
	path := filepath.Join("..", "..", "..", "..", "shared", "traces", "cs336_hoponga_exp2024_2.sqlite")
	if _, err := os.Stat(path); err != nil {
		b.Skip("the real capture is not here")
	}
	c, err := Read(path)
	if err == nil {
		err = c.FindUnits()
	}
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, err := c.Mutate(ScaleKernels(On{}, "", 1.1))
		if err == nil {
			_, err = m.WriteTo(b.TempDir())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func TestNamesAndKinds(t *testing.T) {
	for name, want := range map[string]string{
		"void at::native::reduce_kernel<(int)512, at::native::Op<float>>(T3)": "reduce_kernel", "nvjet_tst_192x192": "nvjet_tst_192x192", "Fan1(float *, int)": "Fan1", "": "",
	} {
		if got := Short(name); got != want {
			t.Errorf("%q is short for %q, want %q", got, name, want)
		}
	}
	c := tiny(t)
	if got := c.Pair(); got != [2]string{"A", "B"} { // six times, B and A five times
		t.Errorf("pair %v", got)
	}
	if got := c.Kinds(); len(got) != 1 || got[0] != (Kind{"2 kernels", 5, 1}) {
		t.Errorf("kinds %v", got)
	}
	for _, err := range []error{c.Mark("("), c.Mark("no such range"), c.Cut("C")} {
		if err == nil {
			t.Error("no error where there are no units")
		}
	}
	for _, r := range Recipes() { // as their comments say
		c, err := r.Capture(t.TempDir(), 1)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"markers": 59, "loop": 39, "graphs": 63, "ranks": 31, "training": 15}[r.Name]
		n := 0
		for _, k := range c.Kinds() {
			n += k.Units
		}
		if n != want {
			t.Errorf("%s: %d complete steps, want %d", r.Name, n, want)
		}
	}
}
