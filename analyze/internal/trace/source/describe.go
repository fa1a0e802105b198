package source

import "github.com/nsys-llm/explain/analyze/internal/trace/pages"

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
