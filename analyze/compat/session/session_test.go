package session

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// read writes one file and reads it.
func read(tb testing.TB, name string, content []byte) (*Data, file.Tally) {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "x")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		tb.Fatal(err)
	}
	in, err := file.New(path, name)
	if err != nil {
		tb.Fatal(err)
	}
	d, err := Read(context.Background(), []file.Input{in})
	if err != nil {
		tb.Fatal(err)
	}
	return d, *in.Tally
}

// Every file of a session is told by its content, whatever it is called.
func TestIs(t *testing.T) {
	err := filepath.WalkDir("../../../testdata/evidence/session", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		head, err := os.ReadFile(path)
		if !Is("x", head) {
			t.Errorf("%s is not recognised", e.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"", "{", "[]", "a,b\n1,2\n", `{"a": 1}`, `{"gpu": "x", "cuda": "12"}`, `{"schema": "explain.report/1"}`, `{"prefill_decode": {}, "components": {}, "top_kernels": [], "cuda_graphs": {}}`,
		"INFO 01-24 12:34:56 [core.py:1] timestamp_sec,phase", "# HELP x\n", "\"ID\",\"Kernel Name\"\n"} {
		if Is("x.csv", []byte(other)) {
			t.Errorf("%q is taken for a session's file", other)
		}
	}
	if !Is("a/moe_summary.json", []byte("{}")) || Is("a/other.json", []byte("{}")) {
		t.Error("an empty summary is told by its name, which is all it has")
	}
}

// columnName is the first name of a column of a form.
func columnName(c string) string {
	c, _, _ = strings.Cut(c, " ")
	c, _, _ = strings.Cut(strings.TrimSuffix(c, "?"), "|")
	return c
}

// No two forms match the same header, so that their order does not matter.
func TestFormsExcludeEachOther(t *testing.T) {
	for _, f := range forms {
		var header []string
		for _, c := range f.columns {
			header = append(header, columnName(c))
		}
		for _, g := range forms {
			if at, missing := g.places(header); (len(missing) == 0) != (f == g) {
				t.Errorf("a header of %s as %s: %v, without %v", f.name, g.name, at, missing)
			}
		}
	}
}

// A file that lacks any column that it needs is not read, and a warning names the file and the column.
func TestMissingColumn(t *testing.T) {
	for _, f := range forms {
		for i, lacks := range f.columns {
			if lacks, _, _ = strings.Cut(lacks, " "); strings.HasSuffix(lacks, "?") {
				continue
			}
			var header []string
			for j, c := range f.columns {
				if j != i {
					header = append(header, columnName(c))
				}
			}
			text := []byte(strings.Join(header, ",") + "\n" + strings.Repeat("1,", len(header)-1) + "1\n")
			d, _ := read(t, "s/"+f.name, text)
			w, want := d.Warnings(), "s/"+f.name+" ("+strings.ReplaceAll(lacks, "|", " or ")+")"
			if len(w) != 1 || w[0].Code != "session_columns" || !strings.Contains(w[0].Text, want) {
				t.Errorf("%s without %s: %v", f.name, lacks, w)
			}
			if !Is("s/"+f.name, text) {
				t.Errorf("%s without %s is not recognised", f.name, lacks)
			}
			if Is("other.csv", text) {
				t.Errorf("%s without %s is recognised by another name", f.name, lacks)
			}
		}
	}
	if Is("moe_load_imbalance.csv", []byte("a,b\n1,2\n")) {
		t.Error("a name alone is taken for a form")
	}
}

// Records = Understood + Known + Unknown, and none is lost: a blank line, a header in the middle, a line that is too long, one
// with a NUL, one with too few fields, one cut off.
func TestTally(t *testing.T) {
	head := "timestamp_sec,usage_pct,num_blocks,total_blocks\r\n"
	text := head + "0.1,10.0,1,10\r\n\r\n" + head + "0.2,20\x00,2,10\r\n0.3,30.0,3\r\n" + strings.Repeat("x", maxLine+10) + "\r\n0.4,nan,4,10\r\n0.5,50.0,5,10\r\n0.6,6"
	d, tally := read(t, "k", []byte("\xef\xbb\xbf"+text))
	if tally.Records != 9 || tally.Understood != 2 || tally.Known != 2 || tally.Unknown != 5 {
		t.Errorf("%+v", tally)
	}
	if d.Cache.Usage.N() != 2 || *d.Cache.Usage.Mean() != 0.3 {
		t.Errorf("usage %v", d.Cache.Usage.Mean())
	}
	codes := map[string]bool{}
	for _, w := range d.Warnings() {
		codes[w.Code] = true
	}
	if !codes["session_cut"] || !codes["session_long"] {
		t.Errorf("warnings %v", d.Warnings())
	}
}

// A number that some program wrote as -0 is 0.
func TestNegativeZero(t *testing.T) {
	d, tally := read(t, "b", []byte("timestamp_sec,num_seqs,max_num_seqs,num_tokens,max_tokens\n-0,-0,8,-0.0,16\n"))
	if s := d.Batches.Seqs[""].Summary(); tally.Understood != 1 || math.Signbit(s.Min) || math.Signbit(d.Batches.Tokens[""].Summary().Min) {
		t.Errorf("%+v, %+v", tally, s)
	}
}

// A gzip file that was cut off is read up to there.
func TestDamaged(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprint(z, "timestamp_sec,lifetime_sec,idle_sec\n")
	for i := range 200_000 {
		fmt.Fprintf(z, "%d.%03d,%d.5,0.%d\n", i, i%1000, i%17, i%9)
	}
	z.Close()
	d, tally := read(t, "e.csv.gz", b.Bytes()[:b.Len()/2])
	if tally.Understood < 50_000 || len(d.broken) != 1 {
		t.Errorf("%+v, damaged: %v", tally, d.broken)
	}
}

// A thinned sample keeps count, sum, extremes and deviation exact, and percentiles close.
func TestSample(t *testing.T) {
	all, few := Sample{}, Sample{limit: 1 << 10}
	for i := range 100_000 {
		v := float64((i * 7919) % 100_000)
		all.add(v)
		few.add(v)
	}
	a, f := all.Summary(), few.Summary()
	if all.Thinned() || !few.Thinned() || len(few.values) > 1<<10 {
		t.Fatalf("thinned: %v %v, %d values", all.Thinned(), few.Thinned(), len(few.values))
	}
	if a.N != f.N || a.Min != f.Min || a.Max != f.Max || a.Mean != f.Mean || math.Abs(a.Stddev-f.Stddev) > 1e-6*a.Stddev {
		t.Errorf("%+v\n%+v", a, f)
	}
	for _, p := range [][2]float64{{a.P50, f.P50}, {a.P90, f.P90}, {a.P99, f.P99}} {
		if math.Abs(p[0]-p[1]) > 0.02*100_000 {
			t.Errorf("percentile %v, thinned %v", p[0], p[1])
		}
	}
	if (&Sample{}).Summary() != nil || (&Sample{}).Mean() != nil {
		t.Error("an empty sample has a summary")
	}
}

// Whatever the span, a series has a bounded number of points, and their weighted mean is that of the values.
func TestSeries(t *testing.T) {
	for _, step := range []float64{0.001, 1, 1000} {
		for _, start := range []float64{0, 1.7e9} {
			var s Series
			sum := 0.0
			for i := range 5000 {
				v := float64(i % 10)
				sum += v
				s.add(start+float64(i)*step, v, 1)
			}
			at, _ := s.Points()
			if len(at) == 0 || len(at) > maxBins || step > 0.01 && len(at) < maxBins/4 {
				t.Errorf("step %v from %v: %d points", step, start, len(at))
			}
			num := 0.0
			for _, v := range s.num {
				num += v
			}
			if num != sum {
				t.Errorf("step %v: sums %v, want %v", step, num, sum)
			}
		}
	}
}

// Python writes NaN into JSON, which stands for unknown; text that says NaN stays.
func TestWithoutNaN(t *testing.T) {
	got := string(file.WithoutNaN([]byte(`{"a": NaN, "b": -Infinity, "NaN": "a \" NaN", "c": -1, "d\\": Infinity}`)))
	if want := `{"a": null, "b": null, "NaN": "a \" NaN", "c": -1, "d\\": null}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Hostile counts keep memory in bounds.
func TestBounds(t *testing.T) {
	d, tally := read(t, "a", []byte("layer_idx,expert_id,activation_count,percentage\n0,999999999,5,1\n99999,1,5,1\n0,2,5,1\n0,-1,5,1\n-1,0,7,1\n0,1,99999999999999999999,1\n"))
	if tally.Understood != 4 || tally.Unknown != 2 || d.MoE.lost != 2 || len(d.MoE.Layers) != 2 || d.MoE.hits > 4 {
		t.Errorf("%+v lost %d, %d layers, %d hits", tally, d.MoE.lost, len(d.MoE.Layers), d.MoE.hits)
	}
	var b strings.Builder
	b.WriteString("runtime_mode,num_tokens,num_reqs,uniform,has_lora,replay_count\n")
	for i := range 2 * maxGraphs {
		fmt.Fprintf(&b, "FULL,%d,None,False,False,1\n", i)
	}
	d, _ = read(t, "g", []byte(b.String()))
	if len(d.Graphs.ByBatch) != maxGraphs || d.Graphs.lost != maxGraphs {
		t.Errorf("%d graphs, %d lost", len(d.Graphs.ByBatch), d.Graphs.lost)
	}
}

// Two files of a form are taken together, in either order.
func TestTogether(t *testing.T) {
	dir := t.TempDir()
	var files []file.Input
	for i, rows := range []string{"0,1,2,30\n0,3,4,10\n", "0,2,1,5\n1,0,1,1\n"} {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, []byte("layer_idx,expert_id_1,expert_id_2,coselection_count\n"+rows), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in)
	}
	d, err := Read(context.Background(), files)
	want := []Pair{{0, 1, 2, 35}, {0, 3, 4, 10}, {1, 0, 1, 1}}
	if err != nil || !slices.Equal(d.MoE.Pairs, want) {
		t.Errorf("%v (%v), want %v", d.MoE.Pairs, err, want)
	}
}

// FuzzRead feeds anything to the reader: no panic, no lost record, nothing unbounded.
func FuzzRead(f *testing.F) {
	_ = filepath.WalkDir("../../../testdata/evidence/session", func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if b, err := os.ReadFile(path); err == nil {
				f.Add(e.Name(), b)
			}
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		if !Is(name, content) {
			return
		}
		d, tally := read(t, name, content)
		if tally.Records != tally.Understood+tally.Known+tally.Unknown {
			t.Errorf("%+v", tally)
		}
		for _, s := range []*Sample{&d.AllForward.Time, &d.Cache.Usage.Sample, &d.MoE.Imbalance.Sample, &d.MoE.TopWeight, &d.Requests.Delay} {
			if v := s.Summary(); v != nil && (math.IsNaN(v.Mean) || math.IsInf(v.Max, 0) || v.Min > v.Max) {
				t.Errorf("%+v", v)
			}
		}
		for _, l := range d.MoE.Layers {
			if x := l.Load(); x.Total < 0 || x.Dead != nil && (*x.Dead < 0 || *x.Least > x.Busiest) {
				t.Errorf("layer %d: %+v", l.Index, x)
			}
		}
		d.Warnings()
	})
}
