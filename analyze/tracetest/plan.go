package tracetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
)

// plan is a file ready to be written: statements that create its tables, and its rows in order.
type plan struct {
	opts   options
	ddl    []string
	tables []tableDef
	rows   []planRow
}

type planRow struct {
	table  int // index into plan.tables
	values []Value
}

// plan lays the builder's content out for its schema version and options. It leaves the builder as it is.
func (b *Builder) plan() (*plan, error) {
	entries := b.withDerived()
	if b.opts.shuffle {
		rng := rand.New(rand.NewPCG(b.opts.seed, 0))
		rng.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	} else {
		slices.SortStableFunc(entries, byStart)
	}
	strs := b.strings(entries)
	entries = append(strs.entries(b.opts), entries...)

	p := &plan{opts: b.opts}
	index, err := b.planTables(p, entries)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		i, ok := index[e.table]
		if !ok {
			continue
		}
		t := &p.tables[i]
		values, usual := make([]Value, len(t.columns)), usual[e.table]
		for c, col := range t.columns {
			v, ok := e.row[col.name]
			if !ok {
				v = usual[col.name]
			}
			values[c] = strs.resolve(v, b.opts.inline)
			if values[c].IsNull() {
				t.columns[c].notNull = false
			}
			if v.kind == kindID && b.opts.inline {
				t.columns[c].decl = "TEXT"
			}
		}
		p.rows = append(p.rows, planRow{i, values})
	}
	p.finishDDL()
	return p, nil
}

// planTables chooses the tables of the file, those with rows in the order of the schema, and returns their places by
// name.
func (b *Builder) planTables(p *plan, entries []entry) (map[string]int, error) {
	used := map[string]Row{}
	var order []string
	for _, e := range entries {
		row := used[e.table]
		if row == nil {
			row = Row{}
			used[e.table] = row
			order = append(order, e.table)
		}
		free := !knownAnywhere(e.table, "")
		for name, v := range e.row {
			if _, ok := row[name]; !ok || free { // of a table that no schema has, the last row says what is in it
				row[name] = v
			}
		}
	}
	for _, t := range b.opts.empty {
		if used[t] == nil {
			used[t] = Row{}
			order = append(order, t)
		}
	}
	defs := slices.Clone(b.tables)
	for _, e := range enumTables {
		defs = append(defs, tableDef{e.name, []column{{name: "id", decl: "INTEGER", notNull: true, primary: true},
			{name: "name", decl: "TEXT"}, {name: "label", decl: "TEXT"}}})
	}
	for _, name := range order {
		if b.table(name) == nil && !knownAnywhere(name, "") {
			defs = append(defs, freeTable(name, used[name]))
		}
	}
	index := map[string]int{}
	for _, t := range defs {
		row, ok := used[t.name]
		if !ok || slices.Contains(b.opts.withoutTabs, t.name) {
			continue
		}
		cols := slices.DeleteFunc(slices.Clone(t.columns), func(c column) bool {
			return b.opts.dropped(t.name, c.name)
		})
		for _, x := range b.opts.extra {
			if x.table == t.name {
				cols = append(cols, column{name: x.column, decl: x.decl})
			}
		}
		for name := range row {
			known := knownAnywhere(t.name, name) || slices.ContainsFunc(cols, func(c column) bool {
				return c.name == name
			})
			if !known && !b.opts.dropped(t.name, name) {
				return nil, fmt.Errorf("table %s has no column %s in any schema: add it with WithColumn", t.name, name)
			}
		}
		index[t.name] = len(p.tables)
		p.tables = append(p.tables, tableDef{name: t.name, columns: cols})
	}
	return index, nil
}

// knownAnywhere says whether some schema version has the table and, unless col is empty, the column.
func knownAnywhere(table, col string) bool {
	cols, ok := everyColumn()[table]
	return ok && (col == "" || cols[col])
}

// everyColumn has the columns of every table over all schema versions.
var everyColumn = sync.OnceValue(func() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, e := range enumTables {
		all[e.name] = map[string]bool{"id": true, "name": true, "label": true}
	}
	var cols map[string]bool
	for line := range strings.Lines(tableSpecs) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0:
		case line[0] != ' ':
			cols = map[string]bool{}
			all[fields[0]] = cols
		default:
			for _, f := range fields {
				cols[f[:strings.IndexAny(f+":", ":!*@<")]] = true
			}
		}
	}
	return all
})

// freeTable is a table no schema knows, made from a row that has all of its columns.
func freeTable(name string, row Row) tableDef {
	t := tableDef{name: name}
	for _, c := range slices.Sorted(maps.Keys(row)) {
		decl := "INTEGER"
		switch row[c].kind {
		case kindText:
			decl = "TEXT"
		case kindReal:
			decl = "REAL"
		case kindBlob:
			decl = "BLOB"
		case kindNull, kindInt, kindID:
		}
		t.columns = append(t.columns, column{name: c, decl: decl})
	}
	return t
}

// finishDDL names the tables as the options want and writes the statements that create them.
func (p *plan) finishDDL() {
	for i := range p.tables {
		t := &p.tables[i]
		view := slices.Contains(p.opts.views, t.name)
		for _, r := range p.opts.renames {
			if r.from == t.name {
				t.name = r.to
				break
			}
		}
		public := t.name
		if view {
			t.name += "_data"
		}
		p.ddl = append(p.ddl, t.create())
		if view {
			p.ddl = append(p.ddl, fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM %s", quote(public), quote(t.name)))
		}
	}
}

// stringTable numbers the texts that rows name by id.
type stringTable struct {
	ids   map[string]int64
	texts []string
}

// unknownText is what id 0 stands for in every real export.
const unknownText = "[Unknown]"

// strings numbers the texts in the order the rows were added, which no option changes.
func (b *Builder) strings(entries []entry) *stringTable {
	s := &stringTable{ids: map[string]int64{unknownText: 0}, texts: []string{unknownText}}
	var fresh []string // columns of a row whose texts are new
	add := func(es []entry) {
		for _, e := range es {
			fresh = fresh[:0]
			for c, v := range e.row {
				if _, ok := s.ids[v.s]; v.kind == kindID && !ok {
					fresh = append(fresh, c)
				}
			}
			slices.Sort(fresh)
			for _, c := range fresh {
				if text := e.row[c].s; s.ids[text] == 0 { // which a column before may have numbered
					s.ids[text] = int64(len(s.texts))
					s.texts = append(s.texts, text)
				}
			}
		}
	}
	add(b.rows)
	add(entries)
	return s
}

func (s *stringTable) resolve(v Value, inline bool) Value {
	if v.kind != kindID {
		return v
	}
	if inline {
		return Text(v.s)
	}
	return Int(s.ids[v.s])
}

// entries are the rows of StringIds.
func (s *stringTable) entries(o options) []entry {
	var es []entry
	for i, text := range s.texts {
		if !slices.Contains(o.dangling, text) {
			es = append(es, entry{"StringIds", Row{"id": Int(int64(i)), "value": Text(text)}})
		}
	}
	return es
}
