package kit

import "testing"

func TestAdviceForTheEngine(t *testing.T) {
	const advice = "Use CUDA graphs (vLLM: without --a; SGLang: without --b, --c) or a larger batch (SGLang: --d), and fuse (torch.compile)."
	for engine, want := range map[Engine]string{
		"":         advice,
		"vllm":     "Use CUDA graphs (vLLM: without --a) or a larger batch, and fuse (torch.compile).",
		"sglang":   "Use CUDA graphs (SGLang: without --b, --c) or a larger batch (SGLang: --d), and fuse (torch.compile).",
		"tensorrt": "Use CUDA graphs or a larger batch, and fuse (torch.compile).",
	} {
		if got := engine.advise(advice); got != want {
			t.Errorf("%q: %s", engine, got)
		}
	}
}
