package trace

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func writeFile(tb testing.TB, path string, b []byte) string {
	tb.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

func zipped(tb testing.TB, b []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		tb.Fatal(err)
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func zstandard(tb testing.TB, b []byte) []byte {
	tb.Helper()
	z, err := zstd.NewWriter(nil)
	if err != nil {
		tb.Fatal(err)
	}
	return z.EncodeAll(b, nil)
}

// folderState is every name, size and content in a folder.
func folderState(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	state := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		state[path] = string(readFile(tb, path))
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return state
}

func sameState(tb testing.TB, before, after map[string]string) {
	tb.Helper()
	for path, content := range after {
		if old, ok := before[path]; !ok {
			tb.Errorf("%s was created beside the input", filepath.Base(path))
		} else if old != content {
			tb.Errorf("%s was changed", filepath.Base(path))
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			tb.Errorf("%s is gone", filepath.Base(path))
		}
	}
}

// emptyTemp sends scratch files into a folder of the test and checks at its end that none is left.
func emptyTemp(tb testing.TB) {
	tb.Helper()
	dir := tb.TempDir()
	if t, ok := tb.(interface{ Setenv(key, value string) }); ok {
		t.Setenv("TMPDIR", dir)
	}
	tb.Cleanup(func() {
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			tb.Errorf("scratch files are left: %v", left)
		}
	})
}

func TestCompressedInput(t *testing.T) {
	emptyTemp(t)
	plain := readFile(t, threeKernels().WriteTB(t))
	dir := t.TempDir()
	for name, content := range map[string][]byte{
		"a.sqlite.gz": zipped(t, plain), "a.sqlite.zst": zstandard(t, plain), "no-extension": zipped(t, plain), "both.zst": zstandard(t, zipped(t, plain)),
	} {
		path := writeFile(t, filepath.Join(dir, name), content)
		before := folderState(t, dir)
		tr := openPath(t, path, Options{})
		if tr.Kernels.Len() != 3 || tr.File.Name != name || tr.File.Bytes != int64(len(content)) {
			t.Errorf("%s: %d kernels, file %+v", name, tr.Kernels.Len(), tr.File)
		}
		sameState(t, before, folderState(t, dir))
	}
}

// A write-ahead log with content is part of the capture: ignoring it would silently show old data, and reading it in
// place would create files.
func TestWriteAheadLog(t *testing.T) {
	emptyTemp(t)
	path := threeKernels(tracetest.WAL()).WriteTB(t)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatal("the trace has no log")
	}
	before := folderState(t, filepath.Dir(path))
	if n := openPath(t, path, Options{}).Kernels.Len(); n != 3 {
		t.Errorf("%d kernels with the log, want 3", n)
	}
	sameState(t, before, folderState(t, filepath.Dir(path)))
}

func TestReadOnlyFolder(t *testing.T) {
	emptyTemp(t)
	for name, opts := range map[string][]tracetest.Option{"plain": nil, "log": {tracetest.WAL()}} {
		path := threeKernels(opts...).WriteTB(t)
		dir := filepath.Dir(path)
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) })
		if n := openPath(t, path, Options{}).Kernels.Len(); n != 3 {
			t.Errorf("%s: %d kernels, want 3", name, n)
		}
	}
}

func TestBadInputSaysWhatItIsAndWhatToDo(t *testing.T) {
	emptyTemp(t)
	dir := t.TempDir()
	plain := readFile(t, threeKernels().WriteTB(t))
	skeleton := tracetest.New(tracetest.Schema(tracetest.OldestSchema))
	skeleton.Unused("[Unknown]")
	foreign := tracetest.New(tracetest.Schema(tracetest.OldestSchema), tracetest.RenameTable("StringIds", "customers"))
	foreign.Unused("Alice")
	corrupt := bytes.Clone(plain)
	for i := 4096; i < len(corrupt); i++ {
		corrupt[i] = 0xa5
	}
	for _, c := range []struct {
		name    string
		content []byte
		want    string
	}{
		{"missing.sqlite", nil, "does not exist"},
		{"empty.sqlite", []byte{}, "is empty"},
		{"text.sqlite", []byte("hello, this is no database at all"), "is not an Nsight Systems export"},
		{"short.sqlite", []byte("SQLite for"), "is a truncated SQLite file"},
		{"header.sqlite", plain[:90], "is a truncated SQLite file"},
		{"half.sqlite", plain[:len(plain)/2], "is truncated: its header states"},
		{"half.gz", zipped(t, plain)[:2000], "cannot be unpacked"},
		{"half.zst", zstandard(t, plain)[:2000], "cannot be unpacked"},
		{"corrupt.sqlite", corrupt, "damaged"},
		{"raw.qdstrm", []byte("anything"), "QdstrmImporter"},
		{"skeleton.sqlite", readFile(t, skeleton.WriteTB(t)), "failed nsys export"},
		{"foreign.sqlite", readFile(t, foreign.WriteTB(t)), "not an Nsight Systems export"},
	} {
		path := filepath.Join(dir, c.name)
		if c.content != nil {
			writeFile(t, path, c.content)
		}
		before := folderState(t, dir)
		_, err := Open(context.Background(), path, Options{FileOptions: FileOptions{Getenv: func(string) string { return "" }}})
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), dir) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one sentence without a path that says %q", c.name, err, c.want)
		}
		sameState(t, before, folderState(t, dir))
	}
	if _, err := Open(context.Background(), dir, Options{}); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("folder: %v", err)
	}
}

// fakeNsys is a program that does what the script says in place of nsys.
func fakeNsys(tb testing.TB, script string) string {
	tb.Helper()
	if runtime.GOOS == "windows" {
		tb.Skip("the fake for nsys is a shell script")
	}
	path := filepath.Join(tb.TempDir(), "nsys")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		tb.Fatal(err)
	}
	return path
}

func TestReportIsExportedByNsys(t *testing.T) {
	emptyTemp(t)
	sqlite := threeKernels().WriteTB(t)
	dir := t.TempDir()
	path := writeFile(t, filepath.Join(dir, "run 1.nsys-rep"), []byte("opaque"))
	args := filepath.Join(t.TempDir(), "args")
	nsys := fakeNsys(t, `for a in "$@"; do echo "$a" >>`+args+`; done; cp `+sqlite+` "$7"`+"\n")
	before := folderState(t, dir)
	tr := openPath(t, path, Options{FileOptions: FileOptions{Getenv: func(k string) string { return map[string]string{"NSYS": nsys}[k] }}})
	if tr.Kernels.Len() != 3 || tr.File.Kind != "nsys-rep" {
		t.Errorf("%d kernels, kind %s", tr.Kernels.Len(), tr.File.Kind)
	}
	got := strings.Split(strings.TrimSpace(string(readFile(t, args))), "\n")
	if want := "export --type sqlite --lazy=false --force-overwrite=true --output"; strings.Join(got[:len(got)-2], " ") != want || got[len(got)-1] != path {
		t.Errorf("nsys was called with %q, want %s OUT %s", got, want, path)
	}
	sameState(t, before, folderState(t, dir))

	failing := fakeNsys(t, "echo loading; echo 'Importer error: wrong version' >&2; exit 1\n")
	_, err := Open(context.Background(), path, Options{FileOptions: FileOptions{Getenv: func(string) string { return failing }}})
	if err == nil || !strings.Contains(err.Error(), "Importer error: wrong version") {
		t.Errorf("error = %v, want what nsys said", err)
	}
}

func TestReportWithoutNsysNamesTheCommand(t *testing.T) {
	emptyTemp(t)
	t.Setenv("PATH", t.TempDir())
	path := writeFile(t, filepath.Join(t.TempDir(), "it's.nsys-rep"), []byte("opaque"))
	_, err := Open(context.Background(), path, Options{FileOptions: FileOptions{Getenv: func(string) string { return "" }}})
	want := `nsys export --type sqlite --lazy=false --force-overwrite=true --output 'it'\''s.sqlite' 'it'\''s.nsys-rep'`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want the command %s", err, want)
	}
}

// A view without end must not run for ever: no table has more rows than its file has bytes.
func TestEndlessView(t *testing.T) {
	src := &endless{}
	l := &scanner{ctx: context.Background(), src: src, opt: &Options{}, maxRows: 1000}
	err := l.scan(source.Table{Name: "v", Columns: []string{"a"}, View: true}, []string{"a"}, func([]cell) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "more rows than") {
		t.Errorf("error = %v", err)
	}
}

// A view that gives its rows slowly is left as soon as the user asks.
func TestScanStopsAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &scanner{ctx: ctx, src: &endless{}, opt: &Options{}, maxRows: 1 << 20}
	rows := 0
	err := l.scan(source.Table{Name: "v", View: true}, []string{"a"}, func([]cell) error {
		rows++
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) || rows != 1 {
		t.Errorf("%d rows, error = %v", rows, err)
	}
}

type endless struct{ source.Source }

func (e *endless) Scan(_ source.Table, _ []string, each func([]cell) error) error {
	for {
		if err := each([]cell{pages.IntCell(0)}); err != nil {
			return err
		}
	}
}

func TestDescribe(t *testing.T) {
	d, err := Describe(context.Background(), threeKernels().WriteTB(t), FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range d.Tables {
		if s.Name == "CUPTI_ACTIVITY_KIND_KERNEL" {
			if s.Rows != 3 || s.First != 100 || s.Last != 310 || s.Columns[0] != (source.ColumnShape{Name: "start", Type: "INTEGER"}) {
				t.Errorf("kernel table: %+v", s)
			}
			return
		}
	}
	t.Error("no kernel table")
}
