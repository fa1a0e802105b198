// Package help lays out the output of --help, in groups and in the width of the terminal, and explains errors about
// unknown flags and invalid values. It knows names of flags but no command.
package help

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// groups are the flags of all commands, in the order in which help lists them. One flag means one thing everywhere.
var groups = []struct{ title, flags string }{
	{"", ""}, // flags of no other group
	{"Sides", "base head baseline-artifact baseline-branch baseline-file base-commit artifact comparison expect merge " +
		"rank role index of good bad name resume checkout study"},
	{"Evidence", "ncu server-log prometheus evidence gpu-price on"},
	{"What is analysed", "unit window from to steady phase batch device phase-map kernel-map min-share names no-nvtx-kernel-map " +
		"no-kernel-percentiles nvtx-coverage-warn-threshold"},
	{"Rules", "fail-on policy preset noise threshold tolerance policy-ref exit-on override-label max-failures"},
	{"What would change", "speedup remove overlap host-free no-sync graph"},
	{"GitHub", "comment comment-key report-url pull-request status allow-unsafe"},
	{"Server", "url engine model dtype port health-timeout api-key-env cacert insecure"},
	{"Requests", "load-mode dataset prompt-tokens output-tokens temperature seed num-requests duration rate concurrency " +
		"warmup-requests timeout chat slo-ttft slo-tpot slo-e2e"},
	{"Recording", "mode delay nvtx ready ready-timeout warmup client trace graph-trace cuda-memory repeat pair overhead " +
		"host gpu-metrics until-decided budget cooldown max-captures with-ncu ncu-kernels ncu-set " +
		"nvtx-include profiler-path no-profiler nsys grace"},
	{"History", "store history history-branch history-repository repository branch commit time workload tag ref " +
		"ref-report limit before keep reason expires metric least codeowners"},
	{"Output", "out format top all-rows open perfetto ncu-targets force dry-run no-report print-schema"},
	{"Everywhere", "max-memory color quiet verbose version help"},
}

// window are the flags that say which part of a trace is analysed. Many commands have them; help of all but report
// names them in one line, and the topic window explains them.
const window = "unit window from to steady phase-map kernel-map"

// rare are flags that action.yml sets, that only users of older tools know, or that few need: help --all lists them.
const rare = "nsys-arg environment artifact base-commit baseline-file baseline-artifact baseline-branch history-artifact history-branch history-repository " +
	"comment comment-key pull-request status report-url allow-unsafe accept-by override-label comparison " +
	"no-kernel-percentiles no-nvtx-kernel-map nvtx-coverage-warn-threshold threshold print-schema " +
	"profiler-path nvtx-include ncu-kernels ncu-set dtype " +
	"ref ref-report least link codeowners min-share grace cooldown cuda-memory graph-trace nvtx tolerance seed"

// Group is the title of the group that a flag stands in; empty for one that is in none.
func Group(flag string) string {
	for _, g := range groups {
		if slices.Contains(strings.Fields(g.flags), flag) {
			return g.title
		}
	}
	return ""
}

// Install makes a command and all below it print help in this package's layout; width says how many columns there are.
func Install(root *cobra.Command, width func() int) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = write(cmd.OutOrStdout(), cmd, width(), false) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { return write(cmd.OutOrStderr(), cmd, width(), false) })
	root.SetFlagErrorFunc(flagError)
	all := false
	cmd := &cobra.Command{
		Use:    "help [COMMAND]",
		Short:  "Print the help of a command",
		Hidden: true,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var names []string
			if at, _, err := root.Find(args); err == nil {
				for _, c := range at.Commands() {
					if c.IsAvailableCommand() {
						names = append(names, c.Name()+"\t"+c.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || cmd == root && len(args) > 0 || len(rest) > 0 {
				name := strings.Join(args, " ")
				if near := root.SuggestionsFor(args[0]); len(near) > 0 {
					return usage.Errorf("there is no command %q; did you mean %q?", name, near[0])
				}
				return usage.Errorf("there is no command %q; explain help lists them", name)
			}
			if cmd.Name() == windowTopic {
				return writeWindow(cmd.OutOrStdout(), root, width())
			}
			return write(cmd.OutOrStdout(), cmd, width(), all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list every flag, including rarely used ones")
	root.SetHelpCommand(cmd)
	root.AddCommand(&cobra.Command{Use: windowTopic, Short: "Which part of a trace is analysed", Hidden: true})
}

// windowTopic is what help calls the flags of the window.
const windowTopic = "window"

// writeWindow explains the flags that many commands share.
func writeWindow(w io.Writer, root *cobra.Command, width int) error {
	set := pflag.NewFlagSet("window", pflag.ContinueOnError)
	set.SortFlags = false
	for _, name := range strings.Fields(window) {
		set.AddFlag(root.Flags().Lookup(name)) // which has those of report
	}
	_, err := io.WriteString(w, reflow("Which part of a trace is analysed, and what counts as one step. Commands that read "+
		"traces take these:\n\n", width)+
		set.FlagUsagesWrapped(width))
	return err
}

// write prints the help of one command, with all its flags or with those that most people need.
func write(w io.Writer, cmd *cobra.Command, width int, all bool) error {
	groups := Flags(cmd) // before the line of usage, which says [flags]
	var b strings.Builder
	section := func(title string) { b.WriteString("\n" + title + ":\n") }
	text := cmp.Or(cmd.Long, cmd.Short)
	b.WriteString(reflow(strings.TrimSpace(text), width))
	section("Usage")
	if cmd.Runnable() {
		b.WriteString("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " COMMAND\n")
	}
	if cmd.HasExample() {
		section("Examples")
		b.WriteString(cmd.Example + "\n")
	}
	writeCommands(&b, cmd)
	if !cmd.HasParent() && !all {
		b.WriteString("\nexplain help COMMAND lists the flags of a command; those of \"explain TRACE\" are report's.\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	left := 0
	for _, g := range groups {
		shown, text := g.Flags, ""
		if !all {
			var folded int
			var elsewhere []string
			shown, folded, elsewhere = common(cmd, g.Flags)
			left += folded
			if len(elsewhere) > 0 {
				text = "      " + strings.Join(elsewhere, " ") + "\n          explained by: explain help window\n"
			}
		}
		if shown.HasAvailableFlags() {
			text += shown.FlagUsagesWrapped(width)
		}
		if text != "" {
			section(g.Title)
			b.WriteString(text)
		}
	}
	if left > 0 {
		fmt.Fprintf(&b, "\n%s that few need: %s help%s --all\n", wording.Count(left, "more flag"), cmd.Root().Name(),
			strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// reflow breaks the lines of paragraphs anew, so that none is wider than width; lines with an indent stay as they are.
func reflow(text string, width int) string {
	var b strings.Builder
	paragraph := ""
	end := func() {
		for _, l := range wording.Wrap(paragraph, width) {
			b.WriteString(l + "\n")
		}
		paragraph = ""
	}
	for l := range strings.Lines(text) {
		if l == "\n" || l[0] == ' ' || l[0] == '\t' {
			end()
			b.WriteString(strings.TrimSuffix(l, "\n") + "\n")
			continue
		}
		paragraph += l
	}
	end()
	return b.String()
}

// writeCommands lists the commands below a command: by their groups, if it has any, in the order of its code.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	groups := cmd.Groups()
	if len(groups) == 0 {
		groups = []*cobra.Group{{Title: "Commands:"}}
	}
	for _, g := range groups {
		b.WriteString("\n" + g.Title + "\n")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.GroupID == g.ID {
				fmt.Fprintf(b, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
}

// common are the flags that most people need of a command, the number of those left out because they are rare, and
// those of the window, which help of report alone explains.
func common(cmd *cobra.Command, flags *pflag.FlagSet) (set *pflag.FlagSet, left int, elsewhere []string) {
	set = pflag.NewFlagSet(cmd.Name(), pflag.ContinueOnError)
	set.SortFlags = false
	flags.VisitAll(func(f *pflag.Flag) {
		switch {
		case slices.Contains(strings.Fields(rare), f.Name):
			left++
		case cmd.HasParent() && cmd.Name() != "report" && slices.Contains(strings.Fields(window), f.Name):
			elsewhere = append(elsewhere, "--"+f.Name)
		default:
			set.AddFlag(f)
		}
	})
	return set, left, elsewhere
}

// FlagGroup is a group of a command's flags with its title.
type FlagGroup struct {
	Title string
	Flags *pflag.FlagSet
}

// Flags are the visible flags of a command by group, its own and those of the program; flags of no group come first.
func Flags(cmd *cobra.Command) []FlagGroup {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	sets := map[string]*pflag.FlagSet{}
	add := func(f *pflag.Flag) {
		title := Group(f.Name)
		if title == "Requests" && cmd.Flags().Lookup("load-mode") == nil { // a time of capture, say
			title = "Recording"
		}
		if sets[title] == nil {
			sets[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			sets[title].SortFlags = false
		}
		if !f.Hidden && sets[title].Lookup(f.Name) == nil {
			sets[title].AddFlag(f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	var list []FlagGroup
	for _, g := range groups {
		if s := sets[g.title]; s != nil && s.HasAvailableFlags() {
			list = append(list, FlagGroup{cmp.Or(g.title, "Flags"), s})
		}
	}
	return list
}
