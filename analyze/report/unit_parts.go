package report

import (
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// UnitParts is where the time of the kept units of one kind went on its slowest device, unit by unit: a comparison
// judges each part as a series of its own. The parts of a unit sum to its duration: a unit lasts until the next one, so
// that what lies between two is in its idle time.
type UnitParts struct {
	Group  string     `json:"group"`  // id of the kind
	Device int64      `json:"device"` // deviceId
	Number []int64    `json:"number"` // runs of the change of the units' Number, see [UnitPoint]: all units or a sample of them
	Parts  []UnitPart `json:"parts"`  // those with most time first, kind by kind
}

// UnitPart is one part. A family of kernels has the time that is its alone, copies that in which no kernel runs.
type UnitPart struct {
	Kind string  `json:"kind"`
	Name string  `json:"name"` // family of kernels, direction and memory of copies, cause of idle time; empty: the others
	Time []int64 `json:"time"` // ns by unit, changes
}

const (
	PartCompute = "compute"
	PartComm    = "comm" // exposed
	PartCopy    = "copy" // exposed, memsets included
	PartIdle    = "idle"
)

// maxPartUnits bounds what a list of parts may hold.
const maxPartUnits = 4096

// NewUnitParts encodes the parts of units of these numbers.
func NewUnitParts(group string, device int64, numbers []int64) *UnitParts {
	p := &UnitParts{Group: group, Device: device, Number: []int64{}, Parts: []UnitPart{}}
	before := int64(0)
	for _, n := range numbers {
		p.Number = lists.AddRun(p.Number, n-before)
		before = n
	}
	return p
}

// Add appends a part: ns by unit.
func (p *UnitParts) Add(kind, name string, times []int64) {
	changes := slices.Clone(times)
	for i := len(changes) - 1; i > 0; i-- {
		changes[i] -= changes[i-1]
	}
	p.Parts = append(p.Parts, UnitPart{kind, name, changes})
}

// Numbers of the units, in the order in which parts list them.
func (p *UnitParts) Numbers() ([]int64, error) {
	total := int64(0)
	for i := 1; i < len(p.Number); i += 2 {
		if p.Number[i] < 0 || p.Number[i] > maxPartUnits-total {
			return nil, fmt.Errorf("more than %d units", maxPartUnits)
		}
		total += p.Number[i]
	}
	x := expander{n: int(total)}
	list := x.column("number", p.Number, -1<<40, 1<<40)
	for i := 1; i < len(list); i++ {
		list[i] += list[i-1]
	}
	return list, x.err
}

// Times of the part, ns by unit.
func (p *UnitPart) Times() []int64 {
	list := slices.Clone(p.Time)
	for i := 1; i < len(list); i++ {
		list[i] += list[i-1]
	}
	return list
}

// PartsOf is where the units of a kind went; nil if that is not known.
func (u *Unit) PartsOf(group string, device int64) *UnitParts {
	for _, p := range u.Parts {
		if p.Group == group && p.Device == device {
			return p
		}
	}
	return nil
}

func (p *UnitParts) validate() error {
	if p == nil {
		return fmt.Errorf("is null")
	}
	numbers, err := p.Numbers()
	if err != nil {
		return err
	}
	for i := range p.Parts {
		if len(p.Parts[i].Time) != len(numbers) {
			return fmt.Errorf("part %d has %d times for %d units", i, len(p.Parts[i].Time), len(numbers))
		}
		if slices.ContainsFunc(p.Parts[i].Times(), func(ns int64) bool { return ns < 0 }) {
			return fmt.Errorf("part %d has a time below 0", i)
		}
	}
	return nil
}
