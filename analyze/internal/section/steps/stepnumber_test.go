package steps_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Eight steps from number 117 on, under markers of several forms: the series has the steps' numbers where markers count, less
// the places 0 to 7 always 117 where by ones.
func TestStepNumbers(t *testing.T) {
	constant := func(i int) string { return "my step" }
	for _, c := range []struct {
		name string
		text func(i int) string
		want []int64
	}{
		{"torch.profiler", func(i int) string { return fmt.Sprintf("ProfilerStep#%d", 117+i) }, []int64{117, 8}},
		{"TensorRT-LLM", func(i int) string {
			return fmt.Sprintf("[Executor] _forward_step %d: 0 ctx reqs, 0 ctx tokens, 8 gen reqs", 117+2*i)
		}, []int64{117, 1, 118, 1, 119, 1, 120, 1, 121, 1, 122, 1, 123, 1, 124, 1}},
		{"by hand", func(i int) string { return fmt.Sprintf("decode_step_%d", 117+i) }, []int64{117, 8}},
		{"a range of layer 3 of step N", func(i int) string { return fmt.Sprintf("block 3 of %d", 117+i) }, []int64{117, 8}},
		{"batch sizes are no steps", func(i int) string { return fmt.Sprintf("execute_context_0(0)_generation_8(%d)", 8+i) }, nil},
		{"counted anew", func(i int) string { return fmt.Sprintf("decode_step_%d", i%4) }, nil},
		{"too large", func(i int) string { return fmt.Sprintf("decode_step_99999999999999999%d", i) }, nil},
		{"no number", constant, nil},
	} {
		b := tracetest.New()
		b.GPU(tracetest.GPU{})
		th := b.Process(100, "python").Thread(100, "python")
		for i := range 8 {
			at := func(us int64) int64 { return (1000 + 200*int64(i) + us) * unitUS }
			th.Range(c.text(i), at(-31), at(90))
			th.Launch("gemm", at(-26), at(-24), tracetest.Kernel{Start: at(0), End: at(50)})
			th.Launch("softmax", at(-20), at(-18), tracetest.Kernel{Start: at(50), End: at(60)})
		}
		r := sectiontest.Analyse(t, b, analyze.Options{}).Report
		if r.Unit.Series == nil || r.Unit.Series.Count != 8 {
			t.Errorf("%s: %s, series %+v", c.name, r.Unit.Why, r.Unit.Series)
			continue
		}
		if !slices.Equal(r.Unit.Series.Step, c.want) {
			t.Errorf("%s: %v, want %v", c.name, r.Unit.Series.Step, c.want)
		}
	}
}
