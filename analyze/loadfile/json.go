package loadfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// maxBytes bounds what Read accepts.
const maxBytes = 64 << 20

// Write writes the result as JSON, one line per request: the same result always gives the same bytes.
func (r *Result) Write(w io.Writer) error {
	if err := r.validate(); err != nil {
		return err
	}
	return report.WriteLines(w, r)
}

// Read parses a result and checks that its numbers fit together. Text that explain does not write itself is replaced.
func Read(rd io.Reader) (*Result, error) {
	r, err := report.ReadVersioned[Result](rd, "load result", SchemaID, maxBytes)
	if err != nil {
		return nil, err
	}
	report.Complete(r)
	if r.Model != nil {
		r.Model = modelName(*r.Model)
	}
	r.Failures = merged(r.Failures)
	for i := range r.Requests {
		if f := &r.Requests[i].Failed; *f != "" && *f != Cancelled {
			*f = knownKind(*f)
		}
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	return r, nil
}

// merged adds up the failures of each kind, where those that this version does not know are one.
func merged(list []Failure) []Failure {
	out := []Failure{}
	for _, f := range list {
		if f.Count < 1 { // validate names it
			return list
		}
		kind := knownKind(f.Kind)
		lists.Entry(&out, func(o Failure) bool { return o.Kind == kind }, Failure{Kind: kind}).Count += f.Count
	}
	lists.Sort(out, func(a, b Failure) int { return strings.Compare(a.Kind, b.Kind) })
	return out
}

// The words that a result may use.
var (
	apis     = []string{"completions", "chat"}
	prompts  = []string{"prefill", "decode", "mixed", "dataset", "synthetic"}
	loops    = []string{"open", "closed"}
	counters = []string{"usage", "events", "mixed", ""}
	stops    = []string{"server_gone", "interrupted", "aborted", ""}
)

// validate reports the first thing that does not fit together.
func (r *Result) validate() error {
	c, w := r.Counts, &r.Workload
	for _, word := range []struct {
		field, value string
		of           []string
	}{{"api", w.API, apis}, {"prompts", w.Prompts, prompts}, {"loop", w.Loop, loops},
		{"counted_by", r.Tokens.CountedBy, counters}, {"stopped", r.Stopped, stops}} {
		if !slices.Contains(word.of, word.value) {
			return fmt.Errorf("load result: %s is not one of %s", word.field, strings.Join(word.of, ", "))
		}
	}
	g := r.Goodput
	for _, x := range []struct {
		wrong bool
		what  string
	}{
		{r.Schema != SchemaID || r.Every < 1 || r.Window < 0 || r.Complete != (r.Stopped == ""),
			"schema, every, window or stopped cannot be"},
		{len(w.Fingerprint) > 64 || strings.Trim(w.Fingerprint, "0123456789abcdef") != "", "fingerprint is not a hash"},
		{c.Sent < 0 || c.Succeeded < 0 || c.Failed < 0 || c.Cancelled < 0 || c.Late < 0 || c.Late > c.Sent ||
			c.Sent > 1<<40 || c.Sent != c.Succeeded+c.Failed+c.Cancelled, "the counts of requests do not add up"},
		{slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Count < 1 || f.Count > c.Failed }),
			"a count of failures cannot be"},
		{lists.Sum(r.Failures, func(f Failure) int64 { return f.Count }) != c.Failed,
			"failures do not add up to those counted"},
		{negative(r.Tokens.Input, r.Tokens.Output, r.SLO.TTFT, r.SLO.TPOT, r.SLO.E2E, w.Concurrency, w.Requests, w.Duration,
			w.PromptTokens, w.OutputTokens), "a count or time is negative"},
		{negative(r.Rates.Requests, r.Rates.InputTokens, r.Rates.OutputTokens, w.Rate), "a rate is negative"},
		{g != nil && (g.Good < 0 || g.Good > c.Succeeded || g.Ratio != nil && !(*g.Ratio >= 0 && *g.Ratio <= 1) ||
			negative(g.Rate)), "goodput cannot be"},
		{int64(len(r.Requests)) > c.Sent, "more requests are listed than were sent"},
	} {
		if x.wrong {
			return errors.New("load result: " + x.what)
		}
	}
	l := &r.Latency
	for _, d := range []struct {
		name string
		of   *Distribution
	}{{"ttft", l.TTFT}, {"tpot", l.TPOT}, {"itl", l.ITL}, {"e2e", l.E2E}, {"delay", l.Delay}} {
		if err := d.of.validate(); err != nil {
			return fmt.Errorf("load result: %s: %w", d.name, err)
		}
	}
	return nil
}

// negative reports whether a number that is known is below zero.
func negative[N int64 | float64](numbers ...*N) bool {
	return slices.ContainsFunc(numbers, func(n *N) bool { return n != nil && *n < 0 })
}

// validate reports a distribution whose numbers contradict each other.
func (d *Distribution) validate() error {
	if d == nil {
		return nil
	}
	s := d.Summary
	for _, v := range []float64{s.P50, s.Max, s.Mean, s.Stddev} {
		if !(v < maxTime) {
			return errors.New("a time is longer than thirty years")
		}
	}
	if d.Only == OnlyMedian && s.N >= 1 && s.P50 >= 0 {
		return nil
	}
	if s.N < 1 || !(s.Min >= 0 && s.Min <= s.P50 && s.P50 <= s.P90 && s.P90 <= s.P99 && s.P99 <= s.Max) ||
		s.Stddev < 0 || s.Mean < 0 {
		return errors.New("the summary cannot be")
	}
	if d.Only == OnlySummary {
		return nil
	}
	n := d.Histogram.Zero
	for i, b := range d.Histogram.Bins {
		if b[1] < 1 || b[1] > s.N || i > 0 && d.Histogram.Bins[i-1][0] >= b[0] {
			return errors.New("the histogram cannot be")
		}
		n += b[1]
	}
	if n != s.N || d.Histogram.Zero < 0 || d.Histogram.Growth <= 1 {
		return errors.New("the histogram does not hold the sample")
	}
	return nil
}

// maxTime bounds a latency, ns.
const maxTime = 1e18

// maxModel bounds the name of a model, in runes.
const maxModel = 120

// modelName is a model's name as a hub spells it, or the last part of a path: a folder may name a person. Anything
// that cannot be printed is left out. Nil: nothing is left.
func modelName(s string) *string {
	s = strings.TrimRight(strings.ReplaceAll(s, `\`, "/"), "/")
	if strings.ContainsAny(s[:min(1, len(s))], "/.~") || strings.Count(s, "/") > 1 || strings.Contains(s, ":/") {
		s = s[strings.LastIndex(s, "/")+1:]
	}
	odd := func(c rune) bool { return !unicode.IsPrint(c) || c == unicode.ReplacementChar }
	name := slices.DeleteFunc([]rune(s), odd)
	if len(name) == 0 {
		return nil
	}
	return new(string(name[:min(len(name), maxModel)]))
}
