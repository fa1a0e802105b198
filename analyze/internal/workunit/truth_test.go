package workunit_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

func shared(tb testing.TB, trace string) string {
	tb.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "traces", trace+".sqlite")
	if _, err := os.Stat(path); err != nil {
		tb.Skip("no shared/traces: the real traces are not part of the project")
	}
	return path
}

// mean time of the kept units of the primary group on one device, in ms.
func mean(r *workunit.Result, device int32) (ms float64, n int) {
	var sum int64
	for i := range r.Units {
		if u := &r.Units[i]; u.State == workunit.Kept && int(u.Group) == r.Primary && u.Device == device {
			sum += u.Time()
			n++
		}
	}
	return float64(sum) / float64(n) / 1e6, n
}

// TestRealTraces are the periods that were worked out by hand.
func TestRealTraces(t *testing.T) {
	for _, want := range []struct {
		trace   string
		kind    string
		period  int
		inner   int
		kernels int64 // of a unit, communication included
		units   int
		means   []float64 // ms, by device
	}{
		{"nsysai_mfu_2gpu_before", "kernel", 117, 0, 119, 32, []float64{17.53, 17.53}},
		{"nsysai_mfu_2gpu_after", "kernel", 117, 0, 119, 28, []float64{19.95, 19.95}},
		{"cs336zx_2_7B", "kernel", 1832, 57, 1832, 3, []float64{841.25}},
		{"cs336zx_2_7B_nvtx", "kernel", 1832, 57, 1832, 3, []float64{841.12}},
		{"cs336zx_2_7B_clean", "kernel", 1832, 57, 1832, 9, []float64{841.01}},
		{"cs336_hoponga_exp2024_2", "kernel", 746, 0, 746, 11, []float64{31.32}},
		{"cs336_hoponga_exp2023_4", "kernel", 746, 0, 746, 11, []float64{31.32}},
		{"rodinia_report2_native", "kernel", 2, 0, 2, 4094, []float64{0.70}},
		{"rodinia_report3_native", "kernel", 2, 0, 2, 4094, []float64{0.21}},
		{"nsysai_h100_2gpu_1s", "kernel", 62, 0, 62, 46, []float64{29.34, 29.34}},
		{"cs336zx_2_7B_compile_cudagraph", "graph", 0, 0, 3, 9, []float64{781.14}},
		{"cs336_jsun_4ae893", "nvtx", 0, 0, 1978, 3, nil}, // Warm-up Step 1 to 5, then 10 forward passes
		{"sglang_baseline_report", "none", 0, 0, 0, 0, nil},
		{"mordred_exp2023_4", "none", 0, 0, 0, 0, nil},
		{"fuser_h200_report1", "none", 0, 0, 0, 0, nil},
		{"alpa_r1_memcpy_nokernel", "none", 0, 0, 0, 0, nil},
		{"centerformer_baseline_nvtxonly", "none", 0, 0, 0, 0, nil},
	} {
		t.Run(want.trace, func(t *testing.T) {
			r := find(t, shared(t, want.trace), "")
			if r.Kind != want.kind || r.Period.Kernels != want.period || r.Period.Inner != want.inner {
				t.Fatalf("kind %s, %+v; want %+v (%s)", r.Kind, r.Period, want, r.Why)
			}
			if want.kind == "none" {
				return
			}
			if n := r.Groups[r.Primary].Count; n != int64(want.units) {
				t.Errorf("%d units, want %d", n, want.units)
			}
			if n := r.Groups[r.Primary].Kernels; n != want.kernels {
				t.Errorf("units of %d kernels, want %d", n, want.kernels)
			}
			for d, ms := range want.means {
				if got, _ := mean(r, int32(d)); math.Abs(got-ms) > 0.005 {
					t.Errorf("device %d: mean %.4f ms, want %.2f", d, got, ms)
				}
			}
		})
	}
}

// Every block of the two captures has 119 kernels, and the captures are of the same work.
func TestBlocksOfMFU(t *testing.T) {
	signature := ""
	for _, name := range []string{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"} {
		r := find(t, shared(t, name), "")
		if len(r.Groups) != 1 {
			t.Fatalf("%d groups", len(r.Groups))
		}
		counts := make([]int, len(r.Units))
		for d := range r.Of {
			members := r.Of[d].Walk()
			for i := range r.Timeline.Devices[d].Len() {
				if u := members.Of(i); u != trace.None {
					counts[u]++
				}
			}
		}
		for i := range r.Units {
			if u := &r.Units[i]; u.State == workunit.Kept && counts[i] < 119 {
				t.Errorf("%s: unit %d has %d pieces of work", name, i, counts[i])
			}
		}
		if signature == "" {
			signature = r.Groups[0].Signature
		} else if r.Groups[0].Signature != signature {
			t.Errorf("signatures %s and %s", signature, r.Groups[0].Signature)
		}
	}
}

// One forward pass, captured three ways.
func TestPassesAreTheSameWork(t *testing.T) {
	signatures := map[string]bool{}
	name := ""
	for _, trace := range []string{"cs336zx_2_7B", "cs336zx_2_7B_nvtx", "cs336zx_2_7B_clean"} {
		r := find(t, shared(t, trace), "")
		signatures[r.Groups[r.Primary].Signature] = true
		if name != "" && r.Name != name {
			t.Errorf("cut at %s and at %s", name, r.Name)
		}
		name = r.Name
		for i := range r.Units {
			u := &r.Units[i]
			v := timeline.Visitor{Moments: []int64{u.Start, u.End}}
			r.Timeline.Devices[0].Visit(nil, &v)
			busy := v.Times[1].Busy() - v.Times[0].Busy()
			switch u.State {
			case workunit.Kept: // the truth: span 840.96 to 841.47 ms, busy 839.04 to 839.28
				if ms := float64(u.Time()) / 1e6; ms < 840.955 || ms > 841.48 {
					t.Errorf("%s: a pass of %.3f ms", trace, ms)
				}
				if ms := float64(busy) / 1e6; trace != "cs336zx_2_7B_nvtx" && (ms < 839.03 || ms > 839.285) {
					t.Errorf("%s: a pass busy for %.3f ms", trace, ms)
				}
			case workunit.Warmup:
				if ms := float64(busy) / 1e6; ms < 862 || ms > 900 {
					t.Errorf("%s: a warm-up pass busy for %.3f ms", trace, ms)
				}
			default:
				t.Errorf("%s: a unit is %s", trace, u.State)
			}
		}
	}
	if len(signatures) != 1 {
		t.Errorf("%d signatures", len(signatures))
	}
}

// summary of a result that must not change when the trace is only moved or renamed.
func summary(r *workunit.Result, shift int64) string {
	var b strings.Builder
	fmt.Fprintln(&b, r.Kind, r.Name, r.Why, r.Period, r.Primary)
	for i := range r.Units {
		u := &r.Units[i]
		fmt.Fprintln(&b, u.Device, u.Start-shift, u.End-shift, u.Group, u.State, u.HostKnown())
	}
	for i := range r.Groups {
		fmt.Fprintf(&b, "%+v\n", r.Groups[i])
	}
	return b.String()
}

func rewritten(t *testing.T, src string, edits ...tracetest.Edit) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "edited.sqlite")
	if err := tracetest.Rewrite(src, dst, edits...); err != nil {
		t.Fatal(err)
	}
	return dst
}

func sources(t *testing.T) map[string]string {
	list := map[string]string{
		"serving": tracetest.Serving().WriteTB(t),
		"hidden":  tracetest.GraphHidden().WriteTB(t),
	}
	if path := filepath.Join("..", "..", "..", "..", "shared", "traces", "nsysai_mfu_2gpu_before.sqlite"); exists(path) {
		list["mfu"] = path
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestShiftedTimeChangesNothing(t *testing.T) {
	for name, src := range sources(t) {
		want := summary(find(t, src, ""), 0)
		for _, shift := range longtest.Some([]int64{-9_000_000_000, 12_345_678_901}, 1) {
			if got := summary(find(t, rewritten(t, src, tracetest.ShiftTime(shift)), ""), shift); got != want {
				t.Errorf("%s, shifted by %d:\n%s\nwant\n%s", name, shift, got, want)
			}
		}
	}
}

func TestRenamedPIDsChangeNothing(t *testing.T) {
	src := tracetest.Serving().WriteTB(t)
	want := summary(find(t, src, ""), 0)
	if got := summary(find(t, rewritten(t, src, tracetest.RenamePID(4101, 7), tracetest.RenamePID(4102, 9_000)), ""), 0); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// However a capture was cut, its units are the same ones, cut at the same kernel.
func TestCutCaptureKeepsPeriodAndSignature(t *testing.T) {
	src := shared(t, "nsysai_mfu_2gpu_before")
	whole := find(t, src, "")
	starts := map[int64]bool{}
	for i := range whole.Units {
		starts[whole.Units[i].Start] = true
	}
	d := whole.Timeline.Devices[0]
	from, to := d.Start(0), d.Start(d.Len()-1)
	for _, share := range longtest.Some([][2]float64{{0.05, 1}, {0.13, 0.9}, {0.31, 0.77}, {0, 0.5}, {0.5, 1}, {0.41, 0.83}}, 3) {
		at := func(x float64) int64 { return from + int64(x*float64(to-from)) }
		r := find(t, rewritten(t, src, tracetest.Cut(at(share[0]), at(share[1]))), "")
		if r.Period.Kernels != 117 || len(r.Groups) != 1 || r.Groups[0].Signature != whole.Groups[0].Signature || r.Name != whole.Name {
			t.Errorf("%v: %+v, groups %+v, want signature %s", share, r.Period, r.Groups, whole.Groups[0].Signature)
			continue
		}
		for i := range r.Units {
			if u := &r.Units[i]; u.State == workunit.Kept && !starts[u.Start] {
				t.Errorf("%v: a unit starts at %d, where none does in the whole capture", share, u.Start)
			}
		}
	}
}

// One kernel of 2 µs more at every k-th step of a real trace, on the stream of the others: the units stay where they are.
func TestKernelOfEveryKthStepOfRealTraces(t *testing.T) {
	for _, name := range longtest.Some([]string{"cs336zx_2_7B_clean", "cs336_hoponga_exp2024_2", "rodinia_report2_native", "nsysai_h100_2gpu_1s"}, 2) {
		src := shared(t, name)
		in := load(t, src, "")
		whole := search(in, nil)
		for _, every := range []int32{2, 3, 4, 10} {
			var rows []tracetest.Row
			for i := range whole.Units {
				u := &whole.Units[i]
				if u.Number%every != 0 || u.Group < 0 {
					continue
				}
				d := whole.Timeline.Devices[u.Index]
				w := sort.Search(d.Len(), func(w int) bool { return d.Start(w) >= u.Start })
				row := tracetest.Row{
					"start": tracetest.Int(u.LastWork - 2*us), "end": tracetest.Int(u.LastWork), "deviceId": tracetest.Int(int64(u.Device)),
					"contextId": tracetest.Int(1), "streamId": tracetest.Int(d.Stream(w)), "correlationId": tracetest.Int(1<<30 + int64(i)),
					"globalPid":     tracetest.Int(in.Trace.Procs[u.Proc].Global),
					"demangledName": tracetest.ID("log_metrics"), "shortName": tracetest.ID("log_metrics"),
				}
				for _, column := range kernelColumns {
					row[column] = tracetest.Int(1)
				}
				if strings.HasPrefix(name, "nsysai") { // newer exports
					row["tensorSizeMinusOneElements"] = tracetest.Int(0)
				}
				rows = append(rows, row)
			}
			r := find(t, rewritten(t, src, tracetest.AddRows("CUPTI_ACTIVITY_KIND_KERNEL", rows...)), "")
			want, got := &whole.Groups[whole.Primary], &r.Groups[r.Primary]
			if r.Kind != whole.Kind || got.Kernels < want.Kernels || got.Kernels > want.Kernels+1 || len(r.Units) < len(whole.Units)-1 || len(r.Units) > len(whole.Units)+1 {
				t.Errorf("%s, every %d: %d units, main of %d kernels; before %d of %d (%s)", name, every, len(r.Units), got.Kernels, len(whole.Units), want.Kernels, r.Why)
			}
		}
	}
}

// kernelColumns are others that exports do not leave empty.
var kernelColumns = []string{
	"blockX", "blockY", "blockZ", "dynamicSharedMemory", "gridId", "gridX", "gridY", "gridZ", "localMemoryPerThread",
	"localMemoryTotal", "registersPerThread", "staticSharedMemory",
}
