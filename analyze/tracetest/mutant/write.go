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

// insert makes the table and returns the statement that fills it.
func (w *writer) insert(t *table) (*sql.Stmt, error) {
	if _, err := w.tx.Exec(t.create); err != nil {
		return nil, err
	}
	marks := strings.TrimSuffix(strings.Repeat("?,", len(t.names)), ",")
	return w.tx.Prepare("INSERT INTO " + quote(t.name) + " VALUES (" + marks + ")")
}

func (w *writer) table(t *table, events []int) error {
	stmt, err := w.insert(t)
	if err != nil {
		return err
	}
	defer stmt.Close()
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
			if _, err := stmt.Exec(cells...); err != nil {
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
		if _, err := stmt.Exec(cells...); err != nil {
			return err
		}
	}
	for _, r := range w.d.more[t.name] {
		clear(cells)
		for column, v := range r {
			w.put(t, cells, column, v)
		}
		if _, err := stmt.Exec(cells...); err != nil {
			return err
		}
	}
	return nil
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
	stmt, err := w.insert(t)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for _, r := range t.rows {
		if _, err := stmt.Exec(r...); err != nil {
			return err
		}
	}
	cells := make([]any, len(t.names))
	for _, text := range w.fresh {
		cells[t.columns["id"]], cells[t.columns["value"]] = w.ids[text], text
		if _, err := stmt.Exec(cells...); err != nil {
			return err
		}
	}
	return nil
}
