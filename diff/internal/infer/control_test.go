package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
)

// 13 kernels moved by 1 % plus -0.0012 … 0.0012 in steps of 0.0002, one by 10 %. The 13 agree; their median is 0.01; the
// distances are 0, 0.0002 twice, … 0.0012 twice and 0.09: of 14, the middle two are the 7th and 8th, 0.0006 and 0.0008.
func TestControlsByHand(t *testing.T) {
	d := []float64{0.10}
	for i := -6; i <= 6; i++ {
		d = append(d, 0.01+0.0002*float64(i))
	}
	c, ok := infer.Controls(d)
	if !ok || c.Kernels != 13 {
		t.Fatalf("%+v, %v", c, ok)
	}
	near(t, "shift", c.Shift, 0.01, 1e-12)
	near(t, "floor", c.Floor, 0.015, 1e-12) // exp(0.01 + 2.326348·1.4826·0.0007) - 1 = 0.01249 is less than 1.5 %
	for i := range d {
		d[i] += 0.01
	}
	c, _ = infer.Controls(d)
	near(t, "floor with the clock", c.Floor, math.Expm1(0.02+2.3263478740408408*1.4826*0.0007), 1e-9)
	if _, ok := infer.Controls(d[:12]); ok {
		t.Error("11 kernels that agree are too few")
	}
	for i := range 14 {
		d = append(d, 0.2+0.01*float64(i))
	}
	if _, ok := infer.Controls(d); ok {
		t.Error("13 of 28 are less than half")
	}
	if _, ok := infer.Controls(append(d, math.NaN())); ok {
		t.Error("not a number")
	}
}

// controlWorld is how two captures of one commit differ: standard deviations of ln of the clock and of each kernel, and
// kernels that jump by 6 % from run to run.
type controlWorld struct {
	name                 string
	clock, kernel        float64
	heavy                bool    // t with 3 degrees of freedom instead of normal
	jumping, probability float64 // share of kernels that jump, and how often
}

func (w *controlWorld) pair(rng *rand.Rand, slow float64) (effects, weights []float64) {
	n := 15 + rng.IntN(46)
	clock := math.Sqrt2 * w.clock * rng.NormFloat64()
	for range n {
		weights = append(weights, math.Exp(1.2*rng.NormFloat64()))
	}
	for i := range n {
		z := rng.NormFloat64()
		if w.heavy {
			var chi float64
			for range 3 {
				v := rng.NormFloat64()
				chi += v * v
			}
			z /= math.Sqrt(chi)
		}
		d := clock + math.Sqrt2*w.kernel*z
		if rng.Float64() < w.jumping {
			if rng.Float64() < w.probability {
				d += math.Log(1.06)
			}
			if rng.Float64() < w.probability {
				d -= math.Log(1.06)
			}
		}
		if i == 0 {
			d += slow
		}
		effects = append(effects, d)
	}
	return effects, weights
}

// gpuTime is the ln ratio of the time of all kernels.
func gpuTime(effects, weights []float64) float64 {
	var b, h float64
	for i, w := range weights {
		b, h = b+w, h+w*math.Exp(effects[i])
	}
	return math.Log(h / b)
}

// A pair's own floor in place of the assumed 5 %, for a rule of +3 % on the GPU time of a unit: how often it fails though
// nothing changed, and how often a kernel that makes the unit 4 % slower is found.
func TestControlsAlarms(t *testing.T) {
	const trials = 3000
	for _, w := range []controlWorld{
		{name: "clock 1 %, kernels 0.1 %", clock: 0.01, kernel: 0.001},
		{name: "clock 1 %, kernels 0.2 %", clock: 0.01, kernel: 0.002},
		{name: "clock 1 %, kernels 0.3 %", clock: 0.01, kernel: 0.003},
		{name: "clock 1 %, kernels 0.5 %", clock: 0.01, kernel: 0.005},
		{name: "clock 1 %, kernels 1 %", clock: 0.01, kernel: 0.01},
		{name: "clock 2 %, kernels 0.2 %", clock: 0.02, kernel: 0.002},
		{name: "clock 1 %, kernels 0.2 %, heavy tails", clock: 0.01, kernel: 0.002, heavy: true},
		{name: "clock 1 %, kernels 0.2 %, one in ten jumps by 6 % in 3 of 10 runs", clock: 0.01, kernel: 0.002,
			jumping: 0.1, probability: 0.3},
	} {
		rng := rand.New(rand.NewPCG(3, 3))
		var agree, alarms, assumed, found, before int
		for range trials {
			d, weights := w.pair(rng, 0)
			floor := infer.AssumedFloor
			if c, ok := infer.Controls(d); ok {
				agree++
				floor = min(floor, c.Floor)
			}
			change := gpuTime(d, weights)
			if change > max(math.Log1p(0.03), math.Log1p(floor)) {
				alarms++
			}
			if change > math.Log1p(infer.AssumedFloor) {
				assumed++
			}
			// Kernel 0 is 15 % of the time and becomes slower by 4/15: the unit by 4 %.
			rest := 0.0
			for _, v := range weights[1:] {
				rest += v
			}
			weights[0] = rest * 0.15 / 0.85
			d[0] += math.Log1p(0.04 / 0.15)
			floor = infer.AssumedFloor
			if c, ok := infer.Controls(d); ok {
				floor = min(floor, c.Floor)
			}
			change = gpuTime(d, weights)
			if change > max(math.Log1p(0.03), math.Log1p(floor)) {
				found++
			}
			if change > math.Log1p(infer.AssumedFloor) {
				before++
			}
		}
		// The clock alone can exceed any floor; where it does not, false alarms stay below 1 %, and never far above what the
		// assumed floor has.
		if limit := max(assumed+trials/200, trials/100); alarms > limit {
			t.Errorf("%s: %d false alarms in %d, %d with the assumed floor", w.name, alarms, trials, assumed)
		}
		if agree > trials*9/10 && found < 2*before && w.clock <= 0.01 {
			t.Errorf("%s: a change of 4 %% found %d times, %d with the assumed floor", w.name, found, before)
		}
		percent := func(n int) float64 { return 100 * float64(n) / float64(trials) }
		t.Logf("| %s | %.0f %% | %.1f %% | %.1f %% | %.0f %% | %.0f %% |", w.name, percent(agree), percent(assumed),
			percent(alarms), percent(before), percent(found))
	}
}
