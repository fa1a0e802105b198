package policy

import (
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

// Read reads a policy file: YAML, or JSON, which is a part of it. Values carry their units. Unknown keys, metrics,
// labels and words and values in the wrong unit are errors that name the line, the column and the nearest known name.
// known are the metrics that exist; nil accepts any metric. A metric that only exists with labels stands for any of
// them. open reads a file that the policy extends, by the name in it; nil: it extends none.
func Read(r io.Reader, known []report.MetricDef, open ...func(name string) ([]byte, error)) (*Policy, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPolicyBytes+1))
	if err != nil {
		return nil, err
	}
	p := &Policy{Stats: DefaultStats()}
	d := &policyDoc{known: known, ids: map[string]bool{}}
	for _, d.open = range open {
	}
	if err := d.file(b, p, true); err != nil {
		return nil, err
	}
	if len(p.Rules) == 0 {
		return nil, errors.New(
			"policy has neither rules nor budgets; add some, or name a preset: " + list(PresetNames()))
	}
	return p, nil
}

// Words for what stands in for an answer.
var outcomes = []string{string(comparison.Pass), string(comparison.Warn), string(comparison.Fail),
	string(comparison.Inconclusive)}

// field is one key of a mapping: how its value is read into what the mapping says.
type field[T any] struct {
	key     string
	read    func(d *policyDoc, n ast.Node, to *T)
	missing string // what is wrong where the key is not there; empty: nothing
}

// bind reads a mapping by its table, in the order of the table, and returns the values by key. what it is of stands in
// errors: "a rule".
func bind[T any](d *policyDoc, n ast.Node, what string, to *T, table []field[T]) map[string]ast.Node {
	keys := lists.Map(table, func(f field[T]) string { return f.key })
	f := d.read.fields(n, what, keys...)
	for i := range table {
		v, ok := f[table[i].key]
		switch {
		case d.read.err != nil:
			return f
		case ok:
			table[i].read(d, v, to)
		case table[i].missing != "":
			d.read.fail(n, "%s", table[i].missing)
		}
	}
	return f
}

// file reads the text of a file or of a preset into p. A preset names no other one and waives nothing.
func (d *policyDoc) file(text []byte, p *Policy, top bool) error {
	root, err := parsePolicy(text)
	if err != nil {
		return err
	}
	table := []field[Policy]{
		{"version", (*policyDoc).version, "policy has no version; start with `version: 1`"},
		{"extends", (*policyDoc).extends, ""},
		{"preset", (*policyDoc).preset, ""},
		{"unit", (*policyDoc).unit, ""},
		{"phase", (*policyDoc).phase, ""},
		{"batch", func(d *policyDoc, n ast.Node, p *Policy) { p.Batch = d.read.wholeOf(n, "batch", 1<<31) }, ""},
		{"stats", func(d *policyDoc, n ast.Node, p *Policy) { bind(d, n, "stats", &p.Stats, statsFields) }, ""},
		{"ignore", func(d *policyDoc, n ast.Node, p *Policy) { bind(d, n, "ignore", p, ignoreFields) }, ""},
		{"environment", (*policyDoc).environment, ""},
		{"rules", func(d *policyDoc, n ast.Node, p *Policy) { d.rules(n, "rules", d.rule, p) }, ""},
		{"budgets", func(d *policyDoc, n ast.Node, p *Policy) { d.rules(n, "budgets", d.budget, p) }, ""},
		{"waivers", func(d *policyDoc, n ast.Node, p *Policy) {
			for _, item := range d.read.items(n, "waivers") {
				p.Waivers = append(p.Waivers, d.waiver(item, p.Rules))
			}
		}, ""},
	}
	if !top {
		table = slices.DeleteFunc(table, func(f field[Policy]) bool { return f.key == "preset" || f.key == "extends" || f.key == "waivers" })
	}
	bind(d, root, "a policy", p, table)
	return d.read.err
}

func (d *policyDoc) version(n ast.Node, _ *Policy) {
	if s := d.read.text(n, "version"); s != "1" {
		d.read.fail(n, "policy has version %q, this explain reads version 1", Cut(s))
	}
}

// maxExtends bounds how many files a policy goes back to.
const maxExtends = 5

// extends reads the policy of another file, named as from here, first: its rules come before these.
func (d *policyDoc) extends(n ast.Node, p *Policy) {
	name := path.Join(d.folder, d.read.plain(n, "extends", maxPolicyText))
	switch {
	case d.read.err != nil:
		return
	case d.open == nil:
		d.read.fail(n, "extends: only a policy that is read from a file can extend another")
		return
	case d.extended == maxExtends:
		d.read.fail(n, "extends %q: more than %d files, or the same one again", Cut(name), maxExtends)
		return
	}
	inner := &policyDoc{known: d.known, ids: d.ids, open: d.open, folder: path.Dir(name), extended: d.extended + 1}
	b, err := d.open(name)
	if err == nil {
		err = inner.file(b, p, true)
	}
	if err != nil {
		d.read.fail(n, "extends %q: %w", Cut(name), err)
	}
}

func (d *policyDoc) preset(n ast.Node, p *Policy) {
	if len(p.Rules) > 0 {
		d.read.fail(n, "preset and extends exclude each other: name the preset in the file that this one extends")
		return
	}
	p.Preset = d.read.word(n, "preset", PresetNames()...)
	text, ok := PresetText(p.Preset)
	if !ok || d.read.err != nil {
		return
	}
	// a preset may name metrics that only some artifacts have, and states labels and directions itself
	inner := &policyDoc{ids: map[string]bool{}}
	if err := inner.file([]byte(text), p, false); err != nil {
		d.read.fail(n, "preset %s: %w", p.Preset, err)
	}
	p.presetRules = len(p.Rules)
}

func (d *policyDoc) unit(n ast.Node, p *Policy) {
	if p.Unit = d.read.text(n, "unit"); p.Unit == "auto" {
		p.Unit = ""
	}
	if err := validUnit(p.Unit); err != nil && d.read.err == nil {
		d.read.fail(n, "%w", err)
	}
}

func (d *policyDoc) phase(n ast.Node, p *Policy) {
	if p.Phase = d.read.plain(n, "phase", maxIDText); p.Phase == "" {
		d.read.fail(n, "phase is empty; leave it out for the one with most time")
	}
}

var statsFields = []field[Stats]{
	{"alpha", func(d *policyDoc, n ast.Node, s *Stats) { s.Alpha = d.read.probability(n, "alpha") }, ""},
	{"fdr", func(d *policyDoc, n ast.Node, s *Stats) { s.FDR = d.read.probability(n, "fdr") }, ""},
	{"min_captures", func(d *policyDoc, n ast.Node, s *Stats) {
		s.MinCaptures = int(*d.read.wholeOf(n, "min_captures", maxMinCaptures))
	}, ""},
	{"floor", func(d *policyDoc, n ast.Node, s *Stats) {
		if s.Floor = d.read.share(n, "floor"); s.Floor > MostFloor {
			d.read.fail(n, "floor %v: expected a share such as 3%%, of 15%% at most: a larger one hides the changes that rules look for", s.Floor)
		}
	}, ""},
	{"max_overhead", func(d *policyDoc, n ast.Node, s *Stats) { s.MaxOverhead = d.read.share(n, "max_overhead") }, ""},
	outcomeField("on_inconclusive", func(s *Stats) *comparison.Verdict { return &s.OnInconclusive }, outcomes),
	outcomeField("on_not_comparable", func(s *Stats) *comparison.Verdict { return &s.OnNotComparable }, outcomes),
	outcomeField("on_missing", func(s *Stats) *comparison.Verdict { return &s.OnMissing }, outcomes[1:]),
	outcomeField("on_missing_baseline", func(s *Stats) *comparison.Verdict { return &s.OnMissingBaseline }, outcomes),
}

// outcomeField is a key that says what stands in for an answer.
func outcomeField(key string, of func(s *Stats) *comparison.Verdict, words []string) field[Stats] {
	return field[Stats]{key,
		func(d *policyDoc, n ast.Node, s *Stats) { *of(s) = comparison.Verdict(d.read.word(n, key, words...)) }, ""}
}

var ignoreFields = []field[Policy]{
	{"kernels", func(d *policyDoc, n ast.Node, p *Policy) {
		for _, item := range d.read.items(n, "ignore.kernels") {
			pattern := d.read.text(item, "ignore.kernels")
			if pattern == "" {
				d.read.fail(item, "an empty pattern ignores nothing")
			}
			p.IgnoreKernels = append(p.IgnoreKernels, pattern)
		}
	}, ""},
	{"min_share", func(d *policyDoc, n ast.Node, p *Policy) {
		q := d.read.quantity(n, "min_share")
		switch {
		case d.read.err != nil:
		case q.Unit != report.Ratio:
			d.read.fail(n, "min_share %s has no unit; write a share such as 0.5%%", Cut(d.read.text(n, "min_share")))
		case !(q.Value > 0 && q.Value < 1):
			d.read.fail(n, "min_share is a share above 0%% and below 100%%")
		}
		p.MinShare = q.Value
	}, ""},
}

// environment moves fields between three lists, each of which a file states whole.
func (d *policyDoc) environment(n ast.Node, p *Policy) {
	names := environmentFields()
	seen := map[string]string{}
	list := func(key string, of func(e *Environment) *[]string) field[Environment] {
		return field[Environment]{key, func(d *policyDoc, n ast.Node, e *Environment) {
			to := of(e)
			*to = nil
			for _, item := range d.read.items(n, "environment."+key) {
				name := d.read.word(item, "field", names...)
				if other, twice := seen[name]; twice && d.read.err == nil {
					d.read.fail(item, "field %s is in %s already", name, other)
				}
				seen[name] = key
				*to = append(*to, name)
			}
		}, ""}
	}
	bind(d, n, "environment", &p.Environment, []field[Environment]{
		list("hard", func(e *Environment) *[]string { return &e.Hard }),
		list("soft", func(e *Environment) *[]string { return &e.Soft }),
		list("residue", func(e *Environment) *[]string { return &e.Residue })})
}

// rules reads a list of rules or of budgets, whose ids have to differ.
func (d *policyDoc) rules(n ast.Node, what string, read func(n ast.Node) Rule, p *Policy) {
	for _, item := range d.read.items(n, what) {
		r := read(item)
		if r.ID != "" && d.ids[r.ID] {
			d.read.fail(item, "two rules have the id %q; gates and waivers name rules by it", r.ID)
		}
		if d.read.err != nil {
			return
		}
		d.ids[r.ID] = true
		p.Rules = append(p.Rules, r)
	}
}

// ruleNode is a rule and where its parts stand.
type ruleNode struct {
	Rule
	limits   ast.Node // that errors of its thresholds are placed at
	levelled bool     // it states a level
}

// ruleFields are what rules and budgets have in common, with the levels that they can have.
func ruleFields(more []field[ruleNode], levels ...string) []field[ruleNode] {
	return append([]field[ruleNode]{
		{"id", func(d *policyDoc, n ast.Node, r *ruleNode) {
			if r.ID = d.read.plain(n, "id", maxIDText); !ruleID.MatchString(r.ID) {
				d.read.fail(n, "id %q: letters, digits, spaces and . _ / - are expected", Cut(r.ID))
			}
		}, ""},
		{"level", func(d *policyDoc, n ast.Node, r *ruleNode) {
			r.Level, r.levelled = d.read.word(n, "level", levels...), true
		}, ""},
		{"when", func(d *policyDoc, n ast.Node, r *ruleNode) {
			r.When = d.read.pairs(n, "when")
			names := environmentFields()
			for name := range r.When {
				if !slices.Contains(names, name) {
					d.read.fail(n, "when: no field %q of the environment; it is one of %s", Cut(name), list(names))
				}
			}
		}, ""},
		{"on_inconclusive", func(d *policyDoc, n ast.Node, r *ruleNode) {
			r.OnInconclusive = comparison.Verdict(d.read.word(n, "on_inconclusive", outcomes...))
		}, ""},
		{"optional", func(d *policyDoc, n ast.Node, r *ruleNode) {
			r.Optional = d.read.word(n, "optional", "true", "false") == "true"
		}, ""},
		{"match", func(d *policyDoc, n ast.Node, r *ruleNode) { r.Match = d.match(n) }, ""},
		{"labels", func(d *policyDoc, n ast.Node, r *ruleNode) { r.Labels = d.read.pairs(n, "labels") }, ""},
		{"metric", func(*policyDoc, ast.Node, *ruleNode) {},
			"names no metric; explain doc metrics lists them"}, // see resolve
	}, more...)
}

var (
	changeFields = ruleFields([]field[ruleNode]{limitField("regress"), limitField("fail"), limitField("warn"), limitField("improve"),
		{"only_slower", func(d *policyDoc, n ast.Node, r *ruleNode) {
			r.OnlySlower = d.read.word(n, "only_slower", "true", "false") == "true"
		}, ""}},
		comparison.LevelError, comparison.LevelWarn, comparison.LevelOff)
	budgetFields = ruleFields([]field[ruleNode]{boundField("max", func(r *ruleNode) **float64 { return &r.Max }),
		boundField("min", func(r *ruleNode) **float64 { return &r.Min }),
		{"since", func(d *policyDoc, n ast.Node, r *ruleNode) {
			if r.Since = d.read.plain(n, "since", maxIDText); !ruleID.MatchString(r.Since) {
				d.read.fail(n, "since %q: the tag or the commit that the budget counts from is expected, as v1.4.0", Cut(r.Since))
			}
		}, ""}}, comparison.LevelError, comparison.LevelWarn)
)

var regressFields = []field[ruleNode]{
	{"rel", func(d *policyDoc, n ast.Node, r *ruleNode) {
		q := d.read.quantity(n, "rel")
		if text := d.read.text(n, "rel"); d.read.err == nil && !strings.HasSuffix(strings.TrimSpace(text), "%") {
			d.read.fail(n, "rel must be a percentage, e.g. 3%%, and is %s", Cut(text))
		}
		r.Rel = &q.Value
	}, ""},
	{"abs", func(d *policyDoc, n ast.Node, r *ruleNode) {
		q := d.read.quantity(n, "abs")
		if text := d.read.text(n, "abs"); d.read.err == nil && strings.HasSuffix(strings.TrimSpace(text), "%") {
			d.read.fail(n, "abs %s: percent is relative; percentage points of a share are written 5pp", Cut(text))
		}
		r.Abs, r.AbsUnit, r.limits = &q.Value, q.Unit, n
	}, ""},
	{"direction", func(d *policyDoc, n ast.Node, r *ruleNode) { r.Direction = d.read.word(n, "direction", Up, Down, Both) },
		""},
}

// limitField is a change that a rule is about: regress is one of the rule's level, fail and warn are one each, and
// improve is one for the better.
func limitField(key string) field[ruleNode] {
	return field[ruleNode]{key, func(d *policyDoc, n ast.Node, r *ruleNode) {
		to := r
		if key == "warn" {
			to = &ruleNode{}
		}
		if to.Rel != nil || to.Abs != nil || (key == "fail" || key == "warn") && r.levelled {
			d.read.fail(n, "%s beside regress, fail, improve or level: a rule has one limit, or fail and warn", key)
			return
		}
		to.limits = n
		bind(d, n, key, to, regressFields)
		if key != "regress" && to.Direction != "" {
			d.read.fail(n, "%s: the metric says which way is bad; only regress has a direction", key)
		}
		if to.Rel == nil && to.Abs == nil {
			d.read.fail(n, "%s states no limit; write {rel: 3%%, abs: 200us} or one of them", key)
		}
		if r.Improve = r.Improve || key == "improve"; key == "warn" {
			r.Milder, r.limits = &to.Rule, n
		}
	}, ""}
}

// boundField is a bound of a budget.
func boundField(key string, of func(r *ruleNode) **float64) field[ruleNode] {
	return field[ruleNode]{key, func(d *policyDoc, n ast.Node, r *ruleNode) {
		q := d.read.quantity(n, key)
		if *of(r) = &q.Value; r.LimitUnit != "" && r.LimitUnit != q.Unit {
			d.read.fail(n, "min and max are in different units")
		}
		r.limits, r.LimitUnit = n, q.Unit
	}, ""}
}

// rule reads an entry of rules: how much a metric may change.
func (d *policyDoc) rule(n ast.Node) Rule {
	r := ruleNode{Rule: Rule{Labels: report.Labels{}, Level: comparison.LevelError}, limits: n}
	f := bind(d, n, "a rule", &r, changeFields)
	s, ok := f["metric"].(*ast.StringNode)
	milder := r.Milder
	if milder != nil && r.Rel == nil && r.Abs == nil { // it only warns
		r.Rel, r.Abs, r.AbsUnit, r.Direction, r.Level, r.Milder = milder.Rel, milder.Abs, milder.AbsUnit, milder.Direction, comparison.LevelWarn, nil
	}
	structure := ok && s.Value == comparison.MetricStructure
	if r.Level != comparison.LevelOff && r.Rel == nil && r.Abs == nil && !structure {
		d.read.fail(n, "a rule states no limit; write regress: {rel: 3%%, abs: 200us} or one of them, or level: off")
	}
	d.resolve(n, f, r.limits, &r.Rule)
	if r.Milder == nil || d.read.err != nil {
		return r.Rule
	}
	m := r.Rule
	m.Rel, m.Abs, m.AbsUnit, m.Level, m.Milder = milder.Rel, milder.Abs, milder.AbsUnit, comparison.LevelWarn, nil
	r.Milder = &m
	if facts, err := Facts(m.Metric, d.known); err == nil {
		if err := checkLimits(&facts, &m); err != nil {
			d.read.fail(r.limits, "warn: %w", err)
		}
	}
	return r.Rule
}

// budget reads an entry of budgets: what the head's value may be.
func (d *policyDoc) budget(n ast.Node) Rule {
	r := ruleNode{Rule: Rule{Labels: report.Labels{}, Level: comparison.LevelError}, limits: n}
	f := bind(d, n, "a budget", &r, budgetFields)
	if !r.Budgeted() {
		d.read.fail(n, "a budget states no bound; write max: 15%% or min: 90%%")
	}
	if r.Since != "" && (r.Max == nil || r.Min != nil || r.LimitUnit != report.Ratio) {
		d.read.fail(r.limits, "a budget since %s bounds a change for the worse: write max: 5%% and no min", Cut(r.Since))
	}
	d.resolve(n, f, r.limits, &r.Rule)
	return r.Rule
}

var ruleID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._/-]*$`)

const maxIDText = 100 // bytes of an id or a phase

var matchFields = []field[Match]{
	{"glob", func(d *policyDoc, n ast.Node, m *Match) {
		if m.Glob = d.read.text(n, "glob"); m.Glob == "" {
			d.read.fail(n, "an empty glob matches nothing; leave match out for everything")
		}
	}, ""},
	{"regex", func(d *policyDoc, n ast.Node, m *Match) {
		m.Regex = d.read.text(n, "regex")
		if _, err := regexp.Compile(m.Regex); err != nil {
			d.read.fail(n, "regex: %w", err)
		} else if m.Regex == "" {
			d.read.fail(n, "an empty regex matches everything; leave match out")
		}
	}, ""},
}

func (d *policyDoc) match(n ast.Node) Match {
	var m Match
	bind(d, n, "match", &m, matchFields)
	if d.read.err == nil && m.Empty() {
		d.read.fail(n, "match has neither glob nor regex")
	}
	return m
}
