package prom

import (
	"bytes"
	"compress/gzip"
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

func read(tb testing.TB, text []byte) (*Data, *file.Tally) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "metrics.prom")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	in, err := file.New(path, "metrics.prom")
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Read(context.Background(), []file.Input{in})
	if err != nil {
		tb.Fatal(err)
	}
	if t := in.Tally; t.Records != t.Understood+t.Known+t.Unknown || t.Unknown < 0 || t.Known < 0 {
		tb.Fatalf("lines were lost: %+v", *t)
	}
	return d, in.Tally
}

// Quantiles as histogram_quantile gives them: worked out by hand.
func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		bounds, counts []float64
		q, want        float64
		ok             bool
	}{
		"within the first bucket":    {[]float64{10, 20, inf}, []float64{10, 10, 10}, 0.5, 5, true},
		"at an edge":                 {[]float64{10, 20, inf}, []float64{10, 20, 20}, 0.5, 10, true},
		"within the second":          {[]float64{10, 20, inf}, []float64{10, 20, 20}, 0.75, 15, true},
		"an empty bucket between":    {[]float64{10, 20, 30, inf}, []float64{10, 10, 20, 20}, 0.75, 25, true},
		"above the last edge":        {[]float64{10, 20, inf}, []float64{0, 5, 10}, 0.9, 20, false},
		"nothing":                    {[]float64{10, inf}, []float64{0, 0}, 0.5, 0, false},
		"everything in the last":     {[]float64{10, inf}, []float64{0, 4}, 0.5, 10, false},
		"the only bucket has no end": {[]float64{inf}, []float64{4}, 0.5, 0, false},
	} {
		h := &Histogram{Bounds: c.bounds, Counts: c.counts, Count: c.counts[len(c.counts)-1]}
		if got, ok := h.Quantile(c.q); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %v; want %v, %v", name, got, ok, c.want, c.ok)
		}
	}
}

// Observations that are all in one bucket of 10 to 20 are spread over it: 10 ÷ √12.
func TestSpread(t *testing.T) {
	h := &Histogram{Bounds: []float64{10, 20, math.Inf(1)}, Counts: []float64{0, 4, 4}, Count: 4}
	if got, want := h.Spread(), 10/math.Sqrt(12); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	// One at 5 and one at 15 on average: 5 between the middles, and 10 ÷ √12 within.
	h = &Histogram{Bounds: []float64{10, 20, math.Inf(1)}, Counts: []float64{1, 2, 2}, Count: 2}
	if got, want := h.Spread(), math.Sqrt(25+100.0/12); math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}

// A quantile lies in the bucket that holds the observation of its rank, and quantiles do not decrease.
func TestQuantileProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "buckets")
		h := &Histogram{}
		for i := range n {
			h.Bounds = append(h.Bounds, float64((i+1)*(i+1)))
			h.Count += float64(rapid.IntRange(0, 5).Draw(t, "in"))
			h.Counts = append(h.Counts, h.Count)
		}
		h.Bounds, h.Counts = append(h.Bounds, math.Inf(1)), append(h.Counts, h.Count)
		last := 0.0
		for _, q := range []float64{0, 0.1, 0.5, 0.9, 0.99, 1} {
			v, ok := h.Quantile(q)
			if h.Count == 0 {
				if ok {
					t.Fatalf("%v of nothing", v)
				}
				continue
			}
			low, high, _ := h.Range()
			if !ok || v < last || v < low-1e-9 && q > 0 || v > high+1e-9 {
				t.Fatalf("q %v: %v after %v, in %v to %v (%v)", q, v, last, low, high, h.Counts)
			}
			last = v
		}
	})
}

// wide is a text in UTF-16, as PowerShell writes it.
func wide(text []byte) []byte {
	out := []byte{0xff, 0xfe}
	for _, c := range text {
		out = append(out, c, 0)
	}
	return out
}

// headOf is the start of a file with that content.
func headOf(t *testing.T, text []byte) []byte {
	t.Helper()
	in := file.Input{Path: filepath.Join(t.TempDir(), "x"), Bytes: int64(len(text))}
	if err := os.WriteFile(in.Path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	head, err := in.Head()
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// sorted is a dump whose lines somebody sorted.
func sorted(text []byte) []byte {
	lines := bytes.SplitAfter(text, []byte("\n"))
	slices.SortFunc(lines, bytes.Compare)
	return bytes.Join(lines, nil)
}

// samplesOnly is a dump without its comments.
func samplesOnly(text []byte) []byte {
	var out []byte
	for line := range bytes.Lines(text) {
		if line[0] != '#' {
			out = append(out, line...)
		}
	}
	return out
}

func TestDamage(t *testing.T) {
	example, err := os.ReadFile("../../../../testdata/evidence/metrics.prom")
	if err != nil {
		t.Fatal(err)
	}
	want, tally := read(t, example)
	if tally.Format != "vLLM" || tally.Unknown != 0 || len(want.Warnings()) != 0 || want.Hists[TTFT].Count != 100 {
		t.Fatalf("%+v %v", *tally, want.Warnings())
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(example); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    []byte
		warning string
	}{
		"packed":                {packed.Bytes(), ""},
		"windows":               {bytes.ReplaceAll(example, []byte("\n"), []byte("\r\n")), ""},
		"no newline at end":     {bytes.TrimRight(example, "\n"), ""},
		"byte order mark":       {append([]byte("\xef\xbb\xbf"), example...), ""},
		"OpenMetrics":           {append(bytes.ReplaceAll(example, []byte("} 40.0\n"), []byte("} 40.0 # {trace_id=\"x\"} 0.05 1.7e9\n")), "# EOF\n"...), ""},
		"utf-16":                {wide(example), ""},
		"times with a fraction": {bytes.ReplaceAll(example, []byte("} 40.0\n"), []byte("} 40.0 1760000000.123\n")), ""},
		"without labels, too":   {append([]byte("process_start_time_seconds 1.76e+09 1760000000.123\n"), example...), ""},
		"sorted":                {sorted(example), ""},
		"samples alone":         {samplesOnly(example), ""},
		"behind curl -i":        {append([]byte("HTTP/1.1 200 OK\r\ncontent-type: text/plain; version=0.0.4\r\n\r\n"), example...), "prometheus_malformed"},
		"a line that is none":   {append([]byte("vllm:broken{a=\"b} 1\n"), example...), "prometheus_malformed"},
		"garbage in the middle": {bytes.Replace(example, []byte("# TYPE vllm:e2e"), []byte("}}}} what\n# TYPE vllm:e2e"), 1), "prometheus_malformed"},
		"cut short":             {example[:len(example)-len("ected_total{generation=\"0\"} 11299.0\n")], "prometheus_malformed"},
	} {
		d, _ := read(t, c.text)
		if !Is("x", headOf(t, c.text)) {
			t.Errorf("%s is not recognised", name)
		}
		if d.Hists[TTFT] == nil || d.Hists[TTFT].Count != 100 || d.Counters[PromptTokens] != 10000 {
			t.Errorf("%s: %+v", name, d.Hists[TTFT])
		}
		if w := d.Warnings(); c.warning == "" && len(w) > 0 || c.warning != "" && (len(w) != 1 || w[0].Code != c.warning) {
			t.Errorf("%s: warnings %v", name, w)
		}
	}
}

// Values that no server counts are left out rather than believed.
func TestImpossibleValues(t *testing.T) {
	d, _ := read(t, []byte(`# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total NaN
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total -5
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running +Inf
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.2"} 5
vllm:time_to_first_token_seconds_bucket{le="0.1"} 9
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 7
vllm:time_to_first_token_seconds_sum NaN
vllm:time_to_first_token_seconds_count 7
`))
	if len(d.Counters) != 0 || len(d.Gauges) != 0 || d.Hists[TTFT] != nil {
		t.Errorf("%+v %+v", d, d.Hists[TTFT])
	}
}

// Engines whose buckets differ cannot be added up.
func TestMixedBuckets(t *testing.T) {
	d, _ := read(t, []byte(`# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 5
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 5
vllm:time_to_first_token_seconds_count{engine="0"} 5
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.2"} 5
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 5
vllm:time_to_first_token_seconds_count{engine="1"} 5
`))
	if d.Hists[TTFT].Count != 5 || len(d.Warnings()) != 1 || d.Warnings()[0].Code != "prometheus_buckets" {
		t.Errorf("%+v %v", d.Hists[TTFT], d.Warnings())
	}
}

// A sample, field by field, and what is none.
func TestParseSample(t *testing.T) {
	for text, want := range map[string]sample{
		"a 1":                               {"a", nil, 1},
		"a:b_2\t1e3 1760000000":             {"a:b_2", nil, 1000},
		`a{} 2`:                             {"a", nil, 2},
		`a{x="1",y="",} 3.5`:                {"a", []label{{"x", "1"}, {"y", ""}}, 3.5},
		`a{ x="a\"b\\c\nd}" , le="+Inf"} 4`: {"a", []label{{"x", "a\"b\\c\nd}"}, {"le", "+Inf"}}, 4},
		`a{x="1"} 5 # {id="7"} 0.05 1.7e9`:  {"a", []label{{"x", "1"}}, 5},
	} {
		if got, ok := parseSample([]byte(text)); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "a", "a b", "1a 1", "a-b 1", "{} 1", "a{ 1", `a{x="1} 1`, `a{x=1} 1`, `a{x="1" y="2"} 1`, "a 1 2 3", "a 1 now",
		`a{x="1"}`, `a{x="\`, `a{x="1",,} 1`,
	} {
		if s, ok := parseSample([]byte(text)); ok {
			t.Errorf("%s: %+v", text, s)
		}
	}
}

// vLLM up to 0.6 had a gauge of its throughput.
func TestOldNames(t *testing.T) {
	d, _ := read(t, []byte("# TYPE vllm:avg_generation_throughput_toks_per_s gauge\nvllm:avg_generation_throughput_toks_per_s{model_name=\"a/b\"} 12.5\n"))
	if d.Gauges[GenerationRate] != 12.5 {
		t.Errorf("%v", d.Gauges)
	}
}

func TestModels(t *testing.T) {
	d, _ := read(t, []byte("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"/home/jane/llama\"} 1\n"))
	if d.Model != "llama" {
		t.Errorf("model %q", d.Model)
	}
	d, _ = read(t, []byte("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"a/b\"} 1\nvllm:num_requests_running{model_name=\"a/c\"} 1\n"))
	if d.Model != "" || d.Warnings()[0].Code != "prometheus_models" {
		t.Errorf("model %q, %v", d.Model, d.Warnings())
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"# HELP a b\n# TYPE a counter\na 1\n": true, "# TYPE a histogram\n": true, "vllm:x{a=\"b\"} 1\n": true, "\n\n# TYPE a gauge\r\n": true,
		"HTTP/1.1 200 OK\r\n\r\n# TYPE a gauge\r\n": true, "python_gc_objects_collected_total{generation=\"0\"} 1\nsglang_x{a=\"b\"} 1\n": true,
		strings.Repeat("text\n", maxOther) + "# TYPE a gauge\n": true, strings.Repeat("text\n", maxOther+1) + "# TYPE a gauge\n": false, "node_load1 0.5\n": false,
		"": false, "# a comment\n": false, "hello\n": false, "# TYPE of thing\n": false, "a,b,c\n": false, "# TYPE a counter of things\n": false,
	} {
		if Is("x", []byte(text)) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// FuzzRead: whatever a dump holds, no line is lost, nothing panics, and what comes out are finite numbers.
func FuzzRead(f *testing.F) {
	example, err := os.ReadFile("../../../../testdata/evidence/metrics.prom")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example[:3000])
	f.Add([]byte("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total 1 # {a=\"b\"} 1\n# EOF\n"))
	f.Add([]byte("# HELP a\nvllm:x 1\n# HELP a\nvllm:x 2\n"))
	f.Add([]byte("HTTP/1.1 200 OK\n\nsglang:num_running_reqs{tp_rank=\"0\",priority=\"\"} 1\n" +
		"sglang:num_running_reqs{tp_rank=\"1\",priority=\"1\"} 1\n" +
		"sglang:num_running_reqs{tp_rank=\"0\",priority=\"\"} 2 # {a=\"}\"} 1\n"))
	path := filepath.Join(f.TempDir(), "fuzz.prom")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, "fuzz.prom")
		if err != nil {
			t.Fatal(err)
		}
		Is("fuzz.prom", text)
		d, err := Read(context.Background(), []file.Input{in})
		if err != nil {
			return
		}
		if tally := in.Tally; tally.Records != tally.Understood+tally.Known+tally.Unknown || tally.Unknown < 0 || tally.Known < 0 {
			t.Fatalf("lines were lost: %+v", *tally)
		}
		for name, h := range d.Hists {
			for _, q := range []float64{0.5, 0.99} {
				if v, ok := h.Quantile(q); ok && (math.IsNaN(v) || math.IsInf(v, 0)) {
					t.Fatalf("%s: %v of %+v", name, v, h)
				}
			}
			if v := h.Spread(); math.IsNaN(v) || math.IsInf(v, 0) {
				t.Fatalf("%s: spread of %+v", name, h)
			}
		}
		for name, v := range d.Counters {
			if !(v >= 0) || math.IsInf(v, 0) {
				t.Fatalf("%s = %v", name, v)
			}
		}
	})
}

// Without _count the last bucket counts, which is the same number; without _sum the mean is not known. What does not fit
// together is left out and told.
func TestHistogramWithoutAllItsSeries(t *testing.T) {
	buckets := `vllm:time_to_first_token_seconds_bucket{le="0.1"} 3
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 4
`
	d, _ := read(t, []byte(buckets+"vllm:time_to_first_token_seconds_sum 0.5\n"))
	if h := d.Hists[TTFT]; h == nil || h.Count != 4 || h.Sum != 0.5 || len(d.Warnings()) != 0 {
		t.Errorf("%+v, %+v", h, d.Warnings())
	}
	d, _ = read(t, []byte(buckets+"vllm:time_to_first_token_seconds_count 4\n"))
	if h := d.Hists[TTFT]; h == nil || h.Count != 4 || !math.IsNaN(h.Sum) || len(d.Warnings()) != 0 {
		t.Errorf("%+v, %+v", h, d.Warnings())
	}
	d, _ = read(t, []byte(buckets+"vllm:time_to_first_token_seconds_count 5\n"))
	if w := d.Warnings(); d.Hists[TTFT] != nil || len(w) != 1 || w[0].Code != "prometheus_unsound" || !strings.HasPrefix(w[0].Text, "1 series ") {
		t.Errorf("%+v, %+v", d.Hists[TTFT], w)
	}
}
