package policy

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/diff/comparison"
)

//go:embed policy.md
var page string

// Page says how to write a policy, as markdown: its keys with their defaults, and an example.
func Page() string { return page }

// Presets are policy files like any other, so that what one stands for can be printed, copied and changed.
//
//go:embed presets/*.yml
var presets embed.FS

// PresetNames lists the presets that a policy can name: the files of the folder, the default one first.
func PresetNames() []string {
	names := []string{defaultPreset}
	files, _ := fs.Glob(presets, "presets/*.yml") // the pattern is a good one
	for _, f := range files {
		if name := strings.TrimSuffix(path.Base(f), ".yml"); name != defaultPreset {
			names = append(names, name)
		}
	}
	return names
}

// defaultPreset is what is judged if nobody wrote a policy.
const defaultPreset = "llm-serving"

// PresetText is a preset as the policy file that it stands for.
func PresetText(name string) (text string, ok bool) {
	if !slices.Contains(PresetNames(), name) {
		return "", false
	}
	b, err := presets.ReadFile("presets/" + name + ".yml")
	return strings.TrimSpace(string(b)) + "\n", err == nil
}

// ForEvidence is the policy for sides without a trace, of which nobody who chose a preset can expect a step or findings
// of structure: the preset's rules judge what is there.
func (p *Policy) ForEvidence() *Policy {
	own := *p
	own.Rules = nil
	for i, r := range p.Rules {
		if i < p.presetRules {
			if r.Metric == comparison.MetricStructure {
				own.presetRules--
				continue
			}
			r.Optional = true
		}
		own.Rules = append(own.Rules, r)
	}
	return &own
}

// OfPreset reports whether the rule at an index is one of the preset.
func (p *Policy) OfPreset(i int) bool { return i < p.presetRules }

// With is the policy with other rules, none of which are a preset's.
func (p *Policy) With(rules []Rule) *Policy {
	own := *p
	own.Rules, own.presetRules = rules, 0
	return &own
}
