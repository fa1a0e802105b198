package guide

import (
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report/schema"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

// newSchema is explain doc schema.
func newSchema(e *cmdenv.Env) *cobra.Command {
	return cmdenv.Printer(e, "schema", schema.Names(), schema.Text, &cobra.Command{
		Use:     "schema [NAME]",
		Short:   "Print the JSON Schema of a file that explain writes or reads",
		Example: "  explain doc schema report > report.schema.json",
	})
}
