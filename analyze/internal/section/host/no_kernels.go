package host

import (
	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// hostPlaceShare is the share, 0..1, of a capture without kernels from which a range or a call is named.
const hostPlaceShare = 0.30

// hostPlace is a thread's time inside a range or a CUDA call of a name.
type hostPlace struct {
	thread int32
	label  string // range or api
	name   string
}

// hostTimes adds up the places of the threads of a capture: of those with CUDA calls, or of all if none has any. A
// range nested in one of its own name counts once.
type hostTimes struct {
	first, last int64
	reached     map[hostPlace]int64
	times       map[hostPlace]int64
}

func (x *hostTimes) add(p hostPlace, start, end int64) {
	if x.reached == nil {
		x.first, x.reached, x.times = start, map[hostPlace]int64{}, map[hostPlace]int64{}
	}
	x.last = max(x.last, end)
	if from := max(start, x.reached[p]); from < end {
		x.times[p] += end - from
		x.reached[p] = end
	}
}

// longest is the narrowest range with that share of the time, else the call with most time.
func (x *hostTimes) longest() (best hostPlace, ns int64) {
	for _, label := range []string{"range", "api"} {
		for p, t := range x.times {
			if p.label != label || float64(t) < hostPlaceShare*float64(x.last-x.first) {
				continue
			}
			if best.name == "" || t < ns || t == ns && (p.name < best.name || p.name == best.name && p.thread < best.thread) {
				best, ns = p, t
			}
		}
		if best.name != "" {
			break
		}
	}
	return best, ns
}

// hostOnly names the places of the time in a capture without kernels.
func hostOnly(in *kit.Input, out *kit.Output) {
	t := in.Trace
	var ranges, calls hostTimes
	r, api := &t.Ranges, &t.API
	for i := range r.Len() {
		th := r.Thread(i)
		if th != trace.None && !r.Open(i) && (api.Len() == 0 || in.Threads.Calls(th)) {
			name := string(kernelname.AppendRangeCanonical(nil, r.Names[r.Name(i)].Text))
			ranges.add(hostPlace{th, "range", name}, r.Start(i), r.End(i))
		}
	}
	for i := range api.Len() {
		if th := api.Thread(i); th != trace.None {
			calls.add(hostPlace{th, "api", api.Names[api.Name(i)].Name}, api.Start(i), api.End(i))
		}
	}
	for _, x := range []*hostTimes{&ranges, &calls} {
		p, ns := x.longest()
		if p.name == "" {
			continue
		}
		role, what := trace.RoleNVTX, "inside "
		if p.label == "api" {
			role, what = trace.RoleAPI, "in "
		}
		out.From(role, 0, "start", "end", "globalTid")
		out.Int("capture.place_time", kit.Labels(p.label, p.name), ns)
		out.Int("capture.host_time", nil, x.last-x.first)
		share := float64(ns) / float64(x.last-x.first)
		out.FindAs("host_place", "No kernel was captured: the host is "+what+kit.Quoted(p.name)+" for "+formatRatio(share)+" of the time",
			[]report.MetricRef{kit.Ref("capture.place_time", p.label, p.name), kit.Ref("capture.host_time")},
			"Trace the process that launches kernels, while it works (--trace=cuda,nvtx): only then explain knows what a GPU would gain.",
		).At(p.name).Costs(kit.WorthOf(report.OfRun, float64(ns), float64(x.last-x.first)))
		return
	}
}
