package policy

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

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

// defaultPreset is what is judged where nobody wrote a policy.
const defaultPreset = "llm-serving"

// PresetText is a preset as the policy file that it stands for.
func PresetText(name string) (text string, ok bool) {
	if !slices.Contains(PresetNames(), name) {
		return "", false
	}
	b, err := presets.ReadFile("presets/" + name + ".yml")
	return strings.TrimSpace(string(b)) + "\n", err == nil
}
