package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// event is one event of the Trace Event Format, as its readers expect it.
type event struct {
	Name, Ph, Cat string
	Pid, Tid      *int
	Ts, Dur       *float64
	ID            int
	BP            string
	Args          map[string]any
}

// perfettoEvents reads a trace back and holds it to the format: JSON with traceEvents; complete events with ts and dur in
// µs that are not negative, on a track that has a name; on one track events follow each other or hold each other.
func perfettoEvents(t *testing.T, content []byte) []event {
	t.Helper()
	var trace struct {
		DisplayTimeUnit string
		TraceEvents     []event
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(&trace); err != nil {
		t.Fatal(err)
	}
	if trace.DisplayTimeUnit != "ns" {
		t.Errorf("displayTimeUnit %q", trace.DisplayTimeUnit)
	}
	names := map[string]string{}
	tracks, flows := map[string][]event{}, map[string][]event{}
	for _, e := range trace.TraceEvents {
		if e.Pid == nil || e.Tid == nil {
			t.Fatalf("event %+v is of no track", e)
		}
		track := fmt.Sprint(*e.Pid, "/", *e.Tid)
		switch e.Ph {
		case "M":
			if e.Name == "thread_name" {
				names[track] = e.Args["name"].(string)
			}
		case "X":
			if e.Ts == nil || e.Dur == nil || *e.Ts < 0 || *e.Dur < 0 {
				t.Fatalf("event %+v has no time", e)
			}
			tracks[track] = append(tracks[track], e)
		case "s", "f":
			if e.Ts == nil || e.ID == 0 || (e.Ph == "f") != (e.BP == "e") {
				t.Fatalf("event %+v is no end of a flow", e)
			}
			flows[track] = append(flows[track], e)
		default:
			t.Errorf("phase %q", e.Ph)
		}
	}
	for track, ends := range flows { // each is at the start of an event, which it binds to
		for _, end := range ends {
			if !slices.ContainsFunc(tracks[track], func(e event) bool { return *e.Ts == *end.Ts }) {
				t.Errorf("track %s %s: no event for the flow %+v", track, names[track], end)
			}
		}
	}
	for track, list := range tracks {
		if names[track] == "" {
			t.Errorf("track %s has no name", track)
		}
		slices.SortStableFunc(list, func(a, b event) int {
			switch {
			case *a.Ts < *b.Ts || *a.Ts == *b.Ts && *a.Dur > *b.Dur:
				return -1
			case *a.Ts == *b.Ts && *a.Dur == *b.Dur:
				return 0
			}
			return 1
		})
		var ends []float64
		for _, e := range list {
			for len(ends) > 0 && ends[len(ends)-1] <= *e.Ts+1e-6 {
				ends = ends[:len(ends)-1]
			}
			if end := *e.Ts + *e.Dur; len(ends) > 0 && end > ends[len(ends)-1]+1e-6 {
				t.Errorf("track %s %s: %s at %v overlaps what is around it", track, names[track], e.Name, *e.Ts)
			} else {
				ends = append(ends, end)
			}
		}
	}
	return trace.TraceEvents
}

// TestPerfetto writes the two units of a trace of four steps; in the slowest, the last, two kernels overlap on a stream.
func TestPerfetto(t *testing.T) {
	b := tracetest.New()
	b.GPU(tracetest.GPU{})
	th := b.Process(100, "python").Thread(100, "worker")
	for i := range int64(5) {
		at := 10_000 + i*10_000
		if i == 4 {
			at += 500 // the fourth step takes 10.5 µs
		}
		over := int64(0)
		if i == 3 {
			over = 100
		}
		th.Range("ProfilerStep#"+string(rune('0'+i)), at-200, at+5_000)
		th.Launch("gemm", at-100, at-50, tracetest.Kernel{Place: tracetest.Place{Stream: 7}, Start: at, End: at + 2_000 + over})
		th.Launch(`softmax "<b>"`, at+1_000, at+1_500, tracetest.Kernel{Place: tracetest.Place{Stream: 7}, Start: at + 2_000, End: at + 2_500,
			Grid: [3]int64{8, 4, 1}, Block: [3]int64{256, 1, 1}})
	}
	res, err := analyze.Run(context.Background(), b.WriteTB(t), analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	units, err := export.PerfettoUnits(res.Report)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := export.Perfetto(&out, units); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range perfettoEvents(t, out.Bytes()) {
		if e.Cat == "softmax" { // the second of the step's two kernels
			if want := (map[string]any{"ns": 500.0, "name": `softmax "<b>"`, "stream": 7.0, "position": 1.0,
				"grid": "8×4", "block": "256"}); !maps.Equal(e.Args, want) {
				t.Errorf("arguments %v, want %v", e.Args, want)
			}
		}
		switch {
		case e.Ph == "s" || e.Ph == "f":
			lines = append(lines, fmt.Sprintf("%d %s %d at %v", *e.Pid, e.Ph, e.ID, *e.Ts))
		case e.Ph == "X":
			lines = append(lines, fmt.Sprintf("%d %s %s %v+%v", *e.Pid, e.Cat, e.Name, *e.Ts, *e.Dur))
		case e.Name == "process_name" || e.Name == "thread_name":
			lines = append(lines, fmt.Sprintf("%d [%s]", *e.Pid, e.Args["name"]))
		}
	}
	want := `1 [median unit, number 0 on GPU 0, 10 µs]
1 [worker: NVTX]
1 range ProfilerStep# 0+5
1 range ProfilerStep# 9.8+0.2
1 [worker: CUDA calls]
1 launch cudaLaunchKernel 1+0.5
1 launch cudaLaunchKernel 9.9+0.05
1 [stream 7]
1 gemm gemm 0+2
1 softmax softmax "<b>" 2+0.5
1 s 1 at 1
1 f 1 at 2
1 [GPU idle, by cause]
1 idle host 2.5+7.4
1 idle launch 9.9+0.05
1 idle dependency 9.95+0.05
1 [critical path]
1 path compute 0+2.5
1 path host 2.5+7.4
1 path call 9.9+0.05
1 path latency 9.95+0.05
2 [slowest unit, number 3 on GPU 0, 10.5 µs]
2 [worker: NVTX]
2 range ProfilerStep# 0+5
2 range ProfilerStep# 10.3+0.2
2 [worker: CUDA calls]
2 launch cudaLaunchKernel 1+0.5
2 launch cudaLaunchKernel 10.4+0.05
2 [stream 7]
2 gemm gemm 0+2.1
2 [stream 7, overlapping]
2 softmax softmax "<b>" 2+0.5
2 s 2 at 1
2 f 2 at 2
2 [GPU idle, by cause]
2 idle host 2.5+7.9
2 idle launch 10.4+0.05
2 idle dependency 10.45+0.05
2 [critical path]
2 path compute 0+2.5
2 path host 2.5+7.9
2 path call 10.4+0.05
2 path latency 10.45+0.05`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	median, err := export.PerfettoMedian(res.Report, "", 0, "base")
	if err != nil || median.Shown.Which != "median" || median.Side != "base" {
		t.Errorf("%+v, %v", median, err)
	}
	if _, err := export.PerfettoUnits(&report.Report{}); !errors.Is(err, export.ErrNoStep) {
		t.Errorf("a report without a unit: %v", err)
	}
}
