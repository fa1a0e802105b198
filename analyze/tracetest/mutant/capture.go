package mutant

import (
	"cmp"
	"database/sql"
	"fmt"
	"net/url"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// Capture is an export in memory. It never changes: mutants are copies.
type Capture struct {
	tables []*table
	texts  map[int64]string
	events []event
	procs  []int64 // globalPid, by number
	lanes  []lane
	units  []unit        // by lane, then time
	onGPU  map[int][]int // work by device, in order of start
	first  map[int]int   // by call: the first work that it launched
	full   map[int]bool  // by call: the queue of launches was full
	quick  map[int]int64 // by table: from the start of a call to its copy, where that waited for nothing else
	nextID int64         // of a text
	corr   int64         // the highest correlation id
}

// table is one table of the file. Cells are int64, float64, string, []byte or nil.
type table struct {
	name, create string
	columns      map[string]int
	names        []string
	rows         [][]any
}

// lane is a device or a thread of a process.
type lane struct {
	proc int
	id   int64 // deviceId, or globalTid
}

type eventKind uint8

const (
	work  eventKind = iota // kernel, copy, fill, graph: on a device
	call                   // API call: on a thread
	other                  // row that moves with a thread
)

// event is one row with a time.
type event struct {
	kind       eventKind
	table      int
	row        int
	proc, lane int   // -1: not known
	start, end int64 // ns, in the base; an added event has no length there
	noEnd      bool
	corr       int64
	name       string
	call       int // of work, and of what is recorded about a call: index of the call; -1: none
	unit       int // ordinal on its device, -1: before the first

	dur    int64          // ns, of work and calls that wait for nothing
	stall  int64          // ns that pass on the host before it
	fresh  bool           // added
	wait   bool           // added blocking call: waits for all that was launched
	goes   int64          // ns at most that no longer pass on the host before it
	free   bool           // call of a host that takes no time
	loose  bool           // blocking call that no longer waits
	dead   bool           // removed: takes no time and has no row
	lost   bool           // takes its time, but has no row
	around *[2]int        // added row: from what comes before the first of two calls to the end of the other
	begins bool           // or to its start
	inside bool           // added call that ranges around the call before it hold, too
	set    map[string]any // columns that an edit changed; texts by name go through textRef

	at, to int64 // ns, in the mutant
}

// textRef is a cell that names a text, by id where the table does.
type textRef string

// gpuTables hold work of devices.
var gpuTables = []string{kernelTable, memcpyTable, memsetTable, graphTable}

const (
	kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"
	memcpyTable = "CUPTI_ACTIVITY_KIND_MEMCPY"
	memsetTable = "CUPTI_ACTIVITY_KIND_MEMSET"
	graphTable  = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	syncTable   = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
	apiTable    = "CUPTI_ACTIVITY_KIND_RUNTIME"
	nvtxTable   = "NVTX_EVENTS"
	stringTable = "StringIds"
	osTable     = "OSRT_API"
)

// left are tables whose rows are not read.
var left = []string{
	osTable, "SCHED_EVENTS", "COMPOSITE_EVENTS", "SAMPLING_CALLCHAINS", "OSRT_CALLCHAINS", "MPI_OTHER_EVENTS",
}

// Read reads the export at path. Columns and tables that its schema lacks are not missed.
func Read(path string) (_ *Capture, err error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	c := &Capture{texts: map[int64]string{}}
	if err := c.readTables(db); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	c.readTexts()
	c.readEvents()
	return c, nil
}

func (c *Capture) readTables(db *sql.DB) error {
	const q = "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY rowid"
	list, err := db.Query(q)
	if err != nil {
		return err
	}
	defer list.Close()
	for list.Next() {
		t := &table{columns: map[string]int{}}
		if err := list.Scan(&t.name, &t.create); err != nil {
			return err
		}
		c.tables = append(c.tables, t)
	}
	if err := list.Err(); err != nil {
		return err
	}
	for _, t := range c.tables {
		if err := t.read(db); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

func (t *table) read(db *sql.DB) error {
	q := "SELECT * FROM " + quote(t.name)
	if slices.Contains(left, t.name) {
		q += " LIMIT 0"
	}
	rows, err := db.Query(q)
	if err != nil {
		return err
	}
	defer rows.Close()
	if t.names, err = rows.Columns(); err != nil {
		return err
	}
	for i, name := range t.names {
		t.columns[name] = i
	}
	targets := make([]any, len(t.names))
	for rows.Next() {
		cells := make([]any, len(t.names))
		for i := range cells {
			targets[i] = &cells[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		t.rows = append(t.rows, cells)
	}
	return rows.Err()
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// cell of a row by the column's name; nil where the table has no such column.
func (t *table) cell(row int, column string) any {
	if i, ok := t.columns[column]; ok {
		return t.rows[row][i]
	}
	return nil
}

func (t *table) has(column string) bool { _, ok := t.columns[column]; return ok }

func (t *table) num(row int, column string) (int64, bool) {
	v, ok := t.cell(row, column).(int64)
	return v, ok
}

func (c *Capture) table(name string) int {
	return slices.IndexFunc(c.tables, func(t *table) bool { return t.name == name })
}

func (c *Capture) readTexts() {
	at := c.table(stringTable)
	if at < 0 {
		return
	}
	for i := range c.tables[at].rows {
		id, _ := c.tables[at].num(i, "id")
		c.texts[id], _ = c.tables[at].cell(i, "value").(string)
		c.nextID = max(c.nextID, id+1)
	}
}

// text that a cell holds or names.
func (c *Capture) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return c.texts[v]
	}
	return ""
}

const threadBits = 0xFFFFFF // of a globalTid: the thread; the rest is its process

// readEvents finds the rows that have a time, and what belongs to what.
func (c *Capture) readEvents() {
	procs, lanes := map[int64]int{}, map[lane]int{}
	proc := func(pid int64) int {
		if _, ok := procs[pid]; !ok {
			procs[pid] = len(c.procs)
			c.procs = append(c.procs, pid)
		}
		return procs[pid]
	}
	place := func(l lane) int {
		if _, ok := lanes[l]; !ok {
			lanes[l] = len(c.lanes)
			c.lanes = append(c.lanes, l)
		}
		return lanes[l]
	}
	byPid := false // reduced exports do not say the process of a kernel: then there is one
	if at := c.table(kernelTable); at >= 0 {
		byPid = c.tables[at].has("globalPid")
	}
	for ti, t := range c.tables {
		clock := "start"
		if !t.has("start") {
			clock = "timestamp"
		}
		gpu := slices.Contains(gpuTables, t.name)
		for row := range t.rows {
			start, ok := t.num(row, clock)
			if !ok {
				continue
			}
			end, ended := t.num(row, "end")
			if !ended {
				end = start
			}
			if end < start {
				continue
			}
			e := event{
				kind: other, table: ti, row: row, proc: -1, lane: -1, call: -1, unit: -1,
				start: start, end: end, noEnd: !ended, dur: end - start,
			}
			e.corr, _ = t.num(row, "correlationId")
			c.corr = max(c.corr, e.corr)
			pid, known := t.num(row, "globalPid")
			tid, threaded := t.num(row, "globalTid")
			switch {
			case threaded && byPid:
				e.proc = proc(tid &^ threadBits)
			case known && byPid:
				e.proc = proc(pid)
			case gpu, threaded:
				e.proc = proc(0)
			}
			switch {
			case gpu:
				device, _ := t.num(row, "deviceId")
				e.kind, e.lane, e.name = work, place(lane{e.proc, device}), c.workName(t, row)
			case threaded:
				e.lane, e.name = place(lane{e.proc, tid}), c.text(t.cell(row, "nameId"))
				if t.name == apiTable {
					e.kind = call
				}
				if t.name == nvtxTable {
					e.name = cmp.Or(c.text(t.cell(row, "text")), c.text(t.cell(row, "textId")))
				}
			}
			c.events = append(c.events, e)
		}
	}
	type key struct {
		proc int
		corr int64
	}
	c.sortWork()
	calls := map[key]int{}
	for i := range c.events {
		if e := &c.events[i]; e.kind == call {
			calls[key{e.proc, e.corr}] = i
		}
	}
	for i := range c.events {
		e := &c.events[i]
		if e.kind != work && c.tables[e.table].name != syncTable {
			continue
		}
		if j, ok := calls[key{e.proc, e.corr}]; ok && c.events[j].start <= e.start {
			e.call = j
		}
	}
}

// workName is the name of a kernel, or what kind of work it is.
func (c *Capture) workName(t *table, row int) string {
	switch t.name {
	case kernelTable:
		return cmp.Or(c.text(t.cell(row, "demangledName")), c.text(t.cell(row, "shortName")))
	case memcpyTable:
		return "[copy]"
	case memsetTable:
		return "[fill]"
	}
	return "[graph]"
}

// isKernel reports whether an event is a kernel.
func (c *Capture) isKernel(e *event) bool {
	return e.kind == work && c.tables[e.table].name == kernelTable
}

// Short is the identifier in a kernel's name: without return type, namespaces, templates and arguments.
func Short(name string) string {
	name = strings.TrimPrefix(name, "void ")
	if i := strings.IndexAny(name, "<("); i > 0 {
		name = name[:i]
	}
	if i := strings.LastIndex(name, "::"); i >= 0 && i+2 < len(name) {
		name = name[i+2:]
	}
	return strings.TrimSpace(name)
}
