package policy

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// waiver reads an entry of waivers, which names one of rules.
func (d *policyDoc) waiver(n ast.Node, rules []Rule) Waiver {
	var w Waiver
	var of []*Rule
	bind(d, n, "a waiver", &w, []field[Waiver]{
		{"rule", func(d *policyDoc, n ast.Node, w *Waiver) {
			several := []ast.Node{n}
			if _, ok := n.(*ast.SequenceNode); ok {
				several = d.read.items(n, "rule")
			}
			for _, n := range several {
				id, r := d.ruleOf(n, rules)
				w.Rules, of = append(w.Rules, id), append(of, r)
			}
		}, "a waiver needs the id of a rule, or a list of them"},
		{"match", func(d *policyDoc, n ast.Node, w *Waiver) { w.Match = d.match(n) }, ""},
		{"ceiling", func(d *policyDoc, n ast.Node, w *Waiver) {
			for _, r := range of {
				w.Ceiling = d.ceiling(n, r)
				if r != nil && r.Budgeted() != of[0].Budgeted() {
					d.read.fail(n, "a ceiling of rules is a change and one of budgets a value: make two waivers of it")
				}
			}
		}, ""},
		{"expires", func(d *policyDoc, n ast.Node, w *Waiver) {
			day := d.read.text(n, "expires")
			var err error
			if w.Expires, err = time.Parse(time.DateOnly, day); err != nil {
				d.read.fail(n, "expires %q is not a date; write it as 2026-12-31", Cut(day))
			}
		}, "a waiver needs a date on which it ends: expires: 2026-12-31"},
		{"issue", func(d *policyDoc, n ast.Node, w *Waiver) { w.Issue = d.read.plain(n, "issue", 200) }, ""},
		{"reason", func(d *policyDoc, n ast.Node, w *Waiver) {
			if w.Reason = d.read.plain(n, "reason", 500); strings.TrimSpace(w.Reason) == "" {
				d.read.fail(n, "the reason is empty; say why this is accepted")
			}
		}, "a waiver needs a reason that people will read"},
	})
	return w
}

// ruleOf finds the rule or budget that a waiver names.
func (d *policyDoc) ruleOf(n ast.Node, rules []Rule) (id string, of *Rule) {
	id = d.read.text(n, "rule")
	ids := make([]string, 0, len(rules))
	for i := range rules {
		if ids = append(ids, rules[i].ID); rules[i].ID == id {
			of = &rules[i]
		}
	}
	if of != nil {
		return id, of
	}
	hint := meant(id, ids)
	if text, _ := PresetText(defaultPreset); hint == "" && strings.Contains(text, "{id: "+id+",") {
		hint = "; the preset has it: add the line \"preset: " + defaultPreset + "\""
	}
	d.read.fail(n, "no rule or budget has the id %q%s", Cut(id), hint)
	return id, nil
}

func (d *policyDoc) ceiling(n ast.Node, of *Rule) *Ceiling {
	text := strings.TrimSpace(d.read.text(n, "ceiling"))
	q := d.read.quantity(n, "ceiling")
	if of == nil || d.read.err != nil {
		return nil
	}
	c := &Ceiling{Value: q.Value, Unit: q.Unit, Text: text, Relative: !of.Budgeted() && strings.HasSuffix(text, "%")}
	facts, _ := Facts(of.Metric, d.known) // a pattern, or no list of metrics: any unit will do
	switch {
	case of.Metric == comparison.MetricStructure:
		d.read.fail(n, "findings of structure have no size that a ceiling could bound; leave it out")
	case !c.Relative && facts.Unit != "" && facts.Unit != q.Unit:
		d.read.fail(n, "rule %s judges %s, and the ceiling %s is in %s", of.ID, facts.Unit, Cut(text), q.Unit)
	}
	return c
}

// plain is text without line breaks and control characters, of at most most bytes.
func (d *values) plain(n ast.Node, what string, most int) string {
	s := d.text(n, what)
	switch {
	case d.err != nil:
	case len(s) > most:
		d.fail(n, "%s has %d bytes, at most %d are read", what, len(s), most)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		d.fail(n, "%s holds a line break or another character that cannot be printed", what)
	}
	return s
}

// wholeOf reads a whole number from 1 to most.
func (d *values) wholeOf(n ast.Node, what string, most int64) *int64 {
	s := d.text(n, what)
	v, err := strconv.ParseInt(s, 10, 64)
	if d.err == nil && (err != nil || v < 1 || v > most) {
		d.fail(n, "%s %q: expected a whole number from 1 to %d", what, Cut(s), most)
	}
	return &v
}

// probability reads 0.05 or 5%.
func (d *values) probability(n ast.Node, what string) float64 {
	q := d.quantity(n, what)
	if d.err == nil && (q.Unit != report.Count && q.Unit != report.Ratio || !(q.Value > 0 && q.Value < 0.5)) {
		d.fail(n, "%s %q: expected a probability above 0 and below 0.5, such as 0.05", what, Cut(d.text(n, what)))
	}
	return q.Value
}

// share reads a share above 0.
func (d *values) share(n ast.Node, what string) float64 {
	q := d.quantity(n, what)
	if d.err == nil && (q.Unit != report.Ratio || !(q.Value > 0 && q.Value < 100)) {
		d.fail(n, "%s %s is not a share above 0%%; write one such as 10%%", what, Cut(d.text(n, what)))
	}
	return q.Value
}

// quantity reads a value with its unit, which is not negative.
func (d *values) quantity(n ast.Node, what string) unit.Quantity {
	s := d.text(n, what)
	if d.err != nil {
		return unit.Quantity{}
	}
	q, err := unit.Parse(s)
	switch {
	case err != nil:
		d.fail(n, "%s: %w", what, err)
	case q.Value < 0 || strings.HasPrefix(strings.TrimSpace(s), "+") || strings.HasPrefix(strings.TrimSpace(s), "-"):
		d.fail(n, "%s %s: write it without a sign; the metric says which way is bad, or regress.direction does", what,
			Cut(s))
	}
	return q
}
