package workunit

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// Judged are the kept units of the main kind of one process, on the device where their median is longest.
func (r *Result) Judged() []int32 {
	if r == nil || r.Kind == KindNone || r.Primary < 0 {
		return nil
	}
	type key struct{ device, proc int32 }
	lists := map[key][]int32{}
	var keys []key
	for i := range r.Units {
		if u := &r.Units[i]; u.State == Kept && int(u.Group) == r.Primary {
			k := key{u.Device, u.Proc}
			if lists[k] == nil {
				keys = append(keys, k)
			}
			lists[k] = append(lists[k], int32(i))
		}
	}
	times := map[int32][]int64{} // by device
	for k, list := range lists {
		for _, u := range list {
			times[k.device] = append(times[k.device], r.Units[u].Time())
		}
	}
	medians := make(map[int32]float64, len(times))
	for device, list := range times {
		slices.Sort(list)
		medians[device] = float64(list[(len(list)-1)/2]+list[len(list)/2]) / 2
	}
	if len(keys) == 0 {
		return nil
	}
	best, most := keys[0], medians[keys[0].device]
	for _, k := range keys[1:] {
		switch m := medians[k.device]; {
		case k.device == best.device && len(lists[k]) > len(lists[best]), k.device != best.device && m > most:
			best, most = k, m
		}
	}
	return lists[best]
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
