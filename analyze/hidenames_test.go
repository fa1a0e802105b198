package analyze

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// TestHiddenNames: what a report reads from a name it reads from the hidden one too, and no word that somebody chose is left.
func TestHiddenNames(t *testing.T) {
	hide := HideNames(nil)
	for _, same := range []string{"execute_context_2(14721)_generation_3(3)", "execute_17_context_2(sq14sk20sqsq3sqsk5)_generation_3(sq1sk2sqsq1sqsk2)",
		"execute_new_2_cached_3", "step[DECODE bs=8]", "step[EXTEND bs=2 toks=107]", "[Executor] _forward_step 7: 2 ctx reqs, 100 ctx tokens, 3 gen reqs",
		"prefill[bs=2 tok=14721 ctx=[3, 5]]", "decode[bs=117/128 tok=117 p=1 d=116]", "BatchDecode num_seqs=8", "LLM@decode_step", "ProfilerStep#12",
		"decode_step_3 bs=8 tokens=8", "layers.3.self_attn", "aten::mm", "aten::addmm, seq = 12, op_id = 7", "Holding GIL"} {
		if got := hide(same); got != same {
			t.Errorf("%q is written %q", same, got)
		}
	}
	for _, name := range []string{"alice's prefill", "acme_decode_loop", "acme attention", "post_acme_layernorm", "AcmeMoE routing", "acme_mlp", "acme_embed",
		"acme sampling", "schedule_acme_decoding", "prefill and decode of acme", "acme draft", "LLM@decode_acme", "execute_diffusion_acme",
		"{'Module': 'AcmeForCausalLM', 'Inputs': [[512, 7]]}", "step[DECODE bs=8 acme=3]", "BatchPrefill total_seq_len=512 acme=1", "acme", "55512345",
		"request 5551234567", "acme::secret_op", "cublasAcme", "Optimizer.step#Acme.step", "autograd::engine::evaluate_function: AcmeBackward0", "Acme::run(int)",
		"aten::mm, sizes = [[acme]]"} {
		got := hide(name)
		if strings.Contains(strings.ToLower(got), "acme") || strings.Contains(got, "alice") || strings.Contains(got, "secret") || strings.Contains(got, "55512345") {
			t.Errorf("%q is written %q", name, got)
		}
		if a, b := kernelname.RangeComponent(name), kernelname.RangeComponent(got); a != b {
			t.Errorf("%q is of %q, written %q of %q", name, a, got, b)
		}
		if a, b := kernelname.BuiltinPhase(name), kernelname.BuiltinPhase(got); a != b {
			t.Errorf("%q is phase %q, written %q phase %q", name, a, got, b)
		}
		if a, b := isOperator(name), isOperator(got); a != b || workunit.Library(name) != workunit.Library(got) || strings.Contains(name, "::") != strings.Contains(got, "::") {
			t.Errorf("%q is an operator: %v, written %q: %v", name, a, got, b)
		}
		a, marks := kernelname.ParseMarker(name)
		b, still := kernelname.ParseMarker(got)
		a.Engine, b.Engine = "", ""
		if a != b || marks != still {
			t.Errorf("%q marks %+v, written %q %+v", name, a, got, b)
		}
	}
	if a, b := hide("acme step 3"), hide("acme step 4"); a != b {
		t.Errorf("%q and %q: counters tell names apart", a, b)
	}
	if a, b := hide("acme prefill"), hide("other prefill"); a == b {
		t.Errorf("two names are %q", a)
	}
	if got := HideNames(regexp.MustCompile("^acme"))("acme 1"); got != "acme 1" {
		t.Errorf("%q was to be kept", got)
	}
}

func isOperator(name string) bool {
	_, ok := kernelname.Operator(name)
	return ok
}

// TestHiddenKernels: of a hidden kernel its category, library, part of the model and collective are read, and nothing else
// of its name is left.
func TestHiddenKernels(t *testing.T) {
	hide := HideKernels(nil)
	if got := hide("acme_secret_gemm_v3"); got == hide("acme_secret_gemm_v4") || got != hide("acme_secret_gemm_v3") {
		t.Errorf("%q tells no two kernels apart", got)
	}
	for _, name := range append(publicKernels(t), "acme", "acme_secret_gemm_v3", "void acme::fused_attention<float, 64>(float*)") {
		got, is := hide(name), kernelname.Classify(name)
		again := kernelname.Classify(got)
		if got == name && !ncclKernel.MatchString(name) || strings.Contains(got, "acme") {
			t.Errorf("%q is written %q", name, got)
		}
		if again.Category != is.Category || again.Collective != is.Collective || again.Component != is.Component || again.Weak != is.Weak ||
			again.Library != is.Library || kernelname.ConvertsLayout(got) != kernelname.ConvertsLayout(name) {
			t.Errorf("%q is %s %s %s %s weak %v, written %q %s %s %s %s %v", name, is.Category, is.Collective, is.Component, is.Library, is.Weak, got, again.Category, again.Collective, again.Component, again.Library, again.Weak)
		}
	}
	if got := HideKernels(regexp.MustCompile("^nvjet"))("nvjet_tst_64x8"); got != "nvjet_tst_64x8" {
		t.Errorf("%q was to be kept", got)
	}
}

// publicKernels are names of kernels of public projects, of every category.
func publicKernels(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("internal/kernelname/testdata/public_names.tsv")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		names = append(names, strings.Split(line, "\t")[1])
	}
	return names
}
