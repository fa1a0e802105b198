package host_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Two calls of linear, each with an mm inside, one with another linear around its mm; a softmax on another thread; a
// kernel outside any operator. Times in ns, all worked out by hand:
//
//	thread 5: linear [0,100): mm [10,50) launches 30
//	          linear [200,300): linear [210,290): mm [220,240) launches 20; launches 10 itself at 250
//	          step [0,400) is no operator; it launches 25 at 350
//	thread 6: softmax [0,40) launches 15; the same moment begins its add [0,8)
func operatorTrace() *tracetest.Builder {
	b := tracetest.New()
	p := b.Process(5, "python")
	one, two := p.Thread(5, ""), p.Thread(6, "")
	one.Range("step", 0, 400)
	one.Range("aten::linear, seq = 3, op_id = 1", 0, 100)
	one.Range("aten::mm, seq = 3, op_id = 2", 10, 50)
	one.Launch("gemm", 11, 12, tracetest.Kernel{Start: 1000, End: 1030})
	one.Range("aten::linear, op_id = 3", 200, 300)
	one.Range("aten::linear, op_id = 4", 210, 290)
	one.Range("aten::mm, op_id = 5", 220, 240)
	one.Launch("gemm", 221, 222, tracetest.Kernel{Start: 1030, End: 1050})
	one.Launch("bias", 250, 251, tracetest.Kernel{Start: 1050, End: 1060})
	one.Launch("copy", 350, 351, tracetest.Kernel{Start: 1060, End: 1085})
	two.Range("aten::add, op_id = 7", 0, 8)
	two.Range("aten::softmax, op_id = 6", 0, 40)
	two.Launch("softmax", 20, 21, tracetest.Kernel{Start: 1085, End: 1100})
	return b
}

func TestTorchOps(t *testing.T) {
	l := sectiontest.Look(t, operatorTrace(), analyze.Options{})
	l.Status("torch_ops", report.OK)
	table := l.Table("torch_ops", "torch_ops")
	l.CsvHas(table, "torch_ops.csv", "operator", "calls", "gpu_time_ms", "gpu_time_self_ms", "kernel_count", "host_time_ms")
	wantLines(t, cellLines(t, table, "operator", "calls", "gpu", "self", "share", "kernels", "host", "host_self", "mean"),
		"aten::mm | 2 | 50 | 50 | 0.5 | 2 | 60 | 60 | 30",
		"aten::softmax | 1 | 15 | 15 | 0.15 | 1 | 40 | 32 | 40",
		// linear: 30 + 20 + 10 inside, 10 its own; [0,100) and [200,300), without the mm's 40 and 20
		"aten::linear | 3 | 60 | 10 | 0.1 | 1 | 200 | 140 | 93.33333333333333",
		"aten::add | 1 | 0 | 0 | 0 | 0 | 8 | 8 | 8")
	sectiontest.Metric(t, l.Report, 7, "op.count")
	sectiontest.Metric(t, l.Report, 0.75, "op.coverage") // 75 of 100 ns: the step's own copy is in no operator
	sectiontest.Metric(t, l.Report, 240, "op.host_time_self")
	sectiontest.Metric(t, l.Report, 75, "op.gpu_time_self")
	sectiontest.Metric(t, l.Report, 200, "op.host_time", "op", "aten::linear")
	sectiontest.Metric(t, l.Report, 60, "op.gpu_time", "op", "aten::linear")
	sectiontest.NoMetric(t, l.Report, "op.gpu_time", "op", "aten::add") // launched nothing
}

// Sums close on any trace: self GPU time of the operators is what the coverage says, self host time is what the
// outermost operators take.
func TestTorchOpsOfARealTrace(t *testing.T) {
	r := sectiontest.RealReport(t, "nsysai_mfu_2gpu_before")
	table := sectiontest.FindTable(t, r, "torch_ops", "torch_ops")
	sum := func(column string) (sum float64) {
		for i, c := range table.Columns {
			for _, row := range table.Rows {
				if v, ok := row[i].Num(); ok && c.ID == column {
					sum += v
				}
			}
		}
		return sum
	}
	sectiontest.Metric(t, r, sum("calls"), "op.count")
	sectiontest.Metric(t, r, sum("self"), "op.gpu_time_self")
	sectiontest.Metric(t, r, sum("host_self"), "op.host_time_self")
	total, cover := r.Find("kernel.total_time", nil), r.Find("op.coverage", nil)
	if got := sum("self") / *total.Value; !sectiontest.Near(got, *cover.Value, 1e-12) || got < 0.5 {
		t.Errorf("operators cover %v, self times make %v", *cover.Value, got)
	}
}

// Ranges of the same form without any aten:: are no operators; nor is there anything to say of kernels without calls.
func TestTorchOpsOfOthers(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	th.Range("thrust::reduce", 0, 100)
	th.Launch("k", 1, 2, tracetest.Kernel{Start: 200, End: 220})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.WantStatus(t, r, "torch_ops", report.NotApplicable, "emit_nvtx")
	sectiontest.NoMetric(t, r, "op.count")

	r = sectiontest.Analyse(t, operatorTrace(), analyze.Options{NoRangeMap: true}).Report
	sectiontest.WantStatus(t, r, "torch_ops", report.Partial, "host time only")
	sectiontest.Metric(t, r, 7, "op.count")
	sectiontest.NoMetric(t, r, "op.coverage")
}

// What is added up by node, where all ranges nest, is what going through the ranges makes of them: two ranges that cross,
// on a thread and of names of their own, change neither operators nor other ranges.
func TestRangesThatNestAddUpLikeOthers(t *testing.T) {
	names := []string{"aten::mm, op_id = 1", "aten::linear, op_id = 2", "aten::add", "step", "forward"}
	for seed := range uint64(20) {
		rows := func(cross bool) []string {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := tracetest.New()
			p := b.Process(5, "python")
			for tid := int64(5); tid < 8; tid++ {
				th := p.Thread(tid, "")
				var nest func(from, to int64, depth int)
				nest = func(from, to int64, depth int) {
					for at := from; at < to && depth < 6; {
						end := min(to, at+rng.Int64N(60))
						th.Range(names[rng.IntN(len(names))], at, end)
						nest(at, end, depth+1)
						at = end + rng.Int64N(4)
					}
				}
				nest(0, 200, 0)
				th.Launch("k", 50, 51, tracetest.Kernel{Start: 300 + 10*tid, End: 305 + 10*tid})
			}
			if cross {
				th := p.Thread(9, "")
				th.StartEnd("over", 0, 50)
				th.StartEnd("lap", 20, 80)
			}
			l := sectiontest.Look(t, b, analyze.Options{})
			list := append(
				cellLines(t, l.Table("torch_ops", "torch_ops"), "operator", "calls", "gpu", "self", "host", "host_self", "mean"),
				cellLines(t, l.Table("nvtx", "nvtx_ranges"), "range_name", "count", "gpu", "self", "wall", "sum", "p50")...)
			return slices.DeleteFunc(list, func(row string) bool {
				return strings.HasPrefix(row, "over |") || strings.HasPrefix(row, "lap |")
			})
		}
		if list := rows(true); len(list) != 8 {
			t.Fatalf("seed %d: %d rows", seed, len(list))
		} else {
			wantLines(t, rows(false), list...)
		}
	}
}
