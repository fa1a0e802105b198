package host

import (
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/interval"
	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
)

// waits lists the calls that are easily mistaken for blocking ones, and those that can block outside the four families:
// cudaThreadSynchronize and allocations. It reports whether there was one of the former.
func waits(in *kit.Input, out *kit.Output) (old bool) {
	api := &in.Trace.API
	kinds := make([]string, len(api.Names))
	for n := range kinds {
		kinds[n] = waitKind(&api.Names[n])
	}
	var allocated interval.Set
	var evidence []report.MetricRef
	for _, i := range in.CallRows(func(n *trace.APIName) bool { return waitKind(n) == "allocates" }) {
		allocated.Add(api.Start(i), api.End(i))
	}
	t := out.Table("waits")
	for _, e := range kit.Some(in.CallStats().Names, func(name int) bool { return kinds[name] != "" }) {
		n, s := &api.Names[e.Key], e.Summary
		out.From(trace.RoleAPI, int(e.Count), "start", "end", "nameId")
		l := kit.Labels("api", n.Name)
		out.Int("wait.time", l, e.Total).Summary = s
		out.Int("wait.count", l, e.Count)
		t.Row(
			kit.Text("api_name", n.Name), kit.Text("kind", kinds[e.Key]), kit.Int("count", e.Count),
			kit.Int("total", e.Total), kit.Float("mean", s.Mean), kit.Float("p50", s.P50),
			kit.Float("p90", s.P90), kit.Int("max", int64(s.Max)))
		if kinds[e.Key] == "allocates" && len(evidence) < 4 {
			evidence = append(evidence, kit.Ref("wait.time", "api", n.Name))
		}
		if n.OldSync {
			old = true
			out.Find("sync_old", []report.MetricRef{kit.Ref("wait.time", "api", n.Name), kit.Ref("wait.count", "api", n.Name)},
				"It waits for the whole device, as cudaDeviceSynchronize does. It counts neither in sync.total_time nor as the idle cause sync: idle time that it causes is under host.",
				"Wait for one event or stream instead, and only when the host needs the result.").At("cudaThreadSynchronize").OfIdle(in.Step(), e.Total, barrierIdle...)
		}
	}
	t.Cut(in.Options.Top, "count", "total").Add()
	ns := allocated.Within(in.Span.Start, in.Span.End)
	if share := stat.Ratio(ns, in.Span.Len()); share != nil && *share >= allocShare && in.RanKernels() {
		out.Find("allocations",
			evidence,
			"cudaMalloc and cudaFree may wait for the device, and pinning memory (cudaHostAlloc) is slow: allocate once and reuse. In steady state a caching allocator makes no such call. Look for torch.cuda.empty_cache(), fragmentation (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True) and memory limits that force the allocator to give memory back.",
			"If the window holds the start of the program, narrow it ("+in.NarrowFlags()+") before believing this.",
		).OfIdle(in.Step(), ns, timeline.CauseHost, timeline.CauseLaunch)
	}
	return old
}

// waitKind is the kind of a call outside the Synchronize family, or empty.
func waitKind(n *trace.APIName) string {
	switch {
	case n.Poll:
		return "query"
	case n.Wait:
		return "stream wait"
	case n.OldSync:
		return "blocks"
	case allocates(n.Name):
		return "allocates"
	}
	return ""
}

// allocates reports whether a call allocates, frees or pins memory at once. Many such calls wait for the device.
func allocates(name string) bool {
	if strings.Contains(name, "Async") || strings.Contains(name, "FromPool") {
		return false
	}
	for _, prefix := range []string{"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaHostRegister", "cudaHostUnregister",
		"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "cuMemHostUnregister"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
