package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"

	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

const kernelRows = "CUPTI_ACTIVITY_KIND_KERNEL"

// sound is one process that runs ten kernels of 190 µs, one every 200 µs from 1000 on: nothing to complain of.
func sound(opts ...tt.Option) (*tt.Builder, *tt.Thread) {
	b := tt.New(opts...)
	th := b.Process(100, "p").Thread(100, "t")
	soundKernels(th)
	return b, th
}

func soundKernels(th *tt.Thread) {
	for i := range int64(10) {
		at := 1000 + 200*i
		th.Launch("k", (at-100)*micro, (at-99)*micro, tt.Kernel{Start: at * micro, End: (at + 190) * micro})
	}
}

// shortKernels are ten of 50 ns each, over 1.8 ms.
func shortKernels() *tt.Builder {
	b := tt.New()
	th := b.Process(100, "p").Thread(100, "t")
	for i := range int64(10) {
		at := (1000 + 200*i) * micro
		th.Launch("k", at-10, at-5, tt.Kernel{Start: at, End: at + 50})
	}
	return b
}

func TestQualityOfSoundTrace(t *testing.T) {
	b, _ := sound()
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	wantLines(t, warningCodes(r, "quality"))
	sectiontest.Metric(t, r, 0, "quality.unjoined_kernels")
	sectiontest.Metric(t, r, 0, "quality.lost_kernels")
	sectiontest.Metric(t, r, 0, "quality.incomplete_units")
	sectiontest.Metric(t, r, 0, "quality.skipped_rows")
	sectiontest.Metric(t, r, 10*micro, "quality.longest_gap")
	sectiontest.Metric(t, r, 10.0/1990, "quality.longest_gap_ratio") // 1000 to 2990
	sectiontest.Metric(t, r, 0, "quality.unknown_process")
	sectiontest.Metric(t, r, 0, "quality.unknown_device")
	sectiontest.NoMetric(t, r, "quality.profiler_overhead") // the capture does not say
	sectiontest.NoMetric(t, r, "quality.lost_data_messages")
	sectiontest.NoMetric(t, r, "quality.open_ranges")
}

func TestQualityTiny(t *testing.T) {
	r := sectiontest.Analyse(t, tt.Tiny(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 1.0/13, "quality.unjoined_kernels")
	sectiontest.Metric(t, r, 60*micro, "quality.longest_gap") // 400-460 of 100-1100
	sectiontest.Metric(t, r, 0.06, "quality.longest_gap_ratio")
	sectiontest.Metric(t, r, 0, "quality.open_ranges")
	wantLines(t, warningCodes(r, "quality"), "unjoined_kernels")
}

func TestQualityOpenRanges(t *testing.T) {
	r := sectiontest.Analyse(t, nested(), analyze.Options{}).Report
	sectiontest.Metric(t, r, 1, "quality.open_ranges")
}

// Each case is one thing wrong with the sound trace.
func TestQualityWarnings(t *testing.T) {
	broken := func(change func(b *tt.Builder, th *tt.Thread), opts ...tt.Option) *tt.Builder {
		b, th := sound(opts...)
		if change != nil {
			change(b, th)
		}
		return b
	}
	// as makes the sound trace with the kernels of another pid.
	as := func(pid int64) *tt.Builder {
		b := tt.New()
		soundKernels(b.Process(pid, "p").Thread(1, "t"))
		return b
	}
	for _, c := range []struct {
		name  string
		trace *tt.Builder
		code  string
		text  string
		check func(t *testing.T, r *report.Report)
	}{
		{"launches and no kernels", broken(nil, tt.WithoutTable(kernelRows)), "gpu_activity_missing", "10 launch calls", nil},
		{"names that look private", broken(func(_ *tt.Builder, th *tt.Thread) {
			th.Range("user jane.doe@example.com", 1000*micro, 1001*micro)
			th.Range("prompt: why is the sky blue", 1001*micro, 1002*micro)
			th.Range("call hf_0123456789abcdefghijABCDEFGHIJ0123", 1002*micro, 1003*micro)
			th.Range("prompt: why is the sky blue", 1003*micro, 1004*micro) // the same name counts once
		}), "private_names", "1 like a token, 1 like an e-mail address, 1 like a prompt", nil},
		{"lost data", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Diagnostic(tt.Diagnostic{Severity: 2, Text: "Not all CUDA events might have been collected."})
			b.Diagnostic(tt.Diagnostic{Severity: 1, Text: "Process was launched by the profiler, see /home/me/x.log"})
		}), "lost_data", "nsys (1 message): CUDA events may be missing; all steps are complete.", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 1, "quality.lost_data_messages") }},
		{"lost data of two kinds", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Diagnostic(tt.Diagnostic{Severity: 2, Text: "Not all NVTX events might have been collected."})
			b.Diagnostic(tt.Diagnostic{Severity: 2, Text: "Not all CUDA events might have been collected."})
		}), "lost_data", "nsys (2 messages): CUDA and NVTX events may be missing; all steps are complete.", nil},
		{"unknown errors", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Diagnostic(tt.Diagnostic{Severity: 3, Text: "Something broke in /home/me"})
		}), "nsys_errors", "1 error that explain", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 0, "quality.lost_data_messages") }},
		{"cut capture", broken(func(b *tt.Builder, th *tt.Thread) {
			b.Kernel(tt.Kernel{Place: tt.Place{Process: th.Process(), Correlation: 999}, Name: "k", Start: 2990 * micro, End: 3000 * micro})
		}), "unjoined_kernels", "1 of 11 kernels (9.1 %)", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 1.0/11, "quality.unjoined_kernels") }},
		{"lost kernels", broken(func(_ *tt.Builder, th *tt.Thread) { // between the second and the third of ten launches, and after the last
			th.Call("cudaLaunchKernel_v7000", 1250*micro, 1251*micro)
			th.Call("cudaStreamBeginCapture_v10000", 1260*micro, 1261*micro)
			th.Call("cudaLaunchKernel_v7000", 1262*micro, 1263*micro) // has no kernel, and needs none
			th.Call("cudaStreamEndCapture_v10000", 1264*micro, 1265*micro)
			th.Call("cudaLaunchKernel_v7000", 2890*micro, 2891*micro) // in flight at the end
		}), "lost_kernels", "1 of 11 launch calls (9.1 %)", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 1.0/11, "quality.lost_kernels") }},
		{"units that miss events", broken(func(_ *tt.Builder, th *tt.Thread) { // one of ten, before the launch of the third
			th.Call("cudaLaunchKernel_v7000", 1250*micro, 1251*micro)
		}), "incomplete_units", "1 of 10 units of work (10.0 %) miss events, launches without their kernel or kernels without their call: they are left out.", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 0.1, "quality.incomplete_units") }},
		{"no API calls", broken(nil, tt.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME")), "no_api_calls", "", func(t *testing.T, r *report.Report) { sectiontest.NoMetric(t, r, "quality.unjoined_kernels") }},
		{"no correlation", broken(nil, tt.WithoutColumn(kernelRows, "correlationId")), "no_correlation", "", nil},
		{"no process column", broken(nil, tt.WithoutColumn(kernelRows, "globalPid")), "no_process_column", "", func(t *testing.T, r *report.Report) { sectiontest.NoMetric(t, r, "quality.unknown_process") }},
		{"hidden kernels", tt.GraphHidden(), "graph_trace", "98.9 %", nil}, // 9000 of 9100 µs
		{"rows backwards", broken(func(b *tt.Builder, th *tt.Thread) {
			b.Kernel(tt.Kernel{Place: tt.Place{Process: th.Process()}, Name: "k", Start: 500 * micro, End: 400 * micro})
			th.Range("back", 10, 5)
		}), "skipped_rows", "Table " + kernelRows + ": 1 of 11 rows", func(t *testing.T, r *report.Report) {
			sectiontest.Metric(t, r, 2, "quality.skipped_rows")
			if n := len(warningCodes(r, "quality")); n != 2 {
				t.Errorf("%d warnings, want one for each table", n)
			}
		}},
		// Nine copies and memsets, of which 7 cannot be: two sizes, two kinds, 3 TB/s from the host, 200 TB/s on the device, a size set.
		{"copies that cannot be", broken(func(b *tt.Builder, th *tt.Thread) {
			place := tt.Place{Process: th.Process()}
			copied := func(bytes int64, kind tt.CopyKind, set tt.Row) {
				b.Memcpy(tt.Memcpy{Place: place, Start: 1500 * micro, End: 1501 * micro, Bytes: bytes, Kind: kind, Set: set})
			}
			copied(-5, tt.HtoD, nil)
			copied(1<<43, tt.DtoD, nil)
			copied(100, 77, nil)
			copied(100, tt.DtoH, tt.Row{"srcKind": tt.Int(9)})
			copied(3_000_000, tt.HtoD, nil)
			copied(200_000_000, tt.DtoD, nil)
			copied(100_000, tt.HtoD, nil)
			copied(3_000_000, tt.DtoD, nil)
			b.Memset(tt.Memset{Place: place, Start: 1502 * micro, End: 1503 * micro, Bytes: -1})
		}), "impossible_copies", "7 of 9 copies and memsets", func(t *testing.T, r *report.Report) {
			sectiontest.Metric(t, r, 206_100_200, "memcpy.bytes") // sizes below 0 and above 4 TiB count 0
		}},
		// One more kernel 1000 µs after the last: window 1000-4000, gap 2990-3990.
		{"a tail", broken(func(_ *tt.Builder, th *tt.Thread) {
			th.Launch("k", 3980*micro, 3981*micro, tt.Kernel{Start: 3990 * micro, End: 4000 * micro})
		}), "window_gap", "One gap without GPU work is 33.3 % of the window (1 ms, from 1.99 ms to 2.99 ms after its start): narrow it with --steady or --to 1.99ms. The window mixes the work with a tail after it", func(t *testing.T, r *report.Report) {
			sectiontest.Metric(t, r, 1000*micro, "quality.longest_gap")
			sectiontest.Metric(t, r, 1000.0/3000, "quality.longest_gap_ratio")
		}},
		// One kernel 990 µs before the first: window 0-2990, gap 10-1000.
		{"load", broken(func(_ *tt.Builder, th *tt.Thread) {
			th.Launch("load", -10*micro, -9*micro, tt.Kernel{Start: 0, End: 10 * micro})
		}), "window_gap", "load or warm-up before it", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 990*micro, "quality.longest_gap") }},
		{"short window", tt.TwoProcs(), "time_unit", "the window is only 40 µs", nil},
		{"short kernels", shortKernels(), "time_unit", "50 ns on average", nil},
		{"pid 0", as(0), "pid_zero", "Every kernel", nil},
		{"large pid", as(12_000_000), "pid_large", "100 % of the kernels", nil},
		{"kernels of one process, calls of two", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Process(200, "q").Thread(200, "t").Call("cudaFree_v3020", 1, 2)
		}), "pid_mismatch", "2 made CUDA calls", nil},
		// The other process' kernel runs from 1100 to 1300 beside two of 1000-1190 and 1200-1390: 90 and 100 of the 1910 in which any runs.
		{"processes side by side", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Process(200, "q").Thread(200, "t").Launch("k", 900*micro, 901*micro, tt.Kernel{Start: 1100 * micro, End: 1300 * micro})
		}), "shared_device", "for 190 µs of 1.91 ms", nil},
		// Kernels of two processes, one after the other, and beside both one that does not say whose it is.
		{"beside a kernel of nobody", broken(func(b *tt.Builder, _ *tt.Thread) {
			b.Process(200, "q").Thread(200, "t").Launch("k", 900*micro, 901*micro, tt.Kernel{Start: 3000 * micro, End: 3100 * micro})
			b.Kernel(tt.Kernel{Name: "k", Start: 1100 * micro, End: 3050 * micro, Set: tt.Row{"globalPid": tt.Null()}})
		}), "unknown_process", "", func(t *testing.T, r *report.Report) {
			if slices.Contains(warningCodes(r, "quality"), "shared_device") {
				t.Error("a process shares the device with nobody")
			}
		}},
		// On two threads 1000-1100 and 1050-1150: 200 in all, 150 of the window of 1990.
		{"overhead", broken(func(b *tt.Builder, th *tt.Thread) {
			b.Overhead(tt.Overhead{Thread: th, Name: "CUPTI buffer flush", Start: 1000 * micro, End: 1100 * micro})
			b.Overhead(tt.Overhead{Thread: th.Process().Thread(7, "u"), Name: "CUPTI buffer flush", Start: 1050 * micro, End: 1150 * micro})
		}), "profiler_overhead", "7.5 %", func(t *testing.T, r *report.Report) {
			sectiontest.Metric(t, r, 200*micro, "quality.profiler_overhead")
			sectiontest.Metric(t, r, 150.0/1990, "quality.profiler_overhead_ratio")
		}},
		{"no process", broken(func(b *tt.Builder, th *tt.Thread) {
			for i := range int64(10) {
				b.Kernel(tt.Kernel{Place: tt.Place{Correlation: i + 1}, Name: "k", Start: 2990 * micro, End: 2991 * micro})
			}
		}), "unknown_process", "10 of 20 kernels", func(t *testing.T, r *report.Report) {
			sectiontest.Metric(t, r, 10, "quality.unknown_process")
			sectiontest.Metric(t, r, 0.5, "quality.unjoined_kernels")
		}},
		{"no device", broken(func(_ *tt.Builder, th *tt.Thread) {
			th.Launch("k", 2980*micro, 2981*micro, tt.Kernel{Start: 2990 * micro, End: 2991 * micro, Set: tt.Row{"deviceId": tt.Null()}})
		}), "unknown_device", "1 of 11 kernels", func(t *testing.T, r *report.Report) { sectiontest.Metric(t, r, 1, "quality.unknown_device") }},
		{"no device column", broken(nil, tt.WithoutColumn(kernelRows, "deviceId")), "unknown_device", "does not say", func(t *testing.T, r *report.Report) { sectiontest.NoMetric(t, r, "quality.unknown_device") }},
		{"names missing", broken(nil, tt.DanglingID("k")), "unknown_name", "10 of 10 kernels", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := sectiontest.Analyse(t, c.trace, analyze.Options{}).Report
			found := false
			for _, w := range r.Warnings {
				if w.Section == "quality" && w.Code == c.code {
					found = found || strings.Contains(w.Text, c.text)
					if strings.Contains(w.Text, "/home") {
						t.Errorf("the warning quotes a message of nsys: %s", w.Text)
					}
				}
			}
			if !found {
				t.Errorf("no warning %s …%s… in %v", c.code, c.text, r.Warnings)
			}
			if c.check != nil {
				c.check(t, r)
			}
		})
	}
}

// Warnings come in the order of how much they matter.
func TestQualityOrder(t *testing.T) {
	b := tt.Tiny()
	b.Diagnostic(tt.Diagnostic{Severity: 2, Text: "Not all CUDA events might have been collected."})
	b.Overhead(tt.Overhead{Name: "x", Start: 100 * micro, End: 200 * micro})
	b.Kernel(tt.Kernel{Name: "k", Start: 5, End: 1})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	wantLines(t, warningCodes(r, "quality"), "skipped_rows", "unjoined_kernels", "profiler_overhead", "lost_data")
}

// Every check has a row that says what became of it, in any capture.
func TestQualityChecks(t *testing.T) {
	b := tt.New()
	b.OSRT(tt.OSRT{Name: "poll", Start: 1, End: 2})
	res := sectiontest.Analyse(t, b, analyze.Options{})
	sectiontest.WantStatus(t, res.Report, "quality", report.OK, "")
	wantLines(t, warningCodes(res.Report, "quality"), "no_gpu_work")
	for _, line := range cellLines(t, tableNamed(t, res, "quality"), "check", "result") {
		if !strings.Contains(line, "| not checked: ") && line != "GPU work of the launch calls was captured | warning" &&
			line != "rows have sound times | ok" { // that of the call of the operating system
			t.Errorf("a capture without anything cannot have passed: %s", line)
		}
	}
	got := cellLines(t, tableNamed(t, sectiontest.Analyse(t, tt.Tiny(), analyze.Options{}), "quality"), "check", "result", "count", "share")
	for _, want := range []string{"kernels have their launch call | warning | 1 | 0.07692307692307693", "rows have sound times | ok | 0 | null"} {
		if !slices.Contains(got, want) {
			t.Errorf("no row %q in\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// TestHiddenGraphLaunches: of ten launches of a graph six leave no row; by hand 0.6. Of those at the end two may still be running.
func TestHiddenGraphLaunches(t *testing.T) {
	for _, x := range []struct {
		name string
		with string // one letter for a launch: k with a kernel, g traced as a whole, - with nothing
		want float64
	}{{"most", "k-k-----kk", 0.6}, {"all", "----------", 1}, {"none", "kkkkkkkkkg", 0}, {"the last two", "kkkkkkkk--", 0}, {"the last three", "kkkkkkk---", 0.3}} {
		b := tt.New()
		th := b.Process(100, "p").Thread(100, "t")
		th.Launch("prefill", 10*micro, 15*micro, tt.Kernel{Start: 20 * micro, End: 900 * micro})
		for i, c := range x.with {
			at := int64(1000+200*i) * micro
			switch c {
			case 'k':
				th.GraphLaunch(at, at+5*micro, tt.Kernel{Name: "decode", Start: at + 10*micro, End: at + 100*micro})
			case 'g':
				th.GraphLaunchWhole(at, at+5*micro, tt.GraphTrace{Start: at + 10*micro, End: at + 100*micro, Graph: 1, Exec: 2})
			default:
				th.Call("cudaGraphLaunch_v10000", at, at+5*micro)
			}
		}
		r := sectiontest.Analyse(t, b, analyze.Options{}).Report
		sectiontest.Metric(t, r, x.want, "quality.hidden_graph_launches")
		if told := slices.Contains(warningCodes(r, "quality"), "hidden_graph_launches"); told != (x.want > 0) {
			t.Errorf("%s: told: %t", x.name, told)
		}
	}
}
