package source

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// SQL is the reference implementation of [Source]. Rows come from the driver directly: database/sql's Scan would
// cost three times as much as SQLite itself.
type SQL struct {
	db *sql.DB
	// patience is how long a view may take for its next row. nsys writes no views; one that computes for ever must not
	// keep the analysis from ending.
	patience time.Duration
}

const patience = 4 * time.Second

// openSQL opens path. immutable promises SQLite that nothing changes the file and no log belongs to it: it then takes
// no locks and creates no file beside it. Else the file is a scratch copy with its log, which SQLite writes to when it
// rolls back what the log says was not finished.
func openSQL(path string, immutable bool) (*SQL, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	q := "mode=rw"
	if immutable {
		q = "mode=ro&immutable=1"
	}
	q += "&_pragma=query_only(1)&_pragma=temp_store(2)"
	u.RawQuery = q
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return &SQL{db: db, patience: patience}, nil
}

// Close ends reading.
func (s *SQL) Close() error { return s.db.Close() }

// Check is SQLite's own check of the file, to the first fault; nil if it finds none.
func (s *SQL) Check(ctx context.Context) error {
	var said string
	if err := s.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said); err != nil {
		return err
	}
	if said != "ok" {
		return errors.New(strings.TrimSpace(said))
	}
	return nil
}

// Tables lists what SQLite lists but its own tables, and views that cannot be read. SQLite walks over all tables for
// each question about one, so it is asked about all of them at once.
func (s *SQL) Tables() ([]Table, error) {
	var list []Table
	var shapes []shape
	at := map[string]int{}
	err := s.query(`select "name", "type", "rootpage", "sql" from "sqlite_master"
		where "type" in ('table', 'view') and "name" not like 'sqlite\_%' escape '\' order by "name"`,
		func(row []pages.Cell) error {
			view := row[1].S == "view"
			at[row[0].S] = len(list)
			list = append(list, Table{Name: row[0].S, View: view, Rowless: view})
			shapes = append(shapes, shape{root: row[2].Bits, sql: strings.ToUpper(row[3].S)})
			return nil
		})
	if err != nil {
		return nil, err
	}
	column := func(row []pages.Cell) error { // of the table that the first cell names
		i, ok := at[row[0].S]
		if !ok {
			return nil
		}
		if row[5].Bits != 1 { // hidden columns of virtual tables; generated columns count
			list[i].Columns = append(list[i].Columns, row[1].S)
		}
		shapes[i].column(row[1:])
		return nil
	}
	const columns = `select m."name", c."name", c."type", c."dflt_value", c."pk", c."hidden", c."notnull"
		from "sqlite_master" m, pragma_table_xinfo(m."name") c where m."type" = %s order by m."name", c."cid"`
	if err := s.query(fmt.Sprintf(columns, "'table'"), column); err != nil {
		return nil, err
	}
	err = s.query(`select "name", "wr", "type" from pragma_table_list where "schema" = 'main'`,
		func(row []pages.Cell) error {
			if i, ok := at[row[0].S]; ok && !list[i].View {
				list[i].Rowless = row[1].Bits != 0
				shapes[i].odd = shapes[i].odd || row[2].S != "table"
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	kept := list[:0]
	for i := range list {
		t := &list[i]
		if t.View && s.query(fmt.Sprintf(columns, `'view' and m."name" = `+literal(t.Name)), column) != nil {
			continue // over something that is not there
		}
		if !t.Rowless {
			t.Plain = shapes[i].table(t.Name)
		}
		kept = append(kept, *t)
	}
	return kept, nil
}

// Scan reads all rows through SQLite.
func (s *SQL) Scan(table Table, columns []string, each func(row []pages.Cell) error) error {
	// An index may have another order
	text := "select " + selection(columns) + " from " + Quote(table.Name) + " not indexed"
	if table.View {
		return s.queryView(text, each)
	}
	return s.query(text, each)
}

// queryView gives up on a view instead of interrupting it: the driver can interrupt the first row only.
func (s *SQL) queryView(text string, each func(row []pages.Cell) error) error {
	var rows atomic.Int64
	var gone atomic.Bool
	done := make(chan error, 1)
	go func() {
		done <- s.query(text, func(row []pages.Cell) error {
			if gone.Load() {
				return errSlowView
			}
			rows.Add(1)
			return each(row)
		})
	}()
	tick := time.NewTicker(s.patience)
	defer tick.Stop()
	for seen := int64(-1); ; seen = rows.Load() {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if rows.Load() == seen {
				gone.Store(true)
				return errSlowView
			}
		}
	}
}

var errSlowView = errors.New("a view in it computes without giving rows")

// fetchBatch keeps a statement's text bounded.
const fetchBatch = 500

// Fetch reads the rows in batches.
func (s *SQL) Fetch(table string, columns []string, rows []int64,
	each func(row int64, cells []pages.Cell) error) error {
	text := "select rowid, " + selection(columns) + " from " + Quote(table) + " where rowid in ("
	for batch := range slices.Chunk(rows, fetchBatch) {
		ids := lists.Map(batch, func(row int64) string { return strconv.FormatInt(row, 10) })
		err := s.query(text+strings.Join(ids, ",")+")",
			func(row []pages.Cell) error { return each(row[0].Bits, row[1:]) })
		if err != nil {
			return err
		}
	}
	return nil
}

// selection writes the names of columns; an empty one reads as NULL.
func selection(columns []string) string {
	return strings.Join(lists.Map(columns, func(name string) string {
		if name == "" {
			return "null"
		}
		return Quote(name)
	}), ", ")
}

func (s *SQL) query(text string, each func(row []pages.Cell) error) error {
	ctx := context.Background()
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return conn.Raw(func(c any) error {
		rows, err := c.(driver.QueryerContext).QueryContext(ctx, text, nil)
		if err != nil {
			return err
		}
		defer rows.Close()
		n := len(rows.Columns())
		values, cells := make([]driver.Value, n), make([]pages.Cell, n)
		for {
			if err := rows.Next(values); err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			for i, v := range values {
				switch v := v.(type) {
				case nil:
					cells[i] = pages.Cell{}
				case int64:
					cells[i] = pages.IntCell(v)
				case float64:
					cells[i] = pages.FloatCell(v)
				case string:
					cells[i] = pages.TextCell(v)
				case []byte:
					cells[i] = pages.Cell{Kind: pages.Blob, S: string(v)}
				default:
					return fmt.Errorf("unexpected value of type %T", v)
				}
			}
			if err := each(cells); err != nil {
				return err
			}
		}
	})
}

// Quote writes a name as SQLite reads it.
func Quote(name string) string   { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
func literal(text string) string { return `'` + strings.ReplaceAll(text, `'`, `''`) + `'` }
