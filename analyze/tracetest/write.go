package tracetest

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// WriteTB writes the export to a fresh temporary directory of the test and returns its path. It ends the test on an
// error.
func (b *Builder) WriteTB(tb testing.TB) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "trace.sqlite")
	if err := b.Write(path); err != nil {
		tb.Fatalf("write synthetic trace: %v", err)
	}
	return path
}

// Write writes the export to path, replacing what is there. It returns every error that building met.
func (b *Builder) Write(path string) error {
	if b.err != nil {
		return b.err
	}
	p, err := b.plan()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tracetest")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return p.writeFile(filepath.Join(dir, "trace.sqlite"), path)
}

// writeFile builds the database at tmp and copies it to path while it is still open, so that a write-ahead log is kept.
func (p *plan) writeFile(tmp, path string) (err error) {
	db, err := sql.Open("sqlite", tmp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if err := p.run(db); err != nil {
		return err
	}
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(tmp + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if len(data) == 0 { // no log: leave none from an earlier file either
			if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			continue
		}
		if err := os.WriteFile(path+suffix, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run fills the database: pragmas, tables, the rows in one transaction (two with a write-ahead log), views.
func (p *plan) run(db *sql.DB) error {
	journal := "MEMORY"
	if p.opts.wal {
		journal = "WAL"
	}
	pragmas := []string{
		fmt.Sprintf("PRAGMA page_size = %d", p.opts.pageSize),
		fmt.Sprintf("PRAGMA auto_vacuum = %d", p.opts.autoVacuum),
		"PRAGMA synchronous = OFF",
	}
	if p.opts.utf16 {
		pragmas = append(pragmas, "PRAGMA encoding = 'UTF-16le'")
	}
	pragmas = append(pragmas, "PRAGMA journal_mode = "+journal, "PRAGMA wal_autocheckpoint = 0")
	for _, q := range append(pragmas, p.ddl...) {
		if _, err := db.Exec(q); err != nil {
			return fmt.Errorf("%s: %w", firstLine(q), err)
		}
	}
	if !p.opts.wal {
		return p.insert(db, p.rows)
	}
	half := len(p.rows) / 2
	if err := p.insert(db, p.rows[:half]); err != nil {
		return err
	}
	if _, err := db.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	return p.insert(db, p.rows[half:])
}

// insert writes rows in one transaction, in order.
func (p *plan) insert(db *sql.DB, rows []planRow) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	stmts := make([]*sql.Stmt, len(p.tables))
	for _, r := range rows {
		t := p.tables[r.table]
		if stmts[r.table] == nil {
			q := fmt.Sprintf("INSERT INTO %s VALUES (%s)", quote(t.name),
				strings.TrimSuffix(strings.Repeat("?,", len(t.columns)), ","))
			if stmts[r.table], err = tx.Prepare(q); err != nil {
				return err
			}
			defer stmts[r.table].Close()
		}
		if _, err := stmts[r.table].Exec(r.args()...); err != nil {
			return fmt.Errorf("row of %s: %w", t.name, err)
		}
	}
	return tx.Commit()
}

// args are the row's values as database/sql takes them.
func (r planRow) args() []any {
	args := make([]any, len(r.values))
	for i, v := range r.values {
		switch v.kind {
		case kindInt:
			args[i] = v.i
		case kindReal:
			args[i] = v.f
		case kindText, kindID:
			args[i] = v.s
		case kindBlob:
			args[i] = []byte(v.s)
		case kindNull:
		}
	}
	return args
}

// create is the statement that creates the table.
func (t *tableDef) create() string {
	cols := make([]string, len(t.columns))
	for i, c := range t.columns {
		cols[i] = "    " + quote(c.name) + " " + c.decl
		if c.notNull {
			cols[i] += " NOT NULL"
		}
		if c.primary {
			cols[i] += " PRIMARY KEY"
		}
	}
	return fmt.Sprintf("CREATE TABLE %s (\n%s\n)", quote(t.name), strings.Join(cols, ",\n"))
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// startOf is the time a row is ordered by: its start or time stamp, or the least time where it has none.
func startOf(r Row) int64 {
	for _, c := range [...]string{"start", "timestamp", "startedAt", "openedAt"} {
		if t, ok := r[c].AsInt(); ok {
			return t
		}
	}
	return Open
}

func byStart(a, b entry) int { return cmp.Compare(startOf(a.row), startOf(b.row)) }
