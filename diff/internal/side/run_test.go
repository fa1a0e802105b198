package side_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/side"
)

func TestBetweenRuns(t *testing.T) {
	of := func(runs ...string) *side.Side {
		var list []*report.Report
		for _, run := range runs {
			r := &report.Report{}
			if run != "" {
				r.Capture.Run = &run
			}
			list = append(list, r)
		}
		return &side.Side{Captures: side.NewCaptures(list)}
	}
	for _, c := range []struct {
		name       string
		base, head *side.Side
		want       bool
	}{
		{"one run", of("a", "a"), of("a", "a"), false},
		{"a job for each side", of("a", "a", "a"), of("b", "b", "b"), true},
		{"base of several runs", of("a", "b", "c"), of("d", "d"), true},
		{"both of several runs", of("a", "b"), of("c", "d"), false},
		{"a run on both sides", of("a", "b"), of("b", "b"), false},
		{"a capture that does not say", of("a", ""), of("b", "b"), false},
	} {
		if got := side.BetweenRuns(c.base, c.head); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
