package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/mcp"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// toolCall is one call of an agent.
type toolCall struct{ tool, arguments string }

const (
	mfu     = `"base":"nsysai_mfu_2gpu_before.sqlite","head":"nsysai_mfu_2gpu_after.sqlite"`
	rodinia = `"base":"rodinia_report2_native.sqlite","head":"rodinia_report3_native.sqlite"`
	graphs  = `"base":"cs336zx_2_7B_clean.sqlite","head":"cs336zx_2_7B_compile_cudagraph.sqlite"`
)

// questions that an agent is asked about the shared traces, the calls by which it finds the answer, and what of the last
// answer is that. The truths are those of ../shared/expected, worked out from the rows by hand.
var questions = []struct {
	question string
	calls    []toolCall
	want     string
}{
	{"Which captures of the 2.7 B model are there?", []toolCall{{"files", `{"match":"2_7B"}`}}, `"cs336zx_2_7B\.sqlite","cs336zx_2_7B_clean\.sqlite"`},
	{"Which kernel takes most time in the 2.7 B model, and how much?", []toolCall{{"table", `{"file":"cs336zx_2_7B.sqlite","table":"kernels","limit":1}`}},
		`ampere_sgemm_128x64_tn \|.*,900,2991054425,`},
	{"How much kernel time is there in all?", []toolCall{{"metrics", `{"file":"cs336zx_2_7B.sqlite","id":"kernel.total_time","limit":1}`}}, `"key":"kernel.total_time","value":3389068613,"unit":"ns"`},
	{"Why was the GPU idle there?", []toolCall{{"metrics", `{"file":"cs336zx_2_7B.sqlite","id":"gpu.idle_cause_time","match":"device=0"}`}}, `cause=host,device=0}","value":1135851625,`},
	{"Did the change make the training step slower?", []toolCall{{"compare", `{` + mfu + `}`}}, `"verdict":"fail".*"key":"unit.time.mean".*"ratio":1\.138\d*,"class":"regressed"`},
	{"Why is it slower: GPU or host?", []toolCall{{"compare", `{` + mfu + `}`}}, `"cause":".13.8 % slower.*host slower.*GPU compute unchanged`},
	{"Is a kernel to blame?", []toolCall{{"compare", `{` + mfu + `}`}, {"changes", `{` + mfu + `,"part":"kernels","limit":50}`}}, ""}, // no class is regressed
	{"How much longer does a launch call take?", []toolCall{{"changes", `{` + mfu + `,"part":"calls","match":"cudaLaunchKernel"}`}}, `"key":"cudaLaunchKernel".*"ratio":1\.38`},
	{"And the other way round?", []toolCall{{"compare", `{"base":"nsysai_mfu_2gpu_after.sqlite","head":"nsysai_mfu_2gpu_before.sqlite"}`}}, `"verdict":"pass".*"class":"improved"`},
	{"Is the clean run of the 2.7 B model any faster?", []toolCall{{"compare", `{"base":"cs336zx_2_7B.sqlite","head":"cs336zx_2_7B_clean.sqlite"}`}},
		`"key":"unit.time.p50".*"ratio":(?:1|0\.99[89]\d*|1\.00[01]\d*),"class":"same"`},
	{"What did CUDA graphs win?", []toolCall{{"compare", `{` + graphs + `}`}}, `"verdict":"pass".*"key":"unit.gpu_busy.mean".*"ratio":0\.93\d*,"class":"improved"`},
	{"Which kernels got faster by the graphs?", []toolCall{{"compare", `{` + graphs + `}`}}, `CUDA graphs hide kernels on one side: single kernels are not compared`},
	{"What made the Gaussian elimination faster?", []toolCall{{"changes", `{` + rodinia + `,"part":"kernels","limit":1}`}}, `"key":"Fan2".*"class":"improved".*block 4×4 → 16×16`},
	{"Is the second run of the small kernels slower?", []toolCall{{"compare", `{"base":"fuser_h200_report1.sqlite","head":"fuser_h200_report2.sqlite"}`}, {"doc", `{"name":"no_unit"}`}},
		`no unit of work was found on a side`},
	{"Can the 1 s capture be compared with the other one?", []toolCall{{"compare", `{"base":"nsysai_h100_2gpu_1s.sqlite","head":"nsysai_mfu_2gpu_before.sqlite"}`}}, `"comparable":false.*"code":"different_work"`},
	{"And with the one without kernels?", []toolCall{{"compare", `{"base":"nsysai_mfu_2gpu_before.sqlite","head":"alpa_r1_memcpy_nokernel.sqlite"}`}}, `"comparable":false.*"code":"empty_side"`},
	{"Does the version of the exporter change the numbers?", []toolCall{{"compare", `{"base":"cs336_hoponga_exp2023_4.sqlite","head":"cs336_hoponga_exp2024_2.sqlite"}`}},
		`"identical":true.*"exporter_version: 2023\.4\.4\.54 → 2024\.2\.3\.38"`},
	{"How busy is the GPU in the capture of copies?", []toolCall{{"report", `{"file":"alpa_r1_memcpy_nokernel.sqlite"}`}}, `"code":"no_kernels"`},
	{"Which NVTX range takes most GPU time in the reduced capture?", []toolCall{{"metrics", `{"file":"nsysai_healthy_1pct.sqlite","id":"nvtx.gpu_time"}`}}, `"metrics":\[\],"unknown":\[{"what":"nvtx.gpu_time","code":"unavailable"`},
	{"What can I trust in the 1 s capture?", []toolCall{{"report", `{"file":"nsysai_h100_2gpu_1s.sqlite"}`}, {"doc", `{"name":"unjoined_kernels"}`}}, `kernels without the API call that launched them`},
	{"Which of these ranks do the others wait for?", []toolCall{{"report", `{"file":"ranks"}`}}, `"id":"rank_straggler","severity":"[a-z]+","title":"Rank 3 `},
	{"What would I gain without the blocking calls?", []toolCall{{"report", `{"file":"nsysai_mfu_2gpu_before.sqlite"}`}}, `"what_ifs":\[.*"at_most_ns_per_step":\d+,"change":"--no-sync `},
	{"What share of the time was the GPU idle?", []toolCall{{"metrics", `{"file":"cs336zx_2_7B.sqlite","id":"share of idle"}`}}, `"key":"gpu\.[a-z_]*idle_ratio`},
	{"What should I do about it first?", []toolCall{{"report", `{"file":"nsysai_h100_2gpu_1s.sqlite"}`}}, `"findings":\[{"id":"[a-z_]+","severity":"(?:high|medium)".*"advice":\["`},
}

// TestTwentyQuestions asks them of one server, as an agent would: every answer is in at most three calls, from the text of
// the answers alone.
func TestTwentyQuestions(t *testing.T) {
	t.Parallel()
	const traces = "../../../shared/traces"
	if _, err := os.Stat(traces); err != nil {
		t.Skip("the shared traces are not here")
	}
	var in bytes.Buffer
	for i, q := range questions {
		if len(q.calls) > 3 {
			t.Errorf("%s takes %d calls", q.question, len(q.calls))
		}
		for j, c := range q.calls {
			fmt.Fprintf(&in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`+"\n", 10*i+j, c.tool, c.arguments)
		}
	}
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"mcp", traces}, &env{In: &in, Out: &out, Err: &errs, Getenv: os.Getenv}); code != exitOK || errs.Len() > 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	answers := map[int]string{}
	for d := json.NewDecoder(&out); d.More(); {
		var r struct {
			ID     int
			Error  any
			Result struct {
				IsError bool
				Content []struct{ Text string }
			}
		}
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if r.Error != nil || r.Result.IsError || len(r.Result.Content) != 1 || len(r.Result.Content[0].Text) > mcp.MaxAnswer {
			t.Errorf("answer %d: %+v", r.ID, r)
			continue
		}
		answers[r.ID] = r.Result.Content[0].Text
	}
	for i, q := range questions {
		answer := answers[10*i+len(q.calls)-1]
		if q.want == "" {
			if strings.Contains(answer, `"class":"regressed"`) || !strings.Contains(answer, `"class":"same"`) {
				t.Errorf("%s\n%s", q.question, answer)
			}
			continue
		}
		if !regexp.MustCompile(q.want).MatchString(answer) {
			t.Errorf("%s\nanswer does not match %s:\n%.1500s", q.question, q.want, answer)
		}
	}
	if len(questions) < 20 {
		t.Errorf("%d questions", len(questions))
	}
}

// TestAgentConfigurations: each starts the server as it is called, and the skill names tools that there are.
func TestAgentConfigurations(t *testing.T) {
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	if err := json.Unmarshal(read(t, "../../examples/agents/mcp.json"), &config); err != nil {
		t.Fatal(err)
	}
	got := config.MCPServers["explain"]
	if got.Command != "explain" || strings.Join(got.Args, " ") != "mcp ." {
		t.Errorf("%+v", got)
	}
	if toml := string(read(t, "../../examples/agents/config.toml")); !strings.Contains(toml, "command = \"explain\"\nargs = [\"mcp\", \".\"]\n") {
		t.Errorf("%s", toml)
	}
	var out, errs bytes.Buffer
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	if code := run(context.Background(), []string{"mcp", "../../testdata"}, &env{In: strings.NewReader(line), Out: &out, Err: &errs, Getenv: os.Getenv}); code != exitOK {
		t.Fatal(errs.String())
	}
	skill := string(read(t, "../../examples/agents/SKILL.md"))
	for _, m := range regexp.MustCompile("\\| `([a-z]+)` \\| `").FindAllStringSubmatch(skill, -1) {
		if !strings.Contains(out.String(), `"name":"`+m[1]+`"`) {
			t.Errorf("the skill names the tool %s, which is not there", m[1])
		}
	}
}

// TestAgentsAskAHistory: 24 nights of which the last 8 have a slower attention kernel; the folder's files say what to ask.
func TestAgentsAskAHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := &env{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard, Getenv: func(string) string { return "" }}
	for night := range 24 {
		c := historytest.Capture{Seed: uint64(night + 1), Noise: 0.005}
		if night >= 16 {
			c.Kernels = map[string]float64{"attention": 1.5}
		}
		if code := run(context.Background(), []string{"history", "add", historytest.Trace(t, c), "--store", filepath.Join(dir, "history.db"), "--branch", "main",
			"--commit", fmt.Sprintf("%040x", 0xabc000+night), "--time", fmt.Sprintf("2026-05-%02dT02:00:00Z", night+1)}, e); code != exitOK {
			t.Fatal(code)
		}
	}
	ask := func(tool, arguments string) string {
		var out bytes.Buffer
		e := &env{In: strings.NewReader(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)), Out: &out, Err: io.Discard, Getenv: os.Getenv}
		if code := run(context.Background(), []string{"mcp", dir}, e); code != exitOK {
			t.Fatal(code)
		}
		var r struct {
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Result.Content) != 1 {
			t.Fatalf("%v: %s", err, &out)
		}
		return r.Result.Content[0].Text
	}
	for _, c := range []struct{ tool, arguments, want string }{
		{"files", `{}`, `"histories":\["history.db"\].*"tool":"compare","arguments":{"history":"history.db"}`},
		{"compare", `{"history":"history.db"}`, `"changes":\[{"number":"unit.time.p50[^"]*","commit":"0*abc010","since":"2026-05-17T02:00:00Z","ratio":1\.0[89]\d*,"worse":true,"open":true,"cause":"[^"]+","find_the_commit_by":"explain bisect --good .*","causes":\[{"delta_ns_per_unit":[0-9.]+,"part":"kernel","what":"kernel flash_fwd_splitkv_kernel \+4`},
		{"compare", `{"history":"nothing.db"}`, "nothing.db does not exist: call the tool `files`"},
		{"report", `{"file":"../nothing.sqlite"}`, `nothing.sqlite is outside of the folder`}, // it is not said whether it exists
	} {
		if got := ask(c.tool, c.arguments); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s %s: no %s in\n%s", c.tool, c.arguments, c.want, got)
		}
	}
}
