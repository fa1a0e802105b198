package workunit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const us = 1_000

// search finds the units of a capture, or cuts it at an anchor.
func search(in *workunit.Input, at *workunit.Anchor) *workunit.Result {
	s := workunit.NewSearch(in)
	defer s.Free()
	if at != nil {
		return s.At(at)
	}
	return s.Find()
}

// find opens a trace and looks for its units.
func find(tb testing.TB, path, spec string) *workunit.Result {
	tb.Helper()
	r := search(load(tb, path, spec), nil)
	check(tb, r)
	return r
}

// load opens a trace for the search.
func load(tb testing.TB, path, spec string) *workunit.Input {
	tb.Helper()
	s, err := workunit.ParseSpec(spec)
	if err != nil {
		tb.Fatal(err)
	}
	tag := func(text string) uint32 {
		if s.Kind == workunit.KindNVTX && s.Pattern.MatchString(text) {
			return 1
		}
		return 0
	}
	t, err := trace.Open(context.Background(), path, trace.Options{Tag: tag})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	in := &workunit.Input{Trace: t, Spec: s, Marked: func(tag uint32) bool { return tag == 1 }}
	in.Kinds = make([]kernelname.Info, len(t.Kernels.Names))
	isComm := make([]bool, len(t.Kernels.Names))
	for i, n := range t.Kernels.Names {
		in.Kinds[i] = kernelname.Classify(n.Name)
		isComm[i] = in.Kinds[i].Comm
	}
	in.Calls = timeline.Join(t)
	span, _ := timeline.WorkSpan(t)
	in.Timeline = timeline.New(t, in.Calls, span, isComm)
	return in
}

// check holds what must be true of every result.
func check(tb testing.TB, r *workunit.Result) {
	tb.Helper()
	if r.Why == "" {
		tb.Error("a result without why")
	}
	if (r.Kind == workunit.KindNone) != (len(r.Units) == 0) {
		tb.Errorf("kind %s with %d units", r.Kind, len(r.Units))
	}
	var kept int64
	for i := range r.Units {
		u := &r.Units[i]
		if u.Time() < 0 || u.LastWork < u.Start {
			tb.Errorf("unit %d: [%d, %d), last work %d", i, u.Start, u.End, u.LastWork)
		}
		if i > 0 {
			if p := &r.Units[i-1]; p.Index == u.Index && p.Proc == u.Proc && p.End > u.Start {
				tb.Errorf("units %d and %d overlap: [%d, %d), [%d, %d)", i-1, i, p.Start, p.End, u.Start, u.End)
			}
		}
		if u.State == workunit.Kept {
			kept++
			if u.Group < 0 {
				tb.Errorf("unit %d is kept and of no group", i)
			}
		}
	}
	for g := range r.Groups {
		kept -= r.Groups[g].Count
		if x := &r.Groups[g]; len(x.Signature) != 16 || x.Example < 0 {
			tb.Errorf("group %+v", *x)
		}
	}
	if kept != 0 {
		tb.Errorf("groups lack %d kept units", kept)
	}
	for d := range r.Of {
		members := r.Of[d].Walk()
		for w := range r.Timeline.Devices[d].Len() {
			u := members.Of(w)
			if u == trace.None {
				continue
			}
			if x, work := &r.Units[u], r.Timeline.Devices[d].Work(w); int(x.Index) != d || work.Start < x.Start {
				tb.Errorf("work at %d is in the unit that starts at %d on device %d", work.Start, x.Start, x.Device)
			}
		}
	}
}

// The serving trace's truths are in its documentation: 16 decode steps of 3 sizes, 4 prefills of 2 sizes, 4 mixed steps,
// 3 more decodes of size 8 at the end, a warm-up of one prefill of each size and one decode of 8; on 2 devices.
func TestServingMarkers(t *testing.T) {
	for name, b := range map[string]*tracetest.Builder{"node": tracetest.Serving(), "graph": tracetest.ServingGraphMode()} {
		r := find(t, b.WriteTB(t), "")
		if r.Kind != "nvtx" {
			t.Fatalf("%s: kind %s: %s", name, r.Kind, r.Why)
		}
		got := map[string]int64{}
		for _, g := range r.Groups {
			got[fmt.Sprintf("%s %d %d", g.Phase, g.Batch, g.Tokens)] = g.Count
		}
		want := map[string]int64{
			"prefill 1 512": 8, "prefill 1 2048": 8, "mixed 17 512": 8,
			"decode 8 -1": 36, "decode 16 -1": 32, "decode 32 -1": 32, // of the 3 decodes at the end, nothing closes the last
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: groups %v, want %v", name, got, want)
		}
		cut, warmup, other := r.Trimmed()
		if cut != 2 || warmup != 6 || other != 0 {
			t.Errorf("%s: cut %d, warm-up %d, other %d; want 2, 6, 0", name, cut, warmup, other)
		}
		if p := r.Groups[r.Primary]; p.Phase != "decode" || p.Batch != 32 {
			t.Errorf("%s: primary %+v", name, p)
		}
		want71 := map[string]int64{"node": 71, "graph": 5}[name] // 66 kernels in the graph, 5 after it
		if k := r.Groups[r.Primary].Kernels; k != want71 {
			t.Errorf("%s: a decode step has %d kernels, want %d", name, k, want71)
		}
	}
}

// step launches n kernels of 10 µs each on a device, 1 µs apart, and returns the time after them.
func step(th *tracetest.Thread, device, at int64, names ...string) int64 {
	for _, n := range names {
		th.Launch(n, at-5*us, at-4*us, tracetest.Kernel{Place: tracetest.Place{Device: device}, Start: at, End: at + 10*us})
		at += 11 * us
	}
	return at
}

func TestNestedMarkersCountOnce(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	for i := range 6 {
		begin := at
		next := step(th, 0, at, "a", "b", "c")
		th.Range(fmt.Sprintf("ProfilerStep#%d", i), begin-20*us, next+20*us)
		th.Range("step[DECODE bs=4]", begin-10*us, next+10*us)
		th.Range("step[DECODE bs=4]", begin-8*us, next+5*us)
		at = next + 100*us
	}
	r := find(t, b.WriteTB(t), "")
	if r.Kind != "nvtx" || len(r.Units) != 6 || !strings.HasPrefix(r.Name, "step[") {
		t.Fatalf("%s %s: %d units, want 6 of SGLang's: %s", r.Kind, r.Name, len(r.Units), r.Why)
	}
	// 3 kernels of 11 µs, then 100 µs; the last one is not closed.
	for i, u := range r.Units[:5] {
		if u.Time() != 133*us || u.State != workunit.Kept {
			t.Errorf("unit %d: %d ns, %s", i, u.Time(), u.State)
		}
	}
	if r.Units[5].State != workunit.Cut {
		t.Errorf("the last unit is %s", r.Units[5].State)
	}
}

// Steps are launched one ahead: the next step's first kernel runs on another stream while this one's last still does.
func TestPipelinedStepsBelongToTheirMarker(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	for i := range int64(8) {
		at := (1000 + 100*i) * us
		host := (100 + 50*i) * us
		th.Range("execute_context_0(0)_generation_2(2)", host, host+40*us)
		th.Launch("forward", host+1*us, host+2*us, tracetest.Kernel{Start: at, End: at + 90*us})
		th.Launch("sample", host+3*us, host+4*us, tracetest.Kernel{Place: tracetest.Place{Stream: 9}, Start: at + 90*us, End: at + 130*us})
	}
	r := find(t, b.WriteTB(t), "")
	if len(r.Units) != 8 || r.Groups[0].Kernels != 2 {
		t.Fatalf("%d units of %d kernels, want 8 of 2", len(r.Units), r.Groups[0].Kernels)
	}
	for i, u := range r.Units[:7] {
		if u.Time() != 100*us || u.LastWork != u.Start+130*us {
			t.Errorf("unit %d: %d ns, last work after %d", i, u.Time(), u.LastWork-u.Start)
		}
	}
	if u := r.Units[7]; u.State != workunit.Cut { // no next one ends it after 100 µs: its own work takes 130
		t.Errorf("the last unit, of %d ns, is %s", u.Time(), u.State)
	}
}

func TestWorkOfOtherThreadsBelongsToTheMarker(t *testing.T) {
	b := tracetest.New()
	p := b.Process(1, "python")
	main, worker := p.Thread(1, "main"), p.Thread(2, "autograd")
	at := int64(1000 * us)
	for i := range 5 {
		begin := at
		at = step(main, 0, at, "forward")
		at = step(worker, 0, at, "backward", "backward2")
		main.Range(fmt.Sprintf("ProfilerStep#%d", i), begin-10*us, at)
		at += 50 * us
	}
	r := find(t, b.WriteTB(t), "")
	if len(r.Units) != 5 || r.Groups[0].Kernels != 3 {
		t.Fatalf("%d units, %+v", len(r.Units), r.Groups)
	}
}

func TestUserSpecs(t *testing.T) {
	path := tracetest.Serving().WriteTB(t)
	for _, c := range []struct {
		spec, kind, phase string
		kernels           int64
	}{
		// 18 of the 66 + 1 steps have a prefill part; each of them launches 67 kernels on each of 2 devices.
		{"nvtx:execute_context_1", "nvtx", "prefill", 67},
		{"nvtx:no such range", "none", "", 0},
		{"kernel:argmax|ArgMaxOps", "kernel", "step", 67},
		{"kernel:no such kernel", "none", "", 0},
		{"graph", "graph", "step", 138},
		{"none", "none", "", 0},
	} {
		r := find(t, path, c.spec)
		if r.Kind != c.kind || !strings.Contains(r.Why, "--unit") {
			t.Errorf("%s: %s: %s", c.spec, r.Kind, r.Why)
			continue
		}
		if c.kind == "none" {
			continue
		}
		if p := r.Groups[r.Primary]; !strings.HasPrefix(p.Phase, c.phase) || p.Kernels != c.kernels {
			t.Errorf("%s: primary %+v, want phase %s and %d kernels", c.spec, p, c.phase, c.kernels)
		}
	}
	if r := find(t, tracetest.Tiny().WriteTB(t), "graph"); r.Kind != "none" || !strings.Contains(r.Why, "no CUDA graph") {
		t.Errorf("graph: %s: %s", r.Kind, r.Why)
	}
}

// By turns a step runs eight kernels, and two others behind the same first one: that is one step of ten kernels, 30 µs
// longer than its larger half. Where the second half has most of the first's kernels, the two stay apart.
func TestAlternatingKindsAreOneUnit(t *testing.T) {
	for _, c := range []struct {
		second  []string
		units   int
		kernels int64
	}{
		{[]string{"a", "y", "z"}, 20, 11},
		{[]string{"a", "b", "c", "d", "e", "f", "g"}, 40, 8},
	} {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		at := int64(1000 * us)
		for range 20 {
			at = step(th, 0, at, "a", "b", "c", "d", "e", "f", "g", "h") + 40*us
			at = step(th, 0, at, c.second...) + 40*us
		}
		in := load(t, b.WriteTB(t), "")
		r := search(in, nil)
		check(t, r)
		if p := r.Groups[r.Primary]; len(r.Units) != c.units || p.Kernels != c.kernels {
			t.Errorf("second %q: %d units, main %+v: %s", c.second, len(r.Units), p, r.Why)
		}
		again := search(in, &r.Anchors[0])
		if len(again.Units) != len(r.Units) || again.Groups[again.Primary].Signature != r.Groups[r.Primary].Signature {
			t.Errorf("second %q, cut at its own anchor: %d units, %s", c.second, len(again.Units), again.Why)
		}
	}
}

func TestParseSpec(t *testing.T) {
	for text, ok := range map[string]bool{
		"": true, "auto": true, "graph": true, "none": true, "nvtx:^step": true, "kernel:gemm|gemv": true,
		"nvtx:": false, "nvtx:(": false, "kernel": false, "step": false, "graph:1": false,
	} {
		if _, err := workunit.ParseSpec(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if s, _ := workunit.ParseSpec("nvtx:a:b"); s.Pattern.String() != "a:b" {
		t.Errorf("pattern %q", s.Pattern)
	}
}

// Piecewise graphs: three graphs make a step, at two batch sizes whose graphs differ.
func TestPiecewiseGraphs(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	graph := func(names ...string) {
		var nodes []tracetest.Kernel
		begin := at
		for _, n := range names {
			nodes = append(nodes, tracetest.Kernel{Name: n, Start: at, End: at + 10*us})
			at += 11 * us
		}
		th.GraphLaunch(begin-5*us, begin-4*us, nodes...)
	}
	for i := range 12 {
		size := []string{"small", "large"}[i/4%2]
		graph("norm", "qkv_"+size, "rope")
		at = step(th, 0, at, "attention")
		graph("o_"+size, "norm", "up_"+size, "down_"+size)
		at = step(th, 0, at, "sample")
		at += 30 * us
	}
	r := find(t, b.WriteTB(t), "")
	if r.Kind != "graph" {
		t.Fatalf("%s: %s", r.Kind, r.Why)
	}
	// 4 small, 4 large, 4 small steps of 9 kernels; a unit starts at the second graph, which has most time. A unit that
	// begins in one size and ends in the other occurs once each, and is other work.
	if len(r.Groups) != 2 || r.Groups[0].Kernels != 9 || r.Groups[1].Kernels != 9 {
		t.Fatalf("groups %+v", r.Groups)
	}
	if r.Groups[0].Count+r.Groups[1].Count < 8 {
		t.Errorf("groups %+v", r.Groups)
	}
}

// Eager decode steps between prefills of other length: runs of a period, and what lies between recurs or does not.
func TestRunsOfDecode(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	for round := range 6 {
		prefill := []string{"embed_p"}
		for range 4 {
			prefill = append(prefill, "norm_p", "qkv_p", "attention_p", "o_p", "up_p", "down_p")
		}
		for range round { // chunks: no two prefills alike
			prefill = append(prefill, "chunk_p")
		}
		at = step(th, 0, at, prefill...)
		for range 12 + round {
			at = step(th, 0, at, "embed", "norm", "qkv", "attention", "o", "up", "down", "norm", "qkv", "attention", "o", "up", "down", "head", "sample")
			at += 20 * us
		}
	}
	r := find(t, b.WriteTB(t), "")
	if r.Kind != "kernel" || r.Period.Kernels != 15 {
		t.Fatalf("%s %+v: %s", r.Kind, r.Period, r.Why)
	}
	p := r.Groups[r.Primary]
	if p.Kernels != 15 || p.Count < 12+13+14+15+16+17-12 {
		t.Errorf("primary %+v", p)
	}
}

func TestTwoProcessesOnOneDevice(t *testing.T) {
	b := tracetest.New()
	for i := range int64(2) {
		th := b.Process(10+i, "python").Thread(10+i, "python")
		for k := range int64(40) {
			at := (1000 + 100*k + 37*i) * us
			for j, name := range []string{"x", "y", "z"} {
				s := at + int64(j)*7*us
				th.Launch(name, s-3*us, s-2*us, tracetest.Kernel{Place: tracetest.Place{Stream: 7 + i}, Start: s, End: s + 5*us})
			}
		}
	}
	r := find(t, b.WriteTB(t), "")
	if r.Kind != "kernel" || r.Period.Kernels != 3 || r.Period.Tracks != 2 || len(r.Groups) != 1 {
		t.Fatalf("%s %+v %+v: %s", r.Kind, r.Period, r.Groups, r.Why)
	}
}

func TestTileVariantsAreComparedByFamily(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	tiles := []string{"64x64", "128x64", "128x128", "64x128", "256x64"}
	for i := range 30 {
		gemm := func(k int) string {
			h := uint32(i*4+k+1) * 2654435761
			return "ampere_sgemm_" + tiles[(h>>16^h>>5)%uint32(len(tiles))] + "_tn"
		}
		at = step(th, 0, at, "softmax_kernel", gemm(0), "rope_kernel", gemm(1), "silu_kernel", gemm(2), "norm_kernel", gemm(3))
	}
	r := find(t, b.WriteTB(t), "")
	if r.Kind != "kernel" || r.Period.Kernels != 8 || !r.Period.Families || !strings.Contains(r.Why, "tile variants") {
		t.Fatalf("%s %+v: %s", r.Kind, r.Period, r.Why)
	}
}

// Steps of eight kernels of 10 µs, the sixth of which evaluates for 600 µs. Of twelve, the eleven alike hold
// 880 ÷ 1,560 µs = 56 % of the compute time, of which units need 75 %, but 880 ÷ 960 = 92 % of what runs often. Of nine
// it is not believed: a start-up, too, does much once and some things a few times.
func TestAStepThatEvaluatesHidesNoOthers(t *testing.T) {
	for _, x := range []struct {
		steps int
		kind  string
	}{{12, "kernel"}, {9, "none"}} {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		at := int64(1000 * us)
		for i := range x.steps {
			at = step(th, 0, at, "norm", "qkv", "rope", "attention", "out", "up", "silu", "down")
			if i == 5 {
				th.Launch("evaluate", at-5*us, at-4*us, tracetest.Kernel{Start: at, End: at + 600*us})
				at += 601 * us
			}
		}
		r := find(t, b.WriteTB(t), "")
		if r.Kind != x.kind || strings.Contains(r.Why, "fewer than 3 places count no time") != (x.kind == "kernel") {
			t.Fatalf("%d steps: %s: %s", x.steps, r.Kind, r.Why)
		}
		if x.kind == "kernel" && (r.Period.Kernels != 8 || r.Groups[r.Primary].Count < 10) {
			t.Errorf("%+v, %d units", r.Period, r.Groups[r.Primary].Count)
		}
	}
}

func TestNarrowAndSteady(t *testing.T) {
	r := find(t, tracetest.GraphHidden().WriteTB(t), "")
	// Graph launches at 10020, 11020, … 19020 µs; the last one is not closed.
	span, ok := r.Steady()
	if want := (interval.Interval{Start: 10_020 * us, End: 19_020 * us}); !ok || span != want {
		t.Errorf("steady %v, want %v", span, want)
	}
	r.Narrow(interval.Interval{Start: 12_000 * us, End: 15_020 * us})
	if n := r.Groups[r.Primary].Count; n != 3 { // 12020, 13020, 14020: the end is not in
		t.Errorf("%d units in the window, want 3", n)
	}
	r.Narrow(interval.Interval{Start: 0, End: 1})
	if _, ok := r.Steady(); ok || r.Primary != -1 {
		t.Errorf("units in an empty window: primary %d", r.Primary)
	}
}

// The head runs the base's step of twelve kernels, but every second one lacks its second half, and nothing pauses: by itself
// it is as good as a step of 18 kernels. Cut at the base's anchor it has 20 steps of 12 kernels and 20 of 6.
func TestFindWithAnchorOfAnotherCapture(t *testing.T) {
	trace := func(half bool, rename string) string {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		at := int64(1000 * us)
		for i := range 40 {
			at = step(th, 0, at, rename+"a", "b", "c", "d", "e", "f")
			if !half || i%2 == 0 {
				at = step(th, 0, at, "g", "h", "i", "j", "k", "l")
			}
		}
		return b.WriteTB(t)
	}
	base := find(t, trace(false, ""), "")
	if len(base.Anchors) != 3 || base.Anchors[0].Count != 40 || base.Anchors[0].Coverage != 1 {
		t.Fatalf("anchors %+v", base.Anchors)
	}
	head := load(t, trace(true, ""), "")
	anchor := workunit.Anchor{Names: []string{"a"}}
	r := search(head, &anchor)
	check(t, r)
	if len(r.Groups) != 2 || len(r.Units) != 40 || r.Groups[0].Kernels != 12 || r.Groups[1].Kernels != 6 || r.Groups[0].Count != 20 || r.Groups[1].Count != 19 {
		t.Errorf("%d units, groups %+v: %s", len(r.Units), r.Groups, r.Why)
	}
	r = search(load(t, trace(true, "new_"), ""), &anchor)
	if r.Kind != workunit.KindNone || !strings.Contains(r.Why, "no kernel of the capture is called a,") {
		t.Errorf("%s: %s", r.Kind, r.Why)
	}
	for _, a := range []workunit.Anchor{{}, {Names: []string{"a", "l"}}, {Names: []string{"[CUDA graph]"}}, {Names: []string{"a"}, Families: true}} {
		if r := search(head, &a); r.Kind != workunit.KindNone && !a.Families || r.Why == "" {
			t.Errorf("%+v: %s: %s", a, r.Kind, r.Why)
		}
	}
}

// Captures of one program whose steps of twelve kernels start at another kernel each, since the GPU waits there, and in
// which another kernel takes longest: any two have an anchor in common.
func TestCapturesHaveAnAnchorInCommon(t *testing.T) {
	names := strings.Split("abcdefghijkl", "")
	var all [][]workunit.Anchor
	for first := range names {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		at := int64(1000 * us)
		for range 40 {
			for i, n := range names {
				if i == first {
					at += 100 * us
				}
				length := int64(10 * us)
				if i == (first+3)%len(names) {
					length *= 2
				}
				th.Launch(n, at-5*us, at-4*us, tracetest.Kernel{Start: at, End: at + length})
				at += length + us
			}
		}
		r := find(t, b.WriteTB(t), "")
		if r.Anchors[0].Names[0] != names[first] {
			t.Errorf("units start at %s, want %s", r.Anchors[0].Names[0], names[first])
		}
		for k, other := range all {
			if !slices.ContainsFunc(other, func(x workunit.Anchor) bool {
				return slices.ContainsFunc(r.Anchors, func(y workunit.Anchor) bool { return slices.Equal(x.Names, y.Names) })
			}) {
				t.Errorf("captures %d and %d: %v and %v", k, first, other, r.Anchors)
			}
		}
		all = append(all, r.Anchors)
	}
}

// Six steps run a forward pass of four kernels and four more; ten forward passes follow. Of 88 kernels of 10 µs the steps
// hold 48, 55 % of the time. With forward passes of 20 µs they hold 72 of 152, 47 %, and the 16 passes 84 %: by itself the head
// has other units than the base, and says what it would be in the base's.
func TestFindWithRangesOfAnotherCapture(t *testing.T) {
	trace := func(forward int64) *workunit.Input {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(1, "python")
		at := int64(1000 * us)
		pass := func(i int) {
			begin := at
			for _, n := range []string{"a", "b", "c", "d"} {
				th.Launch(n, at-5*us, at-4*us, tracetest.Kernel{Start: at, End: at + forward*us})
				at += (forward + 1) * us
			}
			th.Range(fmt.Sprint("Forward ", i), begin-6*us, at-6*us)
		}
		for i := range 16 {
			begin := at
			if pass(i); i < 6 {
				at = step(th, 0, at, "e", "f", "g", "h")
				th.Range(fmt.Sprint("Warm-up Step ", i), begin-7*us, at-7*us)
			}
			at += 100 * us
		}
		return load(t, b.WriteTB(t), "")
	}
	if r := search(trace(10), nil); r.Name != "Warm-up Step #" || len(r.Units) != 6 {
		t.Fatalf("base: %d of %s: %s", len(r.Units), r.Name, r.Why)
	}
	in := trace(20)
	if r := search(in, nil); r.Name != "Forward #" || len(r.Units) != 16 {
		t.Fatalf("head: %d of %s: %s", len(r.Units), r.Name, r.Why)
	}
	if r := search(in, nil); len(r.Anchors) < 3 || r.Anchors[1].Names[0] != "Warm-up Step #" || r.Anchors[1].Count != 6 || r.Anchors[2].Ranges {
		t.Errorf("head's anchors are %+v: want the steps too, and a kernel", r.Anchors)
	}
	ranges := func(name string) *workunit.Anchor { return &workunit.Anchor{Names: []string{name}, Ranges: true} }
	if r := search(in, ranges("Warm-up Step #")); r.Name != "Warm-up Step #" || len(r.Units) != 6 || r.Groups[r.Primary].Kernels != 8 {
		t.Errorf("head by the base's ranges: %d of %s: %s", len(r.Units), r.Name, r.Why)
	}
	if r := search(in, ranges("Backward #")); r.Kind != workunit.KindNone || !strings.Contains(r.Why, "Backward #") {
		t.Errorf("%s: %s", r.Name, r.Why)
	}
}

// Of twelve steps of forty kernels, every third lacks one, as where rows were lost: two thirds launch the same kernels, too few
// to be units by themselves. If another capture has these ranges as its units, they are the units here.
func TestRangesOfAnotherCaptureWhereKernelsWereLost(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	for i := range 12 {
		begin := at
		for k := range 40 {
			if i%3 != 2 || k != 7+i {
				th.Launch(fmt.Sprint("k", string(rune('A'+k))), at-5*us, at-4*us, tracetest.Kernel{Start: at, End: at + 10*us})
			}
			at += 11 * us
		}
		th.Range(fmt.Sprint("loop ", i), begin-6*us, at-6*us)
	}
	in := load(t, b.WriteTB(t), "")
	if r := search(in, nil); r.Kind != workunit.KindKernel {
		t.Errorf("by itself: %s %s: %s", r.Kind, r.Name, r.Why)
	}
	if r := search(in, &workunit.Anchor{Names: []string{"loop #"}, Ranges: true}); r.Kind != workunit.KindNVTX || len(r.Units) != 12 {
		t.Errorf("by the other's ranges: %s %s, %d units: %s", r.Kind, r.Name, len(r.Units), r.Why)
	}
}

// Equal work has equal signatures; another grid, another number of bytes or one kernel more has another one. Units are
// numbered from the first, kept or not.
func TestSignatureOfAUnit(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	for i := range int64(12) {
		grid, bytes := int64(8), int64(4096)
		switch i {
		case 4:
			grid = 16
		case 6:
			bytes = 8192
		}
		begin := at
		th.Memcpy(at-5*us, at-4*us, tracetest.Memcpy{Start: at, End: at + us, Bytes: bytes, Kind: tracetest.HtoD})
		th.Launch("gemm", at-3*us, at-2*us, tracetest.Kernel{Start: at + 2*us, End: at + 10*us, Grid: [3]int64{grid, 1, 1}})
		at += 12 * us
		if i == 8 {
			at = step(th, 0, at, "gemm")
		}
		th.Range(fmt.Sprintf("ProfilerStep#%d", i), begin-6*us, at-6*us)
	}
	r := find(t, b.WriteTB(t), "")
	same := map[uint64][]int32{}
	for i := range r.Units {
		u := &r.Units[i]
		if int(u.Number) != i {
			t.Errorf("unit %d has number %d", i, u.Number)
		}
		same[u.Signature] = append(same[u.Signature], u.Number)
	}
	if len(same) != 4 || len(same[r.Units[0].Signature]) != 9 {
		t.Errorf("units of equal signature: %v", same)
	}
}
