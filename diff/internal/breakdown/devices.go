package breakdown

import (
	"cmp"
	"fmt"
	"math"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
)

// Limits for a class of time that changed on another device than the compared one.
const (
	farMore     = 2.0 // times as much, if it changed the same way
	mostDevices = 2   // that are named
)

// otherDevices names the devices on which a class of time changed the other way than on the compared one, or by far
// more: each with the class that differs most, if that is by more than the noise floor of the unit's time. The device
// that differs most is the first.
func (x *Parts) otherDevices() []string {
	type found struct {
		text string
		far  float64 // ns
	}
	own := Attribute(x.Base, x.Head, comparison.DepthUnit, x.Limits)
	classes := []struct{ id, word string }{{comparison.ClassCompute, "GPU compute"}, {comparison.ClassComm, "exposed communication"},
		{comparison.ClassCopy, "exposed copies"}, {comparison.ClassIdle, "GPU idle"}}
	var list []found
	for _, device := range x.Chosen.Devices {
		base, head := pairing.On(x.Base, x.Head, device)
		if device == x.Chosen.Device || base == nil {
			continue
		}
		other := Attribute(base, head, comparison.DepthUnit, x.Limits)
		most := found{far: x.Floor * own.Base}
		for _, class := range classes { // of two that differ as much, the first
			d, rows := split(own.Rows).part(class.id).Delta, split(other.Rows)
			is := rows.part(class.id).Delta
			opposite := is*d < 0 && math.Abs(is) > pairing.LeastPart*own.Base
			if far := math.Abs(is - d); far > most.far && (opposite || math.Abs(is) > farMore*math.Abs(d)) {
				most = found{fmt.Sprintf("GPU %d: %s %s (%s): --device %[1]d", device, class.word, delta(is),
					rows.change(class.id)), far}
			}
		}
		if most.text != "" {
			list = append(list, most)
		}
	}
	lists.Sort(list, func(a, b found) int { return cmp.Compare(b.far, a.far) })
	return lists.Map(list[:min(len(list), mostDevices)], func(f found) string { return f.text })
}
