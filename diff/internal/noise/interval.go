package noise

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
)

// interval over the units inside the captures: by block bootstrap, or, with few units, between the ratios of the most
// extreme ones, which takes units for independent and so can show that nothing changed, not that something did.
func (x *Decider) interval(p *primary) (i *comparison.Interval, few bool) {
	b, h := x.Base.Series(p.series), x.Head.Series(p.series)
	if len(b) == 0 || len(h) == 0 {
		return x.extremes(p), true
	}
	b0, h0 := p.statistic()(slices.Clone(b)), p.statistic()(slices.Clone(h))
	low, high, method, level := 0.0, 0.0, "", 1-2*x.alpha()
	if b0 <= h0 {
		low, high, method = infer.BlockBootstrap(b, h, p.statistic(), level, x.seed)
	} else if l, u, m := infer.BlockBootstrap(h, b, p.statistic(), level, x.seed); m != "" {
		low, high, method = 1/u, 1/l, m+", of the inverse" // so that swapping the sides inverts the interval
	}
	if method != "" {
		if int64(len(b)) < x.Base.Units() || int64(len(h)) < x.Head.Units() {
			// The reports list a sample of the units: move the interval to where all of them are.
			row, _ := x.row(p)
			shift := *row.Ratio / (h0 / b0)
			low, high, method = low*shift, high*shift, method+fmt.Sprintf(", of %d and %d of the units", len(b), len(h))
		}
		return &comparison.Interval{Low: low, High: high, Level: level, Method: method}, false
	}
	return x.extremes(p), true
}

// extremes is what few units can say: the smallest and the largest ratio of any unit of head to any of base. By chance,
// all units of one side lie above all of the other with a probability of n! m! / (n+m)!, which gives the level; no
// interval is given below 0.9.
func (x *Decider) extremes(p *primary) *comparison.Interval {
	var b, h []*report.Summary
	var n, m int64
	for _, v := range x.Base.Views {
		b = append(b, p.of(v))
		n += p.of(v).N
	}
	for _, v := range x.Head.Views {
		h = append(h, p.of(v))
		m += p.of(v).N
	}
	low := func(list []*report.Summary) float64 {
		return slices.MinFunc(list, func(a, b *report.Summary) int { return cmp.Compare(a.Min, b.Min) }).Min
	}
	high := func(list []*report.Summary) float64 {
		return slices.MaxFunc(list, func(a, b *report.Summary) int { return cmp.Compare(a.Max, b.Max) }).Max
	}
	chance := 1.0 // 1 / C(n+m, n)
	for k := int64(1); k <= min(n, m, 60); k++ {
		chance *= float64(k) / float64(max(n, m)+k)
	}
	level := 1 - 2*chance
	if level < 0.9 || low(b) <= 0 || low(h) <= 0 {
		return nil
	}
	return &comparison.Interval{Low: low(h) / high(b), High: high(h) / low(b), Level: level,
		Method: fmt.Sprintf("ratios of the most extreme of %d and %d units", n, m)}
}
