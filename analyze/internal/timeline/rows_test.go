package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// all is all rows of a key.
func (x *Rows) all(key int32) (list []int32) {
	for w := x.Of(key); w.Row != trace.None; w.Next() {
		list = append(list, w.Row)
	}
	return list
}

// A key's rows come back as they were, however far they are from each other: distances of 1, 127, 128 and 20,000 take
// 1, 1, 2 and 3 bytes.
func TestRowsByHand(t *testing.T) {
	rows := []int32{0, 127, 255, 20_255}
	x := NewRows(nil, 3, 20_300, func(i int) int32 {
		switch {
		case slices.Contains(rows, int32(i)):
			return 1
		case i == 20_299:
			return 2
		}
		return trace.None
	})
	if got := x.all(1); !slices.Equal(got, rows) {
		t.Errorf("rows %v, want %v", got, rows)
	}
	if got := x.all(2); !slices.Equal(got, []int32{20_299}) {
		t.Errorf("rows %v, want the last one", got)
	}
	if x.Has(0) || !x.Has(1) || x.all(0) != nil {
		t.Error("key 0 has rows, or key 1 none")
	}
	if got := len(x.steps); got != 1+1+2+3+3 {
		t.Errorf("%d bytes", got)
	}
	w := x.Of(0)
	if w.Next(); w.Row != trace.None {
		t.Error("there is a row behind the last one")
	}
}

// Whatever the keys, each row is in the list of its key alone.
func TestRowsAreComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		n, keys := r.IntN(5_000), 1+r.IntN(300)
		want := make([][]int32, keys)
		key := make([]int32, n)
		for i := range n {
			if key[i] = int32(r.IntN(keys+1)) - 1; key[i] != trace.None {
				want[key[i]] = append(want[key[i]], int32(i))
			}
		}
		x := NewRows(nil, keys, n, func(i int) int32 { return key[i] })
		for k := range want {
			if got := x.all(int32(k)); !slices.Equal(got, want[k]) {
				t.Fatalf("key %d of %d has %v, want %v", k, keys, got, want[k])
			}
		}
	}
}
