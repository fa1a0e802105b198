package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
)

func newVersion(e *env) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(e.Out, "explain %s (%s %s/%s, writes %s)\n", versionText(), runtime.Version(),
				runtime.GOOS, runtime.GOARCH, report.SchemaID)
			return err
		},
	}
}

// version is set by the linker in releases (-ldflags "-X main.version=v1.2.3"); otherwise it comes from the build.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
