package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/mergecmd"
)

// runOf are the captures of one run that arguments name: several files, a glob, or a folder of them. It is nil where
// they name one capture.
func runOf(args []string) ([]string, error) {
	if len(args) == 0 || len(args) == 1 && (args[0] == "-" || fetch.Remote(args[0])) {
		return nil, nil
	}
	if len(args) == 1 && input.Exists(args[0]) {
		return inFolder(args[0]), nil
	}
	if len(args) == 1 && !strings.ContainsAny(args[0], "*?[") {
		return nil, nil
	}
	list, err := input.Expand("report", args)
	if err != nil || len(list) < 2 {
		return nil, err
	}
	return list, nil
}

// inFolder are the captures in a folder, or the partials of them; nil where there are not several, or where the folder
// is that of one capture or report.
func inFolder(path string) []string {
	for _, name := range []string{"report.json", "comparison.json", input.CapturedTrace} {
		if input.Exists(filepath.Join(path, name)) {
			return nil
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
	for _, ends := range [][]string{{".partial"}, {".sqlite", ".sqlite.gz", ".sqlite.zst"}, {".nsys-rep"}} {
		var list []string
		for _, e := range entries {
			if !e.IsDir() && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
				list = append(list, filepath.Join(path, e.Name()))
			}
		}
		if len(list) > 1 {
			return list
		}
	}
	return nil
}

// ofOneCapture are the flags that mean nothing for a run.
var ofOneCapture = []string{"ncu", "server-log", "prometheus", "evidence", "perfetto", "print-schema", "all-rows", "gpu-price",
	"no-nvtx-kernel-map", "no-kernel-percentiles", "nvtx-coverage-warn-threshold"}

// runReport makes one report of the captures of a run.
func (f *reportFlags) runReport(cmd *cobra.Command, e *env, captures []string) error {
	for _, name := range ofOneCapture {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is about one capture, and %d are named", name, len(captures))
		}
	}
	run := mergecmd.Run{Analysis: f.analysisFlags, Out: f.out, Format: f.format, Rank: f.rank, Roles: f.roles, Top: f.top, Apart: true}
	if err := run.Report(cmd, e, captures); err != nil {
		return err
	}
	if f.open {
		e.OpenPage(f.out, "report.html")
	}
	return nil
}
