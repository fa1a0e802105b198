package trace

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Tables are the tables of a capture that were read.
type Tables []TableStat

// Has reports whether a table with that role holds rows.
func (list Tables) Has(role Role) bool {
	return slices.ContainsFunc(list, func(t TableStat) bool { return t.Role == role && t.Rows > 0 })
}

// Name is the name of the table with that role in this capture, or the name it usually has.
func (list Tables) Name(role Role) string {
	if i := slices.IndexFunc(list, func(t TableStat) bool { return t.Role == role }); i >= 0 {
		return list[i].Name
	}
	return UsualTable(role)
}

// UsualTable is the name that the table with that role usually has.
func UsualTable(role Role) string {
	return lists.Find(roles, func(s *roleSpec) bool { return s.role == role }).candidates[0]
}
