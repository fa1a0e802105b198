package trace

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// open loads a synthetic trace.
func open(tb testing.TB, b *tracetest.Builder, opt Options) *Trace {
	tb.Helper()
	return openPath(tb, b.WriteTB(tb), opt)
}

func openPath(tb testing.TB, path string, opt Options) *Trace {
	tb.Helper()
	t, err := Open(context.Background(), path, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})
	return t
}

func kernelNames(t *Trace) []string {
	var names []string
	for i := range t.Kernels.Len() {
		names = append(names, t.Kernels.Names[t.Kernels.Name(i)].Name)
	}
	return names
}

func rangeNamesOf(t *Trace) []string {
	var names []string
	for i := range t.Ranges.Len() {
		names = append(names, t.Ranges.Names[t.Ranges.Name(i)].Text)
	}
	return names
}

func wantStrings(tb testing.TB, what string, got []string, want ...string) {
	tb.Helper()
	if !slices.Equal(got, want) {
		tb.Errorf("%s = %q, want %q", what, got, want)
	}
}

// threeKernels is a trace with kernels at 100, 200 and 300.
func threeKernels(opts ...tracetest.Option) *tracetest.Builder {
	b := tracetest.New(opts...)
	th := b.Process(100, "python").Thread(100, "main")
	for i, name := range []string{"void first<int>(int)", "second", "third"} {
		at := int64(100 * (i + 1))
		th.Launch(name, at-50, at-40, tracetest.Kernel{Start: at, End: at + 10})
	}
	return b
}

func TestNamesResolveThroughIDsOrInline(t *testing.T) {
	want := []string{"void first<int>(int)", "second", "third"}
	for name, opts := range map[string][]tracetest.Option{
		"ids": nil, "inline": {tracetest.InlineNames()}, "utf16": {tracetest.UTF16()}, "view": {tracetest.AsView("CUPTI_ACTIVITY_KIND_KERNEL")},
		"page": {tracetest.PageSize(1024)}, "vacuum": {tracetest.AutoVacuum(1)}, "shuffled": {tracetest.Shuffle(7)},
		"oldest": {tracetest.Schema(tracetest.OldestSchema)}, "newest": {tracetest.Schema("3.25.0")},
		"renamed": {tracetest.RenameTable("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")},
		"hinted":  {tracetest.RenameTable("CUPTI_ACTIVITY_KIND_KERNEL", "MY_KERNELS")},
		"extra":   {tracetest.WithColumn("CUPTI_ACTIVITY_KIND_KERNEL", "kernel_name", "TEXT")},
	} {
		t.Run(name, func(t *testing.T) {
			wantStrings(t, "names", kernelNames(open(t, threeKernels(opts...), Options{})), want...)
		})
	}
}

// Without a string for the demangled name the short name serves; without any string the row stays, as #<id>.
func TestNameWithoutStringKeepsItsRow(t *testing.T) {
	b := threeKernels(tracetest.DanglingID("second"), tracetest.DanglingID("void first<int>(int)"))
	got := kernelNames(open(t, b, Options{}))
	if len(got) != 3 || got[0] != "first" || got[1][0] != '#' || got[2] != "third" {
		t.Errorf("names = %q, want the short name first, then #<id>, then third", got)
	}
}

func TestIdentityIsTheWholeUpperPart(t *testing.T) {
	b := tracetest.New()
	for _, hw := range []int64{0, 1} {
		th := b.Process(100, "python", tracetest.OnMachine(hw, 1)).Thread(100, "main")
		th.Launch("k", 10, 20, tracetest.Kernel{Start: 100 + hw, End: 110})
	}
	tr := open(t, b, Options{})
	if len(tr.Procs) != 2 || tr.Procs[0].PID != 100 || tr.Procs[1].PID != 100 || tr.Procs[0].Global == tr.Procs[1].Global {
		t.Fatalf("processes = %+v, want two with pid 100 on different hardware", tr.Procs)
	}
	if a, b := tr.Kernels.Proc(0), tr.Kernels.Proc(1); a != 0 || b != 1 {
		t.Errorf("kernels belong to processes %d and %d, want 0 and 1", a, b)
	}
	if th := tr.Threads[tr.API.Thread(0)]; th.TID != 100 || th.Name != "main" {
		t.Errorf("thread = %+v, want tid 100 named main", th)
	}
}

func TestMissingColumnsReadAsUnknown(t *testing.T) {
	const table = "CUPTI_ACTIVITY_KIND_KERNEL"
	tr := open(t, threeKernels(tracetest.WithoutColumn(table, "globalPid"), tracetest.WithoutColumn(table, "correlationId"),
		tracetest.WithoutColumn(table, "deviceId"), tracetest.WithoutColumn(table, "mangledName"), tracetest.WithoutColumn(table, "demangledName")), Options{})
	k := &tr.Kernels
	if k.Len() != 3 || k.Proc(0) != None || k.Corr(0) != -1 || k.Device(0) != -1 {
		t.Errorf("kernel 0: process %d, correlation %d, device %d, want unknown", k.Proc(0), k.Corr(0), k.Device(0))
	}
	if tr.Has.KernelPID || tr.Has.KernelCorrelation || tr.Has.KernelDevice {
		t.Errorf("Has = %+v claims columns that are not there", tr.Has)
	}
	wantStrings(t, "names", kernelNames(tr), "first", "second", "third")
}

// Rows with NULL times or end before start are counted and left out; the others are sorted by start.
func TestUnsoundRowsAreCounted(t *testing.T) {
	b := threeKernels(tracetest.Shuffle(3))
	b.Kernel(tracetest.Kernel{Name: "negative", Start: 500, End: 400})
	b.Kernel(tracetest.Kernel{Name: "null", Start: 600, End: 700, Set: tracetest.Row{"end": tracetest.Null()}})
	b.Kernel(tracetest.Kernel{Name: "instant", Start: 50, End: 50})
	tr := open(t, b, Options{})
	wantStrings(t, "names", kernelNames(tr), "instant", "void first<int>(int)", "second", "third")
	for _, s := range tr.Tables {
		if s.Role == RoleKernel && (s.Rows != 6 || s.Skipped != 2) {
			t.Errorf("kernel table: %d rows, %d skipped, want 6 and 2", s.Rows, s.Skipped)
		}
	}
}

func TestRanges(t *testing.T) {
	b := threeKernels()
	th := b.Process(7, "python").Thread(7, "worker")
	th.Range("aten::mm, seq = 12, op_id = 34", 10, 20)
	th.RangeByID("aten::mm, seq = 13, op_id = 35", 30, 40)
	th.Range("open", 50, tracetest.Open)
	th.StartEnd("request", 60, 70)
	th.Mark("mark", 65)
	th.Range("", 80, 90)
	b.NVTX(tracetest.NVTX{Thread: th, Type: tracetest.DomainCreate, Start: 1, End: tracetest.Open, Text: "domain"})
	var tagged []string
	tr := open(t, b, Options{Tag: func(raw string) uint32 {
		tagged = append(tagged, raw)
		if raw == "aten::mm, seq = 13, op_id = 35" {
			return 5
		}
		return 0
	}})
	wantStrings(t, "canonical names", rangeNamesOf(tr), "aten::mm", "aten::mm", "open", "request", "(unnamed)")
	r := &tr.Ranges
	if a, b := r.Names[r.Name(0)], r.Names[r.Name(1)]; a.Tag != 0 || b.Tag != 5 {
		t.Errorf("tags of equal canonical names = %d and %d, want 0 and 5: they must stay apart", a.Tag, b.Tag)
	}
	if !r.Open(2) || r.End(2) != 310 {
		t.Errorf("open range ends at %d (open %v), want 310, the last moment of the capture", r.End(2), r.Open(2))
	}
	raw, err := tr.RangeText([]int{3, 0, 1, 4})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "raw text", raw, "request", "aten::mm, seq = 12, op_id = 34", "aten::mm, seq = 13, op_id = 35", "")
	if len(tagged) != 5 {
		t.Errorf("Tag was asked %d times (%q), want once per distinct raw text", len(tagged), tagged)
	}
	tr.DropRanges()
	if r.Len() != 0 || !r.Any() || len(r.Names) != 5 {
		t.Errorf("after DropRanges %d ranges, any: %v, %d names; want 0, true, 5", r.Len(), r.Any(), len(r.Names))
	}
	if tr := open(t, threeKernels(), Options{}); tr.Ranges.Any() {
		t.Error("a trace without ranges has some")
	}
}

func TestStripSuffix(t *testing.T) {
	for name, want := range map[string]string{
		"cudaLaunchKernel_v7000": "cudaLaunchKernel", "cudaLaunchKernel_ptsz_v7000": "cudaLaunchKernel", "cuMemcpyHtoDAsync_v2": "cuMemcpyHtoDAsync",
		"cudaGetDeviceProperties_v2_v12000": "cudaGetDeviceProperties", "cuLaunchKernelEx": "cuLaunchKernelEx", "_v7": "_v7", "a_vx": "a_vx", "": "", "a_v": "a_v",
	} {
		if got := stripSuffix(name); got != want {
			t.Errorf("stripSuffix(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestClassifyAPI(t *testing.T) {
	for _, c := range []struct {
		names string
		want  APIName
	}{
		{"cudaLaunchKernel", APIName{Launch: true}},
		{"cudaLaunchKernelExC", APIName{Launch: true}},
		{"cuLaunchKernelEx", APIName{Launch: true}},
		{"cudaLaunchCooperativeKernel", APIName{Launch: true}},
		{"cudaGraphLaunch", APIName{Launch: true, GraphLaunch: true}},
		{"cuGraphLaunch", APIName{Launch: true, GraphLaunch: true}},
		{"cudaLaunchHostFunc", APIName{}},
		{"cuLaunchHostFunc", APIName{}},
		{"cudaGraphInstantiate", APIName{}},
		{"cudaStreamSynchronize", APIName{Sync: true}},
		{"cuCtxSynchronize", APIName{Sync: true}},
		{"cudaEventSynchronize", APIName{Sync: true}},
		{"cudaDeviceSynchronize", APIName{Sync: true}},
		{"cudaThreadSynchronize", APIName{OldSync: true}},
		{"cudaStreamWaitEvent", APIName{Wait: true}},
		{"cudaEventQuery", APIName{Poll: true}},
		{"cudaMemcpy", APIName{SyncCopy: true}},
		{"cuMemcpyDtoH", APIName{SyncCopy: true}},
		{"cudaMemcpyAsync", APIName{AsyncCopy: true}},
		{"cudaMemset", APIName{Memset: true}},
		{"cudaMemsetAsync", APIName{Memset: true, AsyncSet: true}},
		{"cudaMalloc", APIName{}},
		{"vkQueueSubmit", APIName{}},
	} {
		want := c.want
		want.Name = c.names
		if got := classifyAPI(c.names); got != want {
			t.Errorf("classifyAPI(%q) = %+v, want %+v", c.names, got, want)
		}
	}
}

func TestMetadataComesThroughAnAllowList(t *testing.T) {
	b := threeKernels()
	b.Env("NvDriverVersion", "580.95.05")
	b.Env("DeviceEnvironment", "SECRET=hunter2")
	b.Env("OsDescription", "line\nbreak")
	tr := open(t, b, Options{})
	if tr.Meta.Driver != "580.95.05" || tr.Meta.OS != "" {
		t.Errorf("driver %q, os %q; want 580.95.05, and no value with a control character", tr.Meta.Driver, tr.Meta.OS)
	}
	if tr.Meta.SchemaVersion != "3.16.1" {
		t.Errorf("schema version %q, want 3.16.1", tr.Meta.SchemaVersion)
	}
	if got := cudaVersion("12010"); got != "12.1" {
		t.Errorf("cudaVersion(12010) = %q, want 12.1", got)
	}
}

func TestStarting(t *testing.T) {
	tr := open(t, threeKernels(), Options{})
	for _, c := range []struct{ from, to, lo, hi int64 }{{0, 1000, 0, 3}, {100, 200, 0, 1}, {100, 201, 0, 2}, {101, 199, 1, 1}, {300, 300, 2, 2}, {400, 500, 3, 3}} {
		if lo, hi := tr.Kernels.Starting(c.from, c.to); int64(lo) != c.lo || int64(hi) != c.hi {
			t.Errorf("Starting(%d, %d) = %d, %d, want %d, %d", c.from, c.to, lo, hi, c.lo, c.hi)
		}
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Open(ctx, threeKernels().WriteTB(t), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want context.Canceled", err)
	}
}

// Two ranks that each see one GPU both call it device 0; the capture's device table tells them apart.
func TestDevicesOfRanksAreToldApart(t *testing.T) {
	for _, c := range []struct {
		gpus [2]int64 // adapter of pid 100 and of pid 200
		want [2]int32
	}{{[2]int64{0, 1}, [2]int32{0, 1}}, {[2]int64{3, 3}, [2]int32{0, 0}}} {
		b := tracetest.New(tracetest.Schema("3.17.2"), tracetest.EmptyTable("TARGET_INFO_CUDA_DEVICE"))
		for i, pid := range []int64{100, 200} {
			th := b.Process(pid, "python").Thread(pid, "main")
			th.Launch("k", 10, 20, tracetest.Kernel{Start: 100 + int64(i), End: 110})
			th.EventRecord(30+int64(i), 31+int64(i), 0, 7, 5)
			th.StreamWaitEvent(40+int64(i), 41+int64(i), 0, 21, 5)
			b.Row("CUDA_GPU_MEMORY_USAGE_EVENTS", tracetest.Row{"start": tracetest.Int(50 + int64(i)),
				"globalPid": tracetest.Int(th.Process().GlobalPid()), "deviceId": tracetest.Int(0), "contextId": tracetest.Int(1),
				"address": tracetest.Int(1), "pc": tracetest.Int(0), "bytes": tracetest.Int(64), "memKind": tracetest.Int(2),
				"memoryOperationType": tracetest.Int(0)})
			b.Row("TARGET_INFO_CUDA_DEVICE", tracetest.Row{"gpuId": tracetest.Int(c.gpus[i]), "cudaId": tracetest.Int(0), "pid": tracetest.Int(pid)})
		}
		tr := open(t, b, Options{})
		if got := [2]int32{tr.Kernels.Device(0), tr.Kernels.Device(1)}; got != c.want {
			t.Errorf("adapters %v: devices %v, want %v", c.gpus, got, c.want)
		}
		for what, got := range map[string][2]int32{"waits": {tr.Syncs.Device(0), tr.Syncs.Device(1)},
			"events": {tr.Events[0].Device, tr.Events[1].Device}, "memory": {tr.Allocs[0].Device, tr.Allocs[1].Device}} {
			if got != c.want {
				t.Errorf("adapters %v: devices of %s %v, want %v", c.gpus, what, got, c.want)
			}
		}
	}
}

// An event is recorded into stream 7, and stream 21 waits for it; the thread waits for the whole context, which has no
// stream and no event. A row of an event without a correlation id says nothing.
func TestEventsAndWhoWaitsForThem(t *testing.T) {
	b := tracetest.New(tracetest.Schema("3.25.0"))
	th := b.Process(100, "p").Thread(100, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 10})
	record := th.EventRecord(2, 3, 0, 7, 5)
	wait := th.StreamWaitEvent(4, 5, 0, 21, 5)
	th.DeviceSynchronize(6, 7, 0)
	b.Event(tracetest.Event{Place: tracetest.Place{Process: th.Process()}, ID: 9})
	tr := open(t, b, Options{})
	if len(tr.Events) != 1 {
		t.Fatalf("%d events", len(tr.Events))
	}
	if got, want := tr.Events[0], (Event{Corr: record, Event: 5, Epoch: 0, Stream: 7, Device: 0, Proc: 0}); got != want {
		t.Errorf("event %+v, want %+v", got, want)
	}
	s := &tr.Syncs
	if s.Corr(0) != wait || s.Event(0) != 5 || s.Stream(0) != 21 || s.Device(0) != 0 || s.Epoch(0) != 0 {
		t.Errorf("wait: %d %d %d %d %d", s.Corr(0), s.Event(0), s.Stream(0), s.Device(0), s.Epoch(0))
	}
	if s.Event(1) != -1 || s.Stream(1) != -1 {
		t.Errorf("device synchronization: event %d, stream %d", s.Event(1), s.Stream(1))
	}
	for _, x := range tr.Tables {
		if x.Role == RoleEvent && (x.Rows != 2 || x.Skipped != 1) {
			t.Errorf("%s: %d rows, %d skipped", x.Name, x.Rows, x.Skipped)
		}
	}
}

// A defect that shows while rows are read is a panic of the caller, which can make an error of it, and not the end of
// the program.
func TestPanicsWhileReadingReachTheCaller(t *testing.T) {
	b := threeKernels()
	b.Process(7, "python").Thread(7, "worker").Range("forward", 10, 20)
	path := b.WriteTB(t)
	defer func() {
		if p := recover(); p != "of the tag" {
			t.Errorf("recovered %v", p)
		}
	}()
	tr, err := Open(context.Background(), path, Options{Tag: func(string) uint32 { panic("of the tag") }})
	t.Errorf("%v, %v", tr, err)
}
