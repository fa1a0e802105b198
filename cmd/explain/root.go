package main

import (
	"embed"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/ci"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/guide"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/look"
	"github.com/nsys-llm/explain/cmd/explain/internal/record"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// texts is what the help of each command says, as explain_COMMAND.txt, and below a line "Examples:" what can be typed. A
// command whose text is short or holds values of the code has it there.
//
//go:embed help/*.txt
var texts embed.FS

// describe gives the commands their texts. That each file is of a command is for a test to see.
func describe(root *cobra.Command) {
	files, _ := texts.ReadDir("help")
	for _, f := range files {
		text, _ := texts.ReadFile("help/" + f.Name())
		cmd, _, _ := root.Find(commandOf(f.Name())[1:])
		cmd.Long, cmd.Example, _ = strings.Cut(strings.TrimSuffix(string(text), "\n"), "\n\nExamples:\n")
	}
}

// commandOf is the command of a file of help, by its words.
func commandOf(file string) []string { return strings.Split(strings.TrimSuffix(file, ".txt"), "_") }

// Help lists commands in the order of the code.
func init() { cobra.EnableCommandSorting = false }

func newRoot(e *cmdenv.Env) *cobra.Command {
	e.Version = versionText()
	cmd := &cobra.Command{
		Use:           "explain TRACE",
		Short:         "Explain where the time of an LLM inference trace went",
		Args:          bareArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	look.Bare(cmd, e)
	cmd.SuggestionsMinimumDistance = 2
	cmd.PersistentFlags().Var(help.Choice{Value: &e.Color, Of: cmdenv.Colours}, "color", "colour the output `WHEN`: auto, always, never")
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
	describe(cmd)
	return cmd
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
