package analyze

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// piece is GPU work of a made-up engine: kernels of one launch (more than one where a CUDA graph was launched), or a copy.
type piece struct {
	proc, device, stream int64
	names                []string // none: a copy
	start, each          int64    // ns; kernels follow each other
}

// mark is an NVTX range, on the GPU's clock: it holds the launches of the work that starts in it.
type mark struct {
	proc       int64
	text       string
	start, end int64
}

// program makes up what a program runs, one stream after the other.
type program struct {
	pieces []piece
	marks  []mark
	proc   int64
	device int64
	at     int64
	rand   *rand.Rand
}

func newProgram() *program {
	return &program{proc: 1, at: 1_000_000, rand: rand.New(rand.NewPCG(1, 2))}
}

// run launches kernels of 10 µs, 1 µs apart.
func (e *program) run(names ...string) {
	for _, n := range names {
		e.one(n, 10*us)
	}
}

func (e *program) one(name string, duration int64) {
	e.pieces = append(e.pieces, piece{e.proc, e.device, 7, []string{name}, e.at, duration})
	e.at += duration + us
}

// graph launches a CUDA graph of kernels of 10 µs.
func (e *program) graph(names ...string) {
	e.pieces = append(e.pieces, piece{e.proc, e.device, 7, names, e.at, 10 * us})
	e.at += int64(len(names))*10*us + us
}

// beside launches work on another stream some time from now.
func (e *program) beside(stream, in, duration int64, names ...string) {
	e.pieces = append(e.pieces, piece{e.proc, e.device, stream, names, e.at + in, duration})
}

// wait lets the GPU idle, as a host does that has to think.
func (e *program) wait() { e.at += 50 * us }

// in puts a range around what do launches.
func (e *program) in(text string, do func()) {
	m := mark{proc: e.proc, text: text, start: e.at}
	do()
	m.end = e.at
	e.marks = append(e.marks, m)
}

// layers are n kernels of one kind of step: in every layer the same six, and a first and a last kernel around them.
func layers(kind string, n int) []string {
	list := []string{"embed_" + kind}
	for range n {
		list = append(list, "norm_"+kind, "qkv_"+kind, "attention_"+kind, "proj_"+kind, "up_"+kind, "down_"+kind)
	}
	return append(list, "head_"+kind)
}

// write makes a trace of it. What the host does lies 8 µs before the GPU's work.
func (e *program) write(tb testing.TB) string {
	b := tracetest.New()
	procs := map[int64]*tracetest.Process{}
	threads := map[int64]*tracetest.Thread{}
	thread := func(proc int64) *tracetest.Thread {
		if threads[proc] == nil {
			procs[proc] = b.Process(proc, "python")
			threads[proc] = procs[proc].Thread(proc, "python")
		}
		return threads[proc]
	}
	for _, p := range e.pieces {
		th, call := thread(p.proc), p.start-8*us
		place := tracetest.Place{Device: p.device, Stream: p.stream}
		switch len(p.names) {
		case 0:
			th.Memcpy(call, call+us/4, tracetest.Memcpy{Place: place, Start: p.start, End: p.start + p.each, Bytes: 4096, Kind: tracetest.HtoD, Dst: tracetest.DeviceMemory})
		case 1:
			th.Launch(p.names[0], call, call+us/4, tracetest.Kernel{Place: place, Start: p.start, End: p.start + p.each})
		default:
			var nodes []tracetest.Kernel
			for i, n := range p.names {
				at := p.start + int64(i)*p.each
				nodes = append(nodes, tracetest.Kernel{Place: place, Name: n, Start: at, End: at + p.each - us})
			}
			th.GraphLaunch(call, call+us/4, nodes...)
		}
	}
	for _, m := range e.marks {
		thread(m.proc).Range(m.text, m.start-8*us-us/2, m.end-8*us-us/2)
	}
	return b.WriteTB(tb)
}

// unitsOf finds the units of a trace, as Run does.
func unitsOf(tb testing.TB, path string, opt Options) *workunit.Result {
	tb.Helper()
	tags, err := newTagger(&opt)
	if err != nil {
		tb.Fatal(err)
	}
	t, err := trace.Open(context.Background(), path, trace.Options{Tag: tags.tag, CoarseTag: tags.coarse()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { t.Close() })
	in, _, err := prepare(context.Background(), t, &opt, tags)
	if err != nil {
		tb.Fatal(err)
	}
	return in.Units
}

// kinds lists the kinds of unit, the one with most kept units first: "kernels×units", with phase, batch and tokens where
// markers tell.
func kinds(r *workunit.Result) string {
	groups := slices.Clone(r.Groups)
	slices.SortStableFunc(groups, func(a, b workunit.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.Kernels, a.Kernels))
	})
	var list []string
	for _, g := range groups {
		text := fmt.Sprintf("%d×%d", g.Kernels, g.Count)
		if r.Kind == workunit.KindNVTX {
			text = g.Phase
			if g.Batch >= 0 {
				text += fmt.Sprintf(" bs=%d", g.Batch)
			}
			if g.Tokens >= 0 {
				text += fmt.Sprintf(" toks=%d", g.Tokens)
			}
			text += fmt.Sprintf(" %d×%d", g.Kernels, g.Count)
		}
		list = append(list, text)
	}
	return r.Kind + ": " + strings.Join(list, ", ")
}

// unitCase is a made-up engine and the units that it has by its making.
type unitCase struct {
	name string
	want string // as kinds writes it, or how that begins; nothing closes the last unit of a capture, see workunit.Rule
	make func(e *program)
}

// marked are steps under ranges of an engine: 2 of prefill, 12 of decode; 5 of decode follow each prefill.
func marked(prefill, decode string) func(e *program) {
	return func(e *program) {
		for i := range 24 {
			text, kind := decode, "d"
			if i%6 == 0 {
				text, kind = prefill, "p"
			}
			e.in(strings.ReplaceAll(text, "%d", fmt.Sprint(i)), func() { e.run(layers(kind, 2)...) })
			e.wait()
		}
	}
}

var unitCases = []unitCase{
	// Markers. Of 24 steps 4 are prefills of 14 kernels, 20 are decodes; nothing closes the last.
	{"vLLM", "nvtx: decode bs=8 14×19, prefill bs=1 toks=512 14×4", marked("execute_context_1(500)_generation_0(0)", "execute_context_0(0)_generation_8(8)")},
	{"vLLM 0.11 to 0.13", "nvtx: decode bs=8 14×19, prefill bs=1 14×4", marked("execute_new_1_cached_0", "execute_new_0_cached_8")},
	{"vLLM scopes", "nvtx: step 14×23", marked("gpu_model_runner: forward", "gpu_model_runner: forward")},
	{"layer hooks", "nvtx: step toks=8 14×19, step toks=512 14×4",
		marked("{'Module': 'Qwen3ForCausalLM', 'Inputs': [[512], [512]]}", "{'Module': 'Qwen3ForCausalLM', 'Inputs': [[8], [8]]}")},
	{"SGLang", "nvtx: decode bs=8 14×19, prefill bs=1 toks=512 14×4", marked("step[EXTEND bs=1 toks=500]", "step[DECODE bs=8]")},
	{"SGLang prebuilt", "nvtx: decode bs=8 14×19, prebuilt bs=1 14×4", marked("step[PREBUILT bs=1]", "step[DECODE bs=8]")},
	{"SGLang scheduler", "nvtx: step 14×23", marked("scheduler.run_batch", "scheduler.run_batch")},
	{"TensorRT-LLM", "nvtx: decode bs=8 14×19, prefill bs=1 toks=512 14×4",
		marked("[Executor] _forward_step %d: 1 ctx reqs, 500 ctx tokens, 0 gen reqs", "[Executor] _forward_step %d: 0 ctx reqs, 0 ctx tokens, 8 gen reqs")},
	{"TensorRT-LLM first flow", "nvtx: decode bs=8 14×19, prefill bs=1 14×4", marked("_forward_step: 1 ctx reqs, 0 gen reqs", "_forward_step: 0 ctx reqs, 8 gen reqs")},
	{"TensorRT-LLM pipeline", "nvtx: step 14×23", marked("_forward_step_inter_pp", "_forward_step_inter_pp")},
	{"TensorRT-LLM C++", "nvtx: step 14×23", marked("executeContext", "executeContext")},
	{"ATOM", "nvtx: decode bs=8 14×19, mixed bs=9 14×4", marked("decode[bs=9/16 tok=520 p=1 d=8]", "decode[bs=8/16 tok=8 d=8]")},
	{"ATOM dummies", "nvtx: decode bs=8 14×19, idle bs=1 toks=8 14×4", marked("dummy_prefill[bs=1 tok=8]", "decode[bs=8/16 tok=8 d=8]")},
	{"Megatron", "nvtx: decode 14×19, prefill 14×4", marked("Prefill", "Decode")},
	{"MLC", "nvtx: decode bs=8 14×19, prefill bs=1 14×4", marked("BatchPrefill num_seqs=1", "BatchDecode num_seqs=8")},
	{"lmdeploy", "nvtx: step 14×23", marked("forward_eager", "forward_cudagraph")},
	{"by hand", "nvtx: decode 14×19, prefill 14×4", marked("[Prefill]", "decode_step_%d")},
	{"by hand, with sizes", "nvtx: decode bs=8 14×19, prefill toks=512 14×4", marked("prefill tokens=500", "Decode/step_%d bs=8")},
	{"context and generation", "nvtx: decode 14×19, prefill 14×4", marked("context", "generation")},
	{"torch.profiler", "nvtx: step 14×23", marked("ProfilerStep#%d", "ProfilerStep#%d")},
	// The program's own ranges.
	{"own ranges", "nvtx: step 14×23", marked("batch %d of 24", "batch %d of 24")},
	{"own ranges around layers", "nvtx: step 12×11", func(e *program) {
		for i := range 12 {
			e.in(fmt.Sprintf("token_%d_processing", i), func() {
				for k := range 2 {
					e.in(fmt.Sprintf("layer_%d_forward", k), func() { e.run("norm", "qkv", "attention", "up", "act", "down") })
				}
			})
			e.wait()
		}
	}},
	// The kernel sequence. A training step of 30 kernels, 20 times; the first is open where the anchor is not its first kernel.
	{"training loop", "kernel: 46×19", func(e *program) {
		for range 20 {
			e.run(layers("forward", 3)...)
			e.run(layers("backward", 3)...)
			e.run("clip", "adam", "adam", "adam", "adam", "zero")
			e.wait()
		}
	}},
	{"queued training loop", "kernel: 46×19", func(e *program) {
		for range 20 {
			e.run(layers("forward", 3)...)
			e.run(layers("backward", 3)...)
			e.run("clip", "adam", "adam", "adam", "adam", "zero")
		}
	}},
	{"micro-batches", "kernel: 69×19", func(e *program) {
		for range 20 {
			for range 4 {
				e.run(layers("forward", 1)...)
			}
			for range 4 {
				e.run(layers("backward", 1)...)
			}
			e.run("clip", "adam", "adam", "adam", "zero")
		}
	}},
	{"graphs by node", "graph: 21×19", func(e *program) {
		for range 20 {
			e.graph(layers("decode", 3)...)
			e.run("sample")
			e.wait()
		}
	}},
	{"draft and verification", "kernel: 51×", func(e *program) {
		for range 40 {
			for range 1 + e.rand.IntN(4) {
				e.run("draft_embed", "draft_attention", "draft_mlp", "draft_head")
			}
			e.run(layers("verify", 6)...)
			e.run("accept")
			e.wait()
		}
	}},
	{"continuous batching", "kernel: 27×42, 31×17", func(e *program) {
		for range 60 {
			names := layers("decode", 4)
			if e.rand.IntN(4) == 0 { // prompts join
				for i := len(names) - 1; i >= 0; i-- {
					if names[i] == "attention_decode" {
						names = slices.Insert(names, i, "attention_prefill")
					}
				}
			}
			e.run(names...)
			e.run("sample")
			e.wait()
		}
	}},
	{"experts", "kernel: 55×12", func(e *program) {
		for range 40 {
			e.run("embed")
			for range 4 {
				e.run("norm", "qkv", "attention", "proj", "router")
				for range 3 + e.rand.IntN(4) {
					e.run("expert_up", "expert_down")
				}
			}
			e.run("head", "sample")
			e.wait()
		}
	}},
	{"two processes", "kernel: 20×38", func(e *program) {
		for p := range int64(2) {
			e.proc, e.device, e.at = p+1, p, 1_000_000+p*7*us
			for range 20 {
				e.run(layers("decode", 3)...)
			}
		}
	}},
	{"prologue", "kernel: 20×19", func(e *program) {
		for i := range 60 {
			for range 5 {
				e.run(fmt.Sprintf("init_%c", 'a'+i%7))
			}
		}
		for range 20 {
			e.run(layers("decode", 3)...)
		}
	}},
	{"only a prologue", "none: ", func(e *program) {
		for i := range 7 {
			for range 40 {
				e.run(fmt.Sprintf("init_%c", 'a'+i))
			}
		}
	}},
	{"streams interleave", "kernel: 22×19", func(e *program) {
		for range 20 {
			start := e.at
			e.beside(21, e.rand.Int64N(150*us), 20*us, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
			e.beside(31, e.rand.Int64N(150*us), 5*us)
			e.beside(41, e.rand.Int64N(150*us), 3*us, "cast_batch")
			e.run(layers("decode", 3)...)
			e.at = max(e.at, start)
		}
	}},
	{"short and plain", "kernel: 2×10", func(e *program) {
		for range 11 {
			e.run("a", "b")
		}
	}},
	{"evaluation", "kernel: 20×", func(e *program) {
		for i := range 40 {
			e.run(layers("train", 3)...)
			if i%10 == 9 {
				for range 4 {
					e.run(layers("test", 3)...)
				}
			}
			e.wait()
		}
	}},
	{"half of the steps lack their second half", "kernel: 40×20, 20×19", func(e *program) {
		for i := range 40 {
			e.run(layers("first", 3)...)
			if i%2 == 0 {
				e.run(layers("second", 3)...)
			}
			e.wait()
		}
	}},
	{"kernel every 2nd step", "kernel: 20×39", every(2)},
	{"kernel every 3rd step", "kernel: 20×39", every(3)},
	{"kernel every 4th step", "kernel: 20×39", every(4)},
	{"kernel every 10th step", "kernel: 20×39", every(10)},
}

// every runs 40 steps of 20 kernels, with one of 2 µs more every k-th.
func every(k int) func(e *program) {
	return func(e *program) {
		for i := range 40 {
			e.run(layers("decode", 3)...)
			if i%k == 0 {
				e.one("log", 2*us)
			}
		}
	}
}

func TestUnitsOfEngines(t *testing.T) {
	for _, c := range longtest.Some(unitCases, 12) {
		t.Run(c.name, func(t *testing.T) {
			e := newProgram()
			c.make(e)
			r := unitsOf(t, e.write(t), Options{})
			if got := kinds(r); !strings.HasPrefix(got, c.want) || c.want == "" {
				t.Errorf("%s\nwant %s\n(%s)", got, c.want, r.Why)
			}
		})
	}
}

// The units of the real traces, by the ranges around their steps or by hand: the periods of the kernel sequence.
func TestUnitsOfRealTraces(t *testing.T) {
	for name, want := range map[string]string{
		"nsysai_mfu_2gpu_before":         "kernel: 119×32",
		"nsysai_mfu_2gpu_after":          "kernel: 119×28",
		"nsysai_h100_2gpu_1s":            "kernel: 62×46, 59×4",
		"nsysai_healthy_1pct":            "kernel: 2×199",
		"cs336zx_2_7B":                   "kernel: 1832×3",
		"cs336zx_2_7B_nvtx":              "kernel: 1832×3",
		"cs336zx_2_7B_clean":             "kernel: 1832×9",
		"cs336zx_2_7B_compile_cudagraph": "graph: 3×9",
		"cs336_hoponga_exp2023_4":        "kernel: 746×11",
		"cs336_hoponga_exp2024_2":        "kernel: 746×11",
		"cs336_jsun_4ae893":              "nvtx: step 1978×3", // Warm-up Step 1 to 5
		"rodinia_report2_native":         "kernel: 2×4094",
		"rodinia_report3_native":         "kernel: 2×4094",
		"ranks/jacobi_mpi_report1":       "kernel: 1×1998",
		"ranks/jacobi_mpi_report6":       "kernel: 1×1998",
		"sglang_baseline_report":         "none: ", // start-up of an engine
		"mordred_exp2023_4":              "none: ", // 12 kernels
		"fuser_h200_report1":             "none: ", // 19 kernels
		"alpa_r1_memcpy_nokernel":        "none: ",
		"testcuda_2026_1":                "none: ",
	} {
		t.Run(name, func(t *testing.T) {
			r := unitsOf(t, shared(t, "traces", name+".sqlite"), Options{})
			if got := kinds(r); got != want {
				t.Errorf("%s, want %s (%s)", got, want, r.Why)
			}
			if r.Kind != workunit.KindNone && (r.Coverage < 0.5 || r.Coverage > 1) {
				t.Errorf("units cover %.3f of the compute time", r.Coverage)
			}
		})
	}
}

// spread lists where the units of a result start and what they are, moved back by shift.
func spread(r *workunit.Result, shift int64) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Kind, r.Period, r.Primary, r.Coverage)
	for i := range r.Units {
		u := &r.Units[i]
		fmt.Fprintln(&b, u.Device, u.Start-shift, u.End-shift, u.Group, u.State, u.Number)
	}
	return b.String()
}

// relabelled are names for names: words that no rule knows.
func relabelled(names map[string]string, name string) string {
	if name == "" || strings.HasPrefix(name, "nccl") {
		return name
	}
	if names[name] == "" {
		n := len(names) * 7919 % 676
		names[name] = "zq" + string(rune('a'+n%26)) + string(rune('a'+n/26))
	}
	return names[name]
}

// The units do not change when the clock is another one, rows come in another order or kernels are called something else.
func TestUnitsStay(t *testing.T) {
	for _, c := range unitCases {
		if !slices.Contains(longtest.Some([]string{"training loop", "queued training loop", "streams interleave", "two processes", "half of the steps lack their second half", "kernel every 3rd step"}, 2), c.name) {
			continue
		}
		e := newProgram()
		c.make(e)
		want := unitsOf(t, e.write(t), Options{})
		edited := func(edit func(e *program)) *workunit.Result {
			e := newProgram()
			c.make(e)
			edit(e)
			return unitsOf(t, e.write(t), Options{})
		}
		const shift = 123_456_789_012
		if got := spread(edited(func(e *program) {
			for i := range e.pieces {
				e.pieces[i].start += shift
			}
		}), shift); got != spread(want, 0) {
			t.Errorf("%s, at another time:\n%s\nwant\n%s", c.name, got, spread(want, 0))
		}
		if got := spread(edited(func(e *program) {
			e.rand.Shuffle(len(e.pieces), func(i, k int) { e.pieces[i], e.pieces[k] = e.pieces[k], e.pieces[i] })
		}), 0); got != spread(want, 0) {
			t.Errorf("%s, in another order:\n%s\nwant\n%s", c.name, got, spread(want, 0))
		}
		names := map[string]string{}
		if got := spread(edited(func(e *program) {
			for i := range e.pieces {
				for k := range e.pieces[i].names {
					e.pieces[i].names[k] = relabelled(names, e.pieces[i].names[k])
				}
			}
		}), 0); got != spread(want, 0) {
			t.Errorf("%s, under other names:\n%s\nwant\n%s", c.name, got, spread(want, 0))
		}
		for _, at := range []int{1, len(e.pieces) / 3, len(e.pieces) / 2, len(e.pieces) - 2} {
			for _, name := range []string{"stray", e.pieces[len(e.pieces)/4].names[0]} {
				got := edited(func(e *program) {
					p := e.pieces[at]
					p.names, p.each = []string{name}, 500
					p.start = e.pieces[at].start + e.pieces[at].each + 100
					e.pieces = append(e.pieces, p)
				})
				a, b := got.Groups[got.Primary], want.Groups[want.Primary]
				if got.Kind != want.Kind || a.Kernels != b.Kernels || a.Count < b.Count-2 || a.Count > b.Count+2 {
					t.Errorf("%s, %s inserted after %d: %s, want %s", c.name, name, at, kinds(got), kinds(want))
				}
			}
		}
	}
}
