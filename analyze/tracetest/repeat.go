package tracetest

import (
	"fmt"
	"slices"
	"strings"
)

// Repeat makes times captures out of one, for benchmarks: every event row comes times times, each time a period later,
// with fresh correlation ids and a fresh number behind the text of an NVTX range, as PyTorch's emit_nvtx has one. Rows
// of one period stand together, so that tables interleave in the file.
func Repeat(times int) Edit {
	return Edit{"repeat", func(e *editor) error {
		type events struct {
			table string
			rows  int64
		}
		var list []events
		var first, last, corr, rows int64
		for _, table := range e.tables {
			clock := e.clock(table)
			if clock == "" {
				continue
			}
			end := clock
			if e.has(table, "end") {
				end = "max(coalesce(" + quote(clock) + ", 0), coalesce(end, 0))"
			}
			var n, from, to int64
			q := fmt.Sprintf("SELECT count(*), coalesce(min(%s), 0), coalesce(max(%s), 0) FROM %s", quote(clock), end,
				quote(table))
			if err := e.tx.QueryRow(q).Scan(&n, &from, &to); err != nil {
				return err
			}
			if n == 0 {
				continue
			}
			if len(list) == 0 || from < first {
				first = from
			}
			if len(list) == 0 || to > last {
				last = to
			}
			list, rows = append(list, events{table, n}), max(rows, n)
			if e.has(table, "correlationId") {
				var most int64
				q := "SELECT coalesce(max(correlationId), 0) FROM " + quote(table)
				if err := e.tx.QueryRow(q).Scan(&most); err != nil {
					return err
				}
				corr = max(corr, most)
			}
		}
		period := last - first + 1_000_000
		for k := int64(1); k < int64(times); k++ {
			for _, x := range list {
				var columns, values []string
				for _, c := range e.columns[x.table] {
					v := quote(c)
					switch {
					case slices.Contains(clocks, c):
						v = fmt.Sprintf("%s + %d", v, k*period)
					case c == "correlationId":
						v = fmt.Sprintf("%s + %d", v, k*(corr+1))
					case c == "text":
						v = fmt.Sprintf("%s || ', op_id = ' || (rowid + %d)", v, k*rows)
					}
					columns, values = append(columns, quote(c)), append(values, v)
				}
				// The rows of the first period are those that were there.
				q := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s ORDER BY rowid LIMIT %d", quote(x.table),
					strings.Join(columns, ", "), strings.Join(values, ", "), quote(x.table), x.rows)
				if _, err := e.tx.Exec(q); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// clocks are the columns that hold times.
var clocks = []string{"start", "end", "timestamp", "queued", "submitted"}

// clock is the column by which a table's events are ordered, or empty.
func (e *editor) clock(table string) string {
	for _, c := range []string{"start", "timestamp"} {
		if e.has(table, c) {
			return c
		}
	}
	return ""
}
