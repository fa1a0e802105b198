package side

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// Series are all units of the view's device in the order in which they ran, whatever became of them, and which of them
// are the view's; nil where the report has no such list, or not of every unit.
func (v *View) Series() (units []report.UnitPoint, kept []bool) {
	u := &v.C.Report.Unit
	group := slices.IndexFunc(u.Groups, func(g report.UnitGroup) bool { return g.ID == v.group.ID })
	if u.Series == nil || u.Series.Every != 1 || group < 0 {
		return nil, nil
	}
	all, err := u.Series.Decode()
	if err != nil {
		return nil, nil
	}
	for _, p := range all {
		if p.Device == v.group.Device {
			units = append(units, p)
			kept = append(kept, p.Group == int64(group) && report.UnitStates[p.State] == "kept")
		}
	}
	return units, kept
}

// Ran reports whether a unit ran as a whole, inside the window that was analysed.
func Ran(u report.UnitPoint) bool {
	s := report.UnitStates[u.State]
	return s != "cut" && s != "outside"
}
