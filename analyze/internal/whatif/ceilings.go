package whatif

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Ceilings computes what units of work would gain at most by changes. Findings, the report and the page of the
// critical path all use it. If there are very many units, those in the middle are replayed.
//
// If Fits is false, the graph does not explain enough of the units, and no replay is believed. A change then has
// its face value, which is reported as not replayed: the GPU time that nothing else covers, or the idle time.
type Ceilings struct {
	Fit
	// Contradicted is true if OnHost and Bare of a device are more than 10 points apart, and the unknown share does not
	// explain it: no path can be believed then.
	Contradicted bool

	face  *facing  // kept units of any kind on any device, by start
	known sync.Map // func() []int64 by named: times of units
}

// Fit is how well the graph explains units. Shares are from 0 to 1.
type Fit struct {
	// Error is the median error of a unit that is replayed with typical latencies instead of measured ones, as a share
	// of its time.
	Error float64 `json:"error"`
	// Fits is true if the ceilings can be believed: the error is at most 1 %; at most 25 % of the units' critical paths
	// are unknown; at most 25 % of their work has no known call; and the share of the paths that lies on the host, in
	// its calls and in latencies is within 10 points of the gain of a replay without these.
	Fits       bool    `json:"fits"`
	Unknown    float64 `json:"unknown_path"`    // share of the paths
	Unlaunched float64 `json:"unlaunched_work"` // share of the GPU work whose launching call is unknown
	OnHost     float64 `json:"host_path"`       // share of the paths on the host, in its calls and in latencies
	Bare       float64 `json:"host_gain"`       // what units gain without these, as a share of their time
}

// named is a change without functions: equal ones have equal results for all callers.
type named struct{ hostFree, overlap, graph, noLatency, typical bool }

// Limits for believing a replay.
const (
	mostError   = 0.01 // of a replay
	mostApart   = 0.10 // between the share of a path on the host and what is gained without it
	mostUnknown = 0.25 // of a path, and of the work without a known call
	mostKept    = 256  // units that are replayed, or as many as have lightWork
	lightWork   = 1 << 16
	heavyWork   = 1 << 20 // pieces of work from which on fewer are replayed, but fewKept
	fewKept     = 32
)

// NewCeilings replays units as they were; nil if no unit was kept.
func NewCeilings(g *stepgraph.Graph, r *workunit.Result) *Ceilings {
	list := replayed(r)
	if len(list) == 0 {
		return nil
	}
	c := &Ceilings{face: newFacing(g, r, list)}
	c.Unlaunched = c.unlaunched()
	fits := false
	var bare []Gained
	var host, unknown []float64
	parallel.Do(func() { c.Error, fits = c.fit() },
		func() { bare = c.gains(&stepgraph.Change{HostFree: true, NoLatency: true}, false) },
		func() { host, unknown = c.walk() })
	for d := range bare {
		if bare[d].Time > 0 && !math.IsNaN(host[d]) {
			share := bare[d].Gain / bare[d].Time
			c.Bare, c.OnHost, c.Unknown = max(c.Bare, share), max(c.OnHost, host[d]), max(c.Unknown, unknown[d])
			c.Contradicted = c.Contradicted || share < host[d]-mostApart || share > host[d]+unknown[d]+mostApart
		}
	}
	c.Fits = fits && c.Error <= mostError && max(c.Unknown, c.Unlaunched) <= mostUnknown && !c.Contradicted
	return c
}

// replayed are the kept units, by start: all of them, or those in the middle. Steps may take less and less time, so few
// pieces of work are all replayed, however many units they are. Very large steps cost time and memory: fewer will do.
func replayed(r *workunit.Result) []int32 {
	list := lists.Where(len(r.Units), func(u int32) bool { return r.Units[u].State == workunit.Kept })
	lists.Sort(list, func(a, b int32) int { return cmp.Compare(r.Units[a].Start, r.Units[b].Start) })
	if n, most := len(list), mostReplayed(len(list), r.Timeline.Pieces()); n > most {
		list = list[(n-most)/2:][:most]
	}
	return list
}

// mostReplayed is how many of n units are replayed, which have so many pieces of work together.
func mostReplayed(n, work int) int {
	units := func(pieces int) int { return pieces * n / max(1, work) } // that have so many pieces of work
	return min(max(mostKept, units(lightWork)), max(fewKept, units(heavyWork)))
}

// unlaunched is the share of the work in the stretch whose call is unknown, 0 to 1.
func (c *Ceilings) unlaunched() float64 {
	var all, without int
	for _, device := range c.face.graph.Timeline.Devices {
		lo, hi := device.From(c.face.stretch.Start), device.From(c.face.stretch.End)
		for all += hi - lo; lo < hi; lo++ {
			if device.Call(lo) == trace.None {
				without++
			}
		}
	}
	return float64(without) / float64(max(1, all))
}

// stretchOf is the interval from the first to the last of some units, including the start of what follows the last. It
// also includes the unit before the first, so that the change already applies there: the host may be ahead of the GPU
// by one unit. A unit before that took very much longer is left out.
func stretchOf(r *workunit.Result, list []int32) interval.Interval {
	s := interval.Interval{Start: math.MaxInt64, End: math.MinInt64}
	first := trace.None
	for _, u := range list {
		if r.Units[u].Start < s.Start {
			s.Start, first = r.Units[u].Start, u
		}
		s.End = max(s.End, r.Units[u].End+1)
	}
	if first > 0 {
		if a, b := &r.Units[first-1], &r.Units[first]; a.Index == b.Index && a.End == b.Start && a.Time() <= longLead*b.Time() {
			s.Start = a.Start
		}
	}
	return s
}

// longLead is how many times as long as the first unit the unit before it may be.
const longLead = 8

// Gained is what units gain by a change. Times are means per unit in ns.
type Gained struct {
	N       int64   `json:"n"`            // units that were replayed
	Time    float64 `json:"time"`         // as they were
	Ceiling float64 `json:"ceiling_time"` // with the change
	Gain    float64 `json:"gain"`         // the difference, from 0 to Time
	// Interval is the 95 % interval of the gain: that of its share of the units' time, by a bootstrap of blocks of
	// consecutive units, times the mean; nil for fewer than 8 units.
	Interval *[2]float64 `json:"gain_interval"`
	Ratio    *float64    `json:"gain_ratio"` // the gain as a share of the time; nil if that is 0
	UpTo     float64     `json:"gain_up_to"` // the upper end of the interval, or the gain if there is none
}

// gainedBy sums up what units gain. times are by unit, in a replay, in ns; -1 if a unit was not
// replayed.
func gainedBy(r *workunit.Result, units []int32, times []int64) (g Gained) {
	var gains, took []float64
	var was, is float64
	for _, u := range units {
		if times[u] < 0 {
			continue
		}
		ns := r.Units[u].Time()
		was, is = was+float64(ns), is+float64(times[u])
		took, gains = append(took, float64(ns)), append(gains, float64(ns-times[u]))
	}
	if g.N = int64(len(gains)); g.N == 0 {
		return g
	}
	g.Time = was / float64(g.N)
	within := func(gain float64) float64 { return min(max(gain, 0), g.Time) }
	g.Gain = within((was - is) / float64(g.N))
	g.Ceiling, g.Ratio, g.UpTo = g.Time-g.Gain, stat.Ratio(g.Gain, g.Time), g.Gain
	if b := bootstrap(gains, took); b != nil {
		g.Interval = &[2]float64{within(b[0] * g.Time), within(b[1] * g.Time)}
		g.UpTo = max(g.Gain, g.Interval[1])
	}
	return g
}

// Gain is what units gain by a change, on the device that gains the largest share of its time. If main is set, only
// units of the main kind count. N is 0 if no unit could be replayed.
func (c *Ceilings) Gain(change *stepgraph.Change, main bool) (most Gained) {
	for _, g := range c.gains(change, main) {
		if g.N > 0 && (most.N == 0 || g.UpTo*most.Time > most.UpTo*g.Time) {
			most = g
		}
	}
	return most
}

func (c *Ceilings) gains(change *stepgraph.Change, main bool) []Gained {
	times := c.times(change)
	list := make([]Gained, len(c.face.r.Timeline.Devices))
	for d := range list {
		units := lists.Filter(c.face.list, func(u int32) bool {
			x := &c.face.r.Units[u]
			return int(x.Index) == d && (!main || int(x.Group) == c.face.r.Primary)
		})
		list[d] = gainedBy(c.face.r, units, times)
	}
	return list
}

// times returns how long units take with a change, in ns, by unit; -1 for units that were not replayed. A change
// without functions is replayed only once.
func (c *Ceilings) times(change *stepgraph.Change) []int64 {
	replay := func() []int64 { return c.face.replay(change) }
	if change.Work != nil || change.Call != nil || change.NoWait != nil {
		return replay()
	}
	once, _ := c.known.LoadOrStore(named{change.HostFree, change.Overlap, change.Graph, change.NoLatency, change.Typical},
		sync.OnceValue(replay))
	return once.(func() []int64)()
}

// fit is the median error of units replayed with typical latencies; ok is false if none could be replayed.
func (c *Ceilings) fit() (median float64, ok bool) {
	times := c.times(&stepgraph.Change{Typical: true})
	var off []float64
	for _, u := range c.face.list {
		if ns := c.face.r.Units[u].Time(); times[u] >= 0 && ns > 0 {
			off = append(off, math.Abs(float64(times[u]-ns))/float64(ns))
		}
	}
	if len(off) == 0 {
		return 0, false
	}
	slices.Sort(off)
	return off[len(off)/2], true
}

// walk returns, by device, the share of the units' critical paths that lies on the host, in its calls and in latencies,
// and the share that is unknown; NaN for a device without units.
func (c *Ceilings) walk() (host, unknown []float64) {
	devices := len(c.face.r.Timeline.Devices)
	total := make([]float64, devices)
	host, unknown = make([]float64, devices), make([]float64, devices)
	for _, u := range c.face.list {
		x, next := &c.face.r.Units[u], c.face.of.Next[u]
		if next == trace.None {
			continue
		}
		total[x.Index] += float64(x.Time())
		c.face.graph.Walk(next, x.Start, func(s *stepgraph.Step) {
			switch s.Kind {
			case stepgraph.Runs:
			case stepgraph.Unexplained, stepgraph.Unknown:
				unknown[x.Index] += float64(s.End - s.Start)
			case stepgraph.AfterWork, stepgraph.AfterCall, stepgraph.InCall, stepgraph.OnHost:
				host[x.Index] += float64(s.End - s.Start)
			}
		})
	}
	for d := range total {
		host[d], unknown[d] = host[d]/total[d], unknown[d]/total[d]
	}
	return host, unknown
}
