package trace

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// The ids of an export whose columns were rewritten as text are ids still; a range whose text is a number keeps it.
func TestIDsWrittenAsText(t *testing.T) {
	b := threeKernels()
	th := b.Process(7, "python").Thread(7, "worker")
	th.RangeByID("by id", 10, 20)
	th.Range("1", 30, 40)
	path := b.WriteTB(t)
	for table, columns := range map[string]string{
		"CUPTI_ACTIVITY_KIND_KERNEL":  `start text, "end" text, demangledName text, shortName text`,
		"CUPTI_ACTIVITY_KIND_RUNTIME": `start text, "end" text, nameId text`,
		"NVTX_EVENTS":                 `start text, "end" text, eventType text, text text, textId text`,
	} {
		names := strings.ReplaceAll(columns, " text,", ",")
		alter(t, path, "create table x ("+columns+")", "insert into x select "+strings.TrimSuffix(names, " text")+" from "+table, "drop table "+table,
			"alter table x rename to "+table)
	}
	tr := openPath(t, path, Options{})
	wantStrings(t, "kernels", kernelNames(tr), "void first<int>(int)", "second", "third")
	wantStrings(t, "ranges", rangeNamesOf(tr), "by id", "#") // of which numbers are left out
	if n := tr.API.Names; len(n) != 1 || !n[0].Launch {
		t.Errorf("calls = %+v, want cudaLaunchKernel alone", n)
	}
	raw, err := tr.RangeText([]int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "raw text", raw, "by id", "1")
	safe := filepath.Join(t.TempDir(), "safe.sqlite")
	if _, err := Scrub(context.Background(), path, safe, Shown{}, FileOptions{}); err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "kernels of a scrubbed copy", kernelNames(openPath(t, safe, Options{})), "void first<int>(int)", "second", "third")
}

// Old exports have a default where a value is missing: an empty text beside the id of a name, the id 0 beside a text.
func TestRangeNamesBesideDefaults(t *testing.T) {
	b := tracetest.New()
	th := b.Process(7, "python").Thread(7, "worker")
	for i, e := range []tracetest.NVTX{
		{Text: "by id", ByID: true, Set: tracetest.Row{"text": tracetest.Text("")}},
		{Text: "inline", Set: tracetest.Row{"textId": tracetest.Int(0)}},
		{Set: tracetest.Row{"textId": tracetest.Int(0)}},
	} {
		e.Thread, e.Type, e.Start, e.End = th, tracetest.PushPop, int64(10*i), int64(10*i+5)
		b.NVTX(e)
	}
	tr := open(t, b, Options{})
	wantStrings(t, "names", rangeNamesOf(tr), "by id", "inline", unnamed)
	raw, err := tr.RangeText([]int{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "raw text", raw, "by id", "inline", "")
}

// An annotation file that was imported has event types of its own: 65 a mark, 70 and 71 ranges; 64 names a category.
func TestImportedAnnotations(t *testing.T) {
	b := tracetest.New()
	th := b.Process(7, "python").Thread(7, "worker")
	for i, kind := range []tracetest.NVTXType{64, 65, 70, 71} {
		b.NVTX(tracetest.NVTX{Thread: th, Type: kind, Start: int64(10 * i), End: int64(10*i + 5), Text: "r"})
	}
	tr := open(t, b, Options{})
	r := &tr.Ranges
	if r.Len() != 2 || r.Start(0) != 20 || r.Start(1) != 30 {
		t.Errorf("%d ranges; want two, at 20 and at 30", r.Len())
	}
}

// CUPTI's stream ids have 32 bits without a sign: those of the upper half are streams of their own.
func TestLargeStreams(t *testing.T) {
	b := tracetest.New()
	p := b.Process(7, "python")
	for i, stream := range []int64{7, 1 << 31, 1<<32 - 1, -5} {
		b.Kernel(tracetest.Kernel{Place: tracetest.Place{Process: p, Stream: stream}, Name: "k", Start: int64(i), End: int64(i + 1)})
	}
	k := &open(t, b, Options{}).Kernels
	for i, want := range []int64{7, 1 << 31, 1<<32 - 1, -1} {
		if k.Stream(i) != want {
			t.Errorf("stream of kernel %d is %d, want %d", i, k.Stream(i), want)
		}
	}
}

// Tables of another version of the same layout have a number behind their name.
func TestNumberedTables(t *testing.T) {
	tables := []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "NVTX_EVENTS"}
	var opts []tracetest.Option
	for _, name := range tables {
		opts = append(opts, tracetest.RenameTable(name, name+"_V3"))
	}
	want, got := open(t, tracetest.Tiny(), Options{}), open(t, tracetest.Tiny(opts...), Options{})
	if want.Copies.Len() == 0 || got.Kernels.Len() != want.Kernels.Len() || got.API.Len() != want.API.Len() || got.Copies.Len() != want.Copies.Len() ||
		got.Sets.Len() != want.Sets.Len() || got.Ranges.Len() != want.Ranges.Len() {
		t.Errorf("kernels, calls, copies, memsets, ranges: %d %d %d %d %d, want %d %d %d %d %d", got.Kernels.Len(), got.API.Len(), got.Copies.Len(), got.Sets.Len(),
			got.Ranges.Len(), want.Kernels.Len(), want.API.Len(), want.Copies.Len(), want.Sets.Len(), want.Ranges.Len())
	}
}

func TestProgramNames(t *testing.T) {
	for name, want := range map[string]string{
		"python": "python", "/usr/bin/python3 /home/jane/x.py": "python3", `C:\Users\Jane Doe\AppData\python.exe`: "python.exe",
		`C:\Program Files\Server\SERVER.EXE --key abc.exe`: "SERVER.EXE", "wine x.exe": "wine", `C:\app\server --key x.exe`: "server", `python C:\Users\Jane\x.exe`: "python", `C:\app\my app.exe`: "my", `C:\app\server --to C:\Users\Jane\x`: "server", `C:\`: "", "VLLM::EngineCore_DP0": "VLLM::EngineCore_DP0", "": "",
	} {
		if got := baseName(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A table of GPU work that explain cannot read is refused by name: it must not pass for a capture in which nothing ran.
func TestUnknownLayoutIsRefused(t *testing.T) {
	path := threeKernels(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "end")).WriteTB(t)
	_, err := Open(context.Background(), path, Options{})
	var input *InputError
	if !errors.As(err, &input) || !strings.Contains(err.Error(), "CUPTI_ACTIVITY_KIND_KERNEL without a column end") {
		t.Errorf("error %v", err)
	}
}

// Events of the kernel of an operating system are no kernels of a GPU.
func TestKernelOfAnOperatingSystem(t *testing.T) {
	b := threeKernels(tracetest.WithoutTable("CUPTI_ACTIVITY_KIND_KERNEL"))
	b.Row("QNX_KERNEL_EVENTS", tracetest.Row{"start": tracetest.Int(1), "end": tracetest.Int(2), "cpu": tracetest.Int(0)})
	if tr := open(t, b, Options{}); tr.Kernels.Len() != 0 {
		t.Errorf("%d kernels, want none", tr.Kernels.Len())
	}
}

// An old export without metadata that holds events of other libraries alone is no failed export.
func TestEventsOfOtherLibrariesAlone(t *testing.T) {
	b := tracetest.New(tracetest.Schema(tracetest.OldestSchema))
	b.Row("OPENACC_LAUNCH_EVENTS", tracetest.Row{"start": tracetest.Int(1), "end": tracetest.Int(2), "nameId": tracetest.ID("acc_compute_construct")})
	if tr := open(t, b, Options{}); tr.Kernels.Len() != 0 {
		t.Errorf("%d kernels, want none", tr.Kernels.Len())
	}
}

// A link to a capture has no log beside it: the one beside the capture counts.
func TestLogBesideTheFileBehindALink(t *testing.T) {
	emptyTemp(t)
	path := threeKernels(tracetest.WAL()).WriteTB(t)
	link := filepath.Join(t.TempDir(), "link.sqlite")
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no links here:", err)
	}
	tr := openPath(t, link, Options{})
	if tr.Kernels.Len() != 3 || tr.File.Name != "link.sqlite" {
		t.Errorf("%d kernels of %q, want 3 of the name that was given", tr.Kernels.Len(), tr.File.Name)
	}
}

func TestPackedInputNamesThePacker(t *testing.T) {
	for name, c := range map[string]struct{ head, want string }{
		"artifact.zip":     {"PK\x03\x04\x14\x00", "is packed with zip"},
		"trace.sqlite.xz":  {"\xfd7zXZ\x00\x00\x04", "is packed with xz"},
		"trace.sqlite.bz2": {"BZh91AY&SY", "is packed with bzip2"},
		"trace.7z":         {"7z\xbc\xaf\x27\x1c\x00\x04", "is packed with 7-Zip"},
		"kernels.ncu-rep":  {"NVR\x00", "report of Nsight Compute"},
	} {
		_, err := Open(context.Background(), writeFile(t, filepath.Join(t.TempDir(), name), []byte(c.head)), Options{})
		var input *InputError
		if !errors.As(err, &input) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// Tables of events that nothing is made of are named where they hold a row; what is empty or tells no time is not.
func TestTablesLeftOut(t *testing.T) {
	path := alter(t, threeKernels().WriteTB(t),
		`create table OSRT_API (start int, "end" int, nameId int)`, "insert into OSRT_API values (1, 2, 3)",
		"create table COMPOSITE_EVENTS (timestamp int)", "insert into COMPOSITE_EVENTS values (1)",
		`create table MPI_START_WAIT_EVENTS (start int, "end" int)`,
		"create table OF_SOMETHING_ELSE (id int)", "insert into OF_SOMETHING_ELSE values (1)")
	wantStrings(t, "left out", openPath(t, path, Options{}).LeftOut, "COMPOSITE_EVENTS", "OSRT_API")
}
