package kit

import (
	"cmp"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// EachFrame visits the frames stack by stack, usually in the order of the table.
func EachFrame(f *trace.Frames, visit func(i int)) {
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
	order := lists.Indexes[int32](f.Len())
	lists.Sort(order, func(a, b int32) int { return cmp.Compare(f.Stack(int(a)), f.Stack(int(b))) })
	for _, i := range order {
		visit(int(i))
	}
}

// callers is how many functions of a stack are named.
const callers = 3

// StackTime is time in a call of the operating system with one stack.
type StackTime struct {
	What int64 // id of the function of the operating system
	Time int64 // ns
}

// Called is the place a call was made from, and the time of the calls from there.
type Called struct {
	From string
	Time int64
}

// CallersOf names, by call of the operating system, the callers of most of its time.
func CallersOf(t *trace.Trace, stacks map[int64]StackTime) map[string]Called {
	if len(stacks) == 0 {
		return nil
	}
	f := &t.OSStacks
	type from struct{ call, text string }
	times := map[from]int64{}
	id, names := int64(math.MinInt64), []string{}
	flush := func() {
		if s, ok := stacks[id]; ok && len(names) > 0 {
			times[from{t.OSName(s.What), strings.Join(names, " ← ")}] += s.Time
		}
		names = names[:0]
	}
	EachFrame(f, func(i int) {
		if f.Stack(i) != id {
			flush()
			id = f.Stack(i)
		}
		if _, ok := stacks[id]; ok && len(names) < callers {
			if frame := f.Kinds[f.Kind(i)]; !strings.HasPrefix(frame.Function, "0x") {
				names = append(names, frame.Function)
			}
		}
	})
	flush()
	list := map[string]Called{}
	for k, ns := range times {
		if best := list[k.call]; ns > best.Time || ns == best.Time && k.text < best.From {
			list[k.call] = Called{k.text, ns}
		}
	}
	return list
}
