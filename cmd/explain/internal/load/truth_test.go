package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/standin"
)

// What the tests of accuracy ask for.
const (
	benchRate   = 2100 // requests per second on average; of the first 10,000 by the seed 0 it is 2,077
	benchTokens = 16   // of each answer
)

// mixedPlans are answers that each take their own time, as a server of a model of some billion parameters does: log-normal, about
// 200 ms to the first token (1 in 100: 400 ms) and 20 ms between two (1 in 100: 32 ms). One percent of the median is 2 ms and 0.2 ms.
func mixedPlans(n int) []standin.Plan {
	random := rand.New(rand.NewPCG(1, 2))
	plans := make([]standin.Plan, n)
	for i := range plans {
		p := standin.Plan{TTFT: time.Duration(200e6 * math.Exp(0.3*random.NormFloat64()))}
		for range benchTokens - 1 {
			p.Gaps = append(p.Gaps, time.Duration(20e6*math.Exp(0.2*random.NormFloat64())))
		}
		plans[i] = p
	}
	return plans
}

// samples of latencies, ns.
type samples struct{ ttft, e2e, tpot, itl []float64 }

// add is one answer, its tokens at these times.
func (s *samples) add(at []time.Duration) {
	last := at[len(at)-1]
	s.ttft, s.e2e = append(s.ttft, float64(at[0])), append(s.e2e, float64(last))
	s.tpot = append(s.tpot, math.Floor(float64(last-at[0])/float64(len(at)-1)))
	for i := 1; i < len(at); i++ {
		s.itl = append(s.itl, float64(at[i]-at[i-1]))
	}
}

// promised is what the plans say.
func promised(plans []standin.Plan) (s samples) {
	for _, p := range plans {
		at := []time.Duration{p.TTFT}
		for _, g := range p.Gaps {
			at = append(at, at[len(at)-1]+g)
		}
		s.add(at)
	}
	return s
}

// off is how far the percentiles that were measured are from those of the samples, of each latency the furthest, relative.
func (s *samples) off(l loadfile.Latency) map[string]float64 {
	off := map[string]float64{}
	for _, c := range []struct {
		name   string
		d      *loadfile.Distribution
		sample []float64
	}{{"ttft", l.TTFT, s.ttft}, {"e2e", l.E2E, s.e2e}, {"tpot", l.TPOT, s.tpot}, {"itl", l.ITL, s.itl}} {
		slices.Sort(c.sample)
		for q, got := range map[float64]float64{0.5: c.d.Summary.P50, 0.9: c.d.Summary.P90, 0.99: c.d.Summary.P99} {
			pos := q * float64(len(c.sample)-1)
			lo := int(pos)
			want := c.sample[lo] + (pos-float64(lo))*(c.sample[min(lo+1, len(c.sample)-1)]-c.sample[lo])
			off[c.name] = max(off[c.name], math.Abs(got-want)/want)
		}
	}
	return off
}

// At benchRate streamed requests per second each percentile is the script's: what the generator does to the numbers, where
// neither its machine nor the server's does anything. BenchmarkAccuracy measures the same with both.
func TestPercentilesAreTheScripts(t *testing.T) {
	plans := mixedPlans(2000)
	script := standin.Script{Plan: func(i int) standin.Plan { return plans[i] }}
	drive(t, script, Options{Rate: benchRate, Requests: len(plans), Mode: "decode"}, func(t *testing.T, r ran) {
		if r.err != nil || r.res.Counts.Succeeded != int64(len(plans)) || r.res.Counts.Late > 0 {
			t.Fatalf("%v %+v", r.err, r.res.Counts)
		}
		truth := promised(plans)
		for name, w := range truth.off(r.res.Latency) {
			if w > 1e-12 {
				t.Errorf("a percentile of %s is %g off", name, w)
			}
		}
	})
}
