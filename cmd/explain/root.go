package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/ci"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/crash"
	"github.com/nsys-llm/explain/cmd/explain/internal/guide"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/look"
	"github.com/nsys-llm/explain/cmd/explain/internal/record"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Help lists commands in the order of the code.
func init() { cobra.EnableCommandSorting = false }

func newRoot(e *cmdenv.Env) *cobra.Command {
	e.Version = versionText()
	cmd := &cobra.Command{
		Use:   "explain TRACE",
		Short: "Explain where the time of an LLM inference trace went",
		Long: `explain reads captures of LLM inference servers: where the time goes, what a change did to it, and
what to do next.

  explain demo                            see a regression, its cause and its page; needs no capture
  explain trace.sqlite --out report/      where does the time go? open report/report.html
  explain ranks/*.sqlite --out report/    one report of a run of many ranks
  explain diff base.sqlite head.sqlite    did a change make the step slower, and why?
  explain doc gpu_idle                    what does a name in an output mean?

A trace is a .sqlite file of "nsys export" (or compressed with gzip or zstd), a .nsys-rep file where
nsys is installed, or a trace of PyTorch's profiler. It is never changed.

Exit codes: 0 done, pass or warn; 1 a rule failed; 2 wrong usage; 3 input that cannot be analysed; 4
inconclusive.`,
		Args:          bareArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	look.Bare(cmd, e)
	cmd.SuggestionsMinimumDistance = 2
	cmd.PersistentFlags().Var(cmdenv.OneOf(&e.Color, cmdenv.Colours), "color", "colour the output `WHEN`: auto, always, never")
	cmdenv.Complete(cmd, "color", cmdenv.Colours)
	addVersion(cmd, e)
	help.Install(cmd, e.Width)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Look", look.Commands(e)},
		{"CI", ci.Commands(e)},
		{"Record", record.Commands(e)},
		{"Help", guide.Commands(e)},
	} {
		cmd.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
			cmd.AddCommand(c)
		}
	}
	cmd.SetCompletionCommandGroupID("Help")
	cmd.CompletionOptions.DisableNoDescFlag = true
	finish(cmd)
	return cmd
}

// finish makes help list the flags of a command, and of all below it, in the order of the code, a panic in one of them
// an error, and an output that a script's empty variable names too.
func finish(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	if do := cmd.RunE; do != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
			defer crash.Caught(cmd.CommandPath(), &err)
			for _, name := range []string{"out", "perfetto", "ncu-targets"} {
				if f := cmd.Flags().Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
					return usage.Errorf("--%s is empty; name a file or a folder", name)
				}
			}
			return do(cmd, args)
		}
	}
	for _, below := range cmd.Commands() {
		finish(below)
	}
}

// bareArgs returns a usage error for a word that is neither a command nor a file, and suggests the nearest command.
func bareArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if _, err := os.Stat(args[0]); errors.Is(err, os.ErrNotExist) && args[0] != "-" &&
		!strings.ContainsAny(args[0], `./\`) {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usage.Errorf("%q is neither a command nor a file; did you mean %q?", args[0], near[0])
		}
		return usage.Errorf("%q is neither a command nor a file", args[0])
	}
	return nil
}

// addCompletion adds cobra's explain completion, which prints to the output that the root has by then. Cobra calls a
// shell that it does not know a call for help, and exits with 0.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	cmd, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	var shells []string
	for _, shell := range cmd.Commands() {
		shell.Args = cmdenv.NoArgs
		shells = append(shells, shell.Name())
	}
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage.Errorf("completion has no script for %q; there are %s", args[0], strings.Join(shells, ", "))
		}
		return cmd.Help()
	}
}

// addVersion adds explain version and explain --version. Cobra's own flag would print its line through a template, and
// the linker keeps every exported method of a program that can run templates.
func addVersion(root *cobra.Command, e *cmdenv.Env) {
	write := func(*cobra.Command, []string) error {
		_, err := io.WriteString(e.Out, versionLine())
		return err
	}
	root.AddCommand(&cobra.Command{
		Use:    "version",
		Short:  "Print the version",
		Hidden: true, // --version says it
		Args:   cmdenv.NoArgs,
		RunE:   write,
	})
	asked := root.Flags().Bool("version", false, "print the version")
	report := root.RunE
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if *asked {
			return write(cmd, args)
		}
		return report(cmd, args)
	}
}

// Releases set these with the linker (-ldflags "-X main.version=v1.2.3"); otherwise they come from the build info.
var version, commit, commitDay string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// versionLine returns the output of explain version and explain --version: the version, and the commit with its day.
func versionLine() string {
	from := ""
	if commit != "" {
		from = builtFrom([]debug.BuildSetting{
			{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: commitDay}})
	} else if info, ok := debug.ReadBuildInfo(); ok {
		from = builtFrom(info.Settings)
	}
	return fmt.Sprintf("explain %s%s (%s %s/%s, writes %s)\n", versionText(), from, runtime.Version(), runtime.GOOS,
		runtime.GOARCH, report.SchemaID)
}

// builtFrom returns the commit of a build and its day, and whether files differ from it; empty if neither is known.
func builtFrom(settings []debug.BuildSetting) string {
	of := map[string]string{}
	for _, s := range settings {
		of[s.Key] = s.Value
	}
	commit, day := of["vcs.revision"], of["vcs.time"]
	if len(commit) < 12 || len(day) < 10 {
		return ""
	}
	text := ", commit " + commit[:12] + " of " + day[:10]
	if of["vcs.modified"] == "true" {
		text += " with changes"
	}
	return text
}
