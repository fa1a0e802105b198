package stacks_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/stacks"
)

func kernel(name string) stacks.Box {
	return stacks.Box{Kind: stacks.Kernel, Name: name, Category: "gemm"}
}

// TestTreeByHand: one range whose kernel got 30 ns slower, one that the head does not have any more, a kernel outside.
func TestTreeByHand(t *testing.T) {
	var tree stacks.Tree
	tree.Add(stacks.Base, []string{"step 7", "attn"}, kernel("a"), 100)
	tree.Add(stacks.Base, []string{"step 7", "attn"}, stacks.Box{Kind: stacks.Idle, Category: "launch"}, 10)
	tree.Add(stacks.Base, []string{"step 7", "old"}, kernel("b"), 40)
	tree.Add(stacks.Base, nil, kernel("c"), 5)
	tree.Add(stacks.Head, []string{"step 9", "attn"}, kernel("a"), 130)
	tree.Add(stacks.Head, nil, kernel("c"), 5)
	want := []stacks.Box{
		{Parent: -1, Kind: stacks.Step, Base: 155, Head: 135},
		{Parent: 0, Kind: stacks.Range, Name: "step 7", Base: 150, Head: 130},
		{Parent: 1, Kind: stacks.Range, Name: "attn", Base: 110, Head: 130},
		{Parent: 2, Kind: stacks.Kernel, Name: "a", Category: "gemm", Base: 100, Head: 130},
		{Parent: 2, Kind: stacks.Idle, Category: "launch", Base: 10},
		{Parent: 1, Kind: stacks.Range, Name: "old", Base: 40},
		{Parent: 5, Kind: stacks.Kernel, Name: "b", Category: "gemm", Base: 40},
		{Parent: 0, Kind: stacks.Category, Category: "gemm", Base: 5, Head: 5},
		{Parent: 7, Kind: stacks.Kernel, Name: "c", Category: "gemm", Base: 5, Head: 5},
	}
	got := tree.Boxes(100, 0)
	if len(got) != len(want) {
		t.Fatalf("%d boxes: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("box %d is %+v, want %+v", i, got[i], want[i])
		}
	}
	depth, start, width := stacks.Places(got)
	for i, at := range [][3]float64{{0, 0, 185}, {1, 0, 180}, {2, 0, 140}, {3, 0, 130}, {3, 130, 10}, {2, 140, 40}, {3, 140, 40}, {1, 180, 5}, {2, 180, 5}} {
		if float64(depth[i]) != at[0] || start[i] != at[1] || width[i] != at[2] {
			t.Errorf("box %d is at %d, %g, %g wide, want %v", i, depth[i], start[i], width[i], at)
		}
	}
}

// TestNumbersAreFoldedWhereOneFits: ranges that are numbered within one side stay apart.
func TestNumbersAreFoldedWhereOneFits(t *testing.T) {
	var tree stacks.Tree
	tree.Add(stacks.Base, []string{"layer 1"}, kernel("a"), 1)
	tree.Add(stacks.Base, []string{"layer 2"}, kernel("a"), 2)
	tree.Add(stacks.Head, []string{"layer 2"}, kernel("a"), 3)
	tree.Add(stacks.Head, []string{"layer 3"}, kernel("a"), 4)
	got := map[string][2]float64{}
	for _, b := range tree.Boxes(100, 0) {
		if b.Kind == stacks.Range {
			got[b.Name] = [2]float64{b.Base, b.Head}
		}
	}
	for name, want := range map[string][2]float64{"layer 1": {1, 0}, "layer 2": {2, 3}, "layer 3": {0, 4}} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

// TestSumsCloseHoweverSmall: whatever is put together, every box is the sum of what is in it, and the step is all.
func TestSumsCloseHoweverSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var tree stacks.Tree
		var sums [2]float64
		for range r.IntN(2000) {
			var ranges []string
			for range r.IntN(5) {
				ranges = append(ranges, "r"+strconv.Itoa(r.IntN(4)))
			}
			side, ns := stacks.Side(r.IntN(2)), float64(r.IntN(1_000_000))
			sums[side] += ns
			tree.Add(side, ranges, kernel("k"+strconv.Itoa(r.IntN(30))), ns)
		}
		most := 20 + r.IntN(100)
		list := tree.Boxes(most, 0.001)
		if len(list) > most {
			t.Fatalf("round %d: %d boxes of %d", round, len(list), most)
		}
		base, head, inner := make([]float64, len(list)), make([]float64, len(list)), make([]bool, len(list))
		for i := len(list) - 1; i >= 0; i-- {
			b := &list[i]
			if inner[i] && (math.Abs(base[i]-b.Base) > 1e-3 || math.Abs(head[i]-b.Head) > 1e-3) {
				t.Errorf("round %d: box %d is %g → %g, what is in it %g → %g", round, i, b.Base, b.Head, base[i], head[i])
			}
			if b.Parent >= i {
				t.Fatalf("box %d is around %d", b.Parent, i)
			}
			if b.Parent >= 0 {
				inner[b.Parent], base[b.Parent], head[b.Parent] = true, base[b.Parent]+b.Base, head[b.Parent]+b.Head
			}
		}
		if math.Abs(list[0].Base-sums[0]) > 1e-3 || math.Abs(list[0].Head-sums[1]) > 1e-3 {
			t.Errorf("round %d: the step is %g → %g, want %v", round, list[0].Base, list[0].Head, sums)
		}
	}
}
