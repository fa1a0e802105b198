package breakdown

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// position is a kernel of a sequence; its gap is all host.
func position(name string, start, gap, gapMedian, alone float64) side.Position {
	return side.Position{Name: name, Category: "gemm", Start: start, Gap: [5]float64{1: gap}, GapMedian: gapMedian,
		Alone: alone, AloneMedian: alone}
}

// sequence completes the end and the time.
func sequence(end float64, list ...side.Position) *side.Sequence {
	s := &side.Sequence{Units: 10, Positions: list, Streams: 1, End: side.Position{Gap: [5]float64{2: end}, GapMedian: end}}
	s.Time = end
	for i := range list {
		s.Time += list[i].Sum()
	}
	return s
}

func stepBetween(t interface{ Fatalf(string, ...any) }, base, head *side.Sequence, names map[string]string) *comparison.Step {
	of := pairing.Positions(base, head, names)
	if of == nil {
		t.Fatalf("not aligned")
	}
	return stepOf(base, head, of, &kernelNames{base: &side.Side{}, head: &side.Side{}})
}

// TestStep: of embed, norm, gemm, sample the head renames gemm, logs behind it, waits 300 before norm in every step, and
// before sample 200 in the mean of ten steps, which is one of 2000. In all 300 + 200 + 50 (log) + 10 (gemm2) = 560.
func TestStep(t *testing.T) {
	base := sequence(5, position("embed", 0, 0, 0, 100), position("norm", 100, 0, 0, 20), position("gemm", 130, 10, 10, 500),
		position("sample", 630, 0, 0, 50))
	head := sequence(5, position("embed", 0, 0, 0, 100), position("norm", 400, 300, 300, 20), position("gemm2", 430, 10, 10, 510),
		position("log", 940, 0, 0, 50), position("sample", 1190, 200, 0, 50))
	head.Hiccups = []side.Hiccup{{Position: 4, Part: 0, Unit: 7, Excess: 2000}}
	s := stepBetween(t, base, head, map[string]string{"gemm2": "gemm"})
	if s.Delta != 560 || s.Idle != 500 || s.Systematic != 300 || s.Sporadic != 200 {
		t.Errorf("step %+v", s)
	}
	want := []string{
		"paired 0 0 embed/ 0", "paired 1 1 norm/ 300 host", "paired 2 2 gemm/gemm2 10", "added - 3 log/ 50",
		"paired 3 4 sample/ 200 host", "end - - / 0", "rest - - / 0",
	}
	number := func(v *int64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprint(*v)
	}
	for i, r := range s.Rows {
		got := fmt.Sprintf("%s %s %s %s/%s %v", r.Kind, number(r.BasePosition), number(r.HeadPosition), s.NameOf(r.Name),
			s.NameOf(r.HeadName), r.Delta)
		if r.Cause != "" {
			got += " " + r.Cause
		}
		if i >= len(want) || got != want[i] {
			t.Errorf("row %d: %s", i, got)
		}
	}
	if len(s.Stretches) == 0 || s.Stretches[0] != (comparison.Stretch{Part: comparison.PartGap, From: 1, To: 1, Delta: 300}) {
		t.Errorf("stretches %+v", s.Stretches)
	}
	if len(s.HeadHiccups) != 1 || s.HeadHiccups[0] != (comparison.Hiccup{Row: 4, Part: comparison.PartGap, Unit: 7, Excess: 2000}) {
		t.Errorf("hiccups %+v", s.HeadHiccups)
	}
	const where = "+300 ns before kernel #1 norm in every step; +200 ns in 1 hiccup in 10 steps, up to 2 µs before kernel #3"
	if s.Where != where {
		t.Errorf("where: %s\nwant:  %s", s.Where, where)
	}
	back := stepBetween(t, head, base, map[string]string{"gemm": "gemm2"})
	if back.Delta != -560 || back.Systematic != -300 || back.Rows[3].Kind != comparison.RowRemoved || back.Rows[3].Delta != -50 {
		t.Errorf("back %+v", back)
	}
}

// TestStepReplaced: kernels without a known partner, as many as what they replace and of its category, are pairs.
func TestStepReplaced(t *testing.T) {
	s := stepBetween(t, sequence(0, position("a", 0, 0, 0, 1), position("b", 1, 0, 0, 1), position("c", 2, 0, 0, 1)),
		sequence(0, position("a", 0, 0, 0, 1), position("x", 1, 0, 0, 3), position("c", 4, 0, 0, 1)), nil)
	if r := s.Rows[1]; r.Kind != comparison.RowPaired || s.NameOf(r.Name) != "b" || s.NameOf(r.HeadName) != "x" || r.Delta != 2 {
		t.Errorf("row %+v", r)
	}
}

// TestPlacesAreOfTheKernel: embed at #0 and norm at #1 take 10 longer, gemm at #2 is replaced by gemm2, 30 longer, and
// log is new behind it. Each has the place of its own, and a hiccup of gemm2 is no other kernel's.
func TestPlacesAreOfTheKernel(t *testing.T) {
	base := sequence(0, position("embed", 0, 0, 0, 20), position("norm", 20, 0, 0, 20), position("gemm", 40, 0, 0, 20))
	head := sequence(0, position("embed", 0, 0, 0, 30), position("norm", 30, 0, 0, 30), position("gemm2", 60, 0, 0, 50),
		position("log", 110, 0, 0, 10))
	head.Hiccups = []side.Hiccup{{Position: 2, Part: 1, Unit: 7, Excess: 300}}
	s := stepBetween(t, base, head, map[string]string{"gemm2": "gemm"})
	for id, want := range map[string][2]string{
		"embed": {"at #0"}, "norm": {"at #1"}, "log": {"at #3"}, "other": {},
		"gemm → gemm2": {"at #2", "in 1 hiccup in 10 steps, up to 300 ns"},
	} {
		if got := [2]string{kernelPlaces(s, id, 10), kernelHiccups(s, id, 10)}; got != want {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
}

// TestTooDifferentSteps are not laid beside each other.
func TestTooDifferentSteps(t *testing.T) {
	if of := pairing.Positions(sequence(0, position("a", 0, 0, 0, 1), position("b", 1, 0, 0, 1), position("c", 2, 0, 0, 1)),
		sequence(0, position("x", 0, 0, 0, 1), position("y", 1, 0, 0, 1), position("a", 2, 0, 0, 1)), nil); of != nil {
		t.Errorf("%v", of)
	}
}

// TestReplacedKernelWithoutAName: a kernel of the base may have an empty name; the head's x replaced it, and y was added.
func TestReplacedKernelWithoutAName(t *testing.T) {
	base := sequence(0, position("a", 0, 0, 0, 1), position("", 1, 0, 0, 1), position("c", 2, 0, 0, 1))
	head := sequence(0, position("a", 0, 0, 0, 1), position("x", 1, 0, 0, 1), position("y", 2, 0, 0, 1), position("c", 3, 0, 0, 1))
	if of := pairing.Positions(base, head, map[string]string{"x": ""}); !slices.Equal(of, []int32{0, 1, -1, 2}) {
		t.Errorf("%v", of)
	}
}

// TestStepCloses: whatever was added, removed or renamed, on one stream or two, rows sum to the change of the unit; also
// where there are so many that neighbours are folded.
func TestStepCloses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{2, 5, 40, comparison.MaxStepRows + 300}).Draw(t, "kernels")
		streams := rapid.IntRange(1, 2).Draw(t, "streams")
		draw := rapid.IntRange(0, 1<<30)
		seed := uint64(draw.Draw(t, "seed"))
		next := func(n int) int { // a cheap generator: rapid's are too slow for thousands of kernels
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		unit := func(change bool) *side.Sequence {
			s := &side.Sequence{Units: 3, Streams: streams, Rest: float64(next(100))}
			s.Time = s.Rest
			for i := range n {
				for range 1 + b2i(change && next(20) == 0) {
					p := position(fmt.Sprint("k", i%7), s.Time, float64(next(50)), float64(next(50)), float64(next(1000)))
					p.Stream, p.Copies, p.Category = i%streams, float64(next(9)), fmt.Sprint(i/3%4)
					if s.Time += p.Sum(); change && next(30) == 0 {
						s.Time -= p.Sum()
						continue
					}
					s.Positions = append(s.Positions, p)
				}
			}
			return s
		}
		base, head := unit(false), unit(true)
		of := pairing.Positions(base, head, nil)
		if of == nil {
			t.Skip("too different")
		}
		s := stepOf(base, head, of, &kernelNames{base: &side.Side{}, head: &side.Side{}})
		sum, positions := 0.0, int64(0)
		for i := range s.Rows {
			sum += s.Rows[i].Delta
			positions += s.Rows[i].Positions
		}
		if math.Abs(sum-(head.Time-base.Time)) > 1e-6 {
			t.Fatalf("rows sum to %v, the units differ by %v", sum, head.Time-base.Time)
		}
		if len(s.Rows) > comparison.MaxStepRows+2 || positions < int64(max(len(base.Positions), len(head.Positions))) {
			t.Fatalf("%d rows of %d positions", len(s.Rows), positions)
		}
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
