package engine

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
)

var ExpertLoad = kit.Section{
	ID: "expert_load", Title: "Balance of experts", Evidence: []file.Kind{file.ServerLog},
	Derivation: "What vLLM logs of its expert parallel load balancer (log_balancedness): the mean over the " +
		"largest number of tokens that a rank had to work on. Steps without tokens say nothing and are left out.",
	Findings: []kit.FindingDef{
		{ID: "experts_uneven", Title: "Some ranks work on far more tokens than others, and the others wait for them"},
	},
	Metrics: []report.MetricDef{
		kit.Ratio("serve.expert_balance", report.Higher, report.Leave,
			"mean over largest load of the ranks; 1 is even (median; the summary is over logged steps)").Summarised(),
	},
	Run: expertBalance,
}

// unevenExperts is the balance, 0..1, below which it is a finding.
const unevenExperts = 0.60

func expertBalance(in *kit.Input, out *kit.Output) {
	list := in.Evidence.Log.Balances
	out.FromEvidence(file.ServerLog, len(list), "balancedness")
	if len(list) == 0 {
		out.Status(report.NotApplicable, "the log has no lines on the balance of experts")
		return
	}
	balance := steadySample{all: int64(len(list)), steady: stat.Summarize(slices.Clone(list))}
	balance.emit(out, "serve.expert_balance", nil)
	if in.Evidence.Log.IdleBalances > 0 {
		out.Note("Steps without tokens were left out.")
	}
	if even := balance.steady.P50; even < unevenExperts {
		out.Find("experts_uneven", kit.Refs("serve.expert_balance"),
			"Give the load balancer redundant experts (num_redundant_experts), or let it move experts more often.").
			Costs(kit.WorthOf(report.OfRun, 1-even, 1))
	}
}
