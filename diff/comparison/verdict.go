package comparison

import "slices"

// Depth says how far down two sides could be compared.
type Depth string

// Depths, from none to everything. At DepthUnit kernels are hidden on a side, or not recorded for the kind of unit that
// was compared: nothing is said of kernels. At DepthEvidence no trace is behind the sides: numbers that logs, metrics
// and profilers hold were compared one by one.
const (
	DepthNone     Depth = "none"
	DepthEvidence Depth = "evidence"
	DepthUnit     Depth = "unit"
	DepthKernel   Depth = "kernel"
)

// Verdict of a comparison or of one rule.
type Verdict string

// Verdicts, from best to worst. Error means that explain itself failed; None is that of a study, which judges nothing
// and passes for nothing.
const (
	Pass         Verdict = "pass"
	Warn         Verdict = "warn"
	Inconclusive Verdict = "inconclusive"
	Fail         Verdict = "fail"
	Error        Verdict = "error"
	None         Verdict = "none"
)

// Rank orders verdicts from best to worst.
func Rank(v Verdict) int {
	order := []Verdict{Pass, Warn, Inconclusive, Fail}
	if at := slices.Index(order, v); at >= 0 {
		return at
	}
	return len(order)
}

func Worse(a, b Verdict) Verdict {
	if Rank(b) > Rank(a) {
		return b
	}
	return a
}

// Class of a change.
type Class string

// Classes of a change.
const (
	Improved  Class = "improved"
	Regressed Class = "regressed"
	Same      Class = "same"
	Added     Class = "added"
	Removed   Class = "removed"
	Unsettled Class = "inconclusive"
)

// Real reports whether a change was found to be one, whichever way is good.
func Real(row *Row) bool {
	return slices.Contains([]Class{Improved, Regressed, Added, Removed}, row.Class)
}

// Better is the class of a change of something of which less is better.
func Better(delta float64) Class {
	if delta > 0 {
		return Regressed
	}
	return Improved
}

// Code of a reason.
type Code string

// Reason codes.
const (
	DifferentWork        Code = "different_work"
	NoUnit               Code = "no_unit"
	EmptySide            Code = "empty_side"
	EnvironmentMismatch  Code = "environment_mismatch"
	GraphCaptureMismatch Code = "graph_capture_mismatch"
	MissingMetric        Code = "missing_metric"
	LowCoverage          Code = "low_coverage"
	MissingKind          Code = "missing_kind" // kinds of unit that the head lacks, so that their work has no price
	NothingMatched       Code = "nothing_matched"
	WideInterval         Code = "wide_interval"
	TooFewUnits          Code = "too_few_units"      // to tell a change of that size from a slow stretch
	Trend                Code = "trend"              // the work drifts in the captures, and nothing ties unit to unit
	NoBaseline           Code = "no_baseline"        // a first run: nothing to compare with
	SameCapture          Code = "same_capture"       // a capture is there twice
	OneSession           Code = "one_session"        // captures are windows of one session
	OneRun               Code = "ranks_of_one_run"   // captures of a side are ranks of one run, not repeats
	IncompleteCapture    Code = "incomplete_capture" // events are missing from a capture
	HighOverhead         Code = "high_overhead"      // profiling cost more than the policy allows, or nobody knows what
	OddCapture           Code = "odd_capture"        // one capture of a side lies apart from the others
	FailedRequests       Code = "failed_requests"    // latencies are those of the requests that did not fail
	BlindGate            Code = "blind_gate"         // its noise floor is so high that the rule could not fail
	NotJudged            Code = "not_judged"         // explain ended with an error before it compared anything
)

// OtherRun is the code of a log that was written at another time than its capture.
const OtherRun = "log_other_run"

// Doubts are the codes of a report's warnings that travel with a capture into a comparison: they limit what its numbers
// mean.
func Doubts() []Code {
	return []Code{"unjoined_kernels", "no_process_column", "no_api_calls", "no_correlation", "time_unit", "nsys_errors", "impossible_copies",
		OtherRun}
}
