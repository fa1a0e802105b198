package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"

	tt "github.com/nsys-llm/explain/analyze/tracetest"
)

const testPhases = `{"prefill": "prefill", "decode": ["re:^decode_\\d+$"], "attn": ["attention"], "nowhere": ["zzz"]}`

func phaseMap(tb testing.TB, text string) *analyze.PhaseMap {
	tb.Helper()
	m, err := analyze.ParsePhaseMap("phases.json", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// phased is, in µs, with the API call of each kernel in brackets:
//
//	pid 100   prefill 0-100 ⊃ attention 20-50 ⊃ softmax 30-40; decode_1 100-160 ⊃ decode_2 120-140; other 160-200
//	          start/end range "prefill tail" 150-170, across the end of decode_1
//	device 0  A 200-210 [5-6] B 210-240 [32-33] C 240-244 [125-126] D 244-250 [162-163] E 250-260 [180-181] F 260-261 [205-206]
//	pid 200   decode_9 0-50
//	device 1  G 200-250 [10-11]
//
// Wall time of pid 100: prefill 20 + 50 around attention, and 150-170 in its tail = 90; attention 30, softmax within it
// included; decode 100-150 = 50, decode_2 within it included; unmapped 170-200 = 30; together 200. Of pid 200: decode 50.
// GPU time: A and D (inside other, whose nearest mapping range is prefill tail) are prefill, 16; B, in softmax, is attn, 30;
// C and G are decode, 54; E (prefill tail has ended) and F (in no range) are unmapped, 11. Together 111, in ranges 110.
func phased(opts ...tt.Option) *tt.Builder {
	b := tt.New(opts...)
	t1 := b.Process(100, "python").Thread(100, "main")
	t2 := b.Process(200, "python").Thread(200, "main")
	launch := func(th *tt.Thread, name string, from, start, end, device int64) {
		th.Launch(name, from*micro, (from+1)*micro, tt.Kernel{Place: tt.Place{Device: device}, Start: start * micro, End: end * micro})
	}
	t1.Range("prefill", 0, 100*micro)
	t1.Range("attention", 20*micro, 50*micro)
	t1.Range("softmax", 30*micro, 40*micro)
	t1.Range("decode_1", 100*micro, 160*micro)
	t1.Range("decode_2", 120*micro, 140*micro)
	t1.StartEnd("prefill tail", 150*micro, 170*micro)
	t1.Range("other", 160*micro, 200*micro)
	t2.Range("decode_9", 0, 50*micro)
	launch(t1, "A", 5, 200, 210, 0)
	launch(t1, "B", 32, 210, 240, 0)
	launch(t1, "C", 125, 240, 244, 0)
	launch(t1, "D", 162, 244, 250, 0)
	launch(t1, "E", 180, 250, 260, 0)
	launch(t1, "F", 205, 260, 261, 0)
	launch(t2, "G", 10, 200, 250, 1)
	return b
}

func TestPhases(t *testing.T) {
	res := sectiontest.Analyse(t, phased(), analyze.Options{Phases: phaseMap(t, testPhases)})
	r := res.Report
	sectiontest.WantStatus(t, r, "phases", report.OK, "")
	for _, want := range []struct {
		phase                   string
		gpu, wall, kernels, p50 float64
	}{
		{"prefill", 16, 90, 2, 8}, // median of 10 and 6
		{"attn", 30, 30, 1, 30},
		{"decode", 54, 100, 2, 27}, // median of 4 and 50
		{"unmapped", 11, 30, 2, 5.5},
	} {
		sectiontest.Metric(t, r, want.gpu*micro, "phase.gpu_time", "phase", want.phase)
		sectiontest.Metric(t, r, want.gpu/111, "phase.gpu_share", "phase", want.phase)
		sectiontest.Metric(t, r, want.wall*micro, "phase.wall_time", "phase", want.phase)
		sectiontest.Metric(t, r, want.wall/250, "phase.wall_share", "phase", want.phase)
		sectiontest.Metric(t, r, want.kernels, "phase.kernel_count", "phase", want.phase)
		sectiontest.Metric(t, r, want.kernels, "phase.launch_count", "phase", want.phase) // one launch each
		sectiontest.Metric(t, r, want.p50*micro, "phase.kernel_duration", "phase", want.phase)
	}
	sectiontest.Metric(t, r, 2/90e-6, "phase.launch_rate", "phase", "prefill")
	sectiontest.NoMetric(t, r, "phase.launch_rate", "phase", "unmapped")
	sectiontest.Metric(t, r, 4*micro, "phase.gpu_time", "pid", "100", "phase", "decode")
	sectiontest.Metric(t, r, 50*micro, "phase.wall_time", "pid", "100", "phase", "decode")
	sectiontest.Metric(t, r, 50*micro, "phase.gpu_time", "pid", "200", "phase", "decode")
	sectiontest.Metric(t, r, 50*micro, "phase.wall_time", "pid", "200", "phase", "decode")
	wantLines(t, cellLines(t, tableNamed(t, res, "phases"), "phase", "ranges", "gpu", "kernels", "launches", "wall"),
		"decode | 3 | 54000 | 2 | 2 | 100000",
		"attn | 1 | 30000 | 1 | 1 | 30000",
		"prefill | 2 | 16000 | 2 | 2 | 90000",
		"unmapped | 2 | 11000 | 2 | 2 | 30000")
	// Of the unmapped 11, 10 are in the range other, and 1 in none: 10 of 110.
	wantLines(t, cellLines(t, tableNamed(t, res, "phases"), "attributed_share")[3:], "0.09090909090909091")
	wantLines(t, cellLines(t, tableNamed(t, res, "phases_by_pid"), "pid", "phase", "gpu", "kernels", "launches", "wall"),
		"100 | attn | 30000 | 1 | 1 | 30000",
		"100 | prefill | 16000 | 2 | 2 | 90000",
		"100 | decode | 4000 | 1 | 1 | 50000",
		"100 | unmapped | 11000 | 2 | 2 | 30000",
		"200 | decode | 50000 | 1 | 1 | 50000")
	if notes := sectiontest.SectionOf(t, r, "phases").Notes; len(notes) != 2 || notes[1] != "No range in the window maps to: nowhere." {
		t.Errorf("notes: %q", notes)
	}
	if sectiontest.FindingOf(r, "dominant_phase") != nil || sectiontest.FindingOf(r, "dominant_phase_wall") != nil || sectiontest.FindingOf(r, "phase_launch_storm") != nil {
		t.Errorf("findings without cause: %v", r.Findings) // decode has 54 of 110, and 100 of 250
	}
}

// A phase of the name unmapped keeps its own row.
func TestPhaseNamedUnmapped(t *testing.T) {
	r := sectiontest.Analyse(t, phased(), analyze.Options{Phases: phaseMap(t, `{"unmapped": "prefill"}`)}).Report
	sectiontest.Metric(t, r, 16*micro+30*micro, "phase.gpu_time", "phase", "unmapped") // B too: prefill is around attention
	sectiontest.Metric(t, r, (54+11)*micro, "phase.gpu_time", "phase", "(unmapped)")
}

// 200 launches, one every 5 µs, of kernels of 1 µs in a decode range of 1000 µs: 200,000 per second.
func TestPhaseStorm(t *testing.T) {
	b := tt.New()
	th := b.Process(1, "p").Thread(1, "t")
	th.Range("LLM@decode 1", 0, 1000*micro)
	for i := range int64(200) {
		th.Launch("k", (5*i+1)*micro, (5*i+2)*micro, tt.Kernel{Start: (5*i + 10) * micro, End: (5*i + 11) * micro})
	}
	res := sectiontest.Analyse(t, b, analyze.Options{})
	r := res.Report
	sectiontest.Metric(t, r, 200e3, "phase.launch_rate", "phase", "decode")
	sectiontest.Metric(t, r, 1*micro, "phase.kernel_duration", "phase", "decode")
	sectiontest.Metric(t, r, 200*micro, "phase.gpu_time", "phase", "decode")
	for id, severity := range map[string]report.Severity{"phase_launch_storm": sectiontest.Remark, "dominant_phase": sectiontest.Remark, "dominant_phase_wall": sectiontest.Remark} {
		if f := sectiontest.FindingOf(r, id); f == nil || f.Severity != severity {
			t.Errorf("%s: %v", id, f)
		}
	}
}

// A CUDA graph traced as a whole is GPU time of its phase, and no kernel.
func TestPhaseOfGraph(t *testing.T) {
	b := tt.New()
	th := b.Process(1, "p").Thread(1, "t")
	th.Range("decode", 0, 100*micro)
	th.GraphLaunchWhole(10*micro, 12*micro, tt.GraphTrace{Start: 20 * micro, End: 70 * micro, Graph: 1, Exec: 1})
	th.Launch("k", 20*micro, 21*micro, tt.Kernel{Start: 70 * micro, End: 75 * micro})
	r := sectiontest.Analyse(t, b, analyze.Options{}).Report
	sectiontest.Metric(t, r, 55*micro, "phase.gpu_time", "phase", "decode")
	sectiontest.Metric(t, r, 1, "phase.kernel_count", "phase", "decode")
	sectiontest.Metric(t, r, 2, "phase.launch_count", "phase", "decode")
	sectiontest.Metric(t, r, 1, "nvtx.coverage")
}

// In the window from 100 µs after the first GPU work start decode_2 and what comes after it, all on the host side.
func TestPhasesWindow(t *testing.T) {
	b := tt.New()
	th := b.Process(1, "p").Thread(1, "t")
	th.Range("prefill", 0, 100*micro)
	th.Range("decode", 110*micro, 140*micro)
	th.Launch("k", 5*micro, 6*micro, tt.Kernel{Start: 10 * micro, End: 20 * micro})
	th.Launch("k", 115*micro, 116*micro, tt.Kernel{Start: 120 * micro, End: 127 * micro})
	from := 90 * time.Microsecond // 100 on the capture's clock
	r := sectiontest.Analyse(t, b, analyze.Options{Window: analyze.WindowOptions{From: &from}}).Report
	sectiontest.Metric(t, r, 30*micro, "phase.wall_time", "phase", "decode")
	sectiontest.Metric(t, r, 7*micro, "phase.gpu_time", "phase", "decode")
	sectiontest.NoMetric(t, r, "phase.wall_time", "phase", "prefill")
}

func TestPhasesWithoutData(t *testing.T) {
	phases := phaseMap(t, testPhases)
	res := sectiontest.Analyse(t, phased(), analyze.Options{Phases: phases, NoRangeMap: true})
	sectiontest.WantStatus(t, res.Report, "phases", report.Partial, "--no-nvtx-kernel-map")
	sectiontest.Metric(t, res.Report, 90*micro, "phase.wall_time", "phase", "prefill")
	sectiontest.NoMetric(t, res.Report, "phase.gpu_time", "phase", "prefill")

	res = sectiontest.Analyse(t, phased(tt.WithoutTable("CUPTI_ACTIVITY_KIND_RUNTIME")), analyze.Options{Phases: phases})
	sectiontest.WantStatus(t, res.Report, "phases", report.Partial, "no CUDA API calls")
	sectiontest.NoMetric(t, res.Report, "phase.launch_count", "phase", "prefill")

	res = sectiontest.Analyse(t, phased(), analyze.Options{Phases: phaseMap(t, `{"x": "nothing like it"}`)})
	sectiontest.WantStatus(t, res.Report, "phases", report.NotApplicable, "phase map phases.json")
	if n := len(tableNamed(t, res, "phases").Rows); n != 0 {
		t.Errorf("phases has %d rows, want the header alone", n)
	}
	res = sectiontest.Analyse(t, phased(tt.WithoutTable("NVTX_EVENTS")), analyze.Options{})
	sectiontest.WantStatus(t, res.Report, "phases", report.Unavailable, "no NVTX ranges")
	if n := len(tableNamed(t, res, "phases_by_pid").Rows); n != 0 {
		t.Errorf("phases_by_pid has %d rows, want the header alone", n)
	}
}

// The phases of the serving recipe close: GPU time over phases is all kernel time, and wall time over phases is the union
// of all ranges per thread, so that it is no more than the threads had.
func TestPhasesClose(t *testing.T) {
	for name, b := range map[string]*tt.Builder{"node": tt.Serving(), "graph": tt.ServingGraphMode()} {
		t.Run(name, func(t *testing.T) {
			r := sectiontest.Analyse(t, b, analyze.Options{}).Report
			var gpu, share, wall float64
			for i := range r.Metrics {
				if m := &r.Metrics[i]; len(m.Labels) == 1 {
					switch m.ID {
					case "phase.gpu_time":
						gpu += *m.Value
					case "phase.gpu_share":
						share += *m.Value
					case "phase.wall_time":
						wall += *m.Value
					}
				}
			}
			total := *r.Find("kernel.total_time", nil).Value
			if name == "graph" {
				total = gpu // kernel.total_time knows nothing of the graphs
			}
			if gpu != total || share < 0.999999 || share > 1.000001 {
				t.Errorf("GPU time %v of %v, share %v", gpu, total, share)
			}
			if span := float64(r.Window.Length); wall <= 0 || wall > 2*span {
				t.Errorf("wall time %v of two threads in a window of %v", wall, span)
			}
		})
	}
}

// Random start/end ranges, which need not nest, against what is counted moment by moment and range by range.
func TestPhasesAgainstBruteForce(t *testing.T) {
	type span struct {
		name       string
		start, end int64
	}
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		b := tt.New()
		th := b.Process(1, "p").Thread(1, "t")
		var ranges []span
		for range 1 + rng.IntN(14) {
			start := rng.Int64N(40)
			s := span{[]string{"red", "green", "blue", "other"}[rng.IntN(4)], start, start + rng.Int64N(30)}
			ranges = append(ranges, s)
			th.StartEnd(s.name, s.start, s.end)
		}
		// The nearest range comes first: the one that started last; of two that start together the shorter, then the later row.
		slices.Reverse(ranges)
		slices.SortStableFunc(ranges, func(x, y span) int { return int(100*(y.start-x.start) + x.end - y.end) })
		nearest := func(from, to int64) (phase string, inside bool) {
			for _, s := range ranges {
				if s.start <= from && s.end >= to {
					if inside = true; s.name != "other" {
						return s.name, true
					}
				}
			}
			return "unmapped", inside
		}
		wall, gpu, union := map[string]int64{}, map[string]int64{}, map[string]int64{}
		for at := range int64(80) {
			if phase, inside := nearest(at, at+1); inside {
				wall[phase]++
			}
			open := map[string]bool{}
			for _, s := range ranges {
				open[s.name] = open[s.name] || s.start <= at && s.end > at
			}
			for name, is := range open {
				if is {
					union[name]++
				}
			}
		}
		for i := range int64(20) {
			start := 1000 + 100*i
			th.Launch("k", 4*i, 4*i+2, tt.Kernel{Start: start, End: start + 7 + i})
			phase, _ := nearest(4*i, 4*i+2)
			gpu[phase] += 7 + i
		}
		r := sectiontest.Analyse(t, b, analyze.Options{Phases: phaseMap(t, `{"red": "red", "green": "green", "blue": "blue"}`)}).Report
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			for i := range r.Metrics {
				m := &r.Metrics[i]
				if len(m.Labels) != 1 {
					continue
				}
				want := int64(-1)
				switch m.ID {
				case "phase.wall_time":
					want = wall[m.Labels["phase"]]
					delete(wall, m.Labels["phase"])
				case "phase.gpu_time":
					want = gpu[m.Labels["phase"]]
				case "nvtx.wall_time":
					want = union[m.Labels["range"]]
				default:
					continue
				}
				if int64(*m.Value) != want {
					t.Errorf("%s%v = %v, want %d", m.ID, m.Labels, *m.Value, want)
				}
			}
			if r.Find("phase.wall_time", report.Labels{"phase": "unmapped"}) != nil && len(wall) > 0 {
				t.Errorf("phases missing: %v", wall)
			}
		})
	}
}
