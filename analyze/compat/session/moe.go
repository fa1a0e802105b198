package session

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Bounds of the numbers a file may state, so that the reader's memory is bounded: no model has more layers or experts.
const (
	maxLayer   = 4096
	maxExperts = 1 << 16
	maxLayers  = 512     // layers with numbers of their own
	maxHits    = 1 << 20 // (layer, expert) pairs
	maxPairs   = 1 << 21 // (layer, expert, expert) rows
	maxRatio   = 1 << 40 // of the busiest to the least busy expert of a batch
)

// Layer is what a session records about the experts of one layer.
type Layer struct {
	Index   int
	TopK    int64   // experts per token; 0: not known
	Hits    []int64 // activations by expert; experts after the last one that was hit are left out
	Counted int64   // activations of the table

	Imbalance Sample // by batch: activations of its busiest expert over those of its least busy one
	Spread    Sample // by batch: standard deviation of its activations
	Weight    Sample // routing weights, 0..1
	TopWeight Sample // the largest routing weight of each token

	hit         int64 // experts with activations
	stated      int64 // experts by the summary
	contradicts bool  // two files do not agree on how many there are
	summary     []layerSummary
}

// MoE is what a session records about its experts.
type MoE struct {
	Layers    []*Layer // by index
	Imbalance Gauge    // of all layers
	Weight    Sample
	TopWeight Sample
	Pairs     []Pair // by layer, then experts

	byIndex map[int]*Layer
	hits    int64    // entries of all Hits
	lost    int64    // rows beyond a bound
	open    struct { // the token whose rows are read
		layer *Layer
		token float64
		top   float64
	}
}

// Pair is how often the router chose two experts for the same token. profilemate counts only neighbours in the order of
// weight: with more than two experts a token, some pairs are missing.
type Pair struct {
	Layer, A, B int32
	Count       int64
}

// layer finds a layer, nil beyond the bounds.
func (m *MoE) layer(index int) *Layer {
	if l := m.byIndex[index]; l != nil {
		return l
	}
	if index < -1 || index > maxLayer || len(m.byIndex) >= maxLayers {
		m.lost++
		return nil
	}
	l := entry(&m.byIndex, index)
	l.Index = index
	for _, s := range []*Sample{&l.Imbalance, &l.Spread, &l.Weight, &l.TopWeight} {
		s.limit = maxLayerSample
	}
	return l
}

// layerOf finds the layer of a row, nil beyond the bounds.
func (m *MoE) layerOf(r *row) *Layer { return m.layer(int(r.values[0])) }

func takeActivations(d *Data, r *row) {
	m := &d.MoE
	expert, n := int64(r.values[1]), int64(r.values[2])
	l := m.layerOf(r)
	if l == nil {
		return
	}
	if grow := expert + 1 - int64(len(l.Hits)); grow > 0 {
		if expert >= maxExperts || m.hits+grow > maxHits {
			m.lost++
			return
		}
		l.Hits = append(l.Hits, make([]int64, grow)...)
		m.hits += grow
	}
	if l.Hits[expert] == 0 && n > 0 {
		l.hit++
	}
	l.Hits[expert] += n
	l.Counted += n
}

func takePair(d *Data, r *row) {
	m := &d.MoE
	layer, a, b, n := r.values[0], r.values[1], r.values[2], int64(r.values[3])
	if layer > maxLayer || max(a, b) >= maxExperts || len(m.Pairs) >= maxPairs {
		m.lost++
	} else {
		m.Pairs = append(m.Pairs, Pair{int32(layer), int32(min(a, b)), int32(max(a, b)), n})
	}
}

func takeWeight(d *Data, r *row) {
	m := &d.MoE
	token, w := r.values[1], r.values[3]
	l := m.layerOf(r)
	if l == nil {
		return
	}
	m.Weight.add(w)
	l.Weight.add(w)
	o := &m.open
	if o.layer != l || o.token != token {
		m.closeToken()
	}
	o.layer, o.token, o.top = l, token, max(o.top, w)
}

// closeToken records the largest weight of the token whose rows have ended.
func (m *MoE) closeToken() {
	if o := &m.open; o.layer != nil {
		m.TopWeight.add(o.top)
		o.layer.TopWeight.add(o.top)
		o.layer, o.top = nil, 0
	}
}

func takeImbalance(d *Data, r *row) {
	m := &d.MoE
	l := m.layerOf(r)
	if l == nil {
		return
	}
	l.Spread.add(r.values[2])
	l.Imbalance.add(r.values[3])
	m.Imbalance.at(r.values[1], r.values[3])
}

// finish sorts the tables, and adds up pairs that several files list.
func (m *MoE) finish() {
	m.closeToken()
	m.Layers = slices.SortedFunc(maps.Values(m.byIndex), func(a, b *Layer) int { return cmp.Compare(a.Index, b.Index) })
	lists.Sort(m.Pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	n := 0
	for _, p := range m.Pairs {
		if n > 0 && m.Pairs[n-1].Layer == p.Layer && m.Pairs[n-1].A == p.A && m.Pairs[n-1].B == p.B {
			m.Pairs[n-1].Count += p.Count
			continue
		}
		m.Pairs[n] = p
		n++
	}
	m.Pairs = m.Pairs[:n]
}

// Experts is the number of experts of the layer, 0 if it is not known: the table lists only those that were hit.
func (l *Layer) Experts() int64 {
	if l.contradicts || int64(len(l.Hits)) > l.stated {
		return 0
	}
	return l.stated
}

// Load is how activations spread over the experts of a layer.
type Load struct {
	Total   int64  // 0: not known
	Hit     int64  // experts with activations
	Dead    *int64 // experts without activations, nil if the number of experts is not known
	Busiest int64  // activations of the busiest expert
	Least   *int64 // of the least busy one, dead ones included; nil if these are not known
}

// Load comes from the table of activations, or from the summary if that is missing; it is zero if neither exists.
func (l *Layer) Load() (x Load) {
	least := int64(0)
	switch {
	case l.Counted > 0:
		x.Total, x.Hit, least = l.Counted, l.hit, l.Counted
		for _, n := range l.Hits {
			x.Busiest = max(x.Busiest, n)
			if n > 0 {
				least = min(least, n)
			}
		}
	case len(l.summary) == 1:
		s := l.summary[0]
		x.Total, x.Hit, x.Busiest, least = s.total, s.hit, s.most, s.least
	}
	if n := l.Experts(); x.Total > 0 && n >= x.Hit && n > 0 {
		dead := n - x.Hit
		if dead > 0 {
			least = 0
		}
		x.Dead, x.Least = &dead, &least
	}
	return x
}
