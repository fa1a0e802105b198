package kineto

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// The profiler writes when each function of Python began and ended. The model knows stacks of Python by samples, as
// nsys takes them: the stack of each thread is sampled every few microseconds.

const (
	pythonTable   = "python_function"
	pythonSamples = 1 << 15 // of a capture and thread at most
	pythonEvery   = 10_000  // ns between two of them at least
	pythonDomain  = 2       // of NVTX
	maxDepth      = 1 << 8  // functions of a stack
	maxFar        = 1 << 50 // ns that a call may be from the first event, and last: 13 days
)

// pythonCall is a call of a function.
type pythonCall struct {
	start, end int64
	function   int32 // index of the text
}

// pythonSampler makes samples of the calls of Python's functions, as marks in the ranges.
type pythonSampler struct {
	out    *exporter
	frames map[int32]payload.PythonFrame // by the index of their text
}

// stacks samples a table of calls, which it releases.
func (x *pythonSampler) stacks(t *table) {
	defer t.release(x.out.memory)
	perThread := map[int64]int{}
	thread, function := t.place("globalTid"), t.place("nameId")
	first, last := int64(0), int64(0)
	far := func(c *cursor) bool {
		return max(c.row.start, -c.row.start, c.row.length) > maxFar || c.row.start < -maxFar
	}
	for c := (cursor{t: t}); c.next(); {
		if far(&c) {
			x.out.facts.Skipped++
			continue
		}
		if len(perThread) == 0 {
			first, last = c.row.start, c.row.start
		}
		perThread[c.cell(thread).Bits]++
		first, last = min(first, c.row.start), max(last, c.row.start+c.row.length)
	}
	every := max(pythonEvery, (last-first)/pythonSamples)
	of := map[int64][]pythonCall{} // by thread
	for id, n := range perThread {
		of[id] = spill.Make[pythonCall](x.out.memory, n)[:0]
	}
	for c := (cursor{t: t}); c.next(); {
		if id := c.cell(thread).Bits; !far(&c) {
			of[id] = append(of[id], pythonCall{c.row.start, c.row.start + c.row.length, int32(c.cell(function).Bits)})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		calls := of[id]
		order := func(a, b pythonCall) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) }
		if !slices.IsSortedFunc(calls, order) {
			lists.Sort(calls, order)
		}
		x.sample(id, calls, first, every)
		spill.Free(x.out.memory, calls)
	}
}

// sample adds the stack of a thread at first, first + every, and so on.
func (x *pythonSampler) sample(thread int64, calls []pythonCall, first, every int64) {
	x.mark(first, thread, integer(x.out.textID(payload.PythonDomain)), cell{}, domain)
	at := first
	var open []pythonCall
	var frames []payload.PythonFrame
	for next := 0; next < len(calls) || len(open) > 0; at += every {
		if len(open) == 0 && calls[next].start > at { // nothing until then
			at += (calls[next].start - at + every - 1) / every * every
		}
		for ; next < len(calls) && calls[next].start <= at; next++ {
			for len(open) > 0 && open[len(open)-1].end <= calls[next].start {
				open = open[:len(open)-1]
			}
			if len(open) < maxDepth {
				open = append(open, calls[next])
			}
		}
		open = slices.DeleteFunc(open, func(c pythonCall) bool { return c.end <= at })
		if len(open) == 0 {
			continue
		}
		frames = frames[:0]
		for i := len(open) - 1; i >= 0; i-- {
			frames = append(frames, x.frame(open[i].function))
		}
		x.mark(at, thread, cell{}, cell{Kind: pages.Blob, S: string(payload.OfPython(frames))}, mark)
	}
}

// mark adds a row without a length to the ranges, in the domain of Python's samples.
func (x *pythonSampler) mark(at, thread int64, name, said cell, kind int64) {
	x.out.tableOf(ranges).add(x.out.memory, at, 0, -1, []cell{integer(thread), name, said, integer(pythonDomain), integer(kind)})
}

// inFile is the name of a function with its file.
var inFile = regexp.MustCompile(`^(.*)\((\d+)\): (.*)$`)

// frame is a function by the ids of its names; the file is empty if the function is built in.
func (x *pythonSampler) frame(function int32) payload.PythonFrame {
	f, ok := x.frames[function]
	if ok {
		return f
	}
	name, file := x.out.texts.Keys[function], ""
	if parts := inFile.FindStringSubmatch(name); parts != nil {
		if line, err := strconv.ParseUint(parts[2], 10, 31); err == nil {
			file, name, f.Line = parts[1], parts[3], line
		}
	}
	f.Function, f.File = uint64(x.out.textID(name)), uint64(x.out.textID(file))
	x.frames[function] = f
	return f
}

// withoutAddress is the name of a function without the address of its object: "<built-in method keys of dict object at
// 0x7fe02cbe57c0>" is one function, whatever it was called on.
func withoutAddress(name string) string {
	if before, rest, ok := strings.Cut(name, " at 0x"); ok {
		return before + strings.TrimLeft(rest, "0123456789abcdef")
	}
	return name
}
