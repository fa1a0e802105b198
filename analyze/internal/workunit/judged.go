package workunit

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Set is the kept units of one group on one device, in order.
type Set struct {
	Group, Device int32 // Device is a deviceId
	Units         []int32
	Time          int64   // of all together, ns
	P50           float64 // of their times, ns
	Slowest       bool    // no other device has a longer median of the group
}

// grouped are the kept units of any group.
func (r *Result) grouped() []int32 {
	return lists.Where(len(r.Units), func(u int32) bool { return r.Units[u].State == Kept && r.Units[u].Group >= 0 })
}

// Sets are the kept units by group and device, in the order of their first units.
func (r *Result) Sets() (sets []Set) {
	type key struct{ group, device int32 }
	slowest := map[int32]int{} // by group
	for _, units := range lists.Groups(r.grouped(), func(u int32) key { return key{r.Units[u].Group, r.Units[u].Device} }) {
		times := lists.Map(units, func(u int32) int64 { return r.Units[u].Time() })
		slices.Sort(times)
		first := &r.Units[units[0]]
		s := Set{Group: first.Group, Device: first.Device, Units: units, Time: lists.Total(times),
			P50: stat.Percentile(times, 0.5)}
		if at, ok := slowest[s.Group]; !ok || s.P50 > sets[at].P50 {
			slowest[s.Group] = len(sets)
		}
		sets = append(sets, s)
	}
	for _, at := range slowest {
		sets[at].Slowest = true
	}
	return sets
}

// Judged are the kept units of the main kind of one process, on the device where their median is longest: of several
// processes the one with most units.
func (r *Result) Judged() []int32 {
	if r == nil || r.Kind == KindNone || r.Primary < 0 {
		return nil
	}
	main := lists.Find(r.Sets(), func(s *Set) bool { return s.Slowest && int(s.Group) == r.Primary })
	procs := lists.Groups(main.Units, func(u int32) int32 { return r.Units[u].Proc })
	return slices.MaxFunc(procs, func(a, b []int32) int { return len(a) - len(b) })
}

// Tokens are the tokens that a kept unit computes, by its marker: one for each request in decode, those of prompts,
// and how many prompts there are (0 if it does not say); ok is false if it states no number of tokens.
func (r *Result) Tokens(ranges *trace.Ranges, u *Unit) (decode, prompt, prompts int64, ok bool) {
	if u.State != Kept || u.Marker == trace.None || u.Group < 0 {
		return 0, 0, 0, false
	}
	mark, read := kernelname.ParseMarker(ranges.Names[ranges.Name(int(u.Marker))].Text)
	g := &r.Groups[u.Group]
	if !read {
		return 0, 0, 0, false
	}
	decode = max(mark.DecodeTokens, mark.DecodeRequests)
	if decode < 0 && g.Phase == kernelname.PhaseDecode {
		decode = g.Batch
	}
	prompt, prompts = mark.PrefillTokens, mark.PrefillRequests
	if g.Phase != kernelname.PhaseDecode && prompt < 0 || g.Phase == kernelname.PhaseDecode && decode < 0 {
		return 0, 0, 0, false
	}
	if prompts < 0 && decode <= 0 {
		prompts = g.Batch
	}
	return max(0, decode), max(0, prompt), max(0, prompts), true
}
