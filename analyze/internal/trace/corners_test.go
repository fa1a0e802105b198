package trace

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// reference opens a capture through SQLite alone.
func reference(tb testing.TB, path string, opt Options) (*Trace, error) {
	tb.Helper()
	in := source.NewInput(context.Background(), path, opt.FileOptions)
	if err := in.Resolve(); err != nil {
		return nil, err
	}
	src, err := in.Open()
	if err != nil {
		in.Cleanup()
		return nil, err
	}
	t, err := load(context.Background(), src, in, &opt)
	if err != nil {
		src.Close()
		in.Cleanup()
		return nil, err
	}
	t.source, t.temp = src, in.Keep()
	return t, nil
}

// contents is all that a trace holds, spread out.
func contents(tb testing.TB, t *Trace) map[string]any {
	tb.Helper()
	all := map[string]any{
		"tables": t.Tables, "procs": t.Procs, "threads": t.Threads, "gpus": t.GPUs, "meta": t.Meta, "overhead": t.Overhead,
		"diagnostics": t.Diagnostics, "nodes": t.Kernels.InGraphs(), "has": t.Has, "kernel names": t.Kernels.Names, "configs": t.Kernels.Configs,
		"api names": t.API.Names, "range names": t.Ranges.Names, "api places": t.API.places, "range places": t.Ranges.places,
	}
	column := func(name string, n int, get func(i int) []int64) {
		var list []int64
		for i := range n {
			list = append(list, get(i)...)
		}
		all[name] = list
	}
	for name, w := range map[string]*Work{"kernel": &t.Kernels.Work, "copy": &t.Copies.Work, "set": &t.Sets.Work, "graph": &t.Graphs.Work,
		"sync": &t.Syncs.Work} {
		column(name+" work", w.Len(), func(i int) []int64 {
			return []int64{w.Start(i), w.End(i), w.Dur(i), int64(w.place.at(i)), w.Corr(i)}
		})
		all[name+" places"] = w.places
	}
	k, c, s, g, a, r, y := &t.Kernels, &t.Copies, &t.Sets, &t.Graphs, &t.API, &t.Ranges, &t.Syncs
	column("kernels", k.Len(), func(i int) []int64 { return []int64{int64(k.Name(i)), int64(k.Config(i))} })
	column("copies", c.Len(), func(i int) []int64 {
		return []int64{c.Bytes(i), int64(c.Kind(i)), int64(c.SrcKind(i)), int64(c.DstKind(i))}
	})
	column("sets", s.Len(), func(i int) []int64 { return []int64{s.Bytes(i), int64(s.MemKind(i))} })
	column("graphs", g.Len(), func(i int) []int64 { return []int64{g.Graph(i), g.Exec(i)} })
	column("api", a.Len(), func(i int) []int64 {
		return []int64{a.Start(i), a.End(i), int64(a.place.at(i)), a.Corr(i), int64(a.Name(i))}
	})
	column("ranges", r.Len(), func(i int) []int64 {
		return []int64{r.Start(i), r.End(i), int64(r.place.at(i)), int64(r.Name(i)), r.row.get(i)}
	})
	column("syncs", y.Len(), func(i int) []int64 {
		return []int64{int64(y.Device(i)), y.Stream(i), int64(y.Proc(i)), y.Event(i), y.Epoch(i)}
	})
	var some []int
	for i := 0; i < r.Len(); i += 1 + r.Len()/20 {
		some = append(some, i)
	}
	texts, err := t.RangeText(some)
	if err != nil {
		tb.Fatal(err)
	}
	all["range texts"] = texts
	return all
}

func equal(a, b any) bool {
	if x, ok := a.([]int64); ok {
		return slices.Equal(x, b.([]int64))
	}
	return reflect.DeepEqual(a, b)
}

// sameTrace opens a file both ways and compares all that comes of it. It returns the trace of the fast way, closed.
func sameTrace(tb testing.TB, path string, opt Options) *Trace {
	tb.Helper()
	want, wantErr := reference(tb, path, opt)
	got, gotErr := Open(context.Background(), path, opt)
	if (wantErr == nil) != (gotErr == nil) {
		tb.Fatalf("%s: by pages: error %v, by SQLite: %v", filepath.Base(path), gotErr, wantErr)
	}
	if gotErr != nil {
		return nil
	}
	defer want.Close()
	defer got.Close()
	a, b := contents(tb, got), contents(tb, want)
	for name := range b {
		if !equal(a[name], b[name]) {
			tb.Errorf("%s: %s differ:\nby pages  %.600v\nby SQLite %.600v", filepath.Base(path), name, a[name], b[name])
		}
	}
	return got
}

// traceFiles are the committed synthetic traces and, where they are, the real ones.
func traceFiles(tb testing.TB) []string {
	tb.Helper()
	own, err := filepath.Glob(filepath.FromSlash("../../../testdata/*.sqlite"))
	if err != nil || len(own) == 0 {
		tb.Fatal("no traces in testdata")
	}
	real := longtest.Captures(tb)
	if len(real) == 0 {
		tb.Log("the shared traces are not here: only the synthetic ones are compared")
	}
	return append(own, real...)
}

func TestPagesReadWhatSQLiteReads(t *testing.T) {
	for _, path := range traceFiles(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			if sameTrace(t, path, Options{}) == nil {
				t.Error("cannot be opened")
			}
		})
	}
}

// The columns of a trace are narrow; whatever does not fit must come through.
func TestValuesThatDoNotFitNarrowColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := tracetest.New(tracetest.Shuffle(7))
	th := b.Process(7, "p").Thread(7, "")
	at := int64(0)
	for i := range 5000 {
		at += rng.Int64N(1 << rng.IntN(34)) // up to 17 s apart
		dur := rng.Int64N(1 << rng.IntN(36))
		k := tracetest.Kernel{Start: at, End: at + dur, Name: fmt.Sprintf("kernel_%d_x", rng.IntN(700)), Set: tracetest.Row{}}
		if i%50 == 0 {
			k.Set["correlationId"] = tracetest.Int([]int64{-1, -2, 1<<32 - 2, 1<<32 - 1, 1 << 32, 1<<63 - 1, -1 << 63}[i/50%7])
		}
		b.Kernel(k)
		end := at + dur
		if i%40 == 0 {
			end = tracetest.Open
		}
		th.Range(fmt.Sprintf("layer.%d.x, seq = %d", rng.IntN(400), i), at, end)
		if i%3 == 0 {
			th.Mark("mark", at)
		}
	}
	tr := sameTrace(t, b.WriteTB(t), Options{})
	long := 0 // kernels of more than 32 bits of ns
	for i := range tr.Kernels.Len() {
		if tr.Kernels.Dur(i) >= 1<<32 {
			long++
		}
	}
	if tr.Kernels.Len() != 5000 || long == 0 || tr.Kernels.corr.high == nil || len(tr.Kernels.Names) < 257 {
		t.Errorf("%d kernels, %d long ones, correlation ids of more than 32 bits: %t, %d names", tr.Kernels.Len(), long, tr.Kernels.corr.high != nil, len(tr.Kernels.Names))
	}
}

// More distinct values than two bytes can number.
func TestDictionariesBeyondTwoBytes(t *testing.T) {
	const n = 1<<16 + 500
	b := tracetest.New()
	for i := range int64(n) {
		b.Kernel(tracetest.Kernel{Start: 10 * i, End: 10*i + 5, Name: "k", Set: tracetest.Row{"gridX": tracetest.Int(i % (n - 100))}})
	}
	path := b.WriteTB(t)
	sameTrace(t, path, Options{})
	k := &openPath(t, path, Options{}).Kernels
	if len(k.Configs) != n-100 {
		t.Fatalf("%d configurations, want %d", len(k.Configs), n-100)
	}
	for _, i := range []int{0, 5, 1<<16 - 2, 1<<16 - 1, 1 << 16, n - 101, n - 100, n - 1} {
		if got := k.Configs[k.Config(i)].Grid[0]; int(got) != i%(n-100) {
			t.Errorf("kernel %d: grid of %d, want %d", i, got, i%(n-100))
		}
	}
}

// A file that one byte was changed in is refused by both readers, or read alike, or refused since SQLite's own check finds
// a fault in it.
func TestDamagedFilesAreReadAlikeOrRefused(t *testing.T) {
	plain := readFile(t, tracetest.Tiny(tracetest.Schema(tracetest.OldestSchema)).WriteTB(t))
	dir := t.TempDir()
	rng, refused := rand.New(rand.NewPCG(3, 4)), 0
	for i := range 150 {
		b := bytes.Clone(plain)
		page := 4096 * (1 + rng.IntN(len(b)/4096-1))
		for range 1 + rng.IntN(3) {
			b[page+rng.IntN([]int{16, 200, 4096}[i%3])] = byte(rng.Uint32())
		}
		path := writeFile(t, filepath.Join(dir, "damaged.sqlite"), b)
		tr, err := Open(context.Background(), path, Options{})
		if err == nil {
			tr.Close()
		} else if strings.Contains(err.Error(), "is damaged: page ") {
			refused++
			if checked(t, path) == "ok" {
				t.Errorf("file %d: %v, and SQLite finds no fault", i, err)
			}
			continue
		}
		sameTrace(t, path, Options{})
	}
	if refused == 0 {
		t.Error("no file was refused for its pages")
	}
}

// checked is what SQLite's check says of a file.
func checked(t *testing.T, path string) (said string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow("pragma integrity_check(1)").Scan(&said); err != nil {
		return err.Error()
	}
	return said
}

// A leaf that holds the rows of its neighbour, or of another table, gives no numbers.
func TestLeavesOfOthersAreRefused(t *testing.T) {
	plain, err := os.ReadFile("../../../testdata/serving_graph.sqlite")
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	dir, refused, harmless := t.TempDir(), 0, 0
	rng := rand.New(rand.NewPCG(7, 24))
	for i := range 60 {
		b := bytes.Clone(plain)
		pages := len(b) / size
		from, to := 1+rng.IntN(pages-1), 1+rng.IntN(pages-1)
		if i%2 == 0 {
			to = min(from+1, pages-1)
		}
		if b[from*size] != 13 || from == to { // a leaf
			continue
		}
		copy(b[to*size:(to+1)*size], b[from*size:])
		path := writeFile(t, filepath.Join(dir, "copied.sqlite"), b)
		tr, err := Open(context.Background(), path, Options{})
		if err != nil {
			refused++
			continue
		}
		if harmless++; checked(t, path) == "ok" { // small tables of one shape
			tr.Close()
			continue
		}
		whole := openPath(t, "../../../testdata/serving_graph.sqlite", Options{})
		if a, b := contents(t, tr), contents(t, whole); !reflect.DeepEqual(a, b) {
			t.Errorf("page %d over page %d: read with other rows", from+1, to+1)
		}
		tr.Close()
	}
	if refused < 30 {
		t.Errorf("%d were refused, %d harmless", refused, harmless)
	}
}

func TestDamageNamesThePage(t *testing.T) {
	b := threeKernels()
	for i := range int64(3000) {
		b.Kernel(tracetest.Kernel{Name: "k", Start: 1000 + 10*i, End: 1005 + 10*i})
	}
	path := b.WriteTB(t)
	content := readFile(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var root int
	row := db.QueryRow("select rootpage from sqlite_master where name = 'CUPTI_ACTIVITY_KIND_KERNEL'")
	if err := row.Scan(&root); err != nil {
		t.Fatal(err)
	}
	content[(root-1)*4096] = 0x77
	_, err = Open(context.Background(), writeFile(t, filepath.Join(t.TempDir(), "damaged.sqlite"), content), Options{})
	var input *InputError
	if want := fmt.Sprintf("page %d", root); !errors.As(err, &input) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "CUPTI_ACTIVITY_KIND_KERNEL") {
		t.Errorf("error %v, want one that names the table and %s", err, want)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := os.Getenv("EXPLAIN_BENCH_TRACE")
	if path == "" {
		path = filepath.FromSlash("../../../testdata/serving.sqlite")
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	for name, open := range map[string]func() (*Trace, error){
		"pages":  func() (*Trace, error) { return Open(context.Background(), path, Options{}) },
		"sqlite": func() (*Trace, error) { return reference(b, path, Options{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(info.Size())
			b.ReportAllocs()
			for b.Loop() {
				tr, err := open()
				if err != nil {
					b.Fatal(err)
				}
				if err := tr.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A capture that would not fit into the memory it may use is the same with its columns on disk, and leaves nothing there.
func TestColumnsOnDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip(spill.ErrUnsupported)
	}
	emptyTemp(t)
	for _, path := range traceFiles(t)[:4] {
		want := openPath(t, path, Options{})
		got := openPath(t, path, Options{MaxMemory: 1})
		if !got.Memory().OnDisk() || want.Memory().OnDisk() {
			t.Errorf("%s: on disk: %v with a bound of one byte, %v without", filepath.Base(path), got.Memory().OnDisk(), want.Memory().OnDisk())
		}
		a, b := contents(t, got), contents(t, want)
		for name := range b {
			if !equal(a[name], b[name]) {
				t.Errorf("%s: %s differ", filepath.Base(path), name)
			}
		}
	}
}

func TestColumnsOnADiskThatCannotTakeThem(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip(spill.ErrUnsupported)
	}
	path := threeKernels().WriteTB(t)
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	_, err := Open(context.Background(), path, Options{MaxMemory: 1})
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "TMPDIR") || !strings.Contains(err.Error(), "--max-memory") || strings.Contains(err.Error(), "missing") {
		t.Errorf("error %v, want one that names TMPDIR and --max-memory, and no path", err)
	}
}
