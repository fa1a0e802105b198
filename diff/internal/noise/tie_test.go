package noise

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Ten units, of which the third runs other work. What ties them is the same start and the same change of the work, not
// what the work is called.
func TestTieOf(t *testing.T) {
	work := []string{"a", "a", "b", "a", "a", "a", "a", "a", "a", "a"}
	places := []int64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	renamed := slices.Clone(work)
	for i, w := range work {
		renamed[i] = w + "2"
	}
	later := slices.Clone(work)
	later[2], later[3] = "a", "b"
	warm := Marks{Places: places, Work: work, Prologue: "0/2 1/2 "}
	steps := func(from, n int64, work string) map[int64]string {
		m := map[int64]string{}
		for i := from; i < from+n; i++ {
			m[i] = work
		}
		return m
	}
	odd := steps(5, 20, "a")
	odd[9] = "b"
	for _, c := range []struct {
		why        string
		base, head Marks
		want       significance.Tie
	}{
		{"nothing but the same work", Marks{Work: work}, Marks{Work: work}, significance.TieNone},
		{"whole programs", Marks{Work: work, Kernels: 50, Units: 10}, Marks{Work: renamed, Kernels: 50, Units: 10}, significance.TieStart},
		{"another number of kernels", Marks{Work: work, Kernels: 50, Units: 10}, Marks{Work: work, Kernels: 49, Units: 10}, significance.TieNone},
		{"another number of units", Marks{Work: work, Kernels: 50, Units: 10}, Marks{Work: work, Kernels: 50, Units: 11}, significance.TieNone},
		{"whole programs, of which one leaves its first unit out", Marks{Work: work, Places: upFrom(0, 10), Kernels: 50, Units: 10, Ran: 11},
			Marks{Work: renamed[1:], Places: upFrom(1, 9), Kernels: 50, Units: 9, Ran: 11}, significance.TieStart},
		{"more units ran", Marks{Work: work, Places: upFrom(0, 10), Kernels: 50, Units: 10, Ran: 11},
			Marks{Work: work[1:], Places: upFrom(1, 9), Kernels: 50, Units: 9, Ran: 10}, significance.TieNone},
		{"no whole programs, one without its first unit", Marks{Work: work, Places: upFrom(0, 10), Kernels: 50, Units: 10, Ran: 11},
			Marks{Work: work[1:], Places: upFrom(1, 9), Kernels: 49, Units: 9, Ran: 11}, significance.TieNone},
		{"the same first units", warm, Marks{Places: places, Work: renamed, Prologue: "0/2 1/2 "}, significance.TieStart},
		{"other first units", warm, Marks{Places: places, Work: work, Prologue: "0/2 "}, significance.TieNone},
		{"a unit left out on one side", warm, Marks{Places: append([]int64{2, 3, 5}, places[4:]...), Work: work, Prologue: "0/2 1/2 "}, significance.TieNone},
		{"the other work comes later: 9 of 10 alike", warm, Marks{Places: places, Work: later, Prologue: "0/2 1/2 "}, significance.TieNone},
		{"seven units", Marks{Work: work[:7], Kernels: 50, Units: 7}, Marks{Work: work[:7], Kernels: 50, Units: 7}, significance.TieNone},
		{"equal numbers", Marks{Steps: steps(5, 20, "a")}, Marks{Steps: steps(5, 20, "b")}, significance.TieNumber},
		{"10 of 20 numbers", Marks{Steps: steps(5, 20, "a"), Units: 20}, Marks{Steps: steps(15, 40, "a"), Units: 40}, significance.TieNumber},
		{"9 of 20 numbers", Marks{Steps: steps(5, 20, "a")}, Marks{Steps: steps(16, 20, "a")}, significance.TieNone},
		{"other work at 1 of 20", Marks{Steps: steps(5, 20, "a")}, Marks{Steps: odd}, significance.TieNone},
		{"whole programs of other numbers", Marks{Work: work, Kernels: 50, Units: 10, Steps: steps(5, 10, "a")},
			Marks{Work: work, Kernels: 50, Units: 10, Steps: steps(105, 10, "a")}, significance.TieNone},
		{"numbers on one side", Marks{Work: work, Kernels: 50, Units: 10, Steps: steps(5, 10, "a")},
			Marks{Work: work, Kernels: 50, Units: 10}, significance.TieStart},
	} {
		if got := tieOf(c.base, c.head); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
		if got := tieOf(c.head, c.base); got != c.want {
			t.Errorf("%s, the other way round: %v, want %v", c.why, got, c.want)
		}
	}
}

func upFrom(first, n int64) (list []int64) {
	for i := range n {
		list = append(list, first+i)
	}
	return list
}
