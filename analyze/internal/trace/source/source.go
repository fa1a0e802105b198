// Package source turns the file that a user names into rows: it unpacks and exports what is not a plain SQLite file,
// settles logs that lie beside one, opens it without changing it, and reads its tables through SQLite or, if that is
// faster, from its pages. It knows nothing of what the tables mean.
package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// Source reads the rows of one SQLite file. It is the seam between the analyzer and the way the file is read: [SQL]
// goes through modernc.org/sqlite and reads everything, [Paged] reads plain tables from the file's pages.
type Source interface {
	// Tables lists tables and views with their columns in declared order.
	Tables() ([]Table, error)
	// Scan calls each for every row, in rowid order, with one cell per column. The cells and the bytes behind them are
	// valid during the call only. The column "rowid" is always there.
	Scan(table Table, columns []string, each func(row []pages.Cell) error) error
	// Fetch reads single rows by rowid, in any order. Empty column names read as NULL. Cells are valid during the call;
	// their texts may be kept.
	Fetch(table string, columns []string, rows []int64, each func(row int64, cells []pages.Cell) error) error
	Close() error
}

// Table is a table or view with the names of its columns. Names of columns are compared as SQLite does, in any case.
type Table struct {
	Name    string
	Columns []string
	View    bool
	Rowless bool         // it has no rowids: a view, or a table WITHOUT ROWID
	Plain   *pages.Table // nil: SQLite itself must read it
}

// Column is a column as the table spells it; empty if the table has none of that name.
func (t Table) Column(name string) string {
	for _, c := range t.Columns {
		if strings.EqualFold(c, name) {
			return c
		}
	}
	return ""
}

// First is the first of the columns that the table has, as it spells it, or empty.
func (t Table) First(names ...string) string {
	for _, n := range names {
		if c := t.Column(n); c != "" {
			return c
		}
	}
	return ""
}

// HasAll reports whether the table has all the columns.
func (t Table) HasAll(columns []string) bool {
	return !slices.ContainsFunc(columns, func(c string) bool { return t.Column(c) == "" })
}

// Known are the columns as the table spells them; those that it lacks are empty.
func (t Table) Known(names []string) []string {
	list := make([]string, len(names))
	for i, n := range names {
		if list[i] = t.Column(n); n == "rowid" && list[i] == "" && !t.Rowless {
			list[i] = n
		}
	}
	return list
}

// TableShape is one table or view.
type TableShape struct {
	Name        string
	Rows        int64
	Timed       bool  // it has times
	First, Last int64 // MIN(start) and MAX(end), or MAX(start) without an end
	Columns     []ColumnShape
}

// ColumnShape is one column with its declared type.
type ColumnShape struct{ Name, Type string }

// Describe reads the declared columns of a table, counts its rows and finds its first and last time.
func (s *SQL) Describe(t Table) (TableShape, error) {
	shape := TableShape{Name: t.Name}
	err := s.query(`select "name", "type" from pragma_table_info(`+literal(t.Name)+`) order by "cid"`,
		func(row []pages.Cell) error {
			shape.Columns = append(shape.Columns, ColumnShape{row[0].S, row[1].S})
			return nil
		})
	if err != nil {
		return shape, err
	}
	first, last := t.Column("start"), t.First("end", "start")
	times := ", null, null"
	if first != "" {
		times = ", min(" + Quote(first) + "), max(" + Quote(last) + ")"
	}
	err = s.query("select count(*)"+times+" from "+Quote(t.Name), func(row []pages.Cell) error {
		shape.Rows = row[0].Bits
		var ok1, ok2 bool
		shape.First, ok1 = row[1].Whole()
		shape.Last, ok2 = row[2].Whole()
		shape.Timed = ok1 && ok2
		return nil
	})
	return shape, err
}

// InputError says in one sentence what is wrong with an input file and what to do about it.
type InputError struct {
	File string // the file's own name
	What string // what it is
	Do   string // what to do
	Err  error  // the cause, if there is one
}

func (e *InputError) Error() string {
	s := e.File + ": " + e.What
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *InputError) Unwrap() error { return e.Err }
