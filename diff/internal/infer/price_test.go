package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
)

// Times of 10 + 2·batch + 0.01·tokens lie in what the fit can be: it finds them again, and prices the base's work with no
// error, though the head ran larger batches. Beyond the units of a side, and in corners where none lies, there is no price.
func TestFitFindsTheLine(t *testing.T) {
	var base, head []infer.Work
	cost := func(batch, tokens float64) float64 { return 10 + 2*batch + 0.01*tokens }
	for i := range 400 {
		batch, tokens := float64(1+i%20), float64(100*(1+(i*7)%30))
		base = append(base, infer.Work{Batch: batch, Tokens: tokens, Time: cost(batch, tokens)})
		batch += 5
		head = append(head, infer.Work{Batch: batch, Tokens: tokens, Time: 1.1 * cost(batch, tokens)})
	}
	f, ok := infer.FitTime(base)
	if !ok || f.Residual > 1e-4 {
		t.Fatalf("%+v, %v", f, ok)
	}
	got, ok := f.At(10, 1500)
	if near(t, "at 10 sequences and 1,500 tokens", got, 45, 1e-3); !ok {
		t.Error("inside the support")
	}
	for _, w := range [][2]float64{{21, 1500}, {10, 3001}, {0, 100}} {
		if _, ok := f.At(w[0], w[1]); ok {
			t.Errorf("%v is beyond the units", w)
		}
	}
	p, ok := infer.Price(base, head, 0.05, 1)
	if !ok || p.Exact != 0 || p.Fitted+p.Unpriced < 1-1e-9 || p.Unpriced < 0.1 || p.Unpriced > 0.4 {
		t.Fatalf("%+v, %v", p, ok)
	}
	near(t, "ratio", p.Ratio, 1.1, 1e-3)
}

// Nine steps of batch 1 at 10 and nine of batch 2 at 30, priced at 11 and 27, of which the head ran other numbers:
// (9·11 + 9·27)/(9·10 + 9·30) = 0.95.
func TestPriceByHand(t *testing.T) {
	add := func(list []infer.Work, n int, batch, time float64) []infer.Work {
		for range n {
			list = append(list, infer.Work{Batch: batch, Tokens: batch, Time: time})
		}
		return list
	}
	base := add(add(nil, 9, 1, 10), 9, 2, 30)
	head := add(add(nil, 20, 1, 11), 8, 2, 27)
	p, ok := infer.Price(base, head, 0.05, 1)
	if !ok || p.Exact != 1 || p.Unpriced != 0 || p.Fitted != 0 {
		t.Fatalf("%+v, %v", p, ok)
	}
	near(t, "ratio", p.Ratio, 0.95, 1e-12)
	// Without batch 2 on the head's side, 270 of 360 have no price.
	p, ok = infer.Price(base, head[:20], 0.05, 1)
	near(t, "unpriced", p.Unpriced, 0.75, 1e-12)
	if near(t, "ratio", p.Ratio, 1.1, 1e-12); !ok {
		t.Error("batch 1 has a price")
	}
	if _, ok := infer.Price(base, add(nil, 9, 3, 5), 0.05, 1); ok {
		t.Error("nothing in common")
	}
	if _, ok := infer.Price(add(nil, 9, 1, math.NaN()), base, 0.05, 1); ok {
		t.Error("not a number")
	}
}

// The time never falls with the work, whatever the units say.
func TestFitIsMonotone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var units []infer.Work
	for range 200 {
		b, k := float64(1+rng.IntN(64)), float64(rng.IntN(100000))
		units = append(units, infer.Work{Batch: b, Tokens: k, Time: math.Exp(2 - b/100 + 0.5*rng.NormFloat64())})
	}
	f, ok := infer.FitTime(units)
	if !ok || f.Residual < 0.1 {
		t.Fatalf("%v %v", f, ok)
	}
	last := 0.0
	for b := 1.0; b <= 64; b++ {
		if v, ok := f.At(b, 50000); ok {
			if v < last {
				t.Errorf("batch %v takes %v, less than %v", b, v, last)
			}
			last = v
		}
	}
}

// Continuous batching: every step has its own batch and tokens, the head ran other ones, and is 6 % slower for the same
// work. The price finds it, the means of the steps do not; 90 % intervals hold it.
func TestPriceOfContinuousBatching(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 3))
	run := func(factor, load float64) (units []infer.Work) {
		batch, noise := load, 0.0
		for range 300 {
			batch = min(max(batch+4*rng.NormFloat64()+0.1*(load-batch), 1), 64)
			tokens := batch * (300 + 400*rng.Float64())
			noise = 0.3*noise + math.Sqrt(1-0.09)*rng.NormFloat64()
			// Attention grows with the tokens and the rest in steps of 8 sequences: not quite what is fitted.
			time := 4000 + 600*math.Ceil(batch/8) + 0.1*tokens
			units = append(units, infer.Work{Batch: math.Round(batch), Tokens: math.Round(tokens), Time: factor * time * math.Exp(0.02*noise)})
		}
		return units
	}
	const trials = 20
	held, off, far := 0, 0.0, 0.0
	for k := range trials {
		base, head := run(1, 30), run(1.06, 24)
		p, ok := infer.Price(base, head, 0.05, uint64(k))
		if !ok {
			t.Fatal("no price")
		}
		if p.Low <= 1.06 && 1.06 <= p.High {
			held++
		}
		off += math.Abs(p.Ratio/1.06 - 1)
		times := func(list []infer.Work) (v []float64) {
			for _, u := range list {
				v = append(v, u.Time)
			}
			return v
		}
		far += math.Abs(mean(times(head))/mean(times(base))/1.06 - 1)
	}
	t.Logf("off by %.2f %% on average, the means by %.2f %%; %.0f %% of the intervals hold it", 100*off/trials, 100*far/trials, 100*float64(held)/trials)
	if off/trials > 0.01 || far/trials < 0.03 || held < trials*70/100 {
		t.Errorf("off by %.2f %%, means by %.2f %%, held %d of %d", 100*off/trials, 100*far/trials, held, trials)
	}
}
