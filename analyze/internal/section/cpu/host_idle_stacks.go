package cpu

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/attrib"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// addFrames counts the functions on the stacks of the samples.
func (x *late) addFrames(t *trace.Trace, sampled map[int64]bool) {
	f := &t.SampleStack
	names, of := frameNames(f)
	count := make([]lateFrame, len(names))
	copy(count, names)
	lastIn := make([]int64, len(names))
	for i := range lastIn {
		lastIn[i] = math.MinInt64
	}
	id, wanted := int64(math.MinInt64), false
	eachFrame(f, func(i int) {
		if s := f.Stack(i); s != id {
			if id, wanted = s, sampled[s]; wanted {
				x.stacked++
			}
		}
		if !wanted {
			return
		}
		n := of[f.Kind(i)]
		if lastIn[n] != id {
			lastIn[n] = id
			count[n].within++
		}
		if f.Kinds[f.Kind(i)].Innermost {
			count[n].self++
		}
	})
	for _, c := range count {
		if c.within > 0 {
			x.frames = append(x.frames, c)
		}
	}
	rankFrames(x.frames)
}

func rankFrames(list []lateFrame) {
	slices.SortFunc(list, func(a, b lateFrame) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.within, a.within), strings.Compare(a.name, b.name))
	})
}

// addPython counts the functions on the Python stacks, by name and file, and at which line each was most.
func (x *late) addPython(t *trace.Trace, sampled map[int32]bool) {
	type lines struct {
		lateFrame
		at map[int64]int64
	}
	count := map[string]*lines{}
	for i := range sampled {
		seen := map[*lines]bool{}
		for depth, n := range t.Python[i].Frames {
			f := &t.PythonFrames[n]
			name := f.Function + " (" + f.File + ")"
			l := count[name]
			if l == nil {
				l = &lines{lateFrame{name: name, module: f.File}, map[int64]int64{}}
				count[name] = l
			}
			if !seen[l] {
				seen[l] = true
				l.within++
				l.at[f.Line]++
			}
			if depth == 0 {
				l.self++
			}
		}
	}
	for _, l := range count {
		for line, n := range l.at {
			if most := l.at[l.line]; n > most || n == most && line < l.line {
				l.line = line
			}
		}
		x.python = append(x.python, l.lateFrame)
	}
	x.pythonSamples = int64(len(sampled))
	rankFrames(x.python)
}

// frameNames are the functions by name and, by kind of frame, which it is. What nsys did not resolve is one function of
// its module.
func frameNames(f *trace.Frames) (names []lateFrame, of []int32) {
	index := map[string]int32{}
	of = make([]int32, len(f.Kinds))
	for k, frame := range f.Kinds {
		if strings.HasPrefix(frame.Function, "0x") {
			frame.Function = "[unresolved]"
			if frame.Module != "" {
				frame.Function = "[unresolved in " + frame.Module + "]"
			}
		}
		n, ok := index[frame.Function]
		if !ok {
			n = int32(len(names))
			index[frame.Function] = n
			names = append(names, lateFrame{name: frame.Function, module: frame.Module})
		}
		if names[n].module != frame.Module {
			names[n].module = "" // several modules have one of this name
		}
		of[k] = n
	}
	return names, of
}

// eachFrame visits the frames stack by stack: in the order of the table as a rule, which is that.
func eachFrame(f *trace.Frames, visit func(i int)) {
	sorted := true
	for i := 1; i < f.Len() && sorted; i++ {
		sorted = f.Stack(i-1) <= f.Stack(i)
	}
	if sorted {
		for i := range f.Len() {
			visit(i)
		}
		return
	}
	order := make([]int32, f.Len())
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(f.Stack(int(a)), f.Stack(int(b))) })
	for _, i := range order {
		visit(int(i))
	}
}

// callers is how many functions of a stack are named.
const callers = 3

// addCallers names, by call of the operating system, the callers from which most of its time was called.
func (x *late) addCallers(t *trace.Trace) {
	if len(x.stacks) == 0 {
		return
	}
	f := &t.OSStacks
	type from struct{ call, text string }
	times := map[from]int64{}
	id, names := int64(math.MinInt64), []string{}
	flush := func() {
		if s, ok := x.stacks[id]; ok && len(names) > 0 {
			times[from{t.OSName(s.what), strings.Join(names, " ← ")}] += s.time
		}
		names = names[:0]
	}
	eachFrame(f, func(i int) {
		if f.Stack(i) != id {
			flush()
			id = f.Stack(i)
		}
		if _, ok := x.stacks[id]; ok && len(names) < callers {
			if frame := f.Kinds[f.Kind(i)]; !strings.HasPrefix(frame.Function, "0x") {
				names = append(names, frame.Function)
			}
		}
	})
	flush()
	x.called = map[string]called{}
	for k, ns := range times {
		if best := x.called[k.call]; ns > best.time || ns == best.time && k.text < best.from {
			x.called[k.call] = called{k.text, ns}
		}
	}
}

// mostStack is from where most of the time of a call was called, or -1 where that is not known.
func (x *late) mostStack(c *lateCall) (from string, ns int64) {
	if best, ok := x.called[c.name]; ok && c.cause == attrib.HostOS {
		return best.from, best.time
	}
	return "", -1
}
