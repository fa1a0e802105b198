package main

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/schema"
)

func newSchema(e *env) *cobra.Command {
	return &cobra.Command{
		Use:       "schema [NAME]",
		Short:     "Print the JSON Schema of a file that explain writes or reads",
		Example:   "  explain schema report > report.schema.json",
		ValidArgs: schema.Names(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("name one schema: %s", strings.Join(schema.Names(), ", "))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			text, ok := schema.Text(args[0])
			if !ok {
				return usagef("no schema %q; there are: %s", args[0], strings.Join(schema.Names(), ", "))
			}
			_, err := io.WriteString(e.Out, text)
			return err
		},
	}
}
