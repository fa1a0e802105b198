package tracetest

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
)

// Window writes a copy of a capture with what began and ended in a window of it. It is false if the capture has no CUDA
// calls or kernels.
func Window(tb testing.TB, path, to string, from, until float64) bool {
	tb.Helper()
	whole, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(to, whole, 0o600)
	}
	if err != nil {
		tb.Fatal(err)
	}
	db, err := sql.Open("sqlite", to)
	if err != nil {
		tb.Fatal(err)
	}
	defer db.Close()
	all := func(query string) (list []string) {
		rows, err := db.Query(query)
		if err != nil {
			tb.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var text string
			if err := rows.Scan(&text); err != nil {
				tb.Fatal(err)
			}
			list = append(list, text)
		}
		return list
	}
	const timed = `SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND 2 =
		(SELECT count(*) FROM pragma_table_info(m.name) c WHERE c.name IN ('start', 'end'))`
	var first, last sql.NullInt64
	for _, table := range all(timed + " AND m.name IN ('CUPTI_ACTIVITY_KIND_KERNEL', 'CUPTI_ACTIVITY_KIND_RUNTIME')") {
		var a, b sql.NullInt64
		if err := db.QueryRow(fmt.Sprintf(`SELECT min(start), max("end") FROM %s`, table)).Scan(&a, &b); err != nil {
			tb.Fatal(err)
		}
		if a.Valid && (!first.Valid || a.Int64 < first.Int64) {
			first = a
		}
		last.Int64 = max(last.Int64, b.Int64)
	}
	length := float64(last.Int64 - first.Int64)
	for _, table := range all(timed) {
		for edge, where := range map[float64]string{from: "start <", until: `coalesce("end", start) >`} {
			if edge == 0 || edge == 1 {
				continue
			}
			query := fmt.Sprintf("DELETE FROM %s WHERE %s %d", table, where, first.Int64+int64(edge*length))
			if _, err := db.Exec(query); err != nil {
				tb.Fatal(err)
			}
		}
	}
	return first.Valid
}
