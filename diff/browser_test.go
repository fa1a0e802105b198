package diff_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// chartOf is the chart with the id on the comparison's page.
func chartOf(t *testing.T, c *comparison.Comparison, id string) doc.Chart {
	t.Helper()
	chart, ok := chartIn(diffdoc.Browser(c, diffdoc.Links{}), id)
	if !ok {
		t.Fatalf("no chart %s", id)
	}
	return chart
}

func chartIn(blocks []doc.Block, id string) (doc.Chart, bool) {
	for _, b := range blocks {
		var inner []doc.Block
		switch b := b.(type) {
		case doc.Chart:
			if b.ID == id {
				return b, true
			}
		case doc.Details:
			inner = b.Blocks
		}
		if chart, ok := chartIn(inner, id); ok {
			return chart, true
		}
	}
	return doc.Chart{}, false
}

// TestTheChangesClose: on a real comparison of the serving trace with a slowed copy of itself, the parts of a
// class sum to it, and each unit has a dot.
func TestTheChangesClose(t *testing.T) {
	t.Parallel()
	c := slowed(t)
	for class, kind := range map[string]string{comparison.ClassCompute: comparison.KindCategory, comparison.ClassIdle: comparison.KindCause} {
		left := 0.0
		for _, r := range c.Attribution.Rows {
			switch {
			case r.ID == class && r.Kind == comparison.KindClass:
				left += r.Delta
			case r.Kind == kind && r.ID != "comm":
				left -= r.Delta
			}
		}
		if math.Abs(left) > 1 {
			t.Errorf("the parts of %s leave %g ns", class, left)
		}
	}
	d := chartOf(t, c, "distribution")
	for i, n := range []int64{c.Unit.BaseN, c.Unit.HeadN} {
		if dots := int64(len(d.Series[i].Values)); dots != n {
			t.Errorf("side %d: %d units in the distribution, %d in the comparison", i, dots, n)
		}
	}
}

func TestPageSaysTheVerdict(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	c := slowed(t)
	if err := diffdoc.WriteHTML(&b, c, diffdoc.Links{}); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{"<strong>FAIL</strong>", "id=\"causes\"", "id=\"gates\"", "id=\"table-attribution\"", "id=\"table-kernels\""} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// slowed compares the serving trace with itself, its attention kernels made 60 % slower.
func slowed(t *testing.T) *comparison.Comparison {
	t.Helper()
	const serving = "../testdata/serving.sqlite"
	attention := func(name string) bool { return strings.Contains(name, "FlashAttn") }
	return diffOf(t, reportOfFile(t, serving, analyze.Options{}), rewritten(t, serving, tracetest.ScaleKernels(attention, 1.6)), diff.Options{})
}
