package diff_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// TestWhereInTheStep: the host of the mfu pair got slower in two ways. Its idle time grew by 2.74 ms: 1.84 ms in every step,
// 1.06 ms of it before kernels 66 to 80, and 0.89 ms in four hiccups; worked out by hand from the event rows.
func TestWhereInTheStep(t *testing.T) {
	base := reportOfFile(t, sharedTrace(t, "nsysai_mfu_2gpu_before"), analyze.Options{})
	head := reportOfFile(t, sharedTrace(t, "nsysai_mfu_2gpu_after"), analyze.Options{})
	c, err := diff.Compare([]*report.Report{base}, []*report.Report{head}, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := c.Step
	if s == nil || len(s.Rows) != 119+2 {
		t.Fatalf("step %+v", s)
	}
	us := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 500 {
			t.Errorf("%s %.1f µs, want %.0f", what, got/1e3, want/1e3)
		}
	}
	us("the unit changed by", s.Delta, 2_424_000)
	us("idle time", s.Idle, 2_736_000)
	us("in every step", s.Systematic, 1_844_000)
	us("in hiccups", s.Sporadic, 891_000)
	sum, local := 0.0, 0.0
	for i := range s.Rows {
		r := &s.Rows[i]
		if sum += r.Delta; r.BasePosition != nil && *r.BasePosition >= 66 && *r.BasePosition <= 80 {
			local += r.GapMedian
		}
		if r.Kind != comparison.RowPaired && i < 119 || r.HeadName != nil {
			t.Errorf("row %d is %s", i, r.Kind)
		}
	}
	us("before 66 to 80 in every step", local, 1_060_000)
	if math.Abs(sum-c.Attribution.TotalDelta) > 1e-6 {
		t.Errorf("rows sum to %v, the unit changed by %v", sum, c.Attribution.TotalDelta)
	}
	// The stretch where the change is dense begins four kernels earlier.
	if len(s.Stretches) == 0 || s.Stretches[0].From != 62 || s.Stretches[0].To != 80 {
		t.Errorf("stretches %+v", s.Stretches)
	}
	var gaps []int
	for _, h := range s.HeadHiccups {
		if h.Part == comparison.PartGap {
			gaps = append(gaps, h.Row)
		}
	}
	if len(gaps) != 4 || gaps[0] != 38 || gaps[1] != 12 || gaps[2] != 33 || gaps[3] != 76 {
		t.Errorf("hiccups before %v, want 38, 12, 33 and 76", gaps)
	}
	const where = "+1.292 ms before kernels #62–#80 in every step, of +1.844 ms idle in all; +891.3 µs in 4 hiccups in 14 steps, up to 6.646 ms before kernel #38"
	if s.Where != where {
		t.Errorf("where: %s", s.Where)
	}
}

// stepChange is what a head does otherwise than the base of [stepTrace].
type stepChange struct {
	stall, hiccup int64  // ns before the kernel at position 3 in every step, and before position 5 in the sixth
	extra         int    // kernels more behind position 1
	name          string // of the kernel at position 4
	streams       bool   // kernels by turns on two streams
	slower        int64  // ns of the kernel at position 2
}

// stepTrace is twelve steps of eight kernels of 10 µs each, 1 µs apart, on two devices: the second does the same half as slow.
func stepTrace(t *testing.T, x stepChange) *report.Report {
	t.Helper()
	b := tracetest.New()
	for device := range int64(2) {
		b.GPU(tracetest.GPU{ID: device})
		th := b.Process(100+device, "python").Thread(100+device, "python")
		at := int64(1_000_000)
		for i := range int64(13) {
			first, n := at, int64(0)
			launch := func(name string, k int, length int64) {
				stream := int64(7)
				if x.streams && k%2 == 1 {
					stream = 9
				}
				th.Launch(name, at-900, at-500, tracetest.Kernel{Place: tracetest.Place{Device: device, Stream: stream}, Start: at,
					End: at + length})
				at += length + 1000
				n++
			}
			for k := range 8 {
				name, length := fmt.Sprintf("kernel%d", k), 10_000+5_000*device
				switch {
				case k == 2:
					length += x.slower
				case k == 3:
					at += x.stall
				case k == 4 && x.name != "":
					name = x.name
				case k == 5 && i == 5:
					at += x.hiccup
				}
				launch(name, k, length)
				for e := range x.extra {
					if k == 1 {
						launch(fmt.Sprintf("extra%d", e), k, 2_000)
					}
				}
			}
			th.Range(fmt.Sprintf("ProfilerStep#%d", i), first-1000, at-1000)
			at += 5_000
		}
	}
	return reportOfFile(t, b.WriteTB(t), analyze.Options{})
}

// TestInjectedChanges: what was put into the head is found where it was put, by its size, and as what it is.
func TestInjectedChanges(t *testing.T) {
	base := stepTrace(t, stepChange{})
	for _, x := range []struct {
		what  string
		head  stepChange
		where string
		delta float64 // µs of the unit
		row   int
	}{
		{"a stall in every step", stepChange{stall: 30_000}, "+30 µs before kernel #3 kernel3 in every step", 30, 3},
		{"the same on two streams", stepChange{stall: 30_000, streams: true}, "+30 µs before kernel #3 kernel3 in every step", 30, 3},
		{"a hiccup", stepChange{hiccup: 600_000}, "+50 µs in 1 hiccup in 12 steps, up to 600 µs before kernel #5", 50, 5},
		{"a stall and a hiccup", stepChange{stall: 30_000, hiccup: 600_000},
			"+30 µs before kernel #3 kernel3 in every step; +50 µs in 1 hiccup in 12 steps, up to 600 µs before kernel #5", 80, 5},
		{"another kernel, renamed", stepChange{name: "kernel4_v2", stall: 30_000}, "+30 µs before kernel #3 kernel3 in every step", 30, 3},
		{"two kernels more", stepChange{extra: 2}, "+4 µs in kernels #2–#3 (added) in every step", 6, 2},
		{"a slower kernel", stepChange{slower: 20_000}, "+20 µs in kernel #2 kernel2 in every step", 20, 2},
	} {
		t.Run(x.what, func(t *testing.T) {
			c, err := diff.Compare([]*report.Report{base}, []*report.Report{stepTrace(t, x.head)}, diff.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := c.Step
			if s == nil {
				t.Fatalf("no step: %v, %v", c.Depth, c.Reasons)
			}
			if s.Where != x.where {
				t.Errorf("where: %s\nwant:  %s", s.Where, x.where)
			}
			if s.Device != 1 || math.Abs(s.Delta-x.delta*1000) > 1 {
				t.Errorf("GPU %d, the unit changed by %v", s.Device, s.Delta)
			}
			most, sum := 0, 0.0
			for i := range s.Rows {
				sum += s.Rows[i].Delta
				if s.Rows[i].Delta > s.Rows[most].Delta {
					most = i
				}
			}
			if most != x.row || math.Abs(sum-c.Attribution.TotalDelta) > 1e-6 {
				t.Errorf("row %d changed most; rows sum to %v of %v", most, sum, c.Attribution.TotalDelta)
			}
			added := 0
			for i := range s.Rows {
				if s.Rows[i].Kind == comparison.RowAdded {
					added++
				} else if s.Rows[i].Kind == comparison.RowRemoved {
					t.Errorf("row %d is removed", i)
				}
			}
			if added != x.head.extra {
				t.Errorf("%d kernels are added, want %d", added, x.head.extra)
			}
		})
	}
}

// TestOneSlowRunOfAKernel: kernel 5 takes 1 ms longer in one of 13 steps. That is no longer run of each step.
func TestOneSlowRunOfAKernel(t *testing.T) {
	trace := func(slow int64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range int64(20) {
			for k := range int64(8) {
				ns := 100_000 + 20*((i+k)%5)
				if i == 9 && k == 5 {
					ns += slow
				}
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + ns})
				at += ns + 1000
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, head := trace(0), trace(1_000_000)
	says(t, ofReports(t, base, head), "kernel kernel5 +", " % at #5: in 1 hiccup in ", " steps, up to 1 ms")
	says(t, ofReports(t, head, base), "kernel kernel5 -", " % at #5: in 1 hiccup of base in ", " steps, up to 1 ms")
}

// TestCopiesOfTheComparedDeviceAlone: device 1 copies to its peer in every step and device 0 in every other one, before as
// after. On the base device 0 is the slower one, on the head device 1: that is no change of copies.
func TestCopiesOfTheComparedDeviceAlone(t *testing.T) {
	trace := func(kernels [2]int64) *report.Report {
		b := tracetest.New()
		for device := range int64(2) {
			b.GPU(tracetest.GPU{ID: device})
			th := b.Process(100+device, "python").Thread(100+device, "python")
			at := int64(1_000_000)
			for i := range int64(20) {
				first, place := at, tracetest.Place{Device: device}
				for k := range 8 {
					th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Place: place, Start: at, End: at + kernels[device]})
					at += kernels[device] + 1000
				}
				if device == 1 || i%2 == 0 {
					th.Memcpy(at-900, at-500, tracetest.Memcpy{Place: place, Start: at, End: at + 5_000, Bytes: 1 << 20,
						Kind: tracetest.PtoP, Src: tracetest.DeviceMemory, Dst: tracetest.DeviceMemory})
				}
				at += 6_000
				th.Range(fmt.Sprintf("ProfilerStep#%d", i), first-1000, at-1000)
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	c := ofReports(t, trace([2]int64{12_000, 10_000}), trace([2]int64{12_000, 14_000}))
	for _, s := range c.Structure {
		if strings.HasPrefix(s.ID, comparison.FoundCopies) {
			t.Errorf("%s: %s", s.Class, s.Text)
		}
	}
	if !strings.Contains(c.Cause, "the slowest device moved from 0 to 1") || strings.Contains(c.Cause, "PtoP") {
		t.Error(c.Cause)
	}
}

// TestATrainingStepIsNoDecode: steps that a script of training marks by hand are called steps, in the report and in the
// comparison, and those of a script that marks prefill and decode by these.
func TestATrainingStepIsNoDecode(t *testing.T) {
	trace := func(kernel int64, names ...string) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range 24 {
			first := at
			for k := range 6 {
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + kernel})
				at += kernel + 1000
			}
			th.Range(fmt.Sprintf(names[i%len(names)], i), first-1000, at-1000)
			at += 5_000
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, head := trace(10_000, "step %d"), trace(12_000, "step %d")
	if base.Unit.Kind != "nvtx" || base.Unit.Name != "step N" {
		t.Fatalf("unit %s %s: %s", base.Unit.Kind, base.Unit.Name, base.Unit.Why)
	}
	c := ofReports(t, base, head)
	var text strings.Builder
	if err := render.Terminal(&text, diffdoc.Terminal(c), render.TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if c.Answer.Per != "step" || c.Verdict != comparison.Fail || strings.Contains(text.String(), "prefill") || strings.Contains(text.String(), "decode") {
		t.Errorf("%s %q\n%s", c.Verdict, c.Answer.Per, &text)
	}
	if r := trace(10_000, "prefill %d", "decode %d", "decode %d"); r.Unit.Name != "prefill / decode / step N" {
		t.Errorf("unit %s: %s", r.Unit.Name, r.Unit.Why)
	}
}

// TestDriftOfAProgramWithoutItsFirstStep: 60 steps of a program become shorter by a third as it goes on, and all are 30 %
// longer on the head. Its first step takes so long there that it is warm-up and left out. Both captures hold the whole
// program, so that the others are compared with those of their place: the drift is part of the work.
func TestDriftOfAProgramWithoutItsFirstStep(t *testing.T) {
	trace := func(slower float64, first int64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range int64(60) {
			own := int64(slower * float64(60_000-i*400))
			if i == 0 {
				own += first
			}
			for k := range int64(4) {
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + own})
				at += own + 1000
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, same, slow := trace(1, 0), trace(1, 200_000), trace(1.3, 200_000)
	if n := slow.Unit.Trimmed.Warmup; n != 1 {
		t.Fatalf("%d units of warm-up", n)
	}
	if c := ofReports(t, base, slow); c.Verdict != comparison.Fail {
		t.Errorf("%s: %s %v", c.Verdict, c.Cause, c.Reasons)
	}
	if c := ofReports(t, slow, base); c.Verdict != comparison.Pass || c.Answer.Direction != comparison.Faster {
		t.Errorf("back: %s: %s %v", c.Verdict, c.Cause, c.Reasons)
	}
	if c := ofReports(t, base, same); c.Verdict != comparison.Pass {
		t.Errorf("the same: %s: %s %v", c.Verdict, c.Cause, c.Reasons)
	}
}

// TestMedianMovedAndMeanNot: every third of 24 steps of the base takes 1.3 times as long as the others, and all steps
// of the head 1.1 times: the mean is equal, and the median is not.
func TestMedianMovedAndMeanNot(t *testing.T) {
	trace := func(factors ...float64) *report.Report {
		b := tracetest.New()
		th := b.Process(100, "python").Thread(100, "python")
		at := int64(1_000_000)
		for i := range 24 {
			ns := int64(100_000*factors[i%len(factors)]) + int64(i%5)*20
			for k := range 6 {
				th.Launch(fmt.Sprintf("kernel%d", k), at-900, at-500, tracetest.Kernel{Start: at, End: at + ns})
				at += ns + 1000
			}
		}
		return reportOfFile(t, b.WriteTB(t), analyze.Options{})
	}
	base, head := trace(1, 1, 1.3), trace(1.1)
	const longer = " steps are longer than the others and "
	says(t, ofReports(t, base, head), "the mean step: +0.79 %, ", "7 of base's 23"+longer+"0 of head's 23")
	says(t, ofReports(t, head, base), "the mean step: -0.78 %, ", "0 of base's 23"+longer+"7 of head's 23")
	if c := ofReports(t, base, trace(1, 1, 1.3, 1, 1.3, 1)); strings.Contains(c.Cause, "are longer than the others") {
		t.Error(c.Cause)
	}
}
