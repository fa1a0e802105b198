package serverlog

import (
	"bytes"
	"encoding/json"
	"math"
)

const trtEngine = "TensorRT-LLM"

// trtMessage is TensorRT-LLM's text about one iteration, after its tags: from "iter = " on, or the JSON object of the
// C++ runtime. reach bounds where in the line it may begin.
//
//	[TRT-LLM] [I] [_torch][RANK 0] iter = 7, …        [08/17/2026-03:22:44] [TRT-LLM] [RANK 0] [I] iter = 7, …
//	[TensorRT-LLM][INFO] {"Active Request Count":249,"Context Requests":8,…
func trtMessage(m, reach []byte) ([]byte, bool) {
	if at := bytes.Index(reach, []byte("TRT-LLM]")); at >= 0 {
		if i := bytes.Index(reach[at:], []byte(" iter = ")); i >= 0 {
			return m[at+i+1:], true
		}
		return nil, false
	}
	if at := bytes.Index(reach, []byte("[TensorRT-LLM]")); at >= 0 {
		if i := bytes.Index(reach[at:], []byte(`{"`)); i >= 0 && bytes.Contains(m, []byte(`"Iteration Counter"`)) {
			return m[at+i:], true
		}
	}
	return nil, false
}

// trt takes the text that trtMessage found.
func trt(r *reader, m []byte) verdict {
	read := trtIteration
	if m[0] == '{' {
		read = trtCounts
	}
	if !read(r, m) {
		r.broken()
		return known
	}
	setFirst(&r.start.Engine, trtEngine)
	return understood
}

// trtIteration takes a line of the PyTorch flow. Its device time belongs to the iteration before, since the host runs
// ahead. Every rank logs; only the lines of the first are taken.
//
//	iter = 7, global_rank = 0, rank = 0, num_scheduled_requests = 16, kv_cache_util = 0.125, currank_total_requests = 3/40,
//	host_step_time = 12.5ms, prev_device_step_time = 11.25ms, timestamp = 2026-08-17 03:22:44, states =
//	{'num_ctx_requests': 1, 'num_ctx_tokens': 512, 'num_generation_tokens': 15, 'cached_kv_tokens': 2048}
func trtIteration(r *reader, m []byte) bool {
	if rank := value(m, "global_rank"); rank != nil && whole(until(rank, ",")) != 0 {
		return true
	}
	iter, _, ok := digits(value(m, "iter"))
	if !ok {
		return false
	}
	count := func(key string) int64 {
		v, _, _ := digits(value(m, key))
		return v
	}
	if c, year, _, good := clockText(value(m, "timestamp")); good {
		r.at(c, year)
	}
	if micros, good := thousandths(value(m, "prev_device_step_time")); good {
		r.d.Iterations.deviceOf(iter-1, micros)
	}
	scheduled, context := count("num_scheduled_requests"), count("num_ctx_requests")
	row := Iteration{Index: narrow(iter), Context: short(context), ContextTokens: narrow(count("num_ctx_tokens")),
		Generation: short(max(0, scheduled-context)), Tokens: narrow(count("num_generation_tokens"))}
	if row.micros, ok = thousandths(value(m, "host_step_time")); !ok {
		return false
	}
	r.step(row, -1)
	s := newSample()
	s.Running = float64(scheduled)
	if v, _, good := decimal(value(m, "kv_cache_util")); good && v <= 1 {
		s.Usage = v
	}
	r.trtSample(s)
	return true
}

// trtSample keeps one line a second: this engine logs with every step, others every few seconds.
func (r *reader) trtSample(s Sample) {
	if r.last != NoClock && r.last == r.trtClock {
		return
	}
	r.trtClock = r.last
	r.sample(s, -1)
}

// trtCounts takes the C++ runtime's statistics of an iteration, which have no time.
func trtCounts(r *reader, m []byte) bool {
	var x struct {
		Active    *float64 `json:"Active Request Count"`
		Scheduled *float64 `json:"Scheduled Requests"`
		Used      float64  `json:"Used KV cache blocks"`
		Most      float64  `json:"Max KV cache blocks"`
	}
	if err := json.NewDecoder(bytes.NewReader(m)).Decode(&x); err != nil || x.Active == nil {
		return false
	}
	if *x.Active < 0 || x.Scheduled != nil && *x.Scheduled < 0 || x.Used < 0 {
		return false
	}
	s := newSample()
	s.Running = *x.Active
	if x.Scheduled != nil {
		s.Running, s.Waiting = *x.Scheduled, max(0, *x.Active-*x.Scheduled)
	}
	if x.Most > 0 {
		s.Usage = math.Min(1, x.Used/x.Most)
	}
	r.trtSample(s)
	return true
}

// deviceOf is the device time of the last iteration, if its number matches.
func (it *Iterations) deviceOf(index int64, micros uint32) {
	if it.n > 0 && int64(it.At(it.n-1).Index) == index {
		it.At(it.n - 1).device = narrow(int64(micros) + 1)
	}
}
