package policy

import (
	"embed"
	"slices"
	"strings"
)

// Presets are policy files like any other, so that what one stands for can be printed, copied and changed.
//
//go:embed presets/*.yml
var presets embed.FS

// PresetNames lists the presets that a policy can name.
func PresetNames() []string { return []string{"llm-serving", "strict", "budgets-only"} }

// DefaultPreset is what is judged where nobody wrote a policy.
const DefaultPreset = "llm-serving"

// PresetText is a preset as the policy file that it stands for.
func PresetText(name string) (text string, ok bool) {
	if !slices.Contains(PresetNames(), name) {
		return "", false
	}
	b, err := presets.ReadFile("presets/" + name + ".yml")
	return strings.TrimSpace(string(b)) + "\n", err == nil
}
