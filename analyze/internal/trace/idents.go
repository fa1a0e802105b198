package trace

import (
	"maps"
	"slices"
	"strings"
)

// idents numbers the processes and threads of a trace.
type idents struct {
	procs, threads map[int64]int32
}

// owner is the process or thread that a row is of.
type owner struct {
	id    int64 // global pid or tid
	known bool  // the row says so
	index int32 // into Trace.Procs or Trace.Threads, or None, once they are numbered
}

// ownerOf is the process that a cell of a column names.
func ownerOf(column string, c *cell) (o owner) {
	if o.id, o.known = c.Whole(); o.known {
		o.id = globalPid(column, o.id)
	}
	return o
}

func (d *idents) number(o *owner, thread bool) int32 {
	switch {
	case !o.known:
		return None
	case thread:
		return d.threads[o.id]
	}
	return d.procs[o.id&^tidBits]
}

// tidBits are the bits of a globalTid below the process identity.
const tidBits = 0xffffff

// globalPid makes a process identity from the column that the export has: a globalPid or globalTid stays, even if the
// column is called pid, and a plain pid is shifted into place.
func globalPid(column string, v int64) int64 {
	if isPlain(column) && v <= tidBits {
		return v << 24
	}
	return v &^ tidBits
}

// isPlain reports whether a column holds the pid alone.
func isPlain(column string) bool {
	return strings.EqualFold(column, "pid") || strings.EqualFold(column, "processId")
}

// wholeOf finds for each plain pid of some tables the single process that other tables identify fully.
func (d *idents) wholeOf(tables []*eventTable) map[int64]int64 {
	whole, several := map[int64]int64{}, map[int64]bool{} // by pid in its place
	for v := range d.procs {
		if at := v & (tidBits << 24); at != v {
			_, known := whole[at]
			whole[at], several[at] = v, known
		}
	}
	plain := map[int64]int64{}
	for _, e := range tables {
		for _, v := range e.ids {
			if w, ok := whole[v]; ok && e.plain && !several[v] {
				plain[v] = w
			}
		}
	}
	return plain
}

func (l *loader) settleIdents(tables []*eventTable, short *shortTables) {
	t := l.trace
	ids := &idents{procs: map[int64]int32{}, threads: map[int64]int32{}}
	mention := func(v int64, thread bool) {
		ids.procs[v&^tidBits] = 0
		if thread {
			ids.threads[v] = 0
		}
	}
	for _, e := range tables {
		for _, v := range e.ids {
			mention(v, e.tids)
		}
	}
	for _, o := range short.eventOf {
		if o.known {
			mention(o.id, false)
		}
	}
	plain := ids.wholeOf(tables)
	for _, v := range slices.Sorted(maps.Keys(ids.procs)) {
		if _, ok := plain[v]; ok {
			continue
		}
		ids.procs[v] = int32(len(t.Procs))
		t.Procs = append(t.Procs, Proc{Global: v, PID: v >> 24 & 0xffffff})
	}
	for v, w := range plain {
		ids.procs[v] = ids.procs[w]
	}
	for _, v := range slices.Sorted(maps.Keys(ids.threads)) {
		ids.threads[v] = int32(len(t.Threads))
		t.Threads = append(t.Threads, Thread{Global: v, Proc: ids.procs[v&^tidBits], TID: v & tidBits})
	}
	for _, e := range tables {
		if e.adopt != nil {
			e.adopt(ids)
		}
	}
	for i, o := range short.eventOf {
		t.Events[i].Proc = ids.number(&o, false)
	}
}
