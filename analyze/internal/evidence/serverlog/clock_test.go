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

// Of two logs the second may be the older one: facts are of the later start, and of the last one if nothing tells.
func TestStartOfAnOlderLog(t *testing.T) {
	const march, april, december = 60 * 86400, 91 * 86400, 335 * 86400
	for _, c := range []struct {
		first [2]int64
		want  int
	}{{[2]int64{march, april}, 1}, {[2]int64{april, march}, 0}, {[2]int64{december, march}, 1}, {[2]int64{april, NoClock}, 1},
		{[2]int64{march, march}, 1}} {
		d := &Data{Starts: []*Start{newStart(), newStart()}}
		for i, s := range d.Starts {
			s.Model, s.first = "m", c.first[i]
		}
		if d.Start() != d.Starts[c.want] {
			t.Errorf("of starts at %v not number %d", c.first, c.want)
		}
		d.Starts[1-c.want].DType = "bfloat16"
		if d.Start() == d.Starts[c.want] {
			t.Errorf("of starts at %v the one with fewer facts", c.first)
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
