package serverlog

import "testing"

// Two processes write one log: a line of the old year may stand behind one of the new, also where the log begins with
// the new. No year passes there. Seconds since New Year, and half a year and a whole one later.
func TestOldYearBehindTheNew(t *testing.T) {
	for _, first := range []string{"12-31 23:59:58", "01-01 00:00:00"} {
		var c calendar
		from := int64(0)
		for _, line := range []struct {
			text string
			want int64
		}{{first, 0}, {"01-01 00:00:01", 1}, {"12-31 23:59:59", -1}, {"01-01 00:00:02", 2},
			{"06-30 00:00:00", 181 * 86400}, {"12-31 00:00:00", 365 * 86400}, {"01-01 00:00:01", fullYear + 1}} {
			clock, year, _, ok := clockText([]byte(line.text))
			if !ok {
				t.Fatal(line.text)
			}
			got := c.at(clock, year)
			if line.text == first {
				from = got
				if first[:2] == "12" {
					from += 2
				}
				continue
			}
			if got-from != line.want {
				t.Errorf("%s after %s: %d s after New Year, want %d", line.text, first, got-from, line.want)
			}
		}
	}
}

// Of two logs the second may be the older one: its iterations have times too, and one without a time has none.
func TestIterationsOfAnOlderLog(t *testing.T) {
	var it Iterations
	want := []int64{1000, 1060, 40, NoClock}
	for _, clock := range want {
		it.add(Iteration{}, clock)
	}
	for i, clock := range want {
		if got := it.Clock(i); got != clock {
			t.Errorf("iteration %d: clock %d, want %d", i, got, clock)
		}
	}
}
