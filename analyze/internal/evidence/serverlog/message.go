package serverlog

import (
	"bytes"
	"math"
)

// message takes one record of the engine that its header names. False: its form is not known.
//
// Forms are recognised only by how messages begin, so that text of clients, which stands inside messages, is never
// mistaken for one.
func (r *reader) message(m []byte, engine int32) bool {
	if len(m) == 0 {
		return false
	}
	if rest, ok := cutPrefix(m, "Engine "); ok {
		if v, rest, ok := digits(rest); ok && hasPrefix(rest, ": ") {
			return r.message(rest[2:], int32(min(v, math.MaxInt32)))
		}
	} else if isDigit(m[0]) {
		if _, rest, ok := digits(m); ok && hasPrefix(rest, " Engines Aggregated: ") {
			return r.message(rest[len(" Engines Aggregated: "):], -1)
		}
	}
	switch m[0] {
	case 'I':
		if rest, ok := cutPrefix(m, "Iteration("); ok {
			return r.iteration(rest)
		}
	case 'A':
		if hasPrefix(m, "Avg prompt throughput: ") {
			return r.stats(m, engine)
		}
		if hasPrefix(m, lmdeployStats) {
			return r.lmdeploy(m, engine)
		}
		if rest, ok := cutPrefix(m, "Added request "); ok {
			r.d.Requests.added(requestID(rest), r.last, r.steps)
			return true
		}
		for _, p := range []string{"Aborted request ", "Aborted request(s) "} {
			if rest, ok := cutPrefix(m, p); ok {
				r.d.Requests.finished(requestID(rest), r.last, true)
				return true
			}
		}
	case 'R':
		if rest, ok := cutPrefix(m, "Received request "); ok {
			r.d.Requests.received(requestID(rest), r.last)
			return true
		}
	case 'F':
		if rest, ok := cutPrefix(m, "Finished request "); ok {
			r.d.Requests.finished(requestID(rest), r.last, false)
			return true
		}
	case 'P':
		if rest, ok := cutPrefix(m, "Prefill batch"); ok {
			return r.batch(rest, true, engine)
		}
		if hasPrefix(m, "Prefix cache hit rate: GPU: ") {
			return r.prefixHits(m)
		}
	case 'D':
		if rest, ok := cutPrefix(m, "Decode batch"); ok {
			return r.batch(rest, false, engine)
		}
		if hasPrefix(m, "Decode out of memory happened") {
			return r.retracted(m)
		}
	case 's':
		if hasPrefix(m, "scheduled_new_reqs") {
			return r.scheduled(m)
		}
	case 'K':
		if rest, ok := cutPrefix(m, "KV Transfer metrics: "); ok {
			return r.transfers(rest)
		}
		if hasPrefix(m, "KV cache pool is full. Retract") {
			return r.retracted(m)
		}
	case 'S':
		if hasPrefix(m, "SpecDecoding metrics: ") || hasPrefix(m, "Speculative metrics: ") {
			return r.spec(m)
		}
		if hasPrefix(m, "Starting vLLM API server") {
			r.start.ready = true
		}
		if hasPrefix(m, "Sequence group ") && bytes.Contains(m[:min(len(m), 300)], []byte(" is preempted by ")) {
			return r.preempted(m)
		}
	case 'M':
		if rest, ok := cutPrefix(m, "MFU: "); ok {
			return r.mfu(rest, engine)
		}
		if rest, ok := cutPrefix(m, "MFU details: "); ok {
			if !r.d.Details.mfuLine(rest) {
				r.d.malformed++
				return false
			}
			return true
		}
	case 'E', '[':
		if hasPrefix(m, "EPLB step") || hasPrefix(m, "[EPLB] ") {
			return r.balance(m)
		}
	case 'T':
		if hasPrefix(m, "The server is fired up") {
			r.ready()
			return true
		}
	}
	return r.graphs(m) || r.name(m)
}

// name recognises the program, and reads the lines it writes while it starts. A program that says its name again was
// started again.
func (r *reader) name(m []byte) bool {
	begins := hasPrefix(m, "vLLM API server version ") || hasPrefix(m, "server_args=ServerArgs(")
	if at := bytes.Index(m[:min(len(m), 200)], []byte("  version ")); at >= 0 && isBanner(m) {
		begins = true
		m = append([]byte("vLLM API server version "), m[at+len("  version "):]...)
	} else if at := bytes.Index(m[:min(len(m), 200)], []byte("  model   ")); at >= 0 && isBanner(m) {
		if id := ModelID(string(bytes.TrimSpace(m[at+len("  model   "):]))); id != "" {
			r.start.Model = id
			return true
		}
		return false
	}
	if begins {
		r.d.Events.end()
		r.start.Stopped, r.d.Events.Stopped = r.d.Events.Stopped, false
	}
	if begins && r.start.named {
		r.start = newStart()
		r.d.Starts = append(r.d.Starts, r.start)
		r.start.first = r.last
	}
	return r.start.startLine(m)
}

// isBanner reports whether a line draws vLLM's name in blocks.
func isBanner(m []byte) bool {
	return bytes.Contains(m, []byte("█")) || bytes.Contains(m, []byte("▄"))
}

func (r *reader) iteration(rest []byte) bool {
	row, ok := parseIteration(rest)
	if !ok {
		r.d.malformed++
		return false
	}
	if row.Generation > 0 {
		r.steps++
	}
	row.Line, r.start.ready = narrow(r.line), true
	r.d.Iterations.add(row, r.last, r.d.Year)
	return true
}

func (r *reader) stats(m []byte, engine int32) bool {
	s, preempted, ok := parseStats(m)
	if !ok {
		r.d.malformed++
		return false
	}
	s.Engine = engine
	r.sample(s)
	if preempted >= 0 {
		r.d.preempt(preempted)
	}
	return true
}

func (r *reader) batch(rest []byte, prefill bool, engine int32) bool {
	s, ok := parseBatch(rest, prefill)
	if !ok {
		r.d.malformed++
		return false
	}
	s.Engine = engine
	if r.start.Engine == "" {
		r.start.Engine = "SGLang"
	}
	r.sample(s)
	return true
}

// sample keeps one line of statistics.
func (r *reader) sample(s Sample) {
	r.start.ready = true
	if len(r.d.Samples) == maxSamples {
		r.d.DroppedSamples++
		return
	}
	s.Clock, s.Line, s.Start = r.last, r.line, r.d.current()
	r.d.Samples = append(r.d.Samples, s)
}

// prefixHits takes the line that vLLM V0 logs directly after its statistics.
func (r *reader) prefixHits(m []byte) bool {
	v, ok := numberAfter(m, "GPU: ")
	if !ok {
		return false
	}
	if n := len(r.d.Samples); n > 0 && math.IsNaN(r.d.Samples[n-1].PrefixHits) &&
		r.d.Samples[n-1].Start == r.d.current() {
		r.d.Samples[n-1].PrefixHits = percent(v)
	}
	return true
}

// mfu takes the line that some versions log directly after their statistics.
func (r *reader) mfu(rest []byte, engine int32) bool {
	flops, bytes, ok := parseMFU(rest)
	if !ok {
		r.d.malformed++
		return false
	}
	if n := len(r.d.Samples); n > 0 && math.IsNaN(r.d.Samples[n-1].Flops) && r.d.Samples[n-1].Engine == engine &&
		r.d.Samples[n-1].Start == r.d.current() {
		r.d.Samples[n-1].Flops, r.d.Samples[n-1].Bytes = flops, bytes
		return true
	}
	s := newSample()
	s.Flops, s.Bytes, s.Engine = flops, bytes, engine
	r.sample(s)
	return true
}

func (r *reader) spec(m []byte) bool {
	s, ok := parseSpec(m)
	if !ok {
		r.d.malformed++
		return false
	}
	if len(r.d.Specs) < maxSpecs {
		r.d.Specs = append(r.d.Specs, s)
	} else {
		r.d.DroppedSamples++
	}
	return true
}

// retracted takes SGLang's line about a preemption: "… #retracted_reqs: 2, #new_token_ratio: 0.6 -> 0.9".
func (r *reader) retracted(m []byte) bool {
	v, ok := wholeAfter(m, "#retracted_reqs: ")
	if !ok {
		v = 1
	}
	r.d.preempt(v)
	return true
}

// preempted takes vLLM V0's warning, which it writes at every fiftieth preemption with their count: "…
// total_num_cumulative_preemption=51".
func (r *reader) preempted(m []byte) bool {
	v, ok := wholeAfter(m, "total_num_cumulative_preemption=")
	if !ok {
		r.d.preempt(1)
		return true
	}
	if v > r.start.preempted {
		r.d.preempt(v - r.start.preempted)
		r.start.preempted = v
	}
	return true
}

// balance takes how evenly experts are loaded: average over maximum tokens of an expert's rank. Steps without tokens
// are counted apart.
func (r *reader) balance(m []byte) bool {
	v, ok := numberAfter(m, "alancedness: ")
	if !ok {
		if v, ok = numberAfter(m, "balancedness="); !ok {
			return false
		}
	}
	if tokens, ok := numberAfter(m, "max_tokens="); ok && tokens == 0 {
		r.d.IdleBalances++
		return true
	}
	if len(r.d.Balances) < maxSpecs && v <= 1 {
		r.d.Balances = append(r.d.Balances, v)
	}
	return true
}

// graphs takes CUDA graph statistics: a header, the captured graphs, and a table, one record per line or all in one.
func (r *reader) graphs(m []byte) bool {
	switch {
	case m[0] == '|':
		return r.d.Graphs.graphLine(m)
	case hasPrefix(m, "CUDAGraph Stats:"), hasPrefix(m, "**CUDAGraph Stats:**"),
		hasPrefix(m, "CUDAGraph Config Settings:"), hasPrefix(m, "**CUDAGraph Config Settings:**"):
		r.table = true
		if bytes.Contains(m[:min(len(m), 32)], []byte("Stats:")) {
			r.d.Graphs.Tables++
		}
	case hasPrefix(m, "- Mode: "):
		if mode := graphMode(string(m[len("- Mode: "):])); mode != "" {
			r.start.GraphMode = mode
		}
		r.table = true
	case hasPrefix(m, "- Capture sizes: ["):
		r.start.graphSizes(until(m[len("- Capture sizes: ["):], "]"))
		r.table = true
	default:
		return false
	}
	return true
}
