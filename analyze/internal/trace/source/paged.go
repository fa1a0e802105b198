package source

import (
	"errors"
	"os"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// Paged reads plain tables from the file's pages and leaves everything else to SQLite: the schema, and tables that are
// made in an unusual way.
type Paged struct {
	*SQL
	Pages *pages.File
	f     *os.File
}

// openPages opens path for reading by pages, beside sql. A file that only SQLite can read gives pages.ErrUnusual.
func openPages(path string, sql *SQL) (*Paged, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var p *pages.File
		if p, err = pages.Open(f, info.Size()); err == nil {
			return &Paged{SQL: sql, Pages: p, f: f}, nil
		}
	}
	f.Close()
	return nil, err
}

// Close ends reading.
func (s *Paged) Close() error {
	return errors.Join(s.SQL.Close(), s.f.Close())
}

// Scan reads a plain table from its pages, and copies a row's texts, which are views of a page.
func (s *Paged) Scan(table Table, columns []string, each func(row []pages.Cell) error) error {
	if table.Plain == nil {
		return s.SQL.Scan(table, columns, each)
	}
	return s.Pages.Rows(table.Plain, columns, func(row []pages.Cell) error {
		for i := range row {
			row[i].S = strings.Clone(row[i].S)
		}
		return each(row)
	})
}

// shape is what SQLite says of how a table is made.
type shape struct {
	root    int64
	sql     string // upper case
	columns []pages.Column
	keys    []int // columns of the primary key
	integer bool  // the last of them is declared INTEGER
	odd     bool  // made in a way that SQLite itself must read
}

// column takes a row of table_xinfo: name, type, dflt_value, pk, hidden, notnull.
func (s *shape) column(row []pages.Cell) {
	declared := strings.ToUpper(row[1].S)
	switch declared {
	case "DATE", "DATETIME", "TIMESTAMP": // the driver reads these its own way
		s.odd = true
	}
	s.odd = s.odd || row[2].Kind != pages.Null // a default, which records may lack
	s.odd = s.odd || row[4].Bits != 0          // generated, or hidden in a virtual table
	if row[3].Bits > 0 {
		s.keys = append(s.keys, len(s.columns))
		s.integer = declared == "INTEGER"
	}
	c := pages.NewColumn(row[0].S, declared)
	c.Needs = row[5].Bits != 0
	s.columns = append(s.columns, c)
}

// table is the table as pages read it, or nil.
func (s *shape) table(name string) *pages.Table {
	if s.odd || s.root < 2 || s.root > 1<<32-1 || len(s.columns) == 0 {
		return nil
	}
	if len(s.keys) == 1 && s.integer {
		if strings.Contains(s.sql, "DESC") { // INTEGER PRIMARY KEY DESC is not the rowid, and telling takes a parser
			return nil
		}
		s.columns[s.keys[0]].RowID = true
	}
	return &pages.Table{Name: name, Root: uint32(s.root), Columns: s.columns}
}
