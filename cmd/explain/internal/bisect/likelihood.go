package bisect

import (
	"math"

	"github.com/nsys-llm/explain/analyze/report/order"
)

// fitted is a linear model of the captures at its most likely values: a level, the change, machine offsets.
type fitted struct {
	theta []float64 // level, change if there is one, offsets of machines from the second on
	se    float64   // standard error of the change
	log   float64   // log evidence: the likelihood, integrated over all values
}

// slope is the shape of many commits that change a little each.
func (s *Search) slope(commit int) float64 { return float64(commit) / float64(s.n) }

// fit returns the fit if a commit gets shape(commit) times the change; a nil shape means no change. It is the fit under
// the likelier of two priors of the change, and the evidence under both: a change is as a rule some times the noise,
// and now and then half of the value or more.
func (s *Search) fit(shape func(commit int) float64) fitted {
	best := s.fitPrior(shape, priorSize*s.noise*s.noise)
	if shape == nil {
		return best
	}
	wide := s.fitPrior(shape, max(priorSize*s.noise*s.noise, priorLarge*priorLarge))
	wide.log += math.Log(priorOften)
	best.log += math.Log1p(-priorOften)
	if wide.log > best.log {
		best, wide = wide, best
	}
	best.log += math.Log1p(math.Exp(wide.log - best.log))
	return best
}

// fitPrior finds the most likely values by weighted least squares, in which outliers count less, and integrates around
// them. size is the variance of the change.
func (s *Search) fitPrior(shape func(commit int) float64, size float64) fitted {
	changes := 0
	if shape != nil {
		changes = 1
	}
	d := 1 + changes + max(0, len(s.machines.Keys)-1)
	var rows [][]float64
	var y []float64
	for _, c := range s.captures {
		row := make([]float64, d)
		row[0] = 1
		if shape != nil {
			row[1] = shape(c.commit)
		}
		if c.machine > 0 {
			row[changes+c.machine] = 1
		}
		rows, y = append(rows, row), append(y, c.y)
	}
	variance := s.noise * s.noise
	known := priorCount * variance
	residuals := start(rows, y, changes)
	var h [][]float64
	theta := make([]float64, d)
	for range 25 {
		h = make([][]float64, d)
		for i := range h {
			h[i] = make([]float64, d+1)
			switch {
			case i == 0:
			case i == changes:
				h[i][i] = 1 / size
			default:
				h[i][i] = 1 / (priorMachine * priorMachine)
			}
		}
		sum := known
		for k, r := range residuals {
			w := (freedom + 1) / (freedom + r*r/variance)
			sum += w * r * r
			for i := range d {
				for j := range d {
					h[i][j] += w / variance * rows[k][i] * rows[k][j]
				}
				h[i][d] += w / variance * rows[k][i] * y[k]
			}
		}
		inverse, _ := solve(h)
		moved := 0.0
		for i := range d {
			moved = max(moved, math.Abs(theta[i]-inverse[i][d]))
			theta[i] = inverse[i][d]
		}
		for k := range residuals {
			residuals[k] = y[k]
			for i := range d {
				residuals[k] -= theta[i] * rows[k][i]
			}
		}
		next := sum / (priorCount + float64(len(y)))
		done := moved < 1e-9 && math.Abs(next/variance-1) < 1e-6
		if variance = next; done {
			break
		}
	}
	out := fitted{theta: theta}
	inverse, logDet := solve(h)
	if shape != nil {
		// the weights of least squares are 1 on average, the information of errors of Student's t is less
		out.se = math.Sqrt(inverse[1][d+2] * (freedom + 3) / (freedom + 1))
		out.log -= theta[1]*theta[1]/2/size + math.Log(2*math.Pi*size)/2
	}
	for _, b := range theta[1+changes:] {
		out.log -= b * b / 2 / (priorMachine * priorMachine) // the constant term is the same in all models
	}
	out.log -= known/2/variance + float64(priorCount)/2*math.Log(variance)
	for _, r := range residuals {
		out.log -= math.Log(variance)/2 + (freedom+1)/2*math.Log1p(r*r/variance/freedom)
	}
	out.log += float64(d)/2*math.Log(2*math.Pi) - logDet/2
	return out
}

// start returns initial residuals from the median of each side of the change, since means would follow outliers.
func start(rows [][]float64, y []float64, changes int) []float64 {
	side := func(k int) int {
		if changes > 0 && rows[k][1] > 0.5 {
			return 1
		}
		return 0
	}
	var sides [2][]float64
	for k := range y {
		sides[side(k)] = append(sides[side(k)], y[k])
	}
	level := [2]float64{order.Median(sides[0]), order.Median(sides[1])}
	out := make([]float64, len(y))
	for k := range y {
		out[k] = y[k] - level[side(k)]
	}
	return out
}

// solve solves the symmetric positive system whose right side is the last column, and puts the inverse into the columns
// from d+1 on. It also returns the logarithm of the determinant.
func solve(h [][]float64) (out [][]float64, logDet float64) {
	d := len(h)
	out = make([][]float64, d)
	for i := range h {
		out[i] = make([]float64, 2*d+1)
		copy(out[i], h[i])
		out[i][d+1+i] = 1
	}
	for i := range d {
		pivot := out[i][i]
		logDet += math.Log(pivot)
		for j := i; j <= 2*d; j++ {
			out[i][j] /= pivot
		}
		for k := range d {
			if f := out[k][i]; k != i && f != 0 {
				for j := i; j <= 2*d; j++ {
					out[k][j] -= f * out[i][j]
				}
			}
		}
	}
	return out, logDet
}
