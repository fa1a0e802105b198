package session

import (
	"cmp"
	"hash/maphash"
	"strings"
)

// The tables of a session: what each is taken for. The engine's work step by step, the KV cache, CUDA graphs, requests.

const (
	nsPerMs = 1e6
	nsPerS  = 1e9
)

// Forward are the forward passes of one phase.
type Forward struct {
	Time   Sample // ns
	Tokens int64
}

// Operation is a CPU operation, and its phase if that is known.
type Operation struct{ Name, Phase string }

// entry is the value under a key, created if missing.
func entry[K comparable, V any](m *map[K]*V, key K) *V {
	v := (*m)[key]
	if v == nil {
		if *m == nil {
			*m = map[K]*V{}
		}
		v = new(V)
		(*m)[key] = v
	}
	return v
}

func takeForward(d *Data, r *row) {
	at, tokens, ns := r.values[0], r.values[2], r.values[3]
	for _, f := range []*Forward{&d.AllForward, entry(&d.Forward, word(Phases, r.text(1)))} {
		f.Time.add(ns)
		f.Tokens += int64(tokens)
	}
	d.Throughput.add(at, tokens, ns/nsPerS)
}

func takeOperation(d *Data, r *row) {
	name, ns := word(operations, r.text(1)), r.values[2]
	entry(&d.Operations, Operation{Name: name}).add(ns)
	context, ok := strings.CutPrefix(r.text(3), "phase=") // of some: phase=decode
	if phase := word(Phases, context); ok && phase != other {
		entry(&d.Operations, Operation{name, phase}).add(ns)
	}
}

func takeComponent(d *Data, r *row) {
	entry(&d.Components, word(Components, r.text(1))).add(r.values[2])
}

// Batches are the decisions of the scheduler.
type Batches struct {
	Steps        int64
	Seqs, Tokens map[string]*Sample // utilisation by phase, "" for all: 0..1 of max_num_seqs, of max_num_batched_tokens
	Under        int64              // steps with a token utilisation below underUtilised
	Running      Gauge              // requests
	Waiting      Gauge
	Queued       int64 // steps at which some request waited
	MaxSeqs      Limit
	MaxTokens    Limit

	SeqsOverTime, TokensOverTime Series
}

// underUtilised is profilemate's bound, 0..1, below which a batch uses too little of its step.
const underUtilised = 0.5

// Limit is a setting that every row repeats.
type Limit struct {
	value int64
	mixed bool
}

func (l *Limit) add(v int64) {
	l.mixed = l.mixed || l.value > 0 && v != l.value
	l.value = v
}

// Value is the setting, nil if it is not stated or if rows disagree.
func (l *Limit) Value() *int64 {
	if l.value <= 0 || l.mixed {
		return nil
	}
	return &l.value
}

func takeBatch(d *Data, r *row) {
	b, at, phase := &d.Batches, r.values[0], word(Phases, r.text(5))
	b.Steps++
	use := func(by *map[string]*Sample, over *Series, limit *Limit, column int, n float64) (float64, bool) {
		most, ok := r.count(column)
		if !ok || most == 0 { // the scheduler's limit was not found: unknown, not 0
			return 0, false
		}
		limit.add(most)
		u := n / float64(most)
		entry(by, "").add(u)
		entry(by, phase).add(u)
		over.add(at, u, 1)
		return u, true
	}
	use(&b.Seqs, &b.SeqsOverTime, &b.MaxSeqs, 2, r.values[1])
	if u, ok := use(&b.Tokens, &b.TokensOverTime, &b.MaxTokens, 4, r.values[3]); ok && u < underUtilised {
		b.Under++
	}
	if n, ok := r.count(6); ok {
		b.Running.at(at, float64(n))
	}
	if n, ok := r.count(7); ok {
		if b.Waiting.at(at, float64(n)); n > 0 {
			b.Queued++
		}
	}
}

// Cache is the KV cache over time.
type Cache struct {
	Usage     Gauge // 0..1
	Blocks    Limit // in the pool
	Used      int64 // most blocks in use at once
	Evictions int64
	Lifetime  Sample // ns from allocation to eviction
	Idle      Sample // ns from last use to eviction
}

func takeUsage(d *Data, r *row) {
	c := &d.Cache
	c.Usage.at(r.values[0], r.values[1]/100)
	if total, ok := r.count(3); ok && total > 0 {
		c.Blocks.add(total)
		if used, ok := r.count(2); ok && used <= total {
			c.Used = max(c.Used, used)
		}
	}
}

func takeEviction(d *Data, r *row) {
	d.Cache.Evictions++
	d.Cache.Lifetime.add(r.values[1])
	d.Cache.Idle.add(r.values[2])
}

// Graph is a captured CUDA graph, or one piece of it.
type Graph struct {
	Captured   bool
	CapturedAt float64 // seconds after the session's start
	Replays    int64
	Time       Sample // ns of its replays, only stated, with the wait for the GPU
}

// Graphs are the CUDA graphs of a session, by the batch that they were captured for.
type Graphs struct {
	ByBatch map[Batch]*Graph
	ByMode  map[string]*Sample // ns of replays
	lost    int64              // rows beyond maxGraphs
}

// maxGraphs bounds the distinct batches; vLLM captures about seventy sizes.
const maxGraphs = 4096

// graph finds the graph of a batch, nil beyond maxGraphs.
func (g *Graphs) graph(b Batch) *Graph {
	if g.ByBatch[b] == nil && len(g.ByBatch) >= maxGraphs {
		g.lost++
		return nil
	}
	return entry(&g.ByBatch, b)
}

// batch reads the columns that captures and usage share, from the third on the optional ones.
func (r *row) batch() Batch {
	b := Batch{Mode: enumWord(modes, r.text(0)), Tokens: whole(r.text(1)), Reqs: whole(r.text(3))}
	b.Uniform, b.LoRA = r.text(4) == "True", r.text(5) == "True"
	return b
}

func takeCapture(d *Data, r *row) {
	if g := d.Graphs.graph(r.batch()); g != nil {
		g.Captured, g.CapturedAt = true, r.values[2]
	}
}

func takeReplays(d *Data, r *row) {
	if g := d.Graphs.graph(r.batch()); g != nil {
		g.Replays += int64(r.values[2])
	}
}

func takeReplay(d *Data, r *row) {
	b, ok := descriptor(r.text(1))
	if r.failed = !ok; r.failed {
		return
	}
	entry(&d.Graphs.ByMode, b.Mode).add(r.values[2])
	if g := d.Graphs.graph(b); g != nil {
		g.Time.state(1, r.values[2])
	}
}

// Requests holds preemptions and the lifetimes of requests.
type Requests struct {
	Preempted int64
	Reasons   map[string]*int64
	RunTime   Sample // ns from a request's start to its preemption
	Delay     Sample // ns from a preemption to the resumption, of events
	Started   int64  // requests seen from their start, of events and of request_lifecycle.csv, whichever has more
	TotalTime Sample // ns of request_lifecycle.csv

	listedStart   int64  // of them, those with a start
	listedPreempt int64  // of them, those that were preempted
	listedDelay   Sample // ns; one per request, of its last preemption
	eventStart    int64
	waiting       map[uint64]float64 // seconds at which a request was preempted, by the hash of its id
	lost          int64              // preemptions beyond maxWaiting
}

// maxWaiting bounds the requests that wait for their resumption at once.
const maxWaiting = 1 << 18

// idHash changes with every run of the program: hashes are only compared, never stored.
var idHash = maphash.MakeSeed()

func takeEvent(d *Data, r *row) {
	q, at, id := &d.Requests, r.values[0], maphash.String(idHash, r.text(1))
	switch r.text(2) {
	case "preempted":
		q.Preempted++
		if reason := r.text(3); reason != "" {
			*entry(&q.Reasons, enumWord(Reasons, reason))++
		}
		if ns, ok := r.number(4, kinds["s"]); ok && ns > 0 {
			q.RunTime.add(ns)
		}
		if len(q.waiting) >= maxWaiting {
			q.lost++
			return
		}
		q.waiting[id] = at
	case "resumed":
		if from, ok := q.waiting[id]; ok && at >= from {
			q.Delay.add(roundNs(at - from))
		}
		delete(q.waiting, id)
	case "started":
		q.eventStart++
	case "finished", "evicted":
		delete(q.waiting, id)
	default:
		r.failed = true
	}
}

func takeRequest(d *Data, r *row) {
	q := &d.Requests
	started, preempted, resumed, finished := r.values[1], r.values[2], r.values[3], r.values[4]
	if started >= 0 {
		q.listedStart++
	}
	if preempted >= 0 {
		q.listedPreempt++
	}
	if preempted >= 0 && resumed >= preempted {
		q.listedDelay.add(roundNs(resumed - preempted))
	}
	if started >= 0 && finished >= started {
		q.TotalTime.add(roundNs(finished - started))
	}
}

// finish fills in the values that either of the two files can give.
func (q *Requests) finish() {
	q.Started = max(q.eventStart, q.listedStart)
	if q.Delay.N() == 0 {
		q.Delay = q.listedDelay
	}
	q.Preempted = cmp.Or(q.Preempted, q.listedPreempt)
}
