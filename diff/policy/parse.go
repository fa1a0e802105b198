package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
)

// ParseFailOn reads a rule of level error as it is written on a command line:
//
//	unit.time.p50:+3%                              more than 3 % slower
//	unit.time.p50:+3%,+200us                       more than 3 % and more than 200 µs slower
//	unit.launches:+1                               more than one launch more
//	graph.coverage:-5pp                            more than five percentage points lost
//	unit.time{phase=decode}:+2%                    of one phase
//	kernel.time_per_unit{kernel=*flash*}:+5%,warn  each kernel like this; only warn
//	kernel.time_per_unit{kernel=*memset*}:off      not these (the last rule that selects a number judges it)
//	gpu.idle_ratio{device=0}:<=15%                 a budget: the head's value, whatever the base
//
// The sign says which way is bad, ± both. "%" is relative to the base, "pp" is percentage points of a ratio; in a
// budget both are a share.
func ParseFailOn(text string) (Rule, error) {
	fail := func(format string, args ...interface{}) (Rule, error) {
		return Rule{}, fmt.Errorf("rule %q: %w", text, fmt.Errorf(format, args...))
	}
	r := Rule{ID: text, Labels: report.Labels{}, Level: comparison.LevelError}
	subject, limits, ok := cutSubject(text)
	if !ok || limits == "" {
		return fail("expected METRIC:CHANGE, such as unit.time.p50:+3%%,+200us or gpu.idle_ratio{device=0}:<=15%%")
	}
	var err error
	if r.Metric, r.Labels, err = parseSubject(subject); err != nil {
		return fail("%w", err)
	}
	for _, part := range strings.Split(limits, ",") {
		if err := addLimit(&r, strings.TrimSpace(part)); err != nil {
			return fail("%w", err)
		}
	}
	if err := r.Validate(); err != nil {
		return fail("%w", err)
	}
	return r, nil
}

// cutSubject splits a rule at the colon behind the subject; label values may hold others.
func cutSubject(text string) (subject, limits string, ok bool) {
	open := strings.IndexAny(text, "{:")
	if open < 0 || text[open] == ':' {
		return strings.Cut(text, ":")
	}
	end := strings.LastIndex(text, "}:")
	if end < open {
		return "", "", false
	}
	return text[:end+1], text[end+2:], true
}

// parseSubject reads metric{key=value,key=value}. A value ends at a comma that is followed by key=, so that kernel
// names with commas in them need no quotes.
func parseSubject(s string) (metric string, labels report.Labels, err error) {
	labels = report.Labels{}
	metric, rest, braced := strings.Cut(strings.TrimSpace(s), "{")
	metric = strings.TrimSpace(metric)
	if metric == "" || strings.Trim(metric, "abcdefghijklmnopqrstuvwxyz0123456789_.") != "" {
		return "", nil, fmt.Errorf("%q is not a metric id; run explain doc metrics for the list", metric)
	}
	if !braced {
		return metric, labels, nil
	}
	rest, closed := strings.CutSuffix(rest, "}")
	if !closed {
		return "", nil, errors.New("the braces do not close")
	}
	starts := labelKey.FindAllStringSubmatchIndex(rest, -1)
	if len(starts) == 0 || starts[0][0] != 0 {
		return "", nil, fmt.Errorf("expected {label=value} in braces, got {%s}", rest)
	}
	for i, m := range starts {
		end := len(rest)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		key, value := rest[m[2]:m[3]], strings.TrimSpace(rest[m[1]:end])
		if value == "" {
			return "", nil, fmt.Errorf("label %s has no value; * stands for any", key)
		}
		if _, twice := labels[key]; twice {
			return "", nil, fmt.Errorf("label %s appears twice", key)
		}
		labels[key] = value
	}
	return metric, labels, nil
}

var labelKey = regexp.MustCompile(`(?:^|,)\s*([a-z_]+)=`)

// addLimit reads one part behind the colon: +3%, -5%, ±2%, +200us, <=15%, >=0.9, warn, off.
func addLimit(r *Rule, s string) error {
	switch s {
	case comparison.LevelWarn, comparison.LevelOff, comparison.LevelError:
		r.Level = s
		return nil
	case "":
		return errors.New("a part behind the colon is empty")
	}
	for _, op := range []string{"<=", ">=", "<", ">", "≤", "≥"} {
		if rest, ok := strings.CutPrefix(s, op); ok {
			return addBound(r, op, rest)
		}
	}
	direction, rest := "", s
	for _, sign := range []struct{ text, direction string }{{"±", Both}, {"+-", Both}, {"+/-", Both}, {"+", Up},
		{"-", Down}} {
		if tail, ok := strings.CutPrefix(s, sign.text); ok {
			direction, rest = sign.direction, tail
			break
		}
	}
	q, err := unit.Parse(rest)
	switch {
	case direction == "":
		return fmt.Errorf("%q: say which way is bad with a sign: +%s, -%s or ±%s, or give a budget: <=%s", s, s, s, s,
			s)
	case err != nil:
		return err
	case q.Value < 0 || strings.HasPrefix(strings.TrimSpace(rest), "+"):
		return fmt.Errorf("%q has two signs", s)
	case r.Direction != "" && r.Direction != direction:
		return errors.New("its parts point in different directions")
	}
	r.Direction = direction
	part, name := &r.Abs, "an absolute"
	if q.Unit == report.Ratio && strings.HasSuffix(rest, "%") {
		part, name = &r.Rel, "a relative"
	}
	if *part != nil {
		return fmt.Errorf("has %s part twice", name)
	}
	*part = &q.Value
	if part == &r.Abs {
		r.AbsUnit = q.Unit
	}
	return nil
}

func addBound(r *Rule, op, text string) error {
	q, err := unit.Parse(text)
	if err != nil {
		return err
	}
	part := &r.Max
	if op[0] == '>' || op == "≥" {
		part = &r.Min
	}
	if *part != nil {
		return errors.New("has the same bound twice")
	}
	if r.LimitUnit != "" && r.LimitUnit != q.Unit {
		return errors.New("its bounds are in different units")
	}
	*part, r.LimitUnit = &q.Value, q.Unit
	return nil
}

// bareNumber takes out what people read numbers by: a comma would begin another part of a rule.
var bareNumber = strings.NewReplacer(" ", "", ",", "")

// Threshold is what the rule tolerates, in words that [ParseFailOn] reads: "+3%,+200µs", "<=15%".
func (r *Rule) Threshold() string {
	var parts []string
	sign := map[string]string{Up: "+", Down: "-", Both: "±", "": ""}[r.Direction]
	if r.Improve {
		sign = "improve by "
	}
	if r.Rel != nil {
		parts = append(parts, sign+comparison.ExactPercent(*r.Rel))
	}
	if r.Abs != nil {
		text := unit.Format(*r.Abs, r.AbsUnit)
		if r.AbsUnit == report.Ratio {
			text = strings.TrimSuffix(comparison.ExactPercent(*r.Abs), "%") + "pp"
		}
		parts = append(parts, sign+bareNumber.Replace(text))
	}
	bound := func(op string, v *float64) {
		if v == nil {
			return
		}
		text := bareNumber.Replace(unit.Format(*v, r.LimitUnit))
		if r.LimitUnit == report.Ratio {
			text = comparison.ExactPercent(*v)
		}
		parts = append(parts, op+text)
	}
	bound("<=", r.Max)
	bound(">=", r.Min)
	if r.Since != "" {
		return strings.Join(parts, ",") + " since " + r.Since
	}
	return strings.Join(parts, ",")
}
