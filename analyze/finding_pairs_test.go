package analyze

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A pair is two inputs that differ in one thing: with the first a finding must appear, with the second, close by, it must
// not, neither as a finding nor as a remark.
type pair func(t *testing.T, must bool) *report.Report

// TestEveryFindingHasAPair walks over all findings that sections declare. A new one needs a row in findingPairs.
func TestEveryFindingHasAPair(t *testing.T) {
	declared := map[string]bool{}
	for _, s := range sections {
		for _, d := range s.Findings {
			id := s.ID + "/" + d.ID
			declared[id] = true
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				p := findingPairs[id]
				if p == nil {
					t.Fatal("no pair of inputs: add one with which it must appear, and one close by with which it must not")
				}
				want := "finding"
				if slices.Contains(remarksOnly, id) {
					want = "remark"
				}
				if as := appears(p(t, true), s.ID, d.ID); as != want {
					t.Errorf("must appear as a %s, and is %q", want, as)
				}
				if as := appears(p(t, false), s.ID, d.ID); as != "" {
					t.Errorf("must not appear, and is a %s", as)
				}
			})
		}
	}
	for id := range findingPairs {
		if !declared[id] {
			t.Errorf("%s has a pair, and no section declares it", id)
		}
	}
	for _, id := range remarksOnly {
		if !declared[id] {
			t.Errorf("%s is no finding of any section", id)
		}
	}
}

// appears says as what a finding of a section is in a report; empty where it is not.
func appears(r *report.Report, section, id string) string {
	for i := range r.Findings {
		if f := &r.Findings[i]; f.ID == id && f.Doc == section {
			return "finding"
		}
	}
	for i := range r.Remarks {
		if f := &r.Remarks[i]; f.ID == id && f.Doc == section {
			return "remark"
		}
	}
	return ""
}

// remarksOnly say something of the capture, of time that no change is known to win, or (graphs) of time that gpu_idle tells
// with its place.
var remarksOnly = []string{
	"unit/unit_uneven", "unit/unit_imbalance", "components/attention_dominates", "host_idle/host_frame",
	"launches/launch_rate", "memcpy/tiny_copies", "memcpy/sync_memset", "graphs/graph_hidden", "graphs/no_graphs", "graphs/few_graphs", "idle/gpu_gaps", "idle/gpu_low_use", "idle/host_functions",
	"nvtx/nvtx_present", "phases/dominant_phase", "phases/dominant_phase_wall", "phases/phase_launch_storm", "processes/shared_device",
	"ncu/high_dram", "ncu/low_dram", "ncu/latency_bound", "ncu/top_kernel_bound", "ncu/few_measured",
	"load/load_saturated", "serving/preemptions", "counters/requests_cut_off", "iterations/iteration_stall", "engine_start/kv_cache_small", "graph_stats/graph_padding",
	"graph_stats/batches_without_graph", "speculative/spec_low_acceptance",
	"forward_pass/prefill_heavy", "batch_utilization/batches_small", "batch_utilization/batches_full", "batch_utilization/requests_wait",
	"preemptions/preempted_often", "preemptions/preempted_long", "kv_cache/kv_cache_unused", "kv_cache/kv_cache_full",
	"kv_cache/kv_blocks_short_lived", "cuda_graph_usage/cudagraphs_unused", "cuda_graph_usage/cudagraphs_never_run",
	"cpu_operations/scheduler_slow", "moe/dead_experts", "moe/experts_uneven", "mfu/decode_dominates", "mfu/prefill_dominates",
	"mfu/decode_memory_bound", "mfu/decode_latency_bound",
}

// findingPairs are by section and finding. In traces times are µs; a step is 1000 where nothing else is said.
var findingPairs = map[string]pair{
	"gpu_time/gpu_idle": traced(func(c *capture, must bool) { // 60 % idle, 3 %
		c.steps(func(at int64) { c.kernel("gemm", at, at, at+pick[int64](must, 400, 970)) })
	}),
	"gpu_time/transfer_bound": traced(func(c *capture, must bool) { // copies alone for 60 % of the window, 30 %
		until := pick[int64](must, 600, 300)
		c.copy(tracetest.HtoD, 1<<20, tracetest.Pinned, 0, until)
		c.kernel("gemm", 1, until, 1000)
	}),
	"gpu_time/exposed_comm": traced(func(c *capture, must bool) { // 5 % of the window, 1.5 %
		until := pick[int64](must, 950, 985)
		c.kernel("gemm", 0, 0, until)
		c.kernel(allReduce, 1, until, 1000)
	}),
	"gpu_time/device_imbalance": traced(func(c *capture, must bool) { // computes for 80 % of what the other does, 90 %
		c.kernel("gemm", 0, 0, 1000)
		c.on(1, 7).kernel("gemm", 1, 0, pick[int64](must, 800, 900))
	}),
	"gpu_time/work_waits": traced(func(c *capture, must bool) { // 10 % of each step behind launched work, 3 %; the host is late for 30 %
		c.steps(func(at int64) {
			c.kernel("a", at, at, at+400)
			c.kernel("b", at+10, at+400+pick[int64](must, 100, 30), at+700)
		})
	}),
	"kernels/dominant_kernel": kernelShares([]int64{700, 300}, []int64{400, 300, 300}),
	"kernels/large_kernel":    kernelShares([]int64{400, 300, 300}, []int64{200, 200, 200, 200, 200}),
	"kernels/fp32_math":       halves([]string{"ampere_sgemm_128x64_tn", "cutlass_80_tensorop_s1688gemm_128x128"}, 8),
	"kernels/fp64_math":       halves([]string{"volta_dgemm_64x64_nn", "volta_sgemm_64x64_nn"}, 6),
	"kernels/dominant_graph":  captures("graph_hidden.sqlite", "serving_graph.sqlite"), // 90 % of the step, 67 %
	"categories/unnamed_kernels": traced(func(c *capture, must bool) {
		c.kernel("gemm", 0, 0, 850)
		c.kernel(pick(must, "zyx(int)", "softmax_kernel"), 1, 850, 1000)
	}),
	"categories/pointwise_kernels": traced(func(c *capture, must bool) {
		c.kernel("gemm", 0, 0, 700)
		c.kernel(pick(must, pointwise, "rms_norm_kernel"), 1, 700, 1000)
	}),
	"categories/dominant_category": traced(func(c *capture, must bool) { // five names, of which one word says little
		c.steps(func(at int64) {
			for k := range int64(5) {
				c.kernel(pick(must, "flash_fwd_", "score_")+strings.Repeat("b", int(k+1)), at+k, at+200*k, at+200*k+200)
			}
		})
	}),
	"categories/layout_conversions": traced(func(c *capture, must bool) {
		c.steps(func(at int64) {
			c.kernel("conv", at, at, at+850)
			c.kernel(pick(must, "void cudnn::ops::nchwToNhwcKernel<float>", "softmax_nchw"), at+1, at+850, at+1000)
		})
	}),
	"components/attention_dominates": traced(func(c *capture, must bool) { // 61 % of the kernel time, 59 %
		until := pick[int64](must, 610, 590)
		c.kernel("flash_fwd_kernel", 0, 0, until)
		c.kernel("rms_norm_kernel", 1, until, 1000)
	}),
	"unit/unit_uneven": traced(func(c *capture, must bool) { // every second step takes twice as long, 10 % longer
		at := int64(0)
		for i := range int64(41) {
			c.kernel("a", at, at, at+400)
			c.kernel("b", at+1, at+400, at+900)
			at += 1000 + i%2*pick[int64](must, 1000, 100)
		}
	}),
	"unit/unit_imbalance": traced(func(c *capture, must bool) { // 20 % less work in each step, 2 %
		c.steps(func(at int64) {
			c.kernel("a", at, at, at+900)
			c.on(1, 7).kernel("a", at+1, at, at+pick[int64](must, 720, 882))
		})
	}),
	"host_idle/host_profiler": gap(func(c *capture, must bool) { // the profiler is busy in the gap, beside a kernel
		from := pick[int64](must, 200, 10)
		c.b.Overhead(tracetest.Overhead{Thread: c.th, Name: "flush", Start: from * us, End: (from + 80) * us})
	}),
	"host_idle/host_gil": gap(func(c *capture, must bool) { // 30 % of the late time, 5 %
		c.th.Range("Waiting for GIL", 400*us, pick[int64](must, 700, 450)*us)
	}),
	"host_idle/host_frame": gap(func(c *capture, must bool) { // in 30 of 40 samples, in 6
		for i := range pick(must, 30, 6) + 10 {
			stack := []tracetest.Frame{{Function: "_PyEval_EvalFrameDefault", Module: "python"}}
			if i >= 10 {
				stack = append([]tracetest.Frame{{Function: "tokenize", Module: "app"}}, stack...)
			}
			c.b.Sample(tracetest.Sample{Thread: c.th, At: int64(200*us + i), Stack: stack})
		}
		for i := range pick(must, 0, 24) {
			c.b.Sample(tracetest.Sample{Thread: c.th, At: int64(300*us + i), Stack: []tracetest.Frame{{Function: "_PyEval_EvalFrameDefault", Module: "python"}}})
		}
	}),
	"launches/launch_errors": traced(func(c *capture, must bool) { // a launch fails; a query says that work is not done
		c.kernel("gemm", 0, 0, 100)
		c.b.API(tracetest.API{Thread: c.th, Name: pick(must, "cudaLaunchKernel_v7000", "cudaEventQuery_v3020"), Start: 10 * us, End: 11 * us,
			Correlation: 999, Return: pick[int64](must, 701, 600)})
	}),
	"launches/launch_storm": launching(10, 6, 3, 25, 6, 18), // 100,000 launches per second of kernels of 3 µs; 40,000 of 18 µs
	"launches/launch_rate": traced(func(c *capture, must bool) { // 125,000 launches per second of kernels of 50 µs, 83,000
		every := pick[int64](must, 8, 12)
		for i := range int64(300) {
			c.on(0, 8+i%50).kernel("k", i*every, i*every+6, i*every+56)
		}
	}),
	"launches/slow_launches": traced(func(c *capture, must bool) { // calls of 25 µs, of 6
		for i := range int64(200) {
			at := 100 * i * us
			c.th.Launch("gemm", at, at+pick[int64](must, 25, 6)*us, tracetest.Kernel{Start: at + 30*us, End: at + 90*us})
		}
	}),
	"sync/sync_old": traced(func(c *capture, must bool) {
		c.steps(func(at int64) {
			c.kernel("gemm", at, at, at+600)
			c.th.Call(pick(must, "cudaThreadSynchronize_v3020", "cudaDeviceSynchronize_v3020"), (at+10)*us, (at+600)*us)
		})
	}),
	"sync/allocations": traced(func(c *capture, must bool) {
		c.steps(func(at int64) {
			c.kernel("gemm", at, at, at+600)
			c.th.Call(pick(must, "cudaMalloc_v3020", "cudaPointerGetAttributes_v4000"), (at+610)*us, (at+900)*us)
		})
	}),
	"sync/sync": traced(func(c *capture, must bool) { // the thread waits for each step; it polls
		c.steps(func(at int64) {
			c.kernel("gemm", at, at, at+600)
			c.th.Call(pick(must, "cudaStreamSynchronize_v3020", "cudaStreamQuery_v3020"), (at+10)*us, (at+610)*us)
		})
	}),
	"memcpy/tiny_copies": traced(func(c *capture, must bool) {
		for i := range int64(pick(must, 150, 99)) {
			c.copy(tracetest.DtoH, 4, tracetest.Pinned, 10*i, 10*i+2)
		}
		c.kernel("gemm", 2, 2000, 3000)
	}),
	"memcpy/async_pageable": blockingCopy("cudaMemcpyAsync_v3020", tracetest.Pageable, "cudaMemcpyAsync_v3020", tracetest.Pinned),
	"memcpy/sync_copy":      blockingCopy("cudaMemcpy_v3020", tracetest.Pinned, "cudaMemcpyAsync_v3020", tracetest.Pinned),
	"memcpy/sync_memset": traced(func(c *capture, must bool) {
		c.kernel("gemm", 0, 0, 900)
		kind := pick(must, tracetest.Pinned, tracetest.DeviceMemory)
		c.b.Memset(tracetest.Memset{Place: tracetest.Place{Process: c.th.Process(), Correlation: c.th.Call("cudaMemset_v3020", 910*us, 990*us)},
			Start: 950 * us, End: 980 * us, Bytes: 10, Set: tracetest.Row{"memKind": tracetest.Int(int64(kind))}})
	}),
	"memcpy/read_backs": traced(func(c *capture, must bool) { // 4 bytes, 1 kB
		c.steps(func(at int64) {
			c.kernel("gemm", at, at+10, at+600)
			c.th.Memcpy((at+20)*us, (at+700)*us, tracetest.Memcpy{Start: (at + 620) * us, End: (at + 670) * us, Bytes: pick[int64](must, 4, 1024),
				Kind: tracetest.DtoH, Src: tracetest.DeviceMemory, Dst: tracetest.Pageable})
		})
	}),
	"graphs/graph_hidden": captures("serving_graph.sqlite", "serving.sqlite"),
	"graphs/no_graphs":    launching(20, 8, 12, 100, 8, 92), // launching is 40 % of the time, 8 %
	"graphs/few_graphs": traced(func(c *capture, must bool) { // graphs run a third of the kernel time, all but a little
		for i := range int64(20) {
			at := 1000 * i
			c.th.GraphLaunch(at*us, (at+5)*us, tracetest.Kernel{Name: "gemm", Start: (at + 5) * us, End: (at + pick[int64](must, 105, 500)) * us})
			for k := range int64(20) {
				from := at + 500 + 20*k
				c.th.Launch("k"+strconv.Itoa(int(k)), from*us, (from+10)*us, tracetest.Kernel{Start: (from + 10) * us, End: (from + pick[int64](must, 20, 14)) * us})
			}
		}
	}),
	"comm/comm_skew": traced(func(c *capture, must bool) { // one GPU joins 200 µs later, 20
		c.kernel("gemm", 0, 0, 500)
		c.kernel(allReduce, 1, 500, 1000)
		late := pick[int64](must, 700, 520)
		c.on(1, 7).kernel("gemm", 2, 0, late)
		c.on(1, 7).kernel(allReduce, 3, late, 1000)
	}),
	"comm/comm_slows": tracedWith(Options{Unit: "kernel:nccl"}, func(c *capture, must bool) { // beside it a product takes 30 % longer; as long
		long := pick[int64](must, 130, 100)
		for i := range int64(12) {
			at := 10 + i*(100+long)
			c.kernel("gemm", at-9, at, at+100)
			c.kernel("gemm", at-8, at+100, at+100+long)
			c.on(0, 8).kernel(allReduce, at-7, at+100, at+100+long)
		}
	}),
	"streams/serial_copies": traced(func(c *capture, must bool) { // after the kernel; beside it
		from := pick[int64](must, 700, 300)
		c.kernel("gemm", 0, 0, 700)
		c.on(0, 9).copy(tracetest.HtoD, 1<<20, tracetest.Pinned, from, from+300)
	}),
	"idle/gpu_gaps": traced(func(c *capture, must bool) { // 600 ms, 400 ms
		c.kernel("gemm", 0, 0, 10_000)
		end := pick[int64](must, 610_000, 410_000)
		c.kernel("gemm", end-5, end, end+10_000)
	}),
	"idle/gpu_low_use": traced(func(c *capture, must bool) { // 14 % of the window idle in one piece; 5 %
		c.kernel("gemm", 0, 0, pick[int64](must, 850, 940))
		c.kernel("gemm", 980, 990, 1000)
	}),
	"idle/host_functions": traced(func(c *capture, must bool) { // 2 % of the window behind a function, or beside one of another stream
		c.b = tracetest.New(tracetest.Schema("3.25.0"))
		c.th = c.b.Process(1, "p").Thread(1, "")
		c.kernel("gemm", 0, 0, 500)
		c.b.HostFunc(tracetest.HostFunc{Place: tracetest.Place{Process: c.th.Process(), Stream: pick[int64](must, 7, 8)}, Start: 500 * us, End: 520 * us})
		c.kernel("gemm", 480, 521, 1000)
	}),
	"nvtx/nvtx_present": traced(func(c *capture, must bool) {
		c.kernel("gemm", 0, 0, 1000)
		pick(must, c.th.Range, c.inRuntime)("forward", 0, 5*us)
	}),
	"phases/dominant_phase":      twoPhases(800, 600),
	"phases/dominant_phase_wall": twoPhases(800, 600),
	"phases/phase_launch_storm": traced(func(c *capture, must bool) { // 200,000 launches per second, 40,000
		every := pick[int64](must, 5, 25)
		c.th.Range("LLM@decode 1", 0, 200*every*us)
		for i := range int64(200) {
			c.kernel("k", every*i+1, every*i+3, every*i+4)
		}
	}),
	"processes/shared_device": traced(func(c *capture, must bool) { // on one GPU, on one each
		c.kernel("gemm", 0, 0, 500)
		other := &capture{b: c.b, th: c.b.Process(2, "other").Thread(2, ""), place: tracetest.Place{Device: pick[int64](must, 0, 1), Stream: 7}}
		other.kernel("gemm", 1, 500, 1000)
	}),
	"quality/host_place": traced(func(c *capture, must bool) { // no kernel; one
		c.th.Call("cudaFree_v3020", 10*us, 60*us)
		c.th.Call("cudaMalloc_v3020", 90*us, 110*us)
		if !must {
			c.kernel("gemm", 0, 1, 10)
		}
	}),
	"ncu/high_dram":        ncuPages("a|10|20|86\nb|10|20|85.5", "a|10|20|84\nb|10|20|85.5"),
	"ncu/low_dram":         ncuPages("a|11|70|49\nb|10|30|50", "a|10|70|50\nb|10|30|50"),
	"ncu/latency_bound":    ncuPages("a|10|70|50\nb|10|30|50", "a|11|70|49\nb|10|30|50"),
	"ncu/top_kernel_bound": ncuPages("a|10|20|86", "a|10|n/a|86"), // what limits it is known, is not
	"ncu/few_measured": func(t *testing.T, must bool) *report.Report { // 40 % of the kernel time, 60 %
		c := newCapture()
		c.kernel("a", 0, 0, pick[int64](must, 400, 600))
		c.kernel("b", 1, pick[int64](must, 400, 600), 1000)
		folder := write(t, map[string]string{"ncu.csv": ncuPage("a|1|70|20")})
		return runReport(t, c.b.WriteTB(t), Options{Evidence: []Evidence{{Path: filepath.Join(folder, "ncu.csv")}}})
	},
	"load/load_failures": loads(func(must bool) *loadfile.Result { // four of two hundred fail, none
		return oneLoad(5, func(i int64, r *loadfile.Record) {
			if must && i%50 == 49 {
				*r = loadfile.Record{Due: r.Due, Sent: r.Sent, First: -1, Last: -1, End: r.Due + 1e6, Input: -1, Output: -1, Failed: loadfile.HTTPStatus(503)}
			}
		})
	}),
	"load/load_goodput": loads(func(must bool) *loadfile.Result { // first tokens after 20 to 29 ms, of 25 wanted; after up to 25
		return oneLoad(25, func(i int64, r *loadfile.Record) { r.First = r.Due + (20+i%pick[int64](must, 10, 5))*1e6 })
	}),
	"load/load_saturated": loads(func(must bool) *loadfile.Result { // each answer takes 30 ms of the server, and 10 ms pass to the next request; it takes 5
		return oneLoad(0, func(i int64, r *loadfile.Record) {
			if end := (i + 1) * 30e6; must {
				r.First, r.Last, r.End = end, end, end
			}
		})
	}),
	"serving/kv_cache_full":   logs(serving("8", "10", "99.0"), serving("8", "1", "99.0")),
	"serving/queue_with_room": logs(serving("8", "10", "9.0"), serving("8", "0", "9.0")),
	"serving/preemptions": logs(sglangBatch+"\n[2026-08-01 23:43:46] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.6000 -> 0.9000",
		sglangBatch),
	"iterations/prefill_slows_decode": logs(iterations(20, 10, 60), iterations(20, 10, 12)),
	"iterations/iteration_stall":      logs(iterations(200, 10, 12)+"\n"+iteration(0, 1, 500), iterations(200, 10, 12)+"\n"+iteration(0, 1, 20)),
	"device_steps/host_bound_steps":   logs(trtSteps("7", "4"), trtSteps("4", "7")),
	"requests/failed_responses": logs(vllmStarts+"\n"+`(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error`,
		vllmStarts+"\n"+`(APIServer pid=1) INFO:     127.0.0.1:5 - "POST /v1/completions HTTP/1.1" 200 OK`),
	"engine_start/kv_cache_small": logs("INFO 10-14 05:39:11 [kv_cache_utils.py:126] Maximum concurrency for 65,536 tokens per request: 1.44x",
		"INFO 10-14 05:39:11 [kv_cache_utils.py:126] Maximum concurrency for 65,536 tokens per request: 14.40x"),
	"graph_stats/graph_padding":         logs(graphStats("| 5 | 8 | 3 | FULL | 10 |"), graphStats("| 8 | 8 | 0 | FULL | 10 |")),
	"graph_stats/batches_without_graph": logs(graphStats("| 8 | 8 | 0 | FULL | 10 |", "| 300 | 300 | 0 | NONE | 10 |"), graphStats("| 8 | 8 | 0 | FULL | 100 |", "| 300 | 300 | 0 | NONE | 1 |")),
	"speculative/spec_low_acceptance":   logs(drafts("20.0", "20"), drafts("60.0", "60")),
	"expert_load/experts_uneven": logs("INFO 03-01 10:00:44 [eplb_state.py:390] EPLB step: avg_tokens=5.00, max_tokens=20, balancedness=0.2500",
		"INFO 03-01 10:00:44 [eplb_state.py:390] EPLB step: avg_tokens=18.00, max_tokens=20, balancedness=0.9000"),
	"errors/server_errors": logs(vllmStarts+"\n"+vllmDied, vllmStarts+"\n(APIServer pid=1) INFO:     Shutting down\n"+vllmDied),
	"errors/never_ready":   logs(vllmStarts, vllmStarts+"\n(APIServer pid=1) INFO:     Application startup complete."),
	"latency/queue_before_first_token": dumps(histogram("vllm:request_queue_time_seconds", 80)+histogram("vllm:time_to_first_token_seconds", 100),
		histogram("vllm:request_queue_time_seconds", 20)+histogram("vllm:time_to_first_token_seconds", 100)),
	"counters/requests_cut_off": dumps(ended("abort", 10), ended("length", 10)),

	"forward_pass/prefill_heavy":            files("f.csv", forwardHeader+"0.1,prefill,1,512,40,1\n0.2,decode,4,4,10,1\n", forwardHeader+"0.1,prefill,1,512,10,1\n0.2,decode,4,4,40,1\n"),
	"batch_utilization/batches_small":       files("b.csv", batchHeader+batch("100", "8", "0"), batchHeader+batch("700", "8", "0")),
	"batch_utilization/batches_full":        files("b.csv", batchHeader+batch("1000", "8", "0"), batchHeader+batch("700", "8", "0")),
	"batch_utilization/requests_wait":       files("b.csv", batchHeader+batch("700", "8", "3"), batchHeader+batch("700", "8", "0")),
	"preemptions/preempted_often":           files("e.csv", preemptHeader+started+"1,a,preempted,SWAP,0.5,\n1.1,a,resumed,,0,\n", preemptHeader+started),
	"preemptions/preempted_long":            files("e.csv", preemptHeader+"1,a,preempted,SWAP,0.5,\n4,a,resumed,,0,\n", preemptHeader+"1,a,preempted,SWAP,0.5,\n1.2,a,resumed,,0,\n"),
	"kv_cache/kv_cache_unused":              files("u.csv", kvHeader+"0.1,10,10,100\n", kvHeader+"0.1,60,60,100\n"),
	"kv_cache/kv_cache_full":                files("u.csv", kvHeader+"0.1,99,99,100\n", kvHeader+"0.1,60,60,100\n"),
	"kv_cache/kv_blocks_short_lived":        files("e.csv", kvEvicted+"0.2,1.0,0.1\n", kvEvicted+"0.2,9.0,0.1\n"),
	"cuda_graph_usage/cudagraphs_unused":    graphUse("FULL,4,4,True,False,1\n", "FULL,4,4,True,False,1\nFULL,8,8,True,False,1\n"),
	"cuda_graph_usage/cudagraphs_never_run": graphUse("", "FULL,4,4,True,False,1\n"),
	"cpu_operations/scheduler_slow":         files("c.csv", cpuHeader+"0.1,scheduling,5,\n0.2,model_execution,20,\n", cpuHeader+"0.1,scheduling,1,\n0.2,model_execution,20,\n"),
	"moe/dead_experts":                      experts("0,0,10,50\n0,1,10,50\n", "0,0,10,25\n0,1,10,25\n0,2,10,25\n0,3,10,25\n"),
	"moe/experts_uneven":                    experts("0,0,70,70\n0,1,10,10\n0,2,10,10\n0,3,10,10\n", "0,0,28,28\n0,1,24,24\n0,2,24,24\n0,3,24,24\n"),
	"mfu/decode_dominates":                  stages(20, 200, 20, 20),
	"mfu/prefill_dominates":                 stages(200, 20, 20, 20),
	"mfu/decode_memory_bound":               stages(20, 1.2, 20, 200), // 1.8 GB in 1.2 ms: three quarters of what the memory can
	"mfu/decode_latency_bound":              stages(20, 200, 20, 1.2),
}

const (
	allReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
	pointwise = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"

	vllmStarts    = "(APIServer pid=1) INFO 08-01 21:00:00 [utils.py:293] vLLM API server version 0.15.0"
	sglangBatch   = "[2026-08-01 23:43:46] Decode batch. #running-req: 1, #token: 40, token usage: 0.90, gen throughput (token/s): 1.00, #queue-req: 0"
	vllmDied      = "(APIServer pid=1) ERROR 08-01 21:34:51 [async_llm.py:704] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue."
	forwardHeader = "timestamp_sec,phase,batch_size,num_tokens,forward_time_ms,throughput_tokens_per_sec\n"
	batchHeader   = "timestamp_sec,num_seqs,max_num_seqs,seq_utilization_pct,num_tokens,max_tokens,token_utilization_pct,phase,running_queue_len,waiting_queue_len\n"
	preemptHeader = "timestamp_sec,request_id,event,reason,running_time_sec,extra_info\n"
	started       = "0.1,a,started,,0,\n0.1,b,started,,0,\n"
	kvHeader      = "timestamp_sec,usage_pct,num_blocks,total_blocks\n"
	kvEvicted     = "timestamp_sec,lifetime_sec,idle_sec\n"
	cpuHeader     = "timestamp_sec,operation,duration_ms,context\n"
)

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// capture builds a trace of one thread; times are µs.
type capture struct {
	b     *tracetest.Builder
	th    *tracetest.Thread
	place tracetest.Place
}

func newCapture() *capture {
	b := tracetest.New()
	return &capture{b: b, th: b.Process(1, "p").Thread(1, ""), place: tracetest.Place{Stream: 7}}
}

// on is the same thread, with work on another GPU or stream.
func (c *capture) on(device, stream int64) *capture {
	return &capture{c.b, c.th, tracetest.Place{Device: device, Stream: stream}}
}

// kernel is launched at a moment by a call of 1 ns.
func (c *capture) kernel(name string, call, from, to int64) {
	c.th.Launch(name, call*us, call*us+1, tracetest.Kernel{Place: c.place, Start: from*us + 1, End: to * us})
}

// copy is launched just before it runs.
func (c *capture) copy(kind tracetest.CopyKind, bytes int64, host tracetest.MemKind, from, to int64) {
	m := tracetest.Memcpy{Place: c.place, Start: from*us + 1, End: to * us, Bytes: bytes, Kind: kind, Src: host, Dst: tracetest.DeviceMemory}
	if kind == tracetest.DtoH {
		m.Src, m.Dst = m.Dst, m.Src
	}
	c.th.Memcpy(from*us, from*us+1, m)
}

// steps runs eleven steps of 1000 µs.
func (c *capture) steps(step func(at int64)) {
	for i := range int64(11) {
		step(1000 * i)
	}
}

// inRuntime is a call in place of a range.
func (c *capture) inRuntime(_ string, from, to int64) { c.th.Call("cudaGetDevice_v3020", from, to) }

func traced(build func(c *capture, must bool)) pair { return tracedWith(Options{}, build) }

func tracedWith(opt Options, build func(c *capture, must bool)) pair {
	return func(t *testing.T, must bool) *report.Report {
		c := newCapture()
		build(c, must)
		return runReport(t, c.b.WriteTB(t), opt)
	}
}

// captures are files of testdata.
func captures(yes, no string) pair {
	return func(t *testing.T, must bool) *report.Report {
		return runReport(t, filepath.Join("..", "testdata", pick(must, yes, no)), Options{})
	}
}

// kernelShares are steps of kernels of these lengths, one after the other, each of its own name.
func kernelShares(yes, no []int64) pair {
	return traced(func(c *capture, must bool) {
		c.steps(func(at int64) {
			for i, long := range pick(must, yes, no) {
				c.kernel("kernel_"+string(rune('a'+i)), at-at%1000+int64(i), at, at+long)
				at += long
			}
		})
	})
}

// halves are steps of which half is a matrix product, on a GPU of compute capability major.x.
func halves(names []string, major int64) pair {
	return traced(func(c *capture, must bool) {
		c.b.GPU(tracetest.GPU{Name: "A GPU", Compute: [2]int64{major, pick[int64](major == 6, 1, 0)}})
		c.steps(func(at int64) {
			c.kernel(pick(must, names[0], names[1]), at, at, at+500)
			c.kernel("softmax", at+1, at+500, at+1000)
		})
	})
}

// gap is one gap of 1000 µs, all of it the host's, between two kernels of 100 µs.
func gap(build func(c *capture, must bool)) pair {
	return traced(func(c *capture, must bool) {
		c.kernel("gemm", 0, 0, 100)
		c.kernel("gemm", 1100, 1100, 1200)
		c.th.Ran(0, 0, 1200*us)
		build(c, must)
	})
}

// launching is steps of twenty kernels, each launched once the one before is done: every so many µs, with a call and a
// kernel so long.
func launching(every, call, long, otherEvery, otherCall, otherLong int64) pair {
	return traced(func(c *capture, must bool) {
		every, call, long := pick(must, every, otherEvery), pick(must, call, otherCall), pick(must, long, otherLong)
		for i := range int64(300) {
			at := i * every
			c.th.Launch("k"+strconv.Itoa(int(i%20)), at*us, (at+call)*us, tracetest.Kernel{Start: (at + call) * us, End: (at + call + long) * us})
		}
	})
}

// blockingCopy is steps in which a copy of 1 MB holds the thread while nothing else runs; the other one returns at once.
func blockingCopy(yes string, kind tracetest.MemKind, no string, other tracetest.MemKind) pair {
	return traced(func(c *capture, must bool) {
		c.steps(func(at int64) {
			c.kernel("gemm", at, at, at+600)
			call := c.th.Call(pick(must, yes, no), (at+610)*us, (at+pick[int64](must, 900, 612))*us)
			c.b.Memcpy(tracetest.Memcpy{Place: tracetest.Place{Process: c.th.Process(), Stream: 7, Correlation: call}, Start: (at + 700) * us, End: (at + 750) * us,
				Bytes: 1 << 20, Kind: tracetest.HtoD, Src: pick(must, kind, other), Dst: tracetest.DeviceMemory})
		})
	})
}

// twoPhases are ranges of two phases that share 1000 µs, on the host and in kernels alike.
func twoPhases(yes, no int64) pair {
	return traced(func(c *capture, must bool) {
		at := pick(must, yes, no)
		c.th.Range("LLM@decode 1", 0, at*us)
		c.th.Range("LLM@prefill 1", at*us+1, 1000*us)
		c.kernel("a", 1, 1, at)
		c.kernel("b", at+1, at+1, 1000)
	})
}

func write(t *testing.T, texts map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// textFiles is files beside no trace.
func textFiles(yes, no map[string]string) pair {
	return func(t *testing.T, must bool) *report.Report {
		return runReport(t, "", Options{Evidence: []Evidence{{Path: write(t, pick(must, yes, no))}}})
	}
}

func files(name, yes, no string) pair {
	return textFiles(map[string]string{name: yes}, map[string]string{name: no})
}

func logs(yes, no string) pair  { return files("server.log", yes+"\n", no+"\n") }
func dumps(yes, no string) pair { return files("metrics.prom", yes, no) }
func ncuPages(yes, no string) pair {
	return files("ncu.csv", ncuPage(strings.Split(yes, "\n")...), ncuPage(strings.Split(no, "\n")...))
}

// ncuPage is a raw page of launches: name, µs, SM %, DRAM %.
func ncuPage(launches ...string) string {
	const pct = ".avg.pct_of_peak_sustained_elapsed"
	text := `"ID","Kernel Name","gpu__time_duration.sum","sm__throughput` + pct + `","gpu__dram_throughput` + pct + `"` + "\n" + `"","","us","%","%"` + "\n"
	for i, l := range launches {
		text += fmt.Sprintf("\"%d\",\"%s\"\n", i, strings.ReplaceAll(l, "|", `","`))
	}
	return text
}

func loads(of func(must bool) *loadfile.Result) pair {
	return func(t *testing.T, must bool) *report.Report {
		var b strings.Builder
		if err := of(must).Write(&b); err != nil {
			t.Fatal(err)
		}
		return runReport(t, filepath.Join(write(t, map[string]string{"load.json": b.String()}), "load.json"), Options{})
	}
}

// oneLoad is two hundred requests, one every 10 ms, answered after 35 ms with four tokens; ttft is the limit in ms, 0 for none.
func oneLoad(ttft int64, change func(i int64, r *loadfile.Record)) *loadfile.Result {
	var records []loadfile.Record
	for i := range int64(200) {
		due := i * 10e6
		r := loadfile.Record{Due: due, Sent: due, First: due + 5e6, Last: due + 35e6, End: due + 35e6, Input: 30, Output: 4, ByUsage: true}
		change(i, &r)
		records = append(records, r)
	}
	var slo loadfile.SLO
	if limit := ttft * 1e6; ttft > 0 {
		slo.TTFT = &limit
	}
	rate, requests := 100.0, int64(200)
	r := loadfile.Build(loadfile.Workload{API: "completions", Stream: true, Prompts: "mixed", Fingerprint: "0123456789abcdef", Loop: "open", Rate: &rate,
		Requests: &requests, Timeout: 120e9}, slo, records, nil)
	r.Describe("test", "org/model-8b")
	return r
}

// serving is three lines of a server's statistics.
func serving(running, waiting, usage string) string {
	line := "INFO 03-01 10:00:10 [loggers.py:257] Engine 000: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 9.0 tokens/s, Running: " + running +
		" reqs, Waiting: " + waiting + " reqs, GPU KV cache usage: " + usage + "%, Prefix cache hit rate: 0.0%"
	return strings.Join([]string{line, line, line}, "\n")
}

// iteration is a line of vLLM's details of iterations.
func iteration(context, generation int, ms float64) string {
	return fmt.Sprintf("(EngineCore_DP0 pid=200) INFO 03-01 10:00:00 [core.py:348] Iteration(1): %d context requests, %d context tokens, %d generation requests, %d generation tokens, iteration elapsed time: %.2f ms",
		context, 100*context, generation, generation, ms)
}

// iterations are n of decode alone, and as many that prefill too.
func iterations(n int, decode, mixed float64) string {
	var lines []string
	for range n {
		lines = append(lines, iteration(0, 2, decode), iteration(1, 2, mixed))
	}
	return strings.Join(lines, "\n")
}

// trtSteps are steps of TensorRT-LLM's iteration log: ms on the host, and on the device.
func trtSteps(host, device string) string {
	var lines []string
	for i := range 5 {
		lines = append(lines, "[TRT-LLM] [I] [_torch][RANK 0] iter = "+strconv.Itoa(i)+", global_rank = 0, rank = 0, num_scheduled_requests = 4, kv_cache_util = 0.5, host_step_time = "+
			host+"ms, prev_device_step_time = "+device+"ms, timestamp = 2026-08-17 03:22:44, states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 4}")
	}
	return strings.Join(lines, "\n")
}

func graphStats(rows ...string) string {
	const at = "(APIServer pid=1) INFO 03-01 10:00:30 [cuda_graph.py:123] "
	return at + "CUDAGraph Stats:\n" + at + strings.Join(rows, "\n"+at)
}

func drafts(percent, accepted string) string {
	return "INFO 03-01 10:00:00 [metrics.py:86] SpecDecoding metrics: Draft acceptance rate: " + percent + "%, Mean acceptance length: 1.20, Accepted: " + accepted +
		" tokens, Drafted: 100 tokens, Per-position acceptance rate: 0." + accepted
}

// histogram is one of a hundred requests, of which each took so many ms.
func histogram(name string, ms int) string {
	return fmt.Sprintf("# TYPE %[1]s histogram\n%[1]s_bucket{le=\"%[2]g\"} 0\n%[1]s_bucket{le=\"%[3]g\"} 100\n%[1]s_bucket{le=\"+Inf\"} 100\n%[1]s_sum %[3]g\n%[1]s_count 100\n",
		name, float64(ms-1)/1000, float64(ms)/1000)
}

// ended is ninety requests that stopped and some that ended for another reason.
func ended(reason string, n int) string {
	const name = "vllm:request_success_total"
	return "# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total 1000\n" + fmt.Sprintf("# TYPE %[1]s counter\n%[1]s{finished_reason=\"stop\"} 90\n%[1]s{finished_reason=\"%[2]s\"} %[3]d\n", name, reason, n)
}

// batch is a row of 1024 tokens at most.
func batch(tokens, running, waiting string) string {
	return "0.1,8,8,100," + tokens + ",1024,0,prefill," + running + "," + waiting + "\n"
}

// graphUse is two captured graphs and which of them were replayed.
func graphUse(yes, no string) pair {
	captured := "runtime_mode,num_tokens,num_reqs,uniform,has_lora,capture_time_sec\nFULL,4,4,True,False,2\nFULL,8,8,True,False,2\n"
	const used = "runtime_mode,num_tokens,num_reqs,uniform,has_lora,replay_count\n"
	return textFiles(map[string]string{"c.csv": captured, "u.csv": used + yes}, map[string]string{"c.csv": captured, "u.csv": used + no})
}

// experts is a layer of four experts and how often each was chosen.
func experts(yes, no string) pair {
	with := func(rows string) map[string]string {
		return map[string]string{"a.csv": "layer_idx,expert_id,activation_count,percentage\n" + rows, "s.json": `{"layer_0": {"num_experts": 4, "top_k": 1}}`}
	}
	return textFiles(with(yes), with(no))
}

// stages are runs of ten tokens on an A100, by their ms of prefill and decode: of a model of ten layers of 1000.
func stages(prefill, decode, otherPrefill, otherDecode float64) pair {
	with := func(prefill, decode float64) map[string]string {
		return map[string]string{
			"m.json":   fmt.Sprintf(`{"aggregates": {"prefill_ms": {"mean": %g, "std": 0}, "decode_ms": {"mean": %g, "std": 0}, "tokens": {"mean": 10, "std": 0}}, "model_dims": {"d_model": 1000, "d_ff": 2000, "n_layers": 10}, "peak_tflops": 312}`, prefill, decode),
			"env.json": `{"gpu": "NVIDIA A100-SXM4-80GB", "cuda": "12.4", "torch": "2.6.0+cu124", "transformers": "4.46.3"}`,
			"c.yaml":   "model:\n  name: m\n  dtype: bf16\ninfer:\n  max_new_tokens: 64\n  context_len_mode: fixed\n  context_len_fixed: 100\n",
		}
	}
	return textFiles(with(prefill, decode), with(otherPrefill, otherDecode))
}
