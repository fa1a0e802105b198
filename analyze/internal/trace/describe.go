package trace

import "context"

// Description is the schema of a capture: names and numbers, no content.
type Description struct {
	Used   []UsedTable // by role, in a fixed order
	Tables []TableShape
}

// UsedTable says which table plays a role.
type UsedTable struct {
	Role Role
	Name string
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

// Describe opens a file like Open and describes what it holds.
func Describe(ctx context.Context, path string, opt Options) (*Description, error) {
	in := newInput(ctx, path, &opt)
	defer in.cleanup()
	src, err := in.open()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	tables, err := src.Tables()
	if err != nil {
		return nil, in.damaged(err)
	}
	d := &Description{}
	found := probe(tables)
	for _, spec := range roles {
		if t, ok := found[spec.role]; ok {
			d.Used = append(d.Used, UsedTable{spec.role, t.Name})
		}
	}
	for _, t := range tables {
		shape, err := src.describe(t)
		if err != nil {
			return nil, in.damaged(err)
		}
		d.Tables = append(d.Tables, shape)
	}
	return d, nil
}

func (s *sqlSource) describe(t tableInfo) (TableShape, error) {
	shape := TableShape{Name: t.Name}
	err := s.query(`select "name", "type" from pragma_table_info(`+literal(t.Name)+`) order by "cid"`,
		func(row []cell) error {
			shape.Columns = append(shape.Columns, ColumnShape{row[0].S, row[1].S})
			return nil
		})
	if err != nil {
		return shape, err
	}
	first, last := t.column("start"), t.first("end", "start")
	times := ", null, null"
	if first != "" {
		times = ", min(" + quote(first) + "), max(" + quote(last) + ")"
	}
	err = s.query("select count(*)"+times+" from "+quote(t.Name), func(row []cell) error {
		shape.Rows = row[0].Bits
		var ok1, ok2 bool
		shape.First, ok1 = whole(&row[1])
		shape.Last, ok2 = whole(&row[2])
		shape.Timed = ok1 && ok2
		return nil
	})
	return shape, err
}
