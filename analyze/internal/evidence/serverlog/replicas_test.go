package serverlog

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// lineOf is a line of statistics of an engine at a second, behind a prefix.
func lineOf(prefix string, second int) string {
	return fmt.Sprintf("%s INFO 12-15 18:32:%02d [loggers.py:259] Engine 000: Avg prompt throughput: 600.0 tokens/s, "+
		"Avg generation throughput: 204.3 tokens/s, Running: 1 reqs, Waiting: 2 reqs, GPU KV cache usage: 0.3%%, "+
		"Prefix cache hit rate: 0.0%%\n", prefix, second)
}

// logOf is the lines of writers, which take turns.
func logOf(writers ...string) string {
	var b strings.Builder
	for second := range 6 {
		for _, w := range writers {
			b.WriteString(lineOf(strings.ReplaceAll(w, "SECOND", fmt.Sprintf("%02d", second)), second))
		}
	}
	return b.String()
}

// Several replicas that write one log are counted, in whatever way their lines are told apart.
func TestReplicas(t *testing.T) {
	stern := logOf("vllm-0 server (APIServer pid=1)") + logOf("vllm-1 server (APIServer pid=1)") // one after the other
	iterations := func(process string) (text string) {
		for i := range 3 {
			text += fmt.Sprintf("(%s pid=7) INFO 12-15 18:32:0%d [core.py:348] Iteration(%d): 0 context requests, "+
				"0 context tokens, 4 generation requests, 4 generation tokens, "+
				"iteration elapsed time: 5.00 ms\n", process, i, i)
		}
		return text
	}
	driver := func(pod string) string {
		var b strings.Builder
		for line := range strings.Lines(logOf("")) {
			fmt.Fprintf(&b, `{"log":"%s","kubernetes":{"pod_name":"%s"}}`+"\n", strings.TrimSpace(line), pod)
		}
		return b.String()
	}
	tagged := func(tags ...string) (text string) {
		for second := range 3 {
			for _, tag := range tags {
				text += fmt.Sprintf("[2026-08-01 23:37:4%d%s] Decode batch, #running-req: 3, #token: 40, "+
					"token usage: 0.02, gen throughput (token/s): 5.23, #queue-req: 0\n", second, tag)
			}
		}
		return text
	}
	const api, other = "(APIServer pid=1)", "(APIServer pid=2)"
	const serve = "(ServeReplica:app:LLM pid="
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"one":                {logOf("(APIServer pid=1)"), 0},
		"one of docker":      {logOf("2026-12-15T18:32:SECOND.331095044Z (APIServer pid=1)"), 0},
		"one of journald":    {logOf("Dec 15 18:32:SECOND host vllm[1234]:"), 0},
		"one of Kubernetes":  {logOf("2026-12-15T18:32:SECOND.331095044Z stderr F (APIServer pid=1)"), 0},
		"started again":      {logOf(api) + strings.ReplaceAll(logOf(other), "18:32", "18:33"), 0},
		"a torn line":        {logOf(api) + lineOf("(APISe"+api, 7) + lineOf(api, 8), 0},
		"engines":            {iterations("EngineCore_DP0") + iterations("EngineCore_DP1"), 0},
		"engines of SGLang":  {tagged(" DP0 TP0", " DP1 TP1"), 0},
		"kubectl":            {logOf("[pod/vllm-0/server] "+api, "[pod/vllm-1/server] "+api), 2},
		"compose":            {logOf("vllm-1  | (APIServer pid=1)", "vllm-2  | (APIServer pid=1)", "vllm-3  | "), 3},
		"compose with times": {logOf("vllm-1  | 2026-12-15T18:32:SECONDZ", "vllm-2  | 2026-12-15T18:32:SECONDZ"), 2},
		"Ray Serve":          {logOf(serve+"71, ip=10.0.0.1)", serve+"72, ip=10.0.0.1)"), 2},
		"processes":          {logOf(api, other), 2},
		"pods of a driver":   {driver("vllm-0") + driver("vllm-1"), 2},
		"pods, each at once": {stern, 2},
		"iterations":         {strings.Repeat(iterations("EngineCore_DP0"), 2) + iterations("A EngineCore_DP0"), 2},
	} {
		d, _ := read(t, []byte(c.text))
		warned := slices.ContainsFunc(d.Warnings(), func(w report.Warning) bool { return w.Code == "log_replicas" })
		if d.replicas != c.want || warned != (c.want > 1) {
			t.Errorf("%s: %d replicas, want %d; %v", name, d.replicas, c.want, d.Warnings())
		}
	}
}
