package gpu_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// hostFunctions has five gaps, in µs. 100-165: launched at 40, and stream 7 waits for a function until 160. 200-260: the
// function is of stream 7, the next kernel of stream 8. 300-340: before a graph. 350-390: a host node of the graph runs
// until 380, in another stream of it. 400-455: a function of stream 7 runs until 450, the next kernel is launched at 440.
func hostFunctions(opts ...tracetest.Option) *tracetest.Builder {
	const us = sectiontest.Us
	b := tracetest.New(append([]tracetest.Option{tracetest.Schema("3.25.0")}, opts...)...)
	p := b.Process(100, "python")
	th, driver := p.Thread(100, ""), p.Thread(101, "")
	at := func(stream int64) tracetest.Place { return tracetest.Place{Process: p, Stream: stream} }
	function := func(api, start, end int64) {
		place := at(7)
		place.Correlation = th.Call("cudaLaunchHostFunc_v10000", api*us, (api+2)*us)
		b.HostFunc(tracetest.HostFunc{Place: place, Start: start * us, End: end * us, Runs: driver, Name: "sample_cb"})
	}
	th.Launch("gemm", 0, 5*us, tracetest.Kernel{Start: 10 * us, End: 100 * us})
	function(20, 100, 160)
	th.Launch("gemm", 30*us, 40*us, tracetest.Kernel{Start: 165 * us, End: 200 * us})
	function(50, 200, 250)
	th.Launch("gemm", 150*us, 155*us, tracetest.Kernel{Place: at(8), Start: 260 * us, End: 300 * us})
	graph := th.GraphLaunch(310*us, 330*us, tracetest.Kernel{Name: "norm", Place: at(9), Start: 340 * us, End: 350 * us},
		tracetest.Kernel{Name: "norm", Place: at(10), Start: 390 * us, End: 400 * us})
	node := at(9)
	node.Correlation = graph
	b.HostFunc(tracetest.HostFunc{Place: node, Start: 350 * us, End: 380 * us, GraphNode: 2})
	function(385, 400, 450)
	th.Launch("gemm", 430*us, 440*us, tracetest.Kernel{Start: 455 * us, End: 500 * us})
	return b
}

func TestHostFunctionsHoldTheirStream(t *testing.T) {
	l := sectiontest.Look(t, hostFunctions(), analyze.Options{})
	// 100 to 160, 350 to 380 and 440 to 450, of what is dependency: 65 + 60 + 10 + 40 + 15
	sectiontest.Metric(t, l.Report, 100*sectiontest.Us, "idle.host_function_time", "device", "0")
	sectiontest.Metric(t, l.Report, 190*sectiontest.Us, "gpu.idle_cause_time", "cause", "dependency", "device", "0")
	tab := l.Table("idle", "host_functions")
	l.Row(tab, 0, "device_id", "0", "pid", "100", "function", `"sample_cb"`, "count", "3", "total", "160000", "max", "60000")
	l.Row(tab, 1, "device_id", "0", "pid", "100", "function", "null", "count", "1", "total", "30000", "max", "30000")
	l.CsvHas(tab, "host_functions.csv", "device_id", "pid", "function", "count", "total_ms", "max_ms")
	l.Finding("host_functions", sectiontest.Remark)
	for _, row := range l.Table("overview", "tables").Rows {
		if row[1].Equal(report.S("not read")) {
			t.Errorf("not read: %v", row)
		}
	}

	// A capture without these rows has the same gaps, and host_function_time is unknown.
	without := sectiontest.Look(t, hostFunctions(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE_AND_HOST_LAUNCH")), analyze.Options{})
	sectiontest.NoMetric(t, without.Report, "idle.host_function_time", "device", "0")
	sectiontest.Metric(t, without.Report, 190*sectiontest.Us, "gpu.idle_cause_time", "cause", "dependency", "device", "0")
	without.Finding("host_functions", "")
}

// Without the call that launched the next work nobody knows when that was: the whole time of the function counts.
func TestHostFunctionsWithoutCalls(t *testing.T) {
	l := sectiontest.Look(t, hostFunctions(tracetest.WithoutTable(sectiontest.RuntimeTable)), analyze.Options{})
	sectiontest.Metric(t, l.Report, (60+30+50)*sectiontest.Us, "idle.host_function_time", "device", "0")
}

// Executable graphs that are made in the window: neither the one before it, nor the graph that nobody can launch.
func TestGraphsMadeInTheWindow(t *testing.T) {
	b := hostFunctions()
	for _, g := range []tracetest.GraphEvent{
		{Name: "GraphExec Creation", At: -20000 * sectiontest.Us, Class: 94, Graph: 1, Exec: 5},
		{Name: "Graph Creation", At: 50 * sectiontest.Us, Graph: 2},
		{Name: "GraphExec Creation", At: 60 * sectiontest.Us, Class: 94, Graph: 2, Exec: 6},
	} {
		b.GraphEvent(g)
	}
	sectiontest.Metric(t, sectiontest.Analyse(t, b, analyze.Options{}).Report, 1, "graph.created")
	sectiontest.NoMetric(t, sectiontest.Analyse(t, hostFunctions(), analyze.Options{}).Report, "graph.created")
}
