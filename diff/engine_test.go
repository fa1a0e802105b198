package diff_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Names of the engine's kernels.
const (
	engineEmbed = "void at::native::<unnamed>::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, (int)2, (int)2, (int)-2, (bool)1>(T1 *, long)"
	engineNorm  = "void vllm::rms_norm_kernel<c10::BFloat16>(T1 *, const T1 *, const T1 *, float, int, int)"
	engineGEMM  = "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT"
	engineGEMM2 = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT" // another tile
	engineFlash = "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, cutlass::bfloat16_t>, (bool)0, (bool)1>(flash::Flash_fwd_params)"
	engineQK    = "void pytorch_flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, cutlass::bfloat16_t>>(pytorch_flash::Flash_fwd_params)"
	engineMerge = "void pytorch_flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<(int)128, (int)64, (int)128, (int)4, cutlass::bfloat16_t>>(pytorch_flash::Flash_fwd_params)"
	engineSilu  = "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel<c10::BFloat16>, (bool)1>(T1 *, const T1 *, int)"
	engineAdd   = "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char *, (unsigned long)3>>(int, T2, T3)"
	engineTop   = "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, (int)4>>(T3)"
)

// engine is a small decoding engine on one GPU, whose steps are known to the nanosecond: it copies its inputs, launches
// layers of (norm, GEMM, attention, GEMM, activation), copies the token back and waits for it.
type engine struct {
	steps    int
	seed     int64
	gap      int64   // ns that the host sleeps before each step
	clock    int64   // Hz of the GPU, where counters are recorded
	waits    string  // what it calls while it sleeps; the scheduler is traced then
	extra    int     // elementwise kernels more per step, 2 µs each
	sync     bool    // waits for the device in the middle of each step
	two      bool    // attention is two kernels of 15 and 10 µs instead of one of 20
	gemm     string  // name of the GEMMs
	pageable bool    // copies from pageable memory
	graph    bool    // launches the layers as one CUDA graph
	pieces   int     // or as so many
	add      int64   // ns of one long elementwise kernel per step, which has the name of the extra ones
	scale    float64 // of the GEMMs' time; 0 means 1
	all      float64 // of every kernel's time
	layers   int     // 0 means 6
	batches  []int64 // of the steps, in turn, under vLLM's markers; kernels take 1 + batch/16 times as long
}

// jitter of a step's kernels: up to 0.4 % either way, by a rule.
func (e *engine) jitter(step int, ns int64) int64 {
	d := (int64(step)*7919 + e.seed*104729) % 9 // 0..8
	return ns + ns*(d-4)/1000
}

func (e *engine) build(opts ...tracetest.Option) *tracetest.Builder {
	b := tracetest.New(opts...)
	b.GPU(tracetest.GPU{ID: 0, Name: "NVIDIA H100 80GB HBM3"})
	th := b.Process(100+e.seed, "engine").Thread(100+e.seed, "engine")
	host, free := int64(1_000_000), int64(0)
	or := func(v, def float64) float64 {
		if v == 0 {
			return def
		}
		return v
	}
	var step int
	var nodes []tracetest.Kernel
	kernel := func(name string, ns int64) {
		k := tracetest.Kernel{Name: name}
		k.Start = max(host+3_000, free+1_000)
		if len(e.batches) > 0 {
			ns += ns * e.batches[step%len(e.batches)] / 16
		}
		k.End = k.Start + int64(float64(e.jitter(step, ns))*or(e.all, 1)+0.5)
		free = k.End
		if nodes != nil {
			nodes = append(nodes, k)
			return
		}
		th.Launch(name, host, host+2_500, k)
		host += 4_000
	}
	mem := tracetest.Pinned
	if e.pageable {
		mem = tracetest.Pageable
	}
	copied := func(kind tracetest.CopyKind, bytes int64) {
		m := tracetest.Memcpy{Bytes: bytes, Kind: kind, Src: mem, Dst: tracetest.DeviceMemory}
		if kind == tracetest.DtoH {
			m.Src, m.Dst = m.Dst, m.Src
		}
		m.Start = max(host+3_000, free+1_000)
		m.End = m.Start + 1_500
		free = m.End
		th.Memcpy(host, host+3_000, m)
		host += 4_000
	}
	gemm := engineGEMM
	if e.gemm != "" {
		gemm = e.gemm
	}
	layers := e.layers
	if layers == 0 {
		layers = 6
	}
	for step = range e.steps {
		if e.waits != "" {
			th.OSRT(e.waits, host+5_000, host+5_000+e.gap)
			if step == 0 {
				th.Ran(1, 0, 1<<40)
			}
		}
		host += 20_000 + e.gap
		begin := host
		copied(tracetest.HtoD, 4096)
		kernel(engineEmbed, 6_000)
		at := host
		if e.graph {
			nodes = []tracetest.Kernel{{}}
			host += 8_000
		}
		for l := range layers {
			kernel(engineNorm, 5_000)
			kernel(gemm, int64(30_000*or(e.scale, 1)))
			if e.two {
				kernel(engineQK, 15_000)
				kernel(engineMerge, 10_000)
			} else {
				kernel(engineFlash, 20_000)
			}
			kernel(gemm, int64(40_000*or(e.scale, 1)))
			kernel(engineSilu, 8_000)
			if e.sync && l == layers/2 {
				th.DeviceSynchronize(host, free+5_000, 0)
				host = free + 6_000
			}
		}
		if e.graph {
			nodes = nodes[1:]
			for p, n := int64(0), max(e.pieces, 1); p < int64(n); p++ {
				th.GraphLaunch(at+8_000*p, at+8_000*p+7_000, nodes[len(nodes)*int(p)/n:len(nodes)*int(p+1)/n]...)
			}
			nodes = nil
		}
		if e.add > 0 {
			kernel(engineAdd, e.add)
		}
		for range e.extra {
			kernel(engineAdd, 2_000)
		}
		kernel(engineTop, 7_000)
		copied(tracetest.DtoH, 64)
		th.EventSynchronize(host, free+4_000, 0, 7)
		host = free + 5_000
		if n := len(e.batches); n > 0 {
			th.Range(fmt.Sprintf("execute_context_0(0)_generation_%d(%[1]d)", e.batches[step%n]), begin-100, host)
		}
	}
	for at := int64(0); e.clock > 0 && at < free; at += 50_000 {
		b.Counter(tracetest.Counter{Name: "GPC Clock Frequency [MHz]", At: at, Value: e.clock})
	}
	return b
}

// reportOf analyses a synthetic trace.
// servingTrace is a capture of a server, as its recipe of package tracetest writes it.
var servingTrace = filepath.Join("..", "testdata", "serving.sqlite")

func reportOf(tb testing.TB, b *tracetest.Builder, opt analyze.Options) *report.Report {
	tb.Helper()
	return reportOfFile(tb, b.WriteTB(tb), opt)
}

func reportOfFile(tb testing.TB, path string, opt analyze.Options) *report.Report {
	tb.Helper()
	r, err := analyze.Run(context.Background(), path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return r.Report
}

// rewritten analyses an edited copy of a trace.
func rewritten(tb testing.TB, path string, edits ...tracetest.Edit) *report.Report {
	tb.Helper()
	to := filepath.Join(tb.TempDir(), filepath.Base(path))
	if err := tracetest.Rewrite(path, to, edits...); err != nil {
		tb.Fatal(err)
	}
	return reportOfFile(tb, to, analyze.Options{})
}

// diffOf compares one report a side.
func diffOf(tb testing.TB, base, head *report.Report, opt diff.Options) *comparison.Comparison {
	tb.Helper()
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, opt)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// primaryRow of a comparison.
func primaryRow(tb testing.TB, c *comparison.Comparison, metric string) *comparison.Row {
	tb.Helper()
	for i := range c.Primary {
		if c.Primary[i].Metric == metric {
			return &c.Primary[i]
		}
	}
	tb.Fatalf("no row %s: %s", metric, c.Cause)
	return nil
}

// kernelRow of a comparison by its name on either side, or nil.
func kernelRow(c *comparison.Comparison, name string) *comparison.Kernel {
	for i := range c.Kernels {
		k := &c.Kernels[i]
		if k.BaseName != nil && *k.BaseName == name || k.HeadName != nil && *k.HeadName == name {
			return k
		}
	}
	return nil
}

func finding(c *comparison.Comparison, id string) *comparison.Structural {
	for i := range c.Structure {
		if c.Structure[i].ID == id {
			return &c.Structure[i]
		}
	}
	return nil
}

func attributed(c *comparison.Comparison, kind, id string) float64 {
	for i := range c.Attribution.Rows {
		if r := &c.Attribution.Rows[i]; r.Kind == kind && r.ID == id {
			return r.Delta
		}
	}
	return 0
}
