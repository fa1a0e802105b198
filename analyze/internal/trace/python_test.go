package trace

import (
	"context"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

func openBuilt(t *testing.T, b *tracetest.Builder) *Trace {
	t.Helper()
	tr, err := Open(context.Background(), b.WriteTB(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// Samples come by time, with their threads; functions are shared; of a file the folder it is in stays.
func TestPythonSamples(t *testing.T) {
	b := tracetest.New()
	p := b.Process(1, "python")
	one, two := p.Thread(10, ""), p.Thread(11, "")
	inner := tracetest.PythonFrame{Function: "f", File: "/a/b/c.py", Line: 5}
	outer := tracetest.PythonFrame{Function: "g", File: "main.py", Line: 9}
	b.PythonSample(tracetest.PythonSample{Thread: two, At: 70, Stack: []tracetest.PythonFrame{outer}})
	b.PythonSample(tracetest.PythonSample{Thread: one, At: 60, Stack: []tracetest.PythonFrame{inner, outer}})
	tr := openBuilt(t, b)
	if want := []PythonFrame{{"f", "b/c.py", 5}, {"g", "main.py", 9}}; !reflect.DeepEqual(byName(tr.PythonFrames), want) {
		t.Errorf("frames %+v, want %+v", tr.PythonFrames, want)
	}
	if len(tr.Python) != 2 || tr.PythonUnread != 0 {
		t.Fatalf("%d samples, %d unread", len(tr.Python), tr.PythonUnread)
	}
	for i, want := range []struct {
		at, tid int64
		names   string
	}{{60, 10, "fg"}, {70, 11, "g"}} {
		s, names := tr.Python[i], ""
		for _, f := range s.Frames {
			names += tr.PythonFrames[f].Function
		}
		if s.At != want.at || tr.Threads[s.Thread].TID != want.tid || names != want.names {
			t.Errorf("sample %d is %+v of thread %d in %q, want %+v", i, s, tr.Threads[s.Thread].TID, names, want)
		}
	}
}

func byName(list []PythonFrame) []PythonFrame {
	if len(list) == 2 && list[0].Function == "g" {
		return []PythonFrame{list[1], list[0]}
	}
	return list
}

// What is no sample as expected is counted, and not guessed at; marks of other domains are not.
func TestPythonPayloadsThatAreNone(t *testing.T) {
	frame := tracetest.PythonFrame{Function: "f", File: "a.py", Line: 5}
	body := func(count uint32, numbers ...uint64) tracetest.Value {
		b := make([]byte, payload.Head+12)
		b = binary.LittleEndian.AppendUint32(b, count)
		for _, n := range numbers {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return tracetest.Blob(b)
	}
	const name = 1 << 20 // the id of the first name
	for what, data := range map[string]tracetest.Value{
		"none": tracetest.Null(), "empty": tracetest.Blob(nil), "cut in its head": tracetest.Blob(make([]byte, payload.Head+3)),
		"no frames": body(0), "fewer frames": body(2, name, name, 1), "more frames": body(1, name, name, 1, name, name, 2),
		"unknown name": body(1, 1<<40, name, 1), "line": body(1, name, name, 1<<60), "count": body(1<<31, name, name, 1),
	} {
		b := tracetest.New()
		th := b.Process(1, "python").Thread(10, "")
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 50, Stack: []tracetest.PythonFrame{frame}})
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 60, Set: tracetest.Row{"binaryData": data}})
		b.PythonSample(tracetest.PythonSample{Thread: th, At: 60,
			Set: tracetest.Row{"binaryData": data, "domainId": tracetest.Int(2)}})
		tr := openBuilt(t, b)
		if len(tr.Python) != 1 || tr.PythonUnread != 1 {
			t.Errorf("%s: %d samples, %d unread", what, len(tr.Python), tr.PythonUnread)
		}
	}
}
