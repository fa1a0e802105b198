package trace

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Rank is which part of a run of many processes one of them is.
type Rank struct {
	Rank, World int64  // world: number of ranks; -1 unknown
	From        string // mpi_ranks, environment, nccl or nvtx
}

// MPICall is a call of an MPI function on a host thread.
type MPICall struct {
	Start, End int64
	Thread     int64 // globalTid
	Name       string
	Peer       int64 // rank of the root, or of the other side, in the communicator; -1 unknown
	Tag        int64 // -1 unknown, or any
	Comm       int64 // handle of the communicator in this process; 0 unknown
}

// MPIComm is a communicator as one rank knows it.
type MPIComm struct {
	Rank        int64 // of the run
	Handle      int64 // of calls
	Local, Size int64 // rank within it, and number of ranks
	Root, ID    int64 // rank of the run that made it, and its number there: the same in all of its ranks; -1 unknown
}

// loadRanks reads what tells ranks and their collectives apart: MPI's calls and ranks, NCCL's payloads, and the
// allow-listed variables of launchers in the environment. Nothing else of the environment is kept.
func (l *descriptions) loadRanks(short *shortTables) error {
	t := l.trace
	for _, role := range []Role{RoleMPICollective, RoleMPIP2P, RoleMPIWait, RoleMPI} {
		if err := short.loadMPI(role); err != nil {
			return err
		}
	}
	lists.Sort(t.Tables, func(a, b TableStat) int { return strings.Compare(a.Name, b.Name) })
	lists.Sort(t.MPI, func(a, b MPICall) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	t.Ranks = map[int64]Rank{}
	set := func(proc int64, r Rank) {
		if _, known := t.Ranks[proc]; !known {
			t.Ranks[proc] = r
		}
	}
	err := errors.Join(l.scanRole(RoleMPIComm, mpiCommKept, func(row []cell) error {
		var v [6]int64
		for i := range v {
			v[i] = orNone(&row[i])
		}
		if c := (MPIComm{v[0], v[1], v[2], v[3], v[4], v[5]}); validRank(c.Rank) && c.Local < c.Size && validRank(c.Local) && c.Size < maxRank {
			t.MPIComms = append(t.MPIComms, c)
		}
		return nil
	}), l.scanRole(RoleMPIRanks, []string{"globalPid", "rank"}, func(row []cell) error {
		proc, ok1 := row[0].Whole()
		rank, ok2 := row[1].Whole()
		if ok1 && ok2 && validRank(rank) {
			set(proc&^tidBits, Rank{rank, -1, "mpi_ranks"})
		}
		return nil
	}))
	if err != nil {
		return err
	}
	env, err := l.environmentRank()
	if err != nil {
		return err
	}
	if procs := l.working(); env != nil && len(procs) == 1 { // the environment is of the program that nsys started
		if known, ok := t.Ranks[procs[0]]; ok && known.Rank == env.Rank {
			known.World = env.World
			t.Ranks[procs[0]] = known
		}
		set(procs[0], *env)
	}
	for proc, r := range ncclRanks(t.NCCL) {
		set(proc, r)
	}
	for proc, rank := range l.rangeRanks {
		set(proc, Rank{rank, -1, "nvtx"})
	}
	return nil
}

// maxRank is beyond any run of today.
const maxRank = 1 << 20

func validRank(v int64) bool { return v >= 0 && v < maxRank }

func (l *shortTables) loadMPI(role Role) error {
	return l.count(role, mpiKept, func(row []cell) bool {
		start, ok1 := row[0].Whole()
		end, ok2 := row[1].Whole()
		tid, ok3 := row[2].Whole()
		name, ok4 := l.text(&row[3])
		if !ok1 || !ok2 || !ok3 || !ok4 || !sound(start, end) {
			return false
		}
		c := MPICall{Start: start, End: end, Thread: tid, Name: name, Peer: -1, Tag: max(-1, orNone(&row[6]))}
		for _, x := range row[4:6] {
			if rank, ok := x.Whole(); ok && validRank(rank) {
				c.Peer = rank
			}
		}
		c.Comm, _ = row[7].Whole()
		l.trace.MPI = append(l.trace.MPI, c)
		return true
	})
}

// working are the processes that did GPU work, called CUDA or called MPI.
func (l *descriptions) working() []int64 {
	t := l.trace
	var list []int64
	for _, w := range []*Work{&t.Kernels.Work, &t.Copies.Work, &t.Sets.Work, &t.Graphs.Work} {
		for _, p := range w.places {
			if p.proc.index != None {
				list = append(list, t.Procs[p.proc.index].Global)
			}
		}
	}
	for _, p := range t.API.places {
		if p.thread.index != None {
			list = append(list, t.Procs[t.Threads[p.thread.index].Proc].Global)
		}
	}
	list = append(list, t.MPIProcesses()...)
	slices.Sort(list)
	return slices.Compact(list)
}

// MPIProcesses are the processes that call MPI, by their number.
func (t *Trace) MPIProcesses() []int64 {
	return slices.Sorted(maps.Keys(lists.Set(t.MPI, func(c MPICall) int64 { return c.Thread &^ tidBits })))
}

// rankKeys are the variables that launchers set, with those of the number of ranks. SLURM_PROCID comes last: it is 0
// for every rank that mpirun starts inside one Slurm step.
var rankKeys = [][2]string{
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"}, {"PMIX_RANK", ""}, {"RANK", "WORLD_SIZE"},
	{"SLURM_PROCID", "SLURM_NTASKS"},
}

// environmentRank looks for the variables of launchers, in rows of their own or inside the one that holds them all.
func (l *descriptions) environmentRank() (*Rank, error) {
	found := map[string]int64{}
	err := l.scanRole(RoleSystem, []string{"name", "value"}, func(row []cell) error {
		numbersIn(textOf(&row[0]), textOf(&row[1]), found)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, pair := range rankKeys {
		rank, ok := found[pair[0]]
		if !ok {
			continue
		}
		world, ok := found[pair[1]]
		if !ok || world <= rank {
			world = -1
		}
		if pair[0] == "SLURM_PROCID" && world < 0 {
			continue
		}
		return &Rank{rank, world, "environment"}, nil
	}
	return nil, nil
}

// variable is a number in the words of Python, JSON or a shell.
var variable = pattern.New(`\b([A-Z_]+)["' ]*[=:]["' ]*([0-9]+)\b`)

// numbersIn notes the numbers that a row of the environment gives to variables.
func numbersIn(name, value string, found map[string]int64) {
	list := [][]string{{"", name, value}}
	if name == "DeviceEnvironment" {
		list = variable().FindAllStringSubmatch(value, -1)
	}
	for _, m := range slices.Backward(list) { // the first of a name counts
		if v, err := strconv.ParseInt(strings.TrimSpace(m[2]), 10, 64); err == nil && validRank(v) && m[1] != "" {
			found[strings.Clone(m[1])] = v
		}
	}
}

// namedRank is the rank in the name that an MPI library gives its thread: MPI Rank 3.
func namedRank(text string) (int64, bool) {
	number, ok := strings.CutPrefix(text, "MPI Rank ")
	v, err := strconv.ParseInt(number, 10, 64)
	return v, ok && err == nil && validRank(v)
}
