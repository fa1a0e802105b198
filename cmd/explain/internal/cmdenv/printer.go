package cmdenv

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Printer returns a command that prints one of several texts by its name; what is the noun for them.
func Printer(
	e *Env, what string, names []string, text func(name string) (string, bool), cmd *cobra.Command,
) *cobra.Command {
	cmd.ValidArgs = names
	cmd.Args = Args(1, 1, "name one "+what+": "+strings.Join(names, ", "))
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, ok := text(args[0])
		if !ok {
			return usage.Errorf("no %s %q; there are: %s", what, args[0], strings.Join(names, ", "))
		}
		_, err := io.WriteString(e.Out, t)
		return err
	}
	return cmd
}

// MetricIDs are the ids of all metrics, for completion.
func MetricIDs() []string {
	return lists.Map(analyze.Metrics(), func(m analyze.MetricInfo) string { return m.ID })
}
