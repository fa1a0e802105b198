package load

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// benchTokens is how many tokens each answer has.
const benchTokens = 16

// mixedPlans are answers that each take their own time, as a server of a model of some billion parameters does: log-normal, about
// 200 ms to the first token (1 in 100: 400 ms) and 20 ms between two (1 in 100: 32 ms).
func mixedPlans(n int) []fakeserver.Plan {
	random := rand.New(rand.NewPCG(1, 2))
	plans := make([]fakeserver.Plan, n)
	for i := range plans {
		p := fakeserver.Plan{TTFT: time.Duration(200e6 * math.Exp(0.3*random.NormFloat64()))}
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
func promised(plans []fakeserver.Plan) (s samples) {
	for _, p := range plans {
		at := []time.Duration{p.TTFT}
		for _, g := range p.Gaps {
			at = append(at, at[len(at)-1]+g)
		}
		s.add(at)
	}
	return s
}

// offset is how far a percentile that was measured is from the truth.
type offset struct{ ns, relative float64 }

// off is how far p50, p90 and p99 that were measured are from those of the samples, of each latency the furthest.
func (s samples) off(l loadfile.Latency) map[string]offset {
	off := map[string]offset{}
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
			o := off[c.name]
			off[c.name] = offset{max(o.ns, math.Abs(got-want)), max(o.relative, math.Abs(got-want)/want)}
		}
	}
	return off
}

// At 2,100 streamed requests per second each percentile is the script's: what the generator does to the numbers, where
// neither its machine nor the server's takes time. BenchmarkAccuracy measures with both, at 500.
func TestPercentilesAreTheScripts(t *testing.T) {
	plans := mixedPlans(2000)
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan { return plans[i] }}
	drive(t, script, Options{Rate: 2100, Requests: len(plans), Mode: "decode"}, func(t *testing.T, r ran) {
		if r.err != nil || r.res.Counts.Succeeded != int64(len(plans)) || r.res.Counts.Late > 0 {
			t.Fatalf("%v %+v", r.err, r.res.Counts)
		}
		truth := promised(plans)
		for name, w := range truth.off(r.res.Latency) {
			if w.relative > 1e-12 {
				t.Errorf("a percentile of %s is %g off", name, w.relative)
			}
		}
	})
}
