package report

import (
	"math"
	"slices"
	"testing"
)

// Runs of more units than a list of parts may hold are refused, even if their sum overflows.
func TestPartsOfTooManyUnits(t *testing.T) {
	for _, runs := range [][]int64{{0, maxPartUnits + 1}, {0, maxPartUnits, 1, 1}, {0, -1}, {0, 1, 1, math.MaxInt64},
		{0, math.MaxInt64, 1, math.MaxInt64, 2, 2}} {
		if list, err := (&UnitParts{Number: runs}).Numbers(); err == nil {
			t.Errorf("runs %d are %d units", runs, len(list))
		}
	}
	list, err := (&UnitParts{Number: []int64{3, 1, 1, 2}}).Numbers()
	if err != nil || !slices.Equal(list, []int64{3, 4, 5}) {
		t.Errorf("units %v, %v, want 3, 4 and 5", list, err)
	}
}
