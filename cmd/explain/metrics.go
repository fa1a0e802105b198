package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
)

func newMetrics(e *env) *cobra.Command {
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
		Example: `  explain metrics
  explain metrics gpu.
  explain metrics --format json | jq '.[].id'`,
		Args: cobra.MatchAll(func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("one prefix at a time")
			}
			return nil
		}),
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
					return usagef("no metric starts with %q; run explain metrics for the list", args[0])
				}
			}
			switch format {
			case "json":
				enc := json.NewEncoder(e.Out)
				enc.SetIndent("", "  ")
				enc.SetEscapeHTML(false)
				return enc.Encode(list)
			case "text":
				return printMetrics(e, list)
			}
			return usagef("--format %s is unknown; it is text or json", format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func printMetrics(e *env, list []analyze.MetricInfo) error {
	for i, m := range list {
		labels := []string{}
		for _, l := range m.Labels {
			if l == "" {
				l = "–"
			}
			labels = append(labels, l)
		}
		space := "\n"
		if i == 0 {
			space = ""
		}
		scale := m.Scale
		if m.Stats {
			scale += " with statistics"
		}
		_, err := fmt.Fprintf(e.Out, "%s%s\n  unit %s, better %s, %s, %s, %s; labels %s; section %s\n%s", space,
			m.ID, m.Unit, m.Better, m.Assume, scale, m.Lifecycle,
			strings.Join(labels, " | "), strings.Join(m.Sections, ", "), wrap(m.Meaning, 96, "  "))
		if err != nil {
			return err
		}
	}
	return nil
}

// wrap breaks text into lines of at most width runes, each with an indent.
func wrap(text string, width int, indent string) string {
	var b strings.Builder
	line := 0
	for _, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case line == 0:
			b.WriteString(indent)
			line = len(indent)
		case line+1+n > width:
			b.WriteString("\n" + indent)
			line = len(indent)
		default:
			b.WriteByte(' ')
			line++
		}
		b.WriteString(word)
		line += n
	}
	b.WriteByte('\n')
	return b.String()
}
