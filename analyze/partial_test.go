package analyze

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// partialOf is the bytes of a capture's partial.
func partialOf(t testing.TB, path string) []byte {
	t.Helper()
	c, err := Digest(context.Background(), path, Options{})
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
	b, err := c.Partial()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// jacobiReports are the captures of one run that are here.
var jacobiReports = []int{1, 2, 3, 4, 6}

// jacobiOnce are the partials of jacobi.
var jacobiOnce = map[int][]byte{}

// jacobi is the partial of a rank of a real run, made once for all tests.
func jacobi(t testing.TB, n int) []byte {
	t.Helper()
	if jacobiOnce[n] == nil {
		jacobiOnce[n] = partialOf(t, shared(t, "traces", "ranks", fmt.Sprintf("jacobi_mpi_report%d.sqlite", n)))
	}
	return jacobiOnce[n]
}

func mergeReport(t testing.TB, opt merge.Options, parts ...[]byte) *report.Report {
	t.Helper()
	var list []merge.Source
	for i, b := range parts {
		list = append(list, merge.Source{Name: fmt.Sprint(i),
			Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }})
	}
	opt.Rules = MergeRules()
	r, err := merge.Report(context.Background(), list, opt)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mayDiffer are the metrics of which explain doc ranks says that a capture cut into files and merged again may have other
// values: each is one that is merged.
func mayDiffer(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.FromSlash("../cmd/explain/internal/docs/pages/ranks.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, ok := strings.Cut(string(page), "These metrics may differ")
	list, _, ended := strings.Cut(list, "; step metrics differ too")
	if !ok || !ended {
		t.Fatal("the page has no list of what may differ")
	}
	rules := mergeOf()
	may := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(list, -1) {
		if rule, known := rules[m[1]]; !known || rule.How == report.HowLeave {
			t.Errorf("the page lists %s, which is no metric that is merged", m[1])
		}
		may[m[1]] = true
	}
	return may
}

// mergeOf is how each metric is merged, as sections declare it.
func mergeOf() map[string]report.Merge {
	rules := map[string]report.Merge{}
	for _, s := range sections {
		for i := range s.Metrics {
			rules[s.Metrics[i].ID] = s.Metrics[i].Merge
		}
	}
	return rules
}

// ofRun are the metrics of the section on ranks, which one capture's report does not have.
var ofRun = regexp.MustCompile(`^(ranks?|clock)\.`)

// sameAsWhole holds every metric that is defined across processes to the whole capture's; those of steps too where all
// processes are cut into the steps that the whole is cut into.
func sameAsWhole(t *testing.T, whole, merged *report.Report, steps bool) {
	t.Helper()
	compared, summaries := map[string]int{}, 0
	may, rules := mayDiffer(t), mergeOf()
	for i := range merged.Metrics {
		m := &merged.Metrics[i]
		if ofRun.MatchString(m.ID) || may[m.ID] || !steps && (m.Scale == report.PerUnit || m.ID == "unit.count") {
			continue
		}
		w := whole.Find(m.ID, m.Labels)
		if w == nil {
			t.Errorf("%s{%s} is not in the report of the whole", m.ID, m.Labels)
			continue
		}
		compared[m.ID]++
		switch {
		case m.Value == nil || w.Value == nil:
			if m.Value != w.Value {
				t.Errorf("%s{%s}: one is unknown", m.ID, m.Labels)
			}
		case math.Abs(*m.Value-*w.Value) > 1e-12*math.Abs(*w.Value):
			t.Errorf("%s{%s} is %v, of the whole %v", m.ID, m.Labels, *m.Value, *w.Value)
		}
		if m.Summary != nil && w.Summary != nil {
			summaries++
			if *m.Summary != *w.Summary {
				t.Errorf("%s{%s}: %+v, of the whole %+v", m.ID, m.Labels, *m.Summary, *w.Summary)
			}
		}
	}
	// And nothing of the whole is missing but what belongs to a process, or is said to be in the captures' own reports alone.
	var notes string
	for i := range merged.Sections {
		notes += strings.Join(merged.Sections[i].Notes, " ")
	}
	for i := range whole.Metrics {
		w := &whole.Metrics[i]
		_, calls := w.Labels["device"] // a run has the calls and copies of each capture's slowest GPU
		calls = calls && slices.Contains([]string{"api.time_per_unit", "api.count_per_unit", "memcpy.count_per_unit",
			"memcpy.bytes_per_unit", "unit.host_call_time"}, w.ID)
		_, pid := w.Labels["pid"]
		if pid || calls || may[w.ID] || ofRun.MatchString(w.ID) || merged.Find(w.ID, w.Labels) != nil {
			continue
		}
		switch {
		case rules[w.ID].How == report.HowLeave:
			named := strings.Contains(notes, w.ID)
			for _, s := range sections { // a note has the titles of those of which nothing is merged
				if slices.ContainsFunc(s.Metrics, func(d report.MetricDef) bool { return d.ID == w.ID }) {
					at := slices.IndexFunc(whole.Sections, func(x report.Section) bool { return x.ID == s.ID })
					named = named || at >= 0 && strings.Contains(notes, whole.Sections[at].Title)
				}
			}
			if !named {
				t.Errorf("%s of the whole is not merged, and no note says so", w.ID)
			}
		case compared[w.ID] > 0 || rules[w.ID].How == report.HowSum:
			t.Errorf("%s{%s} of the whole is not merged", w.ID, w.Labels)
		}
	}
	if len(compared) < 30 || summaries < 10 {
		t.Errorf("%d metrics and %d summaries compared", len(compared), summaries)
	}
	t.Logf("%d ids of metrics, %d summaries", len(compared), summaries)
}

// A capture of four processes cut into one file each, and merged again, equals the whole.
func TestSplitAndMerged(t *testing.T) {
	run := tracetest.Fleet{Ranks: 4, Steps: 20, Layers: 3, Jitter: 20_000, EndJitter: 2_000, Slow: 2, SlowBy: 0.2, SlowSteps: 0.5, Seed: 9}.Run()
	whole := tracetest.New(tracetest.Schema("3.25.0"))
	var parts [][]byte
	for i := range run {
		run[i].AddTo(whole, int64(1000+i), int64(i))
		b := tracetest.New(tracetest.Schema("3.25.0"))
		run[i].AddTo(b, int64(1000+i), int64(i))
		b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(run[i].Session)})
		parts = append(parts, partialOf(t, b.WriteTB(t)))
	}
	whole.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(run[0].Session)})
	merged := mergeReport(t, merge.Options{Top: 1000}, parts...)
	sameAsWhole(t, runReport(t, whole.WriteTB(t), Options{}), merged, true)
	if merged.Window.Length != runReport(t, whole.WriteTB(t), Options{}).Window.Length {
		t.Errorf("window of %d ns", merged.Window.Length)
	}
	// One file of several ranks says as much of them as four files.
	one := mergeReport(t, merge.Options{}, partialOf(t, whole.WriteTB(t)))
	for _, id := range []string{"rank.wait_time", "rank.last_count", "rank.held_up_time"} {
		for rank := range 4 {
			l := report.Labels{"rank": fmt.Sprint(rank)}
			a, b := one.Find(id, l), merged.Find(id, l)
			if a == nil || b == nil || *a.Value != *b.Value {
				t.Errorf("%s of rank %d: %v and %v", id, rank, a, b)
			}
		}
	}
	if len(merged.Findings) == 0 || merged.Findings[0].ID != "rank_straggler" || merged.Findings[0].Evidence[0].Labels["rank"] != "2" {
		t.Errorf("%+v", merged.Findings)
	}
}

// Two captures whose GPUs are both number 0: a kernel that ran in both ran on two GPUs, as the table of kernels per
// device says, and the table of kernels names neither.
func TestKernelsOfSeveralGPUsNameNone(t *testing.T) {
	r := mergeReport(t, merge.Options{Top: 1000}, partialOf(t, "../testdata/head.sqlite"), partialOf(t, "../testdata/base.sqlite"))
	column := func(table *report.Table, id string) int {
		return slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.ID == id })
	}
	on := map[string][]report.Cell{}
	per := tableOf(r, "kernels", "kernels_per_device")
	for _, row := range per.Rows {
		name, _ := row[column(per, "kernel_name")].Str()
		on[name] = append(on[name], row[column(per, "device_id")])
	}
	all := tableOf(r, "kernels", "kernels")
	several := 0
	for _, row := range all.Rows {
		name, _ := row[column(all, "kernel_name")].Str()
		gpus, got := on[name], row[column(all, "device_id")]
		want := report.Null
		if len(gpus) == 1 {
			want = gpus[0]
		} else {
			several++
		}
		if !got.Equal(want) {
			t.Errorf("%v ran on %v, and is said to have run on %v", row[0], gpus, got)
		}
	}
	if several < 10 {
		t.Errorf("%d kernels of %d ran on several GPUs", several, len(all.Rows))
	}
}

// What the report of a capture says of its GPUs and steps reaches the run.
func TestOwnNumbersOfACapture(t *testing.T) {
	one, ms := 1.0, 3e6
	ns := func(id string, v *float64, labels ...string) report.Metric {
		l := report.Labels{}
		for i := 0; i < len(labels); i += 2 {
			l[labels[i]] = labels[i+1]
		}
		return report.Metric{ID: id, Labels: l, Value: v}
	}
	step := ns("unit.time", &ms, "phase", "decode")
	step.Group, step.Summary = "decode", &report.Summary{P50: 3e6, Mean: 4e6}
	o := ownOf(&report.Report{Metrics: []report.Metric{ns("kernel.total_time", &ms), ns("kernel.total_time", &one, "kernel", "k"),
		ns("comm.exposed_time", &ms, "collective", "SendRecv", "device", "1"), ns("comm.exposed_time", &one, "collective", "AllReduce", "device", "1"),
		ns("component.gpu_time", &ms, "component", "moe"), ns("component.gpu_time", &one, "component", "ffn"),
		ns("gpu.energy", nil, "device", "0"), ns("gpu.power", &one, "device", "0"), ns("gpu.power", &ms), step}})
	if v, ok := o.Energy[0]; o.Kernels != 3e6 || o.P2P[1] != 3e6 || o.Experts == nil || *o.Experts != 3e6 || !ok || v != nil ||
		len(o.Power) != 1 || o.Power[0] != 1 || len(o.Steps) != 1 || o.Steps["decode"] != (merge.Step{P50: 3e6, Mean: 4e6}) {
		t.Errorf("%+v", o)
	}
}

// Hosts whose clocks are up to a second apart: the window of the run is as long as that of one clock.
func TestWindowIsCorrectedByClocks(t *testing.T) {
	window := func(offset int64) int64 {
		run := tracetest.Fleet{Ranks: 4, PerHost: 2, Steps: 20, Jitter: 20_000, Offset: offset, Seed: 3}.Run()
		var parts [][]byte
		for i := range run {
			parts = append(parts, partialOf(t, run[i].Build().WriteTB(t)))
		}
		return mergeReport(t, merge.Options{}, parts...).Window.Length
	}
	near, far := window(0), window(1e9)
	if off := far - near; off < -1000 || off > 1000 || near > 30_000_000 {
		t.Errorf("%d ns with one clock, %d with clocks apart", near, far)
	}
}

// Real captures of two processes, cut the same way.
func TestRealCapturesSplitAndMerged(t *testing.T) {
	for _, c := range longtest.Some([]struct {
		name  string
		steps bool // one second of the other capture shows other steps than each of its processes does
	}{{"nsysai_mfu_2gpu_before", true}, {"nsysai_h100_2gpu_1s", false}}, 1) {
		src := shared(t, "traces", c.name+".sqlite")
		whole := runReport(t, src, Options{Top: math.MaxInt32})
		var parts [][]byte
		var pids []int64
		for i := range whole.Metrics {
			if m := &whole.Metrics[i]; m.ID == "kernel.total_time" && m.Labels["pid"] != "" {
				var pid int64
				if _, err := fmt.Sscan(m.Labels["pid"], &pid); err != nil {
					t.Fatal(err)
				}
				pids = append(pids, pid)
			}
		}
		for _, pid := range pids {
			path := filepath.Join(t.TempDir(), "part.sqlite")
			if err := tracetest.Rewrite(src, path, onlyProcess(pid)...); err != nil {
				t.Fatal(err)
			}
			b := partialOf(t, path)
			if len(b) > 300_000 {
				t.Errorf("%s: a partial of %d bytes", c.name, len(b))
			}
			parts = append(parts, b)
		}
		sameAsWhole(t, whole, mergeReport(t, merge.Options{Top: 100_000}, parts...), c.steps)
	}
}

// onlyProcess removes the events of all other processes.
func onlyProcess(pid int64) []tracetest.Edit {
	var edits []tracetest.Edit
	for table, column := range map[string]string{
		"CUPTI_ACTIVITY_KIND_KERNEL": "globalPid", "CUPTI_ACTIVITY_KIND_MEMCPY": "globalPid", "CUPTI_ACTIVITY_KIND_MEMSET": "globalPid",
		"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "globalPid", "CUPTI_ACTIVITY_KIND_RUNTIME": "globalTid", "NVTX_EVENTS": "globalTid",
		"PROFILER_OVERHEAD": "globalTid",
	} {
		edits = append(edits, tracetest.EditRows(table, func(r tracetest.Row, _ func(tracetest.Value) string) bool {
			v, ok := r[column].AsInt()
			return ok && v>>24&0xffffff == pid
		}))
	}
	return edits
}

// Partials of all real traces are small, and the same trace gives the same bytes.
func TestPartialsOfRealTraces(t *testing.T) {
	for _, f := range longtest.Captures(t) {
		b := partialOf(t, f)
		if len(b) > 300_000 {
			t.Errorf("%s: %d bytes", filepath.Base(f), len(b))
		}
		if (strings.Contains(f, "sglang") || strings.Contains(f, "mfu_2gpu_before")) && !bytes.Equal(b, partialOf(t, f)) {
			t.Errorf("%s: two partials differ", filepath.Base(f))
		}
		mergeReport(t, merge.Options{}, b)
	}
}

// A session that states a wrong start, by the length of a step or so: its rank is blamed for nothing, nor is another.
func TestRealRankOfAnotherClock(t *testing.T) {
	for _, c := range longtest.Some([]struct {
		report int
		by     int64
	}{{1, 1_055_201}, {1, -60_000}, {4, 1_055_201}, {4, -60_000}}, 2) {
		path := filepath.Join(t.TempDir(), "moved.sqlite")
		from := shared(t, "traces", "ranks", fmt.Sprintf("jacobi_mpi_report%d.sqlite", c.report))
		if err := tracetest.Rewrite(from, path, tracetest.ShiftTime(c.by)); err != nil {
			t.Fatal(err)
		}
		var parts [][]byte
		for _, other := range jacobiReports {
			if other == c.report {
				parts = append(parts, partialOf(t, path))
			} else {
				parts = append(parts, jacobi(t, other))
			}
		}
		r := mergeReport(t, merge.Options{}, parts...)
		told := func(w report.Warning) bool { return w.Code == "clock_moved" }
		last := r.Find("rank.last_count", report.Labels{"rank": "3"})
		// 958 as recorded; ranks 3 and 4 are close.
		if *last.Value < 900 || *last.Value > 1000 || !slices.ContainsFunc(r.Warnings, told) {
			t.Errorf("report %d by %d: rank 3 is last %v times, %v", c.report, c.by, *last.Value, r.Warnings)
		}
	}
}

// Five of eight ranks of a Jacobi solver: the truths of facts/ranks.md, of 1,001 Allreduces and one Barrier.
func TestRealRanks(t *testing.T) {
	var parts [][]byte
	for _, n := range jacobiReports {
		parts = append(parts, jacobi(t, n))
	}
	r := mergeReport(t, merge.Options{}, parts...)
	value := func(id string, l report.Labels) float64 {
		m := r.Find(id, l)
		if m == nil || m.Value == nil {
			t.Fatalf("no %s{%s}", id, l)
		}
		return *m.Value
	}
	rank3 := report.Labels{"rank": "3"}
	for _, c := range []struct {
		id   string
		l    report.Labels
		want float64
	}{
		{"ranks.count", nil, 5}, {"ranks.clocks", nil, 1}, {"ranks.collectives", nil, 1002}, {"ranks.unmatched", nil, 0},
		{"ranks.end_spread_p99", nil, 15_265},
		{"rank.last_count", rank3, 957 + 1}, // and of the barrier
		{"rank.kernel_time", rank3, 3_867_970_418},
	} {
		if got := value(c.id, c.l); got != c.want {
			t.Errorf("%s{%s} is %v, want %v", c.id, c.l, got, c.want)
		}
	}
	if s := value("ranks.end_spread", nil); s < 545 || s > 555 {
		t.Errorf("ends are %v ns apart in the median", s)
	}
	for _, rank := range []string{"2", "3", "4", "6", "7"} {
		l := report.Labels{"rank": rank}
		if value("rank.wait_time", l)+value("rank.transfer_time", l) != value("rank.collective_time", l) {
			t.Errorf("rank %s: waiting and transfer do not add up", rank)
		}
	}
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
	if at < 0 || withWorth(r.Findings[at]) != "Rank 3 arrives last in 95.6 % of collectives and holds up rank 6: a slow SendRecv with rank 4 before 957 of 1,001 AllReduces, 467.7 ms" {
		t.Errorf("%+v", r.Findings)
	}
	advice := strings.Join(r.Findings[at].Advice, " ")
	for _, want := range []string{
		"rank 3 comes at 10.953695 s on its timeline in Nsight Systems to the call for which rank 6 waits longest, in AllReduce #1001.",
		"rank.held_up_time counts only how much later it comes than the next latest, mostly rank 4; it is less",
		"Ranks 3 and 4 wait for each other in SendRecv: they spend equally long in it, and their calls end together.",
		"No captured rank came late to that call", "a slow link between them (nvidia-smi topo -m",
	} {
		if !strings.Contains(advice, want) {
			t.Errorf("no %q in %s", want, advice)
		}
	}
	if strings.Contains(advice, "NUMA") {
		t.Errorf("the advice is %s", advice)
	}
	causes := report.NewIndex(r).Table("ranks", "rank_causes")
	first := 0
	for causes.Str(first, "rank") != "3" {
		first++
	}
	if what := causes.Str(first, "what"); what != "transfer in SendRecv" {
		t.Errorf("what rank 3 did most beyond others is %s", what)
	}
	table := report.NewIndex(r).Table("ranks", "ranks")
	if rank, because := table.Str(1, "rank"), table.Str(1, "because"); rank != "3" || because != "transfer in SendRecv" {
		t.Errorf("rank %s is late because of %s", rank, because)
	}
	missing := slices.IndexFunc(r.Warnings, func(w report.Warning) bool { return w.Code == "missing_ranks" })
	if missing < 0 || !strings.HasPrefix(r.Warnings[missing].Text, "Missing: ranks 0, 1, 5; the total number of ranks is unknown.") {
		t.Errorf("the warnings are %+v", r.Warnings)
	}
}
