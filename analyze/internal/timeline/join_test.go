package timeline_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const us = 1_000

func open(tb testing.TB, b *tracetest.Builder) *trace.Trace {
	tb.Helper()
	t, err := trace.Open(context.Background(), b.WriteTB(tb), trace.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	return t
}

// one is a trace of one process with one thread.
func one(opts ...tracetest.Option) (*tracetest.Builder, *tracetest.Thread) {
	b := tracetest.New(opts...)
	return b, b.Process(100, "p").Thread(100, "")
}

// Both processes number their calls from 1: each kernel is joined to the call of its own process.
func TestJoinKeepsProcessesApart(t *testing.T) {
	x := open(t, tracetest.TwoProcs())
	for i, call := range timeline.Join(x).Kernel {
		if call == trace.None {
			t.Fatalf("kernel %d has no call", i)
		}
		proc := x.Threads[x.API.Thread(int(call))].Proc
		if proc != x.Kernels.Proc(i) || x.API.Corr(int(call)) != x.Kernels.Corr(i) {
			t.Errorf("kernel %d of process %d joined to a call of process %d", i, x.Kernels.Proc(i), proc)
		}
	}
}

// Correlation ids side by side use an array, scattered ones a sorted list: both find the first call of the id.
func TestJoinDenseAndSparse(t *testing.T) {
	for _, step := range []int64{1, 3, 1 << 40} {
		b, th := one()
		for i := range int64(50) {
			id := 1 + i*step
			b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: 100 * i, End: 100*i + 10, Correlation: id})
			b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: 100*i + 50, End: 100*i + 60, Correlation: id})
			b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process(), Correlation: id}, Name: "k", Start: 100*i + 20, End: 100*i + 30})
		}
		// Ids below, between and above those of the calls, and none at all.
		for _, id := range []int64{1 + 50*step, 1<<62 + 1, 0} {
			b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process(), Correlation: id}, Name: "k", Start: 9000, End: 9001})
		}
		x := open(t, b)
		for i, call := range timeline.Join(x).Kernel {
			switch {
			case i >= 50 && call != trace.None:
				t.Errorf("step %d: kernel %d joined to call %d, want none", step, i, call)
			case i < 50 && (call == trace.None || x.API.Start(int(call)) != 100*int64(i)):
				t.Errorf("step %d: kernel %d joined to call %d", step, i, call)
			}
		}
	}
}

// CUPTI gives the id 0 to what has none. Several calls with it say nothing of the work; one may be the first of ids that
// were numbered anew.
func TestJoinOfTheIDZero(t *testing.T) {
	for calls, want := range map[int]int32{1: 0, 2: trace.None} {
		b, th := one()
		zero := tracetest.Row{"correlationId": tracetest.Int(0)}
		for i := range int64(calls) {
			b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: 10 * i, End: 10*i + 5, Set: zero})
		}
		b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process()}, Name: "k", Start: 100, End: 110, Set: zero})
		if got := timeline.Join(open(t, b)).Kernel[0]; got != want {
			t.Errorf("%d calls with the id 0: kernel joined to call %d, want %d", calls, got, want)
		}
	}
}

// Work may run in any order: each piece finds the call of its id, however far that is from the one found before.
func TestJoinInAnyOrder(t *testing.T) {
	for _, step := range []int64{1, 1 << 40} {
		b, th := one()
		const n = 400
		for i, at := range rand.New(rand.NewPCG(1, 1)).Perm(n) {
			id := 1 + int64(i)*step
			b.API(tracetest.API{Thread: th, Name: "cudaLaunchKernel_v7000", Start: int64(100 * i), End: int64(100*i + 10), Correlation: id})
			b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: th.Process(), Correlation: id}, Name: "k", Start: int64(100_000 + 10*at), End: int64(100_001 + 10*at)})
		}
		x := open(t, b)
		for i, call := range timeline.Join(x).Kernel {
			if call == trace.None || x.API.Corr(int(call)) != x.Kernels.Corr(i) {
				t.Fatalf("step %d: kernel %d joined to call %d", step, i, call)
			}
		}
	}
}

// Every table of GPU work is joined, and a graph's nodes share the call of its launch.
func TestJoinOfEveryTable(t *testing.T) {
	b, th := one()
	th.GraphLaunch(0, 5, tracetest.Kernel{Name: "a", Start: 10, End: 20}, tracetest.Kernel{Name: "b", Start: 20, End: 30})
	th.Memcpy(10, 12, tracetest.Memcpy{Start: 30, End: 40})
	th.Memset(20, 22, tracetest.Memset{Start: 40, End: 50})
	th.GraphLaunchWhole(30, 32, tracetest.GraphTrace{Start: 50, End: 60})
	x := open(t, b)
	c := timeline.Join(x)
	for i, got := range [][]int32{c.Kernel, c.Copy, c.Set, c.Graph} {
		for _, call := range got {
			if call == trace.None || x.API.Start(int(call)) != int64(10*i) {
				t.Errorf("table %d: call %d", i, call)
			}
		}
	}
	if len(c.Kernel) != 2 || c.Kernel[0] != c.Kernel[1] {
		t.Errorf("calls of the nodes: %v", c.Kernel)
	}
}

func TestNothingJoinsWithoutTheKeys(t *testing.T) {
	for _, opt := range []tracetest.Option{
		tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"),
		tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "correlationId"),
		tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_RUNTIME", "correlationId"),
		tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME"),
	} {
		for _, call := range timeline.Join(open(t, tracetest.Tiny(opt))).Kernel {
			if call != trace.None {
				t.Fatalf("joined to %d", call)
			}
		}
	}
}

// stack is the names of the ranges around a call, innermost first.
func stack(x *trace.Trace, c *timeline.Contexts, call int) (names []string) {
	c.Walk(int32(call), func(name int32) bool {
		names = append(names, x.Ranges.Names[name].Text)
		return true
	})
	return names
}

// rangeName is a name of its own for range i, without digits, which canonical names do not keep.
func rangeName(i int) string {
	name := "range "
	for _, digit := range strconv.Itoa(i) {
		name += string('g' + digit - '0')
	}
	return name
}

func TestContexts(t *testing.T) {
	type ranges struct {
		name       string
		start, end int64
		startEnd   bool
	}
	for _, c := range []struct {
		name       string
		ranges     []ranges
		start, end int64 // of the call
		want       string
	}{
		{"none", nil, 10, 20, ""},
		{"nested", []ranges{{"a", 0, 100, false}, {"b", 5, 50, false}, {"c", 6, 8, false}}, 10, 20, "ba"},
		{"ended before", []ranges{{"a", 0, 10, false}}, 10, 20, ""},
		{"starts with the call", []ranges{{"a", 10, 30, false}}, 10, 20, "a"},
		{"ends with the call", []ranges{{"a", 0, 20, false}}, 10, 20, "a"},
		{"ends within the call", []ranges{{"a", 0, 100, false}, {"b", 5, 15, false}}, 10, 20, "a"},
		{"starts within the call", []ranges{{"a", 0, 100, false}, {"b", 11, 15, false}}, 10, 20, "a"},
		{"equal starts: the longer is outside", []ranges{{"b", 5, 50, false}, {"a", 5, 100, false}, {"c", 5, 30, false}}, 10, 20, "cba"},
		{"equal ranges keep their order", []ranges{{"a", 5, 50, false}, {"b", 5, 50, false}}, 10, 20, "ba"},
		{"still open", []ranges{{"a", 0, tracetest.Open, false}, {"b", 5, 50, false}}, 10, 20, "ba"},
		{"start/end ranges that overlap", []ranges{{"a", 0, 50, true}, {"b", 5, 80, true}}, 10, 20, "ba"},
		{"the older of them has ended", []ranges{{"a", 0, 8, true}, {"b", 5, 80, true}}, 10, 20, "b"},
		{"ended under an open one, above another", []ranges{{"a", 0, 99, true}, {"b", 2, 8, true}, {"c", 5, 80, false}}, 10, 20, "ca"},
		{"without length", []ranges{{"a", 0, 99, false}, {"b", 10, 10, false}}, 10, 20, "a"},
	} {
		b, th := one()
		for _, r := range c.ranges {
			if r.startEnd {
				th.StartEnd(r.name, r.start, r.end)
			} else {
				th.Range(r.name, r.start, r.end)
			}
		}
		other := th.Process().Thread(101, "")
		other.Range("z", 0, 1000) // of another thread: never on the stack
		th.Call("cudaMalloc", c.start, c.end)
		x := open(t, b)
		got := ""
		for _, n := range stack(x, timeline.NewContexts(x), 0) {
			got += n
		}
		if got != c.want {
			t.Errorf("%s: stack %q, want %q", c.name, got, c.want)
		}
	}
}

// Ranges of the same names in the same places are the same nodes, however many there are; on another thread they are
// others.
func TestNodesArePlaces(t *testing.T) {
	b, th := one()
	for i := range int64(100) {
		th.Range("step", 100*i, 100*i+90)
		th.Range("attention", 100*i+10, 100*i+40)
		th.Range("copy", 100*i+20, 100*i+30)
		th.Range("copy", 100*i+50, 100*i+60)
		th.Call("cudaMalloc", 100*i+22, 100*i+23)
	}
	other := th.Process().Thread(101, "")
	other.Range("step", 0, 90)
	other.Call("cudaMalloc", 10, 20)
	c := timeline.NewContexts(open(t, b))
	if n := c.Nodes(); n != 5 { // step, attention, copy in each of the two, and the other thread's step
		t.Errorf("%d nodes", n)
	}
}

// Nodes are entered from the outermost in, and left the other way round; each knows its ranges, also those that start
// after the last call. One that crosses another, or whose thread is not known, leaves the sums incomplete.
func TestDescend(t *testing.T) {
	build := func() (*tracetest.Builder, *tracetest.Thread) {
		b, th := one()
		th.Range("step", 0, 90)
		th.Range("copy", 10, 20)
		th.Call("cudaMalloc", 30, 31)
		th.Range("step", 100, 180)
		th.Range("attention", 110, 170)
		th.Range("copy", 120, 125)
		th.Range("copy", 172, 180)
		return b, th
	}
	b, _ := build()
	x := open(t, b)
	c := timeline.NewContexts(x)
	if !c.Whole() {
		t.Error("all ranges nest, and the sums are not whole")
	}
	var told []string
	name := func(node int32) string { return x.Ranges.Names[c.NameOf(node)].Text }
	c.Descend(func(node int32) {
		s := c.Ranges(node)
		told = append(told, fmt.Sprint(name(node), " ", s.Count, " ", s.Time))
	}, func(node int32) { told = append(told, "/"+name(node)) })
	if got, want := strings.Join(told, ", "), "step 2 170, copy 2 18, /copy, attention 1 60, copy 1 5, /copy, /attention, /step"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	b, th := build()
	th.StartEnd("lap", 175, 190) // behind the call: its context stays as it is
	x = open(t, b)
	c = timeline.NewContexts(x)
	if c.Whole() || strings.Join(stack(x, c, 0), " ") != "step" {
		t.Errorf("whole %v, call inside %v", c.Whole(), stack(x, c, 0))
	}
	b, th = build()
	th.StartEnd("lap", 15, 95)
	if timeline.NewContexts(open(t, b)).Whole() {
		t.Error("ranges cross, and the sums are whole")
	}
}

func TestWalkStops(t *testing.T) {
	b, th := one()
	th.Range("a", 0, 100)
	th.Range("b", 1, 99)
	th.Call("cudaMalloc", 2, 3)
	s := timeline.NewContexts(open(t, b))
	visits := 0
	s.Walk(0, func(int32) bool { visits++; return false })
	s.Walk(trace.None, func(int32) bool { visits++; return true })
	if visits != 1 {
		t.Errorf("%d visits", visits)
	}
}

// Whatever ranges do, the stack of a call is all ranges of its thread that enclose it, latest start first. In every second
// trace the ranges of each thread nest, and calls may outlast them all the same.
func TestContextsAgainstLooking(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b, th := one()
		threads := []*tracetest.Thread{th, th.Process().Thread(101, ""), th.Process().Thread(102, "")}
		n := 0
		for _, th := range threads {
			if seed%2 == 0 {
				for range 10 {
					at := rng.Int64N(90)
					th.StartEnd(rangeName(n), at, at+1+rng.Int64N(60))
					n++
				}
				continue
			}
			var nest func(from, to int64, depth int)
			nest = func(from, to int64, depth int) {
				for at := from; at < to && depth < 4; {
					at += rng.Int64N(6)
					end := min(to, at+rng.Int64N(40))
					if at >= end {
						continue
					}
					th.Range(rangeName(n), at, end)
					n++
					nest(at, end, depth+1)
					at = end
				}
			}
			nest(0, 120, 0)
		}
		for range 60 {
			at := rng.Int64N(120)
			threads[rng.IntN(3)].Call("cudaMalloc", at, at+1+rng.Int64N(10))
		}
		x := open(t, b)
		byName := make(map[string]int, n)
		for r := range x.Ranges.Len() {
			byName[x.Ranges.Names[x.Ranges.Name(r)].Text] = r
		}
		if len(byName) != n {
			t.Fatalf("%d names of %d ranges", len(byName), n)
		}
		c := timeline.NewContexts(x)
		for call := range x.API.Len() {
			want := map[int]bool{}
			for r := range x.Ranges.Len() {
				if x.Ranges.Thread(r) == x.API.Thread(call) && x.Ranges.Start(r) <= x.API.Start(call) && x.Ranges.End(r) >= x.API.End(call) {
					want[r] = true
				}
			}
			last := int64(1000)
			for _, name := range stack(x, c, call) {
				r := byName[name]
				if !want[r] {
					t.Fatalf("seed %d: range %d does not enclose call %d, or comes twice", seed, r, call)
				}
				delete(want, r)
				if at := x.Ranges.Start(r); at > last {
					t.Fatalf("seed %d: range %d out of order", seed, r)
				} else {
					last = at
				}
			}
			if len(want) > 0 {
				t.Fatalf("seed %d: call %d misses ranges %v", seed, call, want)
			}
		}
	}
}

// Many ranges that start at one moment cost no more than their sorting.
func TestRangesThatStartTogether(t *testing.T) {
	b, th := one()
	const n = 20_000
	for i := range int64(n) {
		th.Range("r", 0, 1000+i)
	}
	th.Call("cudaMalloc", 10, 20)
	x := open(t, b)
	depth := 0
	timeline.NewContexts(x).Walk(0, func(int32) bool { depth++; return true })
	if depth != n {
		t.Errorf("depth %d", depth)
	}
}

// Tiny's documentation: of 755 µs of kernels 705 lie in a range; step 1 has 385, of which 145 are its own, attention
// 200, mlp 40, step 2 320. Pairs: steps 7 and 5 kernels, attention 2, mlp 1.
func TestAttribute(t *testing.T) {
	x := open(t, tracetest.Tiny())
	span, ok := timeline.WorkSpan(x)
	if !ok || span != (interval.Interval{Start: 100 * us, End: 1100 * us}) {
		t.Fatalf("span %v", span)
	}
	calls, contexts := timeline.Join(x), timeline.NewContexts(x)
	n := timeline.Attribute(x, calls, contexts, span)
	if n.Total != 755*us || n.Attributed != 705*us || n.TotalCount != 13 || n.AttributedCount != 12 || pairsOf(n) != 15 {
		t.Errorf("total %d of %d, attributed %d of %d, %d pairs", n.Total, n.TotalCount, n.Attributed, n.AttributedCount, pairsOf(n))
	}
	want := map[string][4]int64{"step": {705 * us, 465 * us, 12, 9}, "attention": {200 * us, 200 * us, 2, 2}, "mlp": {40 * us, 40 * us, 1, 1}}
	got := map[string][4]int64{}
	for _, r := range n.Ranges {
		name, _, _ := strings.Cut(x.Ranges.Names[r.Name].Text, " ")
		sum := got[name]
		for i, v := range []int64{r.Inclusive, r.Self, r.Pairs, r.SelfCount} {
			sum[i] += v
		}
		got[name] = sum
	}
	if !maps.Equal(got, want) {
		t.Errorf("inclusive, self and counts %v, want %v", got, want)
	}
	// In a window only what starts in it counts: gemm 365-400 and softmax 460-500.
	n = timeline.Attribute(x, calls, contexts, interval.Interval{Start: 350 * us, End: 500 * us})
	if n.Total != 75*us || n.Attributed != 75*us || n.TotalCount != 2 {
		t.Errorf("in the window: total %d of %d, attributed %d", n.Total, n.TotalCount, n.Attributed)
	}
}

// A graph traced as a whole counts as one kernel of the range around its launch.
func TestAttributeGraphs(t *testing.T) {
	b, th := one()
	th.Range("step", 0, 100)
	th.GraphLaunchWhole(10, 20, tracetest.GraphTrace{Start: 200, End: 290})
	x := open(t, b)
	n := timeline.Attribute(x, timeline.Join(x), timeline.NewContexts(x), interval.Interval{Start: 200, End: 290})
	if n.Attributed != 90 || len(n.Ranges) != 1 || n.Ranges[0].Self != 90 || n.Ranges[0].Inclusive != 90 {
		t.Errorf("%+v", *n)
	}
}
