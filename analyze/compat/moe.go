package compat

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/compat/session"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var MoE = kit.Section{
	ID: "moe", Title: "Mixture of experts",
	Evidence: ofSession,
	Derivation: "The session's tables of expert activations, pairs, routing weights and imbalance, by layer. The " +
		"number of experts comes from moe_summary.json, because the tables list only those that were chosen. An " +
		"expert that no token chose counts with 0 activations.",
	Findings: []kit.FindingDef{
		{ID: "dead_experts", Title: "Some experts are never chosen"},
		{ID: "experts_uneven", Title: "Expert load is uneven"},
	},
	Metrics: []report.MetricDef{
		kit.ExactLevel("moe.layers", report.None, report.Leave, "layers with experts"),
		kit.ExactLevel("moe.experts", report.None, report.Leave,
			"experts of the layer, of all layers; unknown if no file states it").By("", "layer"),
		kit.NoisyCount("moe.activations", report.None, report.Leave,
			"times that the router chose an expert of the layer").By("", "layer"),
		kit.Ratio("moe.coverage", report.Higher, report.Leave,
			"share of the experts that some token chose; unknown if the number of experts is").By("", "layer"),
		kit.NoisyLevel("moe.dead_experts", report.Lower, report.Leave, "experts that no token chose").By("", "layer"),
		kit.NoisyLevel("moe.load_balance", report.Lower, report.Leave,
			"activations of the busiest expert over those of the least busy one; without a label, of the worst layer; "+
				"unknown if an expert is or may be dead: it would be infinite").By("", "layer"),
		kit.NoisyLevel("moe.peak_to_mean", report.Lower, report.Leave, "activations of the busiest expert over the "+
			"mean of all experts, dead ones included; without a label, of the worst layer: how much longer the layer "+
			"takes, with an expert per GPU, than if load were even").By("", "layer"),
		kit.Ratio("moe.top_decile_share", report.Lower, report.Leave, "share of the activations that the busiest "+
			"tenth of the experts takes; without a label, of the worst layer").By("", "layer"),
		kit.NoisyLevel("moe.imbalance", report.Lower, report.Leave, "mean over batches of the activations of the "+
			"busiest expert over those of the least busy chosen one, with a summary over batches; of the whole "+
			"session, dead experts counted, if no batches were sampled").Summarised().By("", "layer"),
		report.Define("moe.batch_spread", report.Count, report.Lower, report.Noisy, report.Event, report.Leave,
			"mean over batches of the standard deviation of activations over the chosen experts; the summary is over "+
				"batches").Summarised().By("layer"),
		kit.Ratio("moe.coselection_share", report.None, report.Leave,
			"share of the most frequent pair among the layer's pairs of experts that were chosen together").By("layer"),
		kit.Ratio("moe.routing_weight", report.None, report.Leave,
			"mean routing weight of a chosen expert; the summary is over samples").Summarised().By("", "layer"),
		kit.Ratio("moe.routing_top_weight", report.None, report.Leave, "mean of the largest routing weight of a "+
			"token: how sure the router is; the summary is over sampled tokens").Summarised().By("", "layer"),
	},
	Tables: []report.Table{
		{ID: "moe_layers", Title: "Layers, the least balanced first", File: "moe_layers.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("layer", "Layer"),
			kit.CountCol("experts", "Experts"),
			kit.CountCol("top_k", "Per token"),
			kit.CountCol("activations", "Activations"),
			kit.RatioCol("coverage", "Chosen", "coverage_pct"),
			kit.CountCol("dead", "Dead"),
			kit.FloatCol("peak_to_mean", "Busiest / mean", ""),
			kit.FloatCol("load_balance", "Busiest / least", ""),
			kit.RatioCol("top_share", "Busiest tenth", "top_decile_pct"),
			kit.IDCol("hottest", "Hottest expert"),
			kit.RatioCol("hottest_share", "Its share", "hottest_pct"),
			kit.FloatCol("imbalance", "Imbalance by batch, mean", ""),
			kit.Wide(kit.FloatCol("imbalance_p90", "p90", "")),
			kit.Wide(kit.FloatCol("top_weight", "Top weight, mean", "")),
		}},
		{ID: "moe_hottest", Title: "Hottest experts", File: "moe_hottest.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("layer", "Layer"),
			kit.IDCol("expert", "Expert"),
			kit.CountCol("activations", "Activations"),
			kit.RatioCol("share", "Of the layer", "pct_of_layer"),
			kit.FloatCol("to_mean", "Over the mean", ""),
		}},
		{ID: "moe_pairs", Title: "Co-activated experts", File: "moe_pairs.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("layer", "Layer"),
			kit.IDCol("expert_a", "Expert"),
			kit.IDCol("expert_b", "Expert"),
			kit.CountCol("pairs", "Times"),
			kit.RatioCol("share", "Of the layer's pairs", "pct_of_layer"),
			kit.FloatCol("lift", "Over chance", ""),
		}},
		{ID: "moe_experts", Title: "Activations by expert", File: "moe_experts.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("layer", "Layer"),
			kit.IDCol("expert", "Expert"),
			kit.CountCol("activations", "Activations"),
			kit.RatioCol("share", "Of the layer", "pct_of_layer"),
		}},
	},
	Run: moe,
}

// moeUneven is the balance, profilemate's bound, from which experts are reported as a finding.
const moeUneven = 2.0

// moeLayer is a layer, and the numbers that are computed from it.
type moeLayer struct {
	*session.Layer
	session.Load
	experts  int64    // 0: not known
	coverage *float64 // of experts
	balance  *float64
	peak     *float64 // to mean
	decile   *float64
}

func (l *moeLayer) label() report.Labels { return kit.Labels("layer", strconv.Itoa(l.Index)) }

func moe(in *kit.Input, out *kit.Output) {
	const activations, summary = "moe_expert_activations.csv", "moe_summary.json"
	d := sessionOf(in)
	m := &d.MoE
	if len(m.Layers) == 0 && len(m.Pairs) == 0 {
		sessionLacks(out, d, activations, "moe_load_imbalance.csv", "moe_expert_coselection.csv",
			"moe_routing_weights_hist.csv", summary)
		return
	}
	layers := lists.Map(m.Layers, loadOf)
	fromSession(out, d.Rows[activations]+d.Rows[summary], activations, "layer_idx", "expert_id", "activation_count",
		summary)
	out.Int("moe.layers", nil, int64(len(layers)))
	moeTotals(out, layers)
	moeBatches(d, out, layers)
	moeLayersTable(in, out, layers)
	moeHottest(in, out, layers)
	moePairs(in, out, layers)
	moeMap(out, layers)
	filesTogether(out, d, activations)
	moeFindings(out, layers)
}

func loadOf(l *session.Layer) *moeLayer {
	x := &moeLayer{Layer: l, Load: l.Load(), experts: l.Experts()}
	if x.Dead != nil {
		x.coverage = stat.Ratio(x.Hit, x.experts)
		x.peak = stat.Ratio(float64(x.Busiest)*float64(x.experts), float64(x.Total))
		x.balance = stat.Ratio(x.Busiest, *x.Least) // nil if an expert is dead
	}
	if l.Counted > 0 && x.experts >= 10 {
		sorted := slices.Clone(l.Hits)
		lists.Sort(sorted, func(a, b int64) int { return cmp.Compare(b, a) })
		top := lists.Total(sorted[:min(int(x.experts/10), len(sorted))])
		x.decile = stat.Ratio(top, x.Total)
	}
	return x
}

// moeTotals emits the metrics over whole layers.
func moeTotals(out *kit.Output, layers []*moeLayer) {
	var experts, hit, dead, total int64
	knowsAll, evenAll := true, true
	var empty []string
	var worst, peak, decile *float64
	for _, l := range layers {
		if l.Total == 0 {
			empty = append(empty, strconv.Itoa(l.Index))
			continue
		}
		if out.Int("moe.activations", l.label(), l.Total); l.experts > 0 {
			out.Int("moe.experts", l.label(), l.experts)
		}
		out.Metric("moe.coverage", l.label(), l.coverage)
		out.Metric("moe.dead_experts", l.label(), floatOf(l.Dead))
		out.Metric("moe.load_balance", l.label(), l.balance)
		out.Metric("moe.peak_to_mean", l.label(), l.peak)
		out.Known("moe.top_decile_share", l.label(), l.decile)
		total += l.Total
		if l.Dead == nil {
			knowsAll = false
		} else {
			experts, hit, dead = experts+l.experts, hit+l.Hit, dead+*l.Dead
		}
		evenAll = evenAll && l.balance != nil
		worst, peak, decile = kit.Higher(worst, l.balance), kit.Higher(peak, l.peak), kit.Higher(decile, l.decile)
	}
	if total == 0 {
		out.Status(report.Partial, "the session has no activations by expert")
		return
	}
	out.Int("moe.activations", nil, total)
	if len(empty) > 0 {
		out.Warn("moe_layers_empty", "No activations are known of these layers, so all but moe.layers leave them out: "+
			file.Some(empty, 5)+".")
	}
	if !knowsAll {
		out.Warn("moe_experts_unknown",
			"The number of experts is not known for every layer: moe_summary.json is missing or contradicts the tables. "+
				"Experts that no token chose are not in the tables: coverage and balance of these layers are unknown.")
		for _, id := range []string{"moe.coverage", "moe.dead_experts", "moe.load_balance"} {
			out.Metric(id, nil, nil)
		}
		return
	}
	out.Int("moe.experts", nil, experts)
	out.Metric("moe.coverage", nil, stat.Ratio(hit, experts))
	out.Int("moe.dead_experts", nil, dead)
	if !evenAll {
		worst = nil
	}
	out.Metric("moe.load_balance", nil, worst)
	out.Metric("moe.peak_to_mean", nil, peak)
	out.Known("moe.top_decile_share", nil, decile)
}

// moeBatches emits the metrics that were sampled by batch and by token.
func moeBatches(d *session.Data, out *kit.Output, layers []*moeLayer) {
	const imbalance, weights = "moe_load_imbalance.csv", "moe_routing_weights_hist.csv"
	m := &d.MoE
	emit := func(id, file, column string, labels report.Labels, s *session.Sample) {
		meanOf(out, id, labels, s, file, "layer_idx", column)
	}
	emit("moe.imbalance", imbalance, "max_min_ratio", nil, &m.Imbalance.Sample)
	emit("moe.routing_weight", weights, "weight", nil, &m.Weight)
	emit("moe.routing_top_weight", weights, "weight", nil, &m.TopWeight)
	for _, l := range layers {
		emit("moe.imbalance", imbalance, "max_min_ratio", l.label(), &l.Imbalance)
		emit("moe.batch_spread", imbalance, "std_dev", l.label(), &l.Spread)
		emit("moe.routing_weight", weights, "weight", l.label(), &l.Weight)
		emit("moe.routing_top_weight", weights, "weight", l.label(), &l.TopWeight)
	}
	if m.Imbalance.N() == 0 {
		moeWhole(out, layers)
		return
	}
	out.Note("Imbalance by batch covers the experts that the batch chose: experts that it did not choose, and batches " +
		"that chose a single expert, are left out.")
	out.Chart(kit.Lines("moe_imbalance", "Imbalance of expert load by batch, over time", report.Count, sinceStart,
		overTime("busiest over least busy", &m.Imbalance.OverTime)))
}

// moeWhole emits the imbalance if it was not sampled by batch: the whole session counts as one batch, dead experts
// included.
func moeWhole(out *kit.Output, layers []*moeLayer) {
	if len(layers) == 0 {
		return
	}
	var worst *float64
	even := true
	for _, l := range layers {
		worst, even = kit.Higher(worst, l.balance), even && l.balance != nil
		if l.Total > 0 {
			fromSession(out, 1, "moe_expert_activations.csv", "layer_idx", "expert_id", "activation_count",
				"moe_summary.json")
			out.Metric("moe.imbalance", l.label(), l.balance)
		}
	}
	if !even {
		worst = nil
	}
	out.Metric("moe.imbalance", nil, worst)
	out.Note("The session has no samples of imbalance by batch: the value of `moe.imbalance` takes the whole session for one batch, and that of the worst layer if it is unlabelled.")
}

func moeFindings(out *kit.Output, layers []*moeLayer) {
	var hot *moeLayer
	var dead []report.MetricRef
	for _, l := range layers {
		if l.Dead != nil && *l.Dead > 0 && len(dead) < 3 {
			dead = append(dead, report.MetricRef{ID: "moe.dead_experts", Labels: l.label()},
				report.MetricRef{ID: "moe.coverage", Labels: l.label()})
		}
		if l.peak != nil && (hot == nil || *l.peak > *hot.peak) {
			hot = l
		}
	}
	if len(dead) > 0 {
		out.Find("dead_experts", dead,
			"Measure with more and more varied requests first: few tokens reach few experts.",
			"Experts that stay dead hold memory for nothing. Expert parallelism places them like all others, so their GPU has less to do.")
	}
	if hot != nil && *hot.peak > moeUneven {
		out.Find("experts_uneven",
			[]report.MetricRef{{ID: "moe.peak_to_mean", Labels: hot.label()},
				{ID: "moe.activations", Labels: hot.label()}},
			"With expert parallelism a layer waits for its busiest expert: balance them (vLLM: --enable-eplb, with redundant experts), and watch the balancedness that it logs.",
			"FLOPs are the same however tokens spread, so metrics of utilisation computed from a model's dimensions do not show this.")
	}
}
