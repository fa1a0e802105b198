package host

import (
	"cmp"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

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
	c := &opCalls{}
	keys := kit.NewCombos(len(names.texts), len(r.Sizes)+1)
	backward := make([]int64, len(names.texts))
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
				c.launch(ended(api.Thread(next), api.Start(next)), api.Start(next), ns, backward)
			}
		}
	}
	forward := forwardCalls{}
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
			o.forward = forward.find(number)
			tied = tied || o.forward != trace.None
		} else if number >= 0 {
			forward.add(number, op, r.Thread(i))
		}
		stacks[r.Thread(i)+1] = append(ended(r.Thread(i), start), o)
	})
	callsBefore(math.MaxInt64)
	if tied {
		c.backward = backward
	}
	return c
}

// launch adds the GPU time of a call to the operators that are open around it.
func (c *opCalls) launch(open []openOp, at, ns int64, backward []int64) {
	inner, outer := true, true
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
	for i := range open {
		if o := &open[i]; o.end > at && o.forward != trace.None && outer {
			backward[o.forward] += ns
			outer = false
		}
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

// forwardCalls are operators by autograd's number of their call. If several calls have one number, the backward call
// belongs to the last. Each thread counts for itself.
type forwardCalls map[int64]forwardCall

type forwardCall struct{ op, thread int32 }

func (f forwardCalls) add(number int64, op, thread int32) {
	if c, ok := f[number]; ok && c.thread != thread { // the thread is ambiguous
		op, thread = trace.None, trace.None
	}
	f[number] = forwardCall{op, thread}
}

// find is the operator whose backward call has the number, or trace.None.
func (f forwardCalls) find(number int64) int32 {
	if c, ok := f[number]; ok {
		return c.op
	}
	return trace.None
}

// sizedTable shows operators by the sizes of their inputs, those with most GPU time first.
func (c *opCalls) sizedTable(in *kit.Input, out *kit.Output, names *rangeNames) {
	list := slices.DeleteFunc(c.sized, func(o sizedOp) bool { return o.calls == 0 && o.gpu == 0 })
	slices.SortFunc(list, func(a, b sizedOp) int {
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
