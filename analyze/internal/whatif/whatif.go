package whatif

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

// schemaID is the schema of a result.
const schemaID = "explain.whatif/1"

// Result says what steps would take with changes. It is a ceiling of what can be won, and no promise.
type Result struct {
	Schema    string     `json:"schema"`
	Tool      Tool       `json:"tool"`
	Trace     string     `json:"trace"` // file name
	Unit      Unit       `json:"unit"`
	Replay    Replay     `json:"replay"`
	Scenarios []Scenario `json:"scenarios"`
}

// Tool is the program that made a result.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Unit says what a step is.
type Unit struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Replay says how well the graph explains the units.
type Replay struct {
	// Error is how far a unit of the main kind is off, as a share of it, with typical latencies in place of those
	// measured: the median.
	Error float64 `json:"error"`
	Fits  bool    `json:"fits"` // it is at most 1 %
	// Unresolved are the waits of streams for events of which it is not known what they waited for.
	Unresolved int64 `json:"unresolved_waits"`
	// Inferred is work that is taken to have waited for what had just ended.
	Inferred int64 `json:"inferred_waits"`
}

// Fits is the error up to which the graph is said to explain the units.
const Fits = 0.01

// Scenario is one or more changes, and what the steps of each kind would take.
type Scenario struct {
	Changes []string `json:"changes"`
	Steps   []Steps  `json:"steps"` // the main kind first
}

// Steps are the units of one kind on the device where they take longest. Times are means per unit in ns.
type Steps struct {
	Phase   string  `json:"phase"`
	Batch   *int64  `json:"batch"`
	Tokens  *int64  `json:"tokens"`
	Device  int64   `json:"device"`
	Main    bool    `json:"main"`
	N       int64   `json:"n"` // units that were replayed
	Time    float64 `json:"time"`
	Ceiling float64 `json:"ceiling_time"` // with the changes
	Gain    float64 `json:"gain"`         // the difference, which may be below 0 by the order in which work meets
	// Interval of the gain over the units, 95 %, by a bootstrap of blocks of units that follow each other; null for
	// fewer than 8 units.
	Interval *[2]float64 `json:"gain_interval"`
	Ratio    *float64    `json:"gain_ratio"` // the gain as a share of the time; null where that is 0
}

// most kinds of steps of a scenario.
const mostKinds = 12

// set is the units of one kind on one device.
type set struct {
	group int32
	units []int32
	time  int64
}

// sets are the kept units of each kind, of those of the device with the longest mean; the main kind first, then those
// with most time.
func sets(r *workunit.Result) []set {
	type key struct{ group, index int32 }
	at := map[key]int{}
	var all []set
	for i := range r.Units {
		u := &r.Units[i]
		if u.State != workunit.Kept || u.Group < 0 {
			continue
		}
		k := key{u.Group, u.Index}
		n, ok := at[k]
		if !ok {
			n = len(all)
			at[k] = n
			all = append(all, set{group: u.Group})
		}
		all[n].units, all[n].time = append(all[n].units, int32(i)), all[n].time+u.Time()
	}
	mean := func(s *set) float64 { return float64(s.time) / float64(len(s.units)) }
	best := map[int32]int{}
	for i := range all {
		if b, ok := best[all[i].group]; !ok || mean(&all[i]) > mean(&all[b]) {
			best[all[i].group] = i
		}
	}
	var list []set
	for i := range all {
		if best[all[i].group] == i {
			list = append(list, all[i])
		}
	}
	slices.SortStableFunc(list, func(a, b set) int {
		if x, y := int(a.group) == r.Primary, int(b.group) == r.Primary; x != y {
			if x {
				return -1
			}
			return 1
		}
		return int(min(1, max(-1, b.time-a.time)))
	})
	return list[:min(len(list), mostKinds)]
}

// Run replays the capture once per scenario and once to see how well the graph fits. There must be kept units.
func (in *Input) Run(r *workunit.Result, scenarios [][]Change) (*Result, error) {
	out := &Result{Schema: schemaID, Unit: Unit{r.Kind, r.Name, r.Why}, Scenarios: []Scenario{}}
	units := in.Graph.UnitsOf(r)
	all := interval.Interval{Start: math.MinInt64, End: math.MaxInt64}
	list := sets(r)
	for _, changes := range scenarios {
		c, err := in.Compile(changes)
		if err != nil {
			return nil, err
		}
		times := in.Graph.Replay(all, units, c)
		s := Scenario{Changes: []string{}, Steps: []Steps{}}
		for i := range changes {
			s.Changes = append(s.Changes, changes[i].String())
		}
		for i := range list {
			if steps, ok := stepsOf(r, &list[i], times); ok {
				s.Steps = append(s.Steps, steps)
			}
		}
		out.Scenarios = append(out.Scenarios, s)
	}
	found := &in.Graph.Found
	out.Replay.Error = in.fit(r, list, units, all)
	out.Replay.Fits = out.Replay.Error <= Fits
	out.Replay.Unresolved, out.Replay.Inferred = found.Unrecorded+found.Contradicted, found.Inferred
	return out, nil
}

// Usual are the changes that most captures are asked about, each by itself: those that the capture has anything of.
func (in *Input) Usual() [][]Change {
	list := [][]Change{{{Kind: HostFree}}, {{Kind: Graph}}}
	for _, n := range in.Trace.API.Names {
		if n.Sync || n.OldSync {
			c, _ := Parse(NoSync, "*Synchronize") // which is right
			list = append(list, []Change{c})
			break
		}
	}
	for d := range in.Graph.Timeline.Devices {
		if in.Graph.Timeline.Devices[d].Comm > 0 {
			return append(list, []Change{{Kind: Overlap, Text: "comm"}})
		}
	}
	return list
}

// fit is the median error of units of the main kind that are replayed with typical latencies.
func (in *Input) fit(r *workunit.Result, list []set, units *stepgraph.Units, all interval.Interval) float64 {
	usual := in.Graph.Replay(all, units, &stepgraph.Change{Typical: true})
	var off []float64
	for _, u := range list[0].units {
		if ns := r.Units[u].Time(); usual[u] >= 0 && ns > 0 {
			off = append(off, math.Abs(float64(usual[u]-ns))/float64(ns))
		}
	}
	if len(off) == 0 {
		return 0
	}
	slices.Sort(off)
	return stat.Percentile(off, 0.5)
}

// stepsOf sums up the units of one kind; ok is false where none was replayed.
func stepsOf(r *workunit.Result, s *set, times []int64) (out Steps, ok bool) {
	g := &r.Groups[s.group]
	out = Steps{Phase: g.Phase, Batch: known(g.Batch), Tokens: known(g.Tokens), Main: int(s.group) == r.Primary}
	var gains []float64
	var was, is float64
	for _, u := range s.units {
		if times[u] < 0 {
			continue
		}
		out.Device = int64(r.Units[u].Device)
		was, is = was+float64(r.Units[u].Time()), is+float64(times[u])
		gains = append(gains, float64(r.Units[u].Time()-times[u]))
	}
	n := float64(len(gains))
	if n == 0 {
		return out, false
	}
	out.N, out.Time, out.Ceiling, out.Gain = int64(n), was/n, is/n, (was-is)/n
	if was > 0 {
		ratio := (was - is) / was
		out.Ratio = &ratio
	}
	out.Interval = bootstrap(gains)
	return out, true
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

// bootstrap is the 95 % interval of the mean of numbers that follow each other: circular blocks of about the square
// root of their count are drawn anew, so that what drifts or alternates stays together. It is the same for equal
// numbers.
func bootstrap(list []float64) *[2]float64 {
	n := len(list)
	if n < leastUnits {
		return nil
	}
	block := max(1, int(math.Sqrt(float64(n))))
	sums := make([]float64, n) // of the block that begins at each place
	for k := range block {
		sums[0] += list[k]
	}
	for i := 1; i < n; i++ {
		sums[i] = sums[i-1] - list[i-1] + list[(i+block-1)%n]
	}
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	blocks := (n + block - 1) / block
	means := make([]float64, resamples)
	for i := range means {
		for range blocks {
			means[i] += sums[rng.IntN(n)]
		}
		means[i] /= float64(blocks * block)
	}
	slices.Sort(means)
	return &[2]float64{stat.Percentile(means, 0.025), stat.Percentile(means, 0.975)}
}
