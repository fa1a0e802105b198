package steps

import (
	"cmp"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// copies emits the copies of a set of units by direction and kind of memory; those of the primary group have no further
// labels.
func copies(in *kit.Input, out *kit.Output, with report.Labels, s *unitSet) {
	if !in.Trace.Tables.Has(trace.RoleMemcpy) {
		return
	}
	type sums struct{ count, bytes []int64 } // by unit
	sorts, rows := kit.NewTally[copySort, sums](), 0
	eachPiece(in, s, func(d *timeline.Device, i int, unit int32) {
		if d.Kind(i) != timeline.CopyWork {
			return
		}
		sum := sorts.At(copySortOf(in, d, i))
		if sum.count == nil {
			sum.count, sum.bytes = make([]int64, len(s.Units)), make([]int64, len(s.Units))
		}
		sum.count[unit]++
		sum.bytes[unit] += in.Trace.Copies.Bytes(d.Row(i))
		rows++
	}, in.Units.Of)
	out.From(trace.RoleMemcpy, rows, "start", "end", "deviceId", "bytes", "copyKind", "srcKind", "dstKind")
	order := slices.Clone(sorts.Keys)
	lists.Sort(order, func(a, b copySort) int { return cmp.Compare(a.name(), b.name()) })
	for _, c := range order {
		l := kit.And(with, "direction", kit.Directions[c.direction], "kind", kit.MemKinds[c.memory])
		s.summary(out, "memcpy.count_per_unit", l, sorts.At(c).count)
		s.summary(out, "memcpy.bytes_per_unit", l, sorts.At(c).bytes)
	}
}
