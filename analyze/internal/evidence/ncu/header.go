package ncu

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// layout is which of ncu's pages a header line begins.
type layout byte

const (
	noHeader layout = iota
	raw             // wide: a column per metric, a row per launch, units in the row below the header
	details         // long: a row per launch and metric
	summary         // --print-summary: per kernel, no launches
)

// header is the first line of a page, and the meaning of its columns.
type header struct {
	layout    layout
	separator byte
	quoted    bool // fields stand in quotes
	columns   []string
	units     []scale // of the columns of a raw page, from its units row or from the header itself
	unitsRead bool    // from a row
	unitsSaid bool    // by the names of columns, of more than shares
	used      []int   // columns of a raw page that a launch takes something from

	id, pid, program, kernel, block, grid, device, cc int // columns, -1 if absent
	section, item, metric, unit, value                int // of a details page
}

func parseHeader(line string) *header {
	if !strings.Contains(line, "Kernel Name") && !strings.HasPrefix(line, `"ID"`) && !strings.HasPrefix(line, "ID") {
		return nil
	}
	for _, separator := range []byte{',', ';', '\t'} {
		columns, open := file.Split(line, separator, nil)
		if open || len(columns) < 3 {
			continue
		}
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		h := &header{separator: separator, quoted: line[0] == '"', columns: columns}
		if h.find() {
			return h
		}
	}
	return nil
}

// find names the columns, and reports whether they are those of a page.
func (h *header) find() bool {
	at := map[string]int{}
	metrics := 0
	for i, c := range h.columns {
		if _, ok := at[c]; !ok {
			at[c] = i
		}
		if isMetric(c) {
			metrics++
		}
	}
	column := func(names ...string) int {
		for _, n := range names {
			if i, ok := at[n]; ok {
				return i
			}
		}
		return -1
	}
	h.id, h.pid, h.program, h.kernel = column("ID"), column("Process ID"), column("Process Name"),
		column("Kernel Name", "Name")
	h.block, h.grid, h.device, h.cc = column("Block Size"), column("Grid Size"), column("Device"), column("CC")
	h.section, h.item = column("Section Name"), column("Body Item Label")
	h.metric, h.unit, h.value = column("Metric Name"), column("Metric Unit"), column("Metric Value")
	switch {
	case h.kernel < 0:
	case h.metric >= 0 && h.value >= 0:
		h.layout = details
	case column("Invocations") >= 0 && h.metric >= 0 && column("Average") >= 0:
		h.layout = summary
	case h.id >= 0 && metrics > 0:
		h.layout = raw
		h.units = make([]scale, len(h.columns))
		for i, c := range h.columns {
			h.columns[i], h.units[i] = cutUnit(c)
			h.unitsSaid = h.unitsSaid || h.units[i].dim != none && h.units[i].dim != ratio
			if isUsed(h.columns[i]) {
				h.used = append(h.used, i)
			}
		}
		if h.device < 0 {
			h.device = column("launch__device_id", attribute+"device_index")
		}
	}
	return h.layout != noHeader
}

// mayStart reports whether a row can start with c: most lines that a program prints between rows cannot.
func (h *header) mayStart(c byte) bool {
	number := '0' <= c && c <= '9'
	switch {
	case h.quoted:
		return number || c == '"'
	case h.id == 0 || h.pid == 0:
		return number || c == '"' || c == h.separator
	}
	return true
}

// isMetric reports whether a column's name is a metric: unit__quantity.
func isMetric(s string) bool {
	i := strings.Index(s, "__")
	return i > 0 && i+2 < len(s) && !strings.ContainsAny(s[:i], " <>(:")
}

// isUsed reports whether a launch takes something from a column of a raw page.
func isUsed(metric string) bool {
	return counterOf(metric).name != "" || len(named[metric]) > 0 || metric == "launch__grid_dim_x" ||
		metric == "launch__block_dim_x"
}

// isPercent reports whether a metric's name says that it is a percentage.
func isPercent(metric string) bool {
	return strings.Contains(metric, ".pct") || strings.HasSuffix(metric, "_pct") || strings.HasSuffix(metric, "[%]")
}

// cutUnit takes a unit in brackets from a column's name.
func cutUnit(s string) (metric string, u scale) {
	if head, tail, ok := strings.Cut(s, " ["); ok && strings.HasSuffix(tail, "]") {
		return head, parseUnit(strings.TrimSuffix(tail, "]"))
	}
	return s, scale{}
}

// readUnits takes the units of a raw page from the row below the header.
func (h *header) readUnits(fields []string) {
	h.unitsRead = true
	for i := range min(len(fields), len(h.units)) {
		if fields[i] != "" {
			h.units[i] = parseUnit(fields[i])
		}
	}
}

// isUnits reports whether a row of a raw page is its units row: it belongs to no launch and no kernel.
func (h *header) isUnits(fields []string) bool {
	return h.layout == raw && !h.unitsRead && cell(fields, h.id) == "" && cell(fields, h.kernel) == ""
}

// cell is the i-th field, empty if the row ends before it or the column does not exist.
func cell(fields []string, i int) string {
	if i < 0 || i >= len(fields) {
		return ""
	}
	return strings.TrimSpace(fields[i])
}

// process is the number of the process of a row; 0 if the page does not say.
func (h *header) process(fields []string) int64 {
	pid, err := strconv.ParseInt(cell(fields, h.pid), 10, 64)
	if err != nil {
		return 0
	}
	return pid
}

// maxJoin is how many lines one record with line breaks in quotes may span.
const maxJoin = 64

func valid(line []byte) string { return string(bytes.ToValidUTF8(line, []byte("\uFFFD"))) }
