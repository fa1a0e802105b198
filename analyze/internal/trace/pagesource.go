package trace

import (
	"os"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// pageSource reads plain tables from the file's pages and leaves everything else to SQLite: the schema, single rows,
// and tables that are made in an unusual way.
type pageSource struct {
	*sqlSource
	f     *os.File
	pages *pages.File
	plain map[string]*pages.Table
}

// openPages opens path for reading by pages, beside sql. A file that only SQLite can read gives pages.ErrUnusual.
func openPages(path string, sql *sqlSource) (*pageSource, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		var p *pages.File
		if p, err = pages.Open(f, info.Size()); err == nil {
			return &pageSource{sqlSource: sql, f: f, pages: p, plain: map[string]*pages.Table{}}, nil
		}
	}
	f.Close()
	return nil, err
}

// closePages ends reading by pages; SQLite goes on.
func (s *pageSource) closePages() error { return s.f.Close() }

func (s *pageSource) Close() error {
	err := s.sqlSource.Close()
	if e := s.f.Close(); err == nil {
		err = e
	}
	return err
}

func (s *pageSource) Tables() ([]tableInfo, error) {
	list, err := s.sqlSource.Tables()
	for i := range list {
		s.plain[list[i].Name] = list[i].plain
	}
	return list, err
}

func (s *pageSource) Scan(table string, columns []string, each func(row []cell) error) error {
	if t := s.plain[table]; t != nil {
		return s.pages.Rows(t, columns, func(row []cell) error {
			for i := range row {
				row[i].S = strings.Clone(row[i].S) // which is a view of the page
			}
			return each(row)
		})
	}
	return s.sqlSource.Scan(table, columns, each)
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

// column takes a row of table_xinfo: name, type, dflt_value, pk, hidden.
func (s *shape) column(row []cell) {
	declared := strings.ToUpper(row[1].S)
	switch declared {
	case "DATE", "DATETIME", "TIMESTAMP": // the driver reads these its own way
		s.odd = true
	}
	s.odd = s.odd || row[4].Bits != 0 // generated, or hidden in a virtual table
	if row[3].Bits > 0 {
		s.keys = append(s.keys, len(s.columns))
		s.integer = declared == "INTEGER"
	}
	s.columns = append(s.columns, pages.NewColumn(row[0].S, declared, row[2].S))
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
