package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
)

func newVersion(w *world) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(w.Out, "explain %s (%s %s/%s, writes %s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH, report.SchemaID)
			return err
		},
	}
}
