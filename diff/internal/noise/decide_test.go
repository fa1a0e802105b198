package noise

import (
	"testing"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// The reader can check the rule that was applied: the estimate against the floor, the interval against 0.
func TestWhyNamesTheRule(t *testing.T) {
	v := significance.Verdict{Ratio: 1.138, Low: 1.023, High: 1.296, Floor: 0.05, Level: 0.9, Class: comparison.Regressed}
	const want = "+13.8 %, interval over units +2.3 % to +29.6 %: the estimate exceeds the noise floor of 5.0 % " +
		"(assumed: nothing was calibrated), and the interval excludes 0"
	if got := new(Decider).Why(new(significance.Number), &v, Family{}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What a server's log says has no units. An interval that both ends of round to one number is not shown.
func TestWhyOfLogLines(t *testing.T) {
	n := significance.Number{Samples: "log lines"}
	v := significance.Verdict{Ratio: 0.8947, Low: 0.893, High: 0.896, Floor: 0.05, Level: 0.9, Class: comparison.Regressed}
	for _, c := range []struct {
		low  float64
		want string
	}{
		{0.85, "-10.5 %, interval over log lines -15.0 % to -10.4 %: the estimate exceeds the noise floor of 5.0 % " +
			"(assumed: nothing was calibrated), and the interval excludes 0"},
		{0.8958, "-10.5 %, beyond the noise floor of 5.0 % (assumed: nothing was calibrated)"},
	} {
		v.Low = c.low
		if got := new(Decider).Why(&n, &v, Family{}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
