package serverlog

import (
	"bytes"
	"math"
)

// Sample is one line of statistics that an engine logs now and then. What the line does not state is NaN.
type Sample struct {
	Clock      int64
	Line       int64
	Engine     int32 // as the log numbers it; -1 where it does not, or where it sums over all
	Start      int32 // of the server, by index in Data.Starts
	Prefilling bool  // SGLang: the line of a prefill batch; its other one is of decode
	Steady     bool  // see steady.go
	early      bool  // before the server was ready

	Prompt, Generation                  float64 // tokens per second
	Running, Waiting                    float64 // requests
	Usage                               float64 // of the KV cache, 0..1
	CPUUsage                            float64 // of the KV cache in host memory, 0..1
	PrefixHits, ExternalHits, MediaHits float64 // 0..1
	Flops, Bytes                        float64 // per second and GPU, estimated by the engine
	NewTokens, CachedTokens             float64 // SGLang: of a prefill batch
	AcceptLength, AcceptRate            float64 // SGLang: speculative decoding
	Graph                               float64 // SGLang: 1 where the batch ran in a CUDA graph, 0 where not
}

// maxSamples are kept: one every ten seconds for two thirds of a year.
const maxSamples = 1 << 21

func newSample() Sample {
	n := math.NaN()
	return Sample{Clock: NoClock, Engine: -1, Prompt: n, Generation: n, Running: n, Waiting: n, Usage: n,
		CPUUsage: n, PrefixHits: n, ExternalHits: n, MediaHits: n,
		Flops: n, Bytes: n, NewTokens: n, CachedTokens: n, AcceptLength: n, AcceptRate: n, Graph: n}
}

// parseStats reads vLLM's line of statistics, of all versions:
//
//	Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 15.5 tokens/s, Running: 1 reqs, Swapped: 0 reqs,
//	Pending: 0 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.1%.
//	Avg prompt throughput: …, Running: 50 reqs, Waiting: 206 reqs, Preemptions: 3, GPU KV cache usage: 9.1%, Prefix cache
//	hit rate: 0.0%, External prefix cache hit rate: 1.2%, MFU: 405.0 TF/s/GPU 269.3 GB/s/GPU
func parseStats(b []byte) (s Sample, preempted int64, ok bool) {
	s, preempted = newSample(), -1
	for len(b) > 0 {
		var part []byte
		part, b, _ = bytes.Cut(b, []byte(", "))
		colon := bytes.Index(part, []byte(": "))
		if colon < 0 {
			continue
		}
		text := part[colon+2:]
		v, rest, good := decimal(text)
		if !good {
			continue
		}
		share := len(rest) > 0 && rest[0] == '%'
		switch key := string(part[:colon]); {
		case key == "Avg prompt throughput":
			s.Prompt = v
		case key == "Avg generation throughput":
			s.Generation = v
		case key == "Running":
			s.Running = v
		case key == "Waiting", key == "Pending":
			s.Waiting = v
		case key == "Preemptions":
			preempted = int64(v)
		case key == "GPU KV cache usage" && share:
			s.Usage = percent(v)
		case key == "CPU KV cache usage" && share:
			s.CPUUsage = percent(v)
		case key == "Prefix cache hit rate" && share:
			s.PrefixHits = percent(v)
		case key == "External prefix cache hit rate" && share:
			s.ExternalHits = percent(v)
		case key == "MM cache hit rate" && share:
			s.MediaHits = percent(v)
		case key == "MFU":
			s.Flops, s.Bytes, _ = parseMFU(text)
		}
	}
	return s, preempted, !math.IsNaN(s.Prompt) && !math.IsNaN(s.Generation)
}

// parseMFU reads "405.0 TF/s/GPU 269.3 GB/s/GPU".
func parseMFU(b []byte) (flops, bytes float64, ok bool) {
	nan := math.NaN()
	f, rest, ok := decimal(b)
	if !ok {
		return nan, nan, false
	}
	rest, ok = cutPrefix(rest, " TF/s/GPU")
	if !ok {
		return nan, nan, false
	}
	v, rest, ok := decimal(skipSpace(rest))
	if !ok || !hasPrefix(rest, " GB/s/GPU") {
		return f * 1e12, nan, true
	}
	return f * 1e12, v * 1e9, true
}

// parseBatch reads what follows SGLang's "Prefill batch" or "Decode batch":
//
//	, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, …
//	, #running-req: 1, #token: 40, token usage: 0.00, cuda graph: True, gen throughput (token/s): 5.23, #queue-req: 0
//
// Of several pools of the KV cache, as models with a sliding window have them, the fullest counts.
func parseBatch(b []byte, prefill bool) (s Sample, ok bool) {
	s = newSample()
	s.Prefilling = prefill
	b = bytes.TrimLeft(b, "., ")
	for len(b) > 0 {
		var part []byte
		part, b, _ = bytes.Cut(b, []byte(", "))
		colon := bytes.Index(part, []byte(": "))
		if colon < 0 {
			continue
		}
		key, text := part[:colon], part[colon+2:]
		if string(key) == "cuda graph" {
			switch {
			case hasPrefix(text, "True"):
				s.Graph = 1
			case hasPrefix(text, "False"):
				s.Graph = 0
			}
			continue
		}
		v, rest, good := decimal(text)
		if !good {
			continue
		}
		switch k := string(key); {
		case k == "#running-req":
			s.Running, ok = v, true
		case k == "#queue-req":
			s.Waiting = v
		case k == "#new-token":
			s.NewTokens = v
		case k == "#cached-token":
			s.CachedTokens = v
		case k == "cache hit rate" && len(rest) > 0 && rest[0] == '%':
			s.PrefixHits = percent(v)
		case bytes.HasSuffix(key, []byte("token usage")):
			if !(s.Usage >= v) {
				s.Usage = v
			}
		case k == "gen throughput (token/s)":
			s.Generation = v
		case k == "input throughput (token/s)":
			s.Prompt = v
		case k == "accept len":
			s.AcceptLength = v
		case k == "accept rate":
			s.AcceptRate = v
		case k == "est. decode TFLOPS/s (per GPU)":
			s.Flops = v * 1e12
		case k == "est. read BW (GB/s per GPU)":
			s.Bytes = v * 1e9
		case k == "est. write BW (GB/s per GPU)":
			s.Bytes += v * 1e9
		}
	}
	return s, ok
}
