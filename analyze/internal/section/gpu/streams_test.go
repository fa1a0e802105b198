package gpu_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// Stream 7: kernels 0-100 and, overlapping it, 90-120. Stream 13: kernel 60-150. Stream 21: copies 70-80 and 140-160.
// Two or more streams are busy 60-120 and 140-150: 70. Busy are 160. Of 30 of copies, 150-160 is exposed.
func TestStreams(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	on := func(stream int64) tracetest.Place { return tracetest.Place{Stream: stream} }
	th.Launch("gemm", 0, 1, tracetest.Kernel{Place: on(7), Start: 0, End: 100})
	th.Launch("gemm", 2, 3, tracetest.Kernel{Place: on(7), Start: 90, End: 120})
	th.Launch("norm", 4, 5, tracetest.Kernel{Place: on(13), Start: 60, End: 150})
	th.Memset(6, 7, tracetest.Memset{Place: on(21), Start: 70, End: 80, Bytes: 1})
	th.Memset(8, 9, tracetest.Memset{Place: on(21), Start: 140, End: 160, Bytes: 1})
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 3, "stream.count", "device", "0")
	sectiontest.Metric(t, l.Report, 70, "stream.concurrent_time", "device", "0")
	concurrent, busy := 70.0, 160.0
	sectiontest.Metric(t, l.Report, concurrent/busy, "stream.concurrency_ratio", "device", "0")
	hidden, copies := 20.0, 30.0
	sectiontest.Metric(t, l.Report, hidden/copies, "stream.copy_hidden_ratio", "device", "0")
	tab := l.Table("streams", "streams")
	l.Row(tab, 0, "device_id", "0", "pid", "5", "stream_id", "7", "kernels", "2", "copies", "0", "kernel_time", "130", "total", "130", "busy", "120", "share", "0.75")
	l.Row(tab, 1, "stream_id", "13", "kernels", "1", "busy", "90")
	l.Row(tab, 2, "stream_id", "21", "kernels", "0", "copies", "2", "total", "30", "busy", "30")
	l.CsvHas(tab, "streams.csv", "device_id", "pid", "stream_id", "kernel_count", "copy_count", "busy_ms")
}

// The same stream number of two processes is two streams.
func TestStreamsBelongToProcesses(t *testing.T) {
	b := tracetest.New()
	for p := range int64(2) {
		b.Process(5+p, "p").Thread(5+p, "").Launch("gemm", p, p+1, tracetest.Kernel{Start: 10 * p, End: 10*p + 20})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 2, "stream.count", "device", "0")
	sectiontest.Metric(t, l.Report, 10, "stream.concurrent_time", "device", "0")
	sectiontest.NoMetric(t, l.Report, "stream.copy_hidden_ratio", "device", "0")
}

func TestStreamTableIsCut(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	for s := range int64(5) {
		th.Launch("gemm", s, s+1, tracetest.Kernel{Place: tracetest.Place{Stream: 7 + s}, Start: 100 * s, End: 100*s + 10 + s})
	}
	l := sectiontest.Look(t, b, analyze.Options{Top: 2})
	tab := l.Table("streams", "streams")
	l.Row(tab, 0, "stream_id", "11", "busy", "14")
	l.Row(tab, 2, "kernels", "3", "total", "33", "busy", "null") // 10 + 11 + 12
	if tab.TotalRows != 5 || !tab.Others {
		t.Errorf("total %d, others %v", tab.TotalRows, tab.Others)
	}
}

// A stream without process (export without globalPid) is a stream still.
func TestStreamsWithoutProcess(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(tracetest.WithoutColumn("CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")), analyze.Options{})
	l.Row(l.Table("streams", "streams"), 0, "pid", "null", "stream_id", "7")
}

// Kernel 0-700 µs and a copy on the same stream 700-1000: 30 % of the window, none of it hidden.
func TestSerialCopiesAreFound(t *testing.T) {
	b := tracetest.New()
	th := b.Process(5, "p").Thread(5, "")
	th.Launch("gemm", 0, 1, tracetest.Kernel{Start: 0, End: 700 * sectiontest.Us})
	th.Memcpy(2, 3, tracetest.Memcpy{Start: 700 * sectiontest.Us, End: 1000 * sectiontest.Us, Bytes: 1 << 20, Kind: tracetest.HtoD, Dst: tracetest.DeviceMemory})
	l := sectiontest.Look(t, b, analyze.Options{})
	l.Finding("serial_copies", report.High)
	l.Finding("transfer_bound", "")
}

// Graphs and kernels of GraphHidden share stream 7: 30 kernels, 10 graphs, 9100 µs.
func TestStreamsCountGraphs(t *testing.T) {
	l := sectiontest.Look(t, tracetest.GraphHidden(), analyze.Options{})
	l.Row(l.Table("streams", "streams"), 0, "kernels", "30", "graphs", "10", "kernel_time", "100000", "total", "9100000", "busy", "9100000")
}

func TestConcurrencyAgainstCounting(t *testing.T) {
	for seed := range uint64(25) {
		trace := newRandomTrace(seed, 1_000_000)
		l := sectiontest.Look(t, trace.builder, analyze.Options{})
		from, to := trace.window()
		for d := range int64(2) {
			var ns float64
			for at := from; at < to; at++ {
				busy := map[int64]bool{}
				for _, w := range trace.work {
					if w.device == d && w.start <= at && at < w.end {
						busy[w.owner<<8|w.stream] = true
					}
				}
				if len(busy) > 1 {
					ns++
				}
			}
			if l.Find("stream.count", report.Labels{"device": strconv.FormatInt(d, 10)}) == nil {
				continue // nothing ran there
			}
			sectiontest.Metric(t, l.Report, ns, "stream.concurrent_time", "device", strconv.FormatInt(d, 10))
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// Steps of 1000 µs of a thread that launches gemm, for 5 to 205, and sets memory for 50 µs.
func TestMemsetsAreNotCopies(t *testing.T) {
	const us = sectiontest.Us
	f := sectiontest.FindingOfSteps(t, "serial_copies", func(th *tracetest.Thread, at int64) {
		th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 205*us})
		th.Memset(at+10*us, at+15*us, tracetest.Memset{Start: at + 205*us, End: at + 255*us, Bytes: 1 << 20})
		th.Memcpy(at+16*us, at+20*us,
			tracetest.Memcpy{Start: at + 255*us, End: at + 256*us, Bytes: 4096, Kind: tracetest.DtoD})
	})
	const title = "Copies run for 5.1 % of the step where kernels could have hidden them, most of it memsets"
	if f == nil || f.Title != title || !strings.Contains(f.Advice[0], "memset") {
		t.Errorf("%+v", f)
	}
}

// Steps of 1000 µs of a thread that launches gemm, for 5 to 205, and copies to or from pageable memory in a call from
// 10 to 262: the copy runs from 210 to 260. Without an upload the next step begins 252 µs earlier, as its call does
// not wait for gemm; what is downloaded is needed, and 50 are saved.
func TestUploadsAreWorthTheWaitInTheirCalls(t *testing.T) {
	const us = sectiontest.Us
	for kind, want := range map[tracetest.CopyKind]int64{tracetest.HtoD: 252, tracetest.DtoH: 50} {
		f := sectiontest.FindingOfSteps(t, "serial_copies", func(th *tracetest.Thread, at int64) {
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 205*us})
			c := tracetest.Memcpy{Start: at + 210*us, End: at + 260*us, Bytes: 1 << 20, Kind: kind,
				Src: tracetest.Pageable, Dst: tracetest.DeviceMemory}
			if kind == tracetest.DtoH {
				c.Src, c.Dst = c.Dst, c.Src
			}
			th.Memcpy(at+10*us, at+262*us, c)
		})
		if f == nil || f.Worth == nil {
			t.Errorf("%v: %+v", kind, f)
		} else if got := f.Worth.Time / f.Worth.Units / us; got < want-5 || got > want {
			t.Errorf("%v: %d µs a step, want %d", kind, got, want)
		}
	}
}

// Forty decode steps of 1000 µs and four prefills of 5 ms. Where a copy of 400 µs in each decode step is hidden but for
// 50, and 40 ms are copied before, it is no finding; where 50 run alone, and all is hidden of 4 ms in each prefill, it
// is.
func TestSerialCopiesOfOtherTimesDoNotCount(t *testing.T) {
	const us = sectiontest.Us
	for _, hidden := range []bool{true, false} {
		b := tracetest.New()
		th := b.Process(1, "p").Thread(1, "")
		copies := func(start, end int64) {
			th.Memcpy(start-9*us, start-8*us, tracetest.Memcpy{Place: tracetest.Place{Stream: 9}, Start: start, End: end,
				Bytes: 1 << 20, Kind: tracetest.HtoD, Src: tracetest.Pinned, Dst: tracetest.DeviceMemory})
		}
		if hidden {
			copies(1000*us, 41_000*us)
		}
		at := int64(50_000 * us)
		for i := range 44 {
			marker, compute, copied := "execute_context_0(0)_generation_8(8)", int64(600), int64(50)
			if hidden {
				copied = 400
			}
			if i%11 == 10 {
				marker, compute, copied = "execute_context_1(512)_generation_0(0)", 4600, 4000
			}
			th.Range(marker, at-10*us, at)
			th.Launch("gemm", at-9*us, at-8*us, tracetest.Kernel{Start: at, End: at + compute*us})
			until := at + (compute+50)*us
			if i%11 == 10 {
				until = at + compute*us
			}
			copies(until-copied*us, until)
			at += (compute + 400) * us
		}
		r := sectiontest.Analyse(t, b, analyze.Options{}).Report
		sectiontest.Metric(t, r, 50*us, "unit.exposed_copy_time")
		if f := sectiontest.FindingOf(r, "serial_copies"); (f == nil) != hidden {
			t.Errorf("hidden %v: %+v", hidden, f)
		}
	}
}

// Steps of 1000 µs, in which the GPU computes for 600 and a copy of 50 runs alone: 5 % of a step, however long the window.
// The finding says which copies these are, and where they are made. The thread, which is always late, spends 62 in the
// call: that is what steps would gain.
func TestSerialCopiesAreOfTheStep(t *testing.T) {
	const us = sectiontest.Us
	for kind, want := range map[tracetest.MemKind]string{tracetest.Pageable: "pageable", tracetest.Pinned: "pinned"} {
		f := sectiontest.FindingOfSteps(t, "serial_copies", func(th *tracetest.Thread, at int64) {
			th.Launch("gemm", at, at+5*us, tracetest.Kernel{Start: at + 5*us, End: at + 605*us})
			th.Range("load batch "+strconv.FormatInt(at, 10), at+590*us, at+670*us)
			th.Memcpy(at+600*us, at+662*us, tracetest.Memcpy{Start: at + 610*us, End: at + 660*us, Bytes: 1 << 20,
				Kind: tracetest.HtoD, Src: kind, Dst: tracetest.DeviceMemory})
		})
		title := "Copies run for 5.0 % of the step where kernels could have hidden them, most of it HtoD of " + want +
			" memory, in `load batch #`"
		if f == nil || f.Severity != report.Medium || f.Title != title || f.Place != "load batch #" ||
			f.Worth.Time/f.Worth.Units != 62*us {
			t.Fatalf("%s: %+v", want, f)
		}
		if pins := strings.Contains(f.Advice[0], "pin_memory"); pins != (kind == tracetest.Pageable) {
			t.Errorf("%s: %q", want, f.Advice)
		}
	}
}
