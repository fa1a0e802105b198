package ci

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate"
)

// print writes the comparison in the requested format. In GitHub Actions it keeps the runner from reading a line as a
// workflow command.
func (f *gateFlags) print(e *cmdenv.Env, c *comparison.Comparison, inActions bool) error {
	var b strings.Builder
	if f.format == "" && f.analysis.Quiet {
		return nil
	}
	if err := output.PrintComparison(&b, c, f.format, render.TerminalOptions{Color: !inActions && e.Coloured()}); err != nil {
		return err
	}
	if f.out != "" && (f.format == "" || f.format == "text") {
		fmt.Fprintf(&b, "\nWrote %s: comparison.json, diff.html, comment.md, summary.md, gate.junit.xml, reports/\n",
			render.Visible(f.out))
	}
	text := b.String()
	if inActions {
		text = gate.Defuse(text)
	}
	_, err := io.WriteString(e.Out, text)
	return err
}

// hardware returns the GPUs of the head: "2 × NVIDIA H100".
func hardware(heads []*report.Report) string {
	n := map[string]int{}
	for _, g := range heads[0].Environment.GPUs {
		if g.Name != nil {
			n[*g.Name]++
		}
	}
	counted := func(name string) string { return fmt.Sprintf("%d × %s", n[name], name) }
	return strings.Join(lists.Map(slices.Sorted(maps.Keys(n)), counted), ", ")
}

// reproduce returns the shell command that repeats the comparison: in GitHub Actions from the uploaded folder, with the
// policy of a checkout of the base.
func (f *gateFlags) reproduce(uploaded bool, bases int) string {
	base, head := f.base, f.head
	if uploaded {
		base, head = nil, []string{"reports/*/report.json"}
		if bases > 0 {
			base = []string{"base/*/report.json"}
		}
	}
	parts := []string{"explain gate"}
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				parts = append(parts, "--"+flag+" "+wording.ShellWord(v))
			}
		}
	}
	add("base", base...)
	if !uploaded {
		add("baseline-file", f.baselineFile)
	}
	add("head", head...)
	add("fail-on", f.rules.FailOn...)
	add("policy", f.rules.Policy)
	add("noise", f.rules.Noise)
	if !uploaded {
		if add("history", f.rules.Past.Name()); f.rules.Past.Store != "" {
			for _, name := range []string{"history-branch", "history-repository", "base-commit"} {
				add(name, f.analysis.Given(name))
			}
		}
		for _, name := range []string{"window", "from", "to", "phase-map", "kernel-map"} { // of traces
			add(name, f.analysis.Given(name))
		}
		if f.analysis.Given("steady") == "true" {
			parts = append(parts, "--steady")
		}
	}
	add("unit", f.analysis.Unit)
	add("phase", f.phase)
	add("batch", f.analysis.Given("batch"))
	return strings.Join(parts, " ")
}
