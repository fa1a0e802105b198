package rules

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
	"github.com/nsys-llm/explain/diff/policy"
)

// judge applies the policy to a comparison whose rows are final. It takes metrics without a row from the reports.
//
// The verdict is the worst of what the gates count as: fail, then inconclusive, then warn, then pass. A gate of level
// warn counts as warn at most. A gate whose change is too large for its rule but not certain (wide_interval) is
// inconclusive, and the policy says what it counts as: suspected, not confirmed. Every other inconclusive gate means
// that something could not be compared. It counts as a pass only if the policy says so and some other gate was checked:
// a comparison that answered nothing never passes.
func (j *judge) judge() comparison.Judgement {
	c, p := j.c, j.p
	j.gates = j.judgeAll(p.Rules)
	out := comparison.Judgement{Policy: p.Info(), Gates: j.gates, Waivers: j.waive(), Verdict: comparison.Pass,
		Resolution: resolution(j.gates)}
	atLeast := func(v comparison.Verdict) { out.Verdict = comparison.Worse(out.Verdict, v) }
	settled := false
	for i := range j.gates {
		g := &j.gates[i]
		if g.Checked() {
			out.Checked++
		}
		settled = settled || g.Verdict == comparison.Pass
		g.CountsAs = p.Counts(g, j.questions[i].r.OnInconclusive)
		atLeast(g.CountsAs)
	}
	if slices.ContainsFunc(out.Waivers, func(w comparison.WaiverUse) bool { return w.Warns() }) {
		atLeast(comparison.Warn)
	}
	switch {
	case j.first:
		atLeast(p.FirstRun(out.Checked, j.noBase))
		return out
	case out.Checked == 0:
		atLeast(j.unanswered(p.Stats.OnNotComparable))
	}
	if p.Changes() > 0 && !c.Identical && c.Has(comparison.MissingKind) {
		atLeast(p.Stats.OnMissing)
	}
	if !c.Comparable && !(c.Identical && settled) ||
		p.Changes() > 0 && (c.Has(comparison.SameCapture) || c.Has(comparison.IncompleteCapture) ||
			c.Has(comparison.HighOverhead)) {
		atLeast(p.Stats.OnNotComparable)
	}
	return out
}

// unanswered returns the least verdict of a comparison whose gates had nothing to judge: inconclusive, or a warning if
// all gates only warn or if the policy says so for sides that are not comparable. It is never a pass.
func (j *judge) unanswered(onNotComparable comparison.Verdict) comparison.Verdict {
	asked := slices.ContainsFunc(j.gates, func(g comparison.Gate) bool { return g.Level == comparison.LevelError })
	if len(j.gates) > 0 && !asked || !j.c.Comparable && onNotComparable == comparison.Warn {
		return comparison.Warn
	}
	return comparison.Inconclusive
}

// All judges a comparison whose rows are final by its policy; waivers are checked as of today. onlyNames reports whether
// the kernels without a pair changed nothing but their names.
func All(c *comparison.Comparison, x *noise.Decider, onlyNames func() bool, today time.Time) comparison.Judgement {
	j := &judge{c: c, p: x.Policy, x: x, of: &reports{base: x.Base, head: x.Head}, onlyNames: onlyNames, today: today}
	return j.judge()
}

// Budgets judges the budgets of a comparison that has no base.
func Budgets(c *comparison.Comparison, p *policy.Policy, head *side.Side, today time.Time, why policy.NoBase) comparison.Judgement {
	j := &judge{c: c, p: p, of: &reports{base: &side.Side{}, head: head}, onlyNames: func() bool { return false },
		today: today, first: true, noBase: why}
	return j.judge()
}

type judge struct {
	c         *comparison.Comparison // its rows are read, and nothing is written
	p         *policy.Policy
	x         *noise.Decider // of both sides; nil if there is no base
	of        *reports
	onlyNames func() bool
	today     time.Time
	first     bool // no base: only budgets are judged
	noBase    policy.NoBase
	gates     []comparison.Gate
	questions []*question     // by gate; that of one which no rule asked for has an empty rule
	means     map[string]bool // labels for which a rule judges the mean time
}

// subject is a number that a rule can select.
type subject struct {
	metric   string // as the rule names it
	row      comparison.Row
	kind     report.Labels // of the row's kind of unit, even if the row itself has none; nil if it has no kind
	unit     string
	higher   bool     // more is better
	length   bool     // grows with the length of a capture
	stats    bool     // has a summary
	noisy    bool     // a duration, or derived from durations: differs between captures of one commit
	share    bool     // of the GPU's work in the whole capture: depends on which kinds of unit ran
	other    string   // why the sides' numbers are of different work, or empty
	many     bool     // one of dozens: a kernel, a call, a range
	scaled   bool     // a multiple of the unit's time or of its inverse
	inverse  bool     // a rate; number holds the time behind it
	kernel   []string // names of the kernel other than the label's
	replaced []string // for a replacing kernel: names of the replaced one

	number  *significance.Number  // to be judged; nil if the row's class is enough
	verdict *significance.Verdict // on number, under the rule
	family  noise.Family          // family that number was judged in
}

// ratio converts a ratio of number to one of the subject: a rate's is the inverse.
func (s *subject) ratio(of float64) float64 {
	if s.inverse && of > 0 {
		return 1 / of
	}
	return of
}

// ignored reports whether the policy ignores the kernel. For a replacement it must ignore both kernels.
func (s *subject) ignored(p *policy.Policy) bool {
	name, ok := s.row.Labels["kernel"]
	return ok && p.Ignores(append([]string{name}, s.kernel...)...) &&
		(len(s.replaced) == 0 || p.Ignores(s.replaced...))
}

// key identifies a number, however rules spell it.
func (s *subject) key(kind string) string {
	id, stat := policy.SplitStat(s.row.Metric)
	if stat != "p50" || !strings.HasPrefix(id, "unit.") { // the value is the median
		id = policy.JoinStat(id, stat)
	}
	return kind + " " + id + "{" + s.row.Labels.String() + "}"
}

// gates selects numbers by the rules and judges each by the last rule that selects it. The gates are in the order of
// the rules, then of the numbers; those of the policy's own rules come before those of its preset.
func (j *judge) judgeAll(rules []policy.Rule) []comparison.Gate {
	var list []*question
	last := map[string]*policy.Rule{} // that selects a number
	step := 0.0
	if row := j.c.Row("unit.time.p50"); row != nil {
		step = comparison.Value(row.Base)
	}
	for i := range rules {
		r, own, before := &rules[i], !j.p.OfPreset(i), len(list)
		if j.first && !r.Budgeted() && r.Level != comparison.LevelOff || !asked(r, j.of.head) {
			continue
		}
		for _, each := range r.Each() {
			for _, s := range j.selects(&each) {
				if _, device := s.row.Labels["device"]; device && r.Since != "" {
					continue // a history follows kinds of unit, not single devices
				}
				last[s.key(r.Subject())] = r
				if r.Level == comparison.LevelOff {
					last[s.key("budget")] = r
				}
				list = append(list, &question{r: r, s: &s, step: step, own: own})
			}
		}
		if len(list) == before && !r.Optional {
			list = append(list, &question{r: r, own: own})
		}
	}
	list = slices.DeleteFunc(list, func(q *question) bool {
		return q.r.Level == comparison.LevelOff ||
			q.s != nil && (last[q.s.key(q.r.Subject())] != q.r || q.s.ignored(j.p))
	})
	j.means = map[string]bool{}
	for _, q := range list {
		if q.s != nil && q.s.row.Metric == "unit.time.mean" && !q.r.Budgeted() && q.r.Level == comparison.LevelError {
			j.means[q.s.row.Labels.String()] = true
		}
	}
	j.ask(list)
	var milder []*question
	for _, q := range list {
		if q.r.Milder != nil && q.s != nil {
			q.milder = &question{r: q.r.Milder, s: new(*q.s), step: step}
			milder = append(milder, q.milder)
		}
	}
	j.ask(milder)
	lists.Lead(list, func(q *question) bool { return q.own })
	gates := []comparison.Gate{}
	for _, q := range list {
		if q.s == nil {
			gates, j.questions = append(gates, j.unmatched(q.r)), append(j.questions, q)
			continue
		}
		g := j.gate(q)
		if m := q.milder; m != nil && g.Verdict == comparison.Pass {
			if milder := j.gate(m); milder.Verdict != comparison.Pass {
				g = milder
			}
		}
		if q.r.Optional && g.Code == comparison.TooFewUnits && !q.exceeded {
			continue // too few units for an optional rule
		}
		gates, j.questions = append(gates, g), append(j.questions, q)
	}
	return append(gates, j.unasked(last)...)
}

// asked reports whether a rule applies to any capture of the head.
func asked(r *policy.Rule, head *side.Side) bool {
	return len(r.When) == 0 || slices.ContainsFunc(head.Captures, func(c *side.Capture) bool { return r.Asked(&c.Report.Environment) })
}

// unmatched returns the gate of a rule that selects nothing.
func (j *judge) unmatched(r *policy.Rule) comparison.Gate {
	g := comparison.Gate{Rule: r.Name(), Metric: r.Metric, Labels: r.Labels.Clone(), Level: r.Level, Threshold: r.Threshold(),
		Class: comparison.Unsettled}
	perUnit := r.PerUnit()
	switch {
	case j.first: // a budget needs no base
		g.Open(comparison.NothingMatched, nothing(r, nil, j.of, "the capture has no such metric"))
	case perUnit && j.of.noUnit() && j.c.Identical:
		g.Class, g.Verdict = comparison.Same, comparison.Pass
		g.Reason = "there is no unit of work to compare, and all metrics of both sides are equal"
	case perUnit && j.of.noUnit():
		g.Open(comparison.NoUnit, "the metric is per unit of work, and not both sides have one")
	case r.Metric == comparison.MetricStructure && !j.c.Comparable && !j.c.Identical:
		g.Open(why(j.c))
	case r.Metric == comparison.MetricStructure:
		g.Class, g.Verdict, g.Reason = comparison.Same, comparison.Pass, "no change of structure was found"
	case perUnit && !j.c.Comparable:
		g.Open(why(j.c))
	default:
		g.Open(comparison.NothingMatched, nothing(r, j.c.Kernels, j.of, "neither side has such a metric"))
	}
	return g
}

// nothing says that a rule selects nothing, and names the nearest matches. none begins the sentence.
func nothing(r *policy.Rule, kernels []comparison.Kernel, of *reports, none string) string {
	text := none + ": " + r.Selects()
	id, _ := policy.SplitStat(r.Metric)
	var names []string
	add := func(name string) {
		all := of.names(name)
		lists.Place[int32](&names, all[len(all)-1])
	}
	if policy.OnKernels(r) {
		text = "no kernel matches " + r.Selects()
		for i := range kernels {
			add(comparison.Value(cmp.Or(kernels[i].HeadName, kernels[i].BaseName)))
			add(comparison.Value(cmp.Or(kernels[i].BaseName, kernels[i].HeadName)))
		}
	}
	for _, m := range of.metrics(id) {
		if kernel, ok := m.Labels["kernel"]; ok {
			add(kernel)
		} else if !policy.OnKernels(r) && len(m.Labels) > 0 {
			names = append(names, m.Labels.String())
		}
	}
	if near := r.Nearest(names, 3); len(near) > 0 {
		text += "; nearest: " + strings.Join(near, ", ")
	}
	return text
}

// why returns the first reason why the sides are not comparable.
func why(c *comparison.Comparison) (comparison.Code, string) {
	if len(c.Reasons) > 0 {
		return c.Reasons[0].Code, c.Reasons[0].Text
	}
	return comparison.DifferentWork, "the sides are not comparable"
}

func (j *judge) gate(q *question) comparison.Gate {
	r, s := q.r, q.s
	row := &s.row
	g := comparison.Gate{
		Rule: r.Name(), Metric: s.metric, Labels: row.Labels.Clone(), Level: r.Level, Threshold: r.Threshold(),
		Base: row.Base, Head: row.Head, Delta: row.Delta, Ratio: row.Ratio, Class: row.Class, Limit: q.limit(),
	}
	switch {
	case r.Since != "":
		since(&g, r, s)
	case r.Budgeted():
		bounds(&g, r, s)
	case s.metric == comparison.MetricStructure:
		structure(&g, row, j.c)
	default:
		j.change(&g, q)
		if n := min(len(j.of.base.Captures), len(j.of.head.Captures)); s.noisy && n < j.p.Stats.MinCaptures {
			replicated(&g, n, j.p.Stats.MinCaptures)
		}
		if s.many && r.Level == comparison.LevelWarn && comparison.Rank(g.Verdict) > comparison.Rank(comparison.Pass) &&
			(g.Code == "" || g.Code == comparison.WideInterval) && ofStep(s) && !moved(j.c.Primary) &&
			(row.Class != comparison.Added || j.onlyNames()) {
			g.Verdict, g.Code = comparison.Pass, ""
			g.Reason += "; no unit's time moved with it"
		}
	}
	notSlower(&g, r, j.c.Primary, j.x)
	return g
}

// limit returns the relative change from which a rule objects, negative if falls are bad; nil if it has none.
func (q *question) limit() *float64 {
	if q.r.Rel == nil {
		return nil
	}
	v := q.tolerance()
	if (q.direction() == policy.Down) != q.r.Improve {
		v = -v
	}
	return &v
}

// replicated reopens a failure with n captures a side, of which the policy asks for more (min_captures).
func replicated(g *comparison.Gate, n, least int) {
	if g.Verdict != comparison.Fail {
		return
	}
	g.Class = comparison.Unsettled
	g.Open(comparison.WideInterval, fmt.Sprintf("%s; with %s a side a duration does not fail, the policy asks for %d "+
		"(min_captures)", g.Reason, wording.Count(n, "capture"), least))
}

// bounds compares the head with the rule's bounds; it needs no base.
func bounds(g *comparison.Gate, r *policy.Rule, s *subject) {
	text := unit.Format(comparison.Value(g.Head), s.unit)
	switch {
	case !r.FitsLimits(s.unit):
		g.Open(comparison.MissingMetric, "the budget is given in "+r.LimitUnit+", the metric in "+s.unit)
	case g.Head == nil:
		g.Open(comparison.MissingMetric, "the head's value is not known")
	case r.Max != nil && comparison.Value(g.Head) > *r.Max:
		g.Verdict, g.Reason = verdictOf(r.Level), text+" is above the budget of "+unit.Format(*r.Max, s.unit)
	case r.Min != nil && comparison.Value(g.Head) < *r.Min:
		g.Verdict, g.Reason = verdictOf(r.Level), text+" is below the budget of "+unit.Format(*r.Min, s.unit)
	default:
		g.Verdict, g.Reason = comparison.Pass, text+" is within the budget"
	}
}

// since checks the change since an anchor against its budget: the ratio spent before times that of this change. A
// change that adds nothing does not fail a budget that others used up.
func since(g *comparison.Gate, r *policy.Rule, s *subject) {
	spent, asked := r.SpentOn(s.row.Labels)
	open := func(why string) { g.Open(comparison.NoBaseline, "the budget counts since "+r.Since+why) }
	switch {
	case !asked:
		open(", and no history says what was spent: name it with --history")
		return
	case spent.Ratio <= 0:
		open(": " + spent.Why)
		return
	case g.Ratio == nil:
		open(", and there is no base that this change is compared with")
		return
	}
	own := comparison.Value(g.Ratio)
	total := spent.Ratio * own
	worse := func(ratio float64) float64 { return ratio - 1 }
	if s.higher {
		worse = func(ratio float64) float64 { return 1 - ratio }
	}
	g.Ratio = &total
	text := fmt.Sprintf("%s since %s: %s before this change, %s by it", unit.Change(total-1), r.Since,
		unit.Change(spent.Ratio-1), unit.Change(own-1))
	if len(spent.By) > 0 {
		text += "; before: " + strings.Join(spent.By, ", ")
	}
	if spent.SE > 0 {
		text += "; the time before is known to ±" + unit.Percent(1.96*spent.SE)
	}
	switch {
	case worse(total) <= *r.Max:
		g.Verdict, g.Reason = comparison.Pass, text
	case worse(own) <= 0:
		g.Verdict, g.Reason = comparison.Warn, text+": the budget was used up before"
	default:
		g.Verdict, g.Reason = verdictOf(r.Level), text+", which is above the budget of "+comparison.ExactPercent(*r.Max)
	}
}

func verdictOf(level string) comparison.Verdict {
	if level == comparison.LevelWarn {
		return comparison.Warn
	}
	return comparison.Fail
}

func structure(g *comparison.Gate, row *comparison.Row, c *comparison.Comparison) {
	switch {
	case !c.Comparable:
		g.Open(why(c))
	case row.Class == comparison.Regressed || row.Class == comparison.Added:
		g.Verdict, g.Reason = verdictOf(g.Level), row.Why
	default:
		g.Verdict, g.Reason = comparison.Pass, row.Why
	}
}
