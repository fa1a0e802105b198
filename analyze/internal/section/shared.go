package section

import (
	"cmp"
	"slices"
	"sync"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// shared is what several sections need, worked out by whichever asks first.
type shared struct {
	kernelTimes once[rankedGroups]
	callTimes   once[rankedGroups]
	procSums    once[[]procSum]
	coverage    once[[]procCoverage]
	ranges      once[rangeTotals]
	openRanges  once[int]
	idle        once[[]deviceIdle]
}

// once works a value out the first time it is asked for. A panic on the way is everybody's who asks.
type once[T any] struct {
	sync.Once
	value  T
	failed interface{}
}

func (o *once[T]) get(f func() T) T {
	o.Do(func() {
		defer func() { o.failed = recover() }()
		o.value = f()
	})
	if o.failed != nil {
		panic(o.failed)
	}
	return o.value
}

// rankedGroups are durations by name, sorted, and the names by total time.
type rankedGroups struct {
	*groups
	list []totals
}

// join is a sorted sample of the durations of some names together.
func (g *rankedGroups) join(list []totals) stat.Sample {
	samples := make([]stat.Sample, len(list))
	for i := range list {
		samples[i] = g.of(list[i].key)
	}
	all := stat.Join(samples...)
	all.Sort()
	return all
}

// kernelTimes are the durations of the kernels that start in the window, by name.
func (in *Input) kernelTimes() rankedGroups {
	return in.shared.kernelTimes.get(func() rankedGroups {
		k := &in.Trace.Kernels
		lo, hi := k.Starting(in.Span.Start, in.Span.End)
		g := gatherIn(in.Trace.Memory(), len(k.Names), lo, hi, k.Name, k.Dur).sort()
		return rankedGroups{g, g.rank(func(a, b int) int { return cmp.Compare(k.Names[a].Name, k.Names[b].Name) })}
	})
}

// callTimes are the durations of the API calls that start in the window, by name.
func (in *Input) callTimes() rankedGroups {
	return in.shared.callTimes.get(func() rankedGroups {
		api := &in.Trace.API
		lo, hi := api.Starting(in.Host.Start, in.Host.End)
		g := gatherIn(in.Trace.Memory(), len(api.Names), lo, hi, api.Name, api.Dur).sort()
		return rankedGroups{g, g.rank(func(a, b int) int { return cmp.Compare(api.Names[a].Name, api.Names[b].Name) })}
	})
}

// callRows are the API calls of the window whose name is chosen, in order.
func (in *Input) callRows(chosen func(n *trace.APIName) bool) []int {
	api := &in.Trace.API
	names := make([]bool, len(api.Names))
	for n := range names {
		names[n] = chosen(&api.Names[n])
	}
	if !slices.Contains(names, true) {
		return nil
	}
	var rows []int
	lo, hi := api.Starting(in.Host.Start, in.Host.End)
	for i := lo; i < hi; i++ {
		if names[api.Name(i)] {
			rows = append(rows, i)
		}
	}
	return rows
}

// countCalls is how many API calls of the capture have a name that is chosen.
func countCalls(t *trace.Trace, chosen func(n *trace.APIName) bool) (count int64) {
	names := make([]bool, len(t.API.Names))
	for n := range names {
		names[n] = chosen(&t.API.Names[n])
	}
	if !slices.Contains(names, true) {
		return 0
	}
	for i := range t.API.Len() {
		if names[t.API.Name(i)] {
			count++
		}
	}
	return count
}

// openRanges is how many ranges of the window were still open when the capture stopped.
func (in *Input) openRanges() int {
	return in.shared.openRanges.get(func() (n int) {
		r := &in.Trace.Ranges
		lo, hi := r.Starting(in.Host.Start, in.Host.End)
		for i := lo; i < hi; i++ {
			if r.Open(i) {
				n++
			}
		}
		return n
	})
}
