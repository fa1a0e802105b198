package diff

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/report"
)

// policy is a policy file (design.md, section 7): YAML, or JSON, which is a part of it. Values carry their units.
type policy struct {
	Version int            `yaml:"version"`
	Rules   []policyRule   `yaml:"rules"`
	Budgets []policyBudget `yaml:"budgets"`
	Ignore  struct {
		Kernels []string `yaml:"kernels"`
	} `yaml:"ignore"`

	// Known to the design and judged by no version yet: refused, since a gate that passes over a rule in silence is worse
	// than none.
	Preset  string                   `yaml:"preset"`
	Unit    string                   `yaml:"unit"`
	Stats   map[string]string        `yaml:"stats"`
	Waivers []map[string]interface{} `yaml:"waivers"`
}

type policyRule struct {
	ID      string            `yaml:"id"`
	Metric  string            `yaml:"metric"`
	Labels  map[string]string `yaml:"labels"`
	Level   string            `yaml:"level"`
	Regress struct {
		Rel string `yaml:"rel"`
		Abs string `yaml:"abs"`
	} `yaml:"regress"`
	Match struct {
		Glob  string `yaml:"glob"`
		Regex string `yaml:"regex"`
	} `yaml:"match"`
}

type policyBudget struct {
	ID     string            `yaml:"id"`
	Metric string            `yaml:"metric"`
	Labels map[string]string `yaml:"labels"`
	Level  string            `yaml:"level"`
	Max    string            `yaml:"max"`
	Min    string            `yaml:"min"`
}

// maxPolicyBytes bounds a policy file.
const maxPolicyBytes = 1 << 20

// ReadPolicy reads the rules and budgets of a policy file, in its order. Unknown keys and bad units are errors that name
// the line and the column. A metric that only comes with labels is meant with any.
func ReadPolicy(r io.Reader, known []MetricFacts) ([]Rule, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxPolicyBytes+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPolicyBytes {
		return nil, fmt.Errorf("policy is larger than %d bytes", maxPolicyBytes)
	}
	var p policy
	if err := yaml.UnmarshalWithOptions(b, &p, yaml.Strict()); err != nil {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	if p.Version != 1 {
		return nil, fmt.Errorf("policy has version %d, this explain reads version 1: write `version: 1` first", p.Version)
	}
	for key, used := range map[string]bool{"preset": p.Preset != "", "stats": len(p.Stats) > 0, "unit": p.Unit != "" && p.Unit != "auto", "waivers": len(p.Waivers) > 0} {
		if used {
			return nil, fmt.Errorf("policy: %s is not judged by this version of explain; leave it out", key)
		}
	}
	var rules []Rule
	add := func(what, id, metric, level string, labels map[string]string, limits ...string) (*Rule, error) {
		rule, err := policyLimits(metric, limits)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", what, id, err)
		}
		if id != "" {
			rule.ID = id
		}
		rule.Level, rule.Labels = level, anyLabels(metric, labels, known)
		if level == "" {
			rule.Level = LevelError
		}
		rules = append(rules, rule)
		return &rules[len(rules)-1], nil
	}
	for _, r := range p.Rules {
		var limits []string
		for _, l := range []string{r.Regress.Rel, r.Regress.Abs} {
			if l != "" {
				limits = append(limits, "+"+l)
			}
		}
		rule, err := add("rule", r.ID, r.Metric, r.Level, r.Labels, limits...)
		if err != nil {
			return nil, err
		}
		rule.Direction = "" // the metric says which way is bad
		if rule.Match = (Match{Glob: r.Match.Glob, Regex: r.Match.Regex}); !rule.Match.empty() && len(r.Labels) == 0 {
			rule.Labels = report.Labels{}
		}
	}
	for _, b := range p.Budgets {
		var limits []string
		if b.Max != "" {
			limits = append(limits, "<="+b.Max)
		}
		if b.Min != "" {
			limits = append(limits, ">="+b.Min)
		}
		if _, err := add("budget", b.ID, b.Metric, b.Level, b.Labels, limits...); err != nil {
			return nil, err
		}
	}
	for _, k := range p.Ignore.Kernels {
		rules = append(rules, Rule{ID: "ignore " + k, Metric: "kernel.time_per_unit", Labels: report.Labels{}, Match: Match{Glob: k}, Level: LevelOff})
	}
	for i := range rules {
		if err := rules[i].Validate(); err != nil {
			return nil, fmt.Errorf("rule %s: %w", rules[i].Name(), err)
		}
	}
	if len(rules) == 0 {
		return nil, errors.New("policy has neither rules nor budgets")
	}
	return rules, CheckRules(rules, known)
}

// policyLimits reads values with units by the one parser that rules have.
func policyLimits(metric string, limits []string) (Rule, error) {
	if metric == "" {
		return Rule{}, errors.New("names no metric")
	}
	if len(limits) == 0 {
		return Rule{}, errors.New("states no limit: regress {rel, abs}, max or min")
	}
	return ParseFailOn(metric + ":" + strings.Join(limits, ","))
}

// anyLabels are the labels of a rule; without any, a metric that has no unlabelled form is meant with every value of its
// first label.
func anyLabels(metric string, labels map[string]string, known []MetricFacts) report.Labels {
	l := report.Labels{}
	for k, v := range labels {
		l[k] = v
	}
	if len(l) > 0 {
		return l
	}
	id, _ := splitStat(metric)
	for _, f := range known {
		if f.ID != id && f.ID != metric {
			continue
		}
		first := ""
		for _, set := range f.Labels {
			if set == "" {
				return l
			}
			if first == "" && !strings.Contains(set, ",") {
				first = set
			}
		}
		if first != "" {
			l[first] = "*"
		}
	}
	return l
}
