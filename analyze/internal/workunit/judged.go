package workunit

import (
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
)

// Judged are the kept units of the main kind of one process, on the device where their median is longest.
func (r *Result) Judged() []int32 {
	if r == nil || r.Kind == KindNone || r.Primary < 0 {
		return nil
	}
	var judged []int32
	times := map[int32][]float64{} // by device
	for i := range r.Units {
		if u := &r.Units[i]; u.State == Kept && int(u.Group) == r.Primary {
			judged = append(judged, int32(i))
			times[u.Device] = append(times[u.Device], float64(u.Time()))
		}
	}
	type key struct{ device, proc int32 }
	at, most := int32(0), 0.0 // device of the best, and its median
	var best []int32
	for _, list := range lists.Groups(judged, func(u int32) key { return key{r.Units[u].Device, r.Units[u].Proc} }) {
		device := r.Units[list[0]].Device
		median := order.Median(times[device])
		if best == nil || device == at && len(list) > len(best) || device != at && median > most {
			at, most, best = device, median, list
		}
	}
	return best
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
