package gpu

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

var Memory = kit.Section{
	ID: "gpu_memory", Group: report.GroupMemory, Title: "GPU memory",
	Derivation: "Allocations and frees that the driver reports, from the start of the capture to the end of the window. " +
		"Allocations before the capture are not known: a free of one is counted separately and changes nothing. A caching " +
		"allocator asks the driver for large pieces, so this is the memory that it holds, not the memory that tensors use.",
	Metrics: []report.MetricDef{
		report.Define("gpu_memory.peak", report.Bytes, report.Lower, report.Noisy, report.Level, report.Device,
			"most device memory held at once, of the allocations that the capture saw").By("device"),
		report.Define("gpu_memory.growth", report.Bytes, report.Lower, report.Noisy, report.Total, report.Device,
			"device memory allocated in the window less what was freed in it").By("device"),
		kit.NoisyCount("gpu_memory.allocations", report.Lower, report.Device,
			"allocations of device memory in the window").By("device"),
		report.Define("gpu_memory.pool_peak", report.Bytes, report.Lower, report.Noisy, report.Level, report.Device,
			"largest size of a memory pool").By("device"),
		report.Define("gpu_memory.pool_used_peak", report.Bytes, report.None, report.Noisy, report.Level, report.Device,
			"most memory of a pool in use at a time").By("device"),
		kit.NoisyCount("gpu_memory.unknown_frees", report.None, report.Device,
			"frees in the capture of memory that it did not see allocated").By("device"),
	},
	Tables: []report.Table{
		{ID: "allocations", Title: "Largest allocations", File: "gpu_allocations.csv", Merge: report.Leave, Columns: []report.Column{
			kit.IDCol("device_id", "GPU"),
			kit.IDCol("pid", "PID"),
			kit.TextCol("kind", "Memory"),
			kit.BytesCol("bytes", "Bytes"),
			kit.MomentCol("start", "Allocated", "start_ns"),
			kit.MomentCol("end", "Freed", "end_ns"),
			kit.TextCol("pool", "From a pool"),
		}},
	},
	Run: gpuMemory,
}

// deviceMemory is the sums over a device's events.
type deviceMemory struct {
	held, peak, growth                int64
	allocations, unknown, pool, inUse int64
	rows                              int
}

// held is memory that was allocated, and when it was freed again: 0 until then.
type heldMemory struct {
	*trace.Alloc
	freed int64
}

func gpuMemory(in *kit.Input, out *kit.Output) {
	if !in.Trace.Tables.Has(trace.RoleAlloc) {
		out.Status(report.Unavailable, "the capture has no events of GPU memory (table "+in.Trace.Tables.Name(trace.RoleAlloc)+
			"): capture with --cuda-memory-usage=true (explain capture --cuda-memory)")
		return
	}
	type place struct {
		owner, address int64
		device         int32
	}
	devices, open := kit.NewTally[int32, deviceMemory](), map[place]int{}
	var list []heldMemory
	for i := range in.Trace.Allocs {
		a := &in.Trace.Allocs[i]
		if a.Start > in.Span.End {
			break
		}
		d := devices.At(a.Device)
		d.rows++
		d.pool, d.inUse = max(d.pool, a.PoolSize), max(d.inUse, a.PoolUsed)
		at := place{a.Owner, a.Address, a.Device}
		n, known := open[at]
		if a.Free && !known {
			d.unknown++
			continue
		}
		more, allocated := a.Bytes, int64(1)
		if a.Free {
			delete(open, at)
			list[n].freed = a.Start
			more, allocated = -list[n].Bytes, 0
		} else {
			n, open[at] = len(list), len(list)
			list = append(list, heldMemory{a, 0})
		}
		if k := list[n].Kind; k != kit.MemDevice && k != kit.MemArray {
			continue
		}
		d.held += more
		d.peak = max(d.peak, d.held)
		if a.Start >= in.Span.Start {
			d.growth += more
			d.allocations += allocated
		}
	}
	for _, id := range slices.Sorted(slices.Values(devices.Keys)) {
		d, l := devices.At(id), kit.Labels("device", strconv.Itoa(int(id)))
		out.From(trace.RoleAlloc, d.rows, "start", "bytes", "memoryOperationType", "memKind", "address", "deviceId", "globalPid")
		out.Int("gpu_memory.peak", l, d.peak)
		out.Int("gpu_memory.growth", l, d.growth)
		out.Int("gpu_memory.allocations", l, d.allocations)
		out.Int("gpu_memory.unknown_frees", l, d.unknown)
		if d.pool > 0 {
			out.Source.With(trace.RoleAlloc, "localMemoryPoolSize", "localMemoryPoolUtilizedSize")
			out.Int("gpu_memory.pool_peak", l, d.pool)
			out.Int("gpu_memory.pool_used_peak", l, max(d.inUse, 0))
		}
	}
	allocationTable(in, out, list)
}

func allocationTable(in *kit.Input, out *kit.Output, list []heldMemory) {
	lists.Sort(list, func(a, b heldMemory) int { return cmp.Compare(b.Bytes, a.Bytes) })
	t := out.Table("allocations")
	for i := range list[:min(len(list), in.Options.DetailRows)] {
		a := &list[i]
		row := []kit.Field{kit.Int("device_id", int64(a.Device)), kit.Text("kind", kit.MemKinds[kit.MemKind(int(a.Kind))]),
			kit.Int("bytes", a.Bytes), kit.Int("start", a.Start), kit.Text("pool", map[bool]string{false: "no", true: "yes"}[a.Pool != 0])}
		if a.Owner != 0 {
			row = append(row, kit.Int("pid", a.Owner>>24&0xffffff))
		}
		if a.freed != 0 {
			row = append(row, kit.Int("end", a.freed))
		}
		t.Partial(row...)
	}
	t.Cut(in.Options.Top, "bytes").Add()
}
