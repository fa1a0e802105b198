package change

import (
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report/order"
)

// Noise describes how nights differ while nothing changes.
type Noise struct {
	SD          float64 `json:"sd"`          // of a night about its level, ln; odd ones are clipped to 3.5 typical deviations
	Correlation float64 `json:"correlation"` // of a night with the next, 0 to below 1
	Odd         float64 `json:"odd"`         // share of nights more than 3.5 typical deviations off their level, 0 to 1
	Nights      int     `json:"nights"`      // nights that it was learned from
	Machines    int     `json:"machines"`    // machines with two nights or more; 0: unknown
	MachineSD   float64 `json:"machine_sd"`  // between machines, ln; 0: machines do not differ
	Longest     int     `json:"longest"`     // longest excursion that ended by itself, in nights; 0: none of two or more
	Week        float64 `json:"week"`        // from the fastest day of the week to the slowest, ln; 0: days are alike
}

// Prior values, and limits of what noise is learned from.
const (
	priorCorrelation = 0.3
	priorNights      = 20  // weight of the prior correlation, in nights
	memory           = 365 // nights that noise is learned from
	chunk            = 60  // nights that share a level, so that slow creep is not noise
	recentNights     = 30
	recentWeight     = 0.7 // of the variance of so few nights, which is itself uncertain
	mostCorrelation  = 0.95
	oddBeyond        = 3.5 // typical deviations to which a night is clipped
	newest           = 10  // nights that may be of a new level, and are not used for machines known before
	onMachine        = 5   // first nights of a machine, which set its effect
	leastOnMachine   = 2   // nights of a machine before its next one counts
	longestExcursion = 10  // nights
	often            = 4   // excursions
	weekNights       = 70  // nights before days of the week are looked at
)

// learner learns noise. It reuses its slices.
type learner struct {
	at, group []int     // place and chunk of each night looked at
	stretch   []int     // number of the night's stretch
	res       []float64 // residual of the night, from the level of its chunk
	work      []float64

	effect     []float64 // of each machine, ln
	week       [7]float64
	scale      float64 // typical deviation: 1.4826 times the median absolute one
	innovation float64 // variance of the part of a night that the previous one does not predict
	df         float64
	came       []excursion
	noise      Noise
}

// excursion is a stay of some nights at another level.
type excursion struct {
	nights int
	shift  float64 // mean of its nights, ln
}

// learn learns the noise from the nights up to t, as if a stretch began at split; with [none] no stretch is added.
func (f *finder) learn(t, split int) {
	l := &f.learned
	l.collect(f, t, split)
	l.levels(f)
	if f.o.Machines != nil || f.o.Days != nil {
		for range 3 {
			l.factors(f, t)
			l.levels(f)
		}
	}
	l.excursions(f)
	l.spread()
	l.recent()
	f.take(f.starts[len(f.starts)-1], t)
}

// collect groups the nights in chunks that share a level.
func (l *learner) collect(f *finder, t, split int) {
	l.at, l.group, l.stretch = l.at[:0], l.group[:0], l.stretch[:0]
	from := max(0, t+1-memory)
	next, _ := slices.BinarySearch(f.starts, from+1)
	begin, g := from, 0
	for i := from; i <= t; i++ {
		if next < len(f.starts) && f.starts[next] == i {
			begin, g, next = i, g+1, next+1
		} else if i-begin == chunk || i == split {
			begin, g = i, g+1
		}
		l.at, l.group, l.stretch = append(l.at, i), append(l.group, g), append(l.stretch, next)
	}
	l.res = slices.Grow(l.res[:0], len(l.at))[:len(l.at)]
}

// levels takes the median of each chunk, its level, from the nights of it.
func (l *learner) levels(f *finder) {
	for i, j := 0, 0; i < len(l.at); i = j {
		l.work = l.work[:0]
		for j = i; j < len(l.at) && l.group[j] == l.group[i]; j++ {
			if counts(f, l.at[j]) {
				l.work = append(l.work, f.value(l.at[j]))
			}
		}
		m := f.value(l.at[i])
		if len(l.work) > 0 {
			m = order.Median(l.work)
		}
		for k := i; k < j; k++ {
			l.res[k] = f.value(l.at[k]) - m
		}
	}
	l.work = append(l.work[:0], l.res...)
	l.scale = order.Spread(l.work)
}

// clip bounds the residual of a night.
func (l *learner) clip(r float64) float64 {
	if l.scale == 0 { // numbers that repeat exactly
		return r
	}
	return min(max(r, -oddBeyond*l.scale), oddBeyond*l.scale)
}

// factors fits the effects of machines and of days of the week, one after the other.
func (l *learner) factors(f *finder, t int) {
	if f.o.Machines != nil {
		l.noise.Machines, l.noise.MachineSD = l.factor(l.effect, 1+3*math.Sqrt2, leastOnMachine, func(k int) int {
			i := l.at[k]
			if i > t-newest && f.nth[i] > onMachine {
				return -1
			}
			return f.o.Machines[i]
		})
	}
	if f.o.Days != nil && len(l.at) >= weekNights {
		_, sd := l.factor(l.week[:], 6, 2, func(k int) int { return f.o.Days[l.at[k]] })
		l.noise.Week = 0
		if sd > 0 {
			l.noise.Week = slices.Max(l.week[:]) - slices.Min(l.week[:])
		}
	}
}

// factor fits the effects of one factor: the mean residual for each of its values, shrunk towards 0 for noise. of
// returns the value for a night; below 0: leave it out. If the variance between values is at most least times the
// noise, all effects are 0.
func (l *learner) factor(effect []float64, least float64, fewest int, of func(k int) int) (values int, sd float64) {
	n, sum := make([]float64, len(effect)), make([]float64, len(effect))
	within, nights := 0.0, 0.0
	for k := range l.res {
		c := l.clip(l.res[k])
		if m := of(k); m >= 0 {
			n[m], sum[m] = n[m]+1, sum[m]+effect[m]+c
		}
		within, nights = within+c*c, nights+1
	}
	total, all, squares := 0.0, 0.0, 0.0
	for m := range n {
		if n[m] >= float64(fewest) {
			values++
			total, all, squares = total+sum[m], all+n[m], squares+n[m]*n[m]
		}
	}
	if values < 2 {
		clear(effect)
		return values, 0
	}
	between := 0.0
	for m := range n {
		if n[m] >= float64(fewest) {
			d := sum[m]/n[m] - total/all
			between += n[m] * d * d
		}
	}
	rho := l.noise.Correlation
	within *= (1 + rho) / (1 - rho) / max(1, nights-float64(values))
	between /= float64(values - 1)
	if between <= least*within {
		clear(effect)
		return values, 0
	}
	variance := (between - within) / ((all - squares/all) / float64(values-1))
	for m := range n {
		if effect[m] = 0; n[m] > 0 {
			effect[m] = (sum[m]/n[m] - total/all) * n[m] / (n[m] + within/variance)
		}
	}
	return values, math.Sqrt(variance)
}

// spread sets the share of odd nights, the degrees of freedom and, from clipped residuals, the variance and the
// correlation of neighbours.
func (l *learner) spread() {
	odd, n, sq, cross, pairs := 0, 0.0, 0.0, 0.0, 0.0
	for k, r := range l.res {
		if math.IsNaN(r) {
			continue
		}
		if n++; math.Abs(r) > oddBeyond*l.scale {
			odd++
		}
		c := l.clip(r)
		sq += c * c
		if k > 0 && l.group[k] == l.group[k-1] && !math.IsNaN(l.res[k-1]) {
			cross, pairs = cross+c*l.clip(l.res[k-1]), pairs+1
		}
	}
	levels := float64(l.group[len(l.group)-1] + 1)
	l.df = max(1, n-levels)
	l.noise.Nights, l.noise.Odd = len(l.res), float64(odd)/max(n, 1)
	l.noise.SD = math.Sqrt(sq / l.df)
	l.noise.Correlation = correlation(cross, sq, pairs, n, levels)
}

// correlation returns that of neighbours from the sums of their products and of all squares, and from the numbers of
// pairs, of nights and of levels. It is corrected for the fitted levels and shrunk towards the prior.
func correlation(cross, sq, pairs, n, levels float64) float64 {
	rho := 0.0
	if sq > 0 && pairs > 0 {
		rho = cross / pairs / (sq / n)
	}
	rho += (1 + 4*rho) * levels / max(n, 1)
	rho = (priorNights*priorCorrelation + pairs*rho) / (priorNights + pairs)
	return min(max(rho, 0), mostCorrelation)
}

// recent raises the noise to that of the newest nights if theirs is larger. It uses the steps from night to night, so
// that a new level adds only one.
func (l *learner) recent() {
	rho := l.noise.Correlation
	variance := l.noise.SD * l.noise.SD
	var steps []float64
	for k := max(1, len(l.at)-recentNights); k < len(l.at); k++ {
		if l.group[k] == l.group[k-1] && !math.IsNaN(l.res[k]-l.res[k-1]) {
			steps = append(steps, l.res[k]-l.res[k-1])
		}
	}
	if len(steps) >= recentNights/2 {
		d := order.Spread(steps)
		variance = max(variance, recentWeight*d*d/2/(1-rho))
	}
	l.innovation = variance * (1 - rho*rho)
}

// excursions finds nights in a row that are off by more than noise until the level comes back. They are not noise.
func (l *learner) excursions(f *finder) {
	l.noise.Longest, l.came = 0, l.came[:0]
	rho := l.noise.Correlation
	for i, j := 0, 0; i < len(l.res); i = max(j, i+1) {
		sum, rise := 0.0, l.res[i] > 0
		for j = i; j < len(l.res) && l.stretch[j] == l.stretch[i] && math.Abs(l.res[j]) > 2*l.scale && l.res[j] > 0 == rise; j++ {
			sum += l.res[j]
		}
		n := float64(j - i)
		if j+1 >= len(l.res) || n < 2 || n > longestExcursion || l.stretch[j+1] != l.stretch[i] {
			continue
		}
		if l.at[i] == 0 || slices.Contains(f.o.Breaks, l.at[i]) { // there was no level before
			continue
		}
		if half := sum / n / 2; l.res[j]/half > 1 || l.res[j+1]/half > 1 { // the level is not back
			continue
		}
		z := math.Abs(sum/n) * math.Sqrt(n*(1-rho)/(1+rho)) / l.scale
		if z < 4 || math.Abs(sum/n) < f.o.Least {
			continue
		}
		l.noise.Longest = max(l.noise.Longest, j-i)
		l.came = append(l.came, excursion{j - i, sum / n})
		for k := i; k < j; k++ {
			l.res[k] = math.NaN()
			f.out[l.at[k]] = true
		}
	}
}

// stay is how many nights an excursion like earlier ones may last; 0: there were none. If excursions of about this size
// are frequent, two can follow one another.
func (l *learner) stay(shift float64) int {
	larger, alike, n := 0, 0, 0
	for _, e := range l.came {
		switch r := math.Abs(e.shift / shift); {
		case r < 0.65:
		case r < 1.4:
			alike, n = max(alike, e.nights), n+1
		default:
			larger = max(larger, e.nights)
		}
	}
	if n >= often {
		alike *= 2
	}
	if larger > 0 { // its last night may mix two hosts
		larger += 2
	}
	return max(alike, larger)
}
