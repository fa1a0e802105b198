package compat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// Layer 0: 400, 200, 100, 0, 100 of 8 experts; four are dead. Layer 1: 100, 50, 50, 50, 50, 25, 50, 25, all alive.
func TestMoE(t *testing.T) {
	r := folderReport(t, sessionFolder)
	sectiontest.WantStatus(t, r, "moe", report.OK, "")
	sectiontest.Metric(t, r, 2, "moe.layers")
	sectiontest.Metric(t, r, 8, "moe.experts", "layer", "0")
	sectiontest.Metric(t, r, 16, "moe.experts")
	sectiontest.Metric(t, r, 800, "moe.activations", "layer", "0")
	sectiontest.Metric(t, r, 1200, "moe.activations")
	sectiontest.Metric(t, r, 0.5, "moe.coverage", "layer", "0")
	sectiontest.Metric(t, r, 1, "moe.coverage", "layer", "1")
	sectiontest.Metric(t, r, 0.75, "moe.coverage")
	sectiontest.Metric(t, r, 4, "moe.dead_experts", "layer", "0")
	sectiontest.Metric(t, r, 0, "moe.dead_experts", "layer", "1")
	sectiontest.Metric(t, r, 4, "moe.dead_experts")
	unknownMetric(t, r, "moe.load_balance", "layer", "0") // 400 over 0, where profilemate says 4
	sectiontest.Metric(t, r, 4, "moe.load_balance", "layer", "1")
	unknownMetric(t, r, "moe.load_balance")
	sectiontest.Metric(t, r, 4, "moe.peak_to_mean", "layer", "0") // 400 over 100
	sectiontest.Metric(t, r, 2, "moe.peak_to_mean", "layer", "1") // 100 over 50
	sectiontest.Metric(t, r, 4, "moe.peak_to_mean")
	sectiontest.Metric(t, r, 3, "moe.imbalance", "layer", "0")
	sectiontest.Metric(t, r, 2, "moe.imbalance", "layer", "1")
	sectiontest.Metric(t, r, 2.5, "moe.imbalance")
	sectiontest.Metric(t, r, 15, "moe.batch_spread", "layer", "0")
	sectiontest.Metric(t, r, 0.5, "moe.coselection_share", "layer", "0")
	sectiontest.Metric(t, r, 0.25, "moe.coselection_share", "layer", "1")
	sectiontest.Metric(t, r, 0.5, "moe.routing_weight")                    // 3 over 6
	nearly(t, r, 2.0/3, "moe.routing_top_weight")                          // of 0.6, 0.9, 0.5
	sectiontest.Metric(t, r, 0.75, "moe.routing_top_weight", "layer", "0") // of 0.6, 0.9
	wantFindings(t, r, true, "dead_experts", "experts_uneven")
	if s := r.Find("moe.imbalance", nil).Summary; s.N != 4 || s.Max != 4 || s.P50 != 2.5 {
		t.Errorf("imbalance: %+v", s)
	}
	pairs := sectiontest.FindTable(t, r, "moe", "moe_pairs")
	if lift, _ := pairs.Rows[0][5].Num(); lift != 2 { // half of the pairs, where 2 × 0.5 × 0.25 is chance
		t.Errorf("experts 0 and 1 of layer 0 over chance: %v", lift)
	}
	for _, c := range sectiontest.SectionOf(t, r, "moe").Charts {
		if c.Kind == "heat" && (len(c.Series) != 2 || len(c.Series[0].Values) != 8 || c.Series[0].Values[0] != 4 || c.Series[0].Values[3] != 0) {
			t.Errorf("heat map: %+v", c)
		}
	}
}

const activations = "layer_idx,expert_id,activation_count,percentage\n"

// The table lists experts that were chosen: without the summary nobody knows how many there are.
func TestMoEWithoutSummary(t *testing.T) {
	r := filesReport(t, map[string]string{"a.csv": activations + "3,0,10,50.00\n3,9,10,50.00\n"})
	unknownMetric(t, r, "moe.coverage")
	unknownMetric(t, r, "moe.coverage", "layer", "3")
	unknownMetric(t, r, "moe.load_balance", "layer", "3")
	unknownMetric(t, r, "moe.imbalance")
	sectiontest.Metric(t, r, 20, "moe.activations")
	if !warnsOf(r, "moe_experts_unknown") {
		t.Error("no warning")
	}
	wantFindings(t, r, false, "dead_experts", "experts_uneven")
}

// A layer without tokens is named: its experts are neither dead nor even.
func TestMoELayerWithoutTokens(t *testing.T) {
	r := filesReport(t, map[string]string{"a.csv": activations + "0,0,10,50.00\n0,1,10,50.00\n1,0,0,0.00\n",
		"s.json": `{"layer_0": {"num_experts": 2, "top_k": 1}, "layer_1": {"num_experts": 2, "top_k": 1}}`})
	sectiontest.Metric(t, r, 2, "moe.layers")
	sectiontest.Metric(t, r, 2, "moe.experts")
	sectiontest.Metric(t, r, 0, "moe.dead_experts")
	if !warnsOf(r, "moe_layers_empty") {
		t.Errorf("warnings: %v", r.Warnings)
	}
	if r := folderReport(t, sessionFolder); warnsOf(r, "moe_layers_empty") {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// A table that lacks a column is unavailable, which the section says, and the warning beside it.
func TestMoEColumnMissing(t *testing.T) {
	r := filesReport(t, map[string]string{"moe_expert_activations.csv": "layer_idx,expert_id\n3,0\n",
		"metadata.json": `{"session_id": "1", "start_time": "2026", "moe_expert_tracking": true}`})
	sectiontest.WantStatus(t, r, "moe", report.Unavailable,
		"columns are missing: moe_expert_activations.csv (activation_count)")
	if !warnsOf(r, "session_columns") {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

func TestMoESummaryAlone(t *testing.T) {
	r := filesReport(t, map[string]string{"moe_summary.json": `{"layer_5": {"num_experts": 4, "top_k": 1, "total_activations": 100, "unique_experts_activated": 4, "min_activations": 10, "max_activations": 50, "load_balance_ratio": 5.0}}`})
	sectiontest.Metric(t, r, 1, "moe.coverage", "layer", "5")
	sectiontest.Metric(t, r, 5, "moe.load_balance", "layer", "5")
	sectiontest.Metric(t, r, 5, "moe.load_balance")
	sectiontest.Metric(t, r, 2, "moe.peak_to_mean", "layer", "5")
	sectiontest.Metric(t, r, 5, "moe.imbalance", "layer", "5") // no batches were sampled: the session is one
	sectiontest.Metric(t, r, 5, "moe.imbalance")
}

// A summary of another model must not make experts dead.
func TestMoEContradiction(t *testing.T) {
	r := filesReport(t, map[string]string{"a.csv": activations + "0,0,10,50.00\n0,9,10,50.00\n", "moe_summary.json": `{"layer_0": {"num_experts": 8, "top_k": 1, "total_activations": 20, "unique_experts_activated": 2, "min_activations": 10, "max_activations": 10}}`})
	unknownMetric(t, r, "moe.coverage", "layer", "0")
	if !warnsOf(r, "session_summary") || !warnsOf(r, "moe_experts_unknown") {
		t.Errorf("warnings: %v", r.Warnings)
	}
}

// Twenty experts, the first two with 30 activations each, the others with 1: the busiest tenth has 60 of 78.
func TestMoETopDecile(t *testing.T) {
	var b strings.Builder
	b.WriteString(activations)
	for e := range 20 {
		n := 1
		if e < 2 {
			n = 30
		}
		fmt.Fprintf(&b, "7,%d,%d,0\n", e, n)
	}
	r := filesReport(t, map[string]string{"a.csv": b.String(), "s.json": `{"layer_7": {"num_experts": 20, "top_k": 1}}`})
	nearly(t, r, 60.0/78, "moe.top_decile_share", "layer", "7")
	nearly(t, r, 60.0/78, "moe.top_decile_share")
	sectiontest.Metric(t, r, 30, "moe.load_balance", "layer", "7")
}

// Properties: activations by expert add up to those of the layer, coverage lies in [0,1], and the balance is known exactly
// where no expert is dead.
func TestMoEProperties(t *testing.T) {
	r := folderReport(t, sessionFolder)
	for _, layer := range []string{"0", "1"} {
		l := report.Labels{"layer": layer}
		dead, balance, coverage := r.Find("moe.dead_experts", l), r.Find("moe.load_balance", l), r.Find("moe.coverage", l)
		if (*dead.Value == 0) != (balance.Value != nil) || *coverage.Value < 0 || *coverage.Value > 1 {
			t.Errorf("layer %s: dead %v, balance %v, coverage %v", layer, sectiontest.ShownValue(dead), sectiontest.ShownValue(balance), sectiontest.ShownValue(coverage))
		}
	}
}

// Many layers and experts stay a small report: the heat map has its bounds, and tables are cut.
func TestMoELarge(t *testing.T) {
	var b, s strings.Builder
	b.WriteString(activations)
	s.WriteString("{")
	for l := range 96 {
		for e := range 512 {
			fmt.Fprintf(&b, "%d,%d,%d,0\n", l, e, 1+(l*e)%97)
		}
		if l > 0 {
			s.WriteString(",")
		}
		fmt.Fprintf(&s, `"layer_%d": {"num_experts": 512, "top_k": 8}`, l)
	}
	s.WriteString("}")
	r := filesReport(t, map[string]string{"a.csv": b.String(), "s.json": s.String()})
	for _, c := range sectiontest.SectionOf(t, r, "moe").Charts {
		if c.Kind == "heat" && (len(c.Series) > 64 || len(c.Series[0].Values) > 128) {
			t.Errorf("heat map of %d × %d", len(c.Series), len(c.Series[0].Values))
		}
	}
	sectiontest.Metric(t, r, 96*512, "moe.experts")
	var w strings.Builder
	if err := report.Write(&w, r); err != nil || w.Len() > 2e6 {
		t.Errorf("%d bytes (%v)", w.Len(), err)
	}
}
