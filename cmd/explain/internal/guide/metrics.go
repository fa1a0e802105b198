package guide

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// newMetrics is explain doc metrics.
func newMetrics(e *cmdenv.Env) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "metrics [PREFIX]",
		Short: "List every metric with its unit and meaning",
		Args:  cmdenv.Args(0, 1, "one prefix at a time"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return cmdenv.MetricIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			list := analyze.Metrics()
			if len(args) == 1 {
				kept := list[:0]
				for _, m := range list {
					if strings.HasPrefix(m.ID, args[0]) {
						kept = append(kept, m)
					}
				}
				if list = kept; len(list) == 0 {
					if id, statistic, ok := docs.Metric(args[0]); ok {
						_, err := io.WriteString(e.Out, docs.MetricText(id, statistic))
						return err
					}
					return usage.Errorf("no metric starts with %q; run explain doc metrics for the list", args[0])
				}
			}
			if err := cmdenv.Format(format, []string{"text", "json"}); err != nil {
				return err
			}
			if format == "json" {
				return cmdenv.JSON(e.Out, list)
			}
			texts := lists.Map(list, func(m analyze.MetricInfo) string { return docs.MetricText(m, "") })
			_, err := io.WriteString(e.Out, strings.Join(texts, "\n"))
			return err
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "print this `FORMAT`: text or json")
	return cmd
}
