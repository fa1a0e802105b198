package kit

import (
	"cmp"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// Graph is the graph of dependencies in the window; nil if there is no GPU work, or more than can be numbered.
func (in *Input) Graph() *stepgraph.Graph {
	if in.Units != nil && in.Units.Timeline == in.Timeline {
		return in.UnitGraph()
	}
	return Once(in, "graph", func() *stepgraph.Graph { return stepgraph.New(in.Trace, in.Calls, in.Timeline) })
}

// UnitGraph is the graph of dependencies in the whole capture, from which the units of work are cut.
func (in *Input) UnitGraph() *stepgraph.Graph { return graphOf(in, in.Units.Timeline) }

// GraphAhead builds UnitGraph on the timeline that units will be cut from, before the units are searched. A panic
// is raised again in the section that asks for the graph.
func (in *Input) GraphAhead(units *timeline.Timeline) {
	quietly(in, func(in *Input) { graphOf(in, units) })
}

func graphOf(in *Input, units *timeline.Timeline) *stepgraph.Graph {
	return Once(in, "unit graph", func() *stepgraph.Graph { return stepgraph.New(in.Trace, in.Calls, units) })
}

// WorkKey determines the name of GPU work.
type WorkKey struct {
	Kind timeline.Kind
	Of   int64 // kernel: index of the name; whole graph: graphId; copy: copyKind
}

// WorkNames name GPU work for people.
type WorkNames struct {
	trace *trace.Trace
	kinds []kernelname.Info // by kernel name
}

// WorkNames are the names of the capture's GPU work.
func (in *Input) WorkNames() WorkNames { return WorkNames{in.Trace, in.Kinds} }

// Key is the key of the i-th piece of a device's work.
func (w WorkNames) Key(d *timeline.Device, i int) WorkKey {
	k, row := WorkKey{Kind: d.Kind(i)}, d.Row(i)
	switch k.Kind {
	case timeline.KernelWork:
		k.Of = int64(w.trace.Kernels.Name(row))
	case timeline.GraphWork:
		k.Of = w.trace.Graphs.Graph(row)
	case timeline.CopyWork:
		k.Of = int64(w.trace.Copies.Kind(row))
	case timeline.SetWork:
	}
	return k
}

// OfKey is the name of the work with a key.
func (w WorkNames) OfKey(k WorkKey) string {
	switch k.Kind {
	case timeline.KernelWork:
		return w.kinds[k.Of].Display
	case timeline.GraphWork:
		return "[CUDA graph " + strconv.FormatInt(k.Of, 10) + "]"
	case timeline.SetWork:
		return "[CUDA memset]"
	case timeline.CopyWork:
	}
	return cmp.Or(copyNames[k.Of], "[CUDA memcpy]")
}

// copyNames are by copyKind.
var copyNames = map[int64]string{1: "[CUDA memcpy Host-to-Device]", 2: "[CUDA memcpy Device-to-Host]",
	8: "[CUDA memcpy Device-to-Device]", 9: "[CUDA memcpy Host-to-Host]", 10: "[CUDA memcpy Peer-to-Peer]"}

// Of is the name of a piece of a device's work.
func (w WorkNames) Of(d *timeline.Device, i int) string { return w.OfKey(w.Key(d, i)) }

// Cell is the cell of that name; null if there is no such piece.
func (w WorkNames) Cell(d *timeline.Device, at int32) report.Cell {
	if at == trace.None {
		return report.Null
	}
	return report.S(w.Of(d, int(at)))
}
