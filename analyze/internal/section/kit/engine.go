package kit

import (
	"regexp"
	"strings"
)

// Engine is what serves or trains: vllm, sglang, …; empty if it is not known.
type Engine string

// Engine is the engine that the capture is of: by the markers of its steps or by evidence beside it; empty if neither
// tells.
func (in *Input) Engine() Engine {
	text := ""
	if in.Units != nil {
		text = strings.ToLower(in.Units.Name)
	}
	if in.Evidence != nil {
		for _, f := range in.Evidence.Files {
			text += " " + strings.ToLower(f.Tally.Format)
		}
	}
	for _, e := range []Engine{"vllm", "sglang", "tensorrt", "lmdeploy", "tgi"} {
		if strings.Contains(text, string(e)) {
			return e
		}
	}
	switch {
	case strings.Contains(text, "execute_context_"):
		return "vllm"
	case strings.Contains(text, "step[") || strings.Contains(text, "run_batch"):
		return "sglang"
	}
	return ""
}

// Settings of engines for lines of advice, which keep that of the engine if one is recognised.
const (
	SetGraphs        = " (vLLM: without --enforce-eager; SGLang: without --disable-cuda-graph; TensorRT-LLM: cuda_graph_config)"
	SetKVMemory      = " (vLLM: --gpu-memory-utilization; SGLang: --mem-fraction-static)"
	SetRequestLength = " (vLLM: --max-model-len; SGLang: --context-length)"
	SetAttention     = " (vLLM: --attention-backend, in older ones VLLM_ATTENTION_BACKEND; SGLang: --attention-backend)"
)

// settings are the settings of engines in a line of advice or a note: " (vLLM: --a; SGLang: --b)".
var settings = regexp.MustCompile(` \((?:vLLM|SGLang|TensorRT-LLM): [^()]*\)`)

// advise leaves of the settings in a line of advice or a note those of the engine, none if it has no such one, and all
// if no engine is recognised.
func (e Engine) advise(advice string) string {
	if e == "" {
		return advice
	}
	return settings.ReplaceAllStringFunc(advice, func(all string) string {
		for setting := range strings.SplitSeq(all[len(" ("):len(all)-len(")")], "; ") {
			if strings.HasPrefix(strings.ToLower(setting), string(e)) {
				return " (" + setting + ")"
			}
		}
		return ""
	})
}

func (e Engine) adviseAll(lines []string) {
	for i := range lines {
		lines[i] = e.advise(lines[i])
	}
}

// AsyncScheduling is the engine's flag for preparing a step while another runs, as a sentence; empty if no engine is
// recognised.
func (e Engine) AsyncScheduling() string {
	return map[Engine]string{"vllm": " vLLM: --async-scheduling.", "sglang": " SGLang: without --disable-overlap-schedule."}[e]
}

// graphFlag is the engine's setting for CUDA graphs, in brackets; empty if no engine is recognised.
func (e Engine) graphFlag() string {
	if e == "" {
		return ""
	}
	return e.advise(SetGraphs)
}
