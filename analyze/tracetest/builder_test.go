package tracetest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSameCallsSameBytes(t *testing.T) {
	for _, opts := range [][]Option{nil, {Schema("3.25.0"), UTF16(), PageSize(1024), AutoVacuum(1), Shuffle(3)}, {Schema(OldestSchema), InlineNames()}} {
		a, err := os.ReadFile(Tiny(opts...).WriteTB(t))
		if err != nil {
			t.Fatal(err)
		}
		builder := Tiny(opts...)
		builder.WriteTB(t)
		b, err := os.ReadFile(builder.WriteTB(t)) // a second write of one builder
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%d options: two files differ", len(opts))
		}
	}
}

// The real exports whose tables ours must have, column for column, type for type.
var sameSchema = []struct{ schema, trace string }{
	{OldestSchema, "mordred_native_old_b"},
	{"3.0.0", "rodinia_report2_native"},
	{"3.0.0", "centerformer_baseline_nvtxonly"},
	{"3.6.0", "pycnv_2023_4_1_nocuda"},
	{"3.7.2", "alpa_r1_memcpy_nokernel"},
	{"3.11.1", "sglang_baseline_report"},
	{"3.16.1", "cs336zx_2_7B_nvtx"},
	{"3.16.1", "cs336zx_2_7B_compile_cudagraph"},
	{"3.17.2", "cs336_jsun_4ae893"},
	{"3.23.3", "weatherbench_2025_5"},
	{"3.25.0", "nsysai_mfu_2gpu_after"},
}

// everything is a builder with a row in every table the package writes.
func everything(opts ...Option) *Builder {
	b := Tiny(opts...)
	th := b.Process(7, "other").Thread(7, "other")
	th.OSRT("poll", 1, 2)
	th.GraphLaunchWhole(1, 2, GraphTrace{Start: 3, End: 4, Graph: 1, Exec: 1})
	b.GraphEvent(GraphEvent{Thread: th, Name: "Graph Creation", At: -5, Graph: 1})
	b.Overhead(Overhead{Thread: th, Name: "CUPTI buffer flush", Start: 1, End: 2})
	b.Diagnostic(Diagnostic{At: 1, Source: 2, Severity: 2, Text: "dropped"})
	b.Env("CpuCores", "64")
	b.Row("CUPTI_ACTIVITY_KIND_CUDA_EVENT", Row{
		"timestamp": Int(1), "deviceId": Int(0), "contextId": Int(1), "streamId": Int(7), "globalPid": Int(th.Process().GlobalPid()), "eventId": Int(3),
	})
	b.Row("CUPTI_ACTIVITY_KIND_OVERHEAD", Row{"start": Int(1), "end": Int(2), "eventClass": Int(103), "overheadType": Int(8)})
	b.Canaries(nil)
	return b
}

func TestColumnsAreThoseOfRealExports(t *testing.T) {
	for _, tt := range sameSchema {
		t.Run(tt.trace, func(t *testing.T) {
			real := tables(t, realTrace(t, tt.trace))
			ours := tables(t, everything(Schema(tt.schema)).WriteTB(t))
			compared := 0
			for name, want := range real {
				got, ok := ours[name]
				if !ok {
					if strings.HasPrefix(name, "CUPTI_") || strings.HasPrefix(name, "META_") || strings.HasPrefix(name, "NVTX_") || strings.HasPrefix(name, "EXPORT_") {
						t.Errorf("no table %s", name)
					}
					continue
				}
				compared++
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s (-real +ours):\n%s", name, diff)
				}
			}
			if compared < 8 {
				t.Errorf("only %d tables compared", compared)
			}
			for name := range ours {
				if _, ok := real[name]; !ok && strings.HasPrefix(name, "ENUM_C") {
					t.Errorf("real export has no %s", name)
				}
			}
		})
	}
}

// tables lists every table of a file: its columns with type, NOT NULL and PRIMARY KEY.
func tables(t *testing.T, path string) map[string][]string {
	t.Helper()
	db := open(t, "file:"+path+"?mode=ro&immutable=1")
	out := map[string][]string{}
	for _, name := range texts(t, db, "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'") {
		out[name] = texts(t, db, "SELECT name || ' ' || type || iif(\"notnull\", ' NOT NULL', '') || iif(pk, ' PRIMARY KEY', '') FROM pragma_table_info(?)", name)
	}
	return out
}

func TestTablesExistOnlyWithRows(t *testing.T) {
	b := New()
	b.Process(1, "x").Thread(1, "").Range("only", 0, 1)
	got := tables(t, b.WriteTB(t))
	for _, name := range []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "ThreadNames", "TARGET_INFO_GPU", "DIAGNOSTIC_EVENT"} {
		if got[name] != nil {
			t.Errorf("table %s without rows", name)
		}
	}
	if got["NVTX_EVENTS"] == nil || got["PROCESSES"] == nil || got["META_DATA_EXPORT"] == nil {
		t.Errorf("tables missing: %v", got)
	}
}

func TestGlobalIDsKeepMachinesApart(t *testing.T) {
	b := New()
	a := b.Process(77, "a")
	z := b.Process(77, "z", OnMachine(3, 2))
	if want := int64(1)<<48 | 77<<24; a.GlobalPid() != want {
		t.Errorf("globalPid %x, want %x", a.GlobalPid(), want)
	}
	if want := int64(3)<<56 | 2<<48 | 77<<24 | 0x34; z.Thread(0x1000034, "").GlobalTid() != want {
		t.Errorf("globalTid %x, want %x", z.Thread(0x1000034, "").GlobalTid(), want)
	}
	if b.err != nil {
		t.Error(b.err)
	}
	b.Process(77, "a again")
	if err := b.Write(filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "there twice") {
		t.Errorf("the same process twice: %v", err)
	}
}

func TestErrorsComeFromWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.sqlite")
	bad := New()
	bad.Row("CUPTI_ACTIVITY_KIND_KERNEL", Row{"strat": Int(1)})
	tests := []struct {
		name string
		b    *Builder
		want string
	}{
		{"schema", New(Schema("9.9.9")), "not one this package knows"},
		{"schema form", New(Schema("3")), "MAJOR.MINOR.MICRO"},
		{"column", bad, "no column strat"},
	}
	for _, tt := range tests {
		if err := tt.b.Write(path); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q in it", tt.name, err, tt.want)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: left a file", tt.name)
		}
	}
}

func TestOptions(t *testing.T) {
	const kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
	build := func(opts ...Option) string { return Tiny(opts...).WriteTB(t) }
	check := func(path, query, want string) {
		t.Helper()
		if got := text(t, open(t, path), query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	without := tables(t, build(WithoutColumn(kernels, "globalPid"), WithoutTable("PROCESSES"), EmptyTable("CUPTI_ACTIVITY_KIND_CUDA_EVENT"), EmptyTable("OSRT_API")))
	if slices.ContainsFunc(without[kernels], func(s string) bool { return strings.HasPrefix(s, "globalPid") }) || without["PROCESSES"] != nil {
		t.Error("column or table still there")
	}
	if without["OSRT_API"] == nil || without["CUPTI_ACTIVITY_KIND_CUDA_EVENT"] == nil {
		t.Error("empty tables are not there")
	}
	check(build(RenameTable(kernels, "KERNELS")), "SELECT count(*) FROM KERNELS", "13")
	check(build(AsView(kernels)), "SELECT count(*) || type FROM "+kernels+", sqlite_master WHERE name = '"+kernels+"'", "13view")
	check(build(WithColumn(kernels, "note", "TEXT")), "SELECT count(*) FROM "+kernels+" WHERE note IS NULL", "13")
	check(build(DanglingID("gemm")), "SELECT count(*) FROM "+kernels+" k LEFT JOIN StringIds s ON s.id = k.demangledName WHERE s.id IS NULL", "5")
	check(build(InlineNames()), "SELECT count(*) FROM "+kernels+" WHERE demangledName = 'gemm' AND typeof(shortName) = 'text'", "5")
	check(build(InlineNames()), "SELECT type FROM pragma_table_info('"+kernels+"') WHERE name = 'demangledName'", "TEXT")
	check(build(UTF16()), "PRAGMA encoding", "UTF-16le")
	check(build(PageSize(512)), "PRAGMA page_size", "512")
	check(build(AutoVacuum(2)), "PRAGMA auto_vacuum", "2")
	check(build(), "PRAGMA journal_mode", "delete")
	check(build(Schema("3.0.0")), "SELECT value FROM EXPORT_META_DATA WHERE name = 'EXPORT_SCHEMA_VERSION'", "3.0.0")

	const starts = "SELECT group_concat(start) FROM (SELECT start FROM " + kernels + " ORDER BY rowid)"
	plain := text(t, open(t, build()), starts)
	if !slices.IsSortedFunc(strings.Split(plain, ","), func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }) {
		t.Errorf("kernels not by start: %s", plain)
	}
	if text(t, open(t, build(Shuffle(1))), starts) == plain {
		t.Error("shuffled kernels are in order")
	}
}

func TestWALKeepsRowsInTheLog(t *testing.T) {
	path := Tiny(WAL()).WriteTB(t)
	if info, err := os.Stat(path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("no write-ahead log: %v", err)
	}
	const all = "SELECT sum(n) FROM (SELECT count(*) n FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL SELECT count(*) FROM NVTX_EVENTS)"
	main := text(t, open(t, "file:"+path+"?mode=ro&immutable=1"), all) // does not see the log
	if both := text(t, open(t, path), all); both != "17" || main == both {
		t.Errorf("%s rows, %s of them not in the log; want 17 and fewer", both, main)
	}
	if err := Tiny().Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); err == nil {
		t.Error("an old log lies beside the new file")
	}
}

func TestSetWritesMalformedRows(t *testing.T) {
	b := New()
	b.Kernel(Kernel{Name: "backwards", Start: 10, End: 5})
	b.Kernel(Kernel{Name: "timeless", Set: Row{"start": Null(), "end": Null(), "demangledName": Int(4711)}})
	b.NVTX(NVTX{Type: PushPop, Start: 1, End: Open, Text: "unclosed"})
	b.Row("MADE_UP", Row{"a": Int(1), "b": Text("x"), "c": Real(0.5)})
	db := open(t, b.WriteTB(t))
	want := []string{"NULL/NULL/4711", "10/5/1"}
	got := texts(t, db, "SELECT ifnull(start, 'NULL') || '/' || ifnull(\"end\", 'NULL') || '/' || demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := text(t, db, "SELECT \"end\" FROM NVTX_EVENTS"); got != "NULL" {
		t.Errorf("open range ends at %s", got)
	}
	if got := text(t, db, "SELECT a || b || c FROM MADE_UP"); got != "1x0.5" {
		t.Errorf("made-up table holds %s", got)
	}
}

func TestShortName(t *testing.T) {
	for name, want := range map[string]string{
		"gemm":   "gemm",
		embed:    "indexSelectLargeIndex",
		oneStage: "cross_device_reduce_1stage",
		flash:    "device_kernel",
		"f(int)": "f",
	} {
		if got := shortName(name); got != want {
			t.Errorf("shortName(%q) = %q, want %q", name, got, want)
		}
	}
}

func ExampleBuilder() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	b := New(Schema("3.16.1"))
	th := b.Process(100, "python").Thread(100, "main")
	th.Range("step", 0, 50_000)
	id := th.Launch("gemm", 1_000, 3_000, Kernel{Start: 5_000, End: 25_000})
	fmt.Println(id, b.Write(filepath.Join(dir, "trace.sqlite")))
	// Output: 1 <nil>
}
