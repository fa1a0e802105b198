package noise

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/infer"
	"github.com/nsys-llm/explain/diff/internal/match"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// missingShare is the share of the base's unit time that may stay without a price before the verdict does.
const missingShare = 0.05

// pricedLeast is the share of the base's unit time from which its price says something of the whole.
const pricedLeast = 0.5

// Workload adds the row work.time, where a side has more than one kind of unit: the base's work at the head's prices.
// With n(k) units of the kind k in a capture of the base, which take t(k) on average,
//
//	base = Σ n(k) · t_base(k),   head = Σ n(k) · t_head(k)
//
// over the kinds that have a price. That is the head's mean over units of the kind, and over those that do its work
// with some more or less. A kind that markers name by batch size and that either side has fewer than eight units of is
// priced by the fits of both sides' times on batch and tokens ([infer.FitTime]): t_head = t_base · fit_head / fit_base.
// The mix of kinds on the head changes nothing. Kinds without a price that take 5 % of the base's unit time are the
// reason missing_kind.
func (x *Decider) Workload() {
	if len(x.Kinds) < 2 || !x.C.Comparable || x.EvidenceOnly() || x.Opt.Phase != "" || x.Opt.Batch != nil {
		return
	}
	w := &workload{x: x}
	w.fit()
	row, ok := w.row()
	if w.unpriced >= missingShare*w.total {
		x.Reason(comparison.MissingKind, w.missing())
	}
	if names, share := w.strange(); share >= missingShare {
		x.Reason(comparison.MissingKind, fmt.Sprintf("base has no units of %s, %s of head's unit time: whether that is "+
			"other work or the same work done worse is not known", listed(names), unit.Percent(share)))
	}
	if !ok {
		return
	}
	n := x.number("unit.time.mean", row.Labels, report.Nanoseconds, infer.Mean)
	for i := range row.BaseValues {
		n.Base = append(n.Base, infer.Capture{Value: row.BaseValues[i]})
	}
	for i := range row.HeadValues {
		n.Head = append(n.Head, infer.Capture{Value: row.HeadValues[i]})
	}
	if row.Unreplicated {
		if i := w.interval(*row.Ratio); i != nil {
			n.Given = &infer.Given{Low: i.Low, High: i.High, Method: i.Method}
		}
	}
	x.decide([]*comparison.Row{&row}, []infer.Number{n}, x.Alone())
	row.Why += "; " + w.shares()
	x.C.Primary = append([]comparison.Row{row}, x.C.Primary...)
}

// workload is the base's work and what it is worth.
type workload struct {
	x                              *Decider
	fits                           map[string]*[2]*infer.Fit // by phase: base, head
	total, exact, fitted, unpriced float64                   // of the base's unit time, ns
	lacking                        []*match.Kind
}

// count and time of the units of a kind in one capture, with those that do its work with some more or less.
func (w *workload) sums(k *match.Kind, s *side.Side, n int, of func(k *match.Kind) []int) (count, time float64) {
	for i := range w.x.Kinds {
		o := &w.x.Kinds[i]
		if o != k && o.Like != k {
			continue
		}
		if row := of(o); row != nil && row[n] >= 0 {
			g := &s.Captures[n].Kinds[row[n]]
			count += float64(g.Count)
			time += g.Time()
		}
	}
	return count, time
}

func baseOf(k *match.Kind) []int { return k.Base }

func headOf(k *match.Kind) []int { return k.Head }

// price of a unit of the kind, by capture; captures without such units have the mean of the others. ok is false where
// none has any.
func (w *workload) price(k *match.Kind, s *side.Side, of func(k *match.Kind) []int) (
	prices []float64, units float64, ok bool) {
	prices = make([]float64, len(s.Captures))
	var all float64
	for n := range prices {
		count, time := w.sums(k, s, n, of)
		units, all = units+count, all+time
		if count > 0 {
			prices[n] = time / count
		}
	}
	if units == 0 {
		return nil, 0, false
	}
	for n := range prices {
		if prices[n] == 0 {
			prices[n] = all / units
		}
	}
	return prices, units, true
}

// row prices the base's work. ok is false where less than half of it has a price.
func (w *workload) row() (comparison.Row, bool) {
	x := w.x
	b, h := make([]float64, len(x.Base.Captures)), make([]float64, len(x.Head.Captures))
	for i := range x.Kinds {
		k := &x.Kinds[i]
		if k.Base == nil || k.Like != nil {
			continue
		}
		own, units, ok := w.price(k, x.Base, baseOf)
		if !ok {
			continue
		}
		n := units / float64(len(b)) // a capture
		time := n * side.Average(own)
		w.total += time
		there, others, ok := w.price(k, x.Head, headOf)
		ratio, fits := w.ratio(k.Name)
		switch {
		case ok && (!fits || min(units, others) >= infer.MinUnits):
			w.exact += time
		case fits:
			w.fitted += time
			there = make([]float64, len(h))
			for c := range there {
				there[c] = ratio * side.Average(own)
			}
		default:
			w.unpriced += time
			w.lacking = append(w.lacking, k)
			continue
		}
		for c := range b {
			b[c] += n * own[c]
		}
		for c := range h {
			h[c] += n * there[c]
		}
	}
	if w.total <= 0 || w.unpriced > (1-pricedLeast)*w.total {
		return comparison.Row{}, false
	}
	base, head := side.Average(b), side.Average(h)
	units := func(s *side.Side) (n int64) {
		for _, c := range s.Captures {
			for i := range c.Kinds {
				n += c.Kinds[i].Count
			}
		}
		return n
	}
	row := comparison.Row{Metric: comparison.MetricWork, Labels: report.Labels{}, Unit: report.Nanoseconds,
		Base: &base, Head: &head, BaseValues: b, HeadValues: h, NBase: units(x.Base), NHead: units(x.Head),
		Unreplicated: len(b) == 1 || len(h) == 1}
	row.Change()
	return row, true
}

// fit fits the phases whose units markers name by batch size.
func (w *workload) fit() {
	w.fits = map[string]*[2]*infer.Fit{}
	for n, s := range []*side.Side{w.x.Base, w.x.Head} {
		phases := map[string][]infer.Work{}
		for _, c := range s.Captures {
			for _, u := range c.Steps() {
				if k := c.Kinds[u.At].Kind; k.Batch >= 0 {
					phases[k.Phase] = append(phases[k.Phase],
						infer.Work{Batch: float64(k.Batch), Tokens: float64(k.Tokens), Time: u.Time})
				}
			}
		}
		for phase, units := range phases {
			if f, ok := infer.FitTime(units); ok {
				if w.fits[phase] == nil {
					w.fits[phase] = &[2]*infer.Fit{}
				}
				w.fits[phase][n] = f
			}
		}
	}
}

// ratio of head to base for a kind by the fits; ok is false where it lies outside what both sides ran.
func (w *workload) ratio(k side.Kind) (ratio float64, ok bool) {
	f := w.fits[k.Phase]
	if k.Batch < 0 || f == nil || f[0] == nil || f[1] == nil {
		return 0, false
	}
	from, ok := f[0].At(float64(k.Batch), float64(k.Tokens))
	to, ok2 := f[1].At(float64(k.Batch), float64(k.Tokens))
	if !ok || !ok2 {
		return 0, false
	}
	return to / from, true
}

// interval of the ratio over the units that the reports list, moved to where all of them are; nil where there are too
// few.
func (w *workload) interval(ratio float64) *comparison.Interval {
	x := w.x
	b, h := w.units(x.Base, baseOf), w.units(x.Head, headOf)
	p, ok := infer.Price(b, h, x.alpha(), x.seed)
	if !ok || p.Method == "" || p.Unpriced > pricedLeast {
		return nil
	}
	shift := ratio / p.Ratio
	return &comparison.Interval{Low: p.Low * shift, High: p.High * shift, Level: 1 - 2*x.alpha(), Method: p.Method}
}

// units of one side, by kind: those that do the work of another kind count as of that.
func (w *workload) units(s *side.Side, of func(k *match.Kind) []int) []infer.Work {
	var list []infer.Work
	phases := map[string]int{}
	for i := range w.x.Kinds { // both sides number phases alike
		if k := w.x.Kinds[i].Name; k.Batch >= 0 {
			if _, ok := phases[k.Phase]; !ok {
				phases[k.Phase] = len(phases)
			}
		}
	}
	for n, c := range s.Captures {
		kinds := make([]infer.Work, len(c.Kinds))
		for i := range w.x.Kinds {
			k := &w.x.Kinds[i]
			row := of(k)
			if row == nil || row[n] < 0 {
				continue
			}
			at := i
			if k.Like != nil {
				at = slices.IndexFunc(w.places(), func(o *match.Kind) bool { return o == k.Like })
			}
			work := infer.Work{Phase: len(phases) + at}
			if k.Name.Batch >= 0 {
				work = infer.Work{Phase: phases[k.Name.Phase], Batch: float64(k.Name.Batch), Tokens: float64(k.Name.Tokens)}
			}
			kinds[row[n]] = work
		}
		for _, u := range c.Steps() {
			work := kinds[u.At]
			work.Time = u.Time
			list = append(list, work)
		}
	}
	return mixed(list)
}

// mixed spreads the units of each kind evenly and keeps their order within it, so that every block of a bootstrap holds
// about the mix of the whole: how many units of each kind ran is given, and only their times are noise.
func mixed(units []infer.Work) []infer.Work {
	type kind struct {
		phase         int
		batch, tokens float64
	}
	of := func(u infer.Work) kind { return kind{u.Phase, u.Batch, u.Tokens} }
	counts, seen := map[kind]int{}, map[kind]int{}
	for _, u := range units {
		counts[of(u)]++
	}
	type placed struct {
		infer.Work
		at float64
	}
	list := make([]placed, len(units))
	for i, u := range units {
		k := of(u)
		list[i] = placed{u, (float64(seen[k]) + 0.5) / float64(counts[k])}
		seen[k]++
	}
	slices.SortStableFunc(list, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	out := make([]infer.Work, len(list))
	for i := range list {
		out[i] = list[i].Work
	}
	return out
}

// places are the kinds of unit in their order.
func (w *workload) places() []*match.Kind {
	list := make([]*match.Kind, len(w.x.Kinds))
	for i := range list {
		list[i] = &w.x.Kinds[i]
	}
	return list
}

// shares says how the base's work was priced.
func (w *workload) shares() string {
	text := unit.Percent(w.exact/w.total) + " of base's unit time is priced by units of the same kind"
	if w.fitted > 0 {
		text += ", " + unit.Percent(w.fitted/w.total) + " by a fit on batch and tokens"
	}
	if w.unpriced > 0 {
		text += ", " + unit.Percent(w.unpriced/w.total) + " not at all"
	}
	return text
}

// strange are the kinds of the head that the base has neither units of nor any that do their work with some more or
// less, and the share of the head's unit time that they take. Those that markers name are work that was asked for: the
// mix.
func (w *workload) strange() (names []string, share float64) {
	for i := range w.x.Kinds {
		k := &w.x.Kinds[i]
		if k.Base != nil || k.Like != nil || !k.Name.Plain() {
			continue
		}
		if _, _, s := w.x.Head.OfKind(k.Head); s != nil {
			names, share = append(names, k.Name.String()), share+*s
		}
	}
	return names, share
}

// missing says which kinds the head lacks.
func (w *workload) missing() string {
	names := make([]string, len(w.lacking))
	for i, k := range w.lacking {
		names[i] = k.Name.String()
	}
	return fmt.Sprintf("head has no units of %s, %s of base's unit time: what head would take for that work is not known; capture the same load on both sides",
		listed(names), unit.Percent(w.unpriced/w.total))
}

// listed are the first of some names, and how many more there are.
func listed(names []string) string {
	const most = 3
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(", %d more", n)
	}
	return text
}
