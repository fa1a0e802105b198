// Package historytest makes captures of commits for tests: a server that decodes 32 requests in steps of eight kernels,
// which a commit makes slower and a machine makes noisier.
package historytest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Capture says what was captured.
type Capture struct {
	Seed    uint64             // of the noise: two captures of another seed are two recordings
	Noise   float64            // standard deviation of the capture's level, ln: 0.01 is 1 %
	Level   float64            // of the machine and of the commit: all kernels take so many times as long; 0 is 1
	Kernels map[string]float64 // and each of these so many times as long, by the name in [Kernels]
	Gap     float64            // idle time between kernels takes so many times as long; 0 is 1
	Steps   int                // 0 is 12
	GPU     string             // model; empty: an H100
	Machine int                // another number is another GPU of that model
	Driver  string             // empty: 570.133.20
}

// Kernels of a step, by short names, with their time in ns. A step of level 1 takes 400 µs, 350 of them in kernels.
var Kernels = []struct {
	Short, Name string
	Time        int64
}{
	{"rms_norm", "void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*, float)", 10_000},
	{"qkv_gemm", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 60_000},
	{"rotary", "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", 10_000},
	{"attention", "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>, true>(Flash_fwd_params)", 80_000},
	{"out_gemm", "nvjet_tst_128x8_64x12_2x1_v_bz_splitK_TNT", 40_000},
	{"gate_gemm", "nvjet_tst_192x8_64x10_2x1_v_bz_TNT", 80_000},
	{"act", "void vllm::act_and_mul_kernel<c10::BFloat16, &vllm::silu_kernel>(c10::BFloat16*)", 10_000},
	{"down_gemm", "nvjet_tst_256x8_64x8_2x1_v_bz_splitK_TNT", 60_000},
}

// gap is the idle time of a step in ns, in equal parts behind each kernel.
const gap = 50_000

// Trace writes the capture as a file of Nsight Systems and returns its path.
func Trace(tb testing.TB, c Capture) string {
	tb.Helper()
	rng := rand.New(rand.NewPCG(c.Seed, 23))
	level := cmp.Or(c.Level, 1) * math.Exp(c.Noise*rng.NormFloat64())
	b := tracetest.New(tracetest.Schema("3.16.1"))
	name := cmp.Or(c.GPU, "NVIDIA H100 80GB HBM3")
	b.GPU(tracetest.GPU{Name: name, UUID: fmt.Sprintf("00000000-0000-0000-0001-%012x", c.Machine)})
	b.Env("NvDriverVersion", cmp.Or(c.Driver, "570.133.20"))
	th := b.Process(100, "VLLM::Worker_TP0").Thread(100, "main")
	now := int64(c.Seed%1_000_000) * 1_000
	for range cmp.Or(c.Steps, 12) {
		start := now
		for _, k := range Kernels {
			factor := cmp.Or(c.Kernels[k.Short], 1)
			own := 1 + 0.002*rng.NormFloat64() // of one launch
			took := int64(float64(k.Time) * level * factor * own)
			th.Launch(k.Name, now, now+2_000, tracetest.Kernel{Place: tracetest.Place{Stream: 7}, Start: now + 3_000, End: now +
				3_000 + took})
			now += took + int64(gap/float64(len(Kernels))*level*cmp.Or(c.Gap, 1))
		}
		th.Range("execute_context_0(0)_generation_32(32)", start, now-1)
	}
	return b.WriteTB(tb)
}

// Report analyses the capture. Its trace is called by the seed.
func Report(tb testing.TB, c Capture) *report.Report {
	tb.Helper()
	res, err := analyze.Run(context.Background(), Trace(tb, c), analyze.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	res.Report.Trace.Name = fmt.Sprintf("%d.sqlite", c.Seed)
	return res.Report
}

// Commit is the hash of the n-th commit of a made-up repository.
func Commit(n int) string { return fmt.Sprintf("%040x", 0xc0ffee0000+n) }
