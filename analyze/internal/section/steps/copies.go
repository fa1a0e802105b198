package steps

import (
	"cmp"

	"github.com/nsys-llm/explain/analyze/internal/section/kit"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// copies emits the copies of a set of units by direction and kind of memory; those of the primary group have no further
// labels.
func copies(in *kit.Input, out *kit.Output, with report.Labels, s *unitSet) {
	x, c := in.Units, &in.Trace.Copies
	if !in.Trace.Tables.Has(trace.RoleMemcpy) {
		return
	}
	index := x.Units[s.Units[0]].Index
	place := unitPlaces(in, s)
	type group struct{ direction, kind string }
	var groups []group
	list := newParts(0) // here name is the group, and ns the bytes
	rows := 0
	device := x.Timeline.Devices[index]
	members := x.Of[index].Walk()
	for i := range device.Len() {
		if device.Kind(i) != timeline.CopyWork { // few are
			continue
		}
		u := members.Of(i)
		if u == trace.None || place[u] == 0 {
			continue
		}
		row := device.Row(i)
		g := group{kit.Directions[kit.Direction(c.Kind(row))], kit.MemKinds[kit.CopySide(c, row)]}
		at := lists.Place[int32](&groups, g)
		lists.At(&list.last, at)
		list.add(at, place[u]-1, c.Bytes(row))
		rows++
	}
	out.From(trace.RoleMemcpy, rows, "start", "end", "deviceId", "bytes", "copyKind", "srcKind", "dstKind")
	order := lists.Indexes[int32](len(groups))
	lists.Sort(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(groups[a].direction, groups[b].direction),
			cmp.Compare(groups[a].kind, groups[b].kind))
	})
	slot := slotsOf(order, len(groups))
	w := &unitWork{names: len(groups), units: len(s.Units)}
	count := w.samples(list, slot, len(groups), partCount)
	moved := w.samples(list, slot, len(groups), partTime)
	for i, g := range order {
		l := func() report.Labels { return kit.And(with, "direction", groups[g].direction, "kind", groups[g].kind) }
		s.summary(out, "memcpy.count_per_unit", l(), count[i])
		s.summary(out, "memcpy.bytes_per_unit", l(), moved[i])
	}
}
