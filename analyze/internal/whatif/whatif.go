package whatif

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

const schemaID = "explain.whatif/1"

// Result states how long steps would take with changes. It is an upper bound of what can be gained, not a promise.
type Result struct {
	Schema    string     `json:"schema"`
	Tool      Tool       `json:"tool"`
	Trace     string     `json:"trace"` // file name
	Unit      Unit       `json:"unit"`
	Replay    Replay     `json:"replay"`
	Scenarios []Scenario `json:"scenarios"`
}

// Tool is the program that made the result.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Unit describes what a step is.
type Unit struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Why  string `json:"why"`
	// Two describes two different times that the main kind's units take; empty if they do not.
	Two string `json:"two_kinds,omitempty"`
}

// Replay describes how well the graph explains the units.
type Replay struct {
	Fit
	// Unresolved counts the waits of streams for events for which it is unknown what they waited for.
	Unresolved int64 `json:"unresolved_waits"`
	// Inferred counts work that is assumed to have waited for what had just ended.
	Inferred int64 `json:"inferred_waits"`
	// Threads counts the waits of threads for other threads that operating system calls or the scheduler show;
	// InferredThreads counts those inferred from the order of CUDA calls alone.
	Threads         int64 `json:"thread_waits"`
	InferredThreads int64 `json:"inferred_thread_waits"`
	// WorkWaits counts waits of threads for the end of GPU work without a CUDA call, ProcessWaits waits for another
	// process: both are inferred. LockWaits counts those of all four kinds that are for Python's lock; null if the
	// capture does not name such waits.
	WorkWaits    int64  `json:"work_waits"`
	ProcessWaits int64  `json:"process_waits"`
	LockWaits    *int64 `json:"lock_waits"`
	// Outside is how many ns threads slept between two CUDA calls for something outside the graph: host time.
	Outside int64 `json:"outside_time"`
	// Waits states the same in words; empty if no thread waited.
	Waits string `json:"-"`
}

// Scenario is one or more changes, and how long the steps of each kind would take with them.
type Scenario struct {
	Changes []string `json:"changes"`
	// Replayed is false if the replay does not fit. Gains are then the face value of the changes: the GPU time that
	// nothing else covers, or idle time.
	Replayed bool    `json:"replayed"`
	Steps    []Steps `json:"steps"` // the main kind first
}

// Steps are the units of one kind on the device where their median is longest. Times are means per unit in ns.
type Steps struct {
	Phase  string `json:"phase"`
	Batch  *int64 `json:"batch"`
	Tokens *int64 `json:"tokens"`
	Device int64  `json:"device"`
	Main   bool   `json:"main"`
	Gained        // no less than with some of the changes
}

// mostKinds bounds the kinds of steps of a scenario.
const mostKinds = 12

// sets returns the kept units of each kind on the device that a report judges, the one with the longest median: the
// main kind first, then those with the most time.
func sets(r *workunit.Result) []workunit.Set {
	list := lists.Filter(r.Sets(), func(s workunit.Set) bool { return s.Slowest })
	lists.Sort(list, func(a, b workunit.Set) int { return cmp.Compare(b.Time, a.Time) })
	lists.Lead(list, func(s workunit.Set) bool { return int(s.Group) == r.Primary })
	return list[:min(len(list), mostKinds)]
}

// Run replays the capture from its first kept unit to the last: once per scenario, once for each part of one, and once
// to check how well the graph fits. There must be kept units.
func (in *Input) Run(r *workunit.Result, scenarios [][]Change) (*Result, error) {
	out := &Result{Schema: schemaID, Unit: Unit{Kind: r.Kind, Name: r.Name, Why: r.Why}, Scenarios: []Scenario{}}
	x := &run{in: in, r: r, list: sets(r), known: map[string][]*Steps{}}
	var all []int32
	for i := range x.list {
		all = append(all, x.list[i].Units...)
	}
	c := NewCeilings(in.Graph, r)
	x.replayed = c != nil && c.Fits
	x.face = newFacing(in.Graph, r, all)
	for _, changes := range scenarios {
		steps, err := x.steps(changes)
		if err != nil {
			return nil, err
		}
		s := Scenario{Changes: []string{}, Replayed: x.replayed, Steps: []Steps{}}
		for i := range changes {
			s.Changes = append(s.Changes, changes[i].String())
		}
		for _, k := range steps {
			if k != nil {
				s.Steps = append(s.Steps, *k)
			}
		}
		out.Scenarios = append(out.Scenarios, s)
	}
	found := &in.Graph.Found
	out.Replay = Replay{Unresolved: found.Unrecorded + found.Contradicted, Inferred: found.Inferred,
		Threads: found.Handed, InferredThreads: found.HandedInferred, WorkWaits: found.ByWork,
		ProcessWaits: found.ByProcess, Outside: found.Outside, Waits: found.Threads()}
	if found.Locks {
		out.Replay.LockWaits = &found.Locked
	}
	if c != nil {
		out.Replay.Fit = c.Fit
	}
	return out, nil
}

// run is what the scenarios of one capture share.
type run struct {
	in       *Input
	r        *workunit.Result
	list     []workunit.Set
	known    map[string][]*Steps // by the changes
	face     *facing
	replayed bool // else no replay is believed
}

// mostParts bounds the changes of a scenario up to which every part is replayed; of a longer one, only the single
// changes.
const mostParts = 4

// steps returns the steps of each kind with changes; nil if none was replayed. More changes never gain less: if
// interactions between steps would make them, the ceiling is that of a part of the changes.
func (x *run) steps(changes []Change) ([]*Steps, error) {
	names := lists.Map(changes, func(c Change) string { return c.String() })
	slices.Sort(names)
	key := strings.Join(names, "\x00")
	if list, ok := x.known[key]; ok {
		return list, nil
	}
	c, err := x.in.Compile(changes)
	if err != nil {
		return nil, err
	}
	of := x.face.times
	if x.replayed {
		of = x.face.replay
	}
	times := of(c)
	list := lists.Map(x.list, func(s workunit.Set) *Steps { return stepsOf(x.r, &s, times) })
	for i := range changes {
		part := changes[i : i+1]
		if len(changes) <= mostParts {
			part = slices.Delete(slices.Clone(changes), i, i+1)
		}
		if len(part) == 0 || len(part) == len(changes) {
			continue
		}
		less, err := x.steps(part)
		if err != nil {
			return nil, err
		}
		for k := range list {
			if list[k] != nil && less[k] != nil {
				list[k].atLeast(less[k])
			}
		}
	}
	x.known[key] = list
	return list, nil
}

// atLeast raises a gain to at least that of a part of the changes.
func (s *Steps) atLeast(part *Steps) {
	if part.Gain > s.Gain {
		s.Gain, s.Ceiling, s.Ratio = part.Gain, part.Ceiling, part.Ratio
	}
	s.UpTo = max(s.UpTo, part.UpTo)
	if s.Interval != nil && part.Interval != nil {
		s.Interval = &[2]float64{max(s.Interval[0], part.Interval[0]), max(s.Interval[1], part.Interval[1])}
	}
}

// mostCalls bounds the blocking calls that Usual tries one by one.
const mostCalls = 4

// mostName is the most characters of a kernel's name in a change, so that a terminal has room for the gain.
const mostName = 17

// Usual returns the changes to try on any capture, each by itself, as far as they match something in this one: the
// longest kernel twice as fast, and each blocking call, or all of them together if they are many.
func (in *Input) Usual() [][]Change {
	list := [][]Change{{{Kind: HostFree}}, {{Kind: Graph}}}
	if name := in.longest(); name != "" {
		c, _ := Parse(Speedup, "kernel:"+name+"=2x") // never fails
		list = append(list, []Change{c})
	}
	var calls []string
	for _, n := range in.Trace.API.Names {
		if (n.Sync || n.OldSync) && !slices.Contains(calls, n.Name) {
			calls = append(calls, n.Name)
		}
	}
	if slices.Sort(calls); len(calls) > mostCalls {
		calls = []string{"*Synchronize"}
	}
	for _, name := range calls {
		c, _ := Parse(NoSync, name) // never fails
		list = append(list, []Change{c})
	}
	for d := range in.Graph.Timeline.Devices {
		if in.Graph.Timeline.Devices[d].Comm > 0 {
			return append(list, []Change{{Kind: Overlap, Text: "comm"}})
		}
	}
	return list
}

// longest is the kernel with most time, communication apart, as a pattern of its displayed name; empty if there is
// none.
func (in *Input) longest() string {
	k, sums := &in.Trace.Kernels, make([]int64, len(in.Kinds))
	for i := range k.Len() {
		if n := k.Name(i); !in.Kinds[n].Comm {
			sums[n] += k.End(i) - k.Start(i)
		}
	}
	if len(sums) == 0 || slices.Max(sums) <= 0 {
		return ""
	}
	name := in.Kinds[slices.Index(sums, slices.Max(sums))].Display
	return strings.ReplaceAll(wording.ShortenTo(name, mostName, mostName/3), "…", "*")
}

// stepsOf sums up the units of one kind; nil if none was replayed.
func stepsOf(r *workunit.Result, s *workunit.Set, times []int64) *Steps {
	gained := gainedBy(r, s.Units, times)
	if gained.N == 0 {
		return nil
	}
	g := &r.Groups[s.Group]
	return &Steps{g.Phase, known(g.Batch), known(g.Tokens), int64(s.Device), int(s.Group) == r.Primary, gained}
}

func known(v int64) *int64 {
	if v < 0 {
		return nil
	}
	return &v
}

const (
	leastUnits = 8    // for an interval
	resamples  = 2000 // of the bootstrap
)

// bootstrap returns the 95 % interval of the sum of gains as a share of the sum of times, both of consecutive units. It
// resamples circular blocks of about the square root of the number of units, so that drift and alternation stay
// together, and each unit keeps its gain. Equal input gives equal results.
func bootstrap(gains, times []float64) *[2]float64 {
	n := len(gains)
	if n < leastUnits {
		return nil
	}
	block := max(1, int(math.Sqrt(float64(n))))
	type sum struct{ gain, time float64 }
	sums := make([]sum, n) // of the block that begins at each index
	for k := range block {
		sums[0] = sum{sums[0].gain + gains[k], sums[0].time + times[k]}
	}
	for i := 1; i < n; i++ {
		out, in := i-1, (i+block-1)%n
		sums[i] = sum{sums[out].gain - gains[out] + gains[in], sums[out].time - times[out] + times[in]}
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	shares := make([]float64, resamples)
	for i := range shares {
		var drawn sum
		for range (n + block - 1) / block {
			x := &sums[rng.IntN(n)]
			drawn.gain, drawn.time = drawn.gain+x.gain, drawn.time+x.time
		}
		shares[i] = drawn.gain / max(1, drawn.time)
	}
	slices.Sort(shares)
	return &[2]float64{stat.Percentile(shares, 0.025), stat.Percentile(shares, 0.975)}
}
