package cpu

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// addFrames counts the functions on the stacks of the samples.
func (x *late) addFrames(t *trace.Trace, sampled map[int64]bool) {
	f := &t.SampleStack
	count, of := frameNames(f)
	lastIn := slices.Repeat([]int64{math.MinInt64}, len(count))
	id, wanted := int64(math.MinInt64), false
	kit.EachFrame(f, func(i int) {
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
	x.frames = lists.Filter(count, func(f lateFrame) bool { return f.within > 0 })
	rankFrames(x.frames)
}

func rankFrames(list []lateFrame) {
	lists.Sort(list, func(a, b lateFrame) int {
		return cmp.Or(cmp.Compare(b.self, a.self), cmp.Compare(b.within, a.within), strings.Compare(a.name, b.name))
	})
}

// addPython counts the functions on the Python stacks, by name and file, and the line of each with most samples.
func (x *late) addPython(t *trace.Trace, sampled map[int32]bool) {
	type lines struct {
		lateFrame
		at map[int64]int64
	}
	count := kit.NewTally[string, lines]()
	for i := range sampled {
		seen := map[*lines]bool{}
		for depth, n := range t.Python[i].Frames {
			f := &t.PythonFrames[n]
			name := f.Function
			if f.File != "" {
				name += " (" + f.File + ")"
			}
			l := count.At(name)
			if l.at == nil {
				l.lateFrame, l.at = lateFrame{name: name, module: f.File}, map[int64]int64{}
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
	for _, l := range count.Values {
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

// frameNames are the functions by name and, for each kind of frame, its function. Frames that nsys did not resolve are
// one function of their module.
func frameNames(f *trace.Frames) (names []lateFrame, of []int32) {
	var index lists.Numbering[string]
	of = make([]int32, len(f.Kinds))
	for k, frame := range f.Kinds {
		if strings.HasPrefix(frame.Function, "0x") {
			frame.Function = "[unresolved]"
			if frame.Module != "" {
				frame.Function = "[unresolved in " + frame.Module + "]"
			}
		}
		n := index.Of(frame.Function)
		if int(n) == len(names) {
			names = append(names, lateFrame{name: frame.Function, module: frame.Module})
		}
		if names[n].module != frame.Module {
			names[n].module = "" // several modules have one of this name
		}
		of[k] = n
	}
	return names, of
}

// mostStack is the place that most of the time of a call was called from, or -1 if that is not known.
func (x *late) mostStack(c *lateCall) (from string, ns int64) {
	if best, ok := x.called[c.name]; ok && c.cause == timeline.HostOS {
		return best.From, best.Time
	}
	return "", -1
}
