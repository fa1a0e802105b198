// Package workunit finds the unit of work: the step that a workload repeats, from markers, CUDA graph launches or the
// kernel sequence itself (design.md, section 5).
package workunit

// Result is what was found.
type Result struct {
	Kind   string // nvtx, graph, kernel, none
	Name   string
	Why    string
	Units  []Unit // by device, then start
	Groups []Group
}

// Unit is one step on one device.
type Unit struct {
	Device     int32
	Start, End int64 // End is the start of the next unit, so that idle inside and between units counts
	Group      int32 // index into Groups
	State      State
}

// State says whether a unit takes part in statistics.
type State uint8

// States of a unit.
const (
	Kept State = iota
	Cut
	Warmup
	Other
)

// Group is one kind of unit.
type Group struct {
	Phase     string
	Batch     int64 // -1 unknown
	Signature string
}
