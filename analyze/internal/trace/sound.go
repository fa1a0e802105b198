package trace

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// What no capture holds, however long it ran. A row beyond these limits is damaged and counts as skipped: kept, it
// would stretch the window over years, or make sums overflow.
const (
	// Of a time in either direction: exports in UTC are at 1.7e18, and a difference must fit 64 bits
	maxMoment = 1 << 62
	maxAway   = 1 << 50  // of a time from the middle of the capture: 13 days
	maxTotal  = 1 << 56  // of the durations of one table together: two years
	maxBytes  = 1 << 42  // of one copy or memset: 4 TiB, more than a GPU has
	maxName   = 16 << 10 // of a name in bytes: the longest of real kernels have 10 KB
)

const clippedName = 1 << 10

// clip shortens a name that no program has, so that a report of many such names stays small. A checksum keeps names
// apart that begin alike.
func clip(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := fnv.New64a()
	io.WriteString(sum, name)
	return fmt.Sprintf("%s… #%016x", strings.ToValidUTF8(name[:clippedName], ""), sum.Sum64())
}

// public is a name as anybody may see it: shortened, and without what looks like an access token. Every name that a
// report shows comes through it.
func public(name string) string { return secret.Tokens(clip(name)) }

// sound reports whether times make an event.
func sound(start, end int64) bool {
	return -maxMoment < start && start <= end && end < maxMoment && end-start <= maxTotal
}

// eventTable is a table of events while it is being loaded.
type eventTable struct {
	store
	TableStat
	span     *Span
	facts    spanFacts
	sinks    []*sink
	columns  []column
	ids      []int64 // global ids of processes or threads that its rows mention
	tids     bool    // they are of threads
	plain    bool    // they are pids alone, without the machine
	beside   bool    // its rows do not tell when the capture was or which threads it is about
	timeless bool    // its rows have no times

	info  source.Table
	found []string // the columns to read, empty if the table lacks one

	// names are the columns to read, in the order of the cells of a row; one that the table lacks reads as NULL.
	names   func(info source.Table) []string
	row     func(s *sink, row []cell)
	sinkOf  func(s *sink) pages.Sink // what takes rows in place of s; may be nil
	settled func()                   // called when all columns are settled; may be nil
	adopt   func(*idents)            // called when processes and threads have numbers; may be nil
}

func newTable(l *loader, span *Span) *eventTable {
	t := &eventTable{store: store{arena: l.trace.arena}, span: span}
	t.wide = []*[]uint32{&t.off, &t.dur}
	return t
}

// sink returns what takes the rows that one goroutine reads.
func (t *eventTable) sink() pages.Sink {
	s := &sink{t: t, index: len(t.sinks)}
	t.sinks = append(t.sinks, s)
	for _, c := range t.columns {
		c.join()
	}
	if t.sinkOf != nil {
		return t.sinkOf(s)
	}
	return s
}

// settle makes the final columns of what the sinks took.
func (t *eventTable) settle() {
	if t.timeless {
		spill.Free(t.arena, t.off)
		spill.Free(t.arena, t.dur)
		t.off, t.dur, t.facts.sorted = nil, nil, true
	} else {
		*t.span, t.facts = t.settleSpan(t.sinks)
	}
	for _, s := range t.sinks {
		t.Rows += s.rows
		t.Skipped += s.skipped
		t.Odd += s.odd
	}
	for _, c := range t.columns {
		c.settle(t)
	}
	if t.settled != nil {
		t.settled()
	}
	t.finish()
}

// finish puts settled rows into order of start, keeping the order of equal starts, after leaving out what makes the sum
// of all durations impossible. Real exports are sorted already, which was seen in passing.
func (t *eventTable) finish() {
	spill.Free(t.arena, t.pieces)
	t.pieces = nil
	var total int64
	for _, s := range t.sinks {
		total = min(total+s.total, maxTotal+1)
	}
	t.sinks = nil
	if total > maxTotal {
		t.keepWithin(maxTotal)
	}
	if !t.facts.sorted {
		order := orderOf(t.arena, t.span)
		t.take(order)
		spill.Free(t.arena, order)
	}
}

// keepWithin leaves out each row, in their order, whose duration would bring the sum of those kept above limit.
func (t *eventTable) keepWithin(limit int64) {
	var total int64
	t.keepIf(func(i int) bool {
		d := max(t.span.Dur(i), 0)
		if d > limit-total {
			return false
		}
		total += d
		return true
	})
}

// keepIf leaves out, as skipped, the rows that keep does not want. It asks for each in order.
func (t *eventTable) keepIf(keep func(i int) bool) {
	n := t.span.Len()
	order := spill.Make[int32](t.arena, n)
	kept := 0
	for i := range n {
		if keep(i) {
			order[kept] = int32(i)
			kept++
		}
	}
	if kept < n {
		t.Skipped += int64(n - kept)
		t.take(order[:kept])
	}
	spill.Free(t.arena, order)
}

// take keeps the rows of order, in that order.
func (t *eventTable) take(order []int32) {
	taken := span.Take(t.arena, t.span, order)
	span.Free(t.arena, t.span)
	*t.span = taken
	for _, c := range t.columns {
		c.take(t.arena, order)
	}
	t.facts = factsOf(t.span)
}

// factsOf looks at all times again.
func factsOf(s *Span) spanFacts {
	f := newFacts()
	for i := range s.Len() {
		f.add(s.Start(i), s.Dur(i))
	}
	return f
}

// dropStray leaves out rows that lie days away from all others: the middle row of the longest table says where the
// capture is.
func dropStray(tables []*eventTable) {
	var longest *Span
	for _, t := range tables {
		if !t.beside && (longest == nil || t.span.Len() > longest.Len()) {
			longest = t.span
		}
	}
	if longest == nil || longest.Len() == 0 {
		return
	}
	middle := longest.Start(longest.Len() / 2)
	for _, t := range tables {
		if t.facts.first >= middle-maxAway && t.facts.last <= middle+maxAway {
			continue
		}
		t.keepIf(func(i int) bool {
			start := t.span.Start(i)
			return start >= middle-maxAway && start <= middle+maxAway && start+t.span.Dur(i) <= middle+maxAway
		})
	}
}

func orNone(c *cell) int64 {
	if v, ok := c.Whole(); ok {
		return v
	}
	return int64(None)
}

// upTo is a number from 0 to most; anything else is None.
func upTo(c *cell, most int64) int64 {
	v, ok := c.Whole()
	if !ok || v < 0 || v > most {
		return int64(None)
	}
	return v
}

// orNobody is an id that CUPTI writes as 2^32-1 if there is none.
func orNobody(c *cell) int64 { return upTo(c, math.MaxUint32-1) }

// ident is a device, stream or context number.
func ident(c *cell) int32 { return int32(upTo(c, math.MaxInt32)) }

// extent is a size of a launch, never negative.
func extent(c *cell) int32 {
	v, _ := c.Whole()
	return int32(min(max(v, 0), math.MaxInt32))
}

// What no copy reaches, in bytes per ns: a link between host and device moves 900 GB/s (NVLink-C2C), the memory of a
// device 8 TB/s, and its caches a few times that.
const (
	maxLinkRate   = 2_000
	maxMemoryRate = 100_000
)

// Kinds that explain knows: copyKind below copyKinds (ENUM_CUDA_MEMCPY_OPER), kinds of memory below memKinds
// (ENUM_CUDA_MEM_KIND).
const copyKinds, memKinds = 14, 8

// oddSize reports whether a size is none, or more than can be moved in ns at the rate. An unknown one is not odd.
func oddSize(size *cell, ns uint32, rate int64) bool {
	v, ok := size.Whole()
	return ok && (v < 0 || v > maxBytes || v > max(int64(ns), 1)*rate)
}

// oddKind reports whether a number is outside of an enumeration of n. An unknown one is not odd.
func oddKind(kind *cell, n int64) bool {
	v, ok := kind.Whole()
	return ok && (v < 0 || v >= n)
}

// byteCount is the size of a copy or memset; what can be none counts as 0.
func byteCount(c *cell) int64 { return max(upTo(c, maxBytes), 0) }

// small is a number from an enumeration.
func small(c *cell) int16 { return int16(upTo(c, 1<<14)) }

// newEvents are the readers of the event tables, by role.
func newEvents(l *loader) map[Role]*eventTable {
	t := l.trace
	return map[Role]*eventTable{
		RoleKernel:   newKernelTable(l),
		RoleMemcpy:   newCopyTable(l),
		RoleMemset:   newSetTable(l),
		RoleGraph:    newNumbered(l, &t.Graphs.Work, &t.Graphs.graph, &t.Graphs.exec, orNone, "graphId", "graphExecId"),
		RoleSync:     newNumbered(l, &t.Syncs.Work, &t.Syncs.event, &t.Syncs.epoch, orNobody, "eventId", "eventSyncId"),
		RoleHostFunc: newWork(l, &t.HostFuncs, func(*sink, []cell) {}),
		RoleAPI:      newAPITable(l),
		RoleNVTX:     newRangeTable(l),

		RoleOverhead:    newOverheadTable(l),
		RoleOS:          newOSTable(l),
		RoleOSStack:     newFrameTable(l, &t.OSStacks),
		RoleSched:       newObserved(l, &t.Sched, switched, "start", "", "globalTid", "", "cpu", "isSchedIn"),
		RoleSample:      newObserved(l, &t.Samples, sampledCPU, "start", "", "globalTid", "id", "cpu"),
		RoleSampleStack: newFrameTable(l, &t.SampleStack),
		RoleCounter:     newObserved(l, &t.Counted, firstNumber, "timestamp", "", "typeId", "value", "metricId"),
	}
}
