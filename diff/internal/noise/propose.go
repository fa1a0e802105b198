package noise

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// Limits of a proposal.
const (
	maxProposedKernels = 10
	maxProposedName    = 200 // characters of a kernel's name in a rule; * matches the rest
)

// Propose returns a policy file that extends a preset with thresholds above the noise measured between captures of one
// commit. A threshold is the largest of the preset's, 3·1.4826·MAD and the whole spread between the captures, rounded up
// to half a percent. Each rule has the measured figures as a comment. known lists the metrics that exist. A kernel
// below minShare of a unit, 0..1, has no rule: comparisons do not list it.
func Propose(n *Noise, preset string, known []report.MetricDef, minShare float64) (string, error) {
	p, err := policy.Read(strings.NewReader("version: 1\npreset: "+preset+"\n"), known)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	captures := wording.Count(n.Captures, "capture")
	fmt.Fprintf(&b, "# Proposed by explain policy init from %s of one commit. Rules go on from the preset; "+
		"the last that selects a number\n# judges it. What the preset says: explain policy show %s\n"+
		"version: 1\npreset: %[2]s\n", captures, preset)
	if n.Captures < 5 {
		fmt.Fprintf(&b, "# %s say little of the noise: 5 or more give thresholds to rely on.\n", captures)
	}
	if m := n.Find("unit.time", report.Labels{}); m != nil && m.Floor <= policy.MostFloor {
		fmt.Fprintf(&b, "# What two captures of one commit may differ by; 5%% without it.\nstats: {floor: %s}\n", comparison.ExactPercent(halves(max(m.Floor, 0.005))))
	}
	var rules []string
	for i := range p.Rules {
		r := &p.Rules[i]
		switch {
		case r.Budgeted():
		case r.ID == "step" || r.ID == "mean":
			rules = append(rules, n.proposeTime(r)...)
		case r.Metric == "unit.launches":
			rules = append(rules, n.proposeCount(r)...)
		case r.ID == "kernels":
			rules = append(rules, n.proposeKernels(r, minShare)...)
		}
	}
	section(&b, "rules", rules)
	section(&b, "budgets", n.proposeIdle())
	return b.String(), nil
}

func section(b *strings.Builder, key string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "%s:\n%s\n", key, strings.Join(lines, "\n"))
	}
}

// measured returns a YAML comment that says how much a metric differs between the captures.
func (m *Metric) measured() string {
	return fmt.Sprintf("  # measured: %s to %s; standard deviation %s, spread %s; two single captures differ by less than %s "+
		"in 99 of 100", unit.Format(slices.Min(m.Values), m.Unit), unit.Format(slices.Max(m.Values), m.Unit),
		unit.Percent(math.Expm1(m.Noise)), unit.Percent(m.spread()), unit.Percent(m.Floor))
}

// spread returns the largest value divided by the smallest, minus one.
func (m *Metric) spread() float64 { return slices.Max(m.Values)/slices.Min(m.Values) - 1 }

// beyond returns a threshold above the noise, rounded up to half a percent and at least least.
func (m *Metric) beyond(least float64) float64 {
	return halves(max(least, ratioOf(thresholdMADs*m.MAD), m.spread()))
}

// halves rounds a share up to half percents.
func halves(v float64) float64 { return math.Ceil(v*200-1e-9) / 200 }

func (n *Noise) proposeTime(r *policy.Rule) []string {
	m := n.Find(r.Metric, report.Labels{})
	if m == nil || r.Rel == nil {
		return nil
	}
	return []string{m.measured(), proposed(r.ID, r.Metric, "", m.beyond(*r.Rel), r)}
}

// proposed returns one rule as YAML: the preset's with another relative threshold.
func proposed(id, metric, labels string, rel float64, r *policy.Rule) string {
	abs := ""
	if r.Abs != nil {
		abs = ", abs: " + strings.ReplaceAll(unit.Format(*r.Abs, r.AbsUnit), " ", "")
	}
	return fmt.Sprintf("  - {id: %s, metric: %s,%s level: %s, regress: {rel: %s%s}}", id, metric, labels, r.Level,
		comparison.ExactPercent(rel), abs)
}

// proposeCount allows the difference that a count showed between the captures; nil if it showed none.
func (n *Noise) proposeCount(r *policy.Rule) []string {
	c := lists.Find(n.Unsteady, func(c *Unsteady) bool { return c.Metric == r.Metric && len(c.Labels) == 0 })
	if c == nil || r.Abs == nil {
		return nil
	}
	return []string{
		fmt.Sprintf("  # measured: %s to %s, where counts should repeat", unit.Format(c.Min, report.Count),
			unit.Format(c.Max, report.Count)),
		fmt.Sprintf("  - {id: %s, metric: %s, level: %s, regress: {abs: %d}}", r.ID, r.Metric, r.Level,
			int64(math.Ceil(max(*r.Abs, c.Max-c.Min)))),
	}
}

// proposeKernels returns a rule for each of the largest kernels, of minShare of a unit at least in every capture, for
// which the preset's rule is too strict.
func (n *Noise) proposeKernels(r *policy.Rule, minShare float64) []string {
	var lines []string
	proposals, least := 0, 0.0 // least is a time per unit, ns
	if step := n.Find("unit.time.mean", report.Labels{}); step != nil {
		least = minShare * slices.Max(step.Values)
	}
	for _, m := range n.LargestKernels() {
		if r.Rel == nil || proposals == maxProposedKernels {
			break
		}
		rel := m.beyond(*r.Rel)
		if rel <= *r.Rel || slices.Min(m.Values) < least {
			continue
		}
		proposals++
		lines = append(lines, m.measured(), proposed(fmt.Sprintf("kernel %d", proposals), policy.KernelTime,
			" labels: {kernel: "+quoted(m.Labels["kernel"])+"},", rel, r))
	}
	return lines
}

// quoted returns a kernel's name as a YAML string for a glob; a long name is cut and ends in *.
func quoted(name string) string {
	if r := []rune(name); len(r) > maxProposedName {
		name = string(r[:maxProposedName]) + "*"
	}
	return strconv.Quote(strings.ToValidUTF8(name, "?")) // YAML accepts Go's escapes
}

// proposeIdle limits the devices' idle share to the largest of any capture plus the noise between captures.
func (n *Noise) proposeIdle() []string {
	devices := lists.Filter(n.Metrics, func(m Metric) bool { return m.Metric == "gpu.idle_ratio" })
	if len(devices) == 0 {
		return nil
	}
	lists.Falling(devices, func(m Metric) float64 { return slices.Max(m.Values) })
	worst := &devices[0]
	bound := math.Ceil(slices.Max(worst.Values)*(1+worst.beyond(leastThreshold))*100-1e-9) / 100
	if bound >= 1 {
		return nil // no capture could exceed it
	}
	return []string{
		worst.measured(),
		fmt.Sprintf("  - {id: idle, metric: gpu.idle_ratio, max: %s, level: warn}", comparison.ExactPercent(bound)),
	}
}
