package tracetest_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Three captures in one have three times the kernels, kernel time, calls and ranges, and every kernel its own launch.
func TestRepeat(t *testing.T) {
	src := tracetest.Tiny().WriteTB(t)
	dst := filepath.Join(t.TempDir(), "three.sqlite")
	if err := tracetest.Rewrite(src, dst, tracetest.Repeat(3)); err != nil {
		t.Fatal(err)
	}
	var reports [2]*report.Report
	for i, path := range []string{src, dst} {
		res, err := analyze.Run(context.Background(), path, analyze.Options{})
		if err != nil {
			t.Fatal(err)
		}
		reports[i] = res.Report
	}
	for _, id := range []string{"kernel.count", "kernel.total_time", "api.count", "nvtx.count", "launch.count"} {
		one, three := reports[0].Find(id, report.Labels{}), reports[1].Find(id, report.Labels{})
		if *three.Value != 3**one.Value {
			t.Errorf("%s is %v, and %v three times", id, *one.Value, *three.Value)
		}
	}
	for _, id := range []string{"nvtx.coverage", "quality.unjoined_kernels"} {
		one, three := reports[0].Find(id, report.Labels{}), reports[1].Find(id, report.Labels{})
		if d := *three.Value - *one.Value; d > 1e-12 || d < -1e-12 {
			t.Errorf("%s is %v, and %v three times", id, *one.Value, *three.Value)
		}
	}
}
