package loadfile

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Cancelled is the failure of a record that was in flight when the run was cut short. It is counted apart.
const Cancelled = "cancelled"

// Record is what was measured of one request, times in ns since the first was due; -1: unknown.
type Record struct {
	Due, Sent, First, Last, End int64 // Last is the last token's
	Input, Output               int64 // tokens
	ByUsage                     bool  // Output is the server's own count
	Failed                      string
}

// maxListed is how many requests a result lists.
const maxListed = 20_000

// Build computes a result. Gaps are the times between tokens of all requests that succeeded, ns. Both lists are sorted.
func Build(workload Workload, slo SLO, records []Record, gaps []int64) *Result {
	lists.Sort(records, func(a, b Record) int { return cmp.Compare(a.Due, b.Due) })
	r := &Result{Schema: SchemaID, Workload: workload, SLO: slo, Complete: true, Failures: []Failure{},
		Requests: []Request{}, Every: 1}
	var ttft, tpot, e2e, delay []int64
	var good int64
	var byUsage, byEvents bool
	var input, output int64
	inputKnown, outputKnown := true, true
	for _, c := range records {
		r.Counts.Sent++
		r.Window = max(r.Window, c.End)
		delay = append(delay, c.Sent-c.Due)
		if c.Sent-c.Due > lateAfter {
			r.Counts.Late++
		}
		switch c.Failed {
		case "":
			r.Counts.Succeeded++
		case Cancelled:
			r.Counts.Cancelled++
			continue
		default:
			r.Counts.Failed++
			r.Failures = append(r.Failures, Failure{c.Failed, 1})
			continue
		}
		e2e = append(e2e, c.End-c.Due)
		meets := within(c.End-c.Due, slo.E2E)
		if c.First >= 0 {
			ttft = append(ttft, c.First-c.Due)
		}
		meets = meets && (slo.TTFT == nil || c.First >= 0 && within(c.First-c.Due, slo.TTFT))
		if c.Last > c.First && c.Output > 1 { // else the whole answer came at once, which shows no pace
			per := (c.Last - c.First) / (c.Output - 1)
			tpot = append(tpot, per)
			meets = meets && within(per, slo.TPOT)
		}
		if meets {
			good++
		}
		input += c.Input
		inputKnown = inputKnown && c.Input >= 0
		output += c.Output
		outputKnown = outputKnown && c.Output >= 0
		byUsage = byUsage || c.Output >= 0 && c.ByUsage
		byEvents = byEvents || c.Output >= 0 && !c.ByUsage
	}
	r.Failures = merged(r.Failures)
	if r.Counts.Succeeded > 0 && inputKnown {
		r.Tokens.Input = &input
	}
	if r.Counts.Succeeded > 0 && outputKnown {
		r.Tokens.Output = &output
	}
	r.rates()
	switch {
	case byUsage && byEvents:
		r.Tokens.CountedBy = "mixed"
	case byUsage:
		r.Tokens.CountedBy = "usage"
	case byEvents:
		r.Tokens.CountedBy = "events"
	}
	if slo != (SLO{}) {
		r.Goodput = &Goodput{Good: good, Ratio: stat.Ratio(good, r.Counts.Succeeded+r.Counts.Failed),
			Rate: r.perSecond(&good)}
	}
	r.Latency = Latency{TTFT: distribution(ttft), TPOT: distribution(tpot), ITL: distribution(gaps),
		E2E: distribution(e2e), Delay: distribution(delay)}
	r.list(records)
	return r
}

// list keeps each n-th request, so that a long run makes no huge file.
func (r *Result) list(records []Record) {
	r.Every = max(1, int64((len(records)+maxListed-1)/maxListed))
	for i := 0; i < len(records); i += int(r.Every) {
		c := &records[i]
		r.Requests = append(r.Requests, Request{Due: c.Due, Sent: c.Sent, First: report.Optional(c.First), End: c.End,
			Input: report.Optional(c.Input), Output: report.Optional(c.Output), Failed: c.Failed})
	}
}

func within(v int64, limit *int64) bool { return limit == nil || v <= *limit }

// rates are those of the counts, if any request succeeded.
func (r *Result) rates() {
	if r.Counts.Succeeded > 0 {
		r.Rates = Rates{Requests: r.perSecond(&r.Counts.Succeeded), InputTokens: r.perSecond(r.Tokens.Input),
			OutputTokens: r.perSecond(r.Tokens.Output)}
	}
}

// perSecond is a rate over the window; nil if the number is unknown or no time passed.
func (r *Result) perSecond(n *int64) *float64 {
	if n == nil {
		return nil
	}
	return stat.Ratio(float64(*n)*1e9, r.Window)
}

// distribution sorts the sample.
func distribution(sample []int64) *Distribution {
	s := stat.Summarize(sample)
	if s == nil {
		return nil
	}
	return &Distribution{Summary: *s, Histogram: *stat.Histogram(sample)}
}

// Describe fills in who measured, and what stands for the model: its name without the folders of a path.
func (r *Result) Describe(version, model string) {
	r.Tool = report.Tool{Name: "explain", Version: version}
	r.Model = modelName(model)
}

// Text names the options that make two loads different work, each in a part of its own, and the hash of all that was
// asked last: "completions; mixed prompts; concurrency 8; 40 requests; seed 1; fingerprint 7d4f…". Two loads with the
// same text asked the same.
func (w *Workload) Text() string {
	parts := []string{w.API, w.Prompts + " prompts", "rate unlimited", "concurrency unlimited", "any number of requests",
		"no limit of time", "seed " + strconv.FormatUint(w.Seed, 10), "fingerprint " + w.Fingerprint}
	if w.Rate != nil {
		parts[2] = "rate " + strconv.FormatFloat(*w.Rate, 'g', -1, 64) + "/s"
	}
	if w.Concurrency != nil {
		parts[3] = "concurrency " + strconv.FormatInt(*w.Concurrency, 10)
	}
	if w.Requests != nil {
		parts[4] = strconv.FormatInt(*w.Requests, 10) + " requests"
	}
	if w.Duration != nil {
		parts[5] = time.Duration(*w.Duration).String()
	}
	return strings.Join(parts, "; ")
}
