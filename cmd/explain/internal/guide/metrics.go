package guide

import (
	"io"
	"slices"
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
		Long: `metrics lists every metric that report.json can hold, or those whose id starts with PREFIX: its
unit, which direction is better, whether repeated captures of the same work agree on it (exact) or
only nearly (noisy), its scale, whether it comes with statistics (min, p50, p90, p99, max, mean,
stddev), and the sets of labels that it comes with: "– | device | device,cause" is once for
everything, once per device, and once per device and cause.

The scale says what happens when the capture is twice as long: a total doubles, or grows; per_unit
is of one unit of work (step), a level is a ratio, a rate, a setting or a size that holds, and an
event is a statistic of single events, such as the median duration of a kernel: these three stay as
they are. A rule of a policy about change needs one of the three.`,
		Example: `  explain doc metrics
  explain doc metrics gpu.
  explain doc metrics --format json | jq '.[].id'`,
		Args: cmdenv.Args(0, 1, "one prefix at a time"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return cmdenv.MetricIDs(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			list := analyze.Metrics()
			if len(args) == 1 {
				other := func(m analyze.MetricInfo) bool { return !strings.HasPrefix(m.ID, args[0]) }
				if list = slices.DeleteFunc(list, other); len(list) == 0 {
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
