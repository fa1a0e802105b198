package tracetest

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Edit is one change that [Rewrite] makes.
type Edit struct {
	name  string
	apply func(*editor) error
}

// Rewrite reads the export src, real or synthetic, and writes a copy with the edits, made in order, to dst, replacing
// what is there. src is not changed, and may be dst. Tables and columns an edit needs and src lacks are not an error:
// the edit finds nothing to do there. The same source and edits give the same bytes.
func Rewrite(src, dst string, edits ...Edit) error {
	dir, err := os.MkdirTemp("", "tracetest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tmp := filepath.Join(dir, "trace.sqlite")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(src + suffix)
		if errors.Is(err, os.ErrNotExist) && suffix != "" {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(tmp+suffix, data, 0o600); err != nil {
			return err
		}
	}
	if err := edit(tmp, edits); err != nil {
		return fmt.Errorf("rewrite %s: %w", filepath.Base(src), err)
	}
	data, err := os.ReadFile(tmp)
	if err != nil {
		return err
	}
	if err := os.Remove(dst + "-wal"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(dst, data, 0o644)
}

// edit changes the database at path in place.
func edit(path string, edits []Edit) (err error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"PRAGMA journal_mode = DELETE", "PRAGMA journal_mode = MEMORY",
		"PRAGMA synchronous = OFF"} {
		if _, err := db.Exec(q); err != nil {
			return err
		}
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	e := &editor{tx: tx}
	if err := e.load(); err != nil {
		return err
	}
	for _, ed := range edits {
		if err := ed.apply(e); err != nil {
			return fmt.Errorf("%s: %w", ed.name, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	_, err = db.Exec("VACUUM")
	return err
}

// editor is a database being edited.
type editor struct {
	tx      *sql.Tx
	tables  []string // in the order of the file
	columns map[string][]string
	texts   map[int64]string
	ids     map[string]int64 // the lowest id of each text
	nextID  int64
}

// load reads the tables, their columns, and the string table.
func (e *editor) load() error {
	e.columns, e.tables, e.texts, e.ids, e.nextID = map[string][]string{}, nil, map[int64]string{}, map[string]int64{},
		0
	rows, err := e.tx.Query("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' ORDER BY m.rowid, c.cid")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, col string
		if err := rows.Scan(&table, &col); err != nil {
			return err
		}
		if e.columns[table] == nil {
			e.tables = append(e.tables, table)
		}
		e.columns[table] = append(e.columns[table], col)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return e.each("StringIds", func(_ int64, r Row) error {
		if id, ok := r["id"].AsInt(); ok {
			text, _ := r["value"].AsText()
			e.texts[id] = text
			if _, seen := e.ids[text]; !seen {
				e.ids[text] = id
			}
			e.nextID = max(e.nextID, id+1)
		}
		return nil
	})
}

func (e *editor) has(table, col string) bool { return slices.Contains(e.columns[table], col) }

// each calls fn for every row of a table, in the order of the file. A table that is not there has no rows.
func (e *editor) each(table string, fn func(rowid int64, r Row) error) error {
	return e.some(table, e.columns[table], fn)
}

// some is each, of some columns.
func (e *editor) some(table string, cols []string, fn func(rowid int64, r Row) error) error {
	if len(cols) == 0 {
		return nil
	}
	quoted := make([]string, len(cols))
	for i, c := range cols {
		quoted[i] = quote(c)
	}
	rows, err := e.tx.Query(fmt.Sprintf("SELECT rowid, %s FROM %s ORDER BY rowid", strings.Join(quoted, ", "),
		quote(table)))
	if err != nil {
		return err
	}
	defer rows.Close()
	cells := make([]any, len(cols)+1)
	targets := make([]any, len(cells))
	for i := range cells {
		targets[i] = &cells[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		rowid, _ := cells[0].(int64)
		r := make(Row, len(cols))
		for i, c := range cols {
			r[c] = valueOf(cells[i+1])
		}
		if err := fn(rowid, r); err != nil {
			return err
		}
	}
	return rows.Err()
}

// valueOf is a cell as the driver gives it.
func valueOf(cell any) Value {
	switch v := cell.(type) {
	case int64:
		return Int(v)
	case float64:
		return Real(v)
	case string:
		return Text(v)
	case []byte:
		return Text(string(v))
	default:
		return Null()
	}
}

// change is new values for some columns of a row, or its end.
type change struct {
	rowid  int64
	set    Row
	delete bool
}

// update makes the changes to a table.
func (e *editor) update(table string, changes []change) error {
	stmts := map[string]*sql.Stmt{}
	var key []byte // of a statement: the columns that it sets
	for _, c := range changes {
		key = key[:0]
		var values []Value
		for i, col := range e.columns[table] {
			if v, ok := c.set[col]; ok && !c.delete {
				key, values = append(key, byte(i)), append(values, v)
			}
		}
		if stmts[string(key)] == nil {
			q := fmt.Sprintf("DELETE FROM %s WHERE rowid = ?", quote(table))
			if !c.delete {
				var cols []string
				for _, i := range key {
					cols = append(cols, quote(e.columns[table][i])+" = ?")
				}
				q = fmt.Sprintf("UPDATE %s SET %s WHERE rowid = ?", quote(table), strings.Join(cols, ", "))
			}
			stmt, err := e.tx.Prepare(q)
			if err != nil {
				return err
			}
			defer stmt.Close()
			stmts[string(key)] = stmt
		}
		args, err := e.args(append(values, Int(c.rowid)))
		if err != nil {
			return err
		}
		if _, err := stmts[string(key)].Exec(args...); err != nil {
			return err
		}
	}
	return nil
}

// args gives values to the driver, texts by id through the string table.
func (e *editor) args(values []Value) ([]any, error) {
	for i, v := range values {
		if v.kind == kindID {
			id, err := e.intern(v.s)
			if err != nil {
				return nil, err
			}
			values[i] = Int(id)
		}
	}
	return planRow{values: values}.args(), nil
}

// intern returns the id of a text, which it adds to StringIds if need be.
func (e *editor) intern(text string) (int64, error) {
	if id, ok := e.ids[text]; ok {
		return id, nil
	}
	id := e.nextID
	if _, err := e.tx.Exec("INSERT INTO StringIds (id, value) VALUES (?, ?)", id, text); err != nil {
		return 0, err
	}
	e.texts[id], e.ids[text], e.nextID = text, id, id+1
	return id, nil
}

// text is the text a cell stands for: its own, or that of the id it holds, or "".
func (e *editor) text(v Value) string {
	if id, ok := v.AsInt(); ok {
		return e.texts[id]
	}
	return v.s
}
