package trace

import "github.com/nsys-llm/explain/analyze/internal/spill"

// Memory is where large arrays that are derived from the trace belong.
func (t *Trace) Memory() *spill.Arena { return nil }
