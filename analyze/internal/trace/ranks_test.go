package trace

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

func TestRankInEnvironment(t *testing.T) {
	for _, c := range []struct {
		name, value, key string
		want             int64 // -1: none
	}{
		{"RANK", "7", "RANK", 7},
		{"RANK", "seven", "RANK", -1},
		{"DeviceEnvironment", "A=1\nRANK=12\nB=2", "RANK", 12},
		{"DeviceEnvironment", `{"LOCAL_RANK": "3", "RANK": "4"}`, "RANK", 4},
		{"DeviceEnvironment", "LOCAL_RANK=3", "RANK", -1},
		{"DeviceEnvironment", "RANKS=3", "RANK", -1},
		{"DeviceEnvironment", "RANK=3x RANK=5", "RANK", 5},
		{"DeviceEnvironment", "RANK=99999999999999999999", "RANK", -1},
		{"DeviceEnvironment", "RANK=-1", "RANK", -1},
		{"OsDescription", "RANK=1", "RANK", -1},
	} {
		found := map[string]int64{}
		numbersIn(c.name, c.value, found)
		got, ok := found[c.key]
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("%s of %s %q is %d, want %d", c.key, c.name, c.value, got, c.want)
		}
	}
}

// The order of what tells a rank: MPI's own table, the environment, NCCL's largest communicator, the name of a thread.
func TestRankSources(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(b *tracetest.Builder, p *tracetest.Process)
		want Rank
	}{
		{"table", func(b *tracetest.Builder, p *tracetest.Process) {
			b.Row("MPI_RANKS", tracetest.Row{"globalPid": tracetest.Int(p.GlobalPid()), "rank": tracetest.Int(5)})
			b.Env("DeviceEnvironment", "RANK=9")
		}, Rank{5, -1, "mpi_ranks"}},
		{"environment", func(b *tracetest.Builder, p *tracetest.Process) {
			b.Env("DeviceEnvironment", "SLURM_PROCID=0\nSLURM_NTASKS=8\nOMPI_COMM_WORLD_RANK=6\nOMPI_COMM_WORLD_SIZE=8")
		}, Rank{6, 8, "environment"}},
		{"slurm alone", func(b *tracetest.Builder, p *tracetest.Process) {
			b.Env("DeviceEnvironment", "SLURM_PROCID=2\nSLURM_NTASKS=4")
		}, Rank{2, 4, "environment"}},
		{"name of the thread", func(b *tracetest.Builder, p *tracetest.Process) {
			b.NVTX(tracetest.NVTX{Thread: p.Thread(2, ""), Type: tracetest.NVTXThread, Start: 1, End: tracetest.Open, Text: "MPI Rank 3"})
		}, Rank{3, -1, "nvtx"}},
	} {
		b := tracetest.New()
		p := b.Process(100, "python")
		p.Thread(100, "").Launch("gemm", 10, 20, tracetest.Kernel{Start: 30, End: 40})
		c.add(b, p)
		tr, err := Open(context.Background(), b.WriteTB(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		if got := tr.Ranks[p.GlobalPid()]; got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A fleet's export says the rank and the communicator in NCCL's payloads.
func TestNCCLPayloads(t *testing.T) {
	run := tracetest.Fleet{Ranks: 4, Steps: 3, Layers: 2}.Run()
	tr, err := Open(context.Background(), run[2].Build(tracetest.Schema("3.25.0")).WriteTB(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if len(tr.Ranks) != 1 || len(tr.NCCL) != 1+3*2 || tr.NCCL[0].Comm == 0 {
		t.Fatalf("ranks %v, %d payloads", tr.Ranks, len(tr.NCCL))
	}
	for _, r := range tr.Ranks {
		if r != (Rank{2, 4, "nccl"}) {
			t.Errorf("%+v", r)
		}
	}
	for _, c := range tr.NCCL[1:] {
		if c.Comm != tr.NCCL[0].Comm || c.Rank != -1 || c.Bytes != 1<<20 || c.End <= c.Start {
			t.Errorf("%+v", c)
		}
	}
}

// Calls of MPI come by their start, from whichever tables the export has.
func TestMPICalls(t *testing.T) {
	b := tracetest.New()
	th := b.Process(100, "jacobi").Thread(100, "")
	call := func(table, name string, start, end int64, more ...tracetest.Row) {
		row := tracetest.Row{"start": tracetest.Int(start), "end": tracetest.Int(end),
			"globalTid": tracetest.Int(th.GlobalTid()), "textId": tracetest.ID(name)}
		for _, m := range more {
			maps.Copy(row, m)
		}
		b.Row(table, row)
	}
	call("MPI_OTHER_EVENTS", "MPI_Allreduce", 50, 60)
	call("MPI_COLLECTIVES_EVENTS", "MPI_Barrier", 20, 30, tracetest.Row{"rootRank": tracetest.Int(-1), "commHandle": tracetest.Int(77)})
	call("MPI_P2P_EVENTS", "MPI_Send", 40, 45, tracetest.Row{"remoteRank": tracetest.Int(2), "tag": tracetest.Int(9), "commHandle": tracetest.Int(78)})
	b.Row("MPI_COMMUNICATORS", tracetest.Row{"rank": tracetest.Int(4), "commHandle": tracetest.Int(78), "localRank": tracetest.Int(1),
		"localSize": tracetest.Int(3), "groupRoot": tracetest.Int(2), "groupRootUid": tracetest.Int(5)})
	b.Row("MPI_COMMUNICATORS", tracetest.Row{"rank": tracetest.Int(4), "commHandle": tracetest.Int(79), "localRank": tracetest.Int(3),
		"localSize": tracetest.Int(3)}) // no rank of three is the fourth
	call("MPI_OTHER_EVENTS", "MPI_Bcast", 70, 10) // ends before it starts: skipped
	tr, err := Open(context.Background(), b.WriteTB(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	want := []MPICall{{20, 30, th.GlobalTid(), "MPI_Barrier", -1, -1, 77}, {40, 45, th.GlobalTid(), "MPI_Send", 2, 9, 78},
		{50, 60, th.GlobalTid(), "MPI_Allreduce", -1, -1, 0}}
	if want := []MPIComm{{Rank: 4, Handle: 78, Local: 1, Size: 3, Root: 2, ID: 5}}; !slices.Equal(tr.MPIComms, want) {
		t.Errorf("%+v", tr.MPIComms)
	}
	if len(tr.MPI) != 3 || tr.MPI[0] != want[0] || tr.MPI[1] != want[1] || tr.MPI[2] != want[2] {
		t.Errorf("%+v", tr.MPI)
	}
	for _, s := range tr.Tables {
		if s.Name == "MPI_OTHER_EVENTS" && (s.Rows != 2 || s.Skipped != 1) {
			t.Errorf("%+v", s)
		}
	}
}
