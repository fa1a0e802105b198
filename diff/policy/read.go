package policy

import (
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Read reads a policy file: YAML, or JSON, which is a part of it. Values carry their units. Unknown keys, metrics,
// labels and words and values in the wrong unit are errors that name the line, the column and what is nearest to them.
// known are the metrics that exist; nil takes metrics as they are written. A metric that only comes with labels is
// meant with any.
func Read(r io.Reader, known []MetricFacts) (*Policy, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPolicyBytes+1))
	if err != nil {
		return nil, err
	}
	p := &Policy{Stats: DefaultStats()}
	d := &policyDoc{known: known}
	root, err := parsePolicy(b)
	if err != nil {
		return nil, err
	}
	d.policy(root, p, true)
	if d.err != nil {
		return nil, d.err
	}
	if len(p.Rules) == 0 {
		return nil, errors.New(
			"policy has neither rules nor budgets; add some, or name a preset: " + list(PresetNames()))
	}
	return p, p.Validate()
}

// Words for what stands in for an answer.
var outcomes = []string{
	string(comparison.Pass),
	string(comparison.Warn),
	string(comparison.Fail),
	string(comparison.Inconclusive),
}

// policy reads a file, or the preset that it names, into p.
func (d *policyDoc) policy(root ast.Node, p *Policy, top bool) {
	keys := []string{"version", "unit", "phase", "batch", "stats", "ignore", "environment", "rules", "budgets"}
	if top {
		keys = append(keys, "preset", "waivers")
	}
	f := d.fields(root, "a policy", keys...)
	if d.err != nil {
		return
	}
	if v, ok := f["version"]; !ok {
		d.fail(root, "policy says no version; write `version: 1` first")
	} else if s := d.text(v, "version"); s != "1" {
		d.fail(v, "policy has version %q, this explain reads version 1", Cut(s))
	}
	if n, ok := f["preset"]; ok {
		d.preset(n, p)
	}
	d.work(f, p)
	if n, ok := f["stats"]; ok {
		d.stats(n, &p.Stats)
	}
	if n, ok := f["ignore"]; ok {
		d.ignore(n, p)
	}
	if n, ok := f["environment"]; ok {
		d.environment(n, &p.Environment)
	}
	ids := map[string]bool{}
	for _, part := range []struct {
		key  string
		read func(n ast.Node) Rule
	}{{"rules", d.rule}, {"budgets", d.budget}} {
		n, ok := f[part.key]
		if !ok || d.err != nil {
			continue
		}
		for _, item := range d.items(n, part.key) {
			r := part.read(item)
			if r.ID != "" && ids[r.ID] {
				d.fail(item, "two rules have the id %q; gates and waivers name rules by it", r.ID)
			}
			if d.err != nil {
				return
			}
			ids[r.ID] = true
			p.Rules = append(p.Rules, r)
		}
	}
	if n, ok := f["waivers"]; ok && d.err == nil {
		for _, item := range d.items(n, "waivers") {
			p.Waivers = append(p.Waivers, d.waiver(item, p.Rules))
		}
	}
}

func (d *policyDoc) preset(n ast.Node, p *Policy) {
	p.Preset = d.word(n, "preset", PresetNames()...)
	text, ok := PresetText(p.Preset)
	if !ok || d.err != nil {
		return
	}
	root, err := parsePolicy([]byte(text))
	if err != nil {
		d.fail(n, "preset %s: %w", p.Preset, err)
		return
	}
	inner := &policyDoc{known: d.known}
	inner.policy(root, p, false)
	p.presetRules = len(p.Rules)
	if inner.err != nil {
		d.fail(n, "preset %s: %w", p.Preset, inner.err)
	}
}

// work reads what is compared: the unit, the phase and the batch size.
func (d *policyDoc) work(f map[string]ast.Node, p *Policy) {
	if n, ok := f["unit"]; ok {
		p.Unit = d.text(n, "unit")
		if p.Unit == "auto" {
			p.Unit = ""
		}
		if err := validUnit(p.Unit); err != nil && d.err == nil {
			d.fail(n, "%w", err)
		}
	}
	if n, ok := f["phase"]; ok {
		if p.Phase = d.plain(n, "phase", maxIDText); p.Phase == "" {
			d.fail(n, "phase is empty; leave it out for the one with most time")
		}
	}
	if n, ok := f["batch"]; ok {
		v := d.whole(n, "batch", 1, 1<<31)
		p.Batch = &v
	}
}

func (d *policyDoc) stats(n ast.Node, s *Stats) {
	f := d.fields(n, "stats", "alpha", "fdr", "min_captures", "on_inconclusive", "on_not_comparable", "on_missing",
		"on_missing_baseline")
	if n, ok := f["alpha"]; ok {
		s.Alpha = d.probability(n, "alpha")
	}
	if n, ok := f["fdr"]; ok {
		s.FDR = d.probability(n, "fdr")
	}
	if n, ok := f["min_captures"]; ok {
		s.MinCaptures = int(d.whole(n, "min_captures", 1, maxMinCaptures))
	}
	for _, o := range []struct {
		key   string
		to    *comparison.Verdict
		words []string
	}{
		{"on_inconclusive", &s.OnInconclusive, outcomes}, {"on_not_comparable", &s.OnNotComparable, outcomes},
		{"on_missing", &s.OnMissing, outcomes[1:]}, {"on_missing_baseline", &s.OnMissingBaseline, outcomes},
	} {
		if n, ok := f[o.key]; ok {
			*o.to = comparison.Verdict(d.word(n, o.key, o.words...))
		}
	}
}

func (d *policyDoc) ignore(n ast.Node, p *Policy) {
	f := d.fields(n, "ignore", "kernels", "min_share")
	if n, ok := f["kernels"]; ok {
		for _, item := range d.items(n, "ignore.kernels") {
			pattern := d.text(item, "ignore.kernels")
			if pattern == "" {
				d.fail(item, "an empty pattern ignores nothing")
			}
			p.IgnoreKernels = append(p.IgnoreKernels, pattern)
		}
	}
	if n, ok := f["min_share"]; ok {
		q := d.quantity(n, "min_share")
		switch {
		case d.err != nil:
		case q.Unit != report.Ratio:
			d.fail(n, "min_share %s has no unit; write a share such as 0.5%%", Cut(d.text(n, "min_share")))
		case !(q.Value > 0 && q.Value < 1):
			d.fail(n, "min_share is a share above 0%% and below 100%%")
		}
		p.MinShare = q.Value
	}
}

func (d *policyDoc) environment(n ast.Node, e *Environment) {
	f := d.fields(n, "environment", "hard", "soft", "residue")
	names := environmentFields()
	seen := map[string]string{}
	for _, part := range []struct {
		key string
		to  *[]string
	}{{"hard", &e.Hard}, {"soft", &e.Soft}, {"residue", &e.Residue}} {
		n, ok := f[part.key]
		if !ok {
			continue
		}
		*part.to = nil
		for _, item := range d.items(n, "environment."+part.key) {
			name := d.word(item, "field", names...)
			if other, twice := seen[name]; twice && d.err == nil {
				d.fail(item, "field %s is in %s already", name, other)
			}
			seen[name] = part.key
			*part.to = append(*part.to, name)
		}
	}
}

// rule reads an entry of rules: how much a metric may change.
func (d *policyDoc) rule(n ast.Node) Rule {
	f := d.fields(n, "a rule", "id", "metric", "labels", "match", "level", "regress", "optional")
	r := Rule{Labels: report.Labels{}, Level: comparison.LevelError}
	d.common(n, f, &r, comparison.LevelError, comparison.LevelWarn, comparison.LevelOff)
	limits := n
	if x, ok := f["regress"]; ok {
		limits = x
		g := d.fields(x, "regress", "rel", "abs", "direction")
		if v, ok := g["rel"]; ok {
			q := d.quantity(v, "rel")
			text := d.text(v, "rel")
			if d.err == nil && !strings.HasSuffix(strings.TrimSpace(text), "%") {
				d.fail(v, "rel %s is no share of the base; write it as percent: 3%%", Cut(text))
			}
			r.Rel = &q.Value
		}
		if v, ok := g["abs"]; ok {
			q := d.quantity(v, "abs")
			if text := d.text(v, "abs"); d.err == nil && strings.HasSuffix(strings.TrimSpace(text), "%") {
				d.fail(v, "abs %s: percent is relative; percentage points of a share are written 5pp", Cut(text))
			}
			r.Abs, r.AbsUnit, limits = &q.Value, q.Unit, v
		}
		if v, ok := g["direction"]; ok {
			r.Direction = d.word(v, "direction", Up, Down, Both)
		}
		if len(g) == 0 || r.Rel == nil && r.Abs == nil {
			d.fail(x, "regress states no limit; write {rel: 3%%, abs: 200us} or one of them")
		}
	}
	if s, ok := f["metric"].(*ast.StringNode); r.Level != comparison.LevelOff && r.Rel == nil && r.Abs == nil &&
		!(ok && s.Value == comparison.MetricStructure) {
		d.fail(n, "a rule states no limit; write regress: {rel: 3%%, abs: 200us} or one of them, or level: off")
	}
	d.resolve(n, f, limits, &r)
	return r
}

// budget reads an entry of budgets: what the head's value may be.
func (d *policyDoc) budget(n ast.Node) Rule {
	f := d.fields(n, "a budget", "id", "metric", "labels", "match", "level", "max", "min", "optional")
	r := Rule{Labels: report.Labels{}, Level: comparison.LevelError}
	d.common(n, f, &r, comparison.LevelError, comparison.LevelWarn)
	limits := n
	for _, bound := range []struct {
		key string
		to  **float64
	}{{"max", &r.Max}, {"min", &r.Min}} {
		v, ok := f[bound.key]
		if !ok {
			continue
		}
		q := d.quantity(v, bound.key)
		if *bound.to = &q.Value; r.LimitUnit != "" && r.LimitUnit != q.Unit {
			d.fail(v, "min and max are in different units")
		}
		limits, r.LimitUnit = v, q.Unit
	}
	if !r.Budgeted() {
		d.fail(n, "a budget states no bound; write max: 15%% or min: 90%%")
	}
	d.resolve(n, f, limits, &r)
	return r
}

// common reads what rules and budgets have in common.
func (d *policyDoc) common(n ast.Node, f map[string]ast.Node, r *Rule, levels ...string) {
	if d.err != nil {
		return
	}
	if v, ok := f["id"]; ok {
		r.ID = d.plain(v, "id", maxIDText)
		if !ruleID.MatchString(r.ID) {
			d.fail(v, "id %q: letters, digits, spaces and . _ / - are expected", Cut(r.ID))
		}
	}
	if v, ok := f["level"]; ok {
		r.Level = d.word(v, "level", levels...)
	}
	if v, ok := f["optional"]; ok {
		r.Optional = d.word(v, "optional", "true", "false") == "true"
	}
	if v, ok := f["match"]; ok {
		r.Match = d.match(v)
	}
	if v, ok := f["labels"]; ok {
		r.Labels = d.pairs(v, "labels")
	}
	if _, ok := f["metric"]; !ok {
		d.fail(n, "names no metric; explain metrics lists them")
	}
}

var ruleID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]*$`)

const maxIDText = 100 // bytes of an id or a phase

func (d *policyDoc) match(n ast.Node) Match {
	var m Match
	f := d.fields(n, "match", "glob", "regex")
	if v, ok := f["glob"]; ok {
		if m.Glob = d.text(v, "glob"); m.Glob == "" {
			d.fail(v, "an empty glob matches nothing; leave match out for everything")
		}
	}
	if v, ok := f["regex"]; ok {
		m.Regex = d.text(v, "regex")
		if _, err := regexp.Compile(m.Regex); err != nil {
			d.fail(v, "regex: %w", err)
		} else if m.Regex == "" {
			d.fail(v, "an empty regex matches everything; leave match out")
		}
	}
	if d.err == nil && m.Empty() {
		d.fail(n, "match has neither glob nor regex")
	}
	return m
}
