package diff

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

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

// Summary is what check_regression reads of a summary.json.
type Summary struct {
	Name      string // of the file, without path
	TopKernel string // top_kernels[0].kernel_name, which does not affect the verdict
	// by its key; without those of a phase that the file lacks, and without coverageKey if CUDA graphs hide their kernels
	numbers map[string]float64
}

// Keys of the numbers, in the order in which they are compared.
const (
	prefillKey  = "prefill_decode.prefill.total_ms"
	decodeKey   = "prefill_decode.decode.total_ms"
	coverageKey = "cuda_graphs.graph_coverage_pct"
	topKey      = "top_kernels[0].total_time_ms"
)

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
	s := &Summary{Name: name, numbers: map[string]float64{}}
	var err error
	for _, p := range [][2]string{{"prefill", prefillKey}, {"decode", decodeKey}} {
		if values := doc.Phases[p[0]]; !allNull(values) {
			err = cmp.Or(err, s.read(p[1], values["total_ms"]))
		}
	}
	if err == nil && len(s.numbers) == 0 {
		err = errors.New("prefill_decode has neither prefill nor decode: the capture has no NVTX ranges of these names. " +
			"Compare the traces or reports themselves, which need no such ranges")
	}
	if raw := doc.Graphs["graph_coverage_pct"]; string(raw) != "null" {
		err = cmp.Or(err, s.read(coverageKey, raw))
	}
	if err == nil && len(doc.Top) == 0 {
		err = errors.New("top_kernels is missing or empty: the capture holds no kernels")
	}
	if err != nil {
		return nil, err
	}
	_ = json.Unmarshal(doc.Top[0]["kernel_name"], &s.TopKernel) // not needed
	return s, s.read(topKey, doc.Top[0]["total_time_ms"])
}

// allNull reports whether a phase has no values: explain writes an unknown phase with null values.
func allNull(values map[string]json.RawMessage) bool {
	return !slices.ContainsFunc(slices.Collect(maps.Values(values)), func(v json.RawMessage) bool { return string(v) != "null" })
}

// read takes over a number that check_regression needs.
func (s *Summary) read(key string, raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return fmt.Errorf("%s is missing", key)
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return fmt.Errorf("%s is %s, not a number of 0 or more", key, policy.Cut(string(raw)))
	}
	s.numbers[key] = v
	return nil
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
	for _, key := range []string{prefillKey, decodeKey, coverageKey, topKey} {
		b, onBase := base.numbers[key]
		h, onHead := head.numbers[key]
		switch {
		case onBase && onHead:
			addSummaryRow(c, key, b, h, percent, base.TopKernel != head.TopKernel)
		case onBase != onHead && key != coverageKey:
			lacks := base.Name
			if onBase {
				lacks = head.Name
			}
			return nil, fmt.Errorf("%s is missing in %s: only one side has that phase", key, lacks)
		}
	}
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
// percent by the difference. The row and its gate are in base units. otherKernel says that the top kernels differ.
func addSummaryRow(c *comparison.Comparison, key string, before, after, percent float64, otherKernel bool) {
	// worse is in percent of the base, or in percentage points
	u, worse, sign, size, scale, note := report.Nanoseconds, 0.0, "+", "%", 1e6, ""
	switch {
	case key == coverageKey:
		u, worse, sign, size, scale = report.Ratio, before-after, "-", "pp", 0.01
	case before > 0:
		worse = (after - before) / before * 100
	case after > 0:
		worse = math.Inf(1)
	}
	if key == topKey && otherKernel {
		note = "; it is another kernel than on the base"
	}
	metric := strings.Replace(key, "[0]", ".0", 1)
	row := side.Row(metric, report.Labels{}, u, []float64{before * scale}, []float64{after * scale})
	row.NBase, row.NHead, row.Class = 1, 1, comparison.Same
	limit := sign + unit.Shift(strconv.FormatFloat(percent, 'f', -1, 64), 0) + size
	g := comparison.Gate{
		Rule: "threshold", Metric: metric, Labels: report.Labels{}, Level: comparison.LevelError, Threshold: limit,
		Base: row.Base, Head: row.Head, Delta: row.Delta, Ratio: row.Ratio, Verdict: comparison.Pass,
	}
	switch text := comparison.ChangeText(&row); {
	case !policy.Within(worse, percent):
		row.Class, g.Verdict, g.Reason = comparison.Regressed, comparison.Fail, text+" is more than "+limit+note
	case !policy.Within(-worse, percent):
		row.Class, g.Reason = comparison.Improved, text+note
	default:
		g.Reason = text + " is within " + limit + note
	}
	g.CountsAs = g.Verdict
	g.Class, row.Why = row.Class, "totals compared by threshold alone, as check_regression does"
	c.Primary, c.Gates = append(c.Primary, row), append(c.Gates, g)
}
