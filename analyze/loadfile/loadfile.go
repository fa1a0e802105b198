// Package loadfile is the format of load.json: what explain load measured on the client's side of a server, as data.
// The command writes it; a report reads it as evidence; a script may do either.
//
// It holds numbers and a description of the load from explain's own words. Prompts, answers, addresses and keys have no
// place in it. Times are nanoseconds; unknown is null, never zero; lists are never null.
package loadfile

import (
	"github.com/nsys-llm/explain/analyze/report"
)

// SchemaID names the format. Additive fields keep the major number behind the slash.
const SchemaID = "explain.load/1"

// Result is one run of a load.
type Result struct {
	Schema   string      `json:"schema"`
	Tool     report.Tool `json:"tool"`
	Model    *string     `json:"model"` // as the server names it; the last part if that is a path
	Workload Workload    `json:"workload"`
	Complete bool        `json:"complete"` // all that was planned was sent and answered, or failed by itself
	Stopped  string      `json:"stopped"`  // why not complete: server_gone, interrupted, aborted; empty otherwise
	// From the moment the first request was due to the end of the last answer, ns
	Window   int64     `json:"window"`
	Counts   Counts    `json:"counts"`
	Failures []Failure `json:"failures"` // by kind, kinds in alphabetical order
	Tokens   Tokens    `json:"tokens"`
	Rates    Rates     `json:"rates"`
	SLO      SLO       `json:"slo"`
	Goodput  *Goodput  `json:"goodput"` // null if no limit was given
	Latency  Latency   `json:"latency"`
	Every    int64     `json:"every"`    // requests[] lists each n-th one
	Requests []Request `json:"requests"` // in the order in which they were due
}

// Workload says what was asked of the server.
type Workload struct {
	API     string `json:"api"`     // completions, chat
	Stream  bool   `json:"stream"`  // answers were streamed
	Prompts string `json:"prompts"` // prefill, decode, mixed, dataset, synthetic
	// Hash of everything that is asked: two runs with the same one asked the same
	Fingerprint string `json:"fingerprint"`
	// Open: requests are sent when they are due; closed: when an answer is in
	Loop         string   `json:"loop"`
	Rate         *float64 `json:"rate"`          // requests per second that were due, open loop
	Concurrency  *int64   `json:"concurrency"`   // requests in flight, at most; null: no limit
	Requests     *int64   `json:"requests"`      // planned; null: as many as fit into the duration
	Duration     *int64   `json:"duration"`      // sending stops after it, ns
	Warmup       int64    `json:"warmup"`        // requests before the measured ones
	Timeout      int64    `json:"timeout"`       // of one request, ns
	Temperature  float64  `json:"temperature"`   // of sampling
	Seed         uint64   `json:"seed"`          // of arrivals and synthetic prompts
	PromptTokens *int64   `json:"prompt_tokens"` // of synthetic prompts, about
	OutputTokens *int64   `json:"output_tokens"` // asked for, where all requests ask for the same
}

// Counts of requests: Sent = Succeeded + Failed + Cancelled.
type Counts struct {
	Sent      int64 `json:"sent"`
	Succeeded int64 `json:"succeeded"`
	Failed    int64 `json:"failed"`
	Cancelled int64 `json:"cancelled"` // in flight when the run was cut short
	Late      int64 `json:"late"`      // sent more than lateAfter after they were due
}

// FailedMoreThan reports whether more than a share of the requests that were answered failed, as load.failure_ratio has
// it.
func (c *Counts) FailedMoreThan(share float64) bool {
	return float64(c.Failed) > share*float64(c.Succeeded+c.Failed)
}

// lateAfter is how long after it was due a request counts as late, ns. Its latency counts from when it was due all the
// same.
const lateAfter = 5_000_000

// Failure counts the requests that failed in one way.
type Failure struct {
	Kind  string `json:"kind"` // one of Kinds, or http_ and the status
	Count int64  `json:"count"`
}

// Tokens of the requests that succeeded. Null if neither the server nor the stream tells.
type Tokens struct {
	Input  *int64 `json:"input"`
	Output *int64 `json:"output"`
	// Usage: the server's own count; events: one token per event of the stream; mixed; empty: nothing to count
	CountedBy string `json:"counted_by"`
}

// Rates over the window, of the requests that succeeded, per second.
type Rates struct {
	Requests     *float64 `json:"requests"`
	InputTokens  *float64 `json:"input_tokens"`
	OutputTokens *float64 `json:"output_tokens"`
}

// SLO are the limits that make a request good, ns. Null: no limit.
type SLO struct {
	TTFT *int64 `json:"ttft"`
	TPOT *int64 `json:"tpot"`
	E2E  *int64 `json:"e2e"`
}

// Goodput counts the requests that met every limit. A request that failed met none.
type Goodput struct {
	Good  int64    `json:"good"`
	Ratio *float64 `json:"ratio"` // of the requests that succeeded or failed
	Rate  *float64 `json:"rate"`  // per second of the window
}

// Latency of the requests that succeeded, from the moment each was due. Null if nothing was measured.
type Latency struct {
	TTFT *Distribution `json:"ttft"` // to the first token
	// From the first token to the last, per token after the first; of answers that came in more than one piece
	TPOT *Distribution `json:"tpot"`
	ITL  *Distribution `json:"itl"` // each gap between two tokens, of all requests
	E2E  *Distribution `json:"e2e"` // to the end of the answer
	// Until the request was sent, of all requests: the generator's own lateness and waiting
	Delay *Distribution `json:"delay"`
}

// Distribution is a sample, exact in its summary.
type Distribution struct {
	Summary   report.Summary   `json:"summary"`
	Histogram report.Histogram `json:"histogram"`
	// What is known of it, if not all: of a result of another generator. There is no histogram then.
	Only string `json:"only,omitempty"`
}

// What may be known of a distribution alone.
const (
	OnlySummary = "summary"
	OnlyMedian  = "median" // and the count
)

// Request is one request, times in ns since the first was due. Unknown: null.
type Request struct {
	Due    int64  `json:"due"`
	Sent   int64  `json:"sent"`
	First  *int64 `json:"first"` // token
	End    int64  `json:"end"`   // of the answer, or when the request failed
	Input  *int64 `json:"input"`
	Output *int64 `json:"output"`
	Failed string `json:"failed"` // kind of failure; empty: it succeeded
}
