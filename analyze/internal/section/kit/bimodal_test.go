package kit

import "testing"

func TestBimodal(t *testing.T) {
	list := func(n int, of func(i int) int64) (times []int64) {
		for i := range n {
			times = append(times, of(i))
		}
		return times
	}
	for name, c := range map[string]struct {
		times []int64
		want  string
	}{
		"by turns": {list(20, func(i int) int64 { return []int64{8e6, 235e6}[i%2] + int64(i)*1000 }), "steps alternate between 8.009 ms and 235 ms"},
		"in runs":  {list(30, func(i int) int64 { return []int64{1e6, 3e6, 3e6}[i/10] }), "33.3 % of the steps take 1 ms, 66.7 % take 3 ms"},
		"alike":    {list(40, func(i int) int64 { return 10e6 + int64(i%7)*20_000 }), ""},
		"one long": {list(40, func(i int) int64 { return 10e6 + int64(i/39)*90e6 }), ""},
		"a drift":  {list(40, func(i int) int64 { return 10e6 + int64(i)*400_000 }), ""},
		"too few":  {[]int64{1, 9, 1, 9, 1, 9}, ""},
		"near":     {list(20, func(i int) int64 { return 10e6 + int64(i%2)*4e6 }), ""},
	} {
		got := ""
		if b := bimodal(c.times); b != nil {
			got = b.String()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
