package kineto

import (
	"fmt"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

type cell = pages.Cell

func integer(v int64) cell { return pages.IntCell(v) }
func text(s string) cell   { return pages.TextCell(s) }

// known is NULL for -1.
func known(v int64) cell {
	if v < 0 {
		return cell{}
	}
	return integer(v)
}

// Tables of events.
const (
	kernels   = "CUPTI_ACTIVITY_KIND_KERNEL"
	copies    = "CUPTI_ACTIVITY_KIND_MEMCPY"
	sets      = "CUPTI_ACTIVITY_KIND_MEMSET"
	apiCalls  = "CUPTI_ACTIVITY_KIND_RUNTIME"
	waits     = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
	records   = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
	ranges    = "NVTX_EVENTS"
	overheads = "PROFILER_OVERHEAD"
	memory    = "CUDA_GPU_MEMORY_USAGE_EVENTS"
)

// fixedColumns are the first columns of tables of events: start, end, correlation id and the process of GPU work, which
// follows from the correlation id. The columns of the shape follow.
const fixedColumns = 4

var columns = map[string][]string{
	kernels: {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId",
		"demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
		"graphNodeId", "graphId", "estimatedOccupancy"},
	copies: {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "bytes",
		"copyKind", "srcKind", "dstKind"},
	sets:     {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "bytes"},
	apiCalls: {"start", "end", "correlationId", "", "globalTid", "nameId"},
	waits:    {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "syncType", "eventId", "eventSyncId"},
	ranges: {"start", "end", "sequenceNumber", "", "globalTid", "textId", "binaryData", "domainId", "eventType",
		"sizesId", "isBackward"},
	pythonTable: {"start", "end", "", "", "globalTid", "nameId"},
	overheads:   {"start", "end", "", "", "globalTid", "nameId"},
	memory: {"start", "", "", "", "globalPid", "deviceId", "bytes", "address", "memoryOperationType", "memKind",
		"localMemoryPoolAddress", "localMemoryPoolSize", "localMemoryPoolUtilizedSize"},
}

// payloadDomain is the NVTX domain of all payloads but Python's.
const payloadDomain = 1

// plainColumns are those of tables without times.
var plainColumns = map[string][]string{
	records:                          {"correlationId", "globalPid", "deviceId", "streamId", "eventId", "eventSyncId"},
	"StringIds":                      {"id", "value"},
	"NVTX_PAYLOAD_SCHEMA_ENTRIES":    {"domainId", "schemaId", "type", "name", "offset"},
	"ThreadNames":                    {"nameId", "globalTid"},
	"PROCESSES":                      {"globalPid", "name"},
	"TARGET_INFO_GPU":                {"id", "cuDevice", "name", "smCount", "totalMemory", "computeMajor", "computeMinor"},
	"TARGET_INFO_SYSTEM_ENV":         {"name", "value"},
	"TARGET_INFO_SESSION_START_TIME": {"utcEpochNs"},
}

// Source serves a trace as tables of an export.
type Source struct {
	tables map[string]*table
	memory *spill.Arena
}

var _ source.Source = (*Source)(nil)

func (s *Source) plain(name string, cells ...cell) {
	t := s.tables[name]
	if t == nil {
		t = &table{columns: plainColumns[name]}
		s.tables[name] = t
	}
	t.shapes = append(t.shapes, cells)
	t.rows++
}

// Empty reports whether the trace holds no event that is read.
func (s *Source) Empty() bool {
	read := []string{kernels, copies, sets, apiCalls, ranges}
	return !slices.ContainsFunc(read, func(name string) bool { return s.tables[name] != nil })
}

// Tables lists the tables by name.
func (s *Source) Tables() ([]source.Table, error) {
	names := slices.Sorted(maps.Keys(s.tables))
	return lists.Map(names, func(name string) source.Table {
		columns := lists.Filter(s.tables[name].columns, func(c string) bool { return c != "" })
		return source.Table{Name: name, Columns: columns}
	}), nil
}

// Rows is how many rows a table has.
func (s *Source) Rows(name string) int { return s.tables[name].rows }

// Release frees the rows of a table that is not read again.
func (s *Source) Release(name string) { s.tables[name].release(s.memory) }

// open makes a cursor, and a function that returns the named columns of its row.
func (s *Source) open(name string, columns []string) (c *cursor, row func() []cell, err error) {
	t := s.tables[name]
	if t == nil {
		return nil, nil, fmt.Errorf("no table %s", name)
	}
	places, cells := lists.Map(columns, t.place), make([]cell, len(columns))
	c = &cursor{t: t}
	return c, func() []cell {
		for i, at := range places {
			cells[i] = c.cell(at)
		}
		return cells
	}, nil
}

// Scan calls each for every row, in the order of the file.
func (s *Source) Scan(table source.Table, columns []string, each func(row []pages.Cell) error) error {
	c, row, err := s.open(table.Name, columns)
	for err == nil && c.next() {
		err = each(row())
	}
	return err
}

// Fetch reads single rows by number, from 1 on.
func (s *Source) Fetch(name string, columns []string, rows []int64, each func(row int64, cells []pages.Cell) error) error {
	c, row, err := s.open(name, columns)
	for _, id := range rows {
		if err != nil {
			break
		}
		if id >= 1 && id <= int64(c.t.rows) {
			c.seek(int(id - 1))
			c.next()
			err = each(id, row())
		}
	}
	return err
}

// Close gives the rows back.
func (s *Source) Close() error { return s.memory.Close() }
