package kineto

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
)

// thread is the global id of the thread an event is of.
func (r *reader) thread(e *event) (int64, bool) {
	if e.pid < 0 || e.tid == unknown {
		r.facts.Skipped++
		return 0, false
	}
	return global(e.pid, r.threadOf(e.pid, e.tid)), true
}

// threadOf is the number of a thread within 24 bits: its own if that fits, as ids of Linux do, else another one.
func (r *reader) threadOf(pid, tid int64) int64 {
	key := [2]int64{pid, tid}
	id, ok := r.threads[key]
	if !ok {
		if id = tid; id < 0 || id >= 1<<24 {
			id = 1<<24 - 1 - int64(len(r.threads))&0xffff
		}
		r.threads[key] = id
	}
	return id
}

// global is the id of a thread as nsys writes it: the process in bits 24 to 47.
func global(pid, tid int64) int64 { return pid&0xffffff<<24 | tid&0xffffff }

// textID is the id of a text in StringIds.
func (r *reader) textID(s string) int64 {
	id, ok := r.names[s]
	if !ok {
		id = int64(len(r.texts))
		r.names[s] = id
		r.texts = append(r.texts, s)
	}
	return id
}

// row adds an event to a table; its cells follow the times and the correlation id.
func (r *reader) row(e *event, name string, correlation int64, shape ...cell) {
	if e.start == unknown || e.length < 0 {
		r.facts.Skipped++
		return
	}
	if !r.begun {
		r.begun, r.origin = true, e.start
	}
	t := r.tableOf(name)
	if correlation < 0 && t.columns[2] == "correlationId" && len(r.nameless) < maxKept {
		r.nameless[moment{e.pid, e.tid, e.start}] = place{t, t.rows}
	}
	t.add(r.memory, e.start-r.origin, e.length, correlation, shape)
}

func (r *reader) tableOf(name string) *table {
	t := r.tables[name]
	if t == nil {
		t = &table{columns: columnsOf(name), index: map[string]int32{}}
		r.tables[name] = t
	}
	return t
}

// source puts the tables together.
func (r *reader) source() *Source {
	s := &Source{tables: r.tables, memory: r.memory}
	owner := r.owners()
	for _, name := range []string{kernels, copies, sets, waits} {
		if t := s.tables[name]; t != nil {
			t.owner = owner
		}
	}
	for _, call := range slices.Sorted(maps.Keys(r.recorded)) {
		e := r.recorded[call]
		s.plain(records, integer(call), owner(call), known(e.device), known(e.stream), integer(e.event), integer(call))
	}
	if t := s.tables[ranges]; t != nil {
		at := t.place("binaryData")
		for i, shape := range t.shapes {
			if packed := shape[at].S; packed != "" {
				t.shapes[i][at] = r.payload(packed)
			}
		}
		for i, field := range []string{"NCCL communicator ID", "Rank", "No. of ranks", payload.MessageSize} {
			s.plain("NVTX_PAYLOAD_SCHEMA_ENTRIES", integer(payloadDomain), integer(1), integer(18), integer(r.textID(field)),
				integer(int64(8*i)))
		}
	}
	for _, key := range r.order {
		if id := global(key[0], r.threadOf(key[0], key[1])); r.called[id] != "" {
			s.plain("ThreadNames", integer(r.textID(r.called[id])), integer(id))
		}
	}
	r.pythonStacks()
	for _, pid := range slices.Sorted(maps.Keys(r.procs)) {
		if slices.Contains(r.pids, pid) {
			s.plain("PROCESSES", integer(global(pid, 0)), integer(r.textID(r.procs[pid])))
		}
	}
	for _, gpu := range r.gpus {
		s.plain("TARGET_INFO_GPU", gpu...)
	}
	if r.rank >= 0 && r.world > r.rank {
		s.plain("TARGET_INFO_SYSTEM_ENV", text("RANK"), text(fmt.Sprint(r.rank)))
		s.plain("TARGET_INFO_SYSTEM_ENV", text("WORLD_SIZE"), text(fmt.Sprint(r.world)))
	}
	if epoch := r.epoch(); epoch > 0 {
		s.plain("TARGET_INFO_SESSION_START_TIME", integer(epoch))
	}
	for i, value := range r.texts {
		s.plain("StringIds", integer(int64(i)), text(value))
	}
	return s
}

// epoch is the moment of the first event in ns since 1970: its own time if that counts from 1970, or the base time of
// the file plus it; 0 if the result is not a date of these decades.
func (r *reader) epoch() int64 {
	const y2000, y2100 = 946_684_800e9, 4_102_444_800e9
	for _, at := range []int64{r.origin, r.base + r.origin} {
		if y2000 < at && at < y2100 {
			return at
		}
	}
	return 0
}

// owners says which process a correlation id belongs to.
func (r *reader) owners() func(correlation int64) cell {
	if len(r.pids) == 0 {
		return func(int64) cell { return cell{} }
	}
	first := integer(global(r.pids[0], 0))
	if len(r.pids) == 1 {
		return func(int64) cell { return first }
	}
	of := map[int64]int64{} // of calls of the other processes
	if t := r.tables[apiCalls]; t != nil {
		for c, thread := (cursor{t: t}), t.place("globalTid"); c.next(); {
			if pid := c.cell(thread).Bits >> 24; pid != r.pids[0]&0xffffff {
				of[c.correlation()] = pid
			}
		}
	}
	return func(correlation int64) cell {
		if pid, ok := of[correlation]; ok && correlation >= 0 {
			return integer(global(pid, 0))
		}
		return first
	}
}
