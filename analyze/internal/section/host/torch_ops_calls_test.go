package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// profiled is the report of a trace of PyTorch's profiler. An event is its category, name, thread, start and length in µs and
// arguments.
func profiled(t *testing.T, events [][6]any) *report.Report {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"traceEvents":[{"ph":"X","cat":"kernel","name":"end","pid":0,"tid":7,"ts":5000,"dur":1,"args":{"device":0,"stream":7}}`)
	for _, e := range events {
		pid := 5
		if e[0] == "kernel" {
			pid = 0
		}
		fmt.Fprintf(&b, `,{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%v,"ts":%v,"dur":%v,"args":{%s}}`, e[0], e[1], pid, e[2], e[3], e[4], e[5])
	}
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(b.String()+"]}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return sectiontest.AnalyseFile(t, path, analyze.Options{}).Report
}

// Two calls of mm, a linear with its addmm, and the backward calls of the second mm and the addmm on another thread, which end
// in an mm and in a kernel of their own. By hand: the last operator with number 3 is addmm; a kernel inside two backward
// ranges of one call counts once.
func TestOperatorsBySizes(t *testing.T) {
	launch := func(n, thread, at, gpu int) [][6]any {
		return [][6]any{{"cuda_runtime", "cudaLaunchKernel", thread, at, 1, fmt.Sprintf(`"correlation":%d`, n)},
			{"kernel", "k", 7, 1000 + 100*n, gpu, fmt.Sprintf(`"device":0,"stream":7,"correlation":%d`, n)}}
	}
	op := func(name string, thread, at, length int, args string) [][6]any {
		return [][6]any{{"cpu_op", name, thread, at, length, args}}
	}
	var events [][6]any
	for _, list := range [][][6]any{
		op("aten::mm", 5, 0, 100, `"Input Dims":[[2,3],[3,4]],"Sequence number":1,"Fwd thread id":0`), launch(1, 5, 10, 30),
		op("aten::mm", 5, 100, 100, `"Input Dims":[[8,3],[3,4],[]],"Sequence number":2,"Fwd thread id":0`), launch(2, 5, 110, 50),
		op("aten::linear", 5, 200, 100, `"Input Dims":[[5,6]],"Sequence number":3,"Fwd thread id":0`),
		op("aten::addmm", 5, 210, 80, `"Input Dims":[[7],[5,6]],"Sequence number":3,"Fwd thread id":0`), launch(3, 5, 220, 20),
		op("autograd::engine::evaluate_function: MmBackward", 6, 300, 100, `"Sequence number":2,"Fwd thread id":1`),
		op("aten::mm", 6, 310, 80, `"Input Dims":[[3,8],[8,4]]`), launch(4, 6, 320, 40), launch(5, 6, 330, 5),
		op("autograd::engine::evaluate_function: AddmmBackward", 6, 400, 100, `"Sequence number":3,"Fwd thread id":1`),
		op("AddmmBackward0", 6, 410, 80, `"Sequence number":3,"Fwd thread id":1`), launch(6, 6, 420, 7),
	} {
		events = append(events, list...)
	}
	r := profiled(t, events)
	wantLines(t, cellLines(t, sectiontest.FindTable(t, r, "torch_ops", "torch_op_sizes"), "operator", "sizes", "calls", "gpu", "self", "host"),
		"aten::mm | [[8, 3], [3, 4]] | 1 | 50000 | 50000 | 100000",
		"aten::mm | [[3, 8], [8, 4]] | 1 | 45000 | 45000 | 80000",
		"aten::mm | [[2, 3], [3, 4]] | 1 | 30000 | 30000 | 100000",
		"aten::addmm | [[7], [5, 6]] | 1 | 20000 | 20000 | 80000",
		"autograd::engine::evaluate_function: AddmmBackward | null | 1 | 7000 | 7000 | 100000",
		"autograd::engine::evaluate_function: MmBackward | null | 1 | 45000 | 0 | 100000",
		"aten::linear | [[5, 6]] | 1 | 20000 | 0 | 100000")
	wantLines(t, cellLines(t, sectiontest.FindTable(t, r, "torch_ops", "torch_ops"), "operator", "calls", "self", "backward"),
		"aten::mm | 3 | 125000 | 45000",
		"aten::addmm | 1 | 20000 | 7000",
		"autograd::engine::evaluate_function: AddmmBackward | 1 | 7000 | 0",
		"autograd::engine::evaluate_function: MmBackward | 1 | 0 | 0",
		"aten::linear | 1 | 0 | 0")
}

// Two threads that both count to 2 leave open whose backward call has the number.
func TestBackwardOfTwoThreadsIsNotTied(t *testing.T) {
	r := profiled(t, [][6]any{
		{"cpu_op", "aten::mm", 5, 0, 10, `"Sequence number":2`}, {"cpu_op", "aten::add", 6, 5, 10, `"Sequence number":2`},
		{"cpu_op", "autograd::engine::evaluate_function: MmBackward0", 7, 20, 30, `"Sequence number":2,"Fwd thread id":1`},
		{"cuda_runtime", "cudaLaunchKernel", 7, 25, 1, `"correlation":1`},
		{"kernel", "k", 7, 100, 9, `"device":0,"stream":7,"correlation":1`}})
	for _, c := range sectiontest.FindTable(t, r, "torch_ops", "torch_ops").Columns {
		if c.ID == "backward" {
			t.Error("it is tied")
		}
	}
}
