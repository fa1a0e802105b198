package workunit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Rule says which units count in statistics. It is the same for every capture.
const Rule = "Kept: complete units of a kind of work that recurs. Cut: units that are incomplete at an end of the " +
	"capture; the last unit, because none follows it, unless the work of units of its kind ends within 0.1 % of their " +
	"time of the start of the next; and units with missing launches or kernels, if these are half or fewer. Warm-up: the first " +
	"units of a kind on a device while they take longer than the median of those after the first third, or after the " +
	"first ten, by 2 % and by three standard deviations (estimated from the median absolute deviation). At most two " +
	"units, one in ten, or that third are warm-up: more are a trend and stay, as do more than two if times keep " +
	"falling after them. Other: different work."

// openEnd is the share of a unit's time by which its work ends before or after the start of the next unit, up to which
// the last unit is kept.
const openEnd = 0.001

// settle fills in what all ways of finding units share: states, signatures, counts.
func (f *Search) settle(r *Result) {
	r.lose(f.missing)
	f.sign(r)
	type key struct{ device, proc, group int32 }
	of := func(u int32) key { return key{r.Units[u].Index, r.Units[u].Proc, r.Units[u].Group} }
	for _, list := range lists.Groups(r.grouped(), of) {
		units := lists.Map(list, func(u int32) *Unit { return &r.Units[u] })
		closeLast(units)
		kept := lists.Filter(units, func(u *Unit) bool { return u.State == Kept })
		times := lists.Map(kept, func(u *Unit) float64 { return float64(u.Time()) })
		for _, u := range kept[:stat.Warmup(times)] {
			u.State = Warmup
		}
	}
	r.count()
	r.describe()
}

// closeLast leaves out the last unit if idle time that follows it would be missing, or if it overlaps the next: its time
// would be longer than that of the others, which ends where the next one starts.
func closeLast(units []*Unit) {
	n := len(units)
	if units[n-1].closed {
		return
	}
	var off []float64
	for _, u := range units[:n-1] {
		if u.closed && u.Time() > 0 {
			off = append(off, math.Abs(float64(u.End-u.LastWork))/float64(u.Time()))
		}
	}
	if len(off) == 0 || order.Median(off) > openEnd {
		units[n-1].State = Cut
	}
}

// sign computes for each unit the hash of its kernels and graphs, how much work it has and its signature.
func (f *Search) sign(r *Result) {
	kernels := make([]int64, len(r.Units))
	for i := range r.Units {
		u := &r.Units[i]
		u.hash, u.First = 0, trace.None
		if i > 0 && r.Units[i-1].Index == u.Index && r.Units[i-1].Proc == u.Proc {
			u.Number = r.Units[i-1].Number + 1
		}
	}
	geometry := lists.Map(f.Trace.Kernels.Configs, hashGeometry)
	parallel.Each(len(f.of), func(d int) { // no unit is on two devices
		device := f.Timeline.Devices[d]
		for w := range f.of[d].Len() {
			id := f.of[d].At(w)
			if id == trace.None {
				continue
			}
			u := &r.Units[id]
			if u.First == trace.None {
				u.First = int32(w)
			}
			u.Pieces++
			if device.Class(w) == timeline.Compute {
				u.comp++
				u.busy += device.End(w) - device.Start(w)
			}
			row := device.Row(w)
			switch device.Kind(w) {
			case timeline.KernelWork:
				name := f.names.hash[f.names.at(device, w)]
				u.hash += name
				u.Signature += Mix(name ^ geometry[f.Trace.Kernels.Config(row)])
				kernels[id]++
			case timeline.GraphWork:
				name := f.names.hash[f.names.at(device, w)]
				u.hash += name
				u.Signature += Mix(name)
			case timeline.CopyWork:
				u.Signature += Mix(Mix(uint64(f.Trace.Copies.Bytes(row))+1) ^ uint64(f.Trace.Copies.Kind(row)+1))
			case timeline.SetWork:
				u.Signature += Mix(^uint64(f.Trace.Sets.Bytes(row)))
			}
		}
	})
	for i := range r.Units {
		if g := r.Units[i].Group; g >= 0 && r.Units[i].State == Kept {
			r.Groups[g].kernels = append(r.Groups[g].kernels, kernels[i])
		}
	}
}

// hashGeometry hashes a launch's configuration: grid, block and shared memory.
func hashGeometry(c trace.LaunchConfig) uint64 {
	var h uint64
	for _, v := range slices.Concat(c.Grid[:], c.Block[:], []int32{c.SharedStatic, c.SharedDynamic}) {
		h = Mix(h + uint64(uint32(v)) + 0x9E3779B97F4A7C15)
	}
	return h
}

// describe gives each group the signature that most of its kept units have, and makes names of groups distinct.
func (r *Result) describe() {
	type form struct {
		group int32
		hash  uint64
	}
	best := make([][]int32, len(r.Groups)) // by group: the units of a form
	for _, list := range lists.Groups(r.grouped(), func(u int32) form { return form{r.Units[u].Group, r.Units[u].hash} }) {
		u := &r.Units[list[0]]
		if at := &best[u.Group]; *at == nil || r.stands(list, *at) {
			*at = list
		}
	}
	plain := 0
	for g := range r.Groups {
		group := &r.Groups[g]
		group.Example = -1
		if len(group.kernels) > 0 {
			group.Kernels = order.Median(group.kernels)
			group.kernels = nil
		}
		if best[g] != nil {
			group.Example = best[g][0]
			group.Signature = fmt.Sprintf("%016x", r.Units[group.Example].hash)
		}
		if group.plain() && group.Count > 0 {
			plain++
		}
	}
	r.dropEmpty()
	if plain > 1 {
		r.nameApart()
	}
}

// stands reports whether units of one form stand for their group rather than those of another: of forms as frequent the
// longer, whatever its names.
func (r *Result) stands(a, b []int32) bool {
	x, y := &r.Units[a[0]], &r.Units[b[0]]
	return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(y.Time(), x.Time()), cmp.Compare(x.hash, y.hash)) < 0
}

// dropEmpty removes groups without kept units. Their units remain, without a group.
func (r *Result) dropEmpty() {
	place := make([]int32, len(r.Groups))
	kept := r.Groups[:0]
	for g := range r.Groups {
		place[g] = -1
		if r.Groups[g].Count > 0 {
			place[g] = int32(len(kept))
			kept = append(kept, r.Groups[g])
		}
	}
	r.Groups = kept
	for i := range r.Units {
		if g := r.Units[i].Group; g >= 0 {
			r.Units[i].Group = place[g]
		}
	}
	r.count()
}

// plain reports whether it is unknown what kind of step the group is.
func (g *Group) plain() bool { return g.Phase == "step" && g.Batch < 0 && g.Tokens < 0 }

// nameApart names plain groups, except the primary one, by their signature, so that a group has the same name in
// another capture.
func (r *Result) nameApart() {
	used := map[string]int{}
	for g := range r.Groups {
		group := &r.Groups[g]
		if !group.plain() || g == r.Primary {
			continue
		}
		name := "step:" + group.Signature[:6]
		if used[name]++; used[name] > 1 {
			name += fmt.Sprintf(".%d", used[name])
		}
		group.Phase = name
	}
}
