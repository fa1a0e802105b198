package trace

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"golang.org/x/sync/errgroup"
)

// loader carries what the table readers share while a trace is being built.
type loader struct {
	ctx     context.Context
	src     source
	opt     *Options
	trace   *Trace
	tables  map[Role]tableInfo
	strings map[int64]string
	maxRows int64 // a row takes at least a byte: a view that yields more has no end
}

func load(ctx context.Context, src source, in *input, opt *Options) (*Trace, error) {
	tables, err := src.Tables()
	if err != nil {
		return nil, in.damaged(err)
	}
	l := &loader{ctx: ctx, src: src, opt: opt, tables: probe(tables), trace: &Trace{File: in.file}, maxRows: max(in.size, 1)}
	switch nsys, data := isNsys(tables, l.tables); {
	case !nsys:
		return nil, in.fail("is a SQLite database, but no Nsight Systems export", "run `nsys export --type sqlite --lazy=false` on the .nsys-rep and name the .sqlite it writes", nil)
	case !data:
		return nil, in.fail("is what a failed nsys export leaves behind: it holds no events", "run `nsys export --type sqlite --lazy=false --force-overwrite=true` again and look at what it prints", nil)
	}
	if err := l.run(); err != nil {
		if e := ctx.Err(); e != nil {
			return nil, e
		}
		return nil, in.fail("cannot be read to its end: it is damaged", "copy or export it again", err)
	}
	return l.trace, nil
}

func (l *loader) run() error {
	if err := l.loadStrings(); err != nil {
		return err
	}
	t := l.trace
	ids := make([]*idents, 8)
	for i := range ids {
		ids[i] = newIdents()
	}
	events := make([]*eventTable, len(ids))
	var g errgroup.Group
	g.SetLimit(4)
	for i, step := range []struct {
		role Role
		read func(tableInfo, *idents, *eventTable) error
	}{
		{RoleNVTX, l.loadRanges},
		{RoleAPI, l.loadAPI},
		{RoleKernel, l.loadKernels},
		{RoleMemcpy, l.loadCopies},
		{RoleMemset, l.loadSets},
		{RoleGraph, l.loadGraphs},
		{RoleSync, l.loadSyncs},
		{RoleOverhead, l.loadOverhead},
	} {
		table, ok := l.tables[step.role]
		if !ok {
			continue
		}
		events[i] = &eventTable{TableStat: TableStat{Role: step.role, Name: table.Name}}
		g.Go(func() error {
			if err := step.read(table, ids[i], events[i]); err != nil {
				return fmt.Errorf("table %s: %w", table.Name, err)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	dropStray(events)
	for _, node := range t.Kernels.node {
		if node {
			t.GraphNodes++
		}
	}
	for _, e := range events {
		if e != nil {
			t.Tables = append(t.Tables, e.TableStat)
		}
	}
	sort.Slice(t.Tables, func(i, j int) bool { return t.Tables[i].Name < t.Tables[j].Name })
	l.settleIdents(ids)
	l.closeRanges()
	return errors.Join(l.loadMeta(), l.loadNames(), l.loadGPUs(), l.separateDevices())
}

// scan reads a table's columns by name; a column the table lacks reads as NULL. It counts rows, watches the context
// and reports progress.
func (l *loader) scan(table tableInfo, names []string, stat *eventTable, each func(row []cell) error) error {
	var have []string
	at := make([]int, len(names))
	for i, n := range names {
		at[i] = -1
		if n == "" {
			continue
		}
		if n == "rowid" || table.column(n) != "" {
			at[i] = len(have)
			if n != "rowid" {
				n = table.column(n)
			}
			have = append(have, n)
		}
	}
	if len(have) == 0 {
		return nil
	}
	row := make([]cell, len(names))
	var rows int64
	err := l.src.Scan(table.Name, have, func(got []cell) error {
		if rows&0xffff == 0 {
			if err := l.ctx.Err(); err != nil {
				return err
			}
			l.opt.progress("read "+table.Name, rows)
		}
		if rows++; rows > l.maxRows {
			return fmt.Errorf("more rows than a file of %d bytes can hold", l.maxRows)
		}
		for i, j := range at {
			if j >= 0 {
				row[i] = got[j]
			}
		}
		return each(row)
	})
	if stat != nil {
		stat.Rows = rows
	}
	return err
}

func (l *loader) loadStrings() error {
	l.strings = map[int64]string{}
	table, ok := l.tables[RoleStrings]
	if !ok {
		return nil
	}
	return l.scan(table, []string{"id", "value"}, nil, func(row []cell) error {
		if id, ok := row[0].int(); ok && row[1].kind != isNull {
			l.strings[id] = clip(row[1].s)
		}
		return nil
	})
}

// text resolves a name cell: text as it stands, an id through the string table.
func (l *loader) text(c *cell) (string, bool) {
	switch c.kind {
	case isText, isBlob:
		return clip(c.s), true
	case isInt:
		s, ok := l.strings[c.i]
		return s, ok
	}
	return "", false
}

// idents numbers the process or thread ids one table mentions, in order of appearance; settleIdents renumbers them for
// the whole trace afterwards, so that tables can be read side by side.
type idents struct {
	index map[int64]int32
	list  []int64
	last  int64
	lastI int32
	tids  bool // the ids are globalTids
}

func newIdents() *idents { return &idents{index: map[int64]int32{}, lastI: None} }

func (d *idents) of(v int64) int32 {
	if d.lastI != None && d.last == v {
		return d.lastI
	}
	i, ok := d.index[v]
	if !ok {
		i = int32(len(d.list))
		d.index[v] = i
		d.list = append(d.list, v)
	}
	d.last, d.lastI = v, i
	return i
}

// tidBits are the bits of a globalTid below the process identity.
const tidBits = 0xffffff

// globalPid makes a process identity from whichever column the export has: a globalPid or globalTid as it is, a plain
// pid shifted into place.
func globalPid(column string, v int64) int64 {
	if equalFold(column, "pid") || equalFold(column, "processId") {
		return v << 24
	}
	return v &^ tidBits
}

func (l *loader) settleIdents(all []*idents) {
	t := l.trace
	procs, threads := map[int64]int32{}, map[int64]int32{}
	for _, d := range all {
		for _, v := range d.list {
			procs[v&^tidBits] = 0
			if d.tids {
				threads[v] = 0
			}
		}
	}
	for _, v := range sortedKeys(procs) {
		procs[v] = int32(len(t.Procs))
		t.Procs = append(t.Procs, Proc{Global: v, PID: v >> 24 & 0xffffff})
	}
	for _, v := range sortedKeys(threads) {
		threads[v] = int32(len(t.Threads))
		t.Threads = append(t.Threads, Thread{Global: v, Proc: procs[v&^tidBits], TID: v & tidBits})
	}
	renumber := func(d *idents, column []int32) {
		to := make([]int32, len(d.list))
		for i, v := range d.list {
			if d.tids {
				to[i] = threads[v]
			} else {
				to[i] = procs[v&^tidBits]
			}
		}
		for i, v := range column {
			if v != None {
				column[i] = to[v]
			}
		}
	}
	renumber(all[0], t.Ranges.thread)
	renumber(all[1], t.API.thread)
	renumber(all[2], t.Kernels.proc)
	renumber(all[3], t.Copies.proc)
	renumber(all[4], t.Sets.proc)
	renumber(all[5], t.Graphs.proc)
	renumber(all[6], t.Syncs.proc)
	over := make([]int32, len(t.Overhead))
	for i := range t.Overhead {
		over[i] = t.Overhead[i].Thread
	}
	renumber(all[7], over)
	for i := range t.Overhead {
		t.Overhead[i].Thread = over[i]
	}
}

func sortedKeys(m map[int64]int32) []int64 {
	list := make([]int64, 0, len(m))
	for v := range m {
		list = append(list, v)
	}
	sort.Slice(list, func(i, j int) bool { return list[i] < list[j] })
	return list
}

// closeRanges ends the ranges that were open when the capture stopped at the last moment any event was seen.
func (l *loader) closeRanges() {
	t := l.trace
	last := int64(minTime)
	for _, s := range []*Span{&t.Kernels.Span, &t.Copies.Span, &t.Sets.Span, &t.Graphs.Span, &t.API.Span, &t.Ranges.Span} {
		for _, e := range s.end {
			if e != openEnd {
				last = max(last, e)
			}
		}
		if n := len(s.start); n > 0 {
			last = max(last, s.start[n-1])
		}
	}
	for i, e := range t.Ranges.end {
		if e == openEnd {
			t.Ranges.end[i] = last
		}
	}
}

const (
	minTime = -1 << 63
	openEnd = 1<<63 - 1
)
