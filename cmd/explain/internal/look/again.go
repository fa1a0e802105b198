package look

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
	"github.com/nsys-llm/explain/diff/comparison"
)

// showAgain prints an existing report.json or comparison.json, or the one in a folder, without analysing again. If the
// folder also holds the trace, flags that need an analysis make it return false.
func (f *reportFlags) showAgain(cmd *cobra.Command, e *cmdenv.Env, path string) (shown bool, err error) {
	file := path
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		for _, name := range []string{"report.json", "comparison.json"} {
			if file = filepath.Join(path, name); input.Exists(file) {
				break
			}
		}
		if input.Exists(filepath.Join(path, input.CapturedTrace)) && cmdenv.Given(cmd, ofAnAnalysis) != "" {
			return false, nil
		}
	}
	schema, content := input.Schema(file)
	comparing := strings.HasPrefix(schema, "explain.comparison/")
	if !comparing && !strings.HasPrefix(schema, "explain.report/") {
		return false, nil
	}
	if flag := cmdenv.Given(cmd, ofAnAnalysis); flag != "" {
		return true, usage.Errorf("--%s is about an analysis, and %s is the result of one: name the trace", flag, file)
	}
	if comparing && f.perfetto != "" {
		return true, usage.Errorf("--perfetto writes units of a trace or a report.json, and %s is a comparison", file)
	}
	if comparing {
		c, err := comparison.Read(bytes.NewReader(content))
		if err != nil {
			return true, fmt.Errorf("%s: %w", file, err)
		}
		if f.format == "profilemate" {
			return true, usage.Errorf("--format profilemate prints a report, not a comparison")
		}
		return true, output.PrintComparison(e.Out, c, f.format, e.Terminal())
	}
	r, err := report.Read(bytes.NewReader(content))
	if err != nil {
		return true, fmt.Errorf("%s: %w", file, err)
	}
	if f.perfetto != "" {
		if err := writeStep(f.perfetto, f.force, r); err != nil {
			return true, err
		}
	}
	if f.format == "html" {
		err = output.HTML(e.Out, r, output.StepBeside(file))
	} else {
		err = output.Print(e.Out, &analyze.Result{Report: r}, f.format, f.out, e.Terminal())
	}
	if err != nil {
		return true, err
	}
	return true, f.targets(cmd, e, r)
}

// ofAnAnalysis lists the flags that only an analysis can serve.
var ofAnAnalysis = []string{"unit", "window", "from", "to", "steady", "phase-map", "kernel-map", "ncu",
	"server-log", "prometheus", "evidence", "top", "all-rows", "no-kernel-percentiles",
	"no-nvtx-kernel-map", "nvtx-coverage-warn-threshold", "print-schema", "out"}
