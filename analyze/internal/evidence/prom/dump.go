package prom

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

const (
	// maxBytes bounds a file: a server's dump has a hundred kilobytes.
	maxBytes = 64 << 20
	// maxBad is how many lines that are not samples are left out before the rest of a dump is given up.
	maxBad = 20
	// maxModels bounds the different models that are told apart.
	maxModels = 64
)

// dump is one answer of /metrics.
type dump struct {
	name     string
	engine   string
	started  float64         // when the process started, in seconds; 0 unknown
	series   int             // lines that something was taken from
	used     map[string]bool // families
	mixed    int
	models   map[string]bool
	hists    map[string]*Histogram
	counters map[string]float64
	gauges   map[string]float64
	finished map[string]float64
}

func newDump(name string) *dump {
	return &dump{name: name, used: map[string]bool{}, models: map[string]bool{}, hists: map[string]*Histogram{},
		counters: map[string]float64{}, gauges: map[string]float64{}, finished: map[string]float64{}}
}

// readFile reads the dumps of one file: usually one, several where somebody appended them.
func readFile(in *file.Input, d *Data) ([]*dump, error) {
	f, err := in.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", in.Name, err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(file.UTF8(f), maxBytes+1))
	if err != nil {
		d.warn("prometheus_damaged", "%s was read up to where its data ends or is damaged", in.Name)
	}
	if len(body) > maxBytes {
		d.warn("prometheus_long", "%s is larger than %d MB: only its beginning was read", in.Name, maxBytes>>20)
		body = body[:bytes.LastIndexByte(body[:maxBytes], '\n')+1]
	}
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))
	var list []*dump
	bad := 0
	parts := split(body)
	for _, part := range parts {
		families, left := parse(typed(part), &bad)
		x := newDump(in.Name)
		x.take(families)
		x.count(part, families, in.Tally)
		if left > 0 {
			d.warn("prometheus_damaged", "%s: %d lines behind one that is not a sample were not read", in.Name, left)
		}
		list = append(list, x)
		in.Tally.Format, in.Tally.Version = x.engine, ""
	}
	if bad > 0 {
		d.warn("prometheus_malformed", "%s: %d lines are not samples of Prometheus' text format and were left out",
			in.Name, bad)
	}
	if len(parts) > 1 {
		in.Tally.Format += fmt.Sprintf(" (%d dumps)", len(parts))
	}
	return list, nil
}

// count sorts the samples of a dump by what became of their family.
func (x *dump) count(body []byte, families map[string]*dto.MetricFamily, t *file.Tally) {
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		t.Records++
		end := bytes.IndexAny(line, "{ \t")
		if end < 0 {
			end = len(line)
		}
		name := string(line[:end])
		if families[name] == nil {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if own, ok := strings.CutSuffix(name, suffix); ok {
					name = own
					break
				}
			}
		}
		switch {
		case x.used[name]:
			t.Understood++
			x.series++
		case families[name] != nil:
			t.Known++
		default:
			t.Unknown++
		}
	}
}

// split cuts a file in which several dumps follow each other, where its first comment comes again.
func split(body []byte) [][]byte {
	first := body[:bytes.IndexByte(append(bytes.Clone(body[:min(len(body), 4096)]), '\n'), '\n')]
	if len(first) < 8 || first[0] != '#' {
		return [][]byte{body}
	}
	mark := append([]byte("\n"), append(bytes.Clone(first), '\n')...)
	var parts [][]byte
	for {
		at := bytes.Index(body[min(1, len(body)):], mark)
		if at < 0 {
			return append(parts, body)
		}
		parts = append(parts, body[:at+2])
		body = body[at+2:]
	}
}

// parse reads the families of a dump. A line that is not a sample is left out and counted; left is the number of lines
// that were given up behind too many of them.
func parse(body []byte, bad *int) (families map[string]*dto.MetricFamily, left int64) {
	for range maxBad {
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(bytes.NewReader(plain(body)))
		var wrong expfmt.ParseError
		switch {
		case err == nil:
			return families, 0
		case !errors.As(err, &wrong):
			return families, int64(bytes.Count(body, []byte("\n")))
		}
		start, end := lineAt(body, wrong.Line)
		if start >= len(body) || start == end {
			return families, 0
		}
		if text := bytes.TrimSpace(body[start:end]); len(text) > 0 && text[0] != '#' {
			*bad++
		}
		body = slices.Concat(body[:start], []byte("\n"), body[end:])
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(plain(body)))
	var wrong expfmt.ParseError
	if errors.As(err, &wrong) {
		start, _ := lineAt(body, wrong.Line)
		left = int64(bytes.Count(body[start:], []byte("\n")))
	}
	return families, left
}

// typed declares the histograms whose declaration was lost, as where somebody took the samples alone out of a dump.
func typed(body []byte) []byte {
	var missing []byte
	seen := map[string]bool{}
	for line := range bytes.Lines(body) {
		if f := bytes.Fields(line); len(f) > 3 && string(f[0]) == "#" && string(f[1]) == "TYPE" {
			seen[string(f[2])] = true
		}
	}
	for line := range bytes.Lines(body) {
		name, _, _ := bytes.Cut(bytes.TrimSpace(line), []byte("{"))
		if base, ok := bytes.CutSuffix(name, []byte("_bucket")); ok && !seen[string(base)] &&
			sampleName(bytes.TrimSpace(line)) != "" {
			seen[string(base)] = true
			missing = fmt.Appendf(missing, "# TYPE %s histogram\n", base)
		}
	}
	if missing == nil {
		return body
	}
	return append(missing, body...)
}

// plain ends a dump with a newline, as the format wants it, and takes off what OpenMetrics has behind a value:
// exemplars, … # {…} 1, and times in seconds with a fraction.
func plain(body []byte) []byte {
	if len(body) > 0 && body[len(body)-1] != '\n' {
		body = append(bytes.Clone(body), '\n')
	}
	out := make([]byte, 0, len(body))
	for line := range bytes.Lines(body) {
		if line[0] != '#' {
			if at := bytes.LastIndex(line, []byte(" # {")); at > 0 {
				line = append(line[:at:at], '\n')
			}
			value := bytes.LastIndexByte(line, '}') + 1
			if value == 0 { // no labels
				value = max(bytes.IndexAny(line, " \t"), 0)
			}
			if f := bytes.Fields(line[value:]); value > 0 && len(f) == 2 && bytes.IndexByte(f[1], '.') > 0 {
				line = append(append(append(line[:value:value], ' '), f[0]...), '\n')
			}
		}
		out = append(out, line...)
	}
	return out
}

// lineAt is where the n-th line, from 1, starts and ends in body, its newline included.
func lineAt(body []byte, n int) (start, end int) {
	for range n - 1 {
		i := bytes.IndexByte(body[start:], '\n')
		if i < 0 {
			return len(body), len(body)
		}
		start += i + 1
	}
	if i := bytes.IndexByte(body[start:], '\n'); i >= 0 {
		return start, start + i + 1
	}
	return start, len(body)
}

// take sums up what the families of the engines say.
func (x *dump) take(families map[string]*dto.MetricFamily) {
	if f := families["process_start_time_seconds"]; f != nil && len(f.Metric) == 1 {
		x.started, _ = value(f.Metric[0])
	}
	own := map[string]*dto.MetricFamily{}
	for _, e := range engines {
		for fullName, f := range families {
			name, engine, ok := ownName(fullName)
			if !ok || engine != e.name || x.engine != "" && x.engine != engine {
				continue
			}
			x.engine = engine
			own[name] = f
			for _, m := range f.Metric {
				for _, l := range m.Label {
					if slices.Contains(modelLabels, l.GetName()) && len(x.models) < maxModels {
						x.models[l.GetValue()] = true
					}
				}
			}
		}
	}
	for _, n := range histograms {
		f := own[n.family]
		if f == nil || x.hists[n.of] != nil && x.hists[n.of].Count > 0 {
			continue
		}
		if h := x.histogram(f); h != nil {
			h.Family = n.family
			x.hists[n.of] = h
			x.use(f)
		}
	}
	for _, n := range counters {
		f := own[n.family]
		if f == nil {
			if f = own[untotal(n.family)]; f == nil { // OpenMetrics declares counters without _total
				continue
			}
		}
		if _, ok := x.counters[n.of]; ok {
			continue
		}
		sum, stated := 0.0, false
		for _, m := range f.Metric {
			if v, ok := value(m); ok {
				sum, stated = sum+v, true
			}
		}
		if stated {
			x.counters[n.of] = sum
			x.use(f)
		}
	}
	for _, n := range gauges {
		f := own[n.family]
		if _, ok := x.gauges[n.of]; f == nil || ok {
			continue
		}
		v, stated := 0.0, false
		for _, m := range f.Metric {
			of, ok := value(m)
			switch {
			case !ok:
				continue
			case summed[n.of]:
				v += of
			default:
				v = max(v, of)
			}
			stated = true
		}
		if stated {
			x.gauges[n.of] = v
			x.use(f)
		}
	}
	x.more(own)
}

// use notes that something was taken from a family.
func (x *dump) use(f *dto.MetricFamily) { x.used[f.GetName()] = true }

func untotal(family string) string {
	const suffix = "_total"
	return family[:max(0, len(family)-len(suffix))]
}

// more takes what has labels of its own: requests by reason, and the size of the KV cache.
func (x *dump) more(own map[string]*dto.MetricFamily) {
	if f := own["request_success_total"]; f != nil {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				if l.GetName() == "finished_reason" {
					r := l.GetValue()
					if !slices.Contains(reasons, r) {
						r = "other"
					}
					v, _ := value(m)
					x.finished[r] += v
				}
			}
		}
		x.use(f)
	}
	if f := own["cache_config_info"]; f != nil {
		var sum float64
		for _, m := range f.Metric {
			var blocks, size float64
			for _, l := range m.Label {
				switch l.GetName() {
				case "num_gpu_blocks":
					blocks, _ = strconv.ParseFloat(l.GetValue(), 64)
				case "block_size":
					size, _ = strconv.ParseFloat(l.GetValue(), 64)
				}
			}
			sum += blocks * size
		}
		if sum > 0 && sum < 1e15 {
			x.gauges[KVTokens] = sum
			x.use(f)
		}
	}
}

// value of a counter, gauge or untyped sample; not ok is what no server counts: no finite number of at least 0.
func value(m *dto.Metric) (v float64, ok bool) {
	switch {
	case m.Counter != nil:
		v = m.Counter.GetValue()
	case m.Gauge != nil:
		v = m.Gauge.GetValue()
	case m.Untyped != nil:
		v = m.Untyped.GetValue()
	}
	if !(v >= 0 && v < math.MaxFloat64/1e6) {
		return 0, false
	}
	return v, true
}

// histogram sums up the series of a family; nil where they are none, or their buckets do not ascend.
func (x *dump) histogram(f *dto.MetricFamily) *Histogram {
	var sum *Histogram
	mixed := false
	for _, m := range f.Metric {
		if m.Histogram == nil {
			continue
		}
		h := &Histogram{Sum: m.Histogram.GetSampleSum(), Count: float64(m.Histogram.GetSampleCount())}
		slices.SortStableFunc(m.Histogram.Bucket,
			func(a, b *dto.Bucket) int { return cmp.Compare(a.GetUpperBound(), b.GetUpperBound()) })
		for _, b := range m.Histogram.Bucket {
			h.Bounds = append(h.Bounds, b.GetUpperBound())
			h.Counts = append(h.Counts, float64(b.GetCumulativeCount()))
		}
		if n := len(h.Bounds); n == 0 || !math.IsInf(h.Bounds[n-1], 1) {
			h.Bounds, h.Counts = append(h.Bounds, math.Inf(1)), append(h.Counts, h.Count)
		}
		if !slices.IsSorted(h.Bounds) || !slices.IsSorted(h.Counts) || !(h.Sum >= 0 && h.Sum < math.MaxFloat64/1e6) ||
			h.Counts[len(h.Counts)-1] != h.Count {
			continue
		}
		switch {
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

// since is what happened after an earlier dump; nil where a counter is smaller than it was, or the process is another
// one.
func (x *dump) since(earlier *dump) *dump {
	if x.engine != earlier.engine || x.started != earlier.started {
		return nil
	}
	d := newDump(x.name)
	d.engine, d.series, d.mixed, d.models, d.gauges, d.started = x.engine, x.series, x.mixed, x.models, x.gauges,
		x.started
	for name, h := range x.hists {
		o := earlier.hists[name]
		if o == nil || o.Count == 0 {
			d.hists[name] = h
			continue
		}
		if d.hists[name] = h.minus(o); d.hists[name] == nil {
			return nil
		}
	}
	for name, v := range x.counters {
		if v < earlier.counters[name] {
			return nil
		}
		d.counters[name] = v - earlier.counters[name]
	}
	for name, v := range x.finished {
		if v < earlier.finished[name] {
			return nil
		}
		d.finished[name] = v - earlier.finished[name]
	}
	return d
}
