package mutant

import (
	"math"
	"testing"
)

// Each cause takes about a fifth of a step in a loop, and lies in a range that holds the time before its call, too.
func TestWrittenCauses(t *testing.T) {
	c, err := Recipes()[1].Capture(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range Causes() {
		m, share, err := cause.Sized(c, 0.2)
		if err != nil || math.Abs(share-0.2) > 0.02 {
			t.Errorf("%s: %.3f, %v", cause.Name, share, err)
			continue
		}
		back, ranges, system := read(t, m.WriteTB(t)), 0, 0
		for i := range back.events {
			if e := &back.events[i]; e.name == Range {
				ranges++
				if cause.Name == "late launch" && float64(e.end-e.start) < 0.1*c.meanUnit() {
					t.Errorf("%s: a range of %d ns", cause.Name, e.end-e.start)
				}
			}
		}
		for i := range m.events {
			if m.tables[m.events[i].table].name == osTable {
				system++
			}
		}
		if ranges < 39 || (system > 0) != (cause.Name == "host poll" || cause.Name == "lock") {
			t.Errorf("%s: %d ranges, %d calls of the system", cause.Name, ranges, system)
		}
	}
}
