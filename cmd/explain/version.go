package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
)

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
		from = builtFrom([]debug.BuildSetting{{Key: "vcs.revision", Value: commit}, {Key: "vcs.time", Value: commitDay}})
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
