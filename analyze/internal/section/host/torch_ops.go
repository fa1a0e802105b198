package host

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var TorchOps = kit.Section{
	ID: "torch_ops", Group: report.GroupRanges, Title: "Operators of PyTorch",
	Needs: []trace.Role{trace.RoleNVTX},
	Derivation: "NVTX ranges that PyTorch's emit_nvtx writes for its operators (aten::mm and the like), by operator. " +
		"Host time is a union per thread; a kernel belongs to the operators open on the launching thread around the " +
		"call that launched it: to the innermost (self) and to each of them once.",
	Metrics: []report.MetricDef{
		kit.Ratio("op.coverage", report.None, report.Leave, "share of kernel time launched inside some operator"),
		kit.ExactCount("op.count", report.None, report.Leave,
			"calls of operators that start in the window").By("", "op"),
		kit.TotalTime("op.host_time", report.Lower, report.Leave,
			"host time inside the operator, nested calls of it counted once, threads added up").By("op"),
		kit.TotalTime("op.host_time_self", report.Lower, report.Leave,
			"host time inside the operator and inside no operator that it calls").By("", "op"),
		kit.TotalTime("op.gpu_time", report.Lower, report.Leave,
			"time of the kernels launched inside the operator at any depth, each once").By("op"),
		kit.TotalTime("op.gpu_time_self", report.Lower, report.Leave, "time of the kernels for which it was the "+
			"innermost operator; sums to the kernel time inside operators").By("", "op"),
	},
	Tables: []report.Table{
		{ID: "torch_ops", Title: "Operators", File: "torch_ops.csv", Merge: report.Leave, Columns: []report.Column{
			kit.NameCol("operator", "Operator"),
			kit.CountCol("calls", "Calls"),
			kit.NsCol("gpu", "GPU time", "gpu_time_ns", "gpu_time_ms"),
			kit.NsCol("self", "Self GPU time", "gpu_time_self_ns", "gpu_time_self_ms"),
			kit.RatioCol("share", "Self share", "pct_self_of_kernel_time"),
			kit.CountCol("kernels", "Kernels", "kernel_count"),
			kit.NsCol("host", "Host time", "host_time_ns", "host_time_ms"),
			kit.NsCol("host_self", "Self host time", "host_time_self_ns", "host_time_self_ms"),
			kit.MeanCol("mean", "Host mean", "avg_host_us"),
		}},
		{ID: "torch_op_sizes", Title: "Operators by the sizes of their inputs", File: "torch_op_sizes.csv", Merge: report.Leave,
			Columns: []report.Column{
				kit.NameCol("operator", "Operator"),
				kit.TextCol("sizes", "Sizes"),
				kit.CountCol("calls", "Calls"),
				kit.NsCol("gpu", "GPU time", "gpu_time_ns", "gpu_time_ms"),
				kit.NsCol("self", "Self GPU time", "gpu_time_self_ns", "gpu_time_self_ms"),
				kit.NsCol("host", "Host time", "host_time_ns", "host_time_ms"),
			}},
	},
	Run: torchOps,
}

// backwardColumn is present if the capture says which backward call belongs to which operator.
var backwardColumn = kit.NsCol("backward", "Backward GPU time", "backward_gpu_time_ns", "backward_gpu_time_ms")

// maxOpMetrics is how many operators have metrics of their own.
const maxOpMetrics = 60

// torchOp is the sums of one operator.
type torchOp struct {
	name        int32
	calls       int64
	host, inner int64 // union per thread; the part outside of nested operators
	sum         int64 // host time of the calls added up
	gpu, self   regionWork
}

func torchOps(in *kit.Input, out *kit.Output) {
	names, ok := nameOps(&in.Trace.Ranges)
	if !ok {
		out.Status(report.NotApplicable, "no range is an operator of PyTorch: run the workload inside torch.autograd.profiler.emit_nvtx()")
		return
	}
	list := hostOps(in, names)
	mapped, whyNot := attributesKernels(in)
	if mapped {
		gpuOps(in, names, list)
	} else {
		out.Status(report.Partial, "host time only: "+whyNot)
	}
	list = slices.DeleteFunc(list, func(o torchOp) bool { return o.calls == 0 && o.gpu.count == 0 })
	lists.Sort(list, func(a, b torchOp) int {
		return cmp.Or(cmp.Compare(b.self.time, a.self.time), cmp.Compare(b.gpu.time, a.gpu.time),
			cmp.Compare(b.inner, a.inner),
			cmp.Compare(b.calls, a.calls), cmp.Compare(names.texts[a.name], names.texts[b.name]))
	})
	var all torchOp
	t := out.Table("torch_ops")
	var calls *opCalls
	if mapped {
		if calls = callsOfOps(in, names); calls != nil && calls.backward != nil {
			t.Columns = append(slices.Clone(t.Columns), backwardColumn)
		}
	}
	for _, o := range list {
		all.calls, all.inner = all.calls+o.calls, all.inner+o.inner
		all.self.time, all.self.count = all.self.time+o.self.time, all.self.count+o.self.count
		row := []kit.Field{
			kit.Text("operator", names.texts[o.name]), kit.Int("calls", o.calls), kit.Int("host", o.host),
			kit.Int("host_self", o.inner), kit.Maybe("mean", stat.Ratio(o.sum, o.calls))}
		if mapped {
			row = append(row, kit.Int("gpu", o.gpu.time), kit.Int("self", o.self.time), kit.Int("kernels", o.self.count),
				kit.Maybe("share", stat.Ratio(o.self.time, in.NVTX.Total)))
		}
		if calls != nil && calls.backward != nil {
			row = append(row, kit.Int("backward", calls.backward[o.name]))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "calls", "host_self", "self", "share", "kernels", "backward").Add()
	if calls != nil && len(in.Trace.Ranges.Sizes) > 0 {
		calls.sizedTable(in, out, names)
	}

	out.From(trace.RoleNVTX, int(all.calls), "start", "end", "text", "textId", "globalTid")
	out.Int("op.count", nil, all.calls)
	out.Int("op.host_time_self", nil, all.inner)
	if mapped {
		fromAttribution(out, all.self.count)
		out.Int("op.gpu_time_self", nil, all.self.time)
		out.Metric("op.coverage", nil, stat.Ratio(all.self.time, in.NVTX.Total))
		out.Coverage(stat.Ratio(all.self.time, in.NVTX.Total))
	}
	for i := range list[:min(len(list), maxOpMetrics)] {
		o := &list[i]
		l := kit.Labels("op", names.texts[o.name])
		if o.calls > 0 {
			out.From(trace.RoleNVTX, int(o.calls), "start", "end", "text", "textId", "globalTid")
			out.Int("op.count", l, o.calls)
			out.Int("op.host_time", l, o.host)
			out.Int("op.host_time_self", l, o.inner)
		}
		if mapped && o.gpu.count > 0 {
			fromAttribution(out, o.gpu.count)
			out.Int("op.gpu_time", l, o.gpu.time)
			out.Source.Rows = o.self.count
			out.Int("op.gpu_time_self", l, o.self.time)
		}
	}
}

// nameOps are the operators among the names of ranges: of is -1 for a range that is not one. It is not ok if no range
// is an operator of ATen, for then ranges of the same form belong to another library.
func nameOps(r *trace.Ranges) (names *rangeNames, ok bool) {
	var ops lists.Numbering[string]
	of := make([]int32, len(r.Names))
	for i := range r.Names {
		op, is := kernelname.Operator(r.Names[i].Text)
		if of[i] = -1; is {
			of[i] = ops.Of(op)
		}
		ok = ok || is && strings.HasPrefix(op, "aten::")
	}
	return &rangeNames{ops.Keys, of}, ok
}

// hostOps are the operators by number, with their ranges that start in the window.
func hostOps(in *kit.Input, names *rangeNames) []torchOp {
	list := make([]torchOp, len(names.texts))
	for i := range list {
		list[i].name = int32(i)
	}
	if nested(in) {
		nestedOps(in.Contexts, names, list)
	} else {
		sweepOps(in, names, list)
	}
	return list
}

// nestedOps adds the ranges of all nodes to their operators.
func nestedOps(c *timeline.Contexts, names *rangeNames, list []torchOp) {
	var open []int32                        // operators around a node, from the outermost in
	around := make([]int, len(names.texts)) // how often each is among them
	c.Descend(func(node int32) {
		op, x := names.of[c.NameOf(node)], c.Ranges(node)
		if op < 0 {
			return
		}
		o := &list[op]
		o.calls += x.Count
		o.sum += x.Time
		o.inner += x.Time
		if around[op] == 0 {
			o.host += x.Time
		}
		if n := len(open); n > 0 {
			list[open[n-1]].inner -= x.Time
		}
		open = append(open, op)
		around[op]++
	}, func(node int32) {
		if op := names.of[c.NameOf(node)]; op >= 0 {
			open = open[:len(open)-1]
			around[op]--
		}
	})
}

// sweepOps adds the ranges of the window to their operators, in any nesting.
func sweepOps(in *kit.Input, names *rangeNames, list []torchOp) {
	r := &in.Trace.Ranges
	cells := kit.NewCombos(len(names.texts), len(in.Trace.Threads)+1) // operator and thread, counted from 1
	var walls []kit.Covered
	type open struct {
		end int64
		op  int32
	}
	stacks := make([][]open, len(in.Trace.Threads)+1)
	add := func(i int) {
		op := names.of[r.Name(i)]
		if op < 0 {
			return
		}
		thread, start, end := r.Thread(i)+1, r.Start(i), r.End(i)
		o := &list[op]
		o.calls++
		o.sum += end - start
		o.inner += end - start
		at := cells.Of(op, thread)
		if int(at) == len(walls) {
			walls = append(walls, kit.Covered{Reached: start})
		}
		o.host += walls[at].Add(start, end)
		stack := stacks[thread]
		for len(stack) > 0 && stack[len(stack)-1].end <= start {
			stack = stack[:len(stack)-1]
		}
		if n := len(stack); n > 0 {
			list[stack[n-1].op].inner -= min(end, stack[n-1].end) - start
		}
		stacks[thread] = append(stack, open{end, op})
	}
	lo, hi := r.Starting(in.Host.Start, in.Host.End)
	inOrder(r, lo, hi, add)
}

// inOrder calls add for ranges by start; if several start at the same moment, the longest is around the others.
func inOrder(r *trace.Ranges, lo, hi int, add func(i int)) {
	var group []int
	for i := lo; i < hi; i += len(group) {
		group = group[:0]
		for j := i; j < hi && r.Start(j) == r.Start(i); j++ {
			group = append(group, j)
		}
		if len(group) > 1 {
			lists.Sort(group, func(a, b int) int { return cmp.Compare(r.End(b), r.End(a)) })
		}
		for _, j := range group {
			add(j)
		}
	}
}

// gpuOps adds the kernels of the window to the operators by number.
func gpuOps(in *kit.Input, names *rangeNames, list []torchOp) {
	tree, regions := regionTree(in, names)
	for _, n := range tree {
		o := &list[n.name].self
		o.time += n.self
		o.count += lists.Sum(n.leaves, func(leaf regionLeaf) int64 { return leaf.count })
	}
	for _, r := range regions {
		list[r.name].gpu = r.regionWork
	}
}

// opCalls describes the calls of operators one by one: the sizes of their inputs, and which of them a backward call
// belongs to.
type opCalls struct {
	sized    []sizedOp
	backward []int64 // by operator: time of the kernels that its backward calls launched; nil if none could be matched
}

// sizedOp is an operator called with inputs of some sizes.
type sizedOp struct {
	op, sizes int32 // sizes may be None
	calls     int64
	host      int64
	gpu, self int64 // time of kernels launched in it at any depth, and for which it was the innermost operator
}

// openOp is an operator that is open on a thread.
type openOp struct {
	end     int64
	key     int32 // into opCalls.sized
	forward int32 // the operator whose backward call it is; None
}

// callsOfOps is nil if the capture has neither sizes nor numbers of calls.
func callsOfOps(in *kit.Input, names *rangeNames) *opCalls {
	r, api := &in.Trace.Ranges, &in.Trace.API
	if len(r.Sizes) == 0 && !r.Numbered() {
		return nil
	}
	launched := launchedTime(in)
	c := &opCalls{backward: make([]int64, len(names.texts))}
	keys := kit.NewCombos(len(names.texts), len(r.Sizes)+1)
	stacks := make([][]openOp, len(in.Trace.Threads)+1)
	ended := func(thread int32, at int64) []openOp {
		stack := stacks[thread+1]
		for len(stack) > 0 && stack[len(stack)-1].end <= at {
			stack = stack[:len(stack)-1]
		}
		stacks[thread+1] = stack
		return stack
	}
	next, tied := 0, false
	callsBefore := func(until int64) {
		for ; next < api.Len() && api.Start(next) < until; next++ {
			if ns := launched[next]; ns > 0 {
				c.launch(ended(api.Thread(next), api.Start(next)), api.Start(next), ns)
			}
		}
	}
	// Operators by autograd's number of their call. If several calls have one number, the backward call belongs to the
	// last. Each thread counts for itself: if two have a number, its thread is ambiguous.
	type call struct{ op, thread int32 }
	forward := map[int64]call{}
	inOrder(r, 0, r.Len(), func(i int) {
		op := names.of[r.Name(i)]
		back := r.Backward(i)
		if op < 0 && !back {
			return
		}
		start, key := r.Start(i), trace.None
		callsBefore(start)
		if op >= 0 {
			if key = keys.Of(op, r.InputSizes(i)+1); int(key) == len(c.sized) {
				c.sized = append(c.sized, sizedOp{op: op, sizes: r.InputSizes(i)})
			}
			if start >= in.Host.Start && start < in.Host.End {
				c.sized[key].calls++
				c.sized[key].host += r.End(i) - start
			}
		}
		o := openOp{end: r.End(i), key: key, forward: trace.None}
		if number := r.Sequence(i); number >= 0 && back {
			if c, ok := forward[number]; ok {
				o.forward = c.op
			}
			tied = tied || o.forward != trace.None
		} else if number >= 0 {
			of := call{op, r.Thread(i)}
			if c, ok := forward[number]; ok && c.thread != of.thread {
				of = call{trace.None, trace.None}
			}
			forward[number] = of
		}
		stacks[r.Thread(i)+1] = append(ended(r.Thread(i), start), o)
	})
	callsBefore(math.MaxInt64)
	if !tied {
		c.backward = nil
	}
	return c
}

// launch adds the GPU time of a call to the operators that are open around it.
func (c *opCalls) launch(open []openOp, at, ns int64) {
	inner := true
	for i := len(open) - 1; i >= 0; i-- {
		o := &open[i]
		if o.end <= at || o.key == trace.None || slices.ContainsFunc(open[i+1:], func(x openOp) bool { return x.key == o.key && x.end > at }) {
			continue
		}
		c.sized[o.key].gpu += ns
		if inner {
			c.sized[o.key].self += ns
		}
		inner = false
	}
	outer := func(o openOp) bool { return o.end > at && o.forward != trace.None }
	if i := slices.IndexFunc(open, outer); i >= 0 {
		c.backward[open[i].forward] += ns
	}
}

// launchedTime is the GPU time that each call launched, for work that starts in the window.
func launchedTime(in *kit.Input) []int64 {
	list := make([]int64, in.Trace.API.Len())
	add := func(w *trace.Work, calls []int32) {
		for lo, hi := w.Starting(in.Span.Start, in.Span.End); lo < hi; lo++ {
			if call := calls[lo]; call != trace.None {
				list[call] += w.Dur(lo)
			}
		}
	}
	add(&in.Trace.Kernels.Work, in.Calls.Kernel)
	add(&in.Trace.Graphs.Work, in.Calls.Graph)
	return list
}

// sizedTable shows operators by the sizes of their inputs, those with most GPU time first.
func (c *opCalls) sizedTable(in *kit.Input, out *kit.Output, names *rangeNames) {
	list := slices.DeleteFunc(c.sized, func(o sizedOp) bool { return o.calls == 0 && o.gpu == 0 })
	lists.Sort(list, func(a, b sizedOp) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.gpu, a.gpu), cmp.Compare(b.host, a.host),
			cmp.Compare(names.texts[a.op], names.texts[b.op]), cmp.Compare(a.sizes, b.sizes))
	})
	t := out.Table("torch_op_sizes")
	for i := range list {
		o, sizes := &list[i], report.Null
		if o.sizes != trace.None {
			sizes = report.S(in.Trace.Ranges.Sizes[o.sizes])
		}
		t.Row(kit.Text("operator", names.texts[o.op]), kit.Put("sizes", sizes), kit.Int("calls", o.calls), kit.Int("gpu", o.gpu),
			kit.Int("self", o.self), kit.Int("host", o.host))
	}
	t.Cut(in.Options.Top, "calls", "self").Add()
}
