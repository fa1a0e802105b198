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

// ruleFlags are the flags with the rules for judging a comparison.
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

// defaultRules lists, one a line, the rules that apply without --policy and --fail-on.
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

// completeRule completes the beginning of a rule of --fail-on: a metric and the colon before its threshold.
func completeRule(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list := []string{"structure:error"}
	for _, id := range metricIDs() {
		list = append(list, id+":")
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// parsed returns the rules of --fail-on.
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

// noiseBlock reads the file of --noise; nil if the flag is empty.
func (f *ruleFlags) noiseBlock() (*diff.Noise, error) {
	if f.noise == "" {
		return nil, nil
	}
	return readNoise(f.noise)
}

// policyFile reads a policy file; nil if the path is empty. Mistakes in the file are usage errors.
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

// policyText parses a policy. name appears in errors; open reads the files that it extends, by paths relative to its
// folder.
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

// noiseText parses a noise block; name appears in errors.
func noiseText(name string, b []byte) (*diff.Noise, error) {
	n, err := diff.ReadNoise(bytes.NewReader(b))
	if err != nil {
		return nil, usagef("--noise %s: %w; explain policy init writes one", name, err)
	}
	return n, nil
}

// metricFacts returns the properties of all metrics, which rules are checked with.
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
