package session

// KV cache and CUDA graphs.

// Cache is the KV cache over time.
type Cache struct {
	Usage     Sample // 0..1
	OverTime  Series
	Blocks    Limit // in the pool
	Used      int64 // most blocks in use at once
	Evictions int64
	Lifetime  Sample // ns from allocation to eviction
	Idle      Sample // ns from last use to eviction
}

func (d *Data) takeUsage(r *row) bool {
	at, ok1 := r.seconds(0)
	percent, ok2 := r.amount(1)
	if !ok1 || !ok2 || percent > 100.5 {
		return false
	}
	c := &d.Cache
	c.Usage.add(percent / 100)
	c.OverTime.add(at, percent/100, 1)
	if total, ok := r.count(3); ok && total > 0 {
		c.Blocks.add(total)
		if used, ok := r.count(2); ok && used <= total {
			c.Used = max(c.Used, used)
		}
	}
	return true
}

func (d *Data) takeEviction(r *row) bool {
	lifetime, ok1 := r.duration(1, nsPerS)
	idle, ok2 := r.duration(2, nsPerS)
	if !ok1 || !ok2 {
		return false
	}
	d.Cache.Evictions++
	d.Cache.Lifetime.add(lifetime)
	d.Cache.Idle.add(idle)
	return true
}

// Graph is a captured CUDA graph, or one piece of it.
type Graph struct {
	Captured   bool
	CapturedAt float64 // seconds after the session's start
	Replays    int64
	Time       Stated // ns of its replays, with the wait for the GPU
}

// Graphs are the CUDA graphs of a session, by the batch that they were captured for.
type Graphs struct {
	ByBatch map[Batch]*Graph
	ByMode  map[string]*Sample // ns of replays
	lost    int64              // rows beyond maxGraphs
	counted bool               // replays come from cuda_graph_usage.csv
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
	b := Batch{Mode: enumWord(modeWords, r.text(0)), Tokens: whole(string(r.text(1))), Reqs: whole(string(r.text(3)))}
	b.Uniform, b.LoRA = string(r.text(4)) == "True", string(r.text(5)) == "True"
	return b
}

func (d *Data) takeCapture(r *row) bool {
	at, ok := r.seconds(2)
	if !ok {
		return false
	}
	if g := d.Graphs.graph(r.batch()); g != nil {
		g.Captured, g.CapturedAt = true, at
	}
	return true
}

func (d *Data) takeReplays(r *row) bool {
	n, ok := r.count(2)
	if !ok {
		return false
	}
	d.Graphs.counted = true
	if g := d.Graphs.graph(r.batch()); g != nil {
		g.Replays += n
	}
	return true
}

func (d *Data) takeReplay(r *row) bool {
	ns, ok1 := r.duration(2, nsPerMs)
	b, ok2 := descriptor(r.text(1))
	if !ok1 || !ok2 {
		return false
	}
	entry(&d.Graphs.ByMode, b.Mode).add(ns)
	if g := d.Graphs.graph(b); g != nil {
		g.Time.N++
		g.Time.Sum += ns
	}
	return true
}

// finish counts the replays of the timeline if no table does.
func (g *Graphs) finish() {
	if g.counted {
		return
	}
	for _, e := range g.ByBatch {
		e.Replays = e.Time.N
	}
}
