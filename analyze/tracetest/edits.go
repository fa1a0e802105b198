package tracetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const kernelTable = "CUPTI_ACTIVITY_KIND_KERNEL"

// EditRows calls fn for every row of a table and writes back what it changed in the row; rows for which it returns
// false are deleted. text gives the text of a cell that holds a StringIds id or the text itself. A cell can be set to
// [ID] of any text.
func EditRows(table string, fn func(r Row, text func(Value) string) (keep bool)) Edit {
	return Edit{"edit " + table, func(e *editor) error {
		var changes []change
		err := e.each(table, func(rowid int64, r Row) error {
			before := maps.Clone(r)
			if !fn(r, e.text) {
				changes = append(changes, change{rowid: rowid, delete: true})
				return nil
			}
			set := Row{}
			for c, v := range r {
				if before[c] != v {
					set[c] = v
				}
				if !e.has(table, c) {
					return fmt.Errorf("no column %s", c)
				}
			}
			if len(set) > 0 {
				changes = append(changes, change{rowid: rowid, set: set})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := e.update(table, changes); err != nil || table != "StringIds" {
			return err
		}
		return e.load()
	}}
}

// AddRows appends rows to a table that src has. They stand last, whatever their times.
func AddRows(table string, rows ...Row) Edit {
	return Edit{"add rows to " + table, func(e *editor) error {
		for _, r := range rows {
			var cols []string
			var values []Value
			for _, c := range e.columns[table] {
				if v, ok := r[c]; ok {
					cols = append(cols, quote(c))
					values = append(values, v)
				}
			}
			if len(cols) < len(r) || len(cols) == 0 {
				return errors.New("the table lacks a column of the row")
			}
			args, err := e.args(values)
			if err != nil {
				return err
			}
			q := fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", quote(table), strings.Join(cols, ", "),
				strings.TrimSuffix(strings.Repeat("?,", len(cols)), ","))
			if _, err := e.tx.Exec(q, args...); err != nil {
				return err
			}
		}
		return nil
	}}
}

// RenameKernel gives the kernels whose demangled or short name is from the name to, in all name columns.
func RenameKernel(from, to string) Edit {
	return EditRows(kernelTable, func(r Row, text func(Value) string) bool {
		if text(r["demangledName"]) != from && text(r["shortName"]) != from {
			return true
		}
		for _, c := range []string{"demangledName", "shortName", "mangledName"} {
			switch r[c].kind {
			case kindInt:
				r[c] = ID(to)
			case kindText:
				r[c] = Text(to)
			case kindNull, kindReal, kindID, kindBlob:
			}
		}
		return true
	})
}

// PageableCopies turns every copy from or to pinned host memory into one from or to pageable memory. Times stay.
func PageableCopies() Edit {
	return EditRows("CUPTI_ACTIVITY_KIND_MEMCPY", func(r Row, _ func(Value) string) bool {
		for _, c := range []string{"srcKind", "dstKind"} {
			if r[c] == Int(int64(Pinned)) {
				r[c] = Int(int64(Pageable))
			}
		}
		return true
	})
}

// RenamePID gives a process another pid, in every column that holds it: globalPid, globalTid, pid, processId. The
// thread whose id is the old pid gets the new one. It is an error if a process has the new pid already.
func RenamePID(from, to int64) Edit {
	const pidMask, tidMask = 0xFFFFFF << 24, 0xFFFFFF
	global := func(v Value) Value {
		id, ok := v.AsInt()
		if !ok || id>>24&tidMask != from {
			return v
		}
		id = id&^pidMask | to<<24
		if id&tidMask == from && from != 0 {
			id = id&^tidMask | to
		}
		return Int(id)
	}
	return Edit{fmt.Sprintf("rename pid %d to %d", from, to), func(e *editor) error {
		if to < 0 || to > tidMask {
			return errors.New("a pid is 0 to 2^24-1")
		}
		err := e.each("PROCESSES", func(_ int64, r Row) error {
			if r["pid"] == Int(to) {
				return errors.New("there is such a process")
			}
			return nil
		})
		for _, table := range slices.Clone(e.tables) {
			if err != nil {
				return err
			}
			err = EditRows(table, func(r Row, _ func(Value) string) bool {
				for c, v := range r {
					switch {
					case c == "globalPid", c == "globalTid", c == "endGlobalTid":
						r[c] = global(v)
					case (c == "pid" || c == "processId") && v == Int(from):
						r[c] = Int(to)
					}
				}
				return true
			}).apply(e)
		}
		return err
	}}
}

// DropTable removes a table.
func DropTable(table string) Edit {
	return Edit{"drop " + table, func(e *editor) error {
		if e.columns[table] == nil {
			return nil
		}
		_, err := e.tx.Exec("DROP TABLE " + quote(table))
		delete(e.columns, table)
		return err
	}}
}
