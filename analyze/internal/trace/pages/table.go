package pages

import (
	"fmt"
	"slices"
	"strings"
)

// Table describes an ordinary table: one with rowids whose columns are all stored and have no defaults. A record may
// end before a column that was added after it was written, which then reads as NULL.
type Table struct {
	Name    string
	Root    uint32
	Columns []Column
}

// Column is a stored column, in the order of the record.
type Column struct {
	Name  string
	RowID bool // another name of the rowid (INTEGER PRIMARY KEY); records hold NULL
	Text  bool // numbers are stored as text
	Needs bool // NOT NULL
	// Real means that integers are to be read as floats: SQLite stores whole numbers of a REAL column as integers.
	Real bool
}

// NewColumn describes a column from SQLite's table_xinfo: its name and declared type, which gives its affinity
// (https://www.sqlite.org/datatype3.html, section 3.1).
func NewColumn(name, declared string) Column {
	c, d := Column{Name: name}, strings.ToUpper(declared)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(d, w) })
	}
	switch {
	case has("INT"):
	case has("CHAR", "CLOB", "TEXT"):
		c.Text = true
	case has("BLOB"):
	default:
		c.Real = has("REAL", "FLOA", "DOUB")
	}
	return c
}

// Numbers that stand for no stored column.
const (
	rowidColumn = -1
	nullColumn  = -2
)

// find returns the indexes of columns by name, as SQLite finds them: ignoring case, with "rowid" for the rowid if no
// column has that name. An empty name means no column, which reads as NULL.
func (t *Table) find(names []string) ([]int, error) {
	list := make([]int, len(names))
	for i, name := range names {
		list[i] = nullColumn
		if name == "" {
			continue
		}
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return strings.EqualFold(c.Name, name) })
		switch {
		case at >= 0 && !t.Columns[at].RowID:
			list[i] = at
		case at >= 0 || strings.EqualFold(name, "rowid"):
			list[i] = rowidColumn
		default:
			return nil, fmt.Errorf("table %s has no column %s", t.Name, name)
		}
	}
	return list, nil
}
