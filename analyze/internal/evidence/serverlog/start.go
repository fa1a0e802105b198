package serverlog

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Start holds the lines of a server about its own start. Text comes from short lists or by strict patterns; unknown
// values are empty, 0, or NaN for times and sizes.
type Start struct {
	Engine     string // vLLM, SGLang
	Generation string // V0, V1: of vLLM's engine
	Version    string

	Model, Architecture, DType, Quantization, KVDType string
	TP, PP, DP                                        int64
	EP                                                bool // experts are spread over the GPUs
	MaxModelLen, MaxNumSeqs, MaxBatchedTokens         int64
	ChunkedPrefill, PrefixCaching, Eager              string // "yes", "no"
	AttentionBackend                                  string
	GraphMode                                         string
	// CUDA graphs that are captured: how many batch sizes, and the largest
	GraphSizes, MaxGraphSize int64
	SpecMethod               string
	SpecTokens               int64

	KVTokens       int64   // tokens that the KV cache holds, of one engine
	KVBytes        float64 // memory of the KV cache on one GPU
	KVPools        int64   // SGLang: pools of the KV cache
	Concurrency    float64 // requests of ConcurrencyLen tokens that the KV cache holds at once
	ConcurrencyLen int64
	GPUBlocks      int64

	WeightBytes, GraphBytes float64 // on one GPU
	// Seconds; Ready: from the first line to the first that says so
	LoadTime, CompileTime, WarmupTime, GraphTime, InitTime, Ready float64
	first                                                         int64 // clock
	named                                                         bool  // a line names this program
	server, ready                                                 bool  // a line said that it is one, serves
	Stopped                                                       bool  // it was asked to stop at the end of the log
	preempted                                                     int64 // as vLLM V0 counts
	// The tags of the line that is read: SGLang's, as DP0 TP0
	rank  []byte
	ranks map[string]*rankSums
}

// rankSums holds the numbers that one rank of SGLang states in several lines: for each pool of its KV cache, for each
// kind of CUDA graph.
type rankSums struct {
	pools, retracted               int64
	kvBytes, graphTime, graphBytes float64
}

// maxRanks bounds the number of ranks.
const maxRanks = 4096

// ofRank is the sums of the rank that wrote the current line.
func (s *Start) ofRank() *rankSums {
	r := s.ranks[string(s.rank)]
	if r == nil {
		r = &rankSums{kvBytes: math.NaN(), graphTime: math.NaN(), graphBytes: math.NaN()}
		if len(s.ranks) < maxRanks {
			s.ranks[string(s.rank)] = r
		}
	}
	return r
}

// ofRanks combines the sums of the ranks: each GPU has its own, and captures its graphs while the others do.
func (s *Start) ofRanks() {
	if len(s.ranks) == 0 {
		return
	}
	n := math.NaN()
	s.KVBytes, s.GraphTime, s.GraphBytes, s.KVPools = n, n, n, 0
	for _, r := range s.ranks {
		s.KVPools = max(s.KVPools, r.pools)
		least(&s.KVBytes, r.kvBytes)
		most(&s.GraphTime, r.graphTime)
		most(&s.GraphBytes, r.graphBytes)
	}
}

// retracted is how many requests lost their place in the KV cache: the ranks of one engine all log the same ones.
func (s *Start) retracted() (sum int64) {
	engines := map[int32]int64{}
	for tags, r := range s.ranks {
		engine := engineOf(header{tags: []byte(tags)}, nil)
		engines[engine] = max(engines[engine], r.retracted)
	}
	for _, n := range engines {
		sum += n
	}
	return sum
}

// Ends says how a log ends that begins with the start of a server but never says that it serves: the last step of the
// start. Empty if the server was ready, or if the log is not of a server's start.
func (s *Start) Ends() string {
	switch {
	case !s.server || s.ready:
		return ""
	case !math.IsNaN(s.InitTime), !math.IsNaN(s.GraphTime):
		return "capturing CUDA graphs"
	case !math.IsNaN(s.WarmupTime), !math.IsNaN(s.CompileTime):
		return "torch.compile"
	case s.KVTokens > 0, !math.IsNaN(s.KVBytes):
		return "creating the KV cache"
	case !math.IsNaN(s.LoadTime), !math.IsNaN(s.WeightBytes):
		return "loading the model"
	}
	return "reading its settings"
}

func newStart() *Start {
	n := math.NaN()
	return &Start{KVBytes: n, Concurrency: n, WeightBytes: n, GraphBytes: n, LoadTime: n, CompileTime: n,
		WarmupTime: n, GraphTime: n, InitTime: n, Ready: n, first: NoClock, ranks: map[string]*rankSums{}}
}

// number is a number that the log states; empty if it states none.
func number(n int64) string {
	if n <= 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// settings are the switches of the server, as one text; empty if the log states none.
func (s *Start) settings() string {
	var parts []string
	for _, x := range [][2]string{{"attention", s.AttentionBackend}, {"chunked prefill", s.ChunkedPrefill}, {"prefix caching", s.PrefixCaching},
		{"eager", s.Eager}, {"graphs", s.GraphMode}, {"KV cache", s.KVDType}, {"batched tokens", number(s.MaxBatchedTokens)},
		{"speculative", s.SpecMethod}, {"speculative tokens", number(s.SpecTokens)}} {
		if x[1] != "" {
			parts = append(parts, x[0]+" "+x[1])
		}
	}
	return strings.Join(parts, "; ")
}

// Parallelism in the notation of a comparison: tp4, tp4 pp2, tp8 dp2 ep; empty if not known.
func (s *Start) Parallelism() string {
	if s.TP == 0 {
		return ""
	}
	text := "tp" + strconv.FormatInt(s.TP, 10)
	if s.PP > 1 {
		text += " pp" + strconv.FormatInt(s.PP, 10)
	}
	if s.DP > 1 {
		text += " dp" + strconv.FormatInt(s.DP, 10)
	}
	if s.EP {
		text += " ep"
	}
	return text
}

// blocks computes the tokens of the KV cache if the engine states blocks, as vLLM V0 does: it derives its concurrency
// from them, which gives the tokens in a block.
func (s *Start) blocks() {
	if s.KVTokens > 0 || s.GPUBlocks <= 0 || !(s.Concurrency > 0) {
		return
	}
	size := s.Concurrency * float64(s.ConcurrencyLen) / float64(s.GPUBlocks)
	for _, n := range []int64{1, 8, 16, 32, 64, 128, 256} {
		if math.Abs(size/float64(n)-1) < 0.02 {
			s.KVTokens = s.GPUBlocks * n
		}
	}
}

// KVBytesPerToken is the memory of the KV cache on one GPU over its tokens, as the engine counts both: layers × KV
// heads of this GPU × head size × 2 × bytes of a value, without needing to know any of them. NaN if not known.
func (s *Start) KVBytesPerToken() float64 {
	if s.KVTokens <= 0 || s.KVPools > 1 {
		return math.NaN()
	}
	return s.KVBytes / float64(s.KVTokens)
}

// KVBytesPerRequest is the memory on one GPU of one request of full length. It is derived from the concurrency that the
// engine computes, which accounts for sliding windows; else it is tokens times bytes of a token. NaN if not known.
func (s *Start) KVBytesPerRequest() float64 {
	if s.Concurrency > 0 && (s.ConcurrencyLen == s.MaxModelLen || s.MaxModelLen == 0) {
		return s.KVBytes / s.Concurrency
	}
	if s.MaxModelLen <= 0 {
		return math.NaN()
	}
	return s.KVBytesPerToken() * float64(s.MaxModelLen)
}

// startLine takes a message about the server's start. ok is false if its form is not known.
func (s *Start) startLine(m []byte) (ok bool) {
	switch {
	case hasPrefix(m, "Initializing a") && bytes.Contains(m[:min(len(m), 80)], []byte("LLM engine (v")):
		return s.config(m)
	case hasPrefix(m, "vLLM API server version "):
		s.version("vLLM", m[len("vLLM API server version "):])
		s.server = true
		return true
	case hasPrefix(m, "non-default args: "), hasPrefix(m, "args: Namespace("):
		s.args(m)
		return true
	case hasPrefix(m, "server_args=ServerArgs("):
		s.serverArgs(m)
		return true
	case hasPrefix(m, "Using max model len "):
		setFirst(&s.MaxModelLen, wholeOf(m, "Using max model len "))
	case hasPrefix(m, "Chunked prefill is enabled with max_num_batched_tokens="):
		setFirst(&s.MaxBatchedTokens, wholeOf(m, "max_num_batched_tokens="))
		s.ChunkedPrefill = "yes"
	case hasPrefix(m, "Resolved architecture: "):
		setFirst(&s.Architecture, architecture(m[len("Resolved architecture: "):]))
	case hasPrefix(m, "Starting to load model "):
		setFirst(&s.Model, ModelID(string(bytes.TrimRight(m[len("Starting to load model "):], ". "))))
	case hasPrefix(m, "GPU KV cache size: "), hasPrefix(m, "Maximum concurrency for "): // newer versions: one line
		setLeast(&s.KVTokens, wholeOf(m, "GPU KV cache size: "))
		if n, ok := wholeAfter(m, "Maximum concurrency for "); ok {
			if v, ok := numberAfter(m, "per request: "); ok && !(s.Concurrency <= v) {
				s.Concurrency, s.ConcurrencyLen = v, n
			}
		}
	case hasPrefix(m, "Available KV cache memory: "):
		least(&s.KVBytes, gib(numberOf(m, "Available KV cache memory: ")))
	case bytes.Contains(m[:min(len(m), 400)], []byte("memory reserved for KV Cache is ")):
		least(&s.KVBytes, gib(numberOf(m, "memory reserved for KV Cache is ")))
	case hasPrefix(m, "# GPU blocks: "):
		setLeast(&s.GPUBlocks, wholeOf(m, "# GPU blocks: "))
	case hasPrefix(m, "# cuda blocks: "):
		setLeast(&s.GPUBlocks, wholeOf(m, "# cuda blocks: "))
	case hasPrefix(m, "Model loading took "), hasPrefix(m, "Loading model weights took "):
		most(&s.WeightBytes, gib(numberOf(m, " took ")))
		most(&s.LoadTime, numberOf(m, " and "))
	case hasPrefix(m, "Loading weights took "): // part of the above, where that states a time
	case hasPrefix(m, "Graph capturing finished in "):
		most(&s.GraphTime, numberOf(m, "finished in "))
		most(&s.GraphBytes, gib(numberOf(m, ", took ")))
	case hasPrefix(m, "torch.compile take"), hasPrefix(m, "torch.compile took"):
		most(&s.CompileTime, numberOf(m[len("torch.compile take"):], " "))
	case hasPrefix(m, "Initial profiling/warmup run took "):
		most(&s.WarmupTime, numberOf(m, "run took "))
	case hasPrefix(m, "init engine "):
		most(&s.InitTime, numberOf(m, ") took "))
	case hasPrefix(m, "Using ") && bytes.Contains(m, []byte(" backend")):
		name, _, _ := bytes.Cut(m[len("Using "):], []byte(" backend"))
		backend := attentionBackend(string(name))
		if _, says := bytes.CutSuffix(name, []byte(" attention")); !says && backend == "TRITON" { // of experts
			return false
		}
		setFirst(&s.AttentionBackend, backend)
		return backend != ""
	default:
		return s.sglangLine(m)
	}
	return true
}

// sglangLine is startLine for the lines that only SGLang writes.
func (s *Start) sglangLine(m []byte) bool {
	switch {
	case hasPrefix(m, "max_total_num_tokens="):
		setFirst(&s.KVTokens, wholeOf(m, "max_total_num_tokens="))
		setFirst(&s.MaxBatchedTokens, wholeOf(m, "chunked_prefill_size="))
		s.MaxNumSeqs = max(wholeOf(m, "max_running_requests="), 0)
		s.MaxModelLen = max(wholeOf(m, "context_len="), 0)
		s.Engine = "SGLang"
	case hasPrefix(m, "KV Cache is allocated."):
		sum := numberOf(m, "KV size: ") // of latent attention
		if math.IsNaN(sum) {
			sum = numberOf(m, "K size: ") + numberOf(m, "V size: ")
		}
		if sum = gib(sum); sum > 0 {
			r := s.ofRank()
			r.pools++
			add(&r.kvBytes, sum)
		}
		setFirst(&s.KVDType, dtype(string(between(m, "dtype: ", ","))))
	case hasPrefix(m, "Load weight end."):
		if v := numberOf(m, "elapsed="); v > 0 {
			most(&s.LoadTime, v)
		}
		most(&s.WeightBytes, gib(numberOf(m, "mem usage=")))
		setFirst(&s.Architecture, architecture(between(m, "type=", ",")))
		if s.DType == "" || s.DType == "auto" {
			s.DType = cmp.Or(dtype(string(between(m, "dtype=", ","))), s.DType)
		}
		setFirst(&s.Quantization, quantization(string(between(m, "quant=", ","))))
	case hasPrefix(m, "Capture ") && bytes.Contains(m, []byte(" end.")):
		r := s.ofRank()
		add(&r.graphTime, numberOf(m, "elapsed=", "elapsed: "))
		add(&r.graphBytes, gib(numberOf(m, "mem usage=")))
	case hasPrefix(m, "Attention backend not"):
		setFirst(&s.AttentionBackend, attentionBackend(string(between(m, "Use ", " "))))
	default:
		return false
	}
	return true
}

// config reads "Initializing a V1 LLM engine (v0.15.0) with config: model='…', …, dtype=torch.bfloat16, …".
func (s *Start) config(m []byte) bool {
	if rest, ok := after(m, "engine (v"); ok {
		s.version("vLLM", until(rest, ")"))
	}
	switch {
	case hasPrefix(m, "Initializing a V1"):
		s.Generation = "V1"
	case hasPrefix(m, "Initializing a V0"), hasPrefix(m, "Initializing an LLM"):
		s.Generation = "V0"
	}
	s.Model = cmp.Or(ModelID(text(field(m, "model"))), s.Model)
	s.DType = cmp.Or(dtype(text(field(m, "dtype"))), s.DType)
	setFirst(&s.Quantization, quantization(text(field(m, "quantization"))))
	setFirst(&s.KVDType, dtype(text(field(m, "kv_cache_dtype"))))
	s.MaxModelLen = cmp.Or(whole(field(m, "max_seq_len")), s.MaxModelLen)
	s.TP = cmp.Or(whole(field(m, "tensor_parallel_size")), s.TP)
	s.PP = cmp.Or(whole(field(m, "pipeline_parallel_size")), s.PP)
	s.DP = cmp.Or(whole(field(m, "data_parallel_size")), s.DP)
	setYes(&s.PrefixCaching, field(m, "enable_prefix_caching"))
	setYes(&s.ChunkedPrefill, field(m, "enable_chunked_prefill"))
	setYes(&s.ChunkedPrefill, field(m, "chunked_prefill_enabled"))
	setYes(&s.Eager, field(m, "enforce_eager"))
	setFirst(&s.GraphMode, graphMode(text(field(m, "cudagraph_mode"))))
	if rest, ok := after(m, "cudagraph_capture_sizes': ["); ok {
		s.graphSizes(until(rest, "]"))
	}
	speculative := between(m, "speculative_config=SpeculativeConfig(", ")")
	setFirst(&s.SpecMethod, specMethod(text(field(speculative, "method"))))
	setFirst(&s.SpecTokens, whole(field(speculative, "num_spec_tokens")))
	return true
}

// args reads the arguments that differ from the default, as a Python dict, or all of them, as a Namespace.
func (s *Start) args(m []byte) {
	setFirst(&s.Model, ModelID(text(field(m, "model"))))
	setFirst(&s.MaxModelLen, whole(field(m, "max_model_len")))
	setFirst(&s.MaxNumSeqs, whole(field(m, "max_num_seqs")))
	setFirst(&s.MaxBatchedTokens, whole(field(m, "max_num_batched_tokens")))
	setFirst(&s.TP, whole(field(m, "tensor_parallel_size")))
	setFirst(&s.PP, whole(field(m, "pipeline_parallel_size")))
	setFirst(&s.DP, whole(field(m, "data_parallel_size")))
	s.EP = s.EP || string(field(m, "enable_expert_parallel")) == "True"
	s.Engine, s.named = "vLLM", true
}

// serverArgs reads SGLang's arguments.
func (s *Start) serverArgs(m []byte) {
	s.Engine, s.named, s.server = "SGLang", true, true
	setFirst(&s.Model, ModelID(text(field(m, "model_path"))))
	if d := dtype(text(field(m, "dtype"))); d != "auto" {
		setFirst(&s.DType, d)
	}
	setFirst(&s.Quantization, quantization(text(field(m, "quantization"))))
	setFirst(&s.MaxModelLen, whole(field(m, "context_length")))
	setFirst(&s.MaxNumSeqs, whole(field(m, "max_running_requests")))
	setFirst(&s.MaxBatchedTokens, whole(field(m, "chunked_prefill_size")))
	setFirst(&s.TP, max(whole(field(m, "tp_size")), whole(field(m, "tensor_parallel_size"))))
	setFirst(&s.PP, max(whole(field(m, "pp_size")), whole(field(m, "pipeline_parallel_size"))))
	setFirst(&s.DP, max(whole(field(m, "dp_size")), whole(field(m, "data_parallel_size"))))
	s.EP = s.EP || whole(field(m, "ep_size")) > 1
	setFirst(&s.AttentionBackend, attentionBackend(text(field(m, "attention_backend"))))
	cached := map[string]string{"True": "no", "False": "yes"}
	setFirst(&s.PrefixCaching, cached[string(field(m, "disable_radix_cache"))])
	setFirst(&s.SpecMethod, specMethod(text(field(m, "speculative_algorithm"))))
	setFirst(&s.SpecTokens, whole(field(m, "speculative_num_draft_tokens")))
	setFirst(&s.Version, version(field(m, "version")))
}

func (s *Start) graphSizes(list []byte) {
	s.GraphSizes, s.MaxGraphSize = 0, 0
	for len(list) > 0 {
		v, rest, ok := digits(bytes.TrimLeft(list, ", "))
		if !ok {
			return
		}
		s.GraphSizes++
		s.MaxGraphSize = max(s.MaxGraphSize, v)
		list = rest
	}
}

func (s *Start) version(engine string, v []byte) {
	s.Engine, s.named = engine, true
	setFirst(&s.Version, version(v))
}
