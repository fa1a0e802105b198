package analyze

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
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
// all-reduces before which another was captured, and once more in the first.
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
	const want = "Rank 1 arrives last in 100 % of collectives and holds up ranks 0, 2: its host is in pthread_cond_wait before 40 of 40 AllReduces, 48 ms"
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
	if at < 0 || withWorth(r.Findings[at]) != want {
		t.Errorf("%+v", r.Findings)
	}
}

// withWorth is the title of a finding, and what it is worth at most.
func withWorth(f report.Finding) string {
	return f.Title + ", " + unit.Format(float64(f.Worth.Time), report.Nanoseconds)
}

// spinning is one rank of eight whose kernels take 54 µs and whose all-reduces spin until all have come, so that every
// GPU is busy all the time. Its host needs some ns more in a call of the operating system before each all-reduce.
func spinning(rng *rand.Rand, rank int, more int64, met []int64, begun []int64) *tracetest.Builder {
	b := tracetest.New()
	b.GPU(tracetest.GPU{ID: 0})
	pid := int64(1000 + rank)
	th := b.Process(pid, "python").Thread(pid, "python")
	for k, end := range met {
		t := begun[k]
		th.Launch("gemm", t, t+1_000, tracetest.Kernel{Start: t + 2_000, End: t + 56_000 + rng.Int64N(2_000)})
		b.OSRT(tracetest.OSRT{Thread: th, Name: "pthread_mutex_lock", Start: t + 3_000, End: t + 60_000 + more})
		th.Launch("ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", t+61_000+more, t+62_000+more,
			tracetest.Kernel{Start: t + 63_000 + more + rng.Int64N(2_000), End: end + rng.Int64N(1_000)})
	}
	b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(1_700_000_000_000_000_000),
		"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
	return b
}

// As in a real regression of vLLM: kernels got faster, and one rank's host needs 176 µs more for every layer, which all
// others spend spinning in the all-reduce. It is that rank's host and its call that is named, never the all-reduce.
func TestSpinningIsTheLateHostsDoing(t *testing.T) {
	seeds := 3
	if longtest.On() {
		seeds = 20
	}
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(uint64(seed), 8))
		slow := rng.IntN(8)
		var begun, met []int64
		now := int64(1_000_000_000)
		for range 40 {
			begun = append(begun, now)
			now += 63_000 + 176_000 + 30_000
			met = append(met, now)
			now += 3_000
		}
		var parts [][]byte
		for rank := range 8 {
			more := int64(0)
			if rank == slow {
				more = 176_000
			}
			path := filepath.Join(t.TempDir(), fmt.Sprintf("rank%d.sqlite", rank))
			if err := spinning(rng, rank, more, met, begun).Write(path); err != nil {
				t.Fatal(err)
			}
			parts = append(parts, partialOf(t, path))
		}
		r := mergeReport(t, merge.Options{Rank: regexp.MustCompile(`rank(\d+)`)}, parts...)
		at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
		want := regexp.MustCompile(fmt.Sprintf(`^Rank %d arrives last in .* and holds up .* more: its host is in pthread_mutex_lock before 40 of 40 AllReduces, (6\.9|7\.[0-2])\d* ms$`, slow))
		if at < 0 || !want.MatchString(withWorth(r.Findings[at])) {
			t.Errorf("seed %d: want %s, got %+v", seed, want, r.Findings)
		}
	}
}

// ring is one of two ranks on two hosts, in MPI: rounds of an all-reduce, a copy, a send and receive, and a broadcast
// of rank 0, which copies for 450 µs where rank 1 takes 50; where it computes, that is its kernel's time. The clock of rank
// 1's host is 3 ms ahead.
func ring(rank int, rounds int64, computes bool) *tracetest.Builder {
	b := tracetest.New()
	b.GPU(tracetest.GPU{ID: 0, UUID: fmt.Sprintf("00000000-0000-0000-0000-%012x", rank)})
	pid := int64(1000 + rank)
	th := b.Process(pid, "ring").Thread(pid, "ring")
	call := func(name string, start, end, ahead int64) {
		b.Row("MPI_OTHER_EVENTS", tracetest.Row{"start": tracetest.Int(start + ahead), "end": tracetest.Int(end + ahead),
			"globalTid": tracetest.Int(th.GlobalTid()), "textId": tracetest.ID(name)})
	}
	ahead := int64(rank) * 3_000_000
	for k := range rounds {
		t := 1_000_000_000 + k*2_000_000
		jitter := k * k * 7919 % 3_000
		call("MPI_Allreduce", t+int64(rank)*500, t+20_000+jitter, ahead)
		end := t + 30_000 + 50_000
		if rank == 0 {
			end += 400_000 + jitter
		}
		done := t + 28_000
		if computes {
			done = end - 5_000
		}
		th.Launch("swarm", t+21_000+jitter+ahead, t+22_000+jitter+ahead, tracetest.Kernel{Start: t + 24_000 + jitter + ahead, End: done + jitter + ahead})
		th.Call("cudaMemcpy", t+30_000+jitter+ahead, end+jitter+ahead)
		come := end + jitter + 2_000
		if rank == 0 {
			call("MPI_Bcast", come, come+5_000, ahead)
			call("MPI_Sendrecv", come+140_000, come+160_000, ahead)
		} else {
			root := t + 30_000 + 450_000 + 2*jitter + 2_000
			call("MPI_Bcast", come, root+90_000, ahead)
			call("MPI_Sendrecv", root+100_000, root+161_000, ahead)
		}
	}
	b.Row("MPI_RANKS", tracetest.Row{"globalPid": tracetest.Int(th.GlobalTid() &^ 0xffffff), "rank": tracetest.Int(int64(rank))})
	b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(1_700_000_000_000_000_000),
		"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
	return b
}

// Rank 1 sits in the broadcast for 400 µs and more until its root, rank 0, has copied: rank 0 and its copy are named, 20
// times 400 µs and what jitter adds, and never the broadcast. Where the copy waits for a kernel, that is said.
func TestALateRootIsNamed(t *testing.T) {
	for computes, cause := range map[bool]string{false: "cudaMemcpy", true: "cudaMemcpy while the GPU computes"} {
		var parts [][]byte
		for rank := range 2 {
			parts = append(parts, partialOf(t, ring(rank, 20, computes).WriteTB(t)))
		}
		r := mergeReport(t, merge.Options{}, parts...)
		want := regexp.MustCompile(`^Rank 0 holds up rank 1: ` + cause + ` before 20 of 20 Broadcasts, 8\.\d+ ms$`)
		at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
		if at < 0 || !want.MatchString(withWorth(r.Findings[at])) {
			t.Errorf("%v: %+v", computes, r.Findings)
		}
	}
}

// Where rank 1 has 12 of the 20 rounds, the other 8 all-reduces of rank 0 match nothing, which a warning says; one of 20
// is the end of a capture.
func TestARankOfFewerStepsIsTold(t *testing.T) {
	for rounds, want := range map[int64]string{12: "8 of 32 calls of collectives match none of the other ranks: a capture that covers less, " +
		"or fewer steps. Rank 1 has fewest, 12.", 19: "", 20: ""} {
		r := mergeReport(t, merge.Options{}, partialOf(t, ring(0, 20, false).WriteTB(t)), partialOf(t, ring(1, rounds, false).WriteTB(t)))
		got := ""
		for _, w := range r.Warnings {
			if w.Code == "unmatched_collectives" {
				got = w.Text
			}
		}
		if got != want {
			t.Errorf("%d rounds: %q, want %q", rounds, got, want)
		}
	}
}

// stage is one of three stages of a pipeline: each takes a micro-batch from the one before, computes, and passes it on,
// with kernels that NCCL runs alone or in a group of the two. The first one's host is late by 1 ms in a call.
func stage(rank int) *tracetest.Builder {
	const comm = 77
	b := tracetest.New(tracetest.Schema("3.25.0"))
	b.GPU(tracetest.GPU{ID: 0})
	th := b.Process(int64(1000+rank), "python").Thread(int64(1000+rank), "python")
	b.NCCLInit(th, 900_000_000, 900_001_000, comm, 3, rank)
	const kernel = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
	free := int64(1_000_000_000)
	for k := range int64(30) {
		sent := 1_002_000_000 + k*2_000_000 + int64(rank)*120_000 // when the stage passes this micro-batch on
		if rank > 0 {
			b.NCCLTo(th, "ncclRecv", free+1_000, free+3_000, comm, rank-1)
			th.Launch(kernel, free+1_500, free+2_500, tracetest.Kernel{Start: free + 4_000, End: sent - 104_000})
		} else {
			b.OSRT(tracetest.OSRT{Thread: th, Name: "read", Start: sent - 1_200_000, End: sent - 120_000})
		}
		th.Launch("gemm", sent-112_000, sent-111_000, tracetest.Kernel{Start: sent - 102_000, End: sent - 2_000})
		if rank < 2 {
			b.NCCLTo(th, "ncclSend", sent-90_000, sent-80_000, comm, rank+1)
			th.Launch(kernel, sent-89_000, sent-88_000, tracetest.Kernel{Start: sent, End: sent + 15_000})
		}
		free = sent + 20_000
	}
	b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(1_700_000_000_000_000_000),
		"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
	return b
}

// The receives of stages 1 and 2 wait for the host of stage 0: sends and receives are matched by communicator and peer.
// Each waits some 1.9 ms a micro-batch, which begin 2 ms apart.
func TestTheLateStageOfAPipelineIsNamed(t *testing.T) {
	var parts [][]byte
	for rank := range 3 {
		parts = append(parts, partialOf(t, stage(rank).WriteTB(t)))
	}
	r := mergeReport(t, merge.Options{}, parts...)
	want := regexp.MustCompile(`^Rank 0 holds up ranks 1, 2: its host is in read before (29|30) of 30 Recvs, 5\d\.?\d* ms$`)
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
	if at < 0 || !want.MatchString(withWorth(r.Findings[at])) {
		t.Errorf("%+v", r.Findings)
	}
}

// A broadcast in a communicator of MPI whose rank 0 is rank 1 of the run: its root is rank 1, which copies longer.
func TestARootIsTranslated(t *testing.T) {
	var parts [][]byte
	for rank := range 3 {
		b := tracetest.New()
		b.GPU(tracetest.GPU{ID: 0})
		th := b.Process(int64(1000+rank), "solver").Thread(int64(1000+rank), "solver")
		call := func(table, name string, start, end, comm, root int64) {
			row := tracetest.Row{"start": tracetest.Int(start), "end": tracetest.Int(end), "globalTid": tracetest.Int(th.GlobalTid()),
				"textId": tracetest.ID(name), "commHandle": tracetest.Int(comm + int64(rank)*0x1000)}
			if root >= 0 {
				row["rootRank"] = tracetest.Int(root)
			}
			b.Row(table, row)
		}
		communicator := func(handle, local, size, root, id int64) {
			b.Row("MPI_COMMUNICATORS", tracetest.Row{"rank": tracetest.Int(int64(rank)), "commHandle": tracetest.Int(handle + int64(rank)*0x1000),
				"localRank": tracetest.Int(local), "localSize": tracetest.Int(size), "groupRoot": tracetest.Int(root), "groupRootUid": tracetest.Int(id)})
		}
		communicator(7, int64(rank), 3, 0, 0)
		if rank > 0 {
			communicator(9, int64(rank)-1, 2, 1, 4)
		}
		for k := range int64(20) {
			t := 1_000_000_000 + k*2_000_000
			th.Launch("swarm", t-10_000, t-9_000, tracetest.Kernel{Start: t - 8_000, End: t - 7_000})
			call("MPI_COLLECTIVES_EVENTS", "MPI_Allreduce", t+int64(rank)*300, t+20_000, 7, -1)
			come := t + 80_000
			if rank == 1 {
				come += 500_000
			}
			th.Call("cudaMemcpy", t+21_000, come-1_000)
			if rank > 0 {
				call("MPI_COLLECTIVES_EVENTS", "MPI_Bcast", come, t+600_000, 9, 0)
			}
		}
		b.Row("MPI_RANKS", tracetest.Row{"globalPid": tracetest.Int(th.GlobalTid() &^ 0xffffff), "rank": tracetest.Int(int64(rank))})
		b.Row("TARGET_INFO_SESSION_START_TIME", tracetest.Row{"utcEpochNs": tracetest.Int(1_700_000_000_000_000_000),
			"utcTime": tracetest.Text("2023-11-14T22:13:20"), "localTime": tracetest.Text("2023-11-14T22:13:20")})
		parts = append(parts, partialOf(t, b.WriteTB(t)))
	}
	r := mergeReport(t, merge.Options{}, parts...)
	const want = "Rank 1 holds up rank 2: cudaMemcpy before 20 of 20 Broadcasts"
	at := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.ID == "rank_straggler" })
	if at < 0 || !strings.HasPrefix(r.Findings[at].Title, want) || !strings.Contains(withWorth(r.Findings[at]), ", 10 ms") {
		t.Errorf("%+v", r.Findings)
	}
}

// Of a run that nothing says the size of, the ranks below the highest that were not captured are named: 2 of 0, 1 and 3.
// The table of ranks gives the cause that the finding gives.
func TestAMissingRankIsNamedWithoutTheSizeOfTheRun(t *testing.T) {
	var parts [][]byte
	for _, rank := range []int{0, 1, 3} {
		path := filepath.Join(t.TempDir(), fmt.Sprintf("rank%d.sqlite", rank))
		if err := lateRank(rank, rank == 1).Write(path); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, partialOf(t, path))
		_ = os.Remove(path)
	}
	r := mergeReport(t, merge.Options{Rank: regexp.MustCompile(`rank(\d+)`)}, parts...)
	at := slices.IndexFunc(r.Warnings, func(w report.Warning) bool { return w.Code == "missing_ranks" })
	if at < 0 || !strings.HasPrefix(r.Warnings[at].Text, "Missing: rank 2; the total number of ranks is unknown.") {
		t.Errorf("the warnings are %+v", r.Warnings)
	}
	if m := r.Find("ranks.missing", nil); m == nil || m.Value != nil {
		t.Errorf("how many are missing is %+v, but nothing says it", m)
	}
	of := report.NewIndex(r)
	ranks, chains := of.Table("ranks", "ranks"), of.Table("ranks", "rank_chains")
	if chains.Len() == 0 || chains.Str(0, "rank") != "1" || ranks.Str(1, "because") != chains.Str(0, "because") {
		t.Errorf("ranks say %q", ranks.Str(1, "because"))
	}
}
