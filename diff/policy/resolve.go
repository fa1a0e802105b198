package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// KernelTime is the metric of kernels. Comparisons of single kernels go by its mean over units, so that is calibrated.
const KernelTime = "kernel.time_per_unit"

func OfKernel(metric string, l report.Labels) bool {
	return metric == KernelTime && len(l) == 1 && l["kernel"] != ""
}

// resolve reads the metric of a rule, which is an id, a glob or an expression, and checks the rule against the metrics
// that exist. limits is the node at which errors of its thresholds are placed.
func (d *policyDoc) resolve(n ast.Node, f map[string]ast.Node, limits ast.Node, r *Rule) {
	if d.read.err != nil {
		return
	}
	at := f["metric"]
	switch pattern, text := d.metric(at); {
	case d.read.err != nil:
		return
	case !pattern.Empty():
		d.expand(at, pattern, r)
	case text == comparison.MetricStructure:
		r.Metric = text
	default:
		r.Metric = text
		if d.known == nil {
			direct(&report.MetricDef{}, r)
			break
		}
		facts, err := Facts(r.Metric, d.known)
		if err != nil {
			d.read.fail(at, "%w", err)
			return
		}
		switch what, err := take(&facts, r); {
		case err == nil:
		case what == "limits":
			d.read.fail(limits, "%w", err)
		case f[what] != nil:
			d.read.fail(f[what], "%w", err)
		default:
			d.read.fail(at, "%w", err)
		}
	}
	if d.read.err == nil {
		if err := r.Validate(); err != nil {
			d.read.fail(n, "%s: %w", r.Name(), err)
		}
	}
}

// metric reads an id, or a pattern of ids: text with * or ? in it, {glob: …} or {regex: …}.
func (d *policyDoc) metric(n ast.Node) (pattern Match, text string) {
	if _, ok := n.(*ast.MappingNode); ok {
		return d.match(n), ""
	}
	text = d.read.text(n, "metric")
	switch {
	case strings.ContainsAny(text, "*?"):
		return Match{Glob: text}, ""
	case text == "":
		d.read.fail(n, "metric is empty; explain doc metrics lists them")
	}
	return Match{}, text
}

// expand finds the metrics that a pattern means, of those that the rule can judge: a metric whose id it matches, else
// the statistics of it that it matches, as unit.*.p50 does.
func (d *policyDoc) expand(at ast.Node, pattern Match, r *Rule) {
	r.Metric = pattern.String()
	var last error
	like := pattern.Compile()
	for _, facts := range d.known {
		ids := []string{facts.ID}
		if !like.matches(facts.ID) {
			ids = ids[:0]
			for _, stat := range stats {
				if like.matches(facts.ID + "." + stat) {
					ids = append(ids, facts.ID+"."+stat)
				}
			}
		}
		for _, id := range ids {
			v := *r
			v.Metric = id
			if _, err := take(&facts, &v); err != nil {
				last = err
				continue
			}
			r.of = append(r.of, v)
		}
	}
	d.expanded += len(r.of)
	switch {
	case d.expanded > maxExpanded:
		d.read.fail(at, "the patterns of the policy match more than %d metrics; name those that matter", maxExpanded)
	case len(r.of) > 0:
	case last != nil:
		d.read.fail(at, "no metric like %s can be judged this way: %w", Cut(r.Metric), last)
	default:
		d.read.fail(at, "no metric is like %s; explain doc metrics lists them", Cut(r.Metric))
	}
}

// Each is the rule for every metric that it means, compiled for many names: itself, unless its metric is a pattern.
func (r *Rule) Each() []Rule {
	list := []Rule{*r}
	if len(r.of) > 0 {
		list = slices.Clone(r.of)
	}
	names := r.Match.Compile()
	for i := range list {
		list[i].names = &names
	}
	return list
}

// computed are metrics that comparisons have and no report: of decode steps whose batch size is known, the time per
// output token and what a GPU makes of it.
var computed = []report.MetricDef{
	{ID: comparison.MetricWork, Unit: report.Nanoseconds, Better: report.Lower, Scale: report.PerUnit, Labels: []string{""}},
	{ID: comparison.MetricToken, Unit: report.Nanoseconds, Better: report.Lower, Scale: report.PerUnit, Stats: true, Labels: []string{""}},
	{ID: comparison.MetricTokenRate, Unit: report.PerSecond, Better: report.Higher, Scale: report.PerUnit, Stats: true, Labels: []string{""}},
}

// Facts returns what is known of a metric, with or without its statistic: one of known, or one that comparisons compute.
func Facts(metric string, known []report.MetricDef) (report.MetricDef, error) {
	id, _ := SplitStat(metric)
	all := slices.Concat(known, computed)
	if m := lists.Find(all, func(m *report.MetricDef) bool { return m.ID == id }); m != nil {
		return *m, nil
	}
	if near := nearest(id, all); near != "" {
		return report.MetricDef{}, fmt.Errorf("no metric %s; did you mean %s? explain doc metrics lists them", Cut(id), near)
	}
	return report.MetricDef{}, fmt.Errorf("no metric %s; explain doc metrics lists them", Cut(id))
}

// take fills in what the metric says of a rule that leaves it out: labels, direction, scale. The error says what does
// not fit, and what is its key in a policy file: labels, match, or limits for any of those that bound a number.
func take(m *report.MetricDef, r *Rule) (what string, err error) {
	r.Labels = anyLabels(m, r)
	if err := checkLabels(m, r); err != nil {
		return "labels", err
	}
	if err := checkMatch(r); err != nil {
		return "match", err
	}
	if err := checkLimits(m, r); err != nil {
		return "limits", err
	}
	direct(m, r)
	r.scale = m.Scale
	return "", nil
}

// direct fills in the direction that is bad for the metric, where the rule does not say.
func direct(m *report.MetricDef, r *Rule) {
	if r.Direction == "" && (r.Rel != nil || r.Abs != nil) {
		r.Direction = Up
		if m.Better == report.Higher {
			r.Direction = Down
		}
	}
}

// anyLabels are the labels of a rule. Without any, a rule with a match is meant with every value of a label that names
// something, and a metric that has no unlabelled form with every value of its first label: of a kernel rather than of a
// category.
func anyLabels(m *report.MetricDef, r *Rule) report.Labels {
	if len(r.Labels) > 0 || r.Match.Empty() && slices.Contains(m.Labels, "") {
		return r.Labels
	}
	best := comparison.Value(lists.Find(naming, func(name *string) bool { return slices.Contains(m.Labels, *name) }))
	if r.Match.Empty() && best == "" && len(m.Labels) > 0 {
		best = slices.MinFunc(m.Labels, func(a, b string) int { return strings.Count(a, ",") - strings.Count(b, ",") })
	}
	l := report.Labels{}
	for _, key := range strings.Split(best, ",") {
		if key != "" {
			l[key] = "*"
		}
	}
	return l
}

// checkMatch reports a match that has no label to look at.
func checkMatch(r *Rule) error {
	if r.Match.Empty() || r.Metric == comparison.MetricStructure {
		return nil
	}
	for key := range r.Labels { // any of them
		if slices.Contains(naming, key) {
			return nil
		}
	}
	return fmt.Errorf("match looks at one of the labels %s, and %s comes without", list(naming), r.Metric)
}
