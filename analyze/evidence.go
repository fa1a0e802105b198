package analyze

import (
	"context"
	"fmt"
	"os"

	"github.com/nsys-llm/explain/analyze/compat"
	"github.com/nsys-llm/explain/analyze/internal/evidence"
	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report"
)

// Evidence is a file or folder that lies next to a trace.
type Evidence struct {
	Path string
	Kind string // required kind: EvidenceNCU, …; empty: any kind, found by content

	// Pattern is the pattern that the file was found by, if any. At least one of its files has to be of the kind;
	// others are skipped with a warning.
	Pattern string
}

// Kinds of evidence that an [Evidence] can require.
const (
	EvidenceNCU        = string(file.NCU)
	EvidenceServerLog  = string(file.ServerLog)
	EvidencePrometheus = string(file.Prometheus)
)

// IsProfile reports whether a JSON file is a trace of the PyTorch profiler, which is analysed like an export of nsys.
func IsProfile(path string) bool { return trace.IsProfile(path) }

// IsEvidence reports whether the file in path is evidence of some kind rather than a trace.
func IsEvidence(path string) bool {
	info, err := os.Stat(path)
	return err == nil && (info.IsDir() || evidence.Kind(path, compat.Readers...) != "")
}

// HoldsEvidence reports whether a folder holds evidence of some kind, which [Run] would analyse.
func HoldsEvidence(dir string) bool { return evidence.Holds(dir, compat.Readers...) }

// readEvidence reads the evidence beside the trace in path. If path itself is evidence, it is read too, and the path
// that is returned is empty.
func readEvidence(ctx context.Context, path string, opt *Options) (*evidence.Set, string, error) {
	var named []evidence.Named
	if path != "" && IsEvidence(path) {
		named, path = append(named, evidence.Named{Path: path}), ""
	}
	for _, e := range opt.Evidence {
		named = append(named, evidence.Named{Path: e.Path, Kind: file.Kind(e.Kind), Pattern: e.Pattern, Beside: path != ""})
	}
	if len(named) == 0 {
		if path == "" {
			return nil, "", fmt.Errorf("%w: name a trace or evidence", ErrOptions)
		}
		return nil, path, nil
	}
	var looked func(int64)
	if opt.Progress != nil {
		looked = func(files int64) { opt.Progress("read evidence", files) }
	}
	set, err := evidence.Read(ctx, named, looked, compat.Readers...)
	return set, path, err
}

// evidenceUnit is the unit of work of a report without a trace: the iterations of an engine, if a log details them.
func evidenceUnit(set *evidence.Set) report.Unit {
	u := report.Unit{Kind: workunit.KindNone, Groups: []report.UnitGroup{},
		Why: "no trace was given; only a trace shows the cost of one step"}
	if set.Log == nil {
		return u
	}
	groups, other := set.Log.Units()
	if len(groups) == 0 {
		return u
	}
	u.Kind, u.Why = "iteration", "each iteration that the log details is one"
	u.Trimmed = report.UnitTrim{Rule: serverlog.UnitRule, Other: other}
	ids := kit.LogGroupIDs(groups)
	for i, g := range groups {
		x := report.UnitGroup{ID: ids[i], Main: i == 0, Phase: serverlog.TypeNames[g.Type], Batch: report.Stated(g.Batch),
			Tokens: report.Stated(g.Tokens), Count: int64(len(g.Kept))}
		u.Groups = append(u.Groups, x)
		u.Trimmed.Warmup += g.Warmup
	}
	u.Groups = mostFrequent(u.Groups)
	return u
}

// evidenceOnly is the input of the sections if there is no trace.
func evidenceOnly(set *evidence.Set, opt *Options) *kit.Input {
	return &kit.Input{
		Trace: &trace.Trace{}, NoTrace: true, Evidence: set, Options: sectionOptions(opt),
		Window: report.Window{Mode: "empty", Why: "no trace was given: the report is of the evidence alone"},
	}
}

// otherRun warns if the log of the server was written at another time than the capture.
func otherRun(in *kit.Input) (list []report.Warning) {
	if start := in.Trace.Meta.SessionStart; start > 0 && in.Evidence.Log != nil && in.Span.Len() > 0 {
		if text := in.Evidence.Log.Apart(start+in.Span.Start, start+in.Span.End); text != "" {
			list = append(list, report.Warning{Code: "log_other_run", Text: text})
		}
	}
	return list
}
