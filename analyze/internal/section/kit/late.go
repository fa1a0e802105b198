package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// LateCall is the call of the launching thread while a device waited for it.
type LateCall struct {
	Cause int   // timeline.HostAPI, HostProfiler or HostOS
	What  int64 // index of the API's name; id of the function of the operating system
}

// LateCallOf is the call during a stretch of host time; ok is false if there is none.
func LateCallOf(t *trace.Trace, p *timeline.HostPiece) (c LateCall, ok bool) {
	c.Cause = p.Cause
	switch p.Cause {
	case timeline.HostAPI:
		c.What = int64(t.API.Name(int(p.Row)))
	case timeline.HostOS:
		os := &t.OS
		c.What = os.Subjects[os.Subject(int(p.Row))].What
	case timeline.HostProfiler:
	default:
		return c, false
	}
	return c, true
}

// Name of the call.
func (c *LateCall) Name(t *trace.Trace) string {
	switch c.Cause {
	case timeline.HostAPI:
		return t.API.Names[c.What].Name
	case timeline.HostOS:
		return t.OSName(c.What)
	}
	return "[profiler]"
}

// FromThreads sets the source of metrics of late launching threads: every table that tells why they were late.
func FromThreads(out *Output, rows int) {
	out.From(trace.RoleAPI, rows, "start", "end", "nameId", "globalTid")
	for _, role := range []trace.Role{trace.RoleOverhead, trace.RoleOS, trace.RoleSched} {
		out.Source.With(role)
	}
}
