package kineto

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// thread is the global id of the thread an event is of.
func (x *exporter) thread(e *event) (int64, bool) {
	if e.pid < 0 || e.tid == unknown {
		x.facts.Skipped++
		return 0, false
	}
	return global(e.pid, x.threadOf(e.pid, e.tid)), true
}

// ids number the texts and threads of the file.
type ids struct {
	texts   lists.Numbering[string]
	threads map[[2]int64]int64 // id of a thread within its process, by pid and tid
}

// threadOf is the number of a thread within 24 bits: its own if that fits, as ids of Linux do, else another one.
func (x *ids) threadOf(pid, tid int64) int64 {
	key := [2]int64{pid, tid}
	id, ok := x.threads[key]
	if !ok {
		if id = tid; id < 0 || id >= 1<<24 {
			id = 1<<24 - 1 - int64(len(x.threads))&0xffff
		}
		x.threads[key] = id
	}
	return id
}

// global is the id of a thread as nsys writes it: the process in bits 24 to 47.
func global(pid, tid int64) int64 { return pid&0xffffff<<24 | tid&0xffffff }

// textID is the id of a text in StringIds.
func (x *ids) textID(s string) int64 { return int64(x.texts.Of(s)) }

// row adds an event to a table; its cells follow the times and the correlation id.
func (x *exporter) row(e *event, name string, correlation int64, shape ...cell) {
	if e.start == unknown || e.length < 0 {
		x.facts.Skipped++
		return
	}
	if x.origin == unknown {
		x.origin = e.start
	}
	t := x.tableOf(name)
	if correlation < 0 && t.columns[2] == "correlationId" && len(x.nameless) < maxKept {
		x.nameless[moment{e.pid, e.tid, e.start}] = place{t, t.rows}
	}
	t.add(x.memory, e.start-x.origin, e.length, correlation, shape)
}

func (x *exporter) tableOf(name string) *table {
	t := x.tables[name]
	if t == nil {
		t = &table{columns: columns[name], index: map[string]int32{}, late: map[int]int64{}}
		if t.columns == nil { // it is only counted
			t.columns = []string{"start", "end", "", ""}
		}
		x.tables[name] = t
	}
	return t
}

// source puts the tables together.
func (x *exporter) source(about *about) *Source {
	s := &Source{tables: x.tables, memory: x.memory}
	owner := x.owners()
	for _, name := range []string{kernels, copies, sets, waits} {
		if t := s.tables[name]; t != nil {
			t.owner = owner
		}
	}
	for _, call := range slices.Sorted(maps.Keys(x.recorded)) {
		e := x.recorded[call]
		s.plain(records, integer(call), owner(call), known(e.device), known(e.stream), integer(e.event), integer(call))
	}
	if t := s.tables[ranges]; t != nil {
		at := t.place("binaryData")
		for i, shape := range t.shapes {
			if said := shape[at]; said.Kind == pages.Int {
				t.shapes[i][at] = x.messages.Keys[said.Bits].payload(about.rank)
			}
		}
		for i, field := range []string{"NCCL communicator ID", "Rank", "No. of ranks", payload.MessageSize} {
			s.plain("NVTX_PAYLOAD_SCHEMA_ENTRIES", integer(payloadDomain), integer(1), integer(18), integer(x.textID(field)),
				integer(int64(8*i)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(x.called)) {
		s.plain("ThreadNames", integer(x.textID(x.called[id])), integer(id))
	}
	if t := x.tables[pythonTable]; t != nil {
		delete(x.tables, pythonTable)
		(&pythonSampler{x, map[int32]payload.PythonFrame{}}).stacks(t)
	}
	for _, pid := range slices.Sorted(maps.Keys(x.procs)) {
		if slices.Contains(x.pids, pid) {
			s.plain("PROCESSES", integer(global(pid, 0)), integer(x.textID(x.procs[pid])))
		}
	}
	for _, gpu := range about.gpus {
		s.plain("TARGET_INFO_GPU", gpu...)
	}
	if about.rank >= 0 && about.world > about.rank {
		s.plain("TARGET_INFO_SYSTEM_ENV", text("RANK"), text(fmt.Sprint(about.rank)))
		s.plain("TARGET_INFO_SYSTEM_ENV", text("WORLD_SIZE"), text(fmt.Sprint(about.world)))
	}
	if epoch := epoch(x.origin, about.base); epoch > 0 {
		s.plain("TARGET_INFO_SESSION_START_TIME", integer(epoch))
	}
	for i, value := range x.texts.Keys {
		s.plain("StringIds", integer(int64(i)), text(value))
	}
	return s
}

// epoch is the moment of the first event in ns since 1970: its own time if that counts from 1970, or the base time of
// the file plus it; 0 if the result is not a date of these decades.
func epoch(origin, base int64) int64 {
	const y2000, y2100 = 946_684_800e9, 4_102_444_800e9
	for _, at := range []int64{origin, base + origin} {
		if y2000 < at && at < y2100 {
			return at
		}
	}
	return 0
}

// owners says which process a correlation id belongs to. Each process counts its own, so that in a file that somebody
// put together of several, calls of two may have one: then nobody knows whose the work is.
func (x *exporter) owners() func(correlation int64) cell {
	if len(x.pids) == 0 {
		return func(int64) cell { return cell{} }
	}
	first := integer(global(x.pids[0], 0))
	if len(x.pids) == 1 {
		return func(int64) cell { return first }
	}
	of := map[int64]int64{} // process of a call; several if it is not theirs alone
	const several = -1
	if t := x.tables[apiCalls]; t != nil {
		for c, thread := (cursor{t: t}), t.place("globalTid"); c.next(); {
			pid, correlation := c.cell(thread).Bits>>24, c.correlation()
			if known, ok := of[correlation]; ok && known != pid {
				pid = several
			}
			of[correlation] = pid
		}
	}
	return func(correlation int64) cell {
		switch pid, ok := of[correlation]; {
		case correlation < 0 || !ok:
			return first
		case pid == several:
			return cell{}
		default:
			return integer(global(pid, 0))
		}
	}
}
