package diff

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
)

// Comparing reports that no trace is behind: server logs, dumps of metrics, exports of profilers. There are no kernels of a
// timeline to attribute a change to; what they measured is compared number by number, and iterations of a log per unit of
// work, as steps of a trace are.

// evidenceOnly reports whether no trace is behind the report.
func (c *capture) evidenceOnly() bool {
	kind := c.Report.Trace.Kind
	return len(c.Report.Evidence) > 0 && kind != "" && !strings.HasPrefix(kind, "nsys-")
}

// evidenceOnly reports whether no trace is behind any report of either side.
func (x *Sides) evidenceOnly() bool {
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			if !c.evidenceOnly() {
				return false
			}
		}
	}
	return true
}

// EvidenceRules are what is judged where nobody wrote rules and no trace is behind the sides:
//
//	unit.time.p50                     error  +3% and +10us   the median iteration of a kind, where a log details them
//	serve.generation_throughput.p50   error  -5%             tokens per second
//	serve.prompt_throughput.p50       warn   -5%             what clients ask for, as much as what the server does
//	serve.ttft.mean, serve.e2e.mean   error  +10%            means, which a histogram knows exactly
//	serve.tpot.mean                   error  +5%
//	serve.spec_acceptance_rate        warn   -5pp
//	ncu.duration.mean                 warn   +5% and +1us    each kernel: clocks decide as much as code does
//
// Each has something to say where both sides hold its number.
func EvidenceRules() []Rule {
	num := func(v float64) *float64 { return &v }
	up := func(id, metric, level string, rel float64) Rule {
		return Rule{ID: id, Metric: metric, Labels: report.Labels{}, Level: level, Rel: num(rel), Direction: Up, optional: true}
	}
	step, kernels := up("step", "unit.time.p50", LevelError, 0.03), up("kernels", "ncu.duration.mean", LevelWarn, 0.05)
	step.Abs, step.AbsUnit = num(10e3), report.Nanoseconds
	kernels.Abs, kernels.AbsUnit, kernels.Labels = num(1e3), report.Nanoseconds, report.Labels{"kernel": "*"}
	down := func(r Rule) Rule {
		r.Direction = Down
		return r
	}
	return []Rule{
		step,
		down(up("generation", "serve.generation_throughput.p50", LevelError, 0.05)),
		down(up("prompt", "serve.prompt_throughput.p50", LevelWarn, 0.05)),
		up("ttft", "serve.ttft.mean", LevelError, 0.10),
		up("tpot", "serve.tpot.mean", LevelError, 0.05),
		up("e2e", "serve.e2e.mean", LevelError, 0.10),
		{ID: "drafting", Metric: "serve.spec_acceptance_rate", Labels: report.Labels{}, Level: LevelWarn, Abs: num(0.05), AbsUnit: report.Ratio, Direction: Down, optional: true},
		kernels,
	}
}

// evidence compares sides without a trace.
func (x *comparer) evidence() {
	c := x.c
	c.Comparable = true
	x.environment()
	x.kindsOfEvidence()
	x.iterations()
	x.measured()
	if len(c.Primary) > 0 {
		c.Depth = DepthEvidence
	} else if c.Comparable {
		x.refuse(MissingMetric, "there is no number that both sides hold")
	}
	if !c.Comparable && !c.Identical {
		x.unsettle()
	}
}

// kindsOfEvidence refuses sides that have no kind of evidence in common.
func (x *Sides) kindsOfEvidence() {
	kinds := func(s *side) []string {
		var list []string
		for _, c := range s.captures {
			for _, e := range c.Report.Evidence {
				if !slices.Contains(list, e.Kind) {
					list = append(list, e.Kind)
				}
			}
		}
		return list
	}
	b, h := kinds(x.base), kinds(x.head)
	if !slices.ContainsFunc(b, func(k string) bool { return slices.Contains(h, k) }) {
		x.refuse(DifferentWork, fmt.Sprintf("base is %s and head is %s, which measure different things: compare files of one kind", strings.Join(b, ", "), strings.Join(h, ", ")))
	}
}

// iterations compares the unit of work, where logs detail iterations on both sides.
func (x *comparer) iterations() {
	for _, s := range []*side{x.base, x.head} {
		for _, c := range s.captures {
			if len(c.groups) == 0 {
				return
			}
		}
	}
	if x.opt.Phase == "" && x.opt.Batch == nil && !x.commonKind() { // different kinds say nothing of the other numbers
		x.reason(DifferentWork, fmt.Sprintf("no kind of iteration occurs on both sides: base has %s; head has %s", kindsText(x.base.kinds()), kindsText(x.head.kinds())))
		return
	}
	if !x.choose() {
		return
	}
	u := &x.base.captures[0].Report.Unit
	x.c.Unit.Kind, x.c.Unit.Name = u.Kind, u.Name
	x.c.Unit.Phase, x.c.Unit.Batch, x.c.Unit.Tokens = x.kind.phase, optional(x.kind.batch), optional(x.kind.tokens)
	x.c.Unit.BaseN, x.c.Unit.HeadN = x.base.units(), x.head.units()
	x.rows()
}

// commonKind reports whether some kind of unit occurs in all captures.
func (x *Sides) commonKind() bool {
	theirs := x.head.kinds()
	return slices.ContainsFunc(x.base.kinds(), func(k kind) bool { return slices.Contains(theirs, k) })
}

// evidenceCause says in one sentence what the comparison of evidence came to.
func (x *Parts) evidenceCause() string {
	texts := map[Class][]string{}
	for i := range x.c.Primary {
		r := &x.c.Primary[i]
		name := r.Metric
		if kernel := r.Labels["kernel"]; kernel != "" {
			name += " of " + shorten(kernel)
		}
		if r.Delta != nil {
			name += " " + changeText(r)
		}
		texts[r.Class] = append(texts[r.Class], name)
	}
	list := func(c Class) string {
		const most = 3
		t := texts[c]
		if more := len(t) - most; more > 0 {
			return strings.Join(t[:most], ", ") + fmt.Sprintf(" and %d more", more)
		}
		return strings.Join(t, ", ")
	}
	var parts []string
	if len(texts[Regressed]) > 0 {
		parts = append(parts, "Worse: "+list(Regressed))
	}
	if len(texts[Improved]) > 0 {
		parts = append(parts, "Better: "+list(Improved))
	}
	if n := len(texts[Unsettled]); n > 0 {
		parts = append(parts, fmt.Sprintf("Not settled: %s", list(Unsettled)))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("No change beyond noise in %s.", count(int64(len(x.c.Primary)), "number"))
	}
	return strings.Join(parts, ". ") + "."
}
