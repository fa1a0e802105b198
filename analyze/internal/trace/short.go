package trace

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Tables with few rows, which need no columns: they are read by one goroutine into a slice of the trace.

// shortTables reads them.
type shortTables struct {
	common
	eventOf []owner // by row of Trace.Events: its process
}

// count is scanRole, and counts the rows, those that take does not want as skipped.
func (l *shortTables) count(role Role, columns []string, take func(row []cell) bool) error {
	table, ok := l.tables[role]
	if !ok {
		return nil
	}
	stat := TableStat{Role: role, Name: table.Name}
	err := l.scanRole(role, columns, func(row []cell) error {
		stat.Rows++
		if !take(row) {
			stat.Skipped++
		}
		return nil
	})
	l.trace.Tables = append(l.trace.Tables, stat)
	return err
}

// loadAllocs reads the events of memory. Operations other than allocating and freeing are skipped.
func (l *shortTables) loadAllocs() error {
	columns := []string{"start", "bytes", "memoryOperationType", "address", "globalPid", "deviceId", "memKind",
		"localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize"}
	err := l.count(RoleAlloc, columns, func(row []cell) bool {
		value := func(column int, none int64) int64 {
			if v, ok := row[column].Whole(); ok {
				return v
			}
			return none
		}
		start, known := row[0].Whole()
		bytes, operation := value(1, -1), value(2, -1)
		if !known || !sound(start, start) || bytes < 0 || bytes > maxAlloc || operation != 0 && operation != 1 {
			return false
		}
		l.trace.Allocs = append(l.trace.Allocs, Alloc{
			Start: start, Bytes: bytes, Free: operation == 1, Address: value(3, 0), Owner: value(4, 0),
			Device: int32(value(5, -1)), Kind: int32(value(6, 2)), Pool: value(7, 0),
			PoolSize: value(8, -1), PoolUsed: value(9, -1),
		})
		return true
	})
	lists.Sort(l.trace.Allocs, func(a, b Alloc) int { return cmp.Compare(a.Start, b.Start) })
	return err
}

// loadEvents reads the events that were recorded into streams. Rows without a correlation id say nothing: no call
// recorded them.
func (l *shortTables) loadEvents() error {
	table := l.tables[RoleEvent]
	pid := table.First(pidColumns...)
	columns := []string{"correlationId", "eventId", "eventSyncId", "streamId", "deviceId", pid}
	return l.count(RoleEvent, columns, func(row []cell) bool {
		e := Event{Corr: orNobody(&row[0]), Event: orNobody(&row[1]), Epoch: orNobody(&row[2]),
			Stream: orNobody(&row[3]), Device: ident(&row[4])}
		if e.Corr < 0 || e.Event < 0 {
			return false
		}
		l.trace.Events, l.eventOf = append(l.trace.Events, e), append(l.eventOf, ownerOf(pid, &row[5]))
		return true
	})
}

// maxAlloc is more memory than one allocation can have, in bytes.
const maxAlloc = 1 << 48

// loadGraphsMade reads when executable graphs were made. Graphs that nobody can launch have no executable id.
func (l *shortTables) loadGraphsMade() error {
	made := &l.trace.GraphsMade
	err := l.count(RoleGraphMade, []string{"start", "graphExecId"}, func(row []cell) bool {
		start, ok := row[0].Whole()
		ok = ok && sound(start, start)
		if ok && orNone(&row[1]) > 0 {
			*made = append(*made, start)
		}
		return ok
	})
	slices.Sort(*made)
	return err
}

// loadHostCalls reads what the functions that the host ran for a stream are called.
func (l *shortTables) loadHostCalls() error {
	names := map[HostFunc]string{}
	l.trace.HostFuncNames = names
	return l.count(RoleHostCall, []string{"globalTid", "correlationId", "nameId"}, func(row []cell) bool {
		thread, ok1 := row[0].Whole()
		corr, ok2 := row[1].Whole()
		name, ok3 := l.text(&row[2])
		if ok1 && ok2 && ok3 {
			names[HostFunc{thread &^ tidBits, corr}] = strings.Clone(name)
		}
		return ok1 && ok2
	})
}
