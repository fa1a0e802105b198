package pairing

import (
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// onlyWarmup says that a capture may hold nothing but warm-up: it has no more units than the other side left out as
// warm-up, none of its own, and they take as long as those and longer than the other's. It is empty if not.
func onlyWarmup(name, other string, s, o *side.View) string {
	own, warm := s.Times(side.Warmup), o.Times(side.Warmup)
	if len(own) > 0 || len(warm) == 0 || s.Time.N > int64(len(warm)) || s.Time.P50 <= o.Time.P90 ||
		s.Time.P50 < slices.Min(warm) || s.Time.P50 > slices.Max(warm) {
		return ""
	}
	return fmt.Sprintf("%s has %s, which take as long as the %d of warm-up that %s begins with, and may be warm-up too: capture more",
		name, wording.Means("steps", float64(s.Time.N)), len(warm), other)
}
