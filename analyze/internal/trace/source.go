package trace

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// source reads the rows of one SQLite file. It is the seam between the analyzer and the way the file is read: the
// reference implementation goes through modernc.org/sqlite; what can be read faster from the file's pages is read so
// (pageSource).
type source interface {
	// Tables lists tables and views with their columns in declared order.
	Tables() ([]tableInfo, error)
	// Scan calls each for every row, in rowid order, with one cell per column. The cells and the bytes behind them are
	// valid during the call only. The column "rowid" is always there.
	Scan(table string, columns []string, each func(row []cell) error) error
	// Fetch reads single rows by rowid, in any order. Empty column names read as NULL.
	Fetch(table string, columns []string, rows []int64, each func(row int64, cells []cell) error) error
	Close() error
}

type tableInfo struct {
	Name    string
	Columns []string
	View    bool
	Rowless bool         // it has no rowids: a view, or a table WITHOUT ROWID
	plain   *pages.Table // nil: SQLite itself must read it
}

func (t tableInfo) column(name string) string {
	for _, c := range t.Columns {
		if equalFold(c, name) {
			return c
		}
	}
	return ""
}

// cell is one value of one row.
type cell = pages.Cell

// whole returns a cell as an integer; floats without a fraction and numbers as text count, as some exports were
// rewritten by tools that changed column types.
func whole(c *cell) (int64, bool) {
	if c.Kind == pages.Int {
		return c.Bits, true
	}
	return converted(c)
}

func converted(c *cell) (int64, bool) {
	switch c.Kind {
	case pages.Float:
		if v := int64(c.Float()); float64(v) == c.Float() {
			return v, true
		}
	case pages.Text:
		if v, err := strconv.ParseInt(c.S, 10, 64); err == nil {
			return v, true
		}
	}
	return 0, false
}

func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := 0; i < len(a); i++ {
		x, y := a[i], b[i]
		if 'A' <= x && x <= 'Z' {
			x += 'a' - 'A'
		}
		if 'A' <= y && y <= 'Z' {
			y += 'a' - 'A'
		}
		if x != y {
			return false
		}
	}
	return true
}
