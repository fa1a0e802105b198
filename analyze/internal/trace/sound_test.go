package trace

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Times that no capture can hold would stretch the window over years and make sums overflow: such rows are counted and
// left out, wherever the rest of the capture lies (in UTC, for one).
func TestImpossibleTimesAreSkipped(t *testing.T) {
	for _, zero := range []int64{0, 1_700_000_000_000_000_000, -5_000_000_000} {
		b := tracetest.New()
		th := b.Process(7, "p").Thread(7, "")
		for i := range int64(5) {
			at := zero + 100*i
			th.Launch("good", at, at+10, tracetest.Kernel{Start: at + 20, End: at + 50})
			th.Range("good", at, at+60)
		}
		for _, bad := range [][2]int64{
			{math.MinInt64, zero}, {zero, math.MaxInt64}, {math.MinInt64, math.MaxInt64}, {1 << 62, 1<<62 + 1}, {zero + 1<<51, zero + 1<<51 + 5}, {zero - 1<<51, zero}, {zero, zero + 1<<57},
		} {
			b.Kernel(tracetest.Kernel{Name: "bad", Start: bad[0], End: bad[1]})
			b.API(tracetest.API{Thread: th, Name: "bad", Start: bad[0], End: bad[1]})
			if bad[1] != openEnd { // which stands for a range without end
				th.Range("bad", bad[0], bad[1])
			}
		}
		tr := open(t, b, Options{})
		for _, s := range tr.Tables {
			want := int64(7)
			if s.Role == RoleNVTX {
				want = 5
			}
			if s.Skipped != want {
				t.Errorf("zero %d: table %s: %d of %d rows skipped, want %d", zero, s.Name, s.Skipped, s.Rows, want)
			}
		}
		for _, s := range []*Span{&tr.Kernels.Span, &tr.API.Span, &tr.Ranges.Span} {
			if s.Len() != 5 || s.Start(0) < zero || s.End(4) > zero+1000 {
				t.Errorf("zero %d: %d rows from %d to %d", zero, s.Len(), s.Start(0), s.End(s.Len()-1))
			}
		}
		if k := &tr.Kernels; k.Names[k.Name(0)].Name != "good" || tr.API.Names[tr.API.Name(4)].Name == "bad" {
			t.Errorf("zero %d: columns moved apart from their times", zero)
		}
	}
}

// Durations that only together are impossible must not overflow either: what would bring the sum above the limit is
// left out, in the order of the rows. 64 times 2^50 ns is the limit; one call of 1 ns comes before.
func TestSumOfDurationsIsBounded(t *testing.T) {
	b := tracetest.New()
	th := b.Process(7, "p").Thread(7, "")
	b.API(tracetest.API{Thread: th, Name: "short", Start: 0, End: 1})
	for range 70 {
		b.API(tracetest.API{Thread: th, Name: "long", Start: 0, End: maxAway})
	}
	b.API(tracetest.API{Thread: th, Name: "fits", Start: 5, End: 9})
	tr := open(t, b, Options{})
	a := &tr.API
	if n := a.Len(); n != 65 || a.Names[a.Name(0)].Name != "short" || a.Names[a.Name(64)].Name != "fits" || a.Dur(63) != maxAway {
		t.Errorf("%d calls kept, want the short one, 63 long ones and the one that still fits", n)
	}
	if s := tr.Tables[0]; s.Skipped != 7 || s.Rows != 72 {
		t.Errorf("%+v", s)
	}
}

func TestNumbersOutOfRange(t *testing.T) {
	for _, c := range []struct {
		v      int64
		ident  int32
		extent int32
		bytes  int64
	}{
		{0, 0, 0, 0}, {7, 7, 7, 7}, {-1, None, 0, 0}, {1 << 32, None, math.MaxInt32, 1 << 32}, {math.MaxInt64, None, math.MaxInt32, 0}, {math.MinInt64, None, 0, 0},
	} {
		x := &cell{Kind: pages.Int, Bits: c.v}
		if ident(x) != c.ident || extent(x) != c.extent || byteCount(x) != c.bytes {
			t.Errorf("%d: ident %d, extent %d, bytes %d", c.v, ident(x), extent(x), byteCount(x))
		}
	}
}

// Long names are cut, and stay different.
func TestLongNamesAreClipped(t *testing.T) {
	long := strings.Repeat("ü", maxName)
	b := tracetest.New()
	b.Kernel(tracetest.Kernel{Name: long + "a", Start: 1, End: 2})
	b.Kernel(tracetest.Kernel{Name: long + "b", Start: 3, End: 4})
	b.Kernel(tracetest.Kernel{Name: long[:10_000], Start: 5, End: 6})
	names := kernelNames(open(t, b, Options{}))
	if len(names) != 3 || names[0] == names[1] || len(names[0]) > 2*clippedName || names[2] != long[:10_000] {
		t.Errorf("%d names of %d, %d and %d bytes", len(names), len(names[0]), len(names[1]), len(names[2]))
	}
}

// alter changes a written trace.
func alter(t *testing.T, path string, statements ...string) string {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	return path
}

// Tools that rewrite an export change how its tables are made: the content is what counts.
func TestRewrittenTables(t *testing.T) {
	const table = "CUPTI_ACTIVITY_KIND_KERNEL"
	for _, c := range []struct{ name, columns, option, into, from string }{
		{"text", `start text, "end" text, shortName int, demangledName int`, "", "", ""},
		{"without rowid", `start int, "end" int, shortName int, demangledName int, k integer primary key`, " without rowid", "", ", rowid"},
		{"generated", `a, b, c, d, start int generated always as (a) virtual, "end" int generated always as (b) stored, ` +
			`shortName int generated always as (c), demangledName int generated always as (d)`, "", "(a, b, c, d)", ""},
	} {
		path := alter(t, threeKernels().WriteTB(t), "create table x ("+c.columns+")"+c.option,
			"insert into x "+c.into+` select start, "end", shortName, demangledName`+c.from+" from "+table,
			"drop table "+table, "alter table x rename to "+table)
		wantStrings(t, c.name, kernelNames(openPath(t, path, Options{})), "void first<int>(int)", "second", "third")
	}
}

// An index that another tool left behind has its own order; rows with equal times keep that of the table.
func TestIndexesDoNotReorderRows(t *testing.T) {
	b := tracetest.New()
	for _, n := range []string{"c", "a", "d", "b"} {
		b.Kernel(tracetest.Kernel{Name: n, Start: 5, End: 6})
	}
	names := kernelNames(open(t, b, Options{}))
	path := b.WriteTB(t)
	alter(t, path, `create index _nsysai_x on CUPTI_ACTIVITY_KIND_KERNEL (blockZ, globalPid desc, start, "end", deviceId, streamId desc, contextId, correlationId desc, demangledName desc, shortName, mangledName, graphNodeId, gridX, gridY, gridZ, blockX, blockY, registersPerThread, staticSharedMemory, dynamicSharedMemory)`)
	wantStrings(t, "names", kernelNames(openPath(t, path, Options{})), names...)
}

// A transaction that was cut off left a journal: what it changed is rolled back in a scratch copy, as SQLite would.
func TestHotJournal(t *testing.T) {
	emptyTemp(t)
	b := tracetest.New()
	for i := range int64(2000) {
		b.Kernel(tracetest.Kernel{Name: "k", Start: 10 * i, End: 10*i + 5})
	}
	path := b.WriteTB(t)
	db, err := sql.Open("sqlite", path+"?_pragma=cache_size(5)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`update CUPTI_ACTIVITY_KIND_KERNEL set "end" = start`); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.sqlite")
	writeFile(t, cut, readFile(t, path))
	writeFile(t, cut+"-journal", readFile(t, path+"-journal"))
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	before := folderState(t, filepath.Dir(cut))
	tr := openPath(t, cut, Options{})
	for i := range tr.Kernels.Len() {
		if tr.Kernels.Dur(i) != 5 {
			t.Fatalf("kernel %d takes %d, want the 5 from before the transaction", i, tr.Kernels.Dur(i))
		}
	}
	sameState(t, before, folderState(t, filepath.Dir(cut)))
}

func TestNoTemporaryFolder(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "missing"))
	path := writeFile(t, filepath.Join(dir, "a.gz"), zipped(t, []byte("anything")))
	_, err := Open(context.Background(), path, Options{})
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("error = %v", err)
	}
}
