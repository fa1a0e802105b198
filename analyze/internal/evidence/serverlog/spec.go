package serverlog

import (
	"bytes"
	"math"
)

// Spec is what speculative decoding did between two lines of statistics.
type Spec struct {
	Accepted, Drafted int64 // tokens
	// Mean acceptance length: tokens gained by one step, the engine's own included; NaN unknown
	Length    float64
	Positions []float64
}

// maxSpecs bounds the lines that are kept.
const (
	maxSpecs     = 1 << 18
	maxPositions = 64
)

// parseSpec reads vLLM's lines of all versions:
//
//	SpecDecoding metrics: Mean acceptance length: 2.67, Accepted throughput: 3.44 tokens/s, Drafted throughput: 6.18
//	tokens/s, Accepted: 97 tokens, Drafted: 174 tokens, Per-position acceptance rate: 0.879, 0.500, 0.293, Avg Draft
//	acceptance rate: 55.7%
//	SpecDecoding metrics: Draft acceptance rate: 45.9%, Mean acceptance length: 1.92, Accepted: 234 tokens, Drafted: 510 tokens
//	Speculative metrics: Draft acceptance rate: 0.750, System efficiency: 0.600, Number of speculative tokens: 5, Number of
//	accepted tokens: 100, Number of draft tokens: 200, Number of emitted tokens: 120
func parseSpec(m []byte) (s Spec, ok bool) {
	s.Length = numberOf(m, "Mean acceptance length: ")
	for _, keys := range [][2]string{{" Accepted: ", " Drafted: "}, {"accepted tokens: ", "draft tokens: "}} {
		a, ok1 := wholeAfter(m, keys[0])
		d, ok2 := wholeAfter(m, keys[1])
		if ok1 && ok2 {
			s.Accepted, s.Drafted, ok = a, d, true
			break
		}
	}
	if rest, found := after(m, "Per-position acceptance rate: "); found {
		for len(s.Positions) < maxPositions {
			v, more, good := decimal(rest)
			if !good {
				break
			}
			s.Positions = append(s.Positions, v)
			if rest, good = cutPrefix(more, ","); !good {
				break
			}
			rest = bytes.TrimLeft(rest, " ")
		}
	}
	return s, ok || !math.IsNaN(s.Length)
}
