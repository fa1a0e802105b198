package loadfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Generators of load that people have: vllm bench serve, SGLang's bench_serving, GuideLLM, GenAI-Perf and AIPerf write
// JSON of their own, and ReadGenerator makes a Result of it. They count a latency from the moment a request was sent,
// not from when it was due.

// maxGenerated bounds the result of another generator, which may list every token.
const maxGenerated = 512 << 20

// generated are the fields of all of them; no two have one name for two things. Times are ms, but for the samples of
// vLLM and SGLang and the whole answer of GuideLLM, which are s.
type generated struct {
	// vllm bench serve, and SGLang's bench_serving
	Backend        string      `json:"backend"`
	EndpointType   string      `json:"endpoint_type"`
	ModelID        string      `json:"model_id"`
	DatasetName    string      `json:"dataset_name"`
	NumPrompts     *int64      `json:"num_prompts"`
	RequestRate    any         `json:"request_rate"` // a number, or "inf"
	MaxConcurrency *int64      `json:"max_concurrency"`
	Duration       *float64    `json:"duration"` // s
	Completed      *int64      `json:"completed"`
	Failed         *int64      `json:"failed"`
	TotalInput     *int64      `json:"total_input_tokens"`
	TotalOutput    *int64      `json:"total_output_tokens"`
	OutputLens     []int64     `json:"output_lens"`
	TTFTs          []float64   `json:"ttfts"`
	ITLs           [][]float64 `json:"itls"`
	Errors         []string    `json:"errors"`
	MedianTTFT     *float64    `json:"median_ttft_ms"`
	MedianTPOT     *float64    `json:"median_tpot_ms"`
	MedianITL      *float64    `json:"median_itl_ms"`
	MedianE2EL     *float64    `json:"median_e2el_ms"`
	MedianE2E      *float64    `json:"median_e2e_latency_ms"`

	// GenAI-Perf, AIPerf
	TTFT             *nvidiaStat `json:"time_to_first_token"`
	ITL              *nvidiaStat `json:"inter_token_latency"`
	RequestLatency   *nvidiaStat `json:"request_latency"`
	RequestCount     *nvidiaStat `json:"request_count"`
	ErrorCount       *nvidiaStat `json:"error_request_count"`
	RequestsPerSec   any         `json:"request_throughput"` // a number in vLLM
	OutputLength     *nvidiaStat `json:"output_sequence_length"`
	InputLength      *nvidiaStat `json:"input_sequence_length"`
	WasCancelled     bool        `json:"was_cancelled"`
	BenchmarkSeconds *nvidiaStat `json:"benchmark_duration"`

	// GuideLLM
	Benchmarks []struct {
		Duration float64 `json:"duration"` // s
		Metrics  struct {
			Totals struct{ Successful, Errored, Incomplete int64 } `json:"request_totals"`
			TTFT   guideStats                                      `json:"time_to_first_token_ms"`
			TPOT   guideStats                                      `json:"time_per_output_token_ms"`
			ITL    guideStats                                      `json:"inter_token_latency_ms"`
			E2E    guideStats                                      `json:"request_latency"`
			Input  guideStats                                      `json:"prompt_token_count"`
			Output guideStats                                      `json:"output_token_count"`
		} `json:"metrics"`
	} `json:"benchmarks"`
}

// nvidiaStat is a metric of GenAI-Perf and AIPerf.
type nvidiaStat struct {
	Unit               string
	Avg, Min, Max, Std *float64
	P50, P90, P99      *float64
}

// guideStats is a metric of GuideLLM.
type guideStats struct {
	Successful *struct {
		Mean, Median, Min, Max float64
		Std                    float64 `json:"std_dev"`
		Count                  int64
		TotalSum               *float64 `json:"total_sum"`
		Percentiles            struct{ P90, P99 float64 }
	} `json:"successful"`
}

// ReadGenerator reads what another generator of load wrote. Runs is how many runs the file holds, of which the last is
// read. A latency of which the file holds no more than summaries that lack the tails has a median alone.
func ReadGenerator(rd io.Reader) (r *Result, runs int, err error) {
	text, err := io.ReadAll(io.LimitReader(rd, maxGenerated+1))
	switch {
	case err != nil:
		return nil, 0, err
	case len(text) > maxGenerated:
		return nil, 0, fmt.Errorf("is larger than %d MiB", maxGenerated>>20)
	}
	decode := json.NewDecoder(bytes.NewReader(file.WithoutNaN(text)))
	var g generated
	for { // bench_serving appends a line for each run
		var next generated
		if err := decode.Decode(&next); err == io.EOF {
			break
		} else if err != nil {
			return nil, 0, fmt.Errorf("is not the JSON of a load: %w", err)
		}
		g = next
		runs++
	}
	r = &Result{Schema: SchemaID, Complete: true, Failures: []Failure{}, Requests: []Request{}, Every: 1,
		Workload: Workload{API: "completions", Stream: true, Prompts: "dataset", Loop: "open"}}
	switch {
	case len(g.Benchmarks) > 0:
		runs = len(g.Benchmarks)
		g.guideLLM(r)
	case g.RequestLatency != nil:
		g.nvidia(r)
	case g.Completed != nil && g.Duration != nil:
		g.bench(r)
	default:
		return nil, 0, errors.New("holds no result of vllm bench serve, bench_serving, GuideLLM, GenAI-Perf or AIPerf")
	}
	if c := &r.Counts; c.Failed > 0 {
		r.Failures = []Failure{{Other, c.Failed}}
	}
	r.Counts.Sent = r.Counts.Succeeded + r.Counts.Failed + r.Counts.Cancelled
	r.rates()
	return r, runs, r.validate()
}

// bench fills in what vllm bench serve or bench_serving measured: from its samples where it kept them.
func (g *generated) bench(r *Result) {
	r.Tool.Name = "vllm bench serve"
	if g.MedianE2E != nil {
		r.Tool.Name = "bench_serving"
	}
	r.Window = int64(*g.Duration * 1e9)
	r.Counts.Succeeded = *g.Completed
	switch {
	case g.Failed != nil:
		r.Counts.Failed = *g.Failed
	case g.NumPrompts != nil:
		r.Counts.Failed = max(0, *g.NumPrompts-*g.Completed)
	default:
		r.Counts.Failed = int64(lists.Count(g.Errors, func(text string) bool { return text != "" }))
	}
	if strings.Contains(g.Backend+g.EndpointType, "chat") {
		r.Workload.API = "chat"
	}
	if strings.HasPrefix(g.DatasetName, "random") {
		r.Workload.Prompts = "synthetic"
	}
	if rate, ok := g.RequestRate.(float64); ok && rate > 0 {
		r.Workload.Rate = &rate
	}
	if r.Workload.Concurrency = g.MaxConcurrency; g.MaxConcurrency != nil && r.Workload.Rate == nil {
		r.Workload.Loop = "closed"
	}
	r.Workload.Requests = g.NumPrompts
	r.Model = modelName(g.ModelID)
	r.Tokens.Input, r.Tokens.Output = g.TotalInput, g.TotalOutput
	if len(g.TTFTs) > 0 && len(g.TTFTs) == len(g.ITLs) && len(g.TTFTs) == len(g.OutputLens) {
		g.samples(r)
		return
	}
	n := *g.Completed
	r.Latency = Latency{TTFT: median(n, g.MedianTTFT, 1e6), TPOT: median(n, g.MedianTPOT, 1e6), ITL: median(n, g.MedianITL, 1e6),
		E2E: median(n, cmp.Or(g.MedianE2EL, g.MedianE2E), 1e6)}
}

// samples makes distributions of what was measured of each request. A request that failed has neither tokens nor times.
func (g *generated) samples(r *Result) {
	var ttft, tpot, itl, e2e []int64
	for i, first := range g.TTFTs {
		if i < len(g.Errors) && g.Errors[i] != "" || first <= 0 {
			continue
		}
		sum := first
		for _, gap := range g.ITLs[i] {
			sum += gap
			itl = append(itl, ns(gap*1e9))
		}
		ttft, e2e = append(ttft, ns(first*1e9)), append(e2e, ns(sum*1e9))
		if n := g.OutputLens[i]; n > 1 && sum > first {
			tpot = append(tpot, ns((sum-first)*1e9/float64(n-1)))
		}
	}
	r.Latency = Latency{TTFT: distribution(ttft), TPOT: distribution(tpot), ITL: distribution(itl), E2E: distribution(e2e)}
}

// nvidia fills in what GenAI-Perf or AIPerf measured. Their time between tokens has one value for each request, as
// serve.tpot has.
func (g *generated) nvidia(r *Result) {
	r.Tool.Name = "aiperf"
	if g.BenchmarkSeconds == nil {
		r.Tool.Name = "genai-perf"
	}
	if g.WasCancelled {
		r.Complete, r.Stopped = false, "interrupted"
	}
	r.Counts.Succeeded = count(g.RequestCount)
	r.Counts.Failed = count(g.ErrorCount)
	n := r.Counts.Succeeded
	if s := g.BenchmarkSeconds; s != nil && s.Avg != nil && s.ns("sec") > 0 {
		r.Window = int64(*s.Avg * s.ns("sec"))
	} else if rate, ok := g.RequestsPerSec.(map[string]any); ok {
		if perSecond, ok := rate["avg"].(float64); ok && perSecond > 0 {
			r.Window = int64(float64(n) / perSecond * 1e9)
		}
	}
	total := func(s *nvidiaStat) *int64 {
		if s == nil || s.Avg == nil {
			return nil
		}
		return new(int64(math.Round(*s.Avg * float64(n))))
	}
	r.Tokens.Input, r.Tokens.Output = total(g.InputLength), total(g.OutputLength)
	r.Latency = Latency{TTFT: g.TTFT.distribution(n), TPOT: g.ITL.distribution(n), E2E: g.RequestLatency.distribution(n)}
}

func count(s *nvidiaStat) int64 {
	if s == nil || s.Avg == nil || *s.Avg < 0 {
		return 0
	}
	return int64(*s.Avg)
}

// ns is the unit of a time in ns, or that of usual if the file states none; 0 if nobody knows it.
func (s *nvidiaStat) ns(usual string) float64 {
	units := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "sec": 1e9, "seconds": 1e9}
	return units[cmp.Or(s.Unit, usual)]
}

func (s *nvidiaStat) distribution(n int64) *Distribution {
	if s == nil || s.P50 == nil || n == 0 || s.ns("ms") == 0 {
		return nil
	}
	unit := s.ns("ms")
	if slices.Contains([]*float64{s.Avg, s.Min, s.Max, s.Std, s.P90, s.P99}, nil) {
		return median(n, s.P50, unit)
	}
	return summary(report.Summary{N: n, Min: *s.Min, P50: *s.P50, P90: *s.P90, P99: *s.P99, Max: *s.Max, Mean: *s.Avg, Stddev: *s.Std}, unit)
}

// guideLLM fills in what the last benchmark of GuideLLM measured.
func (g *generated) guideLLM(r *Result) {
	b := g.Benchmarks[len(g.Benchmarks)-1]
	r.Tool.Name, r.Window = "guidellm", int64(b.Duration*1e9)
	m := &b.Metrics
	r.Counts = Counts{Succeeded: m.Totals.Successful, Failed: m.Totals.Errored, Cancelled: m.Totals.Incomplete}
	total := func(s guideStats) *int64 {
		if s.Successful == nil || s.Successful.TotalSum == nil {
			return nil
		}
		return new(int64(*s.Successful.TotalSum))
	}
	r.Tokens.Input, r.Tokens.Output = total(m.Input), total(m.Output)
	of := func(s guideStats, unit float64) *Distribution {
		v := s.Successful
		if v == nil || v.Count == 0 {
			return nil
		}
		return summary(report.Summary{N: v.Count, Min: v.Min, P50: v.Median, P90: v.Percentiles.P90, P99: v.Percentiles.P99, Max: v.Max,
			Mean: v.Mean, Stddev: v.Std}, unit)
	}
	r.Latency = Latency{TTFT: of(m.TTFT, 1e6), TPOT: of(m.TPOT, 1e6), ITL: of(m.ITL, 1e6), E2E: of(m.E2E, 1e9)}
}

// ns is a time in whole ns, never below zero.
func ns(v float64) int64 { return int64(max(0, math.Round(v))) }

// summary is a distribution of which the summary alone is known, in a unit of so many ns.
func summary(s report.Summary, unit float64) *Distribution {
	for _, v := range []*float64{&s.Min, &s.P50, &s.P90, &s.P99, &s.Max, &s.Mean, &s.Stddev} {
		*v *= unit
	}
	return &Distribution{Summary: s, Only: OnlySummary, Histogram: report.Histogram{Growth: stat.Growth, Bins: [][2]int64{}}}
}

// median is a distribution of which the median alone is known, in a unit of so many ns.
func median(n int64, value *float64, unit float64) *Distribution {
	if value == nil || n == 0 {
		return nil
	}
	v := *value * unit
	return &Distribution{Summary: report.Summary{N: n, P50: v}, Only: OnlyMedian, Histogram: report.Histogram{Growth: stat.Growth, Bins: [][2]int64{}}}
}
