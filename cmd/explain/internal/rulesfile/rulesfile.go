// Package rulesfile is what says how a comparison is judged: policies, noise floors and the flags that name them, for
// every command that compares.
package rulesfile

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/historycmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/policy"
)

// Flags are the flags with the rules for judging a comparison.
type Flags struct {
	FailOn []string         // --fail-on, not yet parsed
	Policy string           // a file, empty for none
	Noise  string           // a file, empty for none
	Past   historycmd.Flags // where earlier runs are
}

// Register adds the flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.FailOn, "fail-on", nil,
		"fail if this `RULE` is broken, instead of the default rules: 'unit.time.p50:+3%,+200us' (repeatable; the last rule that selects a number judges it)")
	fl.StringVar(&f.Policy, "policy", "",
		"judge by this policy `FILE`, or preset, instead of the default rules: explain policy --help")
	fl.StringVar(&f.Noise, "noise", "", "take noise floors from this `FILE` of explain policy init")
	f.Past.Register(fl)
	_ = cmd.RegisterFlagCompletionFunc("fail-on", Complete)
	_ = cmd.MarkFlagFilename("policy", "yml", "yaml", "json")
	_ = cmd.MarkFlagFilename("noise", "json")
}

// RegisterPair adds the flags with the rules for judging a pair of captures.
func (f *Flags) RegisterPair(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.FailOn, "fail-on", nil, "with --pair: fail if this `RULE` is broken, see explain diff")
	_ = cmd.RegisterFlagCompletionFunc("fail-on", Complete)
	fl.StringVar(&f.Policy, "policy", "", "with --pair: judge by this policy `FILE`")
	fl.StringVar(&f.Noise, "noise", "", "with --pair: noise floors from this `FILE` of explain policy init")
}

// Defaults lists, one a line, the rules that apply without --policy and --fail-on.
func Defaults() string {
	var b strings.Builder
	rules := policy.Default().Rules
	for i := range rules {
		for _, r := range rules[i].Each() {
			fmt.Fprintf(&b, "  %-11s %s %s\n", rules[i].ID, r.Selects(), r.Does())
		}
	}
	return b.String()
}

// Complete completes the beginning of a rule of --fail-on: a metric and the colon before its threshold.
func Complete(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	list := lists.Map(cmdenv.MetricIDs(), func(id string) string { return id + ":" })
	list = append([]string{"structure:error"}, list...)
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// Parsed returns the rules of --fail-on.
func (f *Flags) Parsed() ([]policy.Rule, error) {
	var list []policy.Rule
	for _, text := range f.FailOn {
		r, err := policy.ParseFailOn(text)
		if err != nil {
			return nil, usage.Errorf("--fail-on: %w", err)
		}
		list = append(list, r)
	}
	if err := policy.Check(list, analyze.Metrics()); err != nil {
		return nil, usage.Errorf("--fail-on: %w", err)
	}
	return list, nil
}

// NoiseBlock reads the file of --noise; nil if the flag is empty.
func (f *Flags) NoiseBlock() (*diff.Noise, error) {
	if f.Noise == "" {
		return nil, nil
	}
	b, err := input.ReadText(f.Noise)
	if err != nil {
		return nil, usage.Errorf("--noise: %w", err)
	}
	return NoiseText(f.Noise, b)
}

// Policy reads a policy file, or a preset; nil if the path is empty. Mistakes in the file are usage errors.
func Policy(path string) (*policy.Policy, error) {
	if path == "" {
		return nil, nil
	}
	b, err := input.ReadText(path)
	if text, ok := policy.PresetText(path); ok && !input.Exists(path) {
		b, err = []byte(text), nil
	}
	if err != nil {
		return nil, usage.Errorf("policy: %w", err)
	}
	return PolicyText(path, b, func(name string) ([]byte, error) {
		return input.ReadText(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)))
	})
}

// PolicyText parses a policy. name appears in errors; open reads the files that it extends, by paths relative to its
// folder.
func PolicyText(name string, b []byte, open func(string) ([]byte, error)) (*policy.Policy, error) {
	p, err := policy.Read(bytes.NewReader(b), analyze.Metrics(), open)
	if err != nil {
		return nil, usage.Errorf("policy %s: %w", name, err)
	}
	return p, nil
}

// NoiseText parses a noise block; name appears in errors.
func NoiseText(name string, b []byte) (*diff.Noise, error) {
	n, err := diff.ReadNoise(bytes.NewReader(b))
	if err != nil {
		return nil, usage.Errorf("--noise %s: %w; explain policy init writes one", name, err)
	}
	return n, nil
}
