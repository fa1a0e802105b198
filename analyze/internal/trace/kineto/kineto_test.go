package kineto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// step is one step of a program as torch.profiler writes it: a range, an operator in it, a launch in that, its kernel,
// a copy, and a collective of rank 3 in the group of ranks 1 and 3.
const step = `{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100","numSms":132,"totalGlobalMem":85000000000,
 "computeMajor":9,"computeMinor":0}],"distributedInfo":{"backend":"nccl","rank":3,"world_size":4},
 "baseTimeNanoseconds":1767189312000000000,"environment":{"TOKEN":"hf_canary"},"traceEvents":[
 {"ph":"X","cat":"user_annotation","name":"ProfilerStep#6","pid":7,"tid":7,"ts":1000.179,"dur":47151.395,"args":{"External id":1}},
 {"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":1001.0,"dur":30.5,"args":{"Input Dims":[[1,2],[2,3]],"canary":"hf_canary"}},
 {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":1002.5,"dur":4.25,"args":{"correlation":11,"cbid":211}},
 {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1010.001,"dur":2.0005,"args":{"device":0,"context":1,"stream":7,
   "correlation":11,"registers per thread":64,"shared memory":1024,"grid":[4,2,1],"block":[128,1,1],"graph node id":0}},
 {"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Pageable -> Device)","pid":0,"tid":7,"ts":1020,"dur":3,
   "args":{"device":0,"context":1,"stream":7,"correlation":12,"bytes":4096}},
 {"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":7,"tid":-5,"ts":1030,"dur":1,
   "args":{"Collective name":"allreduce","In msg nelems":1000,"dtype":"BFloat16","Group size":2,"Process Group Name":"0","Process Group Ranks":"[1, 3]"}},
 {"ph":"s","cat":"ac2g","id":11,"pid":7,"tid":7,"ts":1002.5,"name":"ac2g"},
 {"ph":"M","name":"thread_name","pid":7,"tid":7,"args":{"name":"main"}},
 {"ph":"M","name":"process_name","pid":7,"tid":0,"args":{"name":"python"}},
 {"ph":"X","cat":"Trace","name":"PyTorch Profiler (0)","pid":"Spans","tid":"PyTorch Profiler","ts":1,"dur":2}]}`

// read reads a trace, given in one piece and byte by byte.
func read(t *testing.T, text string) (*Source, Facts) {
	t.Helper()
	whole, facts, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	slow, again, err := Read(iotest.OneByteReader(strings.NewReader(text)))
	if err != nil || facts != again || dump(t, whole) != dump(t, slow) {
		t.Errorf("byte by byte it reads otherwise: %v, %+v and %+v", err, facts, again)
	}
	return whole, facts
}

func dump(t *testing.T, s *Source) string {
	t.Helper()
	var b strings.Builder
	tables, err := s.Tables()
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		err := s.Scan(table, append([]string{"rowid"}, table.Columns...), func(row []pages.Cell) error {
			fmt.Fprintln(&b, table.Name, row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// rowsOf are the whole numbers of a table; NULL is -1, a text stands for itself.
func rowsOf(t *testing.T, s *Source, table string, columns ...string) string {
	t.Helper()
	var b strings.Builder
	err := s.Scan(source.Table{Name: table}, columns, func(row []pages.Cell) error {
		for i := range row {
			switch v, ok := row[i].Whole(); {
			case ok:
				fmt.Fprint(&b, v, " ")
			case row[i].Kind == pages.Text:
				fmt.Fprintf(&b, "%q ", row[i].S)
			default:
				fmt.Fprint(&b, "- ")
			}
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestStep by hand: times count from the step's start, 1000.179 µs. The kernel starts 9.822 µs later and lasts 2.0005 µs,
// which is 2001 ns by rounding half up; the thread of process 7 is 7<<24 + 7, and
// that of thread -5, the second one seen, 7<<24 + 2^24 - 2.
func TestStep(t *testing.T) {
	s, facts := read(t, step)
	if facts != (Facts{Resolution: 1}) {
		t.Errorf("facts %+v", facts)
	}
	for _, x := range []struct {
		table   string
		columns []string
		want    string
	}{
		{"CUPTI_ACTIVITY_KIND_KERNEL", []string{"start", "end", "correlationId", "globalPid", "deviceId", "contextId", "streamId",
			"gridX", "gridY", "blockX", "registersPerThread", "staticSharedMemory", "graphNodeId"},
			"9822 11823 11 117440512 0 1 7 4 2 128 64 1024 0 \n"},
		{"CUPTI_ACTIVITY_KIND_MEMCPY", []string{"start", "end", "bytes", "copyKind", "srcKind", "dstKind"}, "19821 22821 4096 1 0 2 \n"},
		{"CUPTI_ACTIVITY_KIND_RUNTIME", []string{"start", "end", "correlationId", "globalTid"}, "2321 6571 11 117440519 \n"},
		{"NVTX_EVENTS", []string{"start", "end", "globalTid"}, "0 47151395 117440519 \n821 31321 117440519 \n29821 30821 134217726 \n"},
		{"TARGET_INFO_GPU", []string{"cuDevice", "name", "smCount", "totalMemory", "computeMajor"}, "0 \"NVIDIA H100\" 132 85000000000 9 \n"},
		{"TARGET_INFO_SYSTEM_ENV", []string{"name", "value"}, "\"RANK\" 3 \n\"WORLD_SIZE\" 4 \n"},
		{"TARGET_INFO_SESSION_START_TIME", []string{"utcEpochNs"}, "1767189312001000179 \n"},
	} {
		if got := rowsOf(t, s, x.table, x.columns...); got != x.want {
			t.Errorf("%s: %q, want %q", x.table, got, x.want)
		}
	}
	if all := dump(t, s); strings.Contains(all, "canary") {
		t.Error("keys beyond the allow-list are kept")
	}
}

// TestMessage by hand: 1,000 elements of 2 bytes, from rank 3, which is the second of its group of two.
func TestMessage(t *testing.T) {
	s, _ := read(t, step)
	var b []byte
	err := s.Scan(source.Table{Name: "NVTX_EVENTS"}, []string{"binaryData"}, func(row []pages.Cell) error {
		b = append(b, row[0].S...)
		return nil
	})
	if err != nil || len(b) != payload.Head+32 {
		t.Fatal(len(b), err)
	}
	for i, want := range []uint64{1, 2, 2000} {
		if got := binary.LittleEndian.Uint64(b[payload.Head+8*(i+1):]); got != want {
			t.Errorf("field %d is %d, want %d", i+1, got, want)
		}
	}
}

func TestMicroseconds(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1": 1000, "1.5": 1500, "1.0005": 1001, "1.0004": 1000, "-2.25": -2250,
		"6520618853487.683": 6520618853487683, "1767189312000000.5": 1767189312000000500, "1e3": 1000000, "2.5E-1": 250} {
		if got, _, ok := microseconds([]byte(text)); !ok || got != want {
			t.Errorf("%s µs are %d ns (%v), want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "NaN", "Infinity", "-", "1.x", "99999999999999999999", "1e300"} {
		if got, _, ok := microseconds([]byte(text)); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

// TestDamage: what a profiler that was killed, or another writer, leaves behind.
func TestDamage(t *testing.T) {
	kernel := `{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":10,"dur":5,"args":{"device":0,"stream":7}}`
	for name, x := range map[string]struct {
		text    string
		kernels int
		facts   Facts
	}{
		"cut within an event":  {`{"traceEvents":[` + kernel + `,{"ph":"X","cat":"ker`, 1, Facts{Cut: true, Resolution: 1000}},
		"cut after an event":   {`{"traceEvents":[` + kernel, 1, Facts{Cut: true, Resolution: 1000}},
		"trailing commas":      {`{"traceEvents":[` + kernel + `,],}`, 1, Facts{Loose: 2, Resolution: 1000}},
		"an array alone":       {`[` + kernel + `,` + kernel + `]`, 2, Facts{Resolution: 1000}},
		"NaN as a time":        {`{"traceEvents":[` + strings.Replace(kernel, `"dur":5`, `"dur":NaN`, 1) + `]}`, 0, Facts{Skipped: 1, Loose: 1, Resolution: 1000}},
		"bare Infinity":        {`{"traceEvents":[` + strings.Replace(kernel, `"ts":10`, `"ts":Infinity`, 1) + `]}`, 0, Facts{Skipped: 1, Loose: 1, Resolution: 1000}},
		"negative duration":    {`{"traceEvents":[` + strings.Replace(kernel, `"dur":5`, `"dur":-5`, 1) + `]}`, 0, Facts{Skipped: 1, Resolution: 1000}},
		"a key that repeats":   {`{"traceEvents":[` + strings.Replace(kernel, `"dur":5`, `"dur":1,"dur":5`, 1) + `]}`, 1, Facts{Loose: 1, Resolution: 1000}},
		"events of wrong type": {`{"traceEvents":[1,"x",null,[],` + kernel + `]}`, 1, Facts{Resolution: 1000}},
		"args of wrong type":   {`{"traceEvents":[` + strings.Replace(kernel, `{"device":0,"stream":7}`, `[{"a":[{}]}]`, 1) + `]}`, 1, Facts{Resolution: 1000}},
		"a huge string":        {`{"traceEvents":[` + strings.Replace(kernel, `"name":"k"`, `"name":"`+strings.Repeat("k", 1<<20)+`"`, 1) + `]}`, 1, Facts{Resolution: 1000}},
		"deep nesting":         {`{"x":` + strings.Repeat("[", 1<<18) + strings.Repeat("]", 1<<18) + `,"traceEvents":[` + kernel + `]}`, 1, Facts{Resolution: 1000}},
	} {
		s, facts := read(t, x.text)
		n := 0
		if k := s.tables["CUPTI_ACTIVITY_KIND_KERNEL"]; k != nil {
			n = k.rows
		}
		if n != x.kernels || facts != x.facts {
			t.Errorf("%s: %d kernels, %+v; want %d, %+v", name, n, facts, x.kernels, x.facts)
		}
	}
	for _, text := range []string{``, `{}`, `{"schema":"explain.report/1","metrics":[]}`, `{"traceEvents":"none"}`, `"x"`, `{"a"`} {
		if _, _, err := Read(strings.NewReader(text)); !errors.Is(err, ErrForeign) {
			t.Errorf("%q: %v", text, err)
		}
	}
	broken := errors.New("broken disk")
	if _, _, err := Read(io.MultiReader(strings.NewReader(step[:900]), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("an error of the file is %v", err)
	}
}

// TestTwoProcesses: work belongs to the process whose call has its correlation id.
func TestTwoProcesses(t *testing.T) {
	var list []string
	for i, pid := range []int{5, 6} {
		list = append(list, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":%d,"ts":%d,"dur":1,"args":{"correlation":%d}}`, pid, pid, i, i+1),
			fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":%d,"tid":7,"ts":%d,"dur":1,"args":{"device":%d,"stream":7,"correlation":%d}}`, i, i+10, i, i+1))
	}
	s, _ := read(t, `{"traceEvents":[`+strings.Join(list, ",")+`]}`)
	if got, want := rowsOf(t, s, "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"), fmt.Sprintf("%d \n%d \n", 5<<24, 6<<24); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each process counts its calls from 1: in a file that was put together of several, an id that two have is nobody's,
// and one that a single process has is that one's.
func TestTwoProcessesWithEqualIDs(t *testing.T) {
	var list []string
	for i, c := range []struct{ pid, correlation int }{{5, 1}, {6, 1}, {5, 2}, {6, 3}, {7, 3}, {6, 4}, {6, 4}} {
		list = append(list, fmt.Sprintf(`{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":%d,"tid":%d,"ts":%d,"dur":1,"args":{"correlation":%d}}`, c.pid, c.pid, i, c.correlation))
	}
	for _, correlation := range []int{1, 2, 3, 4, 5} {
		list = append(list, fmt.Sprintf(`{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":20,"dur":1,"args":{"correlation":%d}}`, correlation))
	}
	s, _ := read(t, `{"traceEvents":[`+strings.Join(list, ",")+`]}`)
	if got, want := rowsOf(t, s, "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid"), fmt.Sprintf("- \n%d \n- \n%d \n%d \n", 5<<24, 6<<24, 5<<24); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzRead: whatever a file holds, it is read or refused, and its tables can be read.
func FuzzRead(f *testing.F) {
	f.Add([]byte(step))
	f.Add([]byte(step[:1500]))
	f.Add([]byte(`[{"ph":"X","cat":"kernel","ts":1e9,"dur":"3","pid":"x","args":{"grid":[1,2,3,4,"5"]}},]`))
	f.Add([]byte(`{"traceEvents":[{"name":"\ud83d\u00e9\"","ph":"M","pid":1,"tid":18446744073709551615,"args":{"name":"\u0000"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, _, err := Read(strings.NewReader(string(data)))
		if err == nil {
			dump(t, s)
		}
	})
}

// Python escapes what is beyond the basic plane as two halves of a surrogate pair, and tools of Windows begin a file
// with a byte order mark.
func TestOtherWritings(t *testing.T) {
	want, _ := read(t, step)
	marked, _ := read(t, "\ufeff"+step)
	if dump(t, want) != dump(t, marked) || !Is(strings.NewReader("\ufeff"+step)) {
		t.Error("behind a byte order mark the trace is another one")
	}
	for escaped, want := range map[string]string{
		`a\ud83d\ude00b`: "a😀b", `\ud83d\ud83d\ude00`: "\ufffd😀", `\ude00\ud83d`: "\ufffd\ufffd",
		`\ud83d-\ude00`: "\ufffd-\ufffd", `\u00e9\ude00`: "é\ufffd",
	} {
		for _, rd := range []io.Reader{strings.NewReader(`"` + escaped + `"`), iotest.OneByteReader(strings.NewReader(`"` + escaped + `"`))} {
			tokens := newTokens(rd)
			if err := tokens.string(); err != nil || string(tokens.text) != want {
				t.Errorf("%s: %q, want %q (%v)", escaped, tokens.text, want, err)
			}
		}
	}
}

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{step: true, step[:1000]: true, `{"traceEvents":[`: true, `{"schema":"x","traceEvents":[]}`: false,
		`[]`: false, ``: false, `{"traceEvents":{}}`: false, `{"a":1}`: false, `{"a`: false} {
		if Is(strings.NewReader(text)) != want {
			t.Errorf("%.30q: not %v", text, want)
		}
	}
}

// A thousand damaged copies are read or refused, none with a panic, and what is read can be read again after scrubbing.
func TestAThousandMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 0))
	names := Names{Kernel: strings.ToUpper, Work: strings.ToUpper, Program: strings.ToUpper, Personal: strings.ToUpper, Device: strings.ToUpper}
	bits := []string{"NaN", "-Infinity", "1e999", ",", "}", "]", "{", "[", `"`, `\u12`, "null", "true", `"ts":"x",`, `"dur":[1],`, "\x00", "\xff", "18446744073709551616", `"name":{},`}
	const mutations = 1000
	read, refused, cut, loose := 0, 0, 0, 0
	for range mutations {
		b := []byte(step)
		for range 1 + rng.IntN(4) {
			at := rng.IntN(len(b))
			switch rng.IntN(4) {
			case 0:
				b[at] = byte(rng.IntN(256))
			case 1:
				b = slices.Delete(b, at, min(len(b), at+1+rng.IntN(30)))
			case 2:
				b = slices.Insert(b, at, []byte(bits[rng.IntN(len(bits))])...)
			case 3:
				b = b[:at+1]
			}
		}
		s, facts, err := Read(bytes.NewReader(b))
		if err != nil {
			refused++
			continue
		}
		read++
		if facts.Cut {
			cut++
		}
		if facts.Loose > 0 {
			loose++
		}
		dump(t, s)
		var copied bytes.Buffer
		if _, _, err := Scrub(bytes.NewReader(b), &copied, names); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if _, again, err := Read(&copied); err != nil || again.Cut || again.Loose > 0 {
			t.Fatalf("a scrubbed copy of %s: %v, %+v", b, err, again)
		}
	}
	if read+refused != mutations || read < 300 || cut < 100 || loose < 5 {
		t.Errorf("%d read, %d of them cut and %d loose, %d refused", read, cut, loose, refused)
	}
}

// What is no JSON is read and counted: NaN and Infinity, a comma before a bracket, a key that comes twice.
func TestLooseJSONIsCounted(t *testing.T) {
	s, facts := read(t, `{"traceEvents":[{"ph":"X","cat":"kernel","name":"a","name":"k","pid":0,"tid":7,"ts":1.5,"dur":2,"args":{"stream":NaN,"bytes":-Infinity,}},]}`)
	if facts.Loose != 5 || facts.Cut || facts.Skipped != 0 {
		t.Errorf("%+v", facts)
	}
	if got := rowsOf(t, s, "CUPTI_ACTIVITY_KIND_KERNEL", "start", "end", "streamId", "demangledName"); got != "0 2000 7 1 \n" && got != "0 2000 7 0 \n" {
		t.Errorf("%q", got)
	}
}

// A scrubbed copy is read as the file is, but for names; no secret of any key or value is in it. By hand: 9 events of the
// step are read, the span of the profiler itself is not.
func TestScrub(t *testing.T) {
	same := func(s string) string { return s }
	var out bytes.Buffer
	n, left, err := Scrub(strings.NewReader(step), &out, Names{same, same, same, same, same})
	if err != nil || n != 9 || left != 1 {
		t.Fatal(n, left, err)
	}
	if strings.Contains(out.String(), "canary") || strings.Contains(out.String(), "cbid") {
		t.Error(out.String())
	}
	a, facts := read(t, step)
	b, again := read(t, out.String())
	if facts != again {
		t.Errorf("%+v, of the copy %+v", facts, again)
	}
	for _, table := range []string{"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_RUNTIME", "TARGET_INFO_GPU",
		"TARGET_INFO_SYSTEM_ENV", "TARGET_INFO_SESSION_START_TIME", "ThreadNames", "PROCESSES", "StringIds"} {
		columns := columns[table]
		if columns == nil {
			columns = plainColumns[table]
		}
		columns = slices.DeleteFunc(slices.Clone(columns), func(c string) bool { return c == "" })
		if x, y := rowsOf(t, a, table, columns...), rowsOf(t, b, table, columns...); x != y {
			t.Errorf("%s: %q, of the copy %q", table, x, y)
		}
	}
	out.Reset()
	hide := func(s string) string { return "hidden" }
	if _, _, err := Scrub(strings.NewReader(step), &out, Names{hide, hide, hide, hide, hide}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ProfilerStep", "aten::mm", "gemm", "Memcpy", "main", "python", "H100", "allreduce"} {
		if strings.Contains(out.String(), name) {
			t.Errorf("%s is shown", name)
		}
	}
}
