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
	f := d.fields(n, "a waiver", "rule", "match", "ceiling", "expires", "issue", "reason")
	for _, key := range []string{"rule", "expires", "reason"} {
		if _, ok := f[key]; !ok {
			d.fail(
				n,
				"a waiver needs %s",
				map[string]string{"rule": "the id of a rule", "expires": "a date on which it ends: expires: 2026-12-31", "reason": "a reason that people will read"}[key],
			)
		}
	}
	if d.err != nil {
		return w
	}
	ids := make([]string, 0, len(rules))
	var of *Rule
	w.Rule = d.text(f["rule"], "rule")
	for i := range rules {
		if ids = append(ids, rules[i].ID); rules[i].ID == w.Rule {
			of = &rules[i]
		}
	}
	if of == nil {
		if near := nearestWord(w.Rule, ids); near != "" {
			d.fail(f["rule"], "no rule or budget has the id %q; did you mean %q?", Cut(w.Rule), near)
		} else {
			d.fail(f["rule"], "no rule or budget has the id %q", Cut(w.Rule))
		}
		return w
	}
	if v, ok := f["match"]; ok {
		w.Match = d.match(v)
	}
	if v, ok := f["ceiling"]; ok {
		w.Ceiling = d.ceiling(v, of)
	}
	w.Reason = d.plain(f["reason"], "reason", 500)
	if strings.TrimSpace(w.Reason) == "" {
		d.fail(f["reason"], "the reason is empty; say why this is accepted")
	}
	if v, ok := f["issue"]; ok {
		w.Issue = d.plain(v, "issue", 200)
	}
	day := d.text(f["expires"], "expires")
	var err error
	if w.Expires, err = time.Parse(time.DateOnly, day); err != nil {
		d.fail(f["expires"], "expires %q is no date; write it as 2026-12-31", Cut(day))
	}
	return w
}

func (d *policyDoc) ceiling(n ast.Node, of *Rule) *Ceiling {
	text := strings.TrimSpace(d.text(n, "ceiling"))
	q := d.quantity(n, "ceiling")
	c := &Ceiling{Value: q.Value, Unit: q.Unit, Text: text, Relative: !of.Budgeted() && strings.HasSuffix(text, "%")}
	if d.err != nil {
		return c
	}
	unit := ""
	for _, m := range d.known {
		if id, _ := SplitStat(of.Metric); m.ID == id {
			unit = m.Unit
		}
	}
	switch {
	case of.Metric == comparison.MetricStructure:
		d.fail(n, "findings of structure have no size that a ceiling could bound; leave it out")
	case !c.Relative && unit != "" && unit != q.Unit:
		d.fail(n, "rule %s judges %s, and the ceiling %s is in %s", of.ID, unit, Cut(text), q.Unit)
	}
	return c
}

// plain is text without line breaks and control characters, of at most most bytes.
func (d *policyDoc) plain(n ast.Node, what string, most int) string {
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

func (d *policyDoc) whole(n ast.Node, what string, least, most int64) int64 {
	s := d.text(n, what)
	v, err := strconv.ParseInt(s, 10, 64)
	if d.err == nil && (err != nil || v < least || v > most) {
		d.fail(n, "%s %q: expected a whole number from %d to %d", what, Cut(s), least, most)
	}
	return v
}

// probability reads 0.05 or 5%.
func (d *policyDoc) probability(n ast.Node, what string) float64 {
	q := d.quantity(n, what)
	if d.err == nil && (q.Unit != report.Count && q.Unit != report.Ratio || !share(q.Value)) {
		d.fail(n, "%s %q: expected a probability above 0 and below 0.5, such as 0.05", what, Cut(d.text(n, what)))
	}
	return q.Value
}

// quantity reads a value with its unit, which is not negative.
func (d *policyDoc) quantity(n ast.Node, what string) unit.Quantity {
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
