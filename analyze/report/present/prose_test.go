package present

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/doc"
)

// Flags are code together with their value, and nothing of the sentence around them.
func TestProse(t *testing.T) {
	for text, want := range map[string]string{
		"capture with --trace=cuda,nvtx, and briefly":             "--trace=cuda,nvtx",
		"narrow it (--steady, --window nvtx:REGEX) or not":        "--steady|--window nvtx:REGEX",
		"or --from 248.958ms.":                                    "--from 248.958ms",
		"with --phase-map FILE, and":                              "--phase-map FILE",
		"see `nsys profile --sample=none`; vLLM: --enforce-eager": "nsys profile --sample=none|--enforce-eager",
		"--steady If": "--steady",
	} {
		var code []string
		plain := ""
		for _, s := range Prose(text) {
			if plain += s.Text; s.Kind == doc.KindCode {
				code = append(code, s.Text)
			}
		}
		if got := strings.Join(code, "|"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if plain != strings.ReplaceAll(text, "`", "") {
			t.Errorf("%q became %q", text, plain)
		}
	}
}

// A long text is cut behind a sentence, else behind a clause, else behind a word.
func TestClip(t *testing.T) {
	long := strings.Repeat("word ", 60)
	for text, want := range map[string]string{
		"short": "short",
		"One sentence that says quite enough of it. " + long:                            "One sentence that says quite enough of it.",
		strings.Repeat("ab ", 30) + "ab: " + long:                                       strings.Repeat("ab ", 30) + "ab …",
		strings.Repeat("ab ", 25) + "load ahead (more workers, a longer queue, " + long: strings.Repeat("ab ", 25) + "load ahead (more workers, a longer queue …)",
	} {
		if got := clip(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
