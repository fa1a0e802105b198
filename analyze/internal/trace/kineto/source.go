package kineto

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

type cell = pages.Cell

const blobKind = pages.Blob

func integer(v int64) cell { return pages.IntCell(v) }
func text(s string) cell   { return pages.TextCell(s) }

// known is NULL for what is -1.
func known(v int64) cell {
	if v < 0 {
		return cell{}
	}
	return integer(v)
}

// Columns of the tables of events: start, end and correlation id come first, then those of the shape. The process of GPU
// work follows from the correlation id.
const fixedColumns = 4

var columns = map[string][]string{
	"CUPTI_ACTIVITY_KIND_KERNEL": {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId",
		"demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
		"graphNodeId"},
	"CUPTI_ACTIVITY_KIND_MEMCPY": {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "bytes",
		"copyKind", "srcKind", "dstKind"},
	"CUPTI_ACTIVITY_KIND_MEMSET":  {"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId", "bytes"},
	"CUPTI_ACTIVITY_KIND_RUNTIME": {"start", "end", "correlationId", "", "globalTid", "nameId"},
	"NVTX_EVENTS":                 {"start", "end", "", "", "globalTid", "textId", "binaryData", "domainId"},
	"PROFILER_OVERHEAD":           {"start", "end", "", "", "globalTid", "nameId"},
	"python_function":             {"start", "end", "", ""},
	"cuda_sync":                   {"start", "end", "", ""},
}

// payloadDomain is the NVTX domain of all payloads.
const payloadDomain = 1

// plainColumns are those of tables without times.
var plainColumns = map[string][]string{
	"StringIds":                      {"id", "value"},
	"NVTX_PAYLOAD_SCHEMA_ENTRIES":    {"domainId", "schemaId", "type", "name", "offset"},
	"ThreadNames":                    {"nameId", "globalTid"},
	"PROCESSES":                      {"globalPid", "name"},
	"TARGET_INFO_GPU":                {"id", "cuDevice", "name", "smCount", "totalMemory", "computeMajor", "computeMinor"},
	"TARGET_INFO_SYSTEM_ENV":         {"name", "value"},
	"TARGET_INFO_SESSION_START_TIME": {"utcEpochNs"},
}

// table holds rows as times, correlation id and a shape: what repeats is kept once.
type table struct {
	name    string
	columns []string
	rows    []row
	shapes  [][]cell
	index   map[string]int32
	key     []byte
	owner   func(correlation int64) cell // of GPU work
}

type row struct {
	start, length, correlation int64
	shape                      int32
}

func (t *table) add(start, length, correlation int64, shape []cell) {
	t.key = t.key[:0]
	for i := range shape {
		t.key = append(t.key, byte(shape[i].Kind))
		for v := uint64(shape[i].Bits); ; v >>= 7 {
			t.key = append(t.key, byte(v)|0x80)
			if v < 0x80 {
				break
			}
		}
		t.key = append(append(t.key, shape[i].S...), 0)
	}
	at, ok := t.index[string(t.key)]
	if !ok {
		at = int32(len(t.shapes))
		t.index[string(t.key)] = at
		t.shapes = append(t.shapes, slices.Clone(shape))
	}
	t.rows = append(t.rows, row{start, length, correlation, at})
}

// cell is the value of a column of a row, by the place of the column; -1 is one that there is not, and len(columns) the
// rowid.
func (t *table) cell(i, column int) cell {
	r := &t.rows[i]
	switch {
	case column < 0:
		return cell{}
	case column == len(t.columns):
		return integer(int64(i + 1))
	case column == 0 && t.columns[0] == "start":
		return integer(r.start)
	case column == 1 && t.columns[1] == "end":
		return integer(r.start + r.length)
	case column == 2 && t.columns[2] == "correlationId":
		return known(r.correlation)
	case column == 3 && t.columns[3] == "globalPid":
		return t.owner(r.correlation)
	case t.columns[column] == "domainId" && t.name == "NVTX_EVENTS":
		return integer(payloadDomain)
	}
	return t.shapes[r.shape][column-t.first()]
}

// first is where the columns of the shape begin.
func (t *table) first() int {
	if t.columns[0] == "start" {
		return fixedColumns
	}
	return 0
}

// Source serves a trace as tables of an export.
type Source struct {
	tables map[string]*table
}

var _ source.Source = (*Source)(nil)

func (s *Source) plain(name string, cells ...cell) {
	t := s.tables[name]
	if t == nil {
		t = &table{name: name, columns: plainColumns[name]}
		s.tables[name] = t
	}
	t.shapes = append(t.shapes, cells)
	t.rows = append(t.rows, row{shape: int32(len(t.shapes) - 1)})
}

// Empty reports whether the trace holds no event that is read.
func (s *Source) Empty() bool {
	for _, name := range []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
		"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"} {
		if s.tables[name] != nil {
			return false
		}
	}
	return true
}

// Tables lists the tables by name.
func (s *Source) Tables() ([]source.Table, error) {
	var list []source.Table
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		var columns []string
		for _, c := range s.tables[name].columns {
			if c != "" {
				columns = append(columns, c)
			}
		}
		list = append(list, source.Table{Name: name, Columns: columns})
	}
	return list, nil
}

// places are where the named columns are in a table.
func (s *Source) places(name string, columns []string) (*table, []int, error) {
	t := s.tables[name]
	if t == nil {
		return nil, nil, fmt.Errorf("no table %s", name)
	}
	places := make([]int, len(columns))
	for i, c := range columns {
		places[i] = slices.IndexFunc(t.columns, func(own string) bool { return own != "" && strings.EqualFold(own, c) })
		if c == "rowid" {
			places[i] = len(t.columns)
		}
	}
	return t, places, nil
}

// Scan calls each for every row, in the order of the file.
func (s *Source) Scan(name string, columns []string, each func(row []pages.Cell) error) error {
	t, places, err := s.places(name, columns)
	if err != nil {
		return err
	}
	cells := make([]cell, len(columns))
	for i := range t.rows {
		for k, at := range places {
			cells[k] = t.cell(i, at)
		}
		if err := each(cells); err != nil {
			return err
		}
	}
	return nil
}

// Fetch reads single rows by number, from 1 on.
func (s *Source) Fetch(name string, columns []string, rows []int64, each func(row int64, cells []pages.Cell) error) error {
	t, places, err := s.places(name, columns)
	if err != nil {
		return err
	}
	cells := make([]cell, len(columns))
	for _, id := range rows {
		if id < 1 || id > int64(len(t.rows)) {
			continue
		}
		for k, at := range places {
			cells[k] = t.cell(int(id-1), at)
		}
		if err := each(id, cells); err != nil {
			return err
		}
	}
	return nil
}

// Close has nothing to release.
func (s *Source) Close() error { return nil }
