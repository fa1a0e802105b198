package present

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
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

// What a finding is worth is of one step if there are steps, else of the window.
func TestWorthNamesItsFrame(t *testing.T) {
	for want, w := range map[string]*report.Worth{
		"": nil,
		" (worth up to 467.7 ms of the 5 s window)":           {Time: 467_700_000, Of: 5_000_000_000},
		" (worth up to 2 ms of the 10 ms step)":               {Time: 8_000_000, Of: 40_000_000, Units: 4, Replayed: true},
		" (worth up to 2 ms of the 10 ms step, not replayed)": {Time: 8_000_000, Of: 40_000_000, Units: 4},
		" (25.0 % of the batch)":                              {Time: 1, Of: 4, Frame: "batch"},
	} {
		if got := worth(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
