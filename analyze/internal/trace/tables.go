package trace

import (
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// events is one event table while it is being read: which columns, and what becomes of the rows.
type events interface {
	// columns are the columns to read, in the order of the cells of a row; one that the table lacks reads as NULL.
	columns(t source.Table) []string
	// sink returns what takes the rows that one goroutine reads.
	sink() pages.Sink
	// settle makes the final columns of what the sinks took.
	settle()
	common() *eventTable
}

// newEvents are the readers of the event tables, by role.
func newEvents(l *loader) map[Role]events {
	return map[Role]events{
		RoleKernel: newKernelTable(l),
		RoleMemcpy: newCopyTable(l),
		RoleMemset: newSetTable(l),
		RoleGraph:  newGraphTable(l),
		RoleSync:   newSyncTable(l),
		RoleAPI:    newAPITable(l),
		RoleNVTX:   newRangeTable(l),

		RoleOS:          newOSTable(l),
		RoleOSStack:     newFrameTable(l, &l.trace.OSStacks),
		RoleSched:       newSchedTable(l),
		RoleSample:      newSampleTable(l),
		RoleSampleStack: newFrameTable(l, &l.trace.SampleStack),
		RoleCounter:     newCounterTable(l),
	}
}

// each collects one thing of every part.
func each[P, T any](parts []P, get func(P) T) []T {
	list := make([]T, len(parts))
	for i, p := range parts {
		list[i] = get(p)
	}
	return list
}

func itself[K any](k K) K { return k }
