package trace

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
)

// keeps chooses the rows: of metadata those with a key on the list and a value that looks like one, of strings those
// that are referred to. It notes what the names of a row refer to, and empties those that nobody reads: of marks,
// categories, domains and resources, and of threads that no table lists.
func (s *scrubber) keeps(role Role, names []string, row []cell) bool {
	switch role {
	case RoleSystem, RoleExport, RoleCapture:
		return keptKeys[role][textOf(&row[0])] != nil && (row[1].Kind == pages.Int || safeValue(textOf(&row[1])))
	case RoleStrings:
		id, ok := row[0].Whole()
		return ok && s.strings[id] != 0
	case RoleNVTX, RoleThreads:
		if !s.isNamed(role, names, row) {
			for i, name := range names {
				if refers(name) || strings.EqualFold(name, "text") {
					row[i] = cell{}
				}
			}
			return true
		}
	case RoleAPI:
		if calls := at(names, row, "nameId", "name"); calls != nil {
			id, ok := calls.Whole()
			named := ok && s.naming[id] || namingCall(textOf(calls))
			if tid := at(names, row, "globalTid", "global_tid"); tid != nil && named {
				if id, ok := tid.Whole(); ok {
					s.waits[id] = true
				}
			}
		}
	}
	as := cmp.Or(uses[role], useName)
	for i, name := range names {
		id, ok := row[i].Bits, row[i].Kind == pages.Int
		if !ok && (role == RoleKernel || role == RoleAPI || role == RoleNVTX) { // whose ids may be written as text
			id, ok = row[i].Whole()
		}
		switch {
		case !ok || !refers(name):
		case strings.EqualFold(name, "module"): // a path, of which the file's own name is kept
			s.strings[id] |= useProgram
		default:
			s.strings[id] |= as
		}
	}
	return true
}

// uses are what the names of a table are of, if not of calls and GPUs.
var uses = map[Role]use{RoleNVTX: useRange, RoleThreads: useRange, RoleProcesses: useProgram,
	RoleKernel: useWork, RoleHostCall: useWork, RoleOSStack: useWork, RoleSampleStack: useWork}

func refers(column string) bool {
	return slices.ContainsFunc(referring, func(r string) bool { return strings.EqualFold(column, r) })
}

// at is the cell of the first of some columns that a table has; nil if it has none.
func at(names []string, row []cell, columns ...string) *cell {
	for _, c := range columns {
		for i, name := range names {
			if strings.EqualFold(name, c) {
				return &row[i]
			}
		}
	}
	return nil
}

// isNamed reports whether the name of an NVTX event or of a thread is read: of ranges, and of threads that wait or
// launch.
func (s *scrubber) isNamed(role Role, names []string, row []cell) bool {
	if role == RoleThreads {
		tid := at(names, row, "globalTid")
		if tid == nil {
			return false
		}
		id, ok := tid.Whole()
		return ok && s.waits[id]
	}
	kind := at(names, row, "eventType")
	return kind == nil || isRange(orNone(kind))
}

// value is a cell as it is written: texts reduced to what is known to be harmless, or to names without tokens.
func (s *scrubber) value(role Role, name string, row []cell, i int) any {
	c := &row[i]
	switch c.Kind {
	case pages.Int:
		return c.Bits
	case pages.Float:
		return math.Float64frombits(uint64(c.Bits))
	case pages.Text:
		switch {
		case role == RoleDiagnostics:
			return diagnosticPhrase(c.S)
		case role == RoleProcesses || strings.EqualFold(name, "module"):
			return s.redact(baseName(c.S))
		case role == RoleGPU && strings.EqualFold(name, "uuid"):
			return fingerprint(c.S)
		case role == RoleGPU && !safeValue(c.S):
			return nil
		case uses[role] == useWork || uses[role] == useRange:
			if _, id := c.Whole(); id { // an id that was rewritten as text
				return strings.Clone(c.S)
			}
			if uses[role] == useWork {
				return s.work(c.S)
			}
			return s.personal(c.S)
		case role == RoleStrings:
			id, _ := row[0].Whole()
			switch as := s.strings[id]; {
			case as&useName != 0:
			case as&useWork != 0:
				return s.work(c.S)
			case as&useProgram != 0:
				return s.redact(baseName(c.S))
			default:
				return s.personal(c.S)
			}
		}
		return strings.Clone(s.redact(c.S))
	case pages.Null, pages.Blob:
	}
	return nil
}

// diagnosticPhrase is the part of a message that diagnosticCode looks for, and null for any other message.
func diagnosticPhrase(text string) any {
	code := diagnosticCode(text)
	for _, d := range diagnostics {
		if d.code == code {
			return d.has
		}
	}
	return nil
}
