package output

import (
	"os"
	"path/filepath"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
)

// TraceIn is the trace in the folder of a capture and the evidence beside it: all that lies there but what explain
// wrote about the trace. Any other path is itself.
func TraceIn(path string) (trace string, beside []analyze.Evidence) {
	found := filepath.Join(path, input.CapturedTrace)
	if !input.Exists(found) {
		return path, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return found, nil
	}
	measured, _ := filepath.Glob(filepath.Join(path, "ncu", "*.csv"))
	written := map[string]bool{"tables": true, "ncu": len(measured) == 0} // else explain's ncu/regions alone
	for _, f := range Report(&analyze.Result{Report: &report.Report{}}) {
		written[f.Name] = true
	}
	for _, e := range entries {
		at := filepath.Join(path, e.Name())
		if written[e.Name()] || e.Name() == input.CapturedTrace {
			continue
		}
		if e.IsDir() && analyze.HoldsEvidence(at) || !e.IsDir() && analyze.IsEvidence(at) {
			beside = append(beside, analyze.Evidence{Path: at})
		}
	}
	return found, beside
}
