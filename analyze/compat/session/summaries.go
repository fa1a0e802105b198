package session

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// The JSON files of a session sum up its tables. The report computes its numbers from the tables. A summary adds what
// the tables lack (the number of experts), is compared with them, and replaces a table that is missing.

// Kinds of summaries, by the names that profilemate gives their files.
const (
	noSummary         = ""
	moeSummary        = "moe_summary.json"
	forwardSummary    = "forward_pass_summary.json"
	cpuSummary        = "cpu_timing_summary.json"
	batchSummary      = "batch_utilization_summary.json"
	preemptionSummary = "preemption_summary.json"
	componentSummary  = "encoder_decoder_summary.json"
	metadata          = "metadata.json"
	emptySummary      = "empty summary"
	cacheSummary      = "kv_cache_summary.txt"
)

// summaryNames are names of files that hold {} if nothing was recorded, from which their kind cannot be seen.
var summaryNames = []string{"summary.json", moeSummary, forwardSummary, cpuSummary, batchSummary, preemptionSummary,
	componentSummary}

// maxSummary bounds a JSON file: a summary of 100 layers has 40 kB.
const maxSummary = 4 << 20

var layerKey = regexp.MustCompile(`^layer_(-?[0-9]{1,5})$`)

// layerStart is the beginning of a summary of many layers, for files of which only the start was read.
var layerStart = regexp.MustCompile(`^\s*\{\s*"layer_-?[0-9]{1,5}"\s*:\s*\{`)

// parse reads a JSON object whose numbers may be Python's NaN and Infinity, which stand for unknown.
func parse(b []byte) (map[string]json.RawMessage, bool) {
	var top map[string]json.RawMessage
	if json.Unmarshal(b, &top) == nil {
		return top, top != nil
	}
	return top, json.Unmarshal(file.WithoutNaN(b), &top) == nil && top != nil
}

// kindOf tells the kind of a summary from its keys.
func kindOf(name string, b []byte) string {
	switch {
	case bytes.HasPrefix(b, []byte("KV Cache Statistics")):
		return cacheSummary
	case len(bytes.TrimLeft(b, " \t\r\n")) == 0 || bytes.TrimLeft(b, " \t\r\n")[0] != '{':
		return noSummary
	case layerStart.Match(b):
		return moeSummary
	}
	top, ok := parse(b)
	if !ok {
		return noSummary
	}
	has := func(keys ...string) bool {
		return !slices.ContainsFunc(keys, func(k string) bool { return top[k] == nil })
	}
	switch {
	case len(top) == 0:
		if slices.Contains(summaryNames, path.Base(name)) {
			return emptySummary
		}
		return noSummary
	case has("total_samples", "mean_token_utilization_pct"):
		return batchSummary
	case has("total_preemptions", "total_requests"):
		return preemptionSummary
	case has("model_type") && (len(top) == 1 || has("encoder_pct") || has("decoder") || has("encoder")):
		return componentSummary
	case has("session_id", "start_time") && (has("cuda_graph_tracking") || has("cuda_events_enabled") ||
		has("moe_expert_tracking")):
		return metadata
	}
	kind := forwardSummary // whose parts all have percentiles
	for _, raw := range top {
		t, _ := parse(raw)
		if t["count"] == nil || t["mean_ms"] == nil || t["max_ms"] == nil {
			return noSummary
		}
		if t["p50_ms"] == nil {
			kind = cpuSummary
		}
	}
	return kind
}

// number is the number under a key of an object; nil if there is none, or none within bounds.
func number(of map[string]json.RawMessage, key string) *float64 {
	var v *float64
	if field(of, key, &v); v == nil || *v < 0 || *v > maxNs {
		return nil
	}
	return v
}

// readSummary reads one file that kindOf knows.
func (d *Data) readSummary(in *file.Input, r io.Reader) {
	b, err := io.ReadAll(io.LimitReader(r, maxSummary+1))
	if err != nil {
		d.broken = append(d.broken, in.Name)
	}
	if len(b) > maxSummary {
		d.long = append(d.long, in.Name)
		b = nil
	}
	t := in.Tally
	if t.Format == cacheSummary {
		d.takeCacheSummary(t, b)
		return
	}
	t.Records++
	top, ok := parse(b)
	switch {
	case !ok:
		t.Unknown++
		if len(b) > 0 && err == nil {
			d.broken = append(d.broken, in.Name)
		}
	default:
		t.Took(t.Format != emptySummary && d.takeSummary(t.Format, top))
	}
}

func (d *Data) takeSummary(k string, top map[string]json.RawMessage) (understood bool) {
	s := &d.Summaries
	switch k {
	case moeSummary:
		return d.takeMoESummary(top)
	case forwardSummary, cpuSummary:
		for _, name := range slices.Sorted(maps.Keys(top)) { // sorted, since the order changes how sums round
			t, _ := parse(top[name])
			count, mean := number(t, "count"), number(t, "mean_ms")
			if count == nil || mean == nil || *count > maxCount || *count != math.Trunc(*count) {
				continue
			}
			understood = true
			n, ns := int64(*count), *count**mean*nsPerMs
			if k == cpuSummary {
				entry(&s.Operations, Operation{Name: word(operations, name)}).state(n, ns)
				continue
			}
			s.AllForward.Time.state(n, ns)
			entry(&s.Forward, word(Phases, name)).Time.state(n, ns)
		}
	case batchSummary:
		return d.takeBatchSummary(top)
	case preemptionSummary:
		total, delay := number(top, "total_preemptions"), number(top, "mean_resume_delay")
		if understood = total != nil && number(top, "total_requests") != nil; understood {
			s.Requests.Preempted += int64(*total)
			if delay != nil && *delay > 0 { // 0 also stands for none
				s.Requests.Delay.state(1, *delay*nsPerS)
			}
		}
	case componentSummary:
		for _, name := range stated {
			c, _ := parse(top[name])
			if count, total := number(c, "count"), number(c, "total_ms"); count != nil && total != nil {
				entry(&s.Components, name).state(int64(*count), *total*nsPerMs)
				understood = true
			}
		}
		var model string
		field(top, "model_type", &model)
		if w := word(types, model); w != other {
			d.ModelType, understood = w, true
		}
	case metadata:
		field(top, "cuda_events_enabled", &d.CUDAEvents)
		understood = d.CUDAEvents != nil
	}
	return understood
}

// field decodes one key; a value of another type is ignored.
func field[T any](top map[string]json.RawMessage, key string, to *T) {
	var v T
	if raw, ok := top[key]; ok && json.Unmarshal(raw, &v) == nil {
		*to = v
	}
}

func (d *Data) takeBatchSummary(top map[string]json.RawMessage) bool {
	samples, tokens := number(top, "total_samples"), number(top, "mean_token_utilization_pct")
	if samples == nil || tokens == nil || *samples > maxCount {
		return false
	}
	b, n := &d.Summaries.Batches, int64(*samples)
	b.Steps += n
	entry(&b.Tokens, "").state(n, *samples**tokens/100)
	all := entry(&b.Seqs, "")
	if seqs := number(top, "mean_seq_utilization_pct"); seqs != nil {
		all.state(n, *samples**seqs/100)
	}
	if under := number(top, "underutilization_events"); under != nil {
		b.Under += int64(*under)
	}
	if most := number(top, "max_num_seqs"); most != nil && *most >= 1 && *most <= maxCount {
		b.MaxSeqs.add(int64(*most))
	}
	return true
}

func (d *Data) takeMoESummary(top map[string]json.RawMessage) (understood bool) {
	for _, key := range slices.Sorted(maps.Keys(top)) { // sorted, since only a bounded number is kept
		name := layerKey.FindStringSubmatch(key)
		s, _ := parse(top[key])
		experts := number(s, "num_experts")
		if name == nil || experts == nil {
			continue
		}
		index, err := strconv.Atoi(name[1])
		l := d.MoE.layer(index)
		if err != nil || l == nil {
			continue
		}
		understood = true
		e := int64(*experts)
		if e < 1 || e > maxExperts || l.stated > 0 && l.stated != e {
			l.contradicts = true
		}
		l.stated = e
		if topK := number(s, "top_k"); topK != nil {
			l.TopK = int64(*topK)
		}
		total, hit := number(s, "total_activations"), number(s, "unique_experts_activated")
		least, most := number(s, "min_activations"), number(s, "max_activations")
		if total != nil && hit != nil && least != nil && most != nil && *total <= maxCount && *hit <= maxExperts &&
			*least <= *most && *most <= *total {
			l.summary = append(l.summary, layerSummary{int64(*total), int64(*hit), int64(*least), int64(*most)})
		}
	}
	return understood
}

// layerSummary is the activations of a layer in moe_summary.json. Its least value covers only experts that were hit.
type layerSummary struct{ total, hit, least, most int64 }

var cacheLine = regexp.MustCompile(`^(Total blocks available|Total evictions|Peak blocks used|Avg block lifetime|Avg idle before eviction): ([0-9]{1,12}(?:\.[0-9]{1,6})?)s?$`)

func (d *Data) takeCacheSummary(t *file.Tally, b []byte) {
	c := &d.Summaries.Cache
	values := map[string]float64{}
	for _, line := range strings.Split(strings.TrimRight(string(b), "\r\n"), "\n") {
		t.Records++
		m := cacheLine.FindStringSubmatch(strings.TrimSpace(line))
		if t.Took(m != nil); m != nil {
			values[m[1]], _ = strconv.ParseFloat(m[2], 64)
		}
	}
	n := int64(values["Total evictions"])
	c.Evictions += n
	c.Blocks.value = max(c.Blocks.value, int64(values["Total blocks available"]))
	c.Used = max(c.Used, int64(values["Peak blocks used"]))
	if n > 0 {
		c.Lifetime.state(n, float64(n)*values["Avg block lifetime"]*nsPerS)
		c.Idle.state(n, float64(n)*values["Avg idle before eviction"]*nsPerS)
	}
}
