package breakdown

import (
	"math"

	"github.com/nsys-llm/explain/diff/internal/side"
)

// gapChange is the change at one position of a step, ns.
type gapChange struct {
	idle, work float64 // of the gap before the work, and of the work
	synced     bool    // the host waited for the device in the gap, so that it is late if the work before is
}

func changeOf(base, head *side.Position) gapChange {
	return gapChange{head.Idle() - base.Idle(), head.Copies + head.Alone - base.Copies - base.Alone,
		base.Gap[0]+head.Gap[0] > 0} // the first of report.StepCauses: of a wait, only its end lies in the gap
}

// filled returns the part of the change of idle time that longer work fills, below 0, or shorter work leaves, above 0:
// the device is late by what work takes longer until gaps before the next work are shorter by as much, as the host
// launches that when it did before. If the host waits for the device, it is late too, and the gap stays. What the
// end of the step leaves over goes on at the start of the next.
func filled(list []gapChange) (sum float64) {
	late := 0.0
	for again := range 2 {
		for i := range list {
			g := &list[i]
			if g.synced {
				late = 0
				if again == 1 {
					return sum
				}
			}
			if g.idle*late < 0 {
				part := math.Copysign(min(math.Abs(g.idle), math.Abs(late)), g.idle)
				sum, late, g.idle = sum+part, late+part, g.idle-part
			}
			if again == 0 {
				late += g.work
			}
		}
	}
	return sum
}
