package stat

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
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
		if got, want := merged.Histogram(), Histogram(all); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if got, want := merged.Summary(), Summarize(all); !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
		if merged.Len() != int64(len(all)) || merged.Under(2) != int64(len(all)-len(slices.DeleteFunc(slices.Clone(all), func(v int64) bool { return v < 2 }))) {
			t.Fatalf("%d of %d", merged.Len(), len(all))
		}
		if c := merged.Coarse(); c.Len() != merged.Len() {
			t.Fatalf("%d observations in bins, %d before", c.Len(), merged.Len())
		}
	})
}

// By hand: 1, 1, 4 and 10, of which the last two come from another part.
func TestCounted(t *testing.T) {
	c := Count([]int64{1, 1}).Merge(Count([]int64{4, 10}))
	s := c.Summary()
	if s.N != 4 || s.Mean != 4 || s.P50 != 2.5 || s.Min != 1 || s.Max != 10 || c.Sum() != 16 || c.Under(4) != 2 {
		t.Errorf("%+v", s)
	}
	if sd := s.Stddev * s.Stddev; sd < 13.49 || sd > 13.51 { // (9+9+0+36)/4
		t.Errorf("variance %v", sd)
	}
	// 1,000 values one apart at 1,000,000 fall into a bin: its mean stands for them, but for the ends.
	var list []int64
	for v := range int64(1000) {
		list = append(list, 1_000_000+v)
	}
	if c := Count(list).Coarse(); len(c.Values) > 5 || c.Len() != 1000 || c.Values[0] != 1_000_000 || c.Values[len(c.Values)-1] != 1_000_999 {
		t.Errorf("%v %v", c.Values, c.Counts)
	}
}
