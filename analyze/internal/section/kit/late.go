package kit

import (
	"cmp"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
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

// LateCall is the call of the launching thread while a device waited for it.
type LateCall struct {
	Cause int   // timeline.HostAPI, HostProfiler or HostOS
	What  int64 // index of the API's name; id of the function of the operating system
}

// LateCallOf is the call during a stretch of host time; ok is false if there is none.
func LateCallOf(t *trace.Trace, p *timeline.HostPiece) (c LateCall, ok bool) {
	c.Cause = p.Cause
	switch p.Cause {
	case timeline.HostAPI:
		c.What = int64(t.API.Name(int(p.Row)))
	case timeline.HostOS:
		os := &t.OS
		c.What = os.Subjects[os.Subject(int(p.Row))].What
	case timeline.HostProfiler:
	default:
		return c, false
	}
	return c, true
}

// Name of the call.
func (c *LateCall) Name(t *trace.Trace) string {
	switch c.Cause {
	case timeline.HostAPI:
		return t.API.Names[c.What].Name
	case timeline.HostOS:
		return t.OSName(c.What)
	}
	return "[profiler]"
}

// FromThreads sets the source of metrics of late launching threads: every table that tells why they were late.
func FromThreads(out *Output, rows int) {
	out.From(trace.RoleAPI, rows, "start", "end", "nameId", "globalTid")
	for _, role := range []trace.Role{trace.RoleOverhead, trace.RoleOS, trace.RoleSched} {
		out.Source.With(role)
	}
}
