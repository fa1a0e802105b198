package diff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/policy"
)

// What profilemate's check_regression.py compares: the time of the phases prefill and decode and of the top kernel by a
// relative threshold, the coverage by CUDA graphs by the same number of percentage points. It fails if any of them got
// worse by more.
//
// On summary.json files the numbers are those of the files: totals, which grow with the length of the capture. On
// reports they are per unit of work, and a change has to be real as for any other rule; --threshold is then short for
// the rules that ThresholdRules makes.

// Summary is what check_regression reads of a summary.json. A phase is null if the file has no such phase.
type Summary struct {
	Name          string   // of the file, without path
	Prefill       *float64 // prefill_decode.prefill.total_ms
	Decode        *float64 // prefill_decode.decode.total_ms
	GraphCoverage *float64 // cuda_graphs.graph_coverage_pct; null if CUDA graphs hide their kernels
	TopKernel     string   // top_kernels[0].kernel_name, which does not affect the verdict
	TopTime       float64  // top_kernels[0].total_time_ms
}

// ReadSummary reads a summary.json. The error names the first key that is missing or not a number.
func ReadSummary(name string, rd io.Reader) (*Summary, error) {
	var doc struct {
		Phases map[string]map[string]json.RawMessage `json:"prefill_decode"`
		Graphs map[string]json.RawMessage            `json:"cuda_graphs"`
		Top    []map[string]json.RawMessage          `json:"top_kernels"`
	}
	if err := json.NewDecoder(rd).Decode(&doc); err != nil {
		return nil, fmt.Errorf("not a summary.json of profilemate: %w", err)
	}
	s := &Summary{Name: name}
	for _, p := range []struct {
		phase string
		into  **float64
	}{{"prefill", &s.Prefill}, {"decode", &s.Decode}} {
		values, ok := doc.Phases[p.phase]
		if !ok || allNull(values) {
			continue
		}
		v, err := summaryNumber(values["total_ms"], "prefill_decode."+p.phase+".total_ms")
		if err != nil {
			return nil, err
		}
		*p.into = &v
	}
	if s.Prefill == nil && s.Decode == nil {
		return nil, errors.New(
			"prefill_decode has neither prefill nor decode: the capture has no NVTX ranges of these names. Compare the traces or reports themselves, which need no such ranges",
		)
	}
	var err error
	if raw := doc.Graphs["graph_coverage_pct"]; string(raw) != "null" {
		v, err := summaryNumber(raw, "cuda_graphs.graph_coverage_pct")
		if err != nil {
			return nil, err
		}
		s.GraphCoverage = &v
	}
	if len(doc.Top) == 0 {
		return nil, errors.New("top_kernels is missing or empty: the capture holds no kernels")
	}
	if s.TopTime, err = summaryNumber(doc.Top[0]["total_time_ms"], "top_kernels[0].total_time_ms"); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc.Top[0]["kernel_name"], &s.TopKernel); err != nil {
		s.TopKernel = "" // not needed
	}
	return s, nil
}

// allNull reports whether a phase has no values: explain writes an unknown phase with null values.
func allNull(values map[string]json.RawMessage) bool {
	for _, v := range values {
		if string(v) != "null" {
			return false
		}
	}
	return true
}

// summaryNumber reads a number that check_regression needs.
func summaryNumber(raw json.RawMessage, key string) (float64, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, fmt.Errorf("%s is missing", key)
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%s is %s, not a number of 0 or more", key, policy.Cut(string(raw)))
	}
	return v, nil
}

// CompareSummaries compares two summaries as check_regression does, with percent as its threshold. It returns an error
// that names a phase if only one of them has it.
func CompareSummaries(base, head *Summary, percent float64, opt Options) (*comparison.Comparison, error) {
	c := &comparison.Comparison{
		Schema: comparison.SchemaID, Tool: report.Tool{Name: "explain", Version: opt.Version}, Comparable: true,
		Depth: comparison.DepthNone, Verdict: comparison.Pass, Unit: comparison.Unit{Kind: "none"},
		Base: comparison.Side{Names: []string{base.Name}, Captures: 1},
		Head: comparison.Side{Names: []string{head.Name}, Captures: 1},
	}
	c.Fill()
	c.Policy = (&policy.Policy{Stats: policy.DefaultStats()}).Info() // there are no other thresholds
	for _, p := range []struct {
		phase      string
		base, head *float64
	}{{"prefill", base.Prefill, head.Prefill}, {"decode", base.Decode, head.Decode}} {
		if (p.base == nil) != (p.head == nil) {
			lacks := base.Name
			if p.head == nil {
				lacks = head.Name
			}
			return nil, fmt.Errorf("prefill_decode.%s.total_ms is missing in %s: only one side has that phase", p.phase,
				lacks)
		}
		if p.base != nil {
			addSummaryRow(c, "prefill_decode."+p.phase+".total_ms", report.Nanoseconds, *p.base, *p.head, percent, "")
		}
	}
	if base.GraphCoverage != nil && head.GraphCoverage != nil {
		addSummaryRow(c, "cuda_graphs.graph_coverage_pct", report.Ratio, *base.GraphCoverage, *head.GraphCoverage, percent,
			"")
	}
	note := ""
	if base.TopKernel != head.TopKernel {
		note = "; it is another kernel than on the base"
	}
	addSummaryRow(c, "top_kernels.0.total_time_ms", report.Nanoseconds, base.TopTime, head.TopTime, percent, note)
	failed := lists.Count(c.Gates, func(g comparison.Gate) bool { return g.Verdict == comparison.Fail })
	c.Counts.GatesChecked, c.Counts.MetricsCompared = int64(len(c.Gates)), int64(len(c.Gates))
	text := "no total is worse by more than " + comparison.ExactPercent(percent/100)
	if failed > 0 {
		c.Verdict = comparison.Fail
		text = wording.Count(failed, "total") + " worse by more than " + comparison.ExactPercent(percent/100)
	}
	c.Answer.Notes = []string{text, "totals grow with the length of the capture: compare the traces to see what one step costs"}
	if row, _ := c.Headline(); row != nil {
		c.Answer.OfRow(row, c.Verdict)
	}
	c.Fill()
	c.Cause = c.Answer.String()
	return c, c.Validate()
}

// addSummaryRow compares one number as check_regression does, in the file's own unit: ms by their relative change,
// percent by the difference. The row and its gate are in base units.
func addSummaryRow(c *comparison.Comparison, metric, u string, before, after, percent float64, note string) {
	// worse is in percent of the base, or in percentage points
	worse, sign, size, scale := 0.0, "+", "%", 1e6
	switch {
	case u == report.Ratio:
		worse, sign, size, scale = before-after, "-", "pp", 0.01
	case before > 0:
		worse = (after - before) / before * 100
	case after > 0:
		worse = math.Inf(1)
	}
	row := side.Row(metric, report.Labels{}, u, []float64{before * scale}, []float64{after * scale})
	row.NBase, row.NHead, row.Class = 1, 1, comparison.Same
	limit := sign + unit.Shift(strconv.FormatFloat(percent, 'f', -1, 64), 0) + size
	g := comparison.Gate{
		Rule: "threshold", Metric: metric, Labels: report.Labels{}, Level: comparison.LevelError, Threshold: limit,
		Base: row.Base, Head: row.Head, Delta: row.Delta, Ratio: row.Ratio, Verdict: comparison.Pass,
	}
	switch {
	case !policy.Within(worse, percent):
		row.Class, g.Verdict, g.Reason = comparison.Regressed, comparison.Fail, comparison.ChangeText(
			&row)+" is more than "+limit+note
	case !policy.Within(-worse, percent):
		row.Class, g.Reason = comparison.Improved, comparison.ChangeText(&row)+note
	default:
		g.Reason = comparison.ChangeText(&row) + " is within " + limit + note
	}
	g.CountsAs = g.Verdict
	g.Class, row.Why = row.Class, "totals compared by threshold alone, as check_regression does"
	c.Primary, c.Gates = append(c.Primary, row), append(c.Gates, g)
}
