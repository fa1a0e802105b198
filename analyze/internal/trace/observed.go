package trace

import (
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// Observed are the rows of one table of observations of threads or of a GPU, other than CUDA's: calls of the operating
// system, switches of the scheduler, samples of CPUs, values of counters, overhead of the profiler. Rows of a moment
// have no length.
type Observed struct {
	Span
	Subjects []Subject // of which there are few
	subject  codes
	number   numbers
}

// Subject is the subject of a row.
type Subject struct {
	Thread int32 // indexes Trace.Threads, or None if no CUDA call, range or overhead names the thread
	Global int64 // globalTid, or 0; for a counter the typeId
	// What is, for a call, the id of the function, see [Trace.OSName]; for a switch the CPU times two, plus one if the
	// thread comes onto it; for a sample the CPU, or -1; for a counter the metricId; for overhead 0.
	What int64
}

// Subject of row i, an index into Subjects.
func (o *Observed) Subject(i int) int32 { return o.subject.at(i) }

// Number of row i: the id of a call's stack, the id of a sample, the value of a counter; -1 if there is none.
func (o *Observed) Number(i int) int64 {
	if o.number.low == nil {
		return int64(None)
	}
	return o.number.at(i)
}

// Counter is a counter of a GPU, with its unit in the name.
type Counter struct {
	Type, Metric int64
	Name         string
}

// OSName is the name of a function of the operating system.
func (t *Trace) OSName(what int64) string { return t.texts.label(what) }

// loadCounters reads which counters there are.
func (l *shortTables) loadCounters() error {
	return l.scanRole(RoleCounters, []string{"typeId", "metricId", "metricName"}, func(row []cell) error {
		kind, ok1 := row[0].Whole()
		metric, ok2 := row[1].Whole()
		if name, ok := l.text(&row[2]); ok && ok1 && ok2 {
			l.trace.Counters = append(l.trace.Counters, Counter{kind, metric, strings.Clone(name)})
		}
		return nil
	})
}

// label is the string of an id.
func (l texts) label(id int64) string {
	if s, ok := l[id]; ok {
		return s
	}
	return "#" + strconv.FormatInt(id, 10)
}

// newObserved reads one of these tables: start, end or none, thread, number, and subject.
func newObserved(l *loader, out *Observed, what func(own []cell) (int64, bool), names ...string) *eventTable {
	t := newTable(l, &out.Span)
	t.beside = true
	subject := coded(t, &out.subject, &out.Subjects)
	var number *numberColumn
	if names[3] != "" {
		number = t.number(&out.number)
	}
	t.names = func(source.Table) []string { return names }
	t.row = func(s *sink, row []cell) {
		about, known := what(row[4:])
		start, ok1 := row[0].Whole()
		end, ok2 := start, true
		if names[1] != "" {
			end, ok2 = row[1].Whole()
		}
		if !s.span(start, end, known && ok1 && ok2 && end != openEnd) {
			return
		}
		x := Subject{What: about}
		x.Global, _ = row[2].Whole()
		subject.put(s, uint64(x.Global)<<8^uint64(about), x)
		if number != nil {
			value := orNone(&row[3])
			if f := row[3].Float(); row[3].Kind == pages.Float && math.Abs(f) < 1<<53 {
				value = int64(math.Round(f))
			}
			number.put(s, value)
		}
		s.keep()
	}
	t.adopt = func(ids *idents) {
		for i := range out.Subjects {
			x := &out.Subjects[i]
			th, ok := ids.threads[x.Global]
			if x.Thread = None; ok {
				x.Thread = th
			}
		}
	}
	return t
}

// newOverheadTable reads PROFILER_OVERHEAD, whose threads are of the capture even if they did nothing else.
func newOverheadTable(l *loader) *eventTable {
	nothing := func([]cell) (int64, bool) { return 0, true }
	t := newObserved(l, &l.trace.Overhead, nothing, "start", "end", "globalTid", "")
	t.tids = true
	t.settled = func() {
		for _, x := range l.trace.Overhead.Subjects {
			if x.Global != 0 {
				t.ids = append(t.ids, x.Global)
			}
		}
	}
	return t
}

func newOSTable(l *loader) *eventTable {
	stack := "callchainId"
	if _, ok := l.tables[RoleOSStack]; !ok {
		stack = ""
	}
	return newObserved(l, &l.trace.OS, firstNumber, "start", "end", "globalTid", stack, "nameId")
}

// What rows of these tables are about, see [Subject].
func firstNumber(own []cell) (int64, bool) { return own[0].Whole() }
func sampledCPU(own []cell) (int64, bool)  { return int64(ident(&own[0])), true }

func switched(own []cell) (int64, bool) {
	cpu, ok1 := own[0].Whole()
	in, ok2 := own[1].Whole()
	return cpu<<1 | min(in&math.MaxInt64, 1), ok1 && ok2 && cpu >= 0 && cpu <= maxCPU
}

const maxCPU = 1 << 20 // more than a machine has

// Frames are the frames of recorded call stacks, in the order of the table.
type Frames struct {
	Kinds []Frame // of which there are few
	kind  codes
	stack numbers
}

// Frame is a function of a call stack.
type Frame struct {
	Function  string // as nsys resolved it: an address if it could not
	Module    string // the file's own name, without its folder
	Innermost bool   // it called none
}

// Len is the number of frames.
func (f *Frames) Len() int { return len(f.stack.low) }

// Stack is the id of the stack that frame i belongs to.
func (f *Frames) Stack(i int) int64 { return f.stack.at(i) }

// Kind of frame i, an index into Kinds.
func (f *Frames) Kind(i int) int32 { return f.kind.at(i) }

// rawFrame is a frame by the ids of its names.
type rawFrame struct {
	function, module int64
	innermost        bool
}

// newFrameTable reads a table of call stacks, whose rows have no times.
func newFrameTable(l *loader, out *Frames) *eventTable {
	t := newTable(l, &Span{})
	t.beside, t.timeless = true, true
	var kinds []rawFrame
	kind, stack := coded(t, &out.kind, &kinds), t.number(&out.stack)
	t.names = func(source.Table) []string { return []string{"id", "stackDepth", "symbol", "module"} }
	t.row = func(s *sink, row []cell) {
		s.rows++
		id, ok := row[0].Whole()
		depth, ok2 := row[1].Whole()
		if !ok || !ok2 || id < 0 || depth < 0 {
			s.skipped++
			return
		}
		k := rawFrame{orNone(&row[2]), orNone(&row[3]), depth == 0}
		kind.put(s, uint64(k.function)^uint64(k.module)<<32, k)
		stack.put(s, id)
		s.keep()
	}
	t.settled = func() {
		for _, k := range kinds {
			out.Kinds = append(out.Kinds, Frame{l.label(k.function), baseName(l.texts[k.module]), k.innermost})
		}
	}
	return t
}
