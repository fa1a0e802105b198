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

// The number of a finding is not said twice where it is what the finding is worth.
func TestBriefSaysItsNumberOnce(t *testing.T) {
	for ns, want := range map[float64]string{
		467.7e6: " (worth up to 467.7 ms of the 5 s window)",
		12e6:    " (12 ms; worth up to 467.7 ms of the 5 s window)",
	} {
		f := report.Finding{Title: "Rank 3 arrives last", Evidence: []report.MetricRef{{ID: "rank.first_time"}},
			Worth: &report.Worth{Time: 467_700_000, Of: 5_000_000_000}}
		r := &report.Report{Metrics: []report.Metric{{ID: "rank.first_time", Value: &ns, Unit: report.Nanoseconds}}}
		got := ""
		for _, s := range brief(NewView(r), f) {
			got += s.Text
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
