package pages

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Table describes an ordinary table: one with rowids whose columns are all stored.
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
	// Default is the value for records written before the column was added; nil: unknown.
	Default *Cell
}

// affinity is that of a column, by its declared type (https://www.sqlite.org/datatype3.html, section 3.1).
type affinity uint8

const (
	numeric affinity = iota
	integer
	real
	text
	none
)

func affinityOf(declared string) affinity {
	d := strings.ToUpper(declared)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(d, w) })
	}
	switch {
	case has("INT"):
		return integer
	case has("CHAR", "CLOB", "TEXT"):
		return text
	case d == "" || has("BLOB"):
		return none
	case has("REAL", "FLOA", "DOUB"):
		return real
	}
	return numeric
}

// NewColumn describes a column from SQLite's table_xinfo: its name, declared type and the text of its default (empty:
// none).
func NewColumn(name, declared, preset string) Column {
	a := affinityOf(declared)
	return Column{Name: name, Real: a == real, Text: a == text, Default: literal(preset, a)}
}

// literal returns the value of a default if it is a plain number or text that the column's affinity does not change.
func literal(preset string, a affinity) *Cell {
	preset = strings.TrimSpace(preset)
	if preset == "" || strings.EqualFold(preset, "null") {
		return &Cell{}
	}
	if v, err := strconv.ParseInt(preset, 10, 64); err == nil && (a == integer || a == numeric || a == none) {
		return new(IntCell(v))
	}
	if n := len(preset); n >= 2 && preset[0] == '\'' && preset[n-1] == '\'' && (a == text || a == none) {
		inner := preset[1 : n-1]
		if s := strings.ReplaceAll(inner, "''", ""); !strings.Contains(s, "'") {
			return new(TextCell(strings.ReplaceAll(inner, "''", "'")))
		}
	}
	return nil
}

// Numbers that stand for no stored column.
const (
	rowidColumn = -1
	nullColumn  = -2
)

// find returns the indexes of columns by name, as SQLite finds them: ignoring the case of ASCII letters, with "rowid"
// for the rowid if no column has that name. An empty name means no column, which reads as NULL.
func (t *Table) find(names []string) ([]int, error) {
	list := make([]int, len(names))
	for i, name := range names {
		list[i] = nullColumn
		if name == "" {
			continue
		}
		at := slices.IndexFunc(t.Columns, func(c Column) bool { return asciiFold(c.Name) == asciiFold(name) })
		switch {
		case at >= 0 && !t.Columns[at].RowID:
			list[i] = at
		case at >= 0 || asciiFold(name) == "rowid":
			list[i] = rowidColumn
		default:
			return nil, fmt.Errorf("table %s has no column %s", t.Name, name)
		}
	}
	return list, nil
}

func asciiFold(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}
