package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const llama8B = `{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,
		"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"torch_dtype":"bfloat16"}`

// A model of 8,030 million weights on an H100 (989.4 TFLOP/s in bf16, 3.35 TB/s): 12 steps of 8 requests, 20 ms each.
// Twelve steps start 20 ms apart; the first eleven end where the next begins.
func TestModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(llama8B), 0o644); err != nil {
		t.Fatal(err)
	}
	const ms = 1_000_000
	b := tracetest.New()
	b.GPU(tracetest.GPU{Name: "NVIDIA H100 80GB HBM3"})
	th := b.Process(1, "p").Thread(1, "")
	for i := range int64(12) {
		at := i * 20 * ms
		th.Range("execute_context_0(0)_generation_8(8)", at, at+2*ms)
		th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + ms, End: at + 19*ms})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report
	const all, active = 6_979_321_856 + 2*525_336_576.0, 6_979_321_856 + 525_336_576.0
	sectiontest.Metric(t, r, all, "model.parameters")
	sectiontest.Metric(t, r, active, "model.active_parameters")
	sectiontest.Metric(t, r, 2*active, "model.flops_per_token")
	sectiontest.Metric(t, r, 2*32*32*256, "model.flops_per_context")
	sectiontest.Metric(t, r, 131072, "model.kv_bytes_per_token")
	sectiontest.Metric(t, r, 2*all, "model.weight_bytes")
	mean := r.Find("unit.time", map[string]string{"phase": "decode", "batch": "8"})
	if mean == nil || mean.Summary == nil {
		t.Fatalf("no unit.time of decode 8: %+v", r.Unit)
	}
	near := func(id string, want float64) {
		t.Helper()
		m := r.Find(id, map[string]string{"phase": "decode", "batch": "8"})
		if m == nil || m.Value == nil || *m.Value < want*0.9999 || *m.Value > want*1.0001 {
			t.Errorf("%s: %+v, want %v", id, m, want)
		}
	}
	seconds := mean.Summary.Mean / 1e9
	near("model.flops_utilization", 8*2*active/(seconds*989.4e12))
	near("model.bandwidth_utilization", 2*all/(seconds*3.35e12))
}

// Six steps of two prompts with 1,000 tokens in all, 50 ms each, and six that decode 4 tokens and compute a prompt of 100:
//
//	2·6,979,321,856·1000 + 2·525,336,576·2 + 524,288·1000·(500+1)/2            = 14,092,079,202,304
//	2·6,979,321,856·104  + 2·525,336,576·5 + 524,288·100·(100+1)/2             =  1,456,952,311,808 + 2,647,654,400
//
// Nsight Compute counted 7 TFLOP of one launch of gemm, which takes 18 of the 20 ms of kernels in a prefill step, and nothing
// of norm. A prefill step has two gemms.
func TestModelOfPrefill(t *testing.T) {
	dir := t.TempDir()
	config, ncu := filepath.Join(dir, "config.json"), filepath.Join(dir, "ncu.csv")
	for path, text := range map[string]string{config: llama8B, ncu: `"ID","Process ID","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"
"0","1","gemm","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","gpu__time_duration.sum","ns","9000000"
"0","1","gemm","1","7","(128, 1, 1)","(1, 1, 1)","0","9.0","Command line profiler metrics","sm__ops_path_tensor_src_bf16_dst_fp32.sum","inst","7000000000000"
`} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const ms = 1_000_000
	b := tracetest.New()
	b.GPU(tracetest.GPU{Name: "NVIDIA H100 80GB HBM3"})
	th := b.Process(1, "p").Thread(1, "")
	at := int64(0)
	step := func(name string, long int64, kernels ...int64) {
		th.Range(name, at, at+ms)
		from := at + 2*ms
		for i, k := range kernels {
			name := "gemm"
			if i == len(kernels)-1 {
				name = "norm"
			}
			th.Launch(name, at+1000+int64(i)*2000, at+2000+int64(i)*2000, tracetest.Kernel{Start: from, End: from + k})
			from += k
		}
		at += long
	}
	for range 7 {
		step("execute_context_2(1000)_generation_0(0)", 50*ms, 9*ms, 9*ms, 2*ms)
		step("execute_context_1(100)_generation_4(4)", 30*ms, 9*ms, 2*ms)
	}
	r := sectiontest.Analyse(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: config}, {Path: ncu}}}).Report
	const prefill, mixed = 14_092_079_202_304.0, 1_456_952_311_808.0 + 2_647_654_400
	near := func(id, phase string, want float64) {
		t.Helper()
		m := r.Find(id, map[string]string{"phase": phase})
		if m == nil || m.Value == nil || *m.Value < want*0.9999 || *m.Value > want*1.0001 {
			t.Errorf("%s of %s: %+v, want %v", id, phase, sectiontest.ShownValue(m), want)
		}
	}
	near("model.flops_utilization", "prefill", prefill/(0.050*989.4e12))
	near("model.flops_utilization", "mixed", mixed/(0.030*989.4e12))
	near("model.bandwidth_utilization", "prefill", 2*8_029_995_008.0/(0.050*3.35e12))
	near("model.ncu_flops_ratio", "prefill", 14e12/prefill)
	near("model.ncu_coverage", "prefill", 0.9)
	near("model.ncu_flops_ratio", "mixed", 7e12/mixed)
}

// Steps of 2 ms for which the same model needs 4.8 ms of an H100's memory: no step uses 240 % of it. Steps of 5 ms, 95 %.
func TestModelThatDoesNotFit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, []byte(llama8B), 0o644); err != nil {
		t.Fatal(err)
	}
	for length, fits := range map[int64]bool{2_000_000: false, 5_100_000: true} {
		b := tracetest.New()
		b.GPU(tracetest.GPU{Name: "NVIDIA H100 80GB HBM3"})
		th := b.Process(1, "p").Thread(1, "")
		for i := range int64(12) {
			at := i * length
			th.Range("execute_context_0(0)_generation_8(8)", at, at+length/2)
			th.Launch("gemm", at+1000, at+2000, tracetest.Kernel{Start: at + length/4, End: at + length - 1000})
		}
		r := sectiontest.Analyse(t, b, analyze.Options{Evidence: []analyze.Evidence{{Path: path}}}).Report
		for _, id := range []string{"model.flops_utilization", "model.bandwidth_utilization"} {
			if m := r.Find(id, map[string]string{"phase": "decode"}); m == nil || (m.Value != nil) != fits {
				t.Errorf("steps of %d ns: %s is %v", length, id, sectiontest.ShownValue(m))
			}
		}
		if text := sectiontest.Warning(r, "config_mismatch"); (text == "") != fits {
			t.Errorf("steps of %d ns: warning %q", length, text)
		}
	}
}
