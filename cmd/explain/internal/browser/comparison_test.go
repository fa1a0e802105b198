package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestComparisonInABrowser: the page of a comparison opens without a complaint, asks for nothing, fits every window, and its
// drawings have the numbers of comparison.json.
func TestComparisonInABrowser(t *testing.T) {
	t.Parallel()
	file, c := comparisonOf(t, explaintest.Testdata("serving.sqlite"))
	ctx, complaints := open(t, file, true)
	numbers := func(chart string) []float64 {
		return evaluate[[]float64](t, ctx, `[...document.querySelectorAll("#chart-`+chart+` data")].map(d => +d.value)`)
	}
	same := func(chart string, want []float64) {
		t.Helper()
		got := numbers(chart)
		slices.Sort(got)
		slices.Sort(want)
		if len(want) == 0 || !slices.Equal(got, want) {
			t.Errorf("%s: %v, comparison.json has %v", chart, got, want)
		}
	}
	var units []float64
	for _, x := range c.Distribution.Captures {
		units = append(units, x.Times...)
	}
	same("distribution", units)
	for _, width := range []int64{380, 1280, 2560} {
		seen(t, ctx, "dark", width)
		if n := evaluate[int](t, ctx, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); n > 0 {
			t.Errorf("the page is %d pixels wider than a window of %d", n, width)
		}
	}
	if list := complaints(); len(list) > 0 {
		t.Errorf("the page complains: %q", list)
	}
}

// TestHostileComparison: nothing that a capture holds runs on the page of a comparison, and names are there to read.
func TestHostileComparison(t *testing.T) {
	t.Parallel()
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	names := tracetest.HostileNames()
	for step := range int64(20) {
		at := step * 1_000_000
		th.Range("step", at, at+900_000)
		for i, name := range names {
			from := at + int64(i)*10_000
			th.Launch(name, from, from+1000, tracetest.Kernel{Start: from + 2000, End: from + 7000})
		}
	}
	file, c := comparisonOf(t, b.WriteTB(t))
	ctx, complaints := open(t, file, true)
	checkNothingRuns(t, ctx, complaints)
	text := evaluate[string](t, ctx, "document.body.textContent")
	found := 0
	for _, k := range c.Kernels {
		if k.BaseShort != nil && strings.ContainsAny(*k.BaseShort, "<@") && strings.Contains(text, render.Visible(*k.BaseShort)) {
			found++
		}
	}
	if found == 0 {
		t.Error("no hostile name is on the page literally")
	}
}
