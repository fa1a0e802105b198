package pairing

import (
	"math"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/side"
	"pgregory.net/rapid"
)

func kernelOf(name, category, family string, position, count, time float64) side.Work {
	return side.Work{Name: name, Category: category, Family: family, Canonical: name, Position: position, Count: count, Time: time, Alone: time}
}

// named is the name of a kernel; empty if there is none.
func named(w *side.Work) string { return comparison.Value(w).Name }

// Units follow each other: what replaced the first kernel of a unit stands after its last one, between the same neighbours.
// Where nobody knows when kernels run, the only ones of a category that are left go together, if they run as often.
func TestPairsWithoutAPlaceBefore(t *testing.T) {
	first := func(name, category string) []side.Work {
		return append([]side.Work{kernelOf(name, category, name, 0, 2, 10)}, pairingBase()[1:]...)
	}
	unplaced := func(name string, count float64) []side.Work {
		return append(pairingBase()[:4:4], kernelOf(name, "reduce", name, -1, count, 6))
	}
	for _, c := range []struct {
		why        string
		base, head []side.Work
		want       string
	}{
		{"the first of a unit", first("x", "norm"), first("k1", side.Uncategorised), comparison.ByPosition},
		{"unknown places", unplaced("x", 2), unplaced("k1", 2), comparison.ByPosition},
		{"unknown places, far more often", unplaced("x", 2), unplaced("k1", 9), ""},
		{"unknown places, two of the category", append(unplaced("x", 2), kernelOf("b", "reduce", "b", -1, 2, 6)), unplaced("k1", 2), ""},
	} {
		got := ""
		for _, p := range pairsOf(c.base, c.head) {
			if named(p.Base) == "x" && named(p.Head) == "k1" {
				got = p.By
			}
		}
		if got != c.want {
			t.Errorf("%s: paired by %q, want %q", c.why, got, c.want)
		}
	}
}

// The unit of the base is a b c d e, each twice.
func pairingBase() []side.Work {
	return []side.Work{
		kernelOf("a", "norm", "aten/norm", 0, 2, 10), kernelOf("b_tile1", "gemm", "cublas/gemm/bf16", 1, 2, 40), kernelOf("c", "attention", "flash", 2, 2, 30),
		kernelOf("d", "elementwise", "aten/add", 3, 2, 5), kernelOf("e", "reduce", "aten/argmax", 4, 2, 6),
	}
}

func TestPairs(t *testing.T) {
	base := pairingBase()
	head := func(changed ...side.Work) []side.Work {
		return append([]side.Work{base[0], base[3], base[4]}, changed...)
	}
	b, c := base[1], base[2]
	type want struct {
		base, head, by string
		note           bool
	}
	for _, w := range []struct {
		why  string
		head []side.Work
		want []want
	}{
		{"all equal", base, []want{{"b_tile1", "b_tile1", comparison.ByExact, false}, {"c", "c", comparison.ByExact, false}}},
		{"another tile of the same family", head(kernelOf("b_tile2", "gemm", "cublas/gemm/bf16", 1, 2, 44), c), []want{{"b_tile1", "b_tile2", comparison.ByFamily, false}, {"c", "c", comparison.ByExact, false}}},
		{"another library in its place", head(b, kernelOf("triton_attn", "attention", "triton", 2, 2, 33)), []want{{"c", "triton_attn", comparison.ByPosition, false}}},
		{"another category in its place", head(b, kernelOf("copy", "memory", "aten/copy", 2, 2, 33)), []want{{"c", "", "", false}, {"", "copy", "", false}}},
		{"far more often in its place", head(b, kernelOf("triton_attn", "attention", "triton", 2, 9, 33)), []want{{"c", "", "", false}, {"", "triton_attn", "", false}}},
		{"elsewhere", head(b, kernelOf("triton_attn", "attention", "triton", 9, 2, 33)), []want{{"c", "", "", false}, {"", "triton_attn", "", false}}},
		{"two in its place", head(b, kernelOf("merge", "attention", "triton/merge", 2.5, 2, 8), kernelOf("split", "attention", "triton/split", 2, 2, 25)), []want{{"c", "split", comparison.ByPosition, true}, {"", "merge", "", true}}},
		{"a name that says nothing in its place", head(b, kernelOf("k1", side.Uncategorised, "k1", 2, 2, 33)), []want{{"c", "k1", comparison.ByPosition, false}}},
		{"one that Triton compiled in its place", head(b, kernelOf("t1", "triton", "triton-jit/t1", 2, 2, 33)), []want{{"c", "t1", comparison.ByPosition, false}}},
		{"two such in its place", head(b, kernelOf("k1", side.Uncategorised, "k1", 2, 2, 8), kernelOf("k2", side.Uncategorised, "k2", 2.5, 2, 25)), []want{{"c", "k2", comparison.ByPosition, true}, {"", "k1", "", true}}},
		{"such for two kernels", []side.Work{base[0], base[3], base[4], kernelOf("k1", side.Uncategorised, "k1", 1, 2, 8), kernelOf("k2", side.Uncategorised, "k2", 2, 2, 25)}, []want{{"b_tile1", "", "", false}, {"c", "", "", false}, {"", "k1", "", false}, {"", "k2", "", false}}},
		{"removed", head(b), []want{{"c", "", "", false}}},
	} {
		pairs := pairsOf(base, w.head)
		for _, x := range w.want {
			found := false
			for _, p := range pairs {
				found = found || named(p.Base) == x.base && named(p.Head) == x.head && p.By == x.by && (p.Note != "") == x.note
			}
			if !found {
				t.Errorf("%s: no pair %+v in %+v", w.why, x, pairs)
			}
		}
		for _, p := range pairsOf(w.head, base) { // swapping the sides swaps the pairs
			if !slices.ContainsFunc(pairs, func(q Pair) bool { return q.Base == p.Head && q.Head == p.Base && q.By == p.By }) {
				t.Errorf("%s: backwards %+v, forwards %+v", w.why, p, pairs)
			}
		}
	}
}

// Two kernels of a family on one side, one on the other, and r runs earlier there. By r, x1 is 0 from y and y 1.9 from x1;
// x2 is 0.1 from y both ways, so x2 is nearer, whichever side is the base.
func TestPairOfAFamilyHasAMirror(t *testing.T) {
	two := []side.Work{
		kernelOf("p", "norm", "norm", 0, 2, 10), kernelOf("x1", "gemm", "cublas", 1, 2, 10),
		kernelOf("r", "reduce", "cub", 2, 2, 10), kernelOf("x2", "gemm", "cublas", 3, 2, 10),
	}
	one := []side.Work{two[0], kernelOf("r", "reduce", "cub", 0.1, 2, 10), kernelOf("y", "gemm", "cublas", 1, 2, 10)}
	there := Pair{Base: &two[3], Head: &one[2], By: comparison.ByFamily}
	back := Pair{Base: &one[2], Head: &two[3], By: comparison.ByFamily}
	if pairs := pairsOf(two, one); !slices.Contains(pairs, there) {
		t.Errorf("there: %+v", pairs)
	}
	if pairs := pairsOf(one, two); !slices.Contains(pairs, back) {
		t.Errorf("back: %+v", pairs)
	}
}

// Every kernel is in one pair, whatever the two units hold, and in the same one after swapping them.
func TestEveryKernelIsPairedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(which string) []side.Work {
			seen := map[string]bool{}
			var list []side.Work
			for range rapid.IntRange(0, 8).Draw(t, which) {
				n := rapid.SampledFrom([]string{"a1", "a2", "a3", "b1", "b2", "c1", "d1", "d2"}).Draw(t, which+" name")
				if !seen[n] {
					seen[n] = true
					list = append(list, kernelOf(n, rapid.SampledFrom([]string{"x", "y"}).Draw(t, which+" category"), n[:1], float64(rapid.IntRange(-1, 6).Draw(t, which+" position")), float64(rapid.IntRange(0, 3).Draw(t, which+" count")), 1))
				}
			}
			return list
		}
		base, head := draw("base"), draw("head")
		b, h := map[*side.Work]int{}, map[*side.Work]int{}
		back := pairsOf(head, base)
		for _, p := range pairsOf(base, head) {
			if !slices.ContainsFunc(back, func(q Pair) bool { return q.Base == p.Head && q.Head == p.Base && q.By == p.By }) {
				t.Fatalf("%+v is not in the mirrored pairs, %+v", p, back)
			}
			b[p.Base]++
			h[p.Head]++
			if p.Both() == (p.By == "") {
				t.Fatalf("pair %+v", p)
			}
		}
		for i := range base {
			if b[&base[i]] != 1 {
				t.Fatalf("kernel %d of the base is in %d pairs", i, b[&base[i]])
			}
		}
		for i := range head {
			if h[&head[i]] != 1 {
				t.Fatalf("kernel %d of the head is in %d pairs", i, h[&head[i]])
			}
		}
		if o := overlap(base, head); o < 0 || o > 1 || o != overlap(head, base) {
			t.Fatalf("overlap %v, mirrored %v", o, overlap(head, base))
		}
		for _, w := range base {
			if w.Count > 0 && overlap(base, base) != 1 {
				t.Fatalf("overlap with itself: %v", overlap(base, base))
			}
		}
	})
}

func TestEffects(t *testing.T) {
	for _, c := range []struct{ c0, x0, c1, x1, count, perCall float64 }{
		{2, 20, 2, 30, 0, 10},      // as often, 10 → 15 each
		{2, 20, 3, 30, 10, 0},      // one more of 10
		{2, 20, 3, 45, 12.5, 12.5}, // one more at the mean of 10 and 15; 2.5 on average longer by 5
		{0, 0, 3, 45, 45, 0},       // added
		{2, 20, 0, 0, -20, 0},      // removed
		{0, 0, 0, 4, 0, 4},         // only the neighbours' units have it
	} {
		count, perCall := Effects(c.c0, c.x0, c.c1, c.x1)
		if count != c.count || perCall != c.perCall {
			t.Errorf("%+v: %v and %v", c, count, perCall)
		}
		back, backCall := Effects(c.c1, c.x1, c.c0, c.x0)
		if math.Abs(back+count) > 1e-12 || math.Abs(backCall+perCall) > 1e-12 {
			t.Errorf("%+v: mirrored %v and %v", c, back, backCall)
		}
	}
}

// Shares of the base: gemm 40 %, attention 50 %, elementwise 10 %, and communication that does not count.
func TestOverlap(t *testing.T) {
	base := []side.Work{kernelOf("g", "gemm", "cublas/gemm", 0, 4, 40), kernelOf("f", "attention", "flash", 1, 2, 50), kernelOf("e", "elementwise", "aten", 2, 10, 10), kernelOf("n", side.Communication, "nccl", 3, 2, 500)}
	for _, c := range []struct {
		why  string
		head []side.Work
		want float64
	}{
		{"itself", base, 1},
		{"three times as long", []side.Work{kernelOf("g", "gemm", "cublas/gemm", 0, 4, 120), base[1], base[2]}, 1},
		{"another library", []side.Work{kernelOf("h", "gemm", "cutlass/gemm", 0, 4, 40), base[1], base[2]}, 1},
		{"attention in two", []side.Work{base[0], kernelOf("q", "attention", "triton", 1, 2, 25), kernelOf("m", "attention", "triton", 1, 2, 25), base[2]}, 0.75}, // of head's 50 % half is matched
		{"ten more of 1", []side.Work{base[0], base[1], kernelOf("e", "elementwise", "aten", 2, 20, 20)}, 1 - 20.0/110/2},                                         // half of head's 20 of 110
		{"half as much of everything", []side.Work{kernelOf("g", "gemm", "cublas/gemm", 0, 2, 20), kernelOf("f", "attention", "flash", 1, 1, 25), kernelOf("e", "elementwise", "aten", 2, 5, 5)}, 0.5},
		{"attention in two of unknown names", []side.Work{base[0], kernelOf("k1", side.Uncategorised, "k1", 1, 2, 25), kernelOf("k2", side.Uncategorised, "k2", 1, 2, 25), base[2]}, 14.0 / 18}, // by runs: half of the time is not enough
		{"only other work", []side.Work{kernelOf("s", "sort", "cub", 0, 4, 40)}, 0},
	} {
		if got := overlap(base, c.head); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}
