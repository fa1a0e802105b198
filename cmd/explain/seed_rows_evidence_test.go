package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// captureRows are the rows of profilemate and llm-perf-opt that say which commands a capture runs.
func (s *seedRun) captureRows(row func(string, func(*testing.T))) {
	const serving = "../../testdata/serving.sqlite"
	plan := func(t *testing.T, want []string, args ...string) {
		t.Helper()
		text, code := said(append([]string{"capture", "vllm", "--model", "org/m", "--dry-run"}, args...)...)
		if code != exitOK {
			t.Fatalf("exit %d: %s", code, text)
		}
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%v: no %q in:\n%s", args, w, text)
			}
		}
	}
	row("085_quick", func(t *testing.T) {
		plan(t, []string{"nsys launch", "nsys start", "# send the measured requests", "nsys stop"}, "--mode", "quick")
	})
	row("086_full_with_ncu", func(t *testing.T) {
		plan(t, []string{"ncu --target-processes all --set full", "--enforce-eager", "the 5 kernels"}, "--mode", "full")
		plan(t, []string{"ncu --target-processes all"}, "--with-ncu")
	})
	row("088_out_no_report_and_unknown_modes", func(t *testing.T) {
		plan(t, []string{"--output=here/trace"}, "--out", "here", "--no-report")
		says(t, exitUsage, "--mode huge is unknown", "capture", "vllm", "--model", "m", "--mode", "huge")
	})
	row("089_folder_with_the_time", func(t *testing.T) {
		text, _ := said("capture", "vllm", "--model", "m", "--dry-run")
		if !regexp.MustCompile(`artifacts/run_\d{8}_\d{6}/trace`).MatchString(text) {
			t.Errorf("no such folder in %s", text)
		}
	})
	row("090_quick_profile_of_a_model_into_a_folder", func(t *testing.T) {
		plan(t, []string{"vllm serve org/m", "--output=d/trace"}, "--mode", "quick", "--out", "d")
	})
	row("091_kernels_for_ncu_come_from_the_trace", func(t *testing.T) {
		text := targetsOf(t, serving, "5")
		if !strings.Contains(text, "fused_moe_kernel") || !strings.Contains(text, "FlashAttnFwdSm90") {
			t.Fatal(text)
		}
		if command, _, _ := strings.Cut(text, "\nkernels:"); strings.Contains(command, "regex:^(nccl") || strings.Contains(command, "|nccl") {
			t.Errorf("communication is measured too: %s", command)
		}
	})
	row("092_delay_and_duration", func(t *testing.T) {
		says(t, exitOK, "--delay=30 --duration=60", "capture", "--delay", "30s", "--duration", "60s", "--dry-run", "--", "python", "s.py")
	})
	row("174_deep_records_memory", func(t *testing.T) { plan(t, []string{"--cuda-memory-usage=true"}, "--mode", "deep") })
	row("175_light", func(t *testing.T) {
		plan(t, []string{"--trace=cuda,nvtx --cuda-graph-trace=graph"}, "--mode", "light")
	})
	row("191_targets_as_yaml", func(t *testing.T) {
		const want = "kernels:\n- name: \"fused_moe_kernel\"\n  regex: \"^fused_moe_kernel$\"\n  description: \"Kernel #1 - 21.7% of GPU time, 792 calls\""
		if text := targetsOf(t, serving, "10"); !strings.Contains(text, want) {
			t.Error(text)
		}
	})
}

// targetsOf is what report writes by --ncu-targets.
func targetsOf(t *testing.T, trace, top string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "targets.yaml")
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"report", trace, "--quiet", "--top", top, "--ncu-targets", path}, quietEnv(&out, &errs, "")); code != exitOK {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	return string(read(t, path))
}

// evidenceRows are the rows on evidence beside a trace: its report is of testdata/serving.sqlite and testdata/evidence,
// whose numbers are those of the files.
func (s *seedRun) evidenceRows(row func(string, func(*testing.T))) {
	const evidence = "../../testdata/evidence"
	row("098_components", func(t *testing.T) {
		var x struct {
			Components map[string]struct{ Percent float64 }
		}
		if err := json.Unmarshal([]byte(s.file(t, "summary.json")), &x); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, c := range x.Components {
			sum += c.Percent
		}
		if sum < 99.999 || sum > 100.001 || len(x.Components) < 8 {
			t.Errorf("%d components of %g %%", len(x.Components), sum)
		}
	})
	row("099_top_kernels", func(t *testing.T) {
		var x struct {
			Kernels []map[string]any `json:"top_kernels"`
		}
		if err := json.Unmarshal([]byte(s.file(t, "summary.json")), &x); err != nil {
			t.Fatal(err)
		}
		if len(x.Kernels) != 20 || len(x.Kernels[0]) < 8 || x.Kernels[0]["kernel_name"] == nil {
			t.Errorf("%d kernels, the first %v", len(x.Kernels), x.Kernels[0])
		}
	})
	row("101_folders", func(t *testing.T) { s.columns(t, "ncu_kernels.csv", "kernel_name") })
	row("102_component_timing", func(t *testing.T) { s.columns(t, "components.csv", "component", "total_time_ms", "kernel_count") })
	row("103_cuda_graph_coverage", func(t *testing.T) {
		s.metric(t, "graph.coverage", 33833161.0/179569803)
		s.metric(t, "graph.kernels", 6864)
	})
	row("104_kernel_bandwidth_metrics_csv", func(t *testing.T) {
		s.columns(t, "kernel_bandwidth_metrics.csv", "kernel_name", "dram_read_bytes", "dram_write_bytes", "dram_throughput_pct",
			"sm_throughput_pct", "duration_ns", "bandwidth_gbps")
		s.cell(t, "kernel_bandwidth_metrics.csv", 1, "bandwidth_gbps", "2500") // 50 MB in 20 µs
	})
	row("105_roofline_data_csv", func(t *testing.T) {
		s.cell(t, "roofline_data.csv", 1, "bottleneck", "memory") // 78.75 % of DRAM, 37.5 % of the SMs
		s.cell(t, "roofline_data.csv", 2, "bottleneck", "compute")
	})
	row("106_ncu_summary_json", func(t *testing.T) {
		for _, key := range []string{`"total_kernels": 6`, `"top_kernels_by_bandwidth"`} {
			s.has(t, "ncu_summary.json", key)
		}
	})
	row("107_bound_of_a_kernel", func(t *testing.T) {
		s.labelled(t, "ncu.bound_kernels", 2, "bound", "compute")
		s.labelled(t, "ncu.bound_kernels", 2, "bound", "memory")
		s.labelled(t, "ncu.bound_kernels", 2, "bound", "latency")
	})
	row("109_html_report_is_one_file", func(t *testing.T) {
		page := s.file(t, "report.html")
		if regexp.MustCompile(`(?i)(src|href)\s*=\s*["']?(https?:)?//`).MatchString(page) {
			t.Error("report.html loads something")
		}
	})
	row("110_key_numbers", func(t *testing.T) {
		for _, want := range []string{"prefill 127.1 ms, decode 36.71 ms", "CUDA graphs", "DRAM throughput", "Estimated bytes per second"} {
			if !strings.Contains(s.text, want) {
				t.Errorf("no %q", want)
			}
		}
	})
	row("111_tables_of_the_page", func(t *testing.T) {
		for _, id := range []string{"phases", "components", "kernels", "ncu"} {
			s.has(t, "report.html", `id="`+id+`"`)
		}
	})
	row("112_few_graphs_where_the_gpu_waits", func(t *testing.T) {
		severity(t, graphedInPart(t), "few_graphs", "high")
		severity(t, s.report, "few_graphs", "") // 91 % of the judged decode step, though 30 % of all
	})
	row("113_prefill_of_60_percent", func(t *testing.T) {
		severity(t, s.report, "prefill_heavy", "remark") // 66.7 % of the session's forward time
		severity(t, phased(t, 65), "dominant_phase", "")
	})
	row("114_low_dram", func(t *testing.T) { severity(t, s.report, "low_dram", "remark") }) // 44.8 %
	row("115_attention_dominates", func(t *testing.T) {
		severity(t, attention(t, 65), "attention_dominates", "remark")
		severity(t, attention(t, 55), "attention_dominates", "")
	})
	row("116_nothing_to_report", func(t *testing.T) {
		b := tracetest.New()
		th := b.Process(7, "p").Thread(7, "")
		for i := range int64(8) {
			th.Launch("own_"+string(rune('a'+i)), 10+i*20, 20+i*20, tracetest.Kernel{Start: 1000 + i*1_000_000, End: 1000 + (i+1)*1_000_000})
		}
		says(t, exitOK, "No rule found anything to report", b.WriteTB(t), "--format", "md")
	})
	row("118_coverage_in_points", func(t *testing.T) {
		says(t, exitOK, "", "diff", summaryOf(t, 1000, 90), summaryOf(t, 1000, 80.01), "--threshold", "10")
		says(t, exitFail, "", "diff", summaryOf(t, 1000, 90), summaryOf(t, 1000, 79.99), "--threshold", "10")
	})
	row("119_missing_keys", func(t *testing.T) {
		says(t, exitInput, "missing", "diff", jsonFile(t, `{"prefill_decode": {}}`), summaryOf(t, 1, 1), "--threshold", "10")
	})
	row("120_no_prefill_before", func(t *testing.T) {
		says(t, exitFail, "prefill", "diff", summaryOf(t, 0, 90), summaryOf(t, 1000, 90), "--threshold", "10")
	})
	row("121_prefill_is_judged_by_default", func(t *testing.T) {
		says(t, exitFail, "prefill", "diff", markers(t, 8_000_000), markers(t, 14_000_000))
	})
	row("122_threshold", func(t *testing.T) {
		says(t, exitFail, "+15.0 %", "diff", summaryOf(t, 1000, 90), summaryOf(t, 1150, 90), "--threshold", "10")
	})
	row("123_exit_codes", func(t *testing.T) {
		says(t, exitOK, "", "diff", summaryOf(t, 1000, 90), summaryOf(t, 1150, 90), "--threshold", "20")
	})
	row("127_activations", func(t *testing.T) {
		s.labelled(t, "moe.activations", 800, "layer", "0")
		s.labelled(t, "moe.coverage", 0.5, "layer", "0") // 4 of 8 experts
	})
	row("128_coselection", func(t *testing.T) { s.columns(t, "moe_pairs.csv", "layer", "expert_a", "expert_b", "pairs", "lift") })
	row("129_routing_weights", func(t *testing.T) { s.labelled(t, "moe.routing_weight", 0.5, "layer", "0") })
	row("130_load_imbalance", func(t *testing.T) { s.labelled(t, "moe.imbalance", 3, "layer", "0") })
	row("131_dead_experts", func(t *testing.T) {
		severity(t, s.report, "dead_experts", "remark")
		if m := s.report.Find("moe.load_balance", report.Labels{"layer": "0"}); m == nil || m.Value != nil {
			t.Errorf("%+v: with a dead expert the ratio is not known", m)
		}
	})
	row("132_a_gate_on_dead_experts", func(t *testing.T) {
		session := filepath.Join(evidence, "session")
		says(t, exitOK, "1 gate checked: 1 passed", "diff", session, session, "--fail-on", "moe.dead_experts:+1")
	})
	row("133_forward_passes", func(t *testing.T) {
		s.labelled(t, "forward.time", 30e6, "phase", "prefill")        // 20 and 40 ms
		s.labelled(t, "forward.time_share", 2.0/3, "phase", "prefill") // 60 of 90 ms
		s.labelled(t, "forward.token_rate", 400, "phase", "decode")    // 12 tokens in 30 ms
	})
	row("134_cpu_operations", func(t *testing.T) { s.metric(t, "cpu.scheduling_ratio", 10.0/60) })
	row("135_batch_utilisation", func(t *testing.T) { s.labelled(t, "batch.token_utilization", 0.5, "phase", "prefill") })
	row("136_preemptions", func(t *testing.T) {
		s.metric(t, "preemption.count", 3)
		s.metric(t, "preemption.rate", 0.75)
	})
	row("137_kv_usage_and_evictions", func(t *testing.T) {
		s.metric(t, "kv.evictions", 2)
		s.metric(t, "kv.blocks_peak", 400)
	})
	row("138_cuda_graph_captures", func(t *testing.T) {
		s.metric(t, "cudagraph.captured", 4)
		s.metric(t, "cudagraph.unused", 0.5)
	})
	row("139_encoder_and_decoder", func(t *testing.T) { s.columns(t, "encoder_decoder.csv", "part", "passes", "total_ms", "pct_of_time") })
	row("140_a_session_is_judged_by_default", func(t *testing.T) {
		says(t, exitFail, "forward.time.mean phase=decode: +30.0 %", "diff", sessionOf(t, 1), sessionOf(t, 1.3))
	})
	row("141_workflows", func(t *testing.T) {
		list, err := filepath.Glob("../../examples/github/*.yml")
		if err != nil || len(list) < 6 {
			t.Errorf("%v: %v", list, err)
		}
		if !strings.Contains(fileOf(t, "../../action.yml"), "outputs:") {
			t.Error("action.yml has no outputs")
		}
	})
	row("142_what_to_do_when", func(t *testing.T) { says(t, exitOK, "no_kernels", "doc", "reasons") })
	row("143_where_to_add_a_parser", func(t *testing.T) { says(t, exitOK, "From a number to its line of code", "doc", "architecture") })
	row("144_cuda_graph_modes", func(t *testing.T) {
		for _, mode := range []string{"FULL_DECODE_ONLY", "FULL_AND_PIECEWISE", "PIECEWISE", "NONE"} {
			says(t, exitOK, "`"+mode+"`", "doc", "graph_stats")
		}
	})
	row("145_forward_timers", func(t *testing.T) { s.labelled(t, "serve.iteration_time", 12e6, "type", "decode") })
	row("146_mfu_line", func(t *testing.T) {
		s.metric(t, "serve.model_flops", 200e12) // median of 100, 200 and 300 TF/s
		s.has(t, "report.md", "200 T")
		s.cell(t, "mfu.csv", 1, "tflops", "200")
		s.cell(t, "mfu.csv", 1, "side", "memory")
	})
	row("147_mfu_details", func(t *testing.T) { s.columns(t, "mfu_details.csv", "part", "flop", "read_bytes", "write_bytes") })
	row("148_mfu_details_tokens", func(t *testing.T) {
		s.metric(t, "serve.model_prefill_tokens", 550)
		s.metric(t, "serve.model_decode_tokens", 11)
	})
	row("149_standard_log_line", func(t *testing.T) { s.metric(t, "serve.generation_throughput", 220) })
	row("150_iteration_details", func(t *testing.T) {
		s.labelled(t, "serve.iterations", 4, "type", "decode")
		s.labelled(t, "serve.context_tokens", 450, "type", "mixed")
	})
	row("152_batch_utilisation_from_a_log", func(t *testing.T) { s.metric(t, "serve.batch_utilization", 2.0/2048) })
	row("153_preemption_rate", func(t *testing.T) { s.metric(t, "serve.preemption_rate", 3.0/8) })
	row("154_queue_pressure", func(t *testing.T) { s.metric(t, "serve.queue_pressure", 0) })
	row("155_prometheus_prefill_and_decode_time", func(t *testing.T) {
		s.metric(t, "serve.prefill_time", 150e6)
		s.metric(t, "serve.decode_time", 1e9)
	})
	row("157_bandwidth_gb_s", func(t *testing.T) {
		s.metric(t, "serve.model_bandwidth", 1500e9)
		s.cell(t, "mfu.csv", 1, "gbytes", "1500")
	})
	row("158_bandwidth_by_kernel", func(t *testing.T) { s.labelled(t, "ncu.dram_throughput", 2.5e12, "kernel", "fused_moe_kernel") })
	row("160_of_the_peak", func(t *testing.T) { s.metric(t, "serve.model_bandwidth_ratio", 1500.0/3350) })
	row("162_two_logs_side_by_side", func(t *testing.T) {
		says(t, exitFail, "serve.generation_throughput", "diff", logAt(t, 220), logAt(t, 187))
	})
	row("164_kv_formula", func(t *testing.T) { s.metric(t, "serve.kv_bytes_per_token", 8589934592.0/65536) })
	row("166_strategies", func(t *testing.T) { s.has(t, "report.md", "quantise") })
	row("170_intensity_and_ridge", func(t *testing.T) {
		s.columns(t, "roofline.csv", "intensity", "roof", "roofline_pct")
		s.cell(t, "mfu.csv", 1, "intensity", "133.33333333333334") // 200 TF/s by 1,500 GB/s
	})
	row("171_cuda_graph_stats", func(t *testing.T) {
		s.metric(t, "serve.graph_batches", 38)
		s.columns(t, "cuda_graph_stats.csv", "unpadded_tokens", "padded_tokens", "num_paddings", "mode", "count")
	})
	row("172_kv_cache_use", func(t *testing.T) { s.metric(t, "serve.kv_cache_usage", 0.3) })
	row("173_one_flag_for_a_log", func(t *testing.T) {
		says(t, exitOK, "Generation tokens per second", "--server-log", filepath.Join(evidence, "vllm.log"))
	})
	row("177_report_md", func(t *testing.T) { s.has(t, "report.md", "## Stage times and MFU") })
	row("179_operators_md", func(t *testing.T) { s.has(t, "operators.md", "| `aten::mm`") })
	row("180_kernels_md", func(t *testing.T) {
		s.has(t, "kernels.md", "Rows: 20")
		s.has(t, "kernels.md", "|   38.910 |   792 | 0.049129 |") // 38,910,... ns by 792
	})
	row("183_metrics_summary_csv", func(t *testing.T) {
		s.columns(t, "metrics_summary.csv", "kernel_id", "kernel_name", "sm_throughput_pct", "dram_throughput_pct", "duration_us",
			"classification", "roofline_ai_flops_per_byte")
	})
	row("184_classification", func(t *testing.T) {
		s.cell(t, "classification_summary.csv", 1, "classification", "memory_bound") // 37.5 - 78.75 < -5
		s.cell(t, "classification_summary.csv", 2, "classification", "compute_bound")
	})
	row("185_stages_by_nvtx", func(t *testing.T) {
		b := tracetest.New()
		th := b.Process(7, "p").Thread(7, "")
		for i, name := range []string{"LLM@prefill", "LLM@decode_all"} {
			at := int64(i) * 1_000_000
			th.Range(name, at, at+900_000)
			th.Launch("k"+strconv.Itoa(i), at+10, at+20, tracetest.Kernel{Start: at + 1000, End: at + 800_000})
		}
		r := seedReport(t, b.WriteTB(t))
		for _, phase := range []string{"prefill", "decode"} {
			if m := r.Find("phase.gpu_time", report.Labels{"phase": phase}); m == nil || *m.Value != 799_000 {
				t.Errorf("%s: %+v", phase, m)
			}
		}
	})
	row("186_regions", func(t *testing.T) {
		s.has(t, "ncu/regions/report.json", `"total_ms": 103.01337`)
		s.has(t, "ncu/regions/report.md", "execute_context_1(2048)_generation_0(0)")
	})
	row("187_its_files_are_evidence", func(t *testing.T) {
		r := seedReport(t, filepath.Join(evidence, "perfopt"))
		for _, id := range []string{"mfu", "operators", "ncu_regions"} {
			if tableOf(t, r.Sections, id, map[string]string{"mfu": "stages", "operators": "operators", "ncu_regions": "ncu_regions"}[id]) == nil {
				t.Errorf("no section %s", id)
			}
		}
	})
	row("188_mfu_by_stage", func(t *testing.T) {
		s.labelled(t, "mfu.flops", 328590163968, "stage", "prefill")
		s.labelled(t, "mfu.utilization", 328590163968/(0.05*312e12), "stage", "prefill")
	})
	row("189_mfu_without_its_metrics_json", func(t *testing.T) {
		config := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(config, []byte(`{"model_type":"llama","hidden_size":1024,"num_hidden_layers":16,"num_attention_heads":8,
			"num_key_value_heads":2,"intermediate_size":3584,"vocab_size":32000,"torch_dtype":"bfloat16"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r := seedReport(t, "../../testdata/serving.sqlite", "--evidence", config)
		for _, phase := range []string{"prefill", "decode", "mixed"} {
			if m := r.Find("model.flops_utilization", report.Labels{"phase": phase}); m == nil || m.Value == nil || *m.Value <= 0 {
				t.Errorf("%s: %+v", phase, m)
			}
		}
	})
	row("193_overhead_is_stated", func(t *testing.T) { s.metric(t, "quality.profiler_overhead", 2400000) })
	row("194_kernels_where_operators_have_no_time", func(t *testing.T) { s.columns(t, "stated_kernels.csv", "kernel", "total_ms", "calls") })
	row("195_kernel_ids_of_the_bundle", func(t *testing.T) {
		records := csvOf(t, filepath.Join(s.dir, "tables", "metrics_summary.csv"))
		if !regexp.MustCompile(`^kernel_0001_[0-9a-f]{32}$`).MatchString(records[1][column(t, records, "kernel_id")]) {
			t.Errorf("%v", records[1])
		}
	})
}

// houseRows are those of the design card.
func (s *seedRun) houseRows(row func(string, func(*testing.T))) {
	const serving = "../../testdata/serving.sqlite"
	for name, module := range map[string]string{"196_sqlite": "modernc.org/sqlite", "197_githubactions": "github.com/sethvargo/go-githubactions",
		"198_github": "github.com/google/go-github/v62", "199_cobra": "github.com/spf13/cobra"} {
		row(name, func(t *testing.T) {
			if !regexp.MustCompile(`(?m)^(require )?\s*` + regexp.QuoteMeta(module) + ` v[0-9.]+( //.*)?$`).MatchString(fileOf(t, "../../go.mod")) {
				t.Errorf("go.mod does not require %s itself", module)
			}
		})
	}
	row("201_report_and_json", func(t *testing.T) { says(t, exitOK, `"schema": "explain.report/1"`, serving, "--format", "json") })
	row("202_two_reports_with_thresholds", func(t *testing.T) {
		says(t, exitFail, "prefill", "diff", markers(t, 8_000_000), markers(t, 14_000_000), "--threshold", "10")
	})
	row("204_diff_of_two_reports", func(t *testing.T) {
		at := filepath.Join(s.dir, "report.json")
		says(t, exitInconclusive, "same_capture", "diff", at, at)
	})
}

func (s *seedRun) cell(t *testing.T, file string, row int, name, want string) {
	t.Helper()
	records := csvOf(t, filepath.Join(s.dir, "tables", file))
	if len(records) <= row {
		t.Fatalf("%s has %d rows", file, len(records)-1)
	}
	if got := records[row][column(t, records, name)]; got != want {
		t.Errorf("%s: %s of row %d is %q, want %q", file, name, row, got, want)
	}
}

// attention is a trace in which an attention kernel has so many percent of the time.
func attention(t *testing.T, percent int64) *report.Report {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	th.Launch("flash_fwd_kernel", 10, 20, tracetest.Kernel{Start: 1000, End: 1000 + percent*100_000})
	th.Launch("gemm_kernel", 30, 40, tracetest.Kernel{Start: 1000 + percent*100_000, End: 10_001_000})
	return seedReport(t, b.WriteTB(t))
}

// summaryOf is profilemate's summary.json with prefill of some ms and a coverage in percent.
func summaryOf(t *testing.T, prefill, coverage float64) string {
	text, err := json.Marshal(map[string]any{
		"prefill_decode": map[string]any{"prefill": map[string]any{"total_ms": prefill}, "decode": map[string]any{"total_ms": 2000}},
		"top_kernels":    []any{map[string]any{"kernel_name": "gemm", "total_time_ms": 500}},
		"cuda_graphs":    map[string]any{"graph_coverage_pct": coverage},
	})
	if err != nil {
		t.Fatal(err)
	}
	return jsonFile(t, string(text))
}

// markers is a trace with vLLM's markers: 40 rounds of a prefill, in which the GPU works for this long, and four decode
// steps of 1 ms. Times jitter by up to 1 %.
func markers(t *testing.T, prefill int64) string {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	at, n := int64(0), int64(0)
	step := func(name, kernel string, long int64) {
		n++
		long += long / 100 * (n * 7 % 11) / 10
		th.Range(name, at, at+1000)
		th.Launch(kernel, at+100, at+200, tracetest.Kernel{Start: at + 2000, End: at + long})
		at += long
	}
	for range 40 {
		step("execute_context_1(512)_generation_0(0)", "prefill_gemm", prefill)
		for range 4 {
			step("execute_context_0(0)_generation_8(8)", "decode_gemm", 1_000_000)
		}
	}
	return b.WriteTB(t)
}

// sessionOf is forward_pass_timing.csv of a session of 60 decode steps of 10 ms, so many times as long and up to 1 % more.
func sessionOf(t *testing.T, factor float64) string {
	var b strings.Builder
	b.WriteString("timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,throughput_tokens_per_sec\n")
	for i := range 60 {
		ms := 10 * factor * (1 + float64(i*7%11)/1000)
		b.WriteString(strconv.FormatFloat(float64(i)/10, 'f', 3, 64) + ",decode,4,4," + strconv.FormatFloat(ms, 'f', 3, 64) + "," +
			strconv.FormatFloat(4000/ms, 'f', 1, 64) + "\n")
	}
	path := filepath.Join(t.TempDir(), "forward_pass_timing.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// logAt is a log of vLLM with lines of this generation throughput.
func logAt(t *testing.T, rate int) string {
	var b strings.Builder
	for i := range 30 {
		jitter := rate + i*7%5
		b.WriteString("(APIServer pid=100) INFO 03-01 10:" + strconv.Itoa(10+i) + ":10 [loggers.py:257] Engine 000: Avg prompt throughput: 400.0 tokens/s, Avg generation throughput: " +
			strconv.Itoa(jitter) + ".0 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 20.0%, Prefix cache hit rate: 10.0%\n")
	}
	path := filepath.Join(t.TempDir(), "vllm.log")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
