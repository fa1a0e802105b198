package kit

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// A finding of a phase that takes most of the time comes after one that could win 0.5 %, and before what wins nothing.
func TestFindingsAreRankedByWhatTheyCouldWin(t *testing.T) {
	worth := func(ns int64) *report.Worth { return &report.Worth{Time: ns, Of: 1000} }
	var got []string
	for _, f := range rankFindings([]report.Finding{
		{ID: "nothing_to_win", Severity: report.Low},
		{ID: "dominant_phase", Severity: report.Medium},
		{ID: "zero", Severity: report.High, Worth: worth(0)},
		{ID: "half_percent", Severity: report.High, Worth: worth(5)},
		{ID: "of_no_known_worth", Severity: report.Medium},
		{ID: "tenth", Severity: report.Medium, Worth: worth(100)},
		{ID: "half", Severity: report.High, Worth: worth(500)},
		{ID: "unit_idle", Severity: report.High, Worth: worth(400)},
		{ID: "gpu_idle", Severity: report.High, Worth: worth(900)},
	}) {
		got = append(got, f.ID+" "+string(f.Severity))
	}
	want := []string{"gpu_idle high", "half high", "tenth medium", "of_no_known_worth medium", "half_percent low",
		"dominant_phase medium", "nothing_to_win low", "zero low"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
