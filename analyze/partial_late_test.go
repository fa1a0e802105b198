package analyze

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// lateRank is a rank of 40 rounds of a kernel of 100 µs and an all-reduce that all leave together. Before each all-reduce
// the thread of a late rank sits in a call of the operating system for 1.2 ms.
func lateRank(rank int, late bool) *tracetest.Builder {
	b := tracetest.New()
	b.GPU(tracetest.GPU{ID: 0})
	pid := int64(1000 + rank)
	th := b.Process(pid, "python").Thread(pid, "python")
	for k := range int64(40) {
		t := 1_000_000_000 + k*3_000_000
		th.Launch("gemm", t, t+1_000, tracetest.Kernel{Start: t + 2_000, End: t + 102_000})
		launch := t + 103_000
		if late {
			b.OSRT(tracetest.OSRT{Thread: th, Name: "pthread_cond_wait", Start: t + 102_000, End: t + 1_302_000})
			launch = t + 1_303_000
		}
		th.Launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", launch, launch+1_000,
			tracetest.Kernel{Start: launch + 2_000, End: t + 1_400_000})
	}
	b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(1_700_000_000_000_000_000),
		"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
	return b
}

// A rank whose host sits in a call comes last, and the finding says in which call and for how long: 1.2 ms, in the 39
// all-reduces before which another was captured.
func TestTheCallThatMakesARankLateIsNamed(t *testing.T) {
	var parts [][]byte
	for rank := range 3 {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("rank%d.sqlite", rank))
		if err := lateRank(rank, rank == 1).Write(path); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, partialOf(t, path))
		_ = os.Remove(path)
	}
	r := mergeReport(t, merge.Options{Rank: regexp.MustCompile(`rank(\d+)`)}, parts...)
	l := report.Labels{"rank": "1", "cause": "idle: host in pthread_cond_wait"}
	m := r.Find("rank.cause_time", l)
	if m == nil || m.Value == nil || *m.Value != 1_200_000 || m.N != 39 {
		t.Fatalf("the call is %+v", m)
	}
	if m := r.Find("rank.last_ratio", report.Labels{"rank": "1"}); m == nil || *m.Value != 1 || m.N != 40 {
		t.Errorf("it came last in %+v", m)
	}
	const want = "Rank 1 arrives last in 100 % of collectives: its host is late by 1.2 ms in pthread_cond_wait"
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
	if at < 0 || r.Findings[at].Title != want {
		t.Errorf("%+v", r.Findings)
	}
}
