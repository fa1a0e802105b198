package trace

// newEvents are the readers of the event tables, by role.
func newEvents(l *loader) map[Role]*eventTable {
	return map[Role]*eventTable{
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
