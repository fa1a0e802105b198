package compat

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// moeLayersTable lists the layers, the least balanced first.
func moeLayersTable(in *kit.Input, out *kit.Output, layers []*moeLayer) {
	list := slices.Clone(layers)
	key := func(v *float64) float64 { return report.ValueOr(v, -1) }
	lists.Sort(list, func(a, b *moeLayer) int {
		return cmp.Or(cmp.Compare(key(b.peak), key(a.peak)), cmp.Compare(key(b.Imbalance.Mean()),
			key(a.Imbalance.Mean())))
	})
	t := out.Table("moe_layers")
	for _, l := range list {
		row := []kit.Field{
			kit.Int("layer", int64(l.Index)), kit.Put("experts", kit.Stated(l.experts)), kit.Put("top_k", kit.Stated(l.TopK)),
			kit.Put("activations", kit.Stated(l.Total)), kit.Maybe("coverage", l.coverage),
			kit.Put("dead", report.Of(l.Dead, report.I, report.Null)), kit.Maybe("peak_to_mean", l.peak),
			kit.Maybe("load_balance", l.balance), kit.Maybe("top_share", l.decile),
			kit.Maybe("top_weight", l.TopWeight.Mean())}
		if l.Counted > 0 {
			row = append(row, kit.Int("hottest", int64(slices.Index(l.Hits, l.Busiest))),
				kit.Maybe("hottest_share", stat.Ratio(l.Busiest, l.Total)))
		}
		if s := l.Imbalance.Summary(); s != nil {
			row = append(row, kit.Float("imbalance", s.Mean), kit.Float("imbalance_p90", s.P90))
		}
		t.Partial(row...)
	}
	t.Cut(max(in.Options.Top, 128), "activations", "dead").Add()
}

// moeHottest ranks the experts by their share of their layer, and lists all of them in a file.
func moeHottest(in *kit.Input, out *kit.Output, layers []*moeLayer) {
	type expert struct {
		*moeLayer
		expert int
		share  float64
	}
	var list []expert
	for _, l := range layers {
		for e, n := range l.Hits {
			if share := stat.Ratio(n, l.Total); share != nil {
				list = append(list, expert{l, e, *share})
			}
		}
	}
	row := func(e *expert) []kit.Field {
		return []kit.Field{kit.Int("layer", int64(e.Index)), kit.Int("expert", int64(e.expert)),
			kit.Int("activations", e.Hits[e.expert]), kit.Float("share", e.share)}
	}
	all := out.Table("moe_experts")
	for i := range list[:min(len(list), in.Options.DetailRows*10)] {
		all.Row(row(&list[i])...)
	}
	all.TotalRows = int64(len(list))
	all.Attach()
	lists.Falling(list, func(e expert) float64 { return e.share })
	t := out.Table("moe_hottest")
	for i := range list[:min(len(list), in.Options.Top)] {
		var toMean *float64
		if e := &list[i]; e.experts > 0 {
			toMean = stat.Ratio(float64(e.Hits[e.expert])*float64(e.experts), float64(e.Total))
		}
		t.Row(append(row(&list[i]), kit.Maybe("to_mean", toMean))...)
	}
	t.TotalRows = int64(len(list))
	t.Add()
}

// maxPairRows is how many pairs of experts are listed, in all.
const maxPairRows = 50

// moePairs ranks the pairs of experts by how often they are chosen together. The expected count, if experts were chosen
// independently with the activations of the layer, is pairs × 2 p q.
func moePairs(in *kit.Input, out *kit.Output, layers []*moeLayer) {
	pairs := sessionOf(in).MoE.Pairs
	if len(pairs) == 0 {
		return
	}
	byIndex := map[int]*moeLayer{}
	for _, l := range layers {
		byIndex[l.Index] = l
	}
	type ranked struct {
		session.Pair
		share float64
	}
	var best []ranked
	keep := func() {
		lists.Sort(best, func(a, b ranked) int { return cmp.Compare(b.Count, a.Count) })
		best = best[:min(len(best), maxPairRows)]
	}
	count := func(p session.Pair) int64 { return p.Count }
	for _, list := range lists.Groups(pairs, func(p session.Pair) int32 { return p.Layer }) {
		sum := lists.Sum(list, count)
		if sum == 0 {
			continue
		}
		fromSession(out, int64(len(list)), "moe_expert_coselection.csv", "layer_idx", "expert_id_1", "expert_id_2",
			"coselection_count")
		out.Metric("moe.coselection_share", kit.Labels("layer", strconv.Itoa(int(list[0].Layer))),
			stat.Ratio(lists.Most(list, count), sum))
		for _, p := range list {
			if best = append(best, ranked{p, float64(p.Count) / float64(sum)}); len(best) >= 20*maxPairRows {
				keep()
			}
		}
	}
	keep()
	t := out.Table("moe_pairs")
	for _, p := range best {
		lift := report.Null
		if l := byIndex[int(p.Layer)]; l != nil && l.Total > 0 && int(p.B) < len(l.Hits) && p.A != p.B {
			chance := 2 * float64(l.Hits[p.A]) / float64(l.Total) * float64(l.Hits[p.B]) / float64(l.Total)
			lift = kit.Cell(stat.Ratio(p.share, chance))
		}
		t.Row(
			kit.Int("layer", int64(p.Layer)), kit.Int("expert_a", int64(p.A)), kit.Int("expert_b", int64(p.B)),
			kit.Int("pairs", p.Count), kit.Float("share", p.share), kit.Put("lift", lift))
	}
	t.TotalRows = int64(len(pairs))
	t.Add()
	out.Note("profilemate counts neighbours in the router's ranking as chosen together: with more than two experts a token, not every pair. Over chance is the pair's share over what it would be if experts were chosen independently.")
}

// Bounds of the heat map: rows and columns beyond them are drawn as the mean of neighbours.
const (
	maxMapLayers  = 64
	maxMapExperts = 128
)

// moeMap draws the load of each expert, 1 being an even share, as a row per layer. Experts beyond the bound share a
// cell with their neighbours, and so do layers.
func moeMap(out *kit.Output, layers []*moeLayer) {
	shown := lists.Filter(layers, func(l *moeLayer) bool { return l.Counted > 0 })
	if len(shown) == 0 {
		return
	}
	experts := lists.Most(shown, func(l *moeLayer) int { return max(len(l.Hits), int(l.experts)) })
	perCell := (experts + maxMapExperts - 1) / maxMapExperts
	perRow := (len(shown) + maxMapLayers - 1) / maxMapLayers
	c := report.Chart{ID: "moe_load", Title: "Load of experts by layer, 1 is an even share", Kind: "heat",
		Unit: report.Count, XTitle: "Expert", Series: []report.Series{}}
	for group := range slices.Chunk(shown, perRow) {
		s := report.Series{Name: "layer " + span(group[0].Index, group[len(group)-1].Index), Labels: []string{},
			Values: []float64{}}
		for e := 0; e < experts; e += perCell {
			last := min(e+perCell, experts) - 1
			sum := 0.0
			for _, l := range group {
				n := max(int(l.experts), len(l.Hits))
				for i := e; i <= last && i < len(l.Hits); i++ {
					sum += float64(l.Hits[i]) * float64(n) / float64(l.Counted)
				}
			}
			s.Labels = append(s.Labels, span(e, last))
			s.Values = append(s.Values, math.Round(sum/float64((last-e+1)*len(group))*1000)/1000)
		}
		c.Series = append(c.Series, s)
	}
	out.Chart(c)
	if perCell > 1 || perRow > 1 {
		out.Note("The heat map shows the mean of neighbouring experts and layers if there are too many for a cell each; moe_experts.csv has all.")
	}
}

// span names the numbers from a to b.
func span(a, b int) string {
	if a == b {
		return strconv.Itoa(a)
	}
	return strconv.Itoa(a) + "–" + strconv.Itoa(b)
}
