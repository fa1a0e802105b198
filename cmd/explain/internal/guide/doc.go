package guide

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/schema"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func newDoc(e *cmdenv.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doc [NAME]",
		Short: "Print a page of the documentation, or look up a name",
		Long: `doc prints a page: a section of the report, with definitions, metrics, tables, limits and what to do
about its findings; how diff tells a change from noise; and everything else about explain.

Any other NAME that an output shows is looked up: a command, a metric with or without a statistic, a
finding, a warning, a column, a class, a reason, an exit code, an environment variable, a CUDA call,
a flag. Other words are searched in the text of all pages.`,
		Example: `  explain doc                  the list of pages
  explain doc idle             one of them
  explain doc gpu_idle         a finding
  explain doc unit.time.p50    a metric and its statistic
  explain doc wide_interval    a reason
  explain doc --fail-on        a flag
  explain doc straggler        a word of the pages`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			list := names(func(p docs.Page) string { return p.Name + "\t" + p.Title })
			slices.Sort(list)
			return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listPages(e.Out)
			}
			return explained(e.Out, cmd.Root(), strings.Join(args, " "))
		},
	}
	cmd.AddCommand(newMetrics(e), newSchema(e))
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
			if found := flagNotes(cmd.Root(), unknown.GetSpecifiedName()); len(found) > 0 {
				return printNotes(e.Out, found)
			}
		}
		return cmd.Root().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// note is what is said of a name, and where there is more.
type note struct{ text, more string }

func printNotes(w io.Writer, list []note) error {
	for _, n := range list {
		if _, err := fmt.Fprintf(w, "%s\n  (%s)\n", n.text, n.more); err != nil {
			return err
		}
	}
	return nil
}

// pageNotes are entries of the documentation.
func pageNotes(entries []docs.Entry) (list []note) {
	for _, found := range entries {
		text := docs.Linked(strings.TrimRight(found.Text, "\n"))
		if !strings.Contains(text, "\n") {
			text = docs.Wrap(text, 96, "")
		}
		list = append(list, note{text, "explain doc " + found.Page})
	}
	return list
}

// explained prints a documentation page, or explains a name: of a command, of anything shown in an output, of a flag.
// For anything else it prints the passages that contain the words.
func explained(w io.Writer, root *cobra.Command, name string) error {
	if name == "mcp" {
		name = "agents" // the page of the command
	}
	if page, ok := docs.ByName(name); ok {
		_, err := io.WriteString(w, docs.Linked(page.Text))
		return err
	}
	var command []note
	if c := commandOf(root, name); c != nil {
		text := fmt.Sprintf("%s: %s\n\n%s", c.CommandPath(), c.Short, strings.TrimSpace(c.Long))
		command = []note{{text, "command: explain help " + name}}
	}
	found := pageNotes(docs.Find(name))
	if len(found) == 0 {
		found = flagNotes(root, name)
	}
	if len(command)+len(found) == 0 {
		if text := docs.Example(name); text != "" {
			_, err := io.WriteString(w, text)
			return err
		}
		found = pageNotes(docs.Search(name))
	}
	if len(command)+len(found) == 0 {
		if near := nearest(root, name); near != "" {
			return usage.Errorf("no entry for %q; did you mean %q? (explain doc lists the pages)", name, near)
		}
		return usage.Errorf("no entry for %q; kernels and NVTX ranges have the names that the program gave them; explain doc lists the pages", name)
	}
	return printNotes(w, append(command, found...))
}

// commandOf returns the command with a name such as "history check"; nil if there is none.
func commandOf(root *cobra.Command, name string) *cobra.Command {
	words := strings.Fields(strings.TrimPrefix(name, "explain "))
	cmd, rest, err := root.Find(words)
	if err != nil || cmd == root || len(rest) > 0 {
		return nil
	}
	return cmd
}

// nearest returns the page, command, finding, metric or table word with the fewest edits from a name; else the words of
// pages that are nearest to its words.
func nearest(root *cobra.Command, name string) string {
	list := lists.Map(root.Commands(), func(c *cobra.Command) string { return c.Name() })
	if near := help.Nearest(name, append(list, names(func(p docs.Page) string { return p.Name })...)); near != "" {
		return near
	}
	words := strings.Fields(strings.ToLower(name))
	for i, w := range words {
		words[i] = help.Corrected(w, docs.Vocabulary())
	}
	if near := strings.Join(words, " "); len(docs.Search(near)) > 0 {
		return near
	}
	return ""
}

// names are those of pages, as written, and of findings, metrics and rows of tables.
func names(written func(docs.Page) string) []string {
	return slices.Concat(lists.Map(docs.Pages(), written), analyze.FindingIDs(), cmdenv.MetricIDs(), docs.Words())
}

// flagNotes are the help of a flag, given with or without its dashes; commands with the same help text share one note.
func flagNotes(root *cobra.Command, name string) (list []note) {
	name = strings.TrimLeft(name, "-")
	type use struct{ text, command string }
	var uses []use
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		f := cmp.Or(c.Flags().Lookup(name), c.PersistentFlags().Lookup(name))
		if f != nil && !f.Hidden {
			value, usage := pflag.UnquoteUsage(f)
			text := strings.TrimSpace("--"+f.Name+" "+value) + "\n" + docs.Wrap(usage, 96, "  ")
			uses = append(uses, use{text, strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), root.Name()))})
		}
		for _, child := range c.Commands() {
			if !child.Hidden {
				walk(child)
			}
		}
	}
	walk(root)
	for _, same := range lists.Groups(uses, func(u use) string { return u.text }) {
		of := lists.Map(same, func(u use) string { return u.command })
		of = slices.DeleteFunc(of, func(c string) bool { return c == "" }) // report is also the root
		if len(of) == 0 {
			of = []string{"COMMAND"}
		}
		list = append(list, note{same[0].text, "flag of " + strings.Join(of, ", ") + ": explain help " + of[0]})
	}
	return list
}

// listPages writes common tasks with their commands, then the name and title of every page by group.
func listPages(w io.Writer) error {
	fmt.Fprintf(w, "I want to …\n  %s\n", strings.ReplaceAll(docs.TaskList(), "\n", "\n  "))
	for _, pages := range lists.Groups(docs.Pages(), func(p docs.Page) string { return p.Group }) {
		fmt.Fprintln(w, pages[0].Group)
		for _, p := range pages {
			fmt.Fprintf(w, "  %-18s %s\n", p.Name, p.Title)
		}
		fmt.Fprintln(w)
	}
	_, err := fmt.Fprintf(w, "Pipelines to copy: explain doc gitlab, jenkins, buildkite, same-runner\n")
	return err
}

// newMetrics is explain doc metrics.
func newMetrics(e *cmdenv.Env) *cobra.Command {
	format := "text"
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
				other := func(m report.MetricDef) bool { return !strings.HasPrefix(m.ID, args[0]) }
				if list = slices.DeleteFunc(list, other); len(list) == 0 {
					if id, statistic, ok := docs.Metric(args[0]); ok {
						_, err := io.WriteString(e.Out, docs.MetricText(id, statistic))
						return err
					}
					return usage.Errorf("no metric starts with %q; run explain doc metrics for the list", args[0])
				}
			}
			if format == "json" {
				return cmdenv.JSON(e.Out, list)
			}
			texts := lists.Map(list, func(m report.MetricDef) string { return docs.MetricText(m, "") })
			_, err := io.WriteString(e.Out, strings.Join(texts, "\n"))
			return err
		},
	}
	cmdenv.Choice(cmd, &format, "format", "print this `FORMAT`", []string{"text", "json"})
	return cmd
}

// newSchema is explain doc schema.
func newSchema(e *cmdenv.Env) *cobra.Command {
	return cmdenv.Printer(e, "schema", schema.Names(), schema.Text, &cobra.Command{
		Use:     "schema [NAME]",
		Short:   "Print the JSON Schema of a file that explain writes or reads",
		Example: "  explain doc schema report > report.schema.json",
	})
}
