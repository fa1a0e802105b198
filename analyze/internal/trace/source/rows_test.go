package source

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// sameRows compares every column of every table. It returns how many tables were read by pages.
func sameRows(tb testing.TB, path string) (byPages int) {
	tb.Helper()
	ref, err := openSQL(path, true)
	if err != nil {
		tb.Fatal(err)
	}
	defer ref.Close()
	tables, err := ref.Tables()
	if err != nil {
		tb.Fatal(err)
	}
	fast, err := openPages(path, ref)
	if err != nil {
		if !errors.Is(err, pages.ErrUnusual) {
			tb.Fatal(err)
		}
		return 0
	}
	defer fast.f.Close()
	if list, err := fast.Tables(); err != nil || len(list) != len(tables) {
		tb.Fatal(len(list), err)
	}
	for _, t := range tables {
		if t.Plain == nil {
			continue
		}
		columns := append(slices.Clone(t.Columns), "rowid", "")
		var want, got []string
		keep := func(list *[]string) func(row []pages.Cell) error {
			return func(row []pages.Cell) error {
				var b []byte
				for i := range row {
					b = append(b, byte(row[i].Kind), '|')
					b = strconv.AppendInt(b, row[i].Bits, 10)
					b = append(strconv.AppendInt(append(b, '|'), int64(len(row[i].S)), 10), row[i].S...)
				}
				*list = append(*list, string(b))
				return nil
			}
		}
		sameFetched(tb, fast, t, columns, keep)
		if err := ref.Scan(t, columns, keep(&want)); err != nil {
			tb.Fatalf("table %s: %v", t.Name, err)
		}
		err := fast.Pages.Rows(t.Plain, columns, keep(&got))
		if err != nil {
			tb.Errorf("%s, table %s: %v", filepath.Base(path), t.Name, err)
		}
		byPages++
		if !slices.Equal(got, want) {
			at := 0
			for at < len(got) && at < len(want) && got[at] == want[at] {
				at++
			}
			tb.Errorf("%s, table %s: %d and %d rows, different from row %d on:\nby pages  %.300v\nby SQLite %.300v", filepath.Base(path), t.Name, len(got), len(want), at, got[min(at, len(got)):], want[min(at, len(want)):])
		}
	}
	return byPages
}

// sameFetched compares some hundred single rows of a table by SQLite, one of them twice, with those by pages, and asks
// for some that are not there.
func sameFetched(tb testing.TB, fast *Paged, t Table, columns []string, keep func(*[]string) func([]pages.Cell) error) {
	tb.Helper()
	if t.Column("rowid") != "" {
		return // SQLite takes it for the rowid
	}
	ids := []int64{math.MinInt64, -1, 0, math.MaxInt64}
	n := 0
	if err := fast.SQL.Scan(t, []string{"rowid"}, func(row []pages.Cell) error {
		if n++; n&(n-1) == 0 || n%101 == 0 && len(ids) < 1000 {
			ids = append(ids, row[0].Bits, row[0].Bits+1)
		}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	slices.Reverse(ids)
	ids = append(ids, ids[0])
	one := func(row []pages.Cell) string {
		var texts []string
		if err := keep(&texts)(row); err != nil {
			tb.Fatal(err)
		}
		return texts[0]
	}
	asked, got, want := map[int64]bool{}, map[int64]string{}, map[int64]string{} // SQLite gives a row once for each of its batches
	for _, id := range ids {
		asked[id] = true
	}
	if err := fast.Fetch(t.Name, columns, ids, func(id int64, row []pages.Cell) error {
		got[id] = one(row)
		return nil
	}); err != nil {
		tb.Errorf("single rows of table %s: %v", t.Name, err)
		return
	}
	if err := fast.Pages.Rows(t.Plain, append(slices.Clone(columns), "rowid"), func(row []pages.Cell) error {
		if last := len(row) - 1; asked[row[last].Bits] {
			want[row[last].Bits] = one(row[:last])
		}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
	if !maps.Equal(got, want) {
		tb.Errorf("table %s: %d single rows by SQLite, %d by pages, or different ones", t.Name, len(got), len(want))
	}
	if n > 0 && len(want) < bits.Len(uint(n)) {
		tb.Errorf("table %s: %d of %d rows found", t.Name, len(want), n)
	}
}

// traceFiles are the committed synthetic traces and, where they are, the real ones.
func traceFiles(tb testing.TB) []string {
	tb.Helper()
	own, err := filepath.Glob(filepath.FromSlash("../../../../testdata/*.sqlite"))
	if err != nil || len(own) == 0 {
		tb.Fatal("no traces in testdata")
	}
	real := longtest.Captures(tb)
	if len(real) == 0 {
		tb.Log("the shared traces are not here: only the synthetic ones are compared")
	}
	return append(own, real...)
}

func TestPagesGiveTheRowsOfSQLite(t *testing.T) {
	for _, path := range traceFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if n := sameRows(t, path); n < 5 {
				t.Errorf("only %d tables were read by pages", n)
			}
		})
	}
}

// corner is a file that uses a corner of the format. The first statements run before anything is in the file.
type corner struct {
	name    string
	pragmas []string
	tables  []string
	byPages bool // the table x is read by pages
}

// corners returns all corners. Each has a table x.
func corners() []corner {
	text := func(n int) string { return "replace(hex(zeroblob(" + fmt.Sprint((n+1)/2) + ")), '00', 'ab')" }
	list := []corner{
		{"serial types", nil, []string{
			"create table x (a, b integer, c real, d text, e blob, f numeric, g integer primary key)",
			"insert into x (a, b, c, d, e, f) values (null, null, null, null, null, null), (0, 0, 0, 0, 0, 0), (1, 1, 1, 1, 1, 1), (127, -128, 127, 127, 127, 127), (128, -129, 128, 128, x'80', 128), " +
				"(32767, -32768, 32768, 32768, x'', '32768'), (8388607, -8388608, 8388608, 8388608, 8388608, 8388608), (2147483647, -2147483648, 2147483648, 2147483648, 2147483648, 2147483648), " +
				"(140737488355327, -140737488355328, 140737488355328, 140737488355328, 140737488355328, 140737488355328), (9223372036854775807, -9223372036854775808, 9223372036854775807, 9223372036854775807, 9223372036854775807, 9223372036854775807), " +
				"(1.5, 2.0, 1e300, -1e-300, 3.25, '3.25'), (-0.0, -0.0, -0.0, -0.0, -0.0, -0.0), (9e999, -9e999, 9e999, -9e999, 9e999, 9e999), ('', '', '', '', x'', ''), ('text', 'text', 'text', 'text', 'text', 'text'), " +
				"(x'0001ff', x'00', x'00', x'00', x'00', x'00'), ('a' || char(0) || 'b', 'ü', '12', '12.5', '1e3', '1e3')",
		}, true},
		{"rowid alias", nil, []string{"create table x (a integer primary key, b)", "insert into x values (-5, 1), (1, 2), (7, 3), (9223372036854775807, 4), (-9223372036854775808, 5)"}, true},
		{"rowid alias by a table constraint", nil, []string{"create table x (b text, a integer, primary key (a))", "insert into x values ('v', 3), ('w', 1)"}, true},
		{"no rowid alias", nil, []string{"create table x (a int primary key, b)", "insert into x values (3, 1), (1, 2)"}, true},
		{"descending key", nil, []string{"create table x (a integer primary key desc, b)", "insert into x values (3, 1), (1, 2)"}, false},
		{"two keys", nil, []string{"create table x (a integer, b integer, primary key (a, b))", "insert into x values (3, 1), (1, 2)"}, true},
		{"added columns with defaults", nil, []string{
			"create table x (a)", "insert into x values (1), (2)", "alter table x add column b integer default 7", "alter table x add column c text default 'it''s'",
			"alter table x add column d", "alter table x add column e int default -3", "insert into x values (3, 4, 'five', 6, null)", "alter table x add column f default null",
		}, false},
		{"added columns with defaults that are not plain", nil, []string{
			"create table x (a)", "insert into x values (1)", "alter table x add column b real default 1",
			"alter table x add column c default 1.5", "alter table x add column d text default 5",
		}, false},
		{"added column in rows written after", nil, []string{
			"create table x (a)", "alter table x add column b real default 1", "insert into x values (1, 2), (3, 4.5)",
		}, false},
		{"added columns without defaults", nil, []string{
			"create table x (a)", "insert into x values (1), (2)", "alter table x add column b integer",
			"alter table x add column c text", "insert into x values (3, 4, 'five')", "alter table x add column d",
		}, true},
		{"dropped column", nil, []string{"create table x (a, b, c)", "insert into x values (1, 2, 3)", "alter table x drop column b", "insert into x values (4, 5)"}, true},
		{"renamed column", nil, []string{"create table x (a, b)", "insert into x values (1, 2)", `alter table x rename column b to "B c"`}, true},
		{"column called rowid", nil, []string{"create table x (rowid text, b)", "insert into x values ('r', 2)"}, true},
		{"view", nil, []string{"create table y (a)", "insert into y values (1)", "create view x as select a from y"}, false},
		{"without rowid", nil, []string{"create table x (a primary key, b) without rowid", "insert into x values (3, 1), (1, 2)"}, false},
		{"strict", nil, []string{"create table x (a integer, b real, c text, d any) strict", "insert into x values (3, 1, 'c', 'd')"}, true},
		{"generated", nil, []string{"create table x (a, b as (a * 2) virtual, c as (a * 3) stored)", "insert into x (a) values (3), (1)"}, false},
		{"dates", nil, []string{"create table x (a timestamp, b)", "insert into x values ('x', 1)"}, false},
		{"many columns", nil, []string{"create table x (a" + strings.Join(numbered(1500), ", a") + ")", "insert into x (a7, a1499) values ('seven', 1)", "insert into x (a0) values (2)"}, true},
		{"overflow", nil, []string{
			"create table x (a, b, c)", "insert into x values (" + text(3000) + ", 1, 'end'), (" + text(20000) + ", 2, " + text(5000) + "), ('', 3, " + text(500000) + "), (4, 4, 4)",
		}, true},
		{"every payload size", []string{"page_size = 512"}, []string{
			"create table x (a, b)", "with recursive n(i) as (select 0 union all select i + 1 from n where i < 1400) insert into x select substr(" + text(1400) + ", 1, i), i from n",
		}, true},
		{"free pages", nil, []string{
			"create table y (a)", "with recursive n(i) as (select 0 union all select i + 1 from n where i < 3000) insert into y select " + text(100) + " from n",
			"create table x (a)", "drop table y", "insert into x values (1), (" + text(9000) + ")",
		}, true},
		{"gaps", nil, []string{
			"create table x (a)", "with recursive n(i) as (select 0 union all select i + 1 from n where i < 20000) insert into x select i from n", "delete from x where a % 97 > 3",
		}, true},
		{"far apart", nil, []string{
			"create table x (k integer primary key, a)", "with recursive n(i) as (select 0 union all select i + 1 from n where i < 20000) insert into x select i * 461168601842738, i from n", "insert into x values (-4, 'negative')",
		}, true},
		{"empty table", nil, []string{"create table x (a, b)"}, true},
		{"one huge text", nil, []string{"create table x (a)", "insert into x values (" + text(5_000_000) + ")"}, true},
		{"UTF-16", []string{"encoding = 'UTF-16le'"}, []string{"create table x (a)", "insert into x values ('wide'), (1)"}, false},
		{"UTF-16 big-endian", []string{"encoding = 'UTF-16be'"}, []string{"create table x (a)", "insert into x values ('wide'), (1)"}, false},
		{"checkpointed log", []string{"journal_mode = wal"}, []string{"create table x (a)", "insert into x values ('logged'), (1)"}, true},
		{"odd names", nil, []string{`create table x ("a b" integer, [select] text, ` + "`c``d`" + ` real, "e""f" -- a comment, with a comma` + "\n, 'g' /* another */ numeric)", "insert into x values (1, 'two', 3, 4, 5)"}, true},
	}
	for size := 512; size <= 65536; size *= 2 {
		for vacuum := range 3 {
			list = append(list, corner{fmt.Sprintf("page size %d, auto_vacuum %d", size, vacuum), []string{fmt.Sprintf("page_size = %d", size), fmt.Sprintf("auto_vacuum = %d", vacuum)}, []string{
				"create table x (a, b)", "create table y (a)",
				"with recursive n(i) as (select 0 union all select i + 1 from n where i < 2000) insert into x select i * i * i, 'row ' || i from n",
				"insert into y select a from x", "delete from y where rowid > 100", "insert into x values (" + text(200_000) + ", 'long')",
			}, true})
		}
	}
	return list
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint(i)
	}
	return list
}

// write makes the corner's file.
func (c corner) write(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	statements := slices.Clone(c.tables)
	for _, p := range slices.Backward(c.pragmas) {
		statements = append([]string{"pragma " + p}, statements...)
	}
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%.200s: %v", s, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCornersOfTheFormat(t *testing.T) {
	for i, c := range corners() {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), fmt.Sprintf("corner%d.sqlite", i))
			c.write(t, path)
			sameRows(t, path)
			src, err := openSQL(path, true)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			tables, err := src.Tables()
			if err != nil {
				t.Fatal(err)
			}
			fast, err := openPages(path, src)
			if err == nil {
				defer fast.f.Close()
			}
			at := slices.IndexFunc(tables, func(t Table) bool { return t.Name == "x" })
			if byPages := err == nil && tables[at].Plain != nil; byPages != c.byPages {
				t.Errorf("read by pages: %v, want %v", byPages, c.byPages)
			}
			if err != nil || tables[at].Plain == nil {
				return
			}
			inPieces(t, path, fast, tables[at])
		})
	}
}

// inPieces reads a table in the order of the file, by several goroutines, and compares it with its rows in order.
func inPieces(t *testing.T, path string, src *Paged, table Table) {
	t.Helper()
	text := func(row []pages.Cell) string { return fmt.Sprintf("%v", row) }
	var want []string
	if err := src.SQL.Scan(table, table.Columns, func(row []pages.Cell) error {
		want = append(want, text(row))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	part := &pages.Part{Table: table.Plain, Columns: table.Columns}
	scan, err := src.Pages.Prepare([]*pages.Part{part})
	if err != nil {
		if len(want) > 0 && strings.Contains(err.Error(), "rowids") {
			return
		}
		t.Fatal(err)
	}
	got := make([]string, part.Slots())
	err = scan.Run(context.Background(), 3, func(int, int) pages.Sink { return &textSink{text: text, into: got} }, func(int64) {})
	if err != nil {
		if strings.Contains(err.Error(), "more rows than there are rowids for") {
			return // left to SQLite
		}
		t.Fatal(err)
	}
	got = slices.DeleteFunc(got, func(s string) bool { return s == "" })
	if !slices.Equal(got, want) {
		t.Errorf("%d rows in pieces, %d in order, or different ones", len(got), len(want))
	}
	if extra := part.Slots() - len(want); extra > len(want)/4+25_000 {
		t.Errorf("%d slots for %d rows", part.Slots(), len(want))
	}
}

type textSink struct {
	text func(row []pages.Cell) string
	into []string
	at   int
}

func (s *textSink) Leaf(_, slot int) { s.at = slot }

func (s *textSink) Row(row []pages.Cell) error {
	s.into[s.at] = s.text(row)
	s.at++
	return nil
}

// Bytes at the end of each page may be reserved for other programs (section 1.3.4 of the format). SQLite has no pragma
// for it: the header of an empty file is changed.
func TestReservedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reserved.sqlite")
	corner{pragmas: []string{"user_version = 1"}}.write(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[20] = 37
	binary.BigEndian.PutUint16(b[105:], uint16(len(b)-37))
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	corner{tables: []string{
		"create table x (a, b)", "with recursive n(i) as (select 0 union all select i + 1 from n where i < 9000) insert into x select i, hex(zeroblob(i % 3000)) from n",
	}}.write(t, path)
	if b, err = os.ReadFile(path); err != nil || b[20] != 37 {
		t.Fatal("SQLite did away with the reserved bytes")
	}
	if n := sameRows(t, path); n != 1 {
		t.Errorf("%d tables were read by pages, want 1", n)
	}
}

// A view that computes for ever must not keep the analysis from ending.
func TestViewWithoutRows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "view.sqlite")
	corner{tables: []string{"create view x as " +
		"with recursive n(i) as (select 1 union all select i + 1 from n) select i from n where i < 3"}}.write(t, path)
	src, err := openSQL(path, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := src.Tables(); err != nil {
		t.Fatal(err)
	}
	src.patience = patience / 40
	err = src.Scan(Table{Name: "x", View: true}, []string{"i"}, func([]pages.Cell) error { return nil })
	if !errors.Is(err, errSlowView) {
		t.Errorf("error = %v", err)
	}
}
