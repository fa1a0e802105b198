package gpu

import (
	"cmp"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// The expert rules of `nsys analyze` on copies and memsets.
const (
	ruleAsyncPageable = iota // cuda_memcpy_async: an asynchronous copy to or from pageable memory
	ruleSyncCopy             // a synchronous copy, except small uploads and copies within a device
	ruleSyncMemset           // cuda_memset_sync: a synchronous memset of pinned or managed memory
	copyRuleCount
)

var ruleNames = [copyRuleCount]string{"async_pageable", "sync_copy", "sync_memset"}

// smallUpload is nsys's limit: a synchronous upload up to this size returns once it is staged.
const smallUpload = 64_000

// ruleGroup is the calls that one rule marks at one place of the program.
type ruleGroup struct {
	rule, name, direction, kind, device int32
	rng, phase                          string
}

// ruleSum adds up a group. Copies of one call count its time once.
type ruleSum struct {
	ruleGroup
	count, call, gpu int64
	bytes, longest   int64
	lastCall         int32
}

// copyRules marks the rows whose API call matches one of the rules, and lists the worst places.
func copyRules(in *kit.Input, out *kit.Output, lo, hi, mlo, mhi int) {
	api, c, m := &in.Trace.API, &in.Trace.Copies, &in.Trace.Sets
	groups, where := kit.NewTally[ruleGroup, ruleSum](), kit.NewPlaces(in)
	var total, count [copyRuleCount]int64
	mark := func(rule int, w *trace.Work, i int, call int32, bytes int64, direction, kind int) {
		g := ruleGroup{rule: int32(rule), name: api.Name(int(call)), direction: int32(direction), kind: int32(kind),
			device: w.Device(i)}
		g.rng, g.phase = where.Place(call)
		s := groups.At(g)
		s.gpu += w.Dur(i)
		s.bytes += bytes
		if s.count > 0 && s.lastCall == call {
			return
		}
		d := api.Dur(int(call))
		s.ruleGroup, s.lastCall = g, call
		s.count++
		s.call += d
		s.longest = max(s.longest, d)
		count[rule]++
		total[rule] += d
	}
	for i := lo; i < hi; i++ {
		call := in.Calls.Copy[i]
		if call == trace.None {
			continue
		}
		n := &api.Names[api.Name(int(call))]
		d := kit.Direction(c.Kind(i))
		switch {
		case n.AsyncCopy && pageable(c, i):
			mark(ruleAsyncPageable, &c.Work, i, call, c.Bytes(i), d, kit.MemPageable)
		case n.SyncCopy && !sameDevice(d) && (d != kit.CopyHtoD || c.Bytes(i) > smallUpload):
			mark(ruleSyncCopy, &c.Work, i, call, c.Bytes(i), d, kit.CopySide(c, i))
		}
	}
	for i := mlo; i < mhi; i++ {
		call := in.Calls.Set[i]
		if call == trace.None {
			continue
		}
		if n, k := &api.Names[api.Name(int(call))], m.MemKind(i); n.Memset && !n.AsyncSet &&
			(k == kit.MemPinned || k == kit.MemManaged) {
			mark(ruleSyncMemset, &m.Work, i, call, m.Bytes(i), -1, k)
		}
	}
	lists.Sort(groups.Values, func(a, b *ruleSum) int {
		return cmp.Or(cmp.Compare(b.call, a.call), cmp.Compare(b.gpu, a.gpu))
	})
	t := out.Table("copy_rules")
	for _, s := range groups.Values {
		row := []kit.Field{
			kit.Text("rule", ruleNames[s.rule]), kit.Text("api_name", api.Names[s.name].Name),
			kit.Text("kind", kit.MemKinds[s.kind]), kit.Int("device_id", int64(s.device)),
			kit.Put("range_name", kit.RangeCell(s.rng)), kit.Put("phase", report.OrNull(s.phase)),
			kit.Int("count", s.count), kit.Int("call", s.call), kit.Int("longest", s.longest),
			kit.Int("gpu", s.gpu), kit.Int("bytes", s.bytes),
		}
		if s.direction >= 0 {
			row = append(row, kit.Text("direction", kit.Directions[s.direction]))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "count", "call", "gpu", "bytes").Add()
	for rule := range copyRuleCount {
		role, columns := trace.RoleMemcpy, []string{"correlationId", "srcKind", "dstKind", "bytes", "copyKind"}
		if rule == ruleSyncMemset {
			role, columns = trace.RoleMemset, []string{"correlationId", "memKind"}
		}
		if !in.Trace.Tables.Has(role) || rule == ruleAsyncPageable && !in.Trace.Has.CopyKinds {
			continue // not known
		}
		out.From(trace.RoleAPI, int(count[rule]), "start", "end", "nameId", "correlationId", "globalTid")
		out.Source.With(role, columns...)
		l := kit.Labels("rule", ruleNames[rule])
		out.Int("memcpy.rule_time", l, total[rule])
		out.Int("memcpy.rule_count", l, count[rule])
		if count[rule] > 0 && in.Trace.RanKernels() {
			ruleFinding(in, out, rule)
		}
	}
}

func ruleFinding(in *kit.Input, out *kit.Output, rule int) {
	evidence := []report.MetricRef{kit.Ref("memcpy.rule_time", "rule", ruleNames[rule]),
		kit.Ref("memcpy.rule_count", "rule", ruleNames[rule])}
	s := in.Step()
	switch rule {
	case ruleAsyncPageable:
		out.Find("async_pageable", evidence,
			"Large ones are staged through a buffer of the driver, and their calls return late: allocate the host side pinned (pin_memory=True, cudaHostAlloc) and copy with non_blocking=True.",
		).Costs(s.Worth(s.Staged), s.IdleClaims(s.Staged, timeline.CauseHost, timeline.CauseSync, timeline.CauseLaunch)...)
	case ruleSyncCopy:
		out.Find("sync_copy", evidence,
			"Use cudaMemcpyAsync on pinned memory and a stream, and wait on an event before the result is used (PyTorch: .to(device, non_blocking=True)).",
		).Costs(s.Worth(s.Blocked), s.IdleClaims(s.Blocked, timeline.CauseSync, timeline.CauseHost, timeline.CauseLaunch)...)
	case ruleSyncMemset:
		out.Find("sync_memset", evidence,
			"A memset of pinned or managed memory blocks until it is done: use cudaMemsetAsync on a stream, or set the memory on the host.")
	}
}

// readBacks is the idle time under calls that fetch a value each.
func readBacks(in *kit.Input, out *kit.Output) {
	s := in.Step()
	if s.ReadBacks == 0 {
		return
	}
	out.From(trace.RoleMemcpy, int(s.ReadBacks), "bytes", "copyKind", "correlationId")
	out.Source.With(trace.RoleAPI, "start", "end", "globalTid")
	out.Int("memcpy.read_back_count", nil, s.ReadBacks)
	out.Int("memcpy.read_back_idle", nil, s.ReadBackIdle())
	ofIt := func(ns int64) string {
		return unit.Format(float64(ns)/float64(max(s.Units, 1)), report.Nanoseconds) + " of it"
	}
	title := "The host reads values back from the GPU"
	if s.ReadBackAt != "" {
		title += " in " + kit.Quoted(s.ReadBackAt)
	}
	each := ", " + strconv.FormatInt(s.ReadBacks, 10) + " in the window"
	evidence := kit.Refs("memcpy.read_back_idle", "memcpy.read_back_count")
	if s.Units > 0 {
		out.Float("unit.read_back_count", nil, float64(s.ReadBacks)/float64(s.Units)).N = s.Units
		out.Float("unit.read_back_idle", nil, float64(s.ReadBackIdle())/float64(s.Units)).N = s.Units
		evidence = kit.Refs("unit.read_back_idle", "unit.read_back_count")
		each = ", " + wording.Means("per step", float64(s.ReadBacks)/float64(s.Units))
	}
	idles := ", and the GPU idles meanwhile: " + s.Each(s.ReadBackIdle()) + s.AfterRead.Inside(in.Trace, ofIt)
	out.FindAs("read_backs", title+each+idles, evidence,
		"Each, of up to 64 bytes, is a .item(), .cpu() or .tolist() (or a condition on a GPU value) that waits for all launched work: keep the value on the GPU, or read it one step later.",
		"Pinning does not help copies of this size.",
	).At(s.ReadBackAt).OfIdle(s, s.ReadBackIdle(), kit.CauseReadBack)
}

func sameDevice(copyKind int) bool {
	switch kit.Directions[kit.Direction(copyKind)] {
	case "DtoD", "AtoA", "AtoD", "DtoA", "UVM_DtoD":
		return true
	}
	return false
}

// pageable reports whether a copy touches pageable host memory.
func pageable(c *trace.Copies, i int) bool {
	return c.SrcKind(i) == kit.MemPageable || c.DstKind(i) == kit.MemPageable
}
