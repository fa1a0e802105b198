package host

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Regions = kit.Section{
	ID: "regions", Group: report.GroupRanges, Title: "Regions",
	Needs: []trace.Role{trace.RoleNVTX},
	Derivation: "NVTX ranges as nested regions: each with the ranges that usually enclose it, the GPU time and " +
		"the kernels launched inside it at any depth, once however often its name is on the stack, and the " +
		"kernels that take most of it. A region named A::B is inside A.",
	Metrics: []report.MetricDef{
		kit.ExactLevel("region.count", report.None, report.Leave, "names of NVTX ranges with GPU work launched inside"),
	},
	Tables: []report.Table{
		{ID: "regions", Title: "Regions", File: "regions.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("region", "Region"),
			kit.NameCol("parent", "Inside"),
			kit.IDCol("depth", "Depth"),
			kit.IDCol("pid", "PID"),
			kit.IDCol("device_id", "GPU"),
			kit.NsCol("total", "GPU time", "total_ms"),
			kit.RatioCol("share", "Share", "pct_of_kernel_time"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
		}},
		{ID: "region_kernels", Title: "Kernels by region", File: "region_kernels.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("region", "Region"),
			kit.NameCol("kernel", "Kernel"),
			kit.NsCol("total", "GPU time", "total_ms"),
			kit.RatioCol("share", "Of the region", "pct_of_region"),
			kit.CountCol("count", "Calls"),
		}},
	},
	Run: regions,
}

// Bounds of the region report.
const (
	maxRegions       = 200
	maxRegionBytes   = 48 << 10 // of names in the table of kernels and of regions together
	maxRegionLists   = 30       // regions with a list of kernels
	maxRegionKernels = 5        // of each
	maxRegionDepth   = 64       // ranges around a kernel that are visited
	wholeGraph       = "(CUDA graphs traced as a whole)"
)

// regionNode is a range name inside the names around it.
type regionNode struct {
	parent, name int32 // index of the node around it or -1; index of the name
	only
	self   int64        // GPU time launched in it and in no deeper node
	leaves []regionLeaf // the kernels of that
}

// regionLeaf is a kernel, or -1 for whole CUDA graphs.
type regionLeaf struct {
	kernel int32
	regionWork
}

// only is the single device and process of some work, if there is any; several if there are more.
type only struct {
	any          bool
	device, proc int32
}

const several = math.MinInt32

func (o *only) add(device, proc int32) {
	if !o.any {
		*o = only{true, device, proc}
	}
	if device != o.device {
		o.device = several
	}
	if proc != o.proc {
		o.proc = several
	}
}

// work is a GPU time and a number of kernels.
type regionWork struct{ time, count int64 }

// region is the sums of one name.
type region struct {
	name int32
	regionWork
	only
	kernels *kit.Tally[int32, regionWork] // by name of the kernel, -1 for whole graphs
	around  map[int32]int64               // GPU time by the name around it, -1 for none
	parent  int32
	depth   int64
}

func regions(in *kit.Input, out *kit.Output) {
	if ok, why := attributesKernels(in); !ok {
		out.Status(report.Unavailable, why)
		return
	}
	names := nameRanges(&in.Trace.Ranges)
	tree, list := regionTree(in, names)
	fromAttribution(out, in.NVTX.AttributedCount)
	out.Int("region.count", nil, int64(len(list)))
	if len(list) == 0 {
		out.Status(report.NotApplicable, "no GPU work was launched inside an NVTX range")
		return
	}
	t, k := out.Table("regions"), out.Table("region_kernels")
	room := kit.Budget{Names: maxRegions, Bytes: maxRegionBytes}
	for i, r := range list {
		if !room.Take(names.texts[r.name]) {
			break
		}
		row := []kit.Field{kit.Text("region", names.texts[r.name]), kit.Int("depth", r.depth), kit.Int("total", r.time),
			kit.Maybe("share", stat.Ratio(r.time, in.NVTX.Total)), kit.Int("kernels", r.count)}
		if r.parent >= 0 {
			row = append(row, kit.Text("parent", names.texts[r.parent]))
		}
		if r.proc != several {
			row = append(row, kit.PID(in.Trace.Procs, r.proc))
		}
		if r.device != several {
			row = append(row, kit.Int("device_id", int64(r.device)))
		}
		t.Partial(row...)
		if i < maxRegionLists {
			regionKernels(in, k, names.texts[r.name], r)
		}
	}
	t.TotalRows = int64(len(list))
	t.Add()
	k.Add()
	out.Chart(flame(in, tree, names))
}

// regionTree gathers the kernels of the window by region, the regions with most GPU time first.
func regionTree(in *kit.Input, names *rangeNames) (tree []regionNode, list []*region) {
	paths := regionPaths{in: in, names: names, known: make([]int32, in.Contexts.Nodes())}
	cells := kit.NewCombos(in.Contexts.Nodes(), len(in.Trace.Kernels.Names)+1) // node, and kernel plus one
	var works []regionWork
	gather := func(w *trace.Work, calls []int32, kernel func(i int) int32) {
		lo, hi := w.Starting(in.Span.Start, in.Span.End)
		for i := lo; i < hi; i++ {
			node := paths.of(calls[i])
			if node < 0 {
				continue
			}
			sum := lists.At(&works, cells.Of(node, kernel(i)+1))
			sum.time += w.Dur(i)
			sum.count++
			paths.tree[node].add(w.Device(i), w.Proc(i))
		}
	}
	gather(&in.Trace.Kernels.Work, in.Calls.Kernel, func(i int) int32 { return in.Trace.Kernels.Name(i) })
	gather(&in.Trace.Graphs.Work, in.Calls.Graph, func(int) int32 { return -1 })
	for c, key := range cells.Keys {
		n := &paths.tree[key.A]
		n.self += works[c].time
		n.leaves = append(n.leaves, regionLeaf{key.B - 1, works[c]})
	}
	return paths.tree, spreadWork(names, paths.tree)
}

// Bounds of the flame view.
const (
	maxFlameBoxes = 300
	flameShare    = 1e-3 // of all attributed time: smaller boxes could not be seen
)

// flame draws the stacks of ranges with the GPU time launched inside them. A box is as wide as the time of its range
// and of all inside it, and stands on the range around it; the part without boxes above it is its own. The kernels that
// a range launches itself are boxes too, after the ranges inside it.
func flame(in *kit.Input, tree []regionNode, names *rangeNames) report.Chart {
	total := lists.Map(tree, func(n regionNode) int64 { return n.self })
	for n := len(tree) - 1; n >= 0; n-- { // a parent stands before its children
		if p := tree[n].parent; p >= 0 {
			total[p] += total[n]
		}
	}
	children := map[int32][]int32{} // of -1: the roots
	for n := range tree {
		children[tree[n].parent] = append(children[tree[n].parent], int32(n))
	}
	all := lists.Sum(children[-1], func(n int32) int64 { return total[n] })
	c := report.Chart{ID: "nvtx_flame", Title: "GPU time by stack of NVTX ranges", Kind: "flame",
		Unit: report.Nanoseconds, Series: []report.Series{}}
	labels := []string{"depth", "start", "total", "self"}
	small := func(ns int64) bool {
		return float64(ns) < flameShare*float64(all) || len(c.Series) == maxFlameBoxes
	}
	kernels := func(list []regionLeaf, depth int, start int64) {
		lists.Sort(list, func(a, b regionLeaf) int {
			return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.kernel, b.kernel))
		})
		for _, k := range list {
			if small(k.time) {
				return
			}
			name, category := "CUDA graph", string(kernelname.Other)
			if k.kernel >= 0 {
				kind := &in.Kinds[k.kernel]
				name, category = kind.Display, string(kind.Category)
			}
			c.Series = append(c.Series, report.Series{Name: name, Category: category, Labels: labels,
				Values: []float64{float64(depth), float64(start), float64(k.time), float64(k.time)}})
			start += k.time
		}
	}
	var lay func(list []int32, depth int, start int64)
	lay = func(list []int32, depth int, start int64) {
		lists.Sort(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(total[b], total[a]), cmp.Compare(names.texts[tree[a].name],
				names.texts[tree[b].name]))
		})
		for _, n := range list {
			if small(total[n]) {
				return
			}
			c.Series = append(c.Series, report.Series{Name: names.texts[tree[n].name], Labels: labels,
				Values: []float64{float64(depth), float64(start), float64(total[n]), float64(tree[n].self)}})
			lay(children[n], depth+1, start)
			kernels(tree[n].leaves, depth+1, start+total[n]-tree[n].self)
			start += total[n]
		}
	}
	lay(children[-1], 0, 0)
	return c
}

// regionPaths are the stacks of ranges around calls, as a tree of names.
type regionPaths struct {
	in    *kit.Input
	names *rangeNames
	index lists.Numbering[[2]int32] // parent and name
	tree  []regionNode
	known []int32 // by node of the contexts: index into tree plus one, if all calls of the node have the same stack
	stack []int32
}

// of is the node of the ranges around a call, or -1.
func (p *regionPaths) of(call int32) int32 {
	from := p.in.Contexts.Of(call)
	if from == trace.None {
		return -1
	}
	if at := p.known[from]; at > 0 {
		return at - 1
	}
	p.stack = p.stack[:0]
	p.in.Contexts.Walk(call, func(name int32) bool {
		if n := p.names.of[name]; n >= 0 {
			p.stack = append(p.stack, n)
		}
		return len(p.stack) < maxRegionDepth
	})
	at := int32(-1)
	for _, name := range slices.Backward(p.stack) {
		n := p.index.Of([2]int32{at, name})
		if int(n) == len(p.tree) {
			p.tree = append(p.tree, regionNode{parent: at, name: name})
		}
		at = n
	}
	if p.in.Contexts.Settled(from) {
		p.known[from] = at + 1
	}
	return at
}

// spreadWork adds the work of each node to the names on its path, once each.
func spreadWork(names *rangeNames, tree []regionNode) []*region {
	byName := kit.NewTally[int32, region]()
	path := make([]int32, 0, maxRegionDepth)
	for n := range tree {
		node := &tree[n]
		if !node.any {
			continue
		}
		path = path[:0]
		for up := int32(n); up >= 0 && len(path) < maxRegionDepth; up = tree[up].parent {
			if !slices.Contains(path, tree[up].name) {
				path = append(path, tree[up].name)
			}
		}
		for i, name := range path {
			r := byName.At(name)
			if r.kernels == nil {
				*r = region{name: name, kernels: kit.NewTally[int32, regionWork](), around: map[int32]int64{}, parent: -1}
			}
			for _, leaf := range node.leaves {
				k := r.kernels.At(leaf.kernel)
				k.time, k.count = k.time+leaf.time, k.count+leaf.count
				r.time, r.count = r.time+leaf.time, r.count+leaf.count
			}
			r.add(node.device, node.proc)
			around := int32(-1)
			if i+1 < len(path) {
				around = path[i+1]
			}
			r.around[around] += node.self
		}
	}
	list := slices.Clone(byName.Values)
	lists.Sort(list, func(a, b *region) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(b.count, a.count),
			cmp.Compare(names.texts[a.name], names.texts[b.name]))
	})
	nest(names, list, byName)
	return list
}

// nest finds the region around each: by name if it is called A::B and there is a region A, else the one around most of
// its GPU time.
func nest(names *rangeNames, list []*region, byName *kit.Tally[int32, region]) {
	byText := make(map[string]*region, len(list))
	for _, r := range list {
		byText[names.texts[r.name]] = r
	}
	for _, r := range list {
		if j := strings.LastIndex(names.texts[r.name], "::"); j > 0 {
			if p := byText[names.texts[r.name][:j]]; p != nil {
				r.parent = p.name
				continue
			}
		}
		most := int64(-1)
		for name, time := range r.around {
			if time > most || time == most && name < r.parent {
				r.parent, most = name, time
			}
		}
	}
	for _, r := range list {
		for p := r.parent; p >= 0; p = byName.At(p).parent {
			if r.depth++; r.depth > maxRegionDepth { // A inside B inside A
				r.parent, r.depth = -1, 0
				break
			}
		}
	}
}

// regionKernels adds the kernels that take most of a region to the table.
func regionKernels(in *kit.Input, t *kit.Table, name string, r *region) {
	type entry struct {
		name string
		regionWork
	}
	byText := kit.NewTally[string, entry]() // kernels that differ only in parts that a short name omits
	for i, k := range r.kernels.Keys {
		w, text := r.kernels.Values[i], wholeGraph
		if k >= 0 {
			text = in.Kinds[k].Display
		}
		e := byText.At(text)
		e.name, e.time, e.count = text, e.time+w.time, e.count+w.count
	}
	lists.Sort(byText.Values, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.name, b.name))
	})
	for _, e := range byText.Values[:min(len(byText.Values), maxRegionKernels)] {
		t.Row(
			kit.Text("region", name), kit.Text("kernel", e.name), kit.Int("total", e.time),
			kit.Maybe("share", stat.Ratio(e.time, r.time)), kit.Int("count", e.count))
	}
}
