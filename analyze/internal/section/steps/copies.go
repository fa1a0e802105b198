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
	x := in.Units
	if !in.Trace.Tables.Has(trace.RoleMemcpy) {
		return
	}
	index := x.Units[s.Units[0]].Index
	place := unitPlaces(in, s)
	var groups []copySort
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
		at := lists.Place[int32](&groups, copySortOf(in, device, i))
		lists.At(&list.last, at)
		list.add(at, place[u]-1, in.Trace.Copies.Bytes(device.Row(i)))
		rows++
	}
	out.From(trace.RoleMemcpy, rows, "start", "end", "deviceId", "bytes", "copyKind", "srcKind", "dstKind")
	order := lists.Indexes[int32](len(groups))
	lists.Sort(order, func(a, b int32) int { return cmp.Compare(groups[a].name(), groups[b].name()) })
	slot := slotsOf(order, len(groups))
	w := &unitWork{names: len(groups), units: len(s.Units)}
	count := w.samples(list, slot, len(groups), partCount)
	moved := w.samples(list, slot, len(groups), partTime)
	for i, g := range order {
		l := kit.And(with, "direction", kit.Directions[groups[g].direction], "kind", kit.MemKinds[groups[g].memory])
		s.summary(out, "memcpy.count_per_unit", l, count[i])
		s.summary(out, "memcpy.bytes_per_unit", l, moved[i])
	}
}
