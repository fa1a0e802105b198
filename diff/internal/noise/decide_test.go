package noise

import (
	"testing"

	"github.com/nsys-llm/explain/diff/internal/significance"
)

// The reader can check the rule that was applied: the estimate against the floor, the interval against 0.
func TestWhyNamesTheRule(t *testing.T) {
	v := significance.Verdict{Ratio: 1.138, Low: 1.023, High: 1.296, Floor: 0.05, Level: 0.9, Class: significance.Regressed}
	const want = "+13.8 %, interval over units +2.3 % to +29.6 %: the estimate exceeds the noise floor of 5.0 % " +
		"(assumed: nothing was calibrated), and the interval excludes 0"
	if got := new(Decider).Why(new(significance.Number), &v, Family{}); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
