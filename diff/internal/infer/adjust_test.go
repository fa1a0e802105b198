package infer_test

import (
	"math"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/diff/internal/infer"
	"pgregory.net/rapid"
)

// p ascending: 0.005, 0.01, 0.03, 0.04. Holm: 4·0.005 = 0.02, 3·0.01 = 0.03, 2·0.03 = 0.06, then 1·0.04 raised to 0.06.
// Benjamini-Hochberg from the end: 0.04, 4/3·0.03 = 0.04, 4/2·0.01 = 0.02, 4·0.005 = 0.02.
func TestAdjustByHand(t *testing.T) {
	p := []float64{0.01, 0.04, 0.03, 0.005}
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		near(t, "Holm", infer.Holm(p)[i], want, 1e-15)
	}
	for i, want := range []float64{0.02, 0.04, 0.04, 0.02} {
		near(t, "BH", infer.BH(p)[i], want, 1e-15)
	}
	if len(infer.Holm(nil)) != 0 || len(infer.BH(nil)) != 0 {
		t.Error("nothing to adjust")
	}
}

func TestAdjustProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "p")
		holm, bh := infer.Holm(p), infer.BH(p)
		for i := range p {
			if !(p[i] <= bh[i]+1e-15 && bh[i] <= holm[i]+1e-15 && holm[i] <= min(1, float64(len(p))*p[i])+1e-12) {
				t.Fatalf("p %v, BH %v, Holm %v", p[i], bh[i], holm[i])
			}
			for k := range p {
				if p[i] < p[k] && (bh[i] > bh[k] || holm[i] > holm[k]) {
					t.Fatal("the order changed")
				}
			}
		}
		if len(p) == 1 && (holm[0] != p[0] || bh[0] != p[0]) {
			t.Fatal("one p is its own adjustment")
		}
	})
}

// 21 kernels: capture 2 of the base is 3 % slower throughout, head is 5 % slower throughout, kernel 0 another 10 %. The mean
// of the base is 0.01 above each kernel's own value, so the deviations are -0.01, 0.02, -0.01 and all are taken out.
func TestCommonModeByHand(t *testing.T) {
	var samples []infer.Sample
	for j := range 21 {
		own := float64(j)
		extra := 0.0
		if j == 0 {
			extra = 0.10
		}
		samples = append(samples, infer.Sample{Base: []float64{own, own + 0.03, own}, Head: []float64{own + 0.05 + extra, own + 0.05 + extra}})
	}
	shift, adjusted, ok := infer.CommonMode(samples)
	if !ok {
		t.Fatal("21 kernels are enough")
	}
	near(t, "shift", shift, 0.04, 1e-12) // 0.05 less the base's own mean of 0.01
	for j, s := range adjusted {
		want := float64(j) + 0.01
		for _, v := range s.Base {
			near(t, "base", v, want, 1e-12)
		}
		if j == 0 {
			want += 0.10
		}
		for _, v := range s.Head {
			near(t, "head", v, want, 1e-12)
		}
	}
	if samples[0].Base[1] != 0.03 {
		t.Error("the samples themselves changed")
	}
	// With one complete kernel too few, or with gaps that leave one too few, nothing is taken out.
	samples = samples[:infer.MinCommon+1]
	if _, same, ok := infer.CommonMode(samples[:infer.MinCommon-1]); ok || same[3].Head[0] != samples[3].Head[0] {
		t.Error("one kernel less than MinCommon is too few")
	}
	samples[4].Base[0], samples[5].Head[1] = math.NaN(), math.NaN()
	if _, _, ok := infer.CommonMode(samples); ok {
		t.Error("one complete kernel less than MinCommon is too few")
	}
	samples[4].Base[0] = 4
	if _, same, ok := infer.CommonMode(samples); !ok || !math.IsNaN(same[5].Head[1]) || math.Abs(same[5].Head[0]-5.01) > 1e-12 {
		t.Error("a kernel that a capture lacks is adjusted where it is there")
	}
}

// Whatever moves all kernels of a capture alike changes nothing that is left.
func TestCommonModeTakesOutAnyShift(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		captures := rapid.IntRange(1, 4).Draw(t, "captures")
		values := rapid.SliceOfN(rapid.Float64Range(-1, 1), 2*captures, 2*captures)
		move := values.Draw(t, "move")
		var samples, moved []infer.Sample
		for range 25 {
			v := values.Draw(t, "values")
			w := slices.Clone(v)
			for i := range w {
				w[i] += move[i]
			}
			samples = append(samples, infer.Sample{Base: v[:captures], Head: v[captures:]})
			moved = append(moved, infer.Sample{Base: w[:captures], Head: w[captures:]})
		}
		_, a, _ := infer.CommonMode(samples)
		_, b, _ := infer.CommonMode(moved)
		ra, rb := infer.TREAT(a, 0.01, 0.05, false), infer.TREAT(b, 0.01, 0.05, false)
		for i := range ra {
			if math.Abs(ra[i].Effect-rb[i].Effect) > 1e-9 || math.Abs(ra[i].S2-rb[i].S2) > 1e-9 {
				t.Fatalf("%+v and, moved, %+v", ra[i], rb[i])
			}
		}
	})
}

func TestCaptureShifts(t *testing.T) {
	// Two captures, the second 2 % above the first: ±0.01 around the mean.
	kernels := make([][]float64, 20)
	for j := range kernels {
		kernels[j] = []float64{float64(j), float64(j) + 0.02}
	}
	shifts, adjusted, ok := infer.CaptureShifts(kernels)
	if !ok {
		t.Fatal("20 kernels are enough")
	}
	near(t, "first", shifts[0], -0.01, 1e-12)
	near(t, "second", shifts[1], 0.01, 1e-12)
	near(t, "left", adjusted[7][0]-adjusted[7][1], 0, 1e-12)
	if _, _, ok := infer.CaptureShifts(kernels[:infer.MinCommon-1]); ok {
		t.Error("one kernel less than MinCommon is too few")
	}
	if _, _, ok := infer.CaptureShifts(nil); ok {
		t.Error("no kernels")
	}
}
