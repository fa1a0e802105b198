package kit

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// Graph is what waits for what in the window; nil where there is no GPU work, or more than can be numbered.
func (in *Input) Graph() *stepgraph.Graph {
	if in.Units != nil && in.Units.Timeline == in.Timeline {
		return in.UnitGraph()
	}
	return Once(in, "graph", func() *stepgraph.Graph { return stepgraph.New(in.Trace, in.Calls, in.Timeline) })
}

// UnitGraph is what waits for what in the whole capture, which the units of work are cut from.
func (in *Input) UnitGraph() *stepgraph.Graph {
	return Once(in, "unit graph", func() *stepgraph.Graph { return stepgraph.New(in.Trace, in.Calls, in.Units.Timeline) })
}

// WorkName names a piece of GPU work for people.
func (in *Input) WorkName(d *attrib.Device, at int32) report.Cell {
	if at == trace.None {
		return report.Null
	}
	w := d.Work(int(at))
	switch w.Kind {
	case attrib.KernelWork:
		return report.S(in.Kinds[in.Trace.Kernels.Name(int(w.Row))].Display)
	case attrib.GraphWork:
		return report.S("[CUDA graph " + strconv.FormatInt(in.Trace.Graphs.Graph(int(w.Row)), 10) + "]")
	case attrib.SetWork:
		return report.S("[CUDA memset]")
	case attrib.CopyWork:
	}
	kind := in.Trace.Copies.Kind(int(w.Row))
	if name, ok := map[int]string{1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 9: "Host-to-Host",
		10: "Peer-to-Peer"}[kind]; ok {
		return report.S("[CUDA memcpy " + name + "]")
	}
	return report.S("[CUDA memcpy]")
}
