package serverlog

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Sample is one line of statistics that an engine logs at intervals. Values that the line does not state are NaN.
type Sample struct {
	Clock      int64
	Line       int64
	Engine     int32 // as the log numbers it; -1 if it does not, or where it sums over all
	Start      int32 // of the server, by index in Data.Starts
	Prefilling bool  // SGLang: the line of a prefill batch; its other one is of decode
	Steady     bool  // see steady.go
	early      bool  // before the server was ready

	Prompt, Generation                  float64 // tokens per second
	Running, Waiting                    float64 // requests
	Deferred                            float64 // requests of Waiting that wait for something else than a place
	Usage                               float64 // of the KV cache, 0..1
	CPUUsage                            float64 // of the KV cache in host memory, 0..1
	PrefixHits, ExternalHits, MediaHits float64 // 0..1
	Flops, Bytes                        float64 // per second and GPU, estimated by the engine
	NewTokens, CachedTokens             float64 // SGLang: of a prefill batch
	AcceptLength, AcceptRate            float64 // SGLang: speculative decoding
	// SGLang: usage of each pool, 0..1; Usage is the fullest's
	Pools [len(PoolNames)]float64
}

// PoolNames are the pools of the KV cache, if a model has several, as SGLang calls them: layers with full attention,
// layers with a sliding window, and the states of Mamba layers.
var PoolNames = [...]string{"full", "swa", "mamba"}

// maxSamples are kept: one every ten seconds for two thirds of a year.
const maxSamples = 1 << 21

func newSample() Sample {
	n := math.NaN()
	return Sample{Clock: NoClock, Engine: -1, Prompt: n, Generation: n, Running: n, Waiting: n, Usage: n,
		CPUUsage: n, PrefixHits: n, ExternalHits: n, MediaHits: n,
		Flops: n, Bytes: n, NewTokens: n, CachedTokens: n, AcceptLength: n, AcceptRate: n, Deferred: n,
		Pools: [len(PoolNames)]float64{n, n, n}}
}

// stated is a number that a line of statistics may state.
type stated struct {
	name string
	to   *float64
	as   float64 // what it is multiplied by; share: it is printed in percent
}

// share marks numbers that are printed in percent.
const share = -1

// take reads "name: number, name: number, …" into list; others counts numbers of other names.
func take(b []byte, list []stated, other func(name string, v float64, text []byte)) {
	for part := range bytes.SplitSeq(b, []byte(", ")) {
		name, text, ok := bytes.Cut(part, []byte(": "))
		v, rest, good := decimal(text)
		if !ok || !good {
			continue
		}
		at := slices.IndexFunc(list, func(s stated) bool { return s.name == string(name) })
		switch {
		case at < 0:
			if other != nil {
				other(string(name), v, text)
			}
		case list[at].as != share:
			*list[at].to = v * list[at].as
		case hasPrefix(rest, "%"):
			*list[at].to = percent(v)
		}
	}
}

// stats takes vLLM's line of statistics, of all versions:
//
//	Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 15.5 tokens/s, Running: 1 reqs, Swapped: 0 reqs,
//	Pending: 0 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.1%.
//	Avg prompt throughput: …, Running: 50 reqs, Waiting: 206 reqs, Preemptions: 3, GPU KV cache usage: 9.1%, Prefix cache
//	hit rate: 0.0%, External prefix cache hit rate: 1.2%, MFU: 405.0 TF/s/GPU 269.3 GB/s/GPU
func stats(r *reader, m message) bool {
	s, preempted := newSample(), int64(-1)
	take(m.text, []stated{
		{"Avg prompt throughput", &s.Prompt, 1}, {"Avg generation throughput", &s.Generation, 1},
		{"Running", &s.Running, 1}, {"Waiting", &s.Waiting, 1}, {"Pending", &s.Waiting, 1}, {"Deferred", &s.Deferred, 1},
		{"GPU KV cache usage", &s.Usage, share}, {"CPU KV cache usage", &s.CPUUsage, share},
		{"Prefix cache hit rate", &s.PrefixHits, share}, {"External prefix cache hit rate", &s.ExternalHits, share},
		{"MM cache hit rate", &s.MediaHits, share},
	}, func(name string, v float64, text []byte) {
		switch name {
		case "Preemptions":
			preempted = int64(v)
		case "MFU":
			s.Flops, s.Bytes, _ = parseMFU(text)
		}
	})
	if math.IsNaN(s.Prompt) || math.IsNaN(s.Generation) {
		return r.broken()
	}
	setFirst(&r.start.Engine, "vLLM") // its own words, and no other engine's
	r.sample(s, m.engine)
	if preempted >= 0 {
		r.d.preempt(preempted)
	}
	return true
}

// parseMFU reads "405.0 TF/s/GPU 269.3 GB/s/GPU".
func parseMFU(b []byte) (flops, bytes float64, ok bool) {
	flops, bytes = math.NaN(), math.NaN()
	f, rest, stated := decimal(b)
	if rest, ok = cutPrefix(rest, " TF/s/GPU"); !ok || !stated {
		return flops, bytes, false
	}
	flops = f * 1e12
	if v, rest, stated := decimal(skipSpace(rest)); stated && hasPrefix(rest, " GB/s/GPU") {
		bytes = v * 1e9
	}
	return flops, bytes, true
}

// batch takes what follows SGLang's "Prefill batch" or "Decode batch":
//
//	, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, …
//	, #running-req: 1, #token: 40, token usage: 0.00, cuda graph: True, gen throughput (token/s): 5.23, #queue-req: 0
//
// If the KV cache has several pools, as for models with a sliding window, the fullest counts.
func batch(r *reader, m message, prefill bool) bool {
	s, written := newSample(), math.NaN()
	s.Prefilling = prefill
	take(bytes.TrimLeft(m.rest, "., "), []stated{
		{"#running-req", &s.Running, 1}, {"#queue-req", &s.Waiting, 1}, {"#new-token", &s.NewTokens, 1},
		{"#cached-token", &s.CachedTokens, 1}, {"cache hit rate", &s.PrefixHits, share},
		{"gen throughput (token/s)", &s.Generation, 1}, {"input throughput (token/s)", &s.Prompt, 1},
		{"accept len", &s.AcceptLength, 1}, {"accept rate", &s.AcceptRate, 1},
		{"est. decode TFLOPS/s (per GPU)", &s.Flops, 1e12}, {"est. read BW (GB/s per GPU)", &s.Bytes, 1e9},
		{"est. write BW (GB/s per GPU)", &written, 1e9},
	}, func(name string, v float64, _ []byte) {
		switch {
		case name == "cpu token usage":
			s.CPUUsage = v
			return
		case name != "mamba usage" && !strings.HasSuffix(name, "token usage"):
			return
		}
		for p, pool := range PoolNames {
			if strings.HasPrefix(name, pool) {
				s.Pools[p] = v
			}
		}
		most(&s.Usage, v)
	})
	if !math.IsNaN(written) {
		s.Bytes += written
	}
	if math.IsNaN(s.Running) && !(prefill && !math.IsNaN(s.NewTokens)) { // servers of prefill alone do not state what runs
		return r.broken()
	}
	setFirst(&r.start.Engine, "SGLang")
	r.sample(s, m.engine)
	return true
}

// Spec is the speculative decoding between two lines of statistics.
type Spec struct {
	Accepted, Drafted int64 // tokens
	// Mean acceptance length: tokens gained by one step, the engine's own included; NaN unknown
	Length    float64
	Positions []float64
}

// maxSpecs bounds the lines that are kept.
const (
	maxSpecs     = 1 << 18
	maxPositions = 64
)

// spec takes vLLM's lines on speculative decoding, of all versions:
//
//	SpecDecoding metrics: Mean acceptance length: 2.67, Accepted throughput: 3.44 tokens/s, Drafted throughput: 6.18
//	tokens/s, Accepted: 97 tokens, Drafted: 174 tokens, Per-position acceptance rate: 0.879, 0.500, 0.293, Avg Draft
//	acceptance rate: 55.7%
//	SpecDecoding metrics: Draft acceptance rate: 45.9%, Mean acceptance length: 1.92, Accepted: 234 tokens, Drafted: 510 tokens
//	Speculative metrics: Draft acceptance rate: 0.750, System efficiency: 0.600, Number of speculative tokens: 5, Number of
//	accepted tokens: 100, Number of draft tokens: 200, Number of emitted tokens: 120
func spec(r *reader, m message) bool {
	none := math.NaN()
	s, accepted, drafted := Spec{Length: none}, none, none
	take(m.rest, []stated{{"Mean acceptance length", &s.Length, 1}, {"Accepted", &accepted, 1}, {"Drafted", &drafted, 1},
		{"Number of accepted tokens", &accepted, 1}, {"Number of draft tokens", &drafted, 1}}, nil)
	if counted := accepted+drafted >= 0; counted {
		s.Accepted, s.Drafted = count(accepted), count(drafted)
	} else if math.IsNaN(s.Length) {
		return r.broken()
	}
	if rest, found := after(m.rest, "Per-position acceptance rate: "); found {
		for part := range bytes.SplitSeq(rest, []byte(",")) {
			v, _, good := decimal(bytes.TrimLeft(part, " "))
			if !good || !keep(&s.Positions, v, maxPositions) {
				break
			}
		}
	}
	if !keep(&r.d.Specs, s, maxSpecs) {
		r.d.DroppedSamples++
	}
	return true
}

// Batch is how full one step of the scheduler was: tokens, and their maximum.
type Batch struct {
	Tokens, Most uint32 // that were batched, and that could have been
}

// maxBatches are kept, the first ones.
const maxBatches = 1 << 22

// maxTransfers bounds the number on one line: sums stay exact.
const maxTransfers = 1 << 32

// Transfers sum up the lines on KV caches that were moved between servers, as vLLM's NIXL connector logs them.
type Transfers struct {
	Lines, Count int64
	Seconds      float64 // of all transfers, one after the other
	Bytes        float64
}

// scheduled takes a debug line of vLLM's scheduler, "scheduled_new_reqs=1, scheduled_cached_reqs=7,
// num_batched_tokens=519, max_num_batched_tokens=8192".
func scheduled(r *reader, m message) bool {
	tokens, _, ok := digits(value(m.text, "num_batched_tokens"))
	most, _, okMost := digits(value(m.text, "max_num_batched_tokens"))
	if !ok || !okMost || most == 0 {
		return r.broken()
	}
	keep(&r.d.Batches, Batch{Tokens: narrow(tokens), Most: narrow(most)}, maxBatches)
	return true
}

// transfers takes what follows "KV Transfer metrics: ", where megabytes are 2^20 bytes:
//
//	Num successful transfers=4, Avg xfer time (ms)=2.5, P90 xfer time (ms)=3.1, Avg post time (ms)=0.4, P90 post time
//	(ms)=0.6, Avg MB per transfer=12.5, Throughput (MB/s)=5000.0, Avg number of descriptors=64.0
func transfers(r *reader, m message) bool {
	n, ok := wholeAfter(m.rest, "Num successful transfers=")
	if !ok { // another connector's
		return false
	}
	millis, timed := numberAfter(m.rest, "Avg xfer time (ms)=")
	size, sized := numberAfter(m.rest, "Avg MB per transfer=")
	if n > maxTransfers || n > 0 && (!timed || !sized) {
		return r.broken()
	}
	t := &r.d.Transfers
	t.Lines++
	t.Count += n
	t.Seconds += float64(n) * millis / 1e3
	t.Bytes += float64(n) * size * (1 << 20)
	return true
}

// GraphRow is one row of vLLM's CUDA graph statistics, over all times it was logged.
type GraphRow struct {
	Unpadded, Padded, Paddings int64 // tokens of one batch
	Mode                       string
	Count                      int64
}

// maxGraphRows bounds the different rows that are kept.
const maxGraphRows = 1 << 16

// Graphs are the CUDA graph statistics: each table counts the graphs that ran since the table before.
type Graphs struct {
	rows    map[GraphRow]int64
	Lines   int64 // rows read
	Dropped int64
}

// Rows by mode and tokens.
func (g *Graphs) Rows() []GraphRow {
	list := make([]GraphRow, 0, len(g.rows))
	for r, n := range g.rows {
		r.Count = n
		list = append(list, r)
	}
	lists.Sort(list, func(a, b GraphRow) int {
		return cmp.Or(strings.Compare(a.Mode, b.Mode), cmp.Compare(a.Padded, b.Padded),
			cmp.Compare(a.Unpadded, b.Unpadded), cmp.Compare(a.Paddings, b.Paddings))
	})
	return list
}

// graphLine reads one row of the table, anywhere on the line:
//
//	| 1               | 1             | 0            | FULL         | 116   |
func (g *Graphs) graphLine(m []byte) bool {
	row := graphRow().FindSubmatch(m)
	if row == nil {
		return false
	}
	g.Lines++
	key := GraphRow{whole(row[1]), whole(row[2]), whole(row[3]), cmp.Or(graphMode(string(bytes.TrimSpace(row[4]))), "other"), 0}
	if _, ok := g.rows[key]; !ok && len(g.rows) == maxGraphRows {
		g.Dropped++
	} else {
		g.rows[key] += whole(row[5])
	}
	return true
}

var graphRow = pattern.New(`\| *([0-9]+) *\| *([0-9]+) *\| *([0-9]+) *\|([^|]*)\| *([0-9]+) *\|[ \t]*$`)

// SteadyRule says which lines of statistics are steady. It is the same for every log.
const SteadyRule = "A line is steady if the server was serving during its whole interval: this line and the " +
	"previous line of the same engine both have running or waiting requests, and both come after the server was ready. " +
	"This leaves out start-up, idle times, and intervals in which load begins or ends. A batch line of SGLang covers " +
	"the time since the previous line of its kind; it is not steady if it is a prefill that found nothing running, or " +
	"if such a prefill came in between. " +
	"If no line is steady, those with work count, and the section says so."

func (d *Data) steady() {
	type key struct {
		start, engine int32
	}
	busyBefore := map[key]bool{}
	for i := range d.Samples {
		s := &d.Samples[i]
		if math.IsNaN(s.Running) {
			continue
		}
		k := key{s.Start, s.Engine}
		if s.Prefilling {
			s.Steady = !s.early && s.Running > 0
			busyBefore[k] = busyBefore[k] && s.Running != 0
			continue
		}
		busy := !s.early && (s.Running > 0 || s.Waiting > 0)
		s.Steady, busyBefore[k] = busy && busyBefore[k], busy
	}
}

// Ready reports whether the server took requests when the line was written.
func (s *Sample) Ready() bool { return !s.early }
