package noise

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// missingShare is the share of the base's unit time that may stay unpriced; from it on the verdict is inconclusive.
const missingShare = 0.05

// pricedLeast is the share of the base's unit time that must be priced for a row of the whole.
const pricedLeast = 0.5

// workload finds the row work.time if there is more than one kind of unit: the time that the base's work would take at
// the head's unit times. A capture of the base has n(k) units of kind k, which take t(k) on average:
//
//	base = Σ n(k) · t_base(k),   head = Σ n(k) · t_head(k)
//
// The sums include the kinds that have a price. The price t_head(k) is the head's mean over units of the kind and over
// units that do nearly the same work. A kind whose batch size lies between two that both sides ran has
// t_head = t_base · r, where r is the mean ratio of those two. The mix of kinds on the head has no effect. If kinds
// without a price take 5 % of the base's unit time, the comparison has the reason missing_kind. If both sides generate
// the same tokens in different numbers of decode steps, decode is priced by the token: half the batch in twice the
// steps is then a loss and not different work.
//
// A phase that has a kind with too few units to judge gets a row of its own, over all of its kinds.
func (x *Decider) workload(found *Found) {
	if len(x.kinds) < 2 {
		return
	}
	w := &workload{kinds: x.kinds, base: x.Base, head: x.Head}
	w.byToken()
	list := []*workload{w}
	for _, phase := range w.scarce() {
		one := *w
		one.phase = phase
		list = append(list, &one)
	}
	for _, w := range list {
		x.workRow(w, found)
	}
}

// MixDiffers reports whether the sides ran their kinds of unit in other proportions: at the same mean times on both
// sides, the shares of the kinds differ by missingShare in total. Kinds without a name that only one side has may be
// the same work done in another way: together they count as one.
func (x *Decider) MixDiffers() bool {
	var sums [2]float64
	parts := map[*pairing.Kind]*[2]float64{}
	for _, k := range x.kinds {
		base, time, _ := x.Base.OfKind(k.Base)
		head, other, _ := x.Head.OfKind(k.Head)
		each := comparison.Value(cmp.Or(time, other))
		of := cmp.Or(k.Like, k)
		if k.Like == nil && k.Name.Plain() && (base == 0 || head == 0) {
			of = nil
		}
		part := parts[of]
		if part == nil {
			part = new([2]float64)
			parts[of] = part
		}
		for side, n := range []int64{base, head} {
			part[side] += float64(n) * each
			sums[side] += float64(n) * each
		}
	}
	var moved float64
	for _, part := range parts {
		moved += math.Abs(part[0]/sums[0]-part[1]/sums[1]) / 2
	}
	return moved >= missingShare
}

// scarce lists the phases with several kinds that both sides ran, at least one of them with too few units to judge.
func (w *workload) scarce() []string {
	kinds, few := map[string]int{}, map[string]bool{} // by phase
	for _, k := range w.kinds {
		if k.Base == nil || k.Head == nil || k.Like != nil {
			continue
		}
		b, _, _ := w.base.OfKind(k.Base)
		h, _, _ := w.head.OfKind(k.Head)
		kinds[k.Name.Phase]++
		few[k.Name.Phase] = few[k.Name.Phase] || min(b, h) < significance.MinUnits
	}
	return lists.Filter(slices.Sorted(maps.Keys(kinds)), func(phase string) bool {
		return kinds[phase] > 1 && few[phase] && len(kinds) > 1
	})
}

// workRow finds the row for all work, or for w.phase.
func (x *Decider) workRow(w *workload, found *Found) {
	missing := func(text string) {
		found.Reasons = append(found.Reasons, comparison.Reason{Code: comparison.MissingKind, Text: text})
	}
	row, ok := w.row()
	if w.phase == "" && w.unpriced >= missingShare*w.total {
		missing(w.missing())
	}
	if names, share := w.strange(); w.phase == "" && share >= missingShare {
		missing(fmt.Sprintf("base has no units of %s, %s of head's unit time: it is unknown "+
			"whether that is different work or the same work done worse", firstOf(names), unit.Percent(share)))
	}
	if !ok {
		return
	}
	n := x.Known.number("unit.time.mean", row.Labels, report.Nanoseconds, significance.Mean)
	n.Whole = true
	capture := func(value float64) significance.Capture { return significance.Capture{Value: value} }
	n.Base, n.Head = lists.Map(row.BaseValues, capture), lists.Map(row.HeadValues, capture)
	if row.Unreplicated {
		n.OfShares(w.priced)
	}
	x.decide(&row, n)
	row.Why += "; " + w.shares()
	if w.phase != "" {
		found.Primary = append(found.Primary, row)
		return
	}
	x.work = w
	found.Primary = slices.Insert(found.Primary, 0, row)
}

// workload is the base's work and its prices.
type workload struct {
	kinds                   []*pairing.Kind
	base, head              *side.Side
	phase                   string        // of the row; empty: all phases
	lead                    *pairing.Kind // stands for all decode kinds if priced by the token, else nil
	total, fitted, unpriced float64       // parts of the base's unit time, ns
	lacking                 []*pairing.Kind
	priced                  []significance.Priced // the units that the reports list of kinds with a price on both sides
}

const decode = "decode"

// sameTokens is the largest relative difference at which two token counts are taken as equal.
const sameTokens = 0.01

// byToken prices decode by the token if both sides generate the same tokens in different numbers of steps.
func (w *workload) byToken() {
	var steps, tokens [2]float64
	for _, k := range w.kinds {
		if k.Name.Phase != decode {
			continue
		}
		if k.Name.Batch <= 0 {
			w.lead = nil
			return
		}
		if k.Base != nil && w.lead == nil {
			w.lead = k
		}
		for at, s := range []*side.Side{w.base, w.head} {
			of := [][]int{k.Base, k.Head}[at]
			if of == nil {
				continue
			}
			n, _, _ := s.OfKind(of)
			each := float64(n) / float64(len(s.Captures))
			steps[at], tokens[at] = steps[at]+each, tokens[at]+each*float64(k.Name.Batch)
		}
	}
	if !(tokens[0] > 0 && math.Abs(tokens[1]/tokens[0]-1) <= sameTokens && math.Abs(steps[1]/steps[0]-1) > missingShare) {
		w.lead = nil
	}
}

// of reports whether units of the kind o are priced as units of k.
func (w *workload) of(o, k *pairing.Kind) bool {
	return o == k || o.Like == k || w.lead != nil && k == w.lead && o.Name.Phase == decode
}

// skips reports whether a kind has no price of its own.
func (w *workload) skips(k *pairing.Kind) bool {
	return k.Base == nil || k.Like != nil || w.phase != "" && k.Name.Phase != w.phase ||
		w.lead != nil && k != w.lead && k.Name.Phase == decode
}

// sums returns the count and the time (ns) of the units of kind k in capture n, including units that do nearly the same
// work. If decode is priced by the token, count is in tokens.
func (w *workload) sums(k *pairing.Kind, s *side.Side, n int, of func(k *pairing.Kind) []int) (count, time float64) {
	for _, o := range w.kinds {
		if !w.of(o, k) {
			continue
		}
		if row := of(o); row != nil && row[n] >= 0 {
			g := &s.Captures[n].Kinds[row[n]]
			each := 1.0
			if k == w.lead {
				each = float64(o.Name.Batch)
			}
			count += each * float64(g.Count)
			time += g.Time()
		}
	}
	return count, time
}

func baseOf(k *pairing.Kind) []int { return k.Base }

func headOf(k *pairing.Kind) []int { return k.Head }

// price returns the mean time of a unit of the kind in each capture, ns; a capture without such units gets the mean of
// the others. units is their count over all captures. ok is false if no capture has one.
func (w *workload) price(k *pairing.Kind, s *side.Side, of func(k *pairing.Kind) []int) (
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

// row prices the base's work. ok is false if less than half of its time has a price.
func (w *workload) row() (comparison.Row, bool) {
	b, h := make([]float64, len(w.base.Captures)), make([]float64, len(w.head.Captures))
	for _, k := range w.kinds {
		if w.skips(k) {
			continue
		}
		own, units, ok := w.price(k, w.base, baseOf)
		if !ok {
			continue
		}
		n := units / float64(len(b)) // per capture
		time := n * side.Average(own)
		w.total += time
		there, _, ok := w.price(k, w.head, headOf)
		if ok {
			w.priced = append(w.priced, significance.Priced{Base: w.listed(k, w.base, baseOf, units*side.Average(own)),
				Head: w.listed(k, w.head, headOf, units*side.Average(there))})
		}
		if ratio, near := w.between(k); !ok && near {
			w.fitted += time
			there, ok = slices.Repeat([]float64{ratio * side.Average(own)}, len(h)), true
		}
		if !ok {
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
	ofPhase := func(g side.Group) bool { return w.phase == "" || g.Phase == w.phase }
	units := func(s *side.Side) int64 {
		return lists.Sum(s.Captures, func(c *side.Capture) int64 {
			return lists.Sum(lists.Filter(c.Kinds, ofPhase), func(g side.Group) int64 { return g.Count })
		})
	}
	labels := report.Labels{}
	if w.phase != "" {
		labels["phase"] = w.phase
	}
	row := side.Row(comparison.MetricWork, labels, report.Nanoseconds, b, h)
	row.NBase, row.NHead = units(w.base), units(w.head)
	return row, true
}

// between returns the mean ratio head/base of the nearest smaller and the nearest larger batch of k's phase that both
// sides ran. ok is false if either is missing.
func (w *workload) between(k *pairing.Kind) (ratio float64, ok bool) {
	var near [2]*pairing.Kind
	for _, o := range w.kinds {
		if k.Name.Batch < 0 || o.Name.Phase != k.Name.Phase || o.Name.Tokens != k.Name.Tokens || o.Base == nil || o.Head == nil {
			continue
		}
		at, sign := 0, int64(1)
		if o.Name.Batch > k.Name.Batch {
			at, sign = 1, -1
		}
		if near[at] == nil || sign*o.Name.Batch > sign*near[at].Name.Batch {
			near[at] = o
		}
	}
	for _, o := range near {
		if o == nil {
			return 0, false
		}
		from, _, ok := w.price(o, w.base, baseOf)
		to, _, ok2 := w.price(o, w.head, headOf)
		if !ok || !ok2 {
			return 0, false
		}
		ratio += side.Average(to) / side.Average(from) / 2
	}
	return ratio, true
}

// listed returns the unit times (ns) of kind k that a side's reports list, one Share for each kind priced as k. Their
// sums are scaled to add up to sum.
func (w *workload) listed(k *pairing.Kind, s *side.Side, of func(k *pairing.Kind) []int, sum float64) (list []significance.Share) {
	total := 0.0
	for _, o := range w.kinds {
		row := of(o)
		if !w.of(o, k) || row == nil {
			continue
		}
		var x significance.Share
		for n, c := range s.Captures {
			if row[n] < 0 {
				continue
			}
			x.Sum += c.Kinds[row[n]].Time()
			x.Times = append(x.Times, side.UnitValues(c.UnitsAt(row[n]), "unit.time")...)
		}
		if len(x.Times) > 0 {
			list, total = append(list, x), total+x.Sum
		}
	}
	for i := range list {
		list[i].Sum *= sum / total
	}
	return list
}

// shares says how the base's work was priced.
func (w *workload) shares() string {
	text := unit.Percent(1-(w.fitted+w.unpriced)/w.total) + " of base's unit time is priced by units of the same kind"
	if w.fitted > 0 {
		text += ", " + unit.Percent(w.fitted/w.total) + " by those of the next batch sizes"
	}
	if w.lead != nil {
		text += "; decode is priced by the token: both sides generate the same tokens in different numbers of steps"
	}
	if w.unpriced > 0 {
		text += ", " + unit.Percent(w.unpriced/w.total) + " not at all"
	}
	return text
}

// strange returns the kinds of the head that the base has no units of, nor units that do nearly the same work, and
// their share of the head's unit time. It leaves out kinds that markers name: they belong to the requested mix.
func (w *workload) strange() (names []string, share float64) {
	for _, k := range w.kinds {
		if k.Base != nil || k.Like != nil || !k.Name.Plain() {
			continue
		}
		if _, _, s := w.head.OfKind(k.Head); s != nil {
			names, share = append(names, k.Name.String()), share+*s
		}
	}
	return names, share
}

// missing says which kinds the head lacks.
func (w *workload) missing() string {
	names := lists.Map(w.lacking, func(k *pairing.Kind) string { return k.Name.String() })
	return fmt.Sprintf("head has no units of %s, %s of base's unit time: head's time for that work is unknown; capture "+
		"the same load on both sides", firstOf(names), unit.Percent(w.unpriced/w.total))
}

// firstOf returns the first three names and how many more there are.
func firstOf(names []string) string {
	const most = 3
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(", %d more", n)
	}
	return text
}
