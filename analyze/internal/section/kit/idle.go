package kit

import (
	"github.com/nsys-llm/explain/analyze/internal/trace"
)

// NoWork says why there is no GPU work.
func (in *Input) NoWork() string {
	if !in.Has(trace.RoleKernel) {
		return in.Lack(trace.RoleKernel)
	}
	return "the capture holds no GPU work"
}
