package mutant

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// WriteTB writes the mutant to a fresh temporary directory of the test and returns its path. It ends the test on
// an error.
func (m *Mutant) WriteTB(tb testing.TB) string {
	tb.Helper()
	path, err := m.WriteTo(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

// WriteTo writes the mutant to trace.sqlite in a folder, in which there is none, and returns its path.
func (m *Mutant) WriteTo(dir string) (path string, err error) {
	path = filepath.Join(dir, "trace.sqlite")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	for _, q := range []string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"} {
		if _, err := db.Exec(q); err != nil {
			return "", err
		}
	}
	tx, err := db.Begin()
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	w := &writer{d: m.draft, tx: tx, ids: map[string]int64{}, next: m.nextID, again: map[int64]int64{}}
	if m.renumber {
		w.next += 100_000
	} else {
		for id, text := range m.texts {
			if old, ok := w.ids[text]; !ok || id < old {
				w.ids[text] = id
			}
		}
	}
	if err := w.write(); err != nil {
		return "", err
	}
	return path, tx.Commit()
}

// writer writes one file.
type writer struct {
	d     *draft
	tx    *sql.Tx
	ids   map[string]int64 // of texts
	fresh []string         // texts that StringIds does not have yet
	next  int64
	again map[int64]int64 // new ids of old ones
}

// nameColumns hold ids of texts.
var nameColumns = []string{"nameId", "textId", "demangledName", "shortName", "mangledName"}

func (w *writer) write() error {
	byTable := make([][]int, len(w.d.tables))
	for i := range w.d.events {
		byTable[w.d.events[i].table] = append(byTable[w.d.events[i].table], i)
	}
	for ti, t := range w.d.tables {
		if t.name == stringTable || slices.Contains(left, t.name) && len(byTable[ti]) == 0 {
			continue
		}
		if err := w.table(t, byTable[ti]); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	if at := w.d.table(stringTable); at >= 0 { // last: by now all texts are known
		return w.texts(w.d.tables[at])
	}
	return nil
}

// rows fills a table, several rows at a time, which is faster than one by one.
type rows struct {
	tx    *sql.Tx
	query string
	marks string    // of one row
	many  *sql.Stmt // of rowsAtOnce
	cells []any     // that are not written yet
	width int
}

const rowsAtOnce = 16

// insert makes the table.
func (w *writer) insert(t *table) (*rows, error) {
	if _, err := w.tx.Exec(t.create); err != nil {
		return nil, err
	}
	r := &rows{tx: w.tx, width: len(t.names), query: "INSERT INTO " + quote(t.name) + " VALUES "}
	r.marks = "(" + strings.TrimSuffix(strings.Repeat("?,", r.width), ",") + "),"
	return r, nil
}

func (r *rows) values(n int) string {
	return r.query + strings.TrimSuffix(strings.Repeat(r.marks, n), ",")
}

func (r *rows) add(cells []any) (err error) {
	if r.cells = append(r.cells, cells...); len(r.cells) < rowsAtOnce*r.width {
		return nil
	}
	if r.many == nil {
		if r.many, err = r.tx.Prepare(r.values(rowsAtOnce)); err != nil {
			return err
		}
	}
	_, err = r.many.Exec(r.cells...)
	r.cells = r.cells[:0]
	return err
}

// end writes the last rows.
func (r *rows) end() (err error) {
	if len(r.cells) > 0 {
		_, err = r.tx.Exec(r.values(len(r.cells)/r.width), r.cells...)
	}
	if r.many != nil {
		err = errors.Join(err, r.many.Close())
	}
	return err
}

func (w *writer) table(t *table, events []int) error {
	to, err := w.insert(t)
	if err != nil {
		return err
	}
	timed := make([]bool, len(t.rows)) // rows that are events
	for _, i := range events {
		if e := &w.d.events[i]; !e.fresh {
			timed[e.row] = true
		}
	}
	for row, is := range timed {
		if !is {
			cells := t.rows[row]
			if at, ok := t.columns["utcEpochNs"]; ok && w.d.session != 0 {
				cells = slices.Clone(cells)
				if start, ok := cells[at].(int64); ok {
					cells[at] = start + w.d.session
				}
			}
			if err := to.add(cells); err != nil {
				return err
			}
		}
	}
	if w.d.shuffle != 0 {
		rng := rand.New(rand.NewPCG(w.d.shuffle, 0))
		rng.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	}
	cells := make([]any, len(t.names))
	for _, i := range events {
		e := &w.d.events[i]
		if e.dead || e.lost {
			continue
		}
		clear(cells)
		if e.row >= 0 {
			copy(cells, t.rows[e.row])
		}
		for column, v := range e.set {
			w.put(t, cells, column, v)
		}
		clock := "start"
		if !t.has("start") {
			clock = "timestamp"
		}
		w.put(t, cells, clock, e.at+w.d.shift)
		if !e.noEnd {
			w.put(t, cells, "end", e.to+w.d.shift)
		}
		if w.d.renumber {
			for _, column := range nameColumns {
				if at, ok := t.columns[column]; ok {
					if id, ok := cells[at].(int64); ok && w.d.texts[id] != "" {
						if _, ok := w.again[id]; !ok && id < w.d.nextID {
							w.again[id] = w.id(w.d.texts[id])
						}
						if id < w.d.nextID {
							cells[at] = w.again[id]
						}
					}
				}
			}
		}
		if err := to.add(cells); err != nil {
			return err
		}
	}
	for _, r := range w.d.more[t.name] {
		clear(cells)
		for column, v := range r {
			w.put(t, cells, column, v)
		}
		if err := to.add(cells); err != nil {
			return err
		}
	}
	return to.end()
}

// put sets a cell. A text goes in by its id where the row had one.
func (w *writer) put(t *table, cells []any, column string, v any) {
	at, ok := t.columns[column]
	if !ok {
		return
	}
	if text, ok := v.(textRef); ok {
		v = string(text)
		if _, inline := cells[at].(string); !inline && column != "text" {
			v = w.id(string(text))
		}
	}
	cells[at] = v
}

// id of a text, which StringIds gets where it lacks it.
func (w *writer) id(text string) int64 {
	if id, ok := w.ids[text]; ok {
		return id
	}
	w.ids[text] = w.next
	w.fresh = append(w.fresh, text)
	w.next++
	return w.ids[text]
}

func (w *writer) texts(t *table) error {
	to, err := w.insert(t)
	if err != nil {
		return err
	}
	for _, r := range t.rows {
		if err := to.add(r); err != nil {
			return err
		}
	}
	cells := make([]any, len(t.names))
	for _, text := range w.fresh {
		cells[t.columns["id"]], cells[t.columns["value"]] = w.ids[text], text
		if err := to.add(cells); err != nil {
			return err
		}
	}
	return to.end()
}
