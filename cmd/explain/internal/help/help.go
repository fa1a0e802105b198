// Package help lays out what --help prints, in groups and in the width of the terminal, and says what was meant where a
// flag is not known or its value is not understood. It knows names of flags and no command.
package help

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// groups are the flags of all commands, in the order in which help lists them. One flag means one thing everywhere.
var groups = []struct{ title, flags string }{
	{"Sides", "base head baseline-artifact baseline-branch baseline-file base-commit artifact comparison expect merge " +
		"rank role index of good bad name resume"},
	{"Evidence", "ncu server-log prometheus evidence on"},
	{"What is analysed", "unit window from to steady phase batch phase-map kernel-map min-share names no-nvtx-kernel-map " +
		"no-kernel-percentiles nvtx-coverage-warn-threshold"},
	{"Rules", "fail-on policy preset noise threshold tolerance policy-ref exit-on override-label max-failures " +
		"fail-on-errors"},
	{"What would change", "speedup remove overlap host-free no-sync graph"},
	{"GitHub", "comment comment-key report-url pull-request status allow-unsafe"},
	{"Server", "url engine model dtype port health-timeout api-key-env cacert insecure"},
	{"Requests", "load-mode dataset prompt-tokens output-tokens temperature seed num-requests duration rate concurrency " +
		"warmup-requests timeout chat stream slo-ttft slo-tpot slo-e2e"},
	{"Recording", "mode delay nvtx ready ready-timeout warmup client trace graph-trace cuda-memory repeat pair overhead " +
		"host gpu-metrics until-decided budget cooldown max-captures with-ncu ncu-kernels ncu-set " +
		"nvtx-include profiler-path no-profiler nsys grace"},
	{"History", "store history history-branch history-repository repository branch commit time workload tag ref " +
		"ref-report limit before keep reason expires metric least checkout codeowners"},
	{"Output", "out format top top-kernels all-rows open perfetto force dry-run no-report print-schema"},
	{"Everywhere", "max-memory color quiet verbose version help"},
}

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
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { _ = write(cmd.OutOrStdout(), cmd, width()) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { return write(cmd.OutOrStderr(), cmd, width()) })
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(&cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
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
			return cmd.Help()
		},
	})
}

// write prints the help of one command.
func write(w io.Writer, cmd *cobra.Command, width int) error {
	groups := Flags(cmd) // before the line of usage, which says [flags]
	var b strings.Builder
	section := func(title string) { b.WriteString("\n" + title + ":\n") }
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	b.WriteString(strings.TrimSpace(text) + "\n")
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
	if cmd.HasAvailableSubCommands() {
		section("Commands")
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "  %-*s %s\n", cmd.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	for _, g := range groups {
		section(g.Title)
		b.WriteString(g.Flags.FlagUsagesWrapped(width))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// FlagGroup is some flags of a command under a title.
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
	if s := sets[""]; s != nil && s.HasAvailableFlags() {
		list = append(list, FlagGroup{"Flags", s})
	}
	for _, g := range groups {
		if s := sets[g.title]; s != nil && s.HasAvailableFlags() {
			list = append(list, FlagGroup{g.title, s})
		}
	}
	return list
}
