package guide

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// A name is a page, else a command, a flag or words of the pages; the nearest name is proposed for what is none.
func TestExplained(t *testing.T) {
	root := &cobra.Command{Use: "explain"}
	e := &cmdenv.Env{Getenv: func(string) string { return "" }}
	root.AddCommand(Commands(e)...)
	for name, want := range map[string]string{
		"statistics": "# ",
		"demo":       "explain demo: Show a regression",
		"--format":   "(flag of doc metrics: explain help doc metrics)",
		"gpu_idle":   "(explain doc gpu_time)",
		"mcp":        "# Agents",
		// What it means comes before how it is judged.
		"unit.time.p50": "unit.time.p50\n  step time: from the start of a unit's first work",
	} {
		var b strings.Builder
		if err := explained(&b, root, name); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v:\n%.400s", name, err, &b)
		}
	}
	var list strings.Builder
	if err := listPages(&list); err != nil || !strings.HasSuffix(list.String(), "\nPipelines to copy: explain doc gitlab, jenkins, buildkite, same-runner\n") {
		t.Errorf("%v: %s", err, &list)
	}
	for name, want := range map[string]string{
		"gpu_idel":             `did you mean "gpu_idle"?`,
		"straglers":            `did you mean "straggler"?`,
		"througput":            `did you mean "throughput"?`,
		"exposed comunication": `did you mean "exposed communication"?`,
		"batc size":            `did you mean "batch size"?`,
		"qwxz":                 "kernels and NVTX ranges have the names that the program gave them",
		"cute::tuple":          "kernels and NVTX ranges have the names that the program gave them",
	} {
		if err := explained(new(strings.Builder), root, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}
