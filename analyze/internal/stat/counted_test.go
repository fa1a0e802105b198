package stat

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// What is counted and merged is described as the whole sample is, to the last bit.
func TestCountedIsTheWholeSample(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.OneOf(rapid.Int64Range(-3, 3), rapid.Int64Range(-1<<40, 1<<40), rapid.Just(int64(1)<<61))
		var all []int64
		var merged Counted
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := rapid.SliceOfN(gen, 0, 30).Draw(t, "part")
			all = append(all, part...)
			slices.Sort(part)
			merged = merged.Merge(Count(part))
		}
		slices.Sort(all)
		if got, want := merged.Summary(), Summarize(all); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if lists.Total(merged.Counts) != int64(len(all)) {
			t.Fatalf("%d of %d", lists.Total(merged.Counts), len(all))
		}
		if c := merged.Coarse(); lists.Total(c.Counts) != lists.Total(merged.Counts) {
			t.Fatalf("%d observations in bins, %d before", lists.Total(c.Counts), lists.Total(merged.Counts))
		}
	})
}

// By hand: 1, 1, 4 and 10, of which the last two come from another part.
func TestCounted(t *testing.T) {
	c := Count([]int64{1, 1}).Merge(Count([]int64{4, 10}))
	s := c.Summary()
	if s.N != 4 || s.Mean != 4 || s.P50 != 2.5 || s.Min != 1 || s.Max != 10 {
		t.Errorf("%+v", s)
	}
	if sd := s.Stddev * s.Stddev; sd < 13.49 || sd > 13.51 { // (9+9+0+36)/4
		t.Errorf("variance %v", sd)
	}
	// 1,000 values one apart at 1,000,000 fall into a bin: its middle stands for them, but for the ends.
	var list []int64
	for v := range int64(1000) {
		list = append(list, 1_000_000+v)
	}
	if c := Count(list).Coarse(); len(c.Values) > 5 || lists.Total(c.Counts) != 1000 || c.Values[0] != 1_000_000 || c.Values[len(c.Values)-1] != 1_000_999 {
		t.Errorf("%v %v", c.Values, c.Counts)
	}
}

// Every value is within 1 % of where its bin puts it, what was put there stays, and a merged sample is as coarse as the
// whole one.
func TestCoarse(t *testing.T) {
	for v := int64(1); v < 1<<40; v += 1 + v/9970 {
		m := middleOfBin(v)
		if d := float64(m-v) / float64(v); d > 0.01 || d < -0.01 || middleOfBin(m) != m {
			t.Fatalf("%d is put at %d, and that at %d", v, m, middleOfBin(m))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		list := func() Counted {
			l := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 1<<30), rapid.Int64Range(1000, 1100)), 2, 50).Draw(t, "sample")
			slices.Sort(l)
			return Count(l)
		}
		a, b := list(), list()
		whole, parts := a.Merge(b).Coarse(), a.Coarse().Merge(b.Coarse()).Coarse()
		if !reflect.DeepEqual(whole, parts) {
			t.Fatalf("%v, in parts %v", whole, parts)
		}
		if x, y := a.Merge(b).Values, whole.Values; x[0] != y[0] || x[len(x)-1] != y[len(y)-1] {
			t.Fatalf("the ends of %v are not those of %v", y, x)
		}
	})
}

// Numbers of bins ascend with values, by one, and by two where bins begin to be wider.
func TestBinOf(t *testing.T) {
	last := int64(-1)
	for v := int64(0); v < 1<<40; v += 1 + v/997 {
		n := BinOf(v)
		if n < last || n > last+2 {
			t.Fatalf("%d is in bin %d, after %d", v, n, last)
		}
		last = n
	}
	if m := MiddleOf(BinOf(5000)); m < 4950 || m > 5050 {
		t.Errorf("5000 stands at %d", m)
	}
}
