package kineto

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

func spanOf(category, name string, pid, tid int, at, length float64, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"args":{%s}}`, category, name, pid, tid, at, length, args)
}

func traceOf(events ...string) string { return `{"traceEvents":[` + strings.Join(events, ",\n") + `]}` }

// TestSynchronizations: a call waits for an event that call 11 recorded into stream 7, and one for all of stream 7, as
// Kineto writes them with enable_cuda_sync_events. A kind that is not known is counted.
func TestSynchronizations(t *testing.T) {
	s, _ := read(t, traceOf(
		spanOf("cuda_runtime", "cudaEventRecord", 5, 5, 1, 1, `"correlation":11`),
		spanOf("cuda_runtime", "cudaEventSynchronize", 5, 5, 3, 6, `"correlation":12`),
		spanOf("cuda_sync", "Event Sync", 0, -1, 3.5, 5, `"cuda_sync_kind":"Event Sync","wait_on_stream":7,"wait_on_cuda_event_record_corr_id":11,
			"wait_on_cuda_event_id":3,"stream":-1,"correlation":12,"device":0,"context":1`),
		spanOf("cuda_sync", "Stream Sync", 0, 7, 20, 5, `"cuda_sync_kind":"Stream Sync","stream":7,"correlation":13,"device":0,"context":1`),
		spanOf("cuda_sync", "Sync of tomorrow", 0, 7, 30, 5, `"stream":7`),
		spanOf("cuda_event", "cudaEvent", 0, 13, 40, 0.001, `"event_id":4,"stream":13,"correlation":14,"device":0,"context":1`)))
	process := int64(5 << 24)
	for table, want := range map[string]string{
		waits:   fmt.Sprintf("2500 7500 12 %d 0 - 1 3 11 \n19000 24000 13 %d 0 7 3 - - \n", process, process),
		records: fmt.Sprintf("11 %d 0 7 3 11 \n14 %d 0 13 4 14 \n", process, process),
	} {
		names := plainColumns[table]
		if table == waits {
			names = []string{"start", "end", "correlationId", "globalPid", "deviceId", "streamId", "syncType", "eventId", "eventSyncId"}
		}
		if got := rowsOf(t, s, table, names...); got != want {
			t.Errorf("%s: %q, want %q", table, got, want)
		}
	}
	if got := rowsOf(t, s, "cuda_sync", "start", "end"); got != "29000 34000 \n" {
		t.Errorf("not known: %q", got)
	}
}

// TestFlows: a call and a kernel whose arguments lack the correlation id get that of the flow between them, wherever it
// is in the file; one of another moment changes nothing, nor does one of a row that has its own.
func TestFlows(t *testing.T) {
	flow := func(phase string, id, pid, tid int, at float64) string {
		return fmt.Sprintf(`{"ph":%q,"id":%d,"pid":%d,"tid":%d,"ts":%.3f,"cat":"ac2g","name":"ac2g"}`, phase, id, pid, tid, at)
	}
	s, _ := read(t, traceOf(
		spanOf("cuda_runtime", "cudaLaunchKernel", 5, 5, 1, 1, ``), flow("s", 21, 5, 5, 1),
		spanOf("cuda_runtime", "cudaLaunchKernel", 6, 6, 2, 1, ``),
		spanOf("kernel", "a", 0, 7, 4, 2, `"device":0,"stream":7`), flow("f", 21, 0, 7, 4),
		spanOf("kernel", "b", 0, 7, 8, 2, `"device":0,"stream":7`), flow("f", 22, 0, 7, 8.5),
		spanOf("kernel", "c", 0, 7, 12, 2, `"device":0,"stream":7,"correlation":9`), flow("f", 23, 0, 7, 12),
		flow("f", 22, 0, 7, 8), flow("s", 22, 6, 6, 2)))
	if got, want := rowsOf(t, s, apiCalls, "correlationId"), "21 \n22 \n"; got != want {
		t.Errorf("calls: %q, want %q", got, want)
	}
	want := fmt.Sprintf("21 %d \n22 %d \n9 %d \n", 5<<24, 6<<24, 5<<24)
	if got := rowsOf(t, s, kernels, "correlationId", "globalPid"); got != want {
		t.Errorf("kernels: %q, want %q", got, want)
	}
}

// TestInstants: what PyTorch's allocator did on a GPU of either maker is memory; what it did on the host is counted; other
// instants are marks, but for those of the profiler.
func TestInstants(t *testing.T) {
	at := func(name, pid, args string) string {
		return fmt.Sprintf(`{"ph":"i","cat":"cpu_instant_event","s":"t","name":%q,"pid":%s,"tid":5,"ts":1.5,"args":{%s}}`, name, pid, args)
	}
	s, facts := read(t, traceOf(
		at("[memory]", "5", `"Total Reserved":1000,"Total Allocated":600,"Bytes":512,"Addr":77,"Device Id":0,"Device Type":1`),
		at("[memory]", "5", `"Total Reserved":1000,"Total Allocated":88,"Bytes":-512,"Addr":77,"Device Id":0,"Device Type":6`),
		at("[memory]", "5", `"Bytes":64,"Addr":78,"Device Id":-1,"Device Type":0`),
		at("[memory]", "5", `"Bytes":0,"Addr":78,"Device Id":0,"Device Type":1`),
		at("checkpoint", "5", ``),
		at("Iteration Start: PyTorch Profiler", `"Traces"`, ``)))
	if facts.Skipped != 0 {
		t.Errorf("%d skipped", facts.Skipped)
	}
	got := rowsOf(t, s, memory, "start", "globalPid", "deviceId", "bytes", "address", "memoryOperationType", "memKind", "localMemoryPoolSize",
		"localMemoryPoolUtilizedSize")
	if want := fmt.Sprintf("0 %d 0 512 77 0 2 1000 600 \n0 %d 0 512 77 1 2 1000 88 \n", 5<<24, 5<<24); got != want {
		t.Errorf("memory: %q, want %q", got, want)
	}
	if got, want := rowsOf(t, s, "cpu_instant_event", "start"), "0 \n0 \n"; got != want {
		t.Errorf("counted: %q, want %q", got, want)
	}
	if got, want := rowsOf(t, s, ranges, "eventType", "globalTid"), fmt.Sprintf("34 %d \n", 5<<24+5); got != want {
		t.Errorf("marks: %q, want %q", got, want)
	}
}

// TestPythonStacks by hand: of 35 µs the stack is looked at every 10 µs. At 0 and at 10 forward is in run, at 20 the
// method of an object is, and at 30 run is alone. The functions come in the order in which they ended.
func TestPythonStacks(t *testing.T) {
	s, _ := read(t, traceOf(
		spanOf("python_function", "model.py(20): forward", 5, 5, 0, 15, `"Python id":2,"Python parent id":1`),
		spanOf("python_function", "<built-in method keys of dict object at 0x7fe02cbe57c0>", 5, 5, 18, 5, `"Python id":3`),
		spanOf("python_function", "/home/someone/worker/run.py(7): run", 5, 5, 0, 35, `"Python id":1`),
		spanOf("python_function", "alone.py(1): f", 5, 6, 11, 3, ``)))
	if s.tables[pythonTable] != nil {
		t.Error("the calls are a table still")
	}
	texts := map[int64]string{}
	if err := s.Scan(source.Table{Name: "StringIds"}, plainColumns["StringIds"], func(row []pages.Cell) error {
		texts[row[0].Bits] = row[1].S
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := s.Scan(source.Table{Name: ranges}, []string{"start", "globalTid", "eventType", "textId", "domainId", "binaryData"}, func(row []pages.Cell) error {
		if row[2].Bits == domain {
			got = append(got, "domain "+texts[row[3].Bits])
			return nil
		}
		line := fmt.Sprint(row[0].Bits, " ", row[1].Bits-5<<24)
		for _, f := range payload.Python([]byte(row[5].S)) {
			line += fmt.Sprintf(" %s|%s|%d", texts[int64(f.Function)], texts[int64(f.File)], f.Line)
		}
		got = append(got, line)
		return nil
	})
	const run, keys = " run|/home/someone/worker/run.py|7", " <built-in method keys of dict object>||0"
	want := []string{"domain " + payload.PythonDomain, "0 5 forward|model.py|20" + run, "10000 5 forward|model.py|20" + run,
		"20000 5" + keys + run, "30000 5" + run, "domain " + payload.PythonDomain}
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v, got\n%s\nwant\n%s", err, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPacks: 100,000 rows fill several packs, and every row is what was written, read in order or one by one.
func TestPacks(t *testing.T) {
	const n = 100_000
	r := newExporter(&Facts{})
	defer r.memory.Close()
	var e event
	for i := range int64(n) {
		e.reset()
		e.start, e.length, e.pid, e.tid = 1000+i*i%7919*100, i%977*3, 5, 5
		r.row(&e, copies, i*31%1009, integer(i%300))
	}
	s := &Source{tables: r.tables, memory: r.memory}
	tb := r.tables[copies]
	tb.owner = func(int64) cell { return cell{} }
	if len(tb.packs) < 3 || s.Rows(copies) != n {
		t.Fatalf("%d packs, %d rows", len(tb.packs), s.Rows(copies))
	}
	check := func(id int64, row []pages.Cell) error {
		i := id - 1
		start := i * i % 7919 * 100
		if row[0].Bits != start || row[1].Bits != start+i%977*3 || row[2].Bits != i*31%1009 || row[3].Bits != i%300 {
			return fmt.Errorf("row %d is %v", id, row)
		}
		return nil
	}
	names := []string{"start", "end", "correlationId", "deviceId", "rowid"}
	seen := int64(0)
	if err := s.Scan(source.Table{Name: copies}, names, func(row []pages.Cell) error {
		seen++
		return check(row[4].Bits, row)
	}); err != nil || seen != n {
		t.Fatal(seen, err)
	}
	want := []int64{1, n, 2, 3, n / 2, n/2 + 1, n/2 - 1, 40_000, 39_999, 1}
	var got []int64
	if err := s.Fetch(copies, names, append(want, 0, n+1), func(id int64, row []pages.Cell) error {
		got = append(got, id)
		return check(id, row)
	}); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatal(got, err)
	}
	s.Release(copies)
	if s.Rows(copies) != 0 || len(tb.packs) != 0 {
		t.Error("rows are kept")
	}
}

// TestScrubKeepsWhatIsRead: waits, flows, memory and stacks are the same in a copy, whose paths are short.
func TestScrubKeepsWhatIsRead(t *testing.T) {
	whole := traceOf(
		spanOf("cuda_runtime", "cudaEventRecord", 5, 5, 1, 1, ``), `{"ph":"s","id":11,"pid":5,"tid":5,"ts":1,"cat":"ac2g","name":"canary"}`,
		spanOf("cuda_sync", "Event Sync", 0, -1, 3.5, 5, `"wait_on_stream":7,"wait_on_cuda_event_record_corr_id":11,"wait_on_cuda_event_id":3,"correlation":12,"device":0`),
		spanOf("cuda_sync", "canary", 0, -1, 3.5, 5, ``),
		`{"ph":"i","cat":"cpu_instant_event","name":"[memory]","pid":5,"tid":5,"ts":1.5,"args":{"Total Reserved":9,"Total Allocated":6,"Bytes":-5,"Addr":77,"Device Id":0,"Device Type":1}}`,
		spanOf("python_function", "/home/canary/worker/run.py(7): run", 5, 5, 0, 35, `"Python id":1`))
	same := func(s string) string { return s }
	var out strings.Builder
	if n, _, err := Scrub(strings.NewReader(whole), &out, Names{same, same, same, same, same}); err != nil || n != 6 {
		t.Fatal(n, err)
	}
	if strings.Contains(out.String(), "canary") || !strings.Contains(out.String(), "worker/run.py(7): run") {
		t.Error(out.String())
	}
	a, _ := read(t, whole)
	b, _ := read(t, out.String())
	for _, table := range []string{apiCalls, waits, records, memory, "cuda_sync"} {
		names := a.tables[table].columns
		if x, y := rowsOf(t, a, table, names...), rowsOf(t, b, table, names...); x != y || x == "" {
			t.Errorf("%s: %q, of the copy %q", table, x, y)
		}
	}
	if x, y := rowsOf(t, a, ranges, "start", "globalTid", "eventType"), rowsOf(t, b, ranges, "start", "globalTid", "eventType"); x != y || x == "" {
		t.Errorf("%q, of the copy %q", x, y)
	}
}

// TestPythonFarAway: calls centuries apart are skipped, and what is left is sampled.
func TestPythonFarAway(t *testing.T) {
	s, facts, err := Read(strings.NewReader(traceOf(
		spanOf("python_function", "a.py(1): f", 5, 5, 0, 5, ``), spanOf("python_function", "a.py(1): f", 5, 5, 4e15, 5, ``),
		spanOf("python_function", "a.py(1): f", 5, 5, -4e15, 5, ``), spanOf("python_function", "a.py(1): f", 5, 5, 1, 4e15, ``))))
	if err != nil || facts.Skipped != 3 {
		t.Fatalf("%v, %+v", err, facts)
	}
	if got := rowsOf(t, s, ranges, "start", "eventType"); got != "0 75 \n0 34 \n" {
		t.Errorf("%q", got)
	}
}

// Sizes, numbers of calls, graphs and occupancy by hand. Sizes at the end that are none are no part of the list; a list that is
// too long is none. The second kernel cannot have an occupancy of 0 with 12.5 warps on each SM; the third one can.
func TestOperatorsAndLaunches(t *testing.T) {
	long := strings.Repeat("[4096],", 100) + "[1]"
	s, facts := read(t, traceOf(
		spanOf("cpu_op", "aten::mm", 5, 5, 0, 10, `"Input Dims":[[16,4096],[4096,8],[],[]],"Sequence number":7,"Fwd thread id":0`),
		spanOf("cpu_op", "aten::cat", 5, 5, 10, 10, `"Input Dims":[[[2,3],[4]],[]],"Sequence number":-1`),
		spanOf("cpu_op", "aten::x", 5, 5, 20, 10, `"Input Dims":[[],[]]`),
		spanOf("cpu_op", "aten::y", 5, 5, 30, 10, `"Input Dims":["canary",{"canary":1},[[[[5]]]]]`),
		spanOf("cpu_op", "aten::z", 5, 5, 40, 10, `"Input Dims":[`+long+`]`),
		spanOf("cpu_op", "MmBackward0", 5, 6, 50, 10, `"Sequence number":7,"Fwd thread id":1`),
		spanOf("kernel", "a", 0, 7, 60, 1, `"est. achieved occupancy %":75,"graph node id":12,"graph id":3,"correlation":1`),
		spanOf("kernel", "b", 0, 7, 61, 1, `"est. achieved occupancy %":0,"warps per SM":12.5,"correlation":2`),
		spanOf("kernel", "c", 0, 7, 62, 1, `"warps per SM":0.25,"est. achieved occupancy %":0,"correlation":3`),
		spanOf("kernel", "d", 0, 7, 63, 1, `"est. achieved occupancy %":-99,"correlation":4`)))
	if facts != (Facts{Resolution: 1}) {
		t.Errorf("facts %+v", facts)
	}
	var sizes []string
	err := s.Scan(source.Table{Name: "NVTX_EVENTS"}, []string{"sizesId"}, func(row []pages.Cell) error {
		if id, ok := row[0].Whole(); ok {
			return s.Fetch("StringIds", []string{"value"}, []int64{id + 1}, func(_ int64, cells []pages.Cell) error {
				sizes = append(sizes, cells[0].S)
				return nil
			})
		}
		sizes = append(sizes, "-")
		return nil
	})
	want := []string{"[[16, 4096], [4096, 8]]", "[[[2, 3], [4]]]", "-", "[-1, -1, [[-1]]]", "-", "-"}
	if err != nil || !slices.Equal(sizes, want) {
		t.Errorf("sizes %q (%v), want %q", sizes, err, want)
	}
	if got, want := rowsOf(t, s, "NVTX_EVENTS", "sequenceNumber", "isBackward"), "7 0 \n- 0 \n- 0 \n- 0 \n- 0 \n7 1 \n"; got != want {
		t.Errorf("numbers %q, want %q", got, want)
	}
	if got, want := rowsOf(t, s, "CUPTI_ACTIVITY_KIND_KERNEL", "graphNodeId", "graphId", "estimatedOccupancy"),
		"1 3 75 \n0 - - \n0 - 0 \n0 - - \n"; got != want {
		t.Errorf("kernels %q, want %q", got, want)
	}
}
