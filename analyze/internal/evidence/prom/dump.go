package prom

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

const (
	// maxBytes bounds a file: a server's dump has a hundred kilobytes.
	maxBytes = 64 << 20
	// maxModels bounds the different models that are told apart.
	maxModels = 64
)

// dump is one answer of /metrics.
type dump struct {
	Numbers
	name    string
	triton  bool            // of Triton Inference Server
	started float64         // when the process started, in seconds; 0 unknown
	series  int             // lines that a value was taken from
	used    map[string]bool // names of samples
	mixed   int             // families whose series have different buckets
	unsound int             // series of histograms that are not used
	models  map[string]bool

	watts, joules map[string]float64 // by GPU

	seen    map[string]bool     // series that a value may be taken from
	samples map[string][]sample // of these, by name
	lines   map[string]int64    // by name
}

func newDump(name string) *dump {
	return &dump{name: name, seen: map[string]bool{}, samples: map[string][]sample{}, lines: map[string]int64{},
		used: map[string]bool{}, models: map[string]bool{}, Numbers: Numbers{
			Hists: map[string]*Histogram{}, Counters: map[string]float64{}, Gauges: map[string]float64{},
			Finished: map[string]float64{}}}
}

// read reads the dumps of one file: usually one, several where somebody appended them.
func (d *Data) read(in *file.Input, r io.Reader) []*dump {
	body, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	d.warnings.If(err != nil, "prometheus_damaged", "%s was read up to where its data ends or is damaged", in.Name)
	d.warnings.If(len(body) > maxBytes, "prometheus_long", "%s is larger than %d MB: only its beginning was read", in.Name, maxBytes>>20)
	if len(body) > maxBytes {
		body = body[:bytes.LastIndexByte(body[:maxBytes], '\n')+1]
	}
	x, t := newDump(in.Name), in.Tally
	list, bad := []*dump{x}, int64(0)
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 || line[0] == '#' {
			continue
		}
		t.Records++
		s, ok := parseSample(line)
		if !ok {
			bad++
			continue
		}
		if !x.add(s) {
			x.finish(t)
			x = newDump(in.Name)
			list = append(list, x)
			x.add(s)
		}
	}
	x.finish(t)
	t.Format = x.Engine
	t.Unknown += bad
	d.warnings.If(bad > 0, "prometheus_malformed", "%s: left out, because not samples of Prometheus' text format: %s", in.Name,
		wording.Count(bad, "line"))
	if len(list) > 1 {
		t.Format += fmt.Sprintf(" (%d dumps)", len(list))
	}
	return list
}

// add takes a sample. It is false for a series that a value may be taken from and that the dump has already: then
// another dump begins.
func (x *dump) add(s sample) bool {
	if isOurs(s.name) {
		series := s.name + "{" + s.seriesWithout()
		if x.seen[series] {
			return false
		}
		x.seen[series] = true
		x.samples[s.name] = append(x.samples[s.name], s)
	}
	x.lines[s.name]++
	return true
}

// finish takes the values of the samples, and counts the lines by result.
func (x *dump) finish(t *file.Tally) {
	x.take(x.samples)
	x.takePower(x.samples)
	x.triton = x.lines["nv_inference_request_success"] > 0
	for name, n := range x.lines {
		if x.used[name] {
			t.Understood += n
			x.series += int(n)
		} else {
			t.Known += n
		}
	}
	x.seen, x.samples, x.lines = nil, nil, nil
}

// isOurs reports whether values are taken from the samples of a name.
func isOurs(name string) bool {
	return isOwn(name) || name == processStart || isPower(name)
}

// rankLabels tell apart the processes of one engine of SGLang, which state the same requests. Engines of their own
// differ in dp_rank, or in another label.
var rankLabels = []string{"tp_rank", "pp_rank", "moe_ep_rank"}

// oncePerEngine leaves of the samples of a family those of the first rank of each engine, and drops a breakdown by
// priority, which SGLang writes beside the sums.
func oncePerEngine(list []sample) []sample {
	first := map[string]string{} // engine → rank
	if len(list) > 0 && list[0].get(rankLabels[0]) == "" {
		return list
	}
	of := func(s sample) (engine, rank string) {
		engine = s.seriesWithout(append([]string{"le"}, rankLabels...)...)
		for _, l := range rankLabels {
			rank += s.get(l) + " "
		}
		return engine, rank
	}
	list = slices.DeleteFunc(slices.Clone(list), func(s sample) bool { return s.get("priority") != "" })
	for _, s := range list {
		if engine, rank := of(s); first[engine] == "" || rank < first[engine] {
			first[engine] = rank
		}
	}
	return slices.DeleteFunc(list, func(s sample) bool {
		engine, rank := of(s)
		return rank != first[engine]
	})
}

// processStart is the time at which the server was started: two dumps of one process share it.
const processStart = "process_start_time_seconds"

// take sums up the samples of one engine: vLLM if a dump has samples of both.
func (x *dump) take(byName map[string][]sample) {
	if list := byName[processStart]; len(list) == 1 {
		x.started, _ = value(list[0])
	}
	own := map[string][]sample{}
	for _, e := range engines {
		for fullName, list := range byName {
			name, ok := strings.CutPrefix(fullName, e.prefix)
			if !ok || own[name] != nil || x.Engine != "" && x.Engine != e.name {
				continue
			}
			x.Engine, own[name] = e.name, oncePerEngine(list)
			for _, s := range list {
				for _, of := range modelLabels {
					if m := s.get(of); m != "" && m != "undefined" && len(x.models) < maxModels {
						x.models[m] = true
					}
				}
			}
		}
	}
	for _, n := range histograms {
		perRequest := n.of == ITL && x.Engine == "TensorRT-LLM" // which has no times between tokens
		if perRequest || x.Hists[n.of] != nil && x.Hists[n.of].Count > 0 {
			continue
		}
		if h := x.histogram(own, n.family); h != nil {
			h.Family = n.family
			x.Hists[n.of] = h
			x.use(own[n.family+"_bucket"], own[n.family+"_sum"], own[n.family+"_count"])
		}
	}
	for _, n := range counters {
		x.first(x.Counters, n, own, true)
	}
	for _, n := range gauges {
		x.first(x.Gauges, n, own, summed[n.of])
	}
	x.more(own)
}

// first takes the sum of the samples of a family, or the largest, unless another family had a value.
func (x *dump) first(to map[string]float64, n name, own map[string][]sample, summed bool) {
	if _, taken := to[n.of]; taken {
		return
	}
	for _, s := range own[n.family] {
		v, ok := value(s)
		switch {
		case !ok:
			continue
		case summed:
			to[n.of] += v
		default:
			to[n.of] = max(to[n.of], v)
		}
		x.use(own[n.family])
	}
}

// use records which samples a value was taken from, a list for each name.
func (x *dump) use(lists ...[]sample) {
	for _, list := range lists {
		if len(list) > 0 {
			x.used[list[0].name] = true
		}
	}
}

// more takes samples with labels of their own: requests by reason, and the size of the KV cache.
func (x *dump) more(own map[string][]sample) {
	finished := own["request_success_total"]
	for _, s := range finished {
		if r := s.get("finished_reason"); r != "" {
			v, _ := value(s)
			x.Finished[cmp.Or(reasons[r], "other")] += v
		}
	}
	x.use(finished)
	var sum float64
	cache := own["cache_config_info"]
	for _, s := range cache {
		blocks, _ := strconv.ParseFloat(s.get("num_gpu_blocks"), 64)
		size, _ := strconv.ParseFloat(s.get("block_size"), 64)
		tokens, _ := strconv.ParseFloat(s.get("kv_cache_size_tokens"), 64)
		sum += cmp.Or(tokens, blocks*size)
	}
	if sum > 0 && sum < 1e15 {
		x.Gauges[KVTokens] = sum
		x.use(cache)
	}
}

// value of a sample; not ok if no server can count it: it is not finite, or below 0.
func value(s sample) (v float64, ok bool) {
	if !(s.value >= 0 && s.value < tooMany) {
		return 0, false
	}
	return s.value, true
}

// tooMany is a bound that no server reaches, small enough that the sum over a dump is finite.
const tooMany = math.MaxFloat64 / 1e6

// bucket is how many observations lie up to a bound.
type bucket struct{ bound, count float64 }

// histogram sums up the series of a family; nil if there are none, or if their buckets do not ascend.
func (x *dump) histogram(own map[string][]sample, family string) *Histogram {
	sums, counts, buckets := map[string]float64{}, map[string]float64{}, map[string][]bucket{}
	for _, s := range own[family+"_sum"] {
		sums[s.series()] = s.value
	}
	for _, s := range own[family+"_count"] {
		counts[s.series()] = s.value
	}
	var order []string
	for _, s := range own[family+"_bucket"] {
		bound, err := strconv.ParseFloat(s.get("le"), 64)
		if err != nil {
			continue
		}
		key := s.series()
		if buckets[key] == nil {
			order = append(order, key)
		}
		buckets[key] = append(buckets[key], bucket{bound, s.value})
	}
	var sum *Histogram
	mixed := false
	for _, key := range order {
		total, known := sums[key]
		if !known {
			total = math.NaN()
		}
		h := &Histogram{Sum: total, Count: counts[key]}
		lists.Sort(buckets[key], func(a, b bucket) int { return cmp.Compare(a.bound, b.bound) })
		for _, b := range buckets[key] {
			h.Bounds, h.Counts = append(h.Bounds, b.bound), append(h.Counts, b.count)
		}
		last := len(h.Bounds) - 1
		_, counted := counts[key]
		switch {
		case !math.IsInf(h.Bounds[last], 1):
			h.Bounds, h.Counts = append(h.Bounds, math.Inf(1)), append(h.Counts, h.Count)
		case !counted:
			h.Count = h.Counts[last]
		}
		switch {
		case !(h.Bounds[0] > -tooMany) || !(h.Counts[0] >= 0) || !slices.IsSorted(h.Counts),
			h.Sum < 0 || h.Sum >= tooMany || !(h.Count < tooMany) || h.Counts[len(h.Counts)-1] != h.Count:
			x.unsound++ // as no server writes it, or a filter left it
		case sum == nil:
			sum = h
		case !sum.add(h):
			mixed = true
		}
	}
	if mixed {
		x.mixed++
	}
	return sum
}

// since is the difference to an earlier dump; nil if a counter went down, or if the process is another one.
func (x *dump) since(earlier *dump) *dump {
	if x.Engine != earlier.Engine || x.started != earlier.started && x.started*earlier.started != 0 {
		return nil
	}
	d := *x
	d.Hists = map[string]*Histogram{}
	for name, h := range x.Hists {
		if o := earlier.Hists[name]; o != nil && o.Count > 0 {
			if h = h.minus(o); h == nil {
				return nil
			}
		}
		d.Hists[name] = h
	}
	d.Counters, d.Finished = minus(x.Counters, earlier.Counters), minus(x.Finished, earlier.Finished)
	if d.Counters == nil || d.Finished == nil {
		return nil
	}
	return &d
}

// minus is how much counters grew; nil if one went down.
func minus(now, earlier map[string]float64) map[string]float64 {
	grown := map[string]float64{}
	for name, v := range now {
		if grown[name] = v - earlier[name]; grown[name] < 0 {
			return nil
		}
	}
	return grown
}
