package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
)

// The files that say how a comparison is judged: policies and noise floors.

// ruleFlags say by what a comparison is judged.
type ruleFlags struct {
	failOn []string
	policy string
	noise  string
	past   historycmd.Flags
}

func (f *ruleFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.failOn, "fail-on", nil,
		"fail where this `RULE` is broken, instead of the default rules: 'unit.time.p50:+3%,+200us' (repeatable; the last rule that selects a number judges it)")
	fl.StringVar(&f.policy, "policy", "",
		"judge by this policy `FILE` (YAML or JSON) instead of the default rules: explain policy --help")
	fl.StringVar(&f.noise, "noise", "", "take noise floors from this `FILE` of explain policy init")
	f.past.Register(fl)
	_ = cmd.RegisterFlagCompletionFunc("fail-on", completeRule)
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml", "json")
	_ = cmd.MarkFlagFilename("noise", "json")
}

// defaultRules lists the rules that judge if nobody wrote one, a line each.
func defaultRules() string {
	var b strings.Builder
	rules := policy.Default().Rules
	for i := range rules {
		for _, r := range rules[i].Each() {
			fmt.Fprintf(&b, "  %-11s %s %s\n", rules[i].ID, r.Selects(), r.Does())
		}
	}
	return b.String()
}

// completeRule completes what a rule of --fail-on begins with: a metric, with the colon that its threshold follows.
func completeRule(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list := []string{"structure:error"}
	for _, id := range metricIDs() {
		list = append(list, id+":")
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// parsed are the rules of --fail-on.
func (f *ruleFlags) parsed() ([]policy.Rule, error) {
	var list []policy.Rule
	for _, text := range f.failOn {
		r, err := policy.ParseFailOn(text)
		if err != nil {
			return nil, usagef("--fail-on: %w", err)
		}
		list = append(list, r)
	}
	if err := policy.Check(list, metricFacts()); err != nil {
		return nil, usagef("--fail-on: %w", err)
	}
	return list, nil
}

// noiseBlock is what --noise names; nil if it names nothing.
func (f *ruleFlags) noiseBlock() (*diff.Noise, error) {
	if f.noise == "" {
		return nil, nil
	}
	return readNoise(f.noise)
}

// policyFile reads a policy file; without a path there is none. What is wrong with it is wrong usage.
func policyFile(path string) (*policy.Policy, error) {
	if path == "" {
		return nil, nil
	}
	b, err := input.ReadText(path)
	if err != nil {
		return nil, usagef("policy: %w", err)
	}
	return policyText(path, b, func(name string) ([]byte, error) {
		return input.ReadText(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
	})
}

// policyText reads a policy; name stands in errors, and open reads what it extends, named as from its folder.
func policyText(name string, b []byte, open func(string) ([]byte, error)) (*policy.Policy, error) {
	p, err := policy.Read(bytes.NewReader(b), metricFacts(), open)
	if err != nil {
		return nil, usagef("policy %s: %w", name, err)
	}
	return p, nil
}

// readNoise reads the noise block of --noise.
func readNoise(path string) (*diff.Noise, error) {
	b, err := input.ReadText(path)
	if err != nil {
		return nil, usagef("--noise: %w", err)
	}
	return noiseText(path, b)
}

// noiseText reads a noise block; name stands in errors.
func noiseText(name string, b []byte) (*diff.Noise, error) {
	n, err := diff.ReadNoise(bytes.NewReader(b))
	if err != nil {
		return nil, usagef("--noise %s: %w; explain policy init writes one", name, err)
	}
	return n, nil
}

// metricFacts is what the rules of a comparison are held to.
func metricFacts() []policy.MetricFacts {
	var list []policy.MetricFacts
	for _, m := range analyze.Metrics() {
		list = append(list, policy.MetricFacts{
			ID: m.ID, Unit: m.Unit, Better: report.Direction(m.Better),
			Scale: report.Scale(m.Scale), Stats: m.Stats, Labels: m.Labels,
		})
	}
	return list
}
