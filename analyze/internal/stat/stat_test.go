package stat_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/internal/stat"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a), math.Abs(b)) }

// The values are those of numpy.percentile with its default method: rank q*(n-1), linear between neighbours.
func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		sample []int64
		q      float64
		want   float64
	}{
		{[]int64{7}, 0, 7}, {[]int64{7}, 0.5, 7}, {[]int64{7}, 1, 7},
		{[]int64{1, 2}, 0.5, 1.5},                     // rank 0.5
		{[]int64{1, 2, 3, 4}, 0.5, 2.5},               // rank 1.5
		{[]int64{1, 2, 3, 4}, 0.25, 1.75},             // rank 0.75
		{[]int64{10, 20, 30, 40}, 0.9, 37},            // rank 2.7
		{[]int64{10, 20, 30, 40}, 0.99, 39.7},         // rank 2.97
		{[]int64{15, 20, 35, 40, 50}, 0.4, 29},        // rank 1.6: 20 + 0.6*15
		{[]int64{15, 20, 35, 40, 50}, 0, 15},          // the least
		{[]int64{15, 20, 35, 40, 50}, 1, 50},          // the greatest
		{[]int64{-10, 0, 10}, 0.75, 5},                // rank 1.5
		{[]int64{0, 0, 0, 100}, 0.9, 70},              // rank 2.7
		{[]int64{1 << 52, 1<<52 + 2}, 0.5, 1<<52 + 1}, // exact where float64 is
	} {
		if got := stat.Percentile(c.sample, c.q); !near(got, c.want) {
			t.Errorf("percentile %v of %v = %v, want %v", c.q, c.sample, got, c.want)
		}
	}
	hundred := make([]int64, 101)
	for i := range hundred {
		hundred[i] = int64(i)
	}
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 1} {
		if got := stat.Percentile(hundred, q); !near(got, 100*q) {
			t.Errorf("percentile %v of 0 to 100 = %v", q, got)
		}
	}
}

// 2, 4, 4, 4, 5, 5, 7, 9: the textbook sample of mean 5 and population standard deviation 2.
func TestSummarize(t *testing.T) {
	s := stat.Summarize([]int64{9, 4, 5, 2, 4, 7, 5, 4})
	if s.N != 8 || s.Min != 2 || s.Max != 9 || s.P50 != 4.5 || s.Mean != 5 || s.Stddev != 2 {
		t.Errorf("%+v", *s)
	}
	if !near(s.P90, 7.6) || !near(s.P99, 8.86) { // ranks 6.3 and 6.93: 7 + 0.3*2, 7 + 0.93*2
		t.Errorf("p90 %v, p99 %v", s.P90, s.P99)
	}
	if stat.Summarize([]int64{}) != nil {
		t.Error("an empty sample has no summary")
	}
	if s := stat.Summarize([]float64{0.5}); s.Min != 0.5 || s.P99 != 0.5 || s.Stddev != 0 {
		t.Errorf("one value: %+v", *s)
	}
}

func TestRatio(t *testing.T) {
	if r := stat.Ratio(int64(1), int64(4)); r == nil || *r != 0.25 {
		t.Errorf("1/4 = %v", r)
	}
	for _, b := range []int64{0, -1} {
		if r := stat.Ratio(int64(1), b); r != nil {
			t.Errorf("1/%d = %v, want unknown", b, *r)
		}
	}
}

var samples = rapid.SliceOfN(rapid.Int64Range(-1000, 1<<40), 1, 200)

// Percentiles grow with q, lie within the sample, and the median splits it.
func TestPercentilesAreInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := samples.Draw(t, "sample")
		s := stat.Summarize(sample)
		if !slices.IsSorted(sample) {
			t.Fatal("Summarize sorts")
		}
		order := []float64{s.Min, s.P50, s.P90, s.P99, s.Max}
		if !slices.IsSorted(order) {
			t.Fatalf("out of order: %v", order)
		}
		if s.Mean < s.Min-1e-6 || s.Mean > s.Max+1e-6 || s.Stddev < 0 || s.Stddev > (s.Max-s.Min)+1e-6 {
			t.Fatalf("%+v", *s)
		}
		below, above := 0, 0
		for _, v := range sample {
			if float64(v) < s.P50 {
				below++
			}
			if float64(v) > s.P50 {
				above++
			}
		}
		if 2*below > len(sample) || 2*above > len(sample) {
			t.Fatalf("%d below and %d above the median of %d", below, above, len(sample))
		}
	})
}

// Every value is in the bin whose edges enclose it, every value is counted once, and bins ascend.
func TestHistogramBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := samples.Draw(t, "sample")
		slices.Sort(sample)
		h := stat.Histogram(sample)
		rest, counted := sample[:0:0], h.Zero
		for _, v := range sample {
			if v > 0 {
				rest = append(rest, v)
			}
		}
		if int(h.Zero) != len(sample)-len(rest) {
			t.Fatalf("zero counts %d of %v", h.Zero, sample)
		}
		for i, b := range h.Bins {
			if i > 0 && b[0] <= h.Bins[i-1][0] || b[1] <= 0 {
				t.Fatalf("bins: %v", h.Bins)
			}
			lo, hi := math.Pow(h.Growth, float64(b[0])), math.Pow(h.Growth, float64(b[0]+1))
			for range b[1] {
				if v := float64(rest[0]); v < lo || v >= hi {
					t.Fatalf("%v is not in bin %d, %v to %v", v, b[0], lo, hi)
				}
				rest = rest[1:]
			}
			counted += b[1]
		}
		if int(counted) != len(sample) {
			t.Fatalf("%d counted of %d", counted, len(sample))
		}
	})
}

// Values at the edges of bins, where a rounded logarithm would be off by one.
func TestHistogramEdges(t *testing.T) {
	for k := range 1500 {
		edge := math.Pow(stat.Growth, float64(k))
		h := stat.Histogram([]float64{math.Nextafter(edge, 0), edge, math.Nextafter(edge, math.Inf(1))})
		want := [][2]int64{{int64(k - 1), 1}, {int64(k), 2}}
		if !slices.Equal(h.Bins, want) {
			t.Fatalf("around %v: %v, want %v", edge, h.Bins, want)
		}
	}
	if h := stat.Histogram([]int64{-5, 0, 1}); h.Zero != 2 || !slices.Equal(h.Bins, [][2]int64{{0, 1}}) {
		t.Errorf("%+v", *h)
	}
}

// Two histograms merge by adding counts: the result is the histogram of both samples.
func TestHistogramsMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := samples.Draw(t, "a"), samples.Draw(t, "b")
		both := slices.Concat(a, b)
		slices.Sort(a)
		slices.Sort(b)
		slices.Sort(both)
		counts := map[int64]int64{}
		ha, hb, h := stat.Histogram(a), stat.Histogram(b), stat.Histogram(both)
		for _, bins := range [][][2]int64{ha.Bins, hb.Bins} {
			for _, bin := range bins {
				counts[bin[0]] += bin[1]
			}
		}
		if len(counts) != len(h.Bins) || ha.Zero+hb.Zero != h.Zero {
			t.Fatal("bins differ")
		}
		for _, bin := range h.Bins {
			if counts[bin[0]] != bin[1] {
				t.Fatalf("bin %d: %d and %d", bin[0], counts[bin[0]], bin[1])
			}
		}
	})
}

func TestWarmup(t *testing.T) {
	// 200 units of work that shrinks as (1-x)², none below 100: the median is 250 and the median distance from it 150, so
	// that the first 9 lie beyond 250 + 3·1.4826·150 = 917; the 9 behind them take 837 to 912, and 584 is halfway.
	shrinking := make([]float64, 200)
	for i := range shrinking {
		x := 1 - float64(i)/200
		shrinking[i] = max(1000*x*x, 100)
	}
	compiles := append([]float64{9000, 7000, 150, 140, 130}, slices.Repeat([]float64{100, 101, 99, 100}, 15)...)
	for name, c := range map[string]struct {
		times []float64
		want  int
	}{
		"none":         {[]float64{100, 101, 100, 99, 100}, 0},
		"one":          {[]float64{150, 101, 100, 99, 100}, 1},
		"two":          {[]float64{150, 140, 101, 100, 99, 100, 100, 101}, 2},
		"three of ten": {[]float64{150, 140, 130, 101, 100, 99, 100, 100, 101, 99}, 3},
		"four of ten":  {[]float64{150, 140, 130, 120, 100, 99, 100, 100, 101, 99}, 0},
		"ten of 40":    {slices.Concat(slices.Repeat([]float64{200}, 10), slices.Repeat([]float64{100}, 30)), 10},
		"eleven of 40": {slices.Concat(slices.Repeat([]float64{200}, 11), slices.Repeat([]float64{100}, 29)), 0},
		// The median of the last nine is 103, and their median distance from it 3: the limit is 116.
		"slower than the rest varies": {[]float64{125, 190, 188, 150, 106, 101, 103, 100, 140, 103, 109, 101, 103}, 4},
		"too few to tell":             {[]float64{150, 100}, 0},
		"within the spread":           {[]float64{105, 95, 100, 105, 110, 90}, 0},
		"slower, by 1 % alone":        {[]float64{101, 100, 100, 100, 100}, 0},
		"nothing":                     {nil, 0},
		"shrinking work":              {shrinking, 0},
		"five of 65":                  {compiles, 5},
	} {
		if got := stat.Warmup(c.times); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
