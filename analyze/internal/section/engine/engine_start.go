package engine

import (
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/report"
)

var EngineStart = kit.Section{
	ID: "engine_start", Title: "Engine start and KV cache", Evidence: []file.Kind{file.ServerLog},
	Derivation: "Facts that the server logs while it starts. If several ranks state a number, times and memory are the " +
		"largest, the KV cache is the smallest. Memory of the KV cache per token is what the engine " +
		"reserved on one GPU over the tokens it says fit: layers × KV heads of one GPU × head size × 2 × bytes " +
		"of a value, as the engine itself counts. A request of the full length needs the reserved memory over " +
		"the concurrency that the engine computes for that length, which accounts for sliding windows; if it states none, " +
		"bytes per token times max_model_len.",
	Findings: []kit.FindingDef{
		{ID: "kv_cache_small", Title: "The KV cache fits barely one full-length request"},
	},
	Metrics: []report.MetricDef{
		kit.ExactLevel("serve.kv_cache_tokens", report.Higher, report.Leave,
			"tokens that the KV cache of one engine holds"),
		report.Define("serve.kv_cache_bytes", report.Bytes, report.None, report.Noisy, report.Level, report.Leave,
			"memory reserved for the KV cache on one GPU"),
		report.Define("serve.kv_bytes_per_token", report.Bytes, report.Lower, report.Noisy, report.Level, report.Leave,
			"memory of the KV cache on one GPU for one token"),
		report.Define("serve.kv_bytes_per_request", report.Bytes, report.Lower, report.Noisy, report.Level, report.Leave,
			"memory of the KV cache on one GPU for one request of max_model_len tokens"),
		report.Define("serve.kv_bytes_needed", report.Bytes, report.None, report.Noisy, report.Level, report.Leave,
			"memory of the KV cache on one GPU for max_num_seqs requests of max_model_len tokens"),
		kit.NoisyLevel("serve.max_concurrency", report.Higher, report.Leave,
			"requests of the full length that the KV cache holds at once"),
		kit.ExactLevel("serve.max_model_len", report.None, report.Leave, "tokens that one request may have"),
		kit.ExactLevel("serve.max_num_seqs", report.None, report.Leave, "requests that may run at once"),
		kit.ExactLevel("serve.max_batched_tokens", report.None, report.Leave, "tokens that one iteration may have"),
		report.Define("serve.weight_bytes", report.Bytes, report.Lower, report.Noisy, report.Level, report.Leave,
			"memory of the model on one GPU"),
		kit.EventTime("serve.model_load_time", report.Lower, report.Leave, "time to load the model"),
		kit.EventTime("serve.compile_time", report.Lower, report.Leave, "time of torch.compile"),
		kit.EventTime("serve.warmup_time", report.Lower, report.Leave,
			"time of the first run, which finds out how much memory is left"),
		kit.EventTime("serve.graph_capture_time", report.Lower, report.Leave, "time to capture CUDA graphs"),
		report.Define("serve.graph_bytes", report.Bytes, report.Lower, report.Noisy, report.Level, report.Leave,
			"memory of CUDA graphs on one GPU"),
		kit.EventTime("serve.init_time", report.Lower, report.Leave,
			"time to profile memory, create the KV cache and warm up"),
		kit.EventTime("serve.ready_time", report.Lower, report.Leave,
			"time from the log's first line to the one that says the server is ready, on a clock of seconds"),
	},
	Tables: []report.Table{
		{ID: "engine_facts", Title: "Settings", File: "engine_facts.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("fact", "Fact"),
			kit.NameCol("value", "Value"),
		}},
		{ID: "engine_kv", Title: "KV cache on one GPU", File: "engine_kv.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("what", "What"),
			kit.FloatCol("bytes", "Memory", report.Bytes),
			kit.FloatCol("token_bytes", "Of a token", report.Bytes),
			kit.TextCol("how", "How"),
		}},
		{ID: "engine_times", Title: "Start-up", File: "engine_times.csv", Merge: report.Leave, Columns: []report.Column{
			kit.TextCol("step", "Step"),
			kit.MeanCol("time", "Time", "time_s"),
			kit.FloatCol("bytes", "Memory", report.Bytes),
		}},
	},
	Run: engineStart,
}

// fewConcurrent is how many requests of full length fit at once, below which it is a finding.
const fewConcurrent = 2.0

func engineStart(in *kit.Input, out *kit.Output) {
	log := in.Evidence.Log
	s := log.Start()
	out.FromEvidence(file.ServerLog, len(log.Starts), "start-up")
	if n := len(log.Starts); n > 1 {
		out.Note("The log holds " + strconv.Itoa(n) +
			" starts of a server; the facts come from the last of the most complete ones.")
	}
	t := out.Table("engine_facts")
	settingsTable(out, t, s)
	t.Add()
	if t.Len()+kvCacheTable(out, s)+startTimes(out, s) == 0 {
		out.Status(report.NotApplicable, "the log does not hold the start of the server")
		return
	}
	if s.Concurrency > 0 && s.Concurrency < fewConcurrent {
		out.Find("kv_cache_small", kit.Refs("serve.max_concurrency", "serve.kv_cache_tokens"),
			"If requests stay below the limit on their length"+kit.SetRequestLength+", this costs nothing, but set it to the real maximum; if not, give the KV cache more memory"+kit.SetKVMemory+", use a smaller type for it, or more GPUs.")
	}
}

func settingsTable(o *kit.Output, t *kit.Table, s *serverlog.Start) {
	text := func(fact, value string) {
		if value != "" {
			t.Row(kit.Text("fact", fact), kit.Text("value", value))
		}
	}
	number := func(fact string, v int64) {
		if v > 0 {
			text(fact, strconv.FormatInt(v, 10))
		}
	}
	text("engine", s.Engine)
	text("version", s.Version)
	text("generation", s.Generation)
	text("model", s.Model)
	text("architecture", s.Architecture)
	text("data type", s.DType)
	text("quantization", s.Quantization)
	text("type of the KV cache", s.KVDType)
	text("parallelism", s.Parallelism())
	text("attention backend", s.AttentionBackend)
	number("max_model_len", s.MaxModelLen)
	number("max_num_seqs", s.MaxNumSeqs)
	number("max_num_batched_tokens", s.MaxBatchedTokens)
	text("chunked prefill", s.ChunkedPrefill)
	text("prefix caching", s.PrefixCaching)
	text("eager, no CUDA graphs", s.Eager)
	text("CUDA graph mode", s.GraphMode)
	number("CUDA graph sizes", s.GraphSizes)
	number("largest CUDA graph", s.MaxGraphSize)
	text("speculative decoding", s.SpecMethod)
	number("speculative tokens", s.SpecTokens)
	number("KV cache, tokens", s.KVTokens)
	if s.Concurrency > 0 {
		text("requests of "+strconv.FormatInt(s.ConcurrencyLen, 10)+" tokens at once",
			strconv.FormatFloat(s.Concurrency, 'f', -1, 64))
	}
	for _, c := range []struct {
		id string
		v  int64
	}{{"serve.kv_cache_tokens", s.KVTokens}, {"serve.max_model_len", s.MaxModelLen},
		{"serve.max_num_seqs", s.MaxNumSeqs}, {"serve.max_batched_tokens", s.MaxBatchedTokens}} {
		if c.v > 0 {
			o.Int(c.id, nil, c.v)
		}
	}
	ifKnown(o, "serve.max_concurrency", s.Concurrency)
}

// ifKnown emits a metric if its value is known: if a log does not state it, the metric is left out.
func ifKnown(o *kit.Output, id string, v float64) bool {
	o.Known(id, nil, notNaN(v))
	return notNaN(v) != nil
}

// kvCacheTable lists the needs and the size of the KV cache, and returns the number of rows.
func kvCacheTable(o *kit.Output, s *serverlog.Start) int {
	t := o.Table("engine_kv")
	row := func(what, id string, v float64, how string) {
		if ifKnown(o, id, v) {
			t.Partial(kit.Text("what", what), kit.Float("bytes", v), kit.Text("how", how))
		}
	}
	row("reserved", "serve.kv_cache_bytes", s.KVBytes, "as the engine says")
	// in a column of its own: beside gigabytes it would be rounded to 0
	if v := s.KVBytesPerToken(); ifKnown(o, "serve.kv_bytes_per_token", v) {
		t.Partial(kit.Text("what", "one token"), kit.Float("token_bytes", v), kit.Text("how", "reserved memory ÷ tokens that it holds"))
	}
	how := "one token × max_model_len"
	if s.Concurrency > 0 {
		how = "reserved memory ÷ requests of max_model_len that the engine says it holds"
	}
	one := s.KVBytesPerRequest()
	row("one request of max_model_len", "serve.kv_bytes_per_request", one, how)
	if s.MaxNumSeqs > 0 {
		row("max_num_seqs requests of max_model_len", "serve.kv_bytes_needed", one*float64(s.MaxNumSeqs),
			"one request × max_num_seqs; more than is reserved is usual, since few requests are so long")
	}
	if s.KVPools > 1 {
		o.Note("The engine has " + strconv.FormatInt(s.KVPools, 10) +
			" pools of KV cache, which hold different layers: their sum is not the memory of one token.")
	}
	if t.Len() > 0 {
		o.Note("The engine prints memory with two decimals, which limits the precision of what is computed from it.")
	}
	t.Add()
	return t.Len()
}

// startTimes lists how long the start took, and returns the number of rows.
func startTimes(o *kit.Output, s *serverlog.Start) int {
	t := o.Table("engine_times")
	row := func(step, id string, seconds float64, bytesID string, bytes float64) {
		if bytesID != "" {
			ifKnown(o, bytesID, bytes)
		}
		ifKnown(o, id, seconds*1e9)
		if !math.IsNaN(seconds) || !math.IsNaN(bytes) {
			t.Row(kit.Text("step", step), kit.Maybe("time", notNaN(seconds*1e9)), kit.Maybe("bytes", notNaN(bytes)))
		}
	}
	none := math.NaN()
	row("load the model", "serve.model_load_time", s.LoadTime, "serve.weight_bytes", s.WeightBytes)
	row("torch.compile", "serve.compile_time", s.CompileTime, "", none)
	row("first run", "serve.warmup_time", s.WarmupTime, "", none)
	row("capture CUDA graphs", "serve.graph_capture_time", s.GraphTime, "serve.graph_bytes", s.GraphBytes)
	row("profile, create the KV cache, warm up", "serve.init_time", s.InitTime, "", none)
	row("until ready", "serve.ready_time", s.Ready, "", none)
	t.Add()
	return t.Len()
}
