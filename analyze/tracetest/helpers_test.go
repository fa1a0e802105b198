package tracetest

import (
	"database/sql"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// open opens a written file, and checks that SQLite finds it sound.
func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if got := texts(t, db, "PRAGMA integrity_check"); len(got) != 1 || got[0] != "ok" {
		t.Fatalf("integrity_check: %q", got)
	}
	return db
}

// querier is a database or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
}

// texts is the first column of a query's rows; NULL is "NULL".
func texts(t *testing.T, db querier, query string, args ...any) []string {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s sql.NullString
		if err := rows.Scan(&s); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if !s.Valid {
			s.String = "NULL"
		}
		out = append(out, s.String)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

// text is the one value that a query gives.
func text(t *testing.T, db querier, query string, args ...any) string {
	t.Helper()
	got := texts(t, db, query, args...)
	if len(got) != 1 {
		t.Fatalf("%s: %d rows", query, len(got))
	}
	return got[0]
}

// dump is everything a database holds, a line per row, tables in the order of the file.
func dump(t *testing.T, path string) string {
	t.Helper()
	db := open(t, path)
	e := &editor{}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	e.tx = tx
	if err := e.load(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, s := range texts(t, tx, "SELECT sql FROM sqlite_master ORDER BY rowid") {
		out.WriteString(s + "\n")
	}
	for _, table := range e.tables {
		err := e.each(table, func(_ int64, r Row) error {
			out.WriteString(table)
			for _, c := range e.columns[table] {
				out.WriteString("|" + show(r[c]))
			}
			out.WriteString("\n")
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

// show is a value with its type.
func show(v Value) string {
	switch v.kind {
	case kindInt:
		return strconv.FormatInt(v.i, 10)
	case kindReal:
		return strconv.FormatFloat(v.f, 'g', -1, 64) + "f"
	case kindText:
		return strconv.Quote(v.s)
	case kindID:
		return "id of " + strconv.Quote(v.s)
	case kindNull:
		return "NULL"
	default:
		return "?"
	}
}

// realTrace is the path of a real export, kept beside the repository where there is room for it; it skips the test where
// there is none.
func realTrace(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(moduleRoot(t), "..", "shared", "traces", name+".sqlite")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no real trace %s beside the repository", name)
	}
	return path
}

// moduleRoot is the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
