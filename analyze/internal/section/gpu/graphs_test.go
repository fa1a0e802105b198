package gpu_test

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

const kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"

// TestGraphsWhole: tracetest.GraphHidden has 10 graphs of 900 µs, traced as a whole, and kernels of 100 µs in all.
func TestGraphsWhole(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.GraphHidden(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 9000.0/9100, "graph.coverage")
	sectiontest.Metric(t, r, 10, "graph.launches")
	sectiontest.Metric(t, r, 9000*sectiontest.Us, "graph.time")
	sectiontest.Metric(t, r, 1, "graph.unique")
	sectiontest.NoMetric(t, r, "graph.kernels") // hidden, not none
	sectiontest.NoMetric(t, r, "graph.kernels_per_launch")
	if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.Partial {
		t.Errorf("status %s, want partial", s.Status)
	}
	if f := sectiontest.FindingOf(r, "graph_hidden"); f == nil || f.Severity != sectiontest.Remark {
		t.Errorf("graph_hidden: %+v, want a remark: it says something of the capture", f)
	}
	row := sectiontest.FindTable(t, r, "graphs", "graphs").Rows[0]
	for i, want := range []report.Cell{report.I(300), report.I(0), report.I(4), report.I(5), report.Null, report.I(10), report.I(9000 * sectiontest.Us), report.F(900 * sectiontest.Us), report.F(900 * sectiontest.Us), report.I(900 * sectiontest.Us), report.Null, report.Null} {
		if !row[i].Equal(want) {
			t.Errorf("column %d: %v, want %v", i, row[i], want)
		}
	}
}

// byNode has three launches of a graph of three kernels of 10 µs, one of a graph of one kernel of 20 µs, and a kernel of
// 10 µs launched by itself. The kernels of the third launch run in another order.
func byNode(opts ...tracetest.Option) *tracetest.Builder {
	b := tracetest.New(opts...)
	th := b.Process(100, "python").Thread(100, "")
	for i := range int64(3) {
		at := i * 100 * sectiontest.Us
		kernel := func(name string, start int64) tracetest.Kernel {
			return tracetest.Kernel{Name: name, Start: at + start*sectiontest.Us, End: at + start*sectiontest.Us + 10*sectiontest.Us}
		}
		nodes := []tracetest.Kernel{kernel("gemm", 10), kernel("norm", 20), kernel("softmax", 35)}
		if i == 2 {
			nodes[0].Name, nodes[1].Name = nodes[1].Name, nodes[0].Name
		}
		th.GraphLaunch(at, at+8*sectiontest.Us, nodes...)
	}
	th.GraphLaunch(300*sectiontest.Us, 305*sectiontest.Us, tracetest.Kernel{Name: "gemm", Start: 310 * sectiontest.Us, End: 330 * sectiontest.Us})
	th.Launch("fill", 400*sectiontest.Us, 405*sectiontest.Us, tracetest.Kernel{Start: 410 * sectiontest.Us, End: 420 * sectiontest.Us})
	return b
}

func TestGraphsByNode(t *testing.T) {
	for name, b := range map[string]*tracetest.Builder{
		"by node id":                    byNode(),
		"by launch call":                byNode(tracetest.WithoutColumn(kernelTable, "graphNodeId")),
		"by node id, API calls missing": byNode(tracetest.WithoutTable(sectiontest.RuntimeTable)),
	} {
		t.Run(name, func(t *testing.T) {
			r := sectiontest.Analyse(t, b, analyze.Options{}).Report
			sectiontest.Metric(t, r, 110.0/120, "graph.coverage") // 3 x 30 + 20 of that + 10
			sectiontest.Metric(t, r, 110*sectiontest.Us, "graph.time")
			sectiontest.Metric(t, r, 10, "graph.kernels")
			sectiontest.Metric(t, r, 2.5, "graph.kernels_per_launch") // 3, 3, 3, 1
			sectiontest.Metric(t, r, 2, "graph.unique")
			if name == "by node id, API calls missing" {
				sectiontest.NoMetric(t, r, "graph.launches")
			} else {
				sectiontest.Metric(t, r, 4, "graph.launches")
				sectiontest.Metric(t, r, 5, "launch.count") // one per graph launch
			}
			if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.OK {
				t.Errorf("status %s (%s)", s.Status, s.Reason)
			}
			rows := sectiontest.FindTable(t, r, "graphs", "graphs").Rows
			if len(rows) != 2 {
				t.Fatalf("graphs: %v, want two", rows)
			}
			// 35 µs from first start to last end, of which kernels 30.
			for i, want := range map[int]report.Cell{0: report.I(100), 2: report.Null, 5: report.I(3), 6: report.I(105 * sectiontest.Us), 7: report.F(35 * sectiontest.Us), 10: report.I(90 * sectiontest.Us), 11: report.I(3)} {
				if !rows[0][i].Equal(want) {
					t.Errorf("column %d: %v, want %v", i, rows[0][i], want)
				}
			}
		})
	}
}

// TestGraphsModesAgree: the serving trace by node and as a whole has the same graph launches; coverage differs by the
// gaps between the nodes, which a graph traced as a whole includes.
// Of two graphs with equal kernels the ids tell them apart, where the capture has them; nothing is left to say about ids then.
func TestGraphsByNodeWithIDs(t *testing.T) {
	b := tracetest.New(tracetest.Schema("3.25.0"))
	th := b.Process(100, "python").Thread(100, "")
	for i, id := range []int64{7, 9, 7} {
		at := int64(i) * 100 * sectiontest.Us
		th.GraphLaunch(at, at+8*sectiontest.Us, tracetest.Kernel{Name: "gemm", Start: at + 10*sectiontest.Us, End: at + 20*sectiontest.Us, GraphID: id})
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 2, "graph.unique")
	wantRows := [][2]report.Cell{{report.I(7), report.I(2)}, {report.I(9), report.I(1)}}
	for i, row := range sectiontest.FindTable(t, r, "graphs", "graphs").Rows {
		if !row[2].Equal(wantRows[i][0]) || !row[5].Equal(wantRows[i][1]) {
			t.Errorf("graph %v with %v launches, want %v", row[2], row[5], wantRows[i])
		}
	}
	if notes := sectiontest.SectionOf(t, r, "graphs").Notes; len(notes) > 0 {
		t.Errorf("notes %q", notes)
	}
}

func TestGraphsModesAgree(t *testing.T) {
	node := sectiontest.ReportOf(t, "../../../../testdata/serving.sqlite")
	whole := sectiontest.ReportOf(t, "../../../../testdata/serving_graph.sqlite")
	a, b := node.Find("graph.launches", report.Labels{}), whole.Find("graph.launches", report.Labels{})
	if a == nil || b == nil || *a.Value != *b.Value || *a.Value == 0 {
		t.Fatalf("graph launches: %+v by node, %+v as a whole", a, b)
	}
	c, d := node.Find("graph.coverage", report.Labels{}), whole.Find("graph.coverage", report.Labels{})
	if *c.Value <= 0 || *c.Value > *d.Value+1e-9 || *d.Value-*c.Value > 0.05 {
		t.Errorf("coverage: %v by node, %v as a whole", *c.Value, *d.Value)
	}
	if sectiontest.FindingOf(whole, "graph_hidden") == nil || sectiontest.FindingOf(node, "graph_hidden") != nil {
		t.Error("graph_hidden belongs to the trace of whole graphs, and only to it")
	}
}

func TestGraphsNone(t *testing.T) {
	r := sectiontest.Analyse(t, tracetest.TwoProcs(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 0, "graph.coverage")
	sectiontest.Metric(t, r, 0, "graph.launches")
	sectiontest.Metric(t, r, 0, "graph.kernels")
	sectiontest.NoMetric(t, r, "graph.unique")
	if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.NotApplicable {
		t.Errorf("status %s", s.Status)
	}
	// Launches of 6 µs for kernels of 4 µs: more than half of the time goes into launching.
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	for i := range int64(50) {
		th.Launch("gemm", i*10*sectiontest.Us, (i*10+6)*sectiontest.Us, tracetest.Kernel{Start: (i*10 + 6) * sectiontest.Us, End: (i*10 + 10) * sectiontest.Us})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	if f := sectiontest.FindingOf(l.Report, "gpu_idle"); f == nil || !strings.Contains(f.Title, "launching takes longer than the work") || !strings.Contains(f.Advice[0], "CUDA graph") {
		t.Errorf("launch-bound: %+v", f)
	}
	// 17 of 1000 µs are no reason for graphs.
	b = tracetest.New()
	th = b.Process(100, "python").Thread(100, "")
	th.Launch("gemm", 0, 5*sectiontest.Us, tracetest.Kernel{Start: 10 * sectiontest.Us, End: 500 * sectiontest.Us})
	th.Launch("gemm", 510*sectiontest.Us, 517*sectiontest.Us, tracetest.Kernel{Start: 517 * sectiontest.Us, End: 1010 * sectiontest.Us})
	if f := sectiontest.FindingOf(sectiontest.Analyse(t, b, analyze.Options{}).Report, "no_graphs"); f != nil {
		t.Errorf("no_graphs: %+v, want none", f)
	}
}

// TestFewGraphs: graphs run a third of the kernel time, and the GPU waits for the host half of the time.
func TestFewGraphs(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.GraphLaunch(0, 5*sectiontest.Us, tracetest.Kernel{Name: "gemm", Start: 5 * sectiontest.Us, End: 15 * sectiontest.Us})
	th.Launch("gemm", 30*sectiontest.Us, 35*sectiontest.Us, tracetest.Kernel{Start: 35 * sectiontest.Us, End: 55 * sectiontest.Us})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 1.0/3, "graph.coverage")
	if f := sectiontest.FindingOf(r, "few_graphs"); f == nil || f.Severity != report.High {
		t.Errorf("few_graphs: %+v", f)
	}
}

// TestGraphsUnknown: coverage is never 0 where it is not known.
// Forty decode steps of 1 ms, each a graph of 600 µs, and eight prefills of 4 ms without: graphs run 24 of 56 ms, but all
// of the judged step, which waits for the host for another reason.
func TestGraphsOfTheJudgedStep(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	at := int64(1000 * us)
	for i := range 48 {
		if i%6 == 5 {
			th.Range("execute_context_1(512)_generation_0(0)", at-40*us, at-20*us)
			th.Launch("gemm", at-39*us, at-38*us, tracetest.Kernel{Start: at, End: at + 4000*us})
			at += 4100 * us
			continue
		}
		th.Range("execute_context_0(0)_generation_8(8)", at-40*us, at-20*us)
		th.GraphLaunch(at-30*us, at-25*us, tracetest.Kernel{Name: "gemm", Start: at, End: at + 600*us, GraphNode: 1})
		at += 1000 * us
	}
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 24.0/56, "graph.coverage")
	sectiontest.Metric(t, r, 400*us, "unit.gpu_idle")
	if f := sectiontest.FindingOf(r, "few_graphs"); f != nil {
		t.Errorf("few_graphs: %+v", f)
	}
}

func TestGraphsUnknown(t *testing.T) {
	// Graph launches whose GPU work is not in the capture.
	b := tracetest.New()
	th := b.Process(100, "python").Thread(100, "")
	th.GraphLaunch(0, 5*sectiontest.Us)
	th.Launch("gemm", 10*sectiontest.Us, 15*sectiontest.Us, tracetest.Kernel{Start: 20 * sectiontest.Us, End: 30 * sectiontest.Us})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.NoMetric(t, r, "graph.coverage")
	sectiontest.Metric(t, r, 1, "graph.launches")
	if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.Partial {
		t.Errorf("status %s", s.Status)
	}
	// Nothing that tells nodes from other kernels.
	r = sectiontest.Analyse(t, byNode(tracetest.WithoutColumn(kernelTable, "graphNodeId"), tracetest.WithoutTable(sectiontest.RuntimeTable)), analyze.Options{}).Report
	sectiontest.NoMetric(t, r, "graph.coverage")
	sectiontest.NoMetric(t, r, "graph.launches")
	if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.Unavailable {
		t.Errorf("status %s", s.Status)
	}
	// No GPU work at all.
	b = tracetest.New()
	b.Process(100, "python").Thread(100, "").Range("step", 0, 10)
	if s := sectiontest.SectionOf(t, sectiontest.Analyse(t, b, analyze.Options{}).Report, "graphs"); s.Status != report.Unavailable {
		t.Errorf("status %s", s.Status)
	}
}

// Without correlation ids the kernels of graphs are known by their nodes, but not which of them one launch ran: no
// number per launch is made of them. They are 10 kernels, and 110 µs of 120.
func TestGraphsWithoutLaunches(t *testing.T) {
	r := sectiontest.Analyse(t, byNode(tracetest.WithoutColumn(kernelTable, "correlationId")), analyze.Options{}).Report
	sectiontest.Metric(t, r, 110.0/120, "graph.coverage")
	sectiontest.Metric(t, r, 10, "graph.kernels")
	sectiontest.Metric(t, r, 4, "graph.launches")
	for _, id := range []string{"graph.unique", "graph.kernels_per_launch"} {
		sectiontest.NoMetric(t, r, id)
	}
	if s := sectiontest.SectionOf(t, r, "graphs"); s.Status != report.Partial || len(s.Tables[0].Rows) > 0 {
		t.Errorf("status %s, %v", s.Status, s.Tables)
	}
}

// TestGraphsReal: the one real trace with graphs has 10 launches of one graph, 7811 ms of it, and kernels of 0.08 ms.
func TestGraphsReal(t *testing.T) {
	r := sectiontest.RealReport(t, "cs336zx_2_7B_compile_cudagraph")
	sectiontest.Metric(t, r, 10, "graph.launches")
	sectiontest.Metric(t, r, 7811141695, "graph.time")
	sectiontest.Metric(t, r, 1, "graph.unique")
	kernels := r.Find("kernel.total_time", report.Labels{})
	sectiontest.Metric(t, r, 7811141695/(7811141695+*kernels.Value), "graph.coverage")
}
