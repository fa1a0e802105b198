package help

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func sample() *cobra.Command {
	root := &cobra.Command{Use: "explain", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
	cmd := &cobra.Command{Use: "diff BASE HEAD", Short: "Compare", RunE: func(*cobra.Command, []string) error { return nil }}
	cmd.Flags().String("format", "", "print this `FORMAT`")
	cmd.Flags().Int("top", 30, "rows of ranked tables, `N` at most")
	cmd.Flags().Duration("from", 0, "analyse from this `TIME`")
	cmd.Flags().String("old", "", "not shown")
	_ = cmd.Flags().MarkHidden("old")
	root.PersistentFlags().Func("color", "colour: `WHEN`", func(string) error { return usage.Errorf("is unknown; it is one of auto, always, never") })
	Renamed(cmd, map[string]string{"top-kernels": "top"})
	root.AddCommand(cmd)
	Install(root, func() int { return 80 })
	return root
}

func TestFlagErrors(t *testing.T) {
	for line, want := range map[string]string{
		"diff --formt md":      "unknown flag: --formt; did you mean --format?",
		"diff --xyzzy":         "unknown flag: --xyzzy",
		"diff --top x":         "--top x: not a whole number",
		"diff --from 5":        "--from 5: not a time; write it with its unit, such as 1.5s or 200ms",
		"diff --color red":     "--color red is unknown; it is one of auto, always, never",
		"help dif":             `there is no command "dif"; did you mean "diff"?`,
		"help nothing at all":  `there is no command "nothing at all"; explain help lists them`,
		"diff --top-kernels y": "--top y: not a whole number",
	} {
		root := sample()
		root.SetArgs(strings.Fields(line))
		err := root.Execute()
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestHelp: groups in their order, hidden flags left out, and the same by help, --help and on any level.
func TestHelp(t *testing.T) {
	var texts []string
	for _, line := range []string{"help diff", "diff --help"} {
		root := sample()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(strings.Fields(line))
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, out.String())
	}
	if texts[0] != texts[1] {
		t.Errorf("%s\nand\n%s", texts[0], texts[1])
	}
	at := -1
	for _, part := range []string{"Compare\n", "Usage:\n  explain diff BASE HEAD [flags]\n", "\nWhat is analysed:\n", "--from\n          explained by: explain help window\n",
		"\nOutput:\n", "--format FORMAT", "--top N", "\nEverywhere:\n", "--help", "--color WHEN"} {
		i := strings.Index(texts[0], part)
		if i <= at {
			t.Errorf("%q is at %d, after %d, in\n%s", part, i, at, texts[0])
		}
		at = i
	}
	if strings.Contains(texts[0], "--old") || strings.Contains(texts[0], "\nFlags:") || strings.Contains(texts[0], "top-kernels") {
		t.Errorf("hidden flags in\n%s", texts[0])
	}
}
