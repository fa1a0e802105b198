package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/schema"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// newSchema is explain doc schema.
func newSchema(e *env) *cobra.Command {
	return newPrinter(e, "schema", schema.Names(), schema.Text, &cobra.Command{
		Use:     "schema [NAME]",
		Short:   "Print the JSON Schema of a file that explain writes or reads",
		Example: "  explain doc schema report > report.schema.json",
	})
}

// newPrinter returns a command that prints one of several texts by its name; what is the noun for them.
func newPrinter(
	e *env, what string, names []string, text func(name string) (string, bool), cmd *cobra.Command,
) *cobra.Command {
	cmd.ValidArgs = names
	cmd.Args = cmdenv.Args(1, 1, "name one "+what+": "+strings.Join(names, ", "))
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		t, ok := text(args[0])
		if !ok {
			return usagef("no %s %q; there are: %s", what, args[0], strings.Join(names, ", "))
		}
		_, err := io.WriteString(e.Out, t)
		return err
	}
	return cmd
}
