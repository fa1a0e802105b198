package serverlog

import (
	"bytes"
	"cmp"
	"math"
	"slices"
)

type message struct {
	text   []byte
	rest   []byte // behind what its form begins with
	engine int32  // that its header names; -1 unknown
}

// form is one form of message. Forms are recognised only by how messages begin, so that text of clients, which stands
// inside messages, is never mistaken for one. read is false for a message that is not of the form after all.
type form struct {
	begins string
	read   func(r *reader, m message) bool
}

var forms = []form{
	{"Iteration(", iteration},
	{"Avg prompt throughput: ", stats},
	{lmdeployStats, lmdeploy},
	{"Received request ", func(r *reader, m message) bool { return r.d.Requests.received(requestID(m.rest), r.last) }},
	{"Added request ", func(r *reader, m message) bool { return r.d.Requests.added(requestID(m.rest), r.last, r.steps) }},
	{"Finished request ", func(r *reader, m message) bool {
		return r.d.Requests.finished(requestID(m.rest), r.last, false)
	}},
	{"Aborted request ", aborted},
	{"Aborted request(s) ", aborted},
	{"Prefill batch", func(r *reader, m message) bool { return batch(r, m, true) }},
	{"Decode batch", func(r *reader, m message) bool { return batch(r, m, false) }},
	{"Prefix cache hit rate: GPU: ", prefixHits},
	{"Decode out of memory happened", retracted},
	{"KV cache pool is full. Retract", retracted},
	{"Sequence group ", preempted},
	{"scheduled_new_reqs", scheduled},
	{"KV Transfer metrics: ", transfers},
	{"SpecDecoding metrics: ", spec},
	{"Speculative metrics: ", spec},
	{"MFU: ", mfu},
	{"MFU details: ", func(r *reader, m message) bool { return r.d.Details.mfuLine(m.rest) || r.broken() }},
	{"EPLB step", balance},
	{"[EPLB] ", balance},
	{"The server is fired up", func(r *reader, _ message) bool { return r.ready() }},
}

// message takes one record of the engine that its header names. False: its form is not known.
func (r *reader) message(m []byte, engine int32) bool {
	if len(m) == 0 {
		return false
	}
	if rest, ok := cutPrefix(m, "Engine "); ok {
		if v, rest, ok := digits(rest); ok && hasPrefix(rest, ": ") {
			return r.message(rest[2:], int32(min(v, math.MaxInt32)))
		}
	} else if _, rest, ok := digits(m); ok {
		if rest, ok = cutPrefix(rest, " Engines Aggregated: "); ok {
			return r.message(rest, -1)
		}
	}
	for i := range forms {
		if rest, ok := cutPrefix(m, forms[i].begins); ok {
			return forms[i].read(r, message{m, rest, engine})
		}
	}
	r.start.ready = r.start.ready || hasPrefix(m, "Starting vLLM API server")
	return r.graphs(m) || r.name(m)
}

// broken counts a message that ends in the middle of its form.
func (r *reader) broken() bool {
	r.d.malformed++
	return false
}

// name recognises the program, and reads the lines it writes while it starts. A program that says its name again was
// started again.
func (r *reader) name(m []byte) bool {
	begins := hasPrefix(m, "vLLM API server version ") || hasPrefix(m, "server_args=ServerArgs(")
	if head := m[:min(len(m), 200)]; bytes.Contains(m, []byte("█")) || bytes.Contains(m, []byte("▄")) { // vLLM's name in blocks
		if _, ok := after(head, "  version "); ok {
			rest, _ := after(m, "  version ")
			begins, m = true, slices.Concat([]byte("vLLM API server version "), rest)
		} else if _, ok := after(head, "  model   "); ok {
			rest, _ := after(m, "  model   ")
			id := ModelID(string(bytes.TrimSpace(rest)))
			r.start.Model = cmp.Or(id, r.start.Model)
			return id != ""
		}
	}
	if begins {
		r.stopped()
		if r.start.named {
			r.begin()
			r.start.first = r.last
		}
	}
	return r.start.startLine(m)
}

// begin opens a start of the server.
func (r *reader) begin() {
	r.start = newStart()
	r.d.Starts = append(r.d.Starts, r.start)
}

// stopped closes the open start.
func (r *reader) stopped() {
	r.d.Events.end()
	r.start.Stopped, r.d.Events.Stopped = r.d.Events.Stopped, false
}

func iteration(r *reader, m message) bool {
	row, ok := parseIteration(m.rest)
	if !ok {
		return r.broken()
	}
	r.start.ready = true
	r.step(row, m.engine)
	return true
}

func (r *reader) step(row Iteration, engine int32) {
	r.origins.wrote(r, true, engine)
	if row.Generation > 0 {
		r.steps++
	}
	row.Line = narrow(r.line)
	r.d.Iterations.add(row, r.last)
}

func aborted(r *reader, m message) bool {
	return r.d.Requests.finished(requestID(m.rest), r.last, true)
}

// sample keeps one line of statistics.
func (r *reader) sample(s Sample, engine int32) {
	r.origins.wrote(r, false, engine)
	r.start.ready = true
	s.Clock, s.Line, s.Start, s.Engine = r.last, r.line, r.d.current(), engine
	if !keep(&r.d.Samples, s, maxSamples) {
		r.d.DroppedSamples++
	}
}

// latest is the last sample, if it is of the open start and lacks a value; else nil.
func (r *reader) latest(value func(*Sample) float64) *Sample {
	if n := len(r.d.Samples); n > 0 && r.d.Samples[n-1].Start == r.d.current() && math.IsNaN(value(&r.d.Samples[n-1])) {
		return &r.d.Samples[n-1]
	}
	return nil
}

// prefixHits takes the line that vLLM V0 logs directly after its statistics.
func prefixHits(r *reader, m message) bool {
	v, _, ok := decimal(m.rest)
	if s := r.latest(func(s *Sample) float64 { return s.PrefixHits }); ok && s != nil {
		s.PrefixHits = percent(v)
	}
	return ok
}

// mfu takes the line that some versions log directly after their statistics.
func mfu(r *reader, m message) bool {
	flops, bytes, ok := parseMFU(m.rest)
	if !ok {
		return r.broken()
	}
	if s := r.latest(func(s *Sample) float64 { return s.Flops }); s != nil && s.Engine == m.engine {
		s.Flops, s.Bytes = flops, bytes
		return true
	}
	s := newSample()
	s.Flops, s.Bytes = flops, bytes
	r.sample(s, m.engine)
	return true
}

// retracted takes SGLang's line about a preemption: "… #retracted_reqs: 2, #new_token_ratio: 0.6 -> 0.9".
func retracted(r *reader, m message) bool {
	v, ok := wholeAfter(m.text, "#retracted_reqs: ")
	if !ok {
		v = 1
	}
	r.start.ofRank().retracted += v
	r.d.HasPreemptions = true
	return true
}

// preempted takes vLLM V0's warning, which it writes at every fiftieth preemption with their count: "… is preempted by
// … total_num_cumulative_preemption=51".
func preempted(r *reader, m message) bool {
	if !bytes.Contains(m.text[:min(len(m.text), 300)], []byte(" is preempted by ")) {
		return false
	}
	v, ok := wholeAfter(m.text, "total_num_cumulative_preemption=")
	switch {
	case !ok:
		r.d.preempt(1)
	case v > r.start.preempted:
		r.d.preempt(v - r.start.preempted)
		r.start.preempted = v
	}
	return true
}

// balance takes how evenly experts are loaded: average over maximum tokens of an expert's rank. Steps without tokens
// are counted apart.
func balance(r *reader, m message) bool {
	v := numberOf(m.text, "alancedness: ", "balancedness=")
	switch {
	case math.IsNaN(v):
		return false
	case numberOf(m.text, "max_tokens=") == 0:
		r.d.IdleBalances++
	case v <= 1:
		keep(&r.d.Balances, v, maxSpecs)
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
	case hasPrefix(m, "- Mode: "):
		r.start.GraphMode = cmp.Or(graphMode(string(m[len("- Mode: "):])), r.start.GraphMode)
		r.table = true
	case hasPrefix(m, "- Capture sizes: ["):
		r.start.graphSizes(until(m[len("- Capture sizes: ["):], "]"))
		r.table = true
	default:
		return false
	}
	return true
}
