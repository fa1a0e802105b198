package diff

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Bounds of the rules that derive the cause.
const (
	causePart   = 0.25  // of the change of the unit's time, from which a part is named
	causeCall   = 0.10  // change per call of the API from which it is named
	commonLeast = 0.015 // shift of all kernels from which it is named
	commonShare = 0.80  // of the compute time must have shifted alike
	commonKinds = 5     // kernels that it takes to say so
	namedShare  = 0.01  // of the unit's time, from which a replaced kernel is named
	mixMoved    = 0.10  // change of a kind's share of the time from which the mix is said to have changed
)

// cause says in one sentence what changed and why, by rule, from the tables of the comparison.
func (x *Parts) cause() string {
	c := x.c
	switch {
	case c.Identical:
		return "No change: every number that both sides hold is equal."
	case !c.Comparable && len(c.Reasons) > 0:
		return "Not comparable: " + c.Reasons[0].Text + "."
	}
	if c.Depth == DepthEvidence {
		return x.evidenceCause()
	}
	time := c.row("unit.time.mean")
	if time == nil {
		return "Nothing could be compared."
	}
	text := x.headline()
	if why := x.why(time); why != "" {
		text += ": " + why
	}
	if c.Depth == DepthUnit && slices.ContainsFunc(c.Reasons, func(r Reason) bool { return r.Code == GraphCaptureMismatch }) {
		text += "; CUDA graphs hide kernels on one side, so nothing is said of single kernels"
	}
	if s := x.structural(text); s != "" {
		text += "; " + s
	}
	if r := x.replaced(text); r != "" {
		text += "; " + r
	}
	if m := x.mixText(); m != "" {
		text += "; " + m
	}
	return text + "."
}

func (c *Comparison) row(metric string) *Row {
	if i := slices.IndexFunc(c.Primary, func(r Row) bool { return r.Metric == metric }); i >= 0 {
		return &c.Primary[i]
	}
	return nil
}

// headline is the class and size of the change. Median and mean decide together: where they disagree, nothing is settled.
func (x *Parts) headline() string {
	p50, mean := x.c.row("unit.time.p50"), x.c.row("unit.time.mean")
	if p50 == nil {
		p50 = mean
	}
	size := "unit time " + rowChange(mean) + " (mean), " + rowChange(p50) + " (median)"
	if mean.Ratio != nil && p50.Ratio != nil && math.Abs(*mean.Ratio-*p50.Ratio) < 0.002 {
		size = fmt.Sprintf("unit time %s (%s → %s)", rowChange(mean), ns(*mean.Base), ns(*mean.Head))
	}
	switch {
	case p50.Class == mean.Class && mean.Class == Regressed:
		return "Slower, " + size
	case p50.Class == mean.Class && mean.Class == Improved:
		return "Faster, " + size
	case p50.Class == mean.Class && mean.Class == Same:
		return "No change beyond noise, " + size
	}
	return "Not settled, " + size
}

func rowChange(r *Row) string {
	if r.Ratio == nil {
		return "of unknown size"
	}
	return unit.Change(*r.Ratio - 1)
}

// why names the parts that make up the change, if it is large enough to have parts.
func (x *Parts) why(time *Row) string {
	a := &x.c.Attribution
	if a.Base <= 0 || math.Abs(a.TotalDelta) < leastPart*a.Base {
		return ""
	}
	type part struct {
		id    string
		delta float64
	}
	var parts []part
	for i := range a.Rows {
		if r := &a.Rows[i]; r.Kind == KindClass && math.Abs(r.Delta) >= causePart*math.Abs(a.TotalDelta) {
			parts = append(parts, part{r.ID, r.Delta})
		}
	}
	order.Stable(parts, func(p, q part) int { return cmp.Compare(math.Abs(q.delta), math.Abs(p.delta)) })
	var texts []string
	for _, p := range parts {
		texts = append(texts, x.part(p.id, p.delta))
	}
	if idleOnly := len(parts) > 0 && parts[0].id == ClassIdle; idleOnly && !slices.ContainsFunc(parts, func(p part) bool { return p.id == ClassCompute }) {
		texts = append(texts, "GPU compute unchanged ("+x.classChange(ClassCompute)+")")
	}
	return strings.Join(texts, ", ")
}

func (x *Parts) class(id string) *AttributionRow {
	for i := range x.c.Attribution.Rows {
		if r := &x.c.Attribution.Rows[i]; r.ID == id && (r.Kind == KindClass || r.Kind == KindCause) {
			return r
		}
	}
	return &AttributionRow{}
}

func (x *Parts) classChange(id string) string {
	r := x.class(id)
	if r.Base <= 0 {
		return delta(r.Delta)
	}
	if math.Abs(r.Delta/r.Base) < 0.5e-4 {
		return unit.Change(0) // not "<0.01 %"
	}
	return unit.Change(r.Delta / r.Base)
}

func delta(v float64) string { return unit.Delta(v, "ns") }

func (x *Parts) part(id string, d float64) string {
	switch id {
	case ClassIdle:
		return x.idlePart(d)
	case ClassComm:
		return "exposed communication " + delta(d) + " per unit"
	case ClassCopy:
		return "exposed copies " + delta(d) + " per unit"
	}
	return x.computePart(d)
}

// more is the word for a change of a time or a count.
func more(d float64, up, down string) string {
	if d > 0 {
		return up
	}
	return down
}

// idlePart says which cause of idle time changed most, and which calls of the host go with it.
func (x *Parts) idlePart(d float64) string {
	best, text := 0.0, ""
	for _, cause := range causes() {
		if r := x.class(cause); r.Delta*d > 0 && math.Abs(r.Delta) > math.Abs(best) {
			best, text = r.Delta, cause
		}
	}
	idle := "GPU idle " + delta(d) + " per unit"
	switch text {
	case "host", "launch":
		word := more(d, "host slower", "host faster")
		if call := x.callText(d); call != "" {
			return word + ": " + idle + ", " + call
		}
		return word + " between calls: " + idle + ", the calls themselves take as long as before"
	case "sync":
		for i := range x.c.Structure {
			if s := &x.c.Structure[i]; strings.HasPrefix(s.ID, FoundBlocking) && value(s.Head)*d > value(s.Base)*d {
				return idle + " by " + s.Text
			}
		}
		return idle + " while the host waits in blocking calls"
	case "dependency":
		return idle + " of work that waits for other streams or devices"
	}
	return idle
}

// callText names the two launch or copy calls whose time per unit changed most, of those that changed per call.
func (x *Parts) callText(d float64) string {
	var list []*API
	for i := range x.c.API {
		a := &x.c.API[i]
		if a.Kind != "launch" && a.Kind != "copy" || blocks(a.Name) || a.Ratio == nil || (*a.Ratio-1)*d <= 0 || math.Abs(*a.Ratio-1) < causeCall {
			continue
		}
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(a, b *API) int {
		return cmp.Compare(math.Abs(*b.HeadTime-*b.BaseTime), math.Abs(*a.HeadTime-*a.BaseTime))
	})
	var texts []string
	for _, a := range list[:min(2, len(list))] {
		if len(texts) > 0 && math.Abs(*a.HeadTime-*a.BaseTime) < math.Abs(*list[0].HeadTime-*list[0].BaseTime)/2 {
			break
		}
		texts = append(texts, fmt.Sprintf("%s %s per call (%s → %s)", a.Name, unit.Change(*a.Ratio-1), ns(*a.BaseMean), ns(*a.HeadMean)))
	}
	return strings.Join(texts, ", ")
}

// computePart says which kernels a change of compute time comes from.
func (x *Parts) computePart(d float64) string {
	if x.c.Depth != DepthKernel {
		if busy := x.c.row("unit.gpu_busy.mean"); busy != nil {
			return "GPU busy " + rowChange(busy)
		}
		return "GPU compute " + x.classChange(ClassCompute)
	}
	if shift, ok := x.common(); ok {
		return fmt.Sprintf("all kernels %s, by %s (clocks, power or temperature?)", more(shift, "slower", "faster"), unit.Change(shift))
	}
	var rows []*AttributionRow
	for i := range x.c.Attribution.Rows {
		if r := &x.c.Attribution.Rows[i]; r.Kind == KindKernel && r.Delta*d > 0 && r.Category != communication {
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b *AttributionRow) int { return cmp.Compare(math.Abs(b.Delta), math.Abs(a.Delta)) })
	if len(rows) == 0 {
		return "GPU compute " + x.classChange(ClassCompute) + ", spread over small kernels"
	}
	if text := x.splitText(d); text != "" {
		return text
	}
	top := rows[0]
	if math.Abs(top.Delta) >= math.Abs(d)/2 {
		return "kernel " + x.kernelText(top)
	}
	if c := x.category(d); c != nil {
		by := unit.Change(c.Delta / max(c.Base, 1))
		if math.Abs(value(c.CountEffect)) > math.Abs(c.Delta)/2 {
			return fmt.Sprintf("%s %s kernels (%s per unit), most of all %s", more(d, "more", "fewer"), c.ID, delta(c.Delta), x.kernelText(top))
		}
		return fmt.Sprintf("%s kernels %s (%s per unit), most of all %s", c.ID, by, delta(c.Delta), x.kernelText(top))
	}
	return "GPU compute " + x.classChange(ClassCompute) + ", most of all " + x.kernelText(top)
}

// splitText says that a kernel was replaced by several, where at least half of a change of compute time comes from that.
func (x *Parts) splitText(d float64) string {
	for i := range x.c.Kernels {
		k := &x.c.Kernels[i]
		if k.BaseName == nil || k.HeadName == nil {
			continue
		}
		if n, sum := x.splits(k); n > 1 && sum*d > 0 && math.Abs(sum) >= math.Abs(d)/2 {
			return fmt.Sprintf("kernel %s%s%d kernels, %s among them (%s per unit)", shorten(*k.BaseName), splitWord, n, shorten(*k.HeadName), delta(sum))
		}
	}
	return ""
}

const splitWord = " replaced by "

// splits counts the kernels that a paired kernel was replaced by, and sums their changes.
func (x *Parts) splits(k *Kernel) (n int, sum float64) {
	n, sum = 1, k.Delta
	for i := range x.c.Kernels {
		if o := &x.c.Kernels[i]; o.SplitOf != nil && *o.SplitOf == *k.BaseName {
			n++
			sum += o.Delta
		}
	}
	return n, sum
}

// category is the one that at least half of a change of compute time comes from, or nil.
func (x *Parts) category(d float64) *AttributionRow {
	var best *AttributionRow
	for i := range x.c.Attribution.Rows {
		r := &x.c.Attribution.Rows[i]
		if r.Kind == KindCategory && r.ID != communication && r.Delta*d > 0 && math.Abs(r.Delta) >= math.Abs(d)/2 && (best == nil || math.Abs(r.Delta) > math.Abs(best.Delta)) {
			best = r
		}
	}
	return best
}

// kernelText names a kernel, what replaced it, and whether it runs more often or takes longer.
func (x *Parts) kernelText(r *AttributionRow) string {
	var names []string
	for _, n := range strings.Split(r.ID, " → ") {
		names = append(names, shorten(n))
	}
	text := strings.Join(names, " → ")
	for i := range x.c.Kernels {
		k := &x.c.Kernels[i]
		if kernelID(k) != r.ID {
			continue
		}
		switch {
		case k.Class == Added:
			return fmt.Sprintf("%s, new: %.4g per unit, %s", text, *k.HeadCount, delta(r.Delta))
		case k.Class == Removed:
			return fmt.Sprintf("%s, no longer run: %s per unit", text, delta(r.Delta))
		case *k.BaseCount != *k.HeadCount && math.Abs(k.CountEffect) > math.Abs(k.Delta)/2:
			return fmt.Sprintf("%s %s, run %.4g instead of %.4g times per unit", text, delta(r.Delta), *k.HeadCount, *k.BaseCount)
		}
	}
	if r.Base > 0 {
		return fmt.Sprintf("%s %s (%s per unit)", text, unit.Change(r.Delta/r.Base), delta(r.Delta))
	}
	return text + " " + delta(r.Delta) + " per unit"
}

// kernelID is the attribution row's id of a kernel row.
func kernelID(k *Kernel) string {
	switch {
	case k.BaseName == nil:
		return *k.HeadName
	case k.HeadName == nil || *k.BaseName == *k.HeadName:
		return *k.BaseName
	}
	return *k.BaseName + " → " + *k.HeadName
}

// common finds a shift that most kernels share: the median of the changes per run, weighted with time, if kernels with
// commonShare of the compute time changed by that much to within a quarter of it.
func (x *Parts) common() (shift float64, ok bool) {
	if x.shift != nil {
		s := math.Expm1(*x.shift)
		return s, math.Abs(s) >= commonLeast
	}
	base, _ := x.base.merged()
	head, _ := x.head.merged()
	type change struct{ ln, time float64 }
	var list []change
	sum := 0.0
	for _, p := range pairWork(base, head) {
		b, h := of(base, p.base), of(head, p.head)
		if b.category != communication {
			sum += b.time
		}
		if p.by == ByExact && b.category != communication && b.time > 0 && h.time > 0 && b.count > 0 && h.count > 0 {
			list = append(list, change{math.Log(h.time / h.count / (b.time / b.count)), b.time})
		}
	}
	order.Stable(list, func(a, b change) int { return cmp.Compare(a.ln, b.ln) })
	middle, passed := 0.0, 0.0
	for _, c := range list {
		if passed += c.time; passed >= sum/2 {
			middle = c.ln
			break
		}
	}
	alike := 0.0
	kinds := 0
	for _, c := range list {
		if math.Abs(c.ln-middle) <= math.Abs(middle)/4 {
			alike += c.time
			kinds++
		}
	}
	return math.Expm1(middle), math.Abs(middle) >= commonLeast && kinds >= commonKinds && alike >= commonShare*sum
}

// structural adds the first findings about structure that the text does not name yet.
func (x *Parts) structural(text string) string {
	var list []string
	for i := range x.c.Structure {
		s := &x.c.Structure[i]
		if strings.Contains(text, s.Text) || len(list) == 3 {
			continue
		}
		if s.ID == FoundLaunches && slices.ContainsFunc(x.c.Structure, func(o Structural) bool { return o.ID == FoundGraphs || o.ID == FoundStorm }) {
			continue // said there
		}
		list = append(list, s.Text)
	}
	return strings.Join(list, ", ")
}

// replaced names the largest kernel that another one stands for, if it takes a share of the unit and is not named yet.
func (x *Parts) replaced(text string) string {
	best, most, n := "", 0.0, 0
	for i := range x.c.Kernels {
		k := &x.c.Kernels[i]
		if k.BaseName == nil || k.HeadName == nil || k.PairedBy == ByExact || max(*k.Base, *k.Head) < namedShare*x.c.Attribution.Base {
			continue
		}
		if strings.Contains(text, shorten(*k.BaseName)+splitWord) {
			continue // said there
		}
		n++
		if m := max(*k.Base, *k.Head); m > most {
			best, most = shorten(*k.BaseName)+" → "+shorten(*k.HeadName), m
			if parts, _ := x.splits(k); parts > 1 {
				best += fmt.Sprintf(" and %d more", parts-1)
			}
		}
	}
	switch {
	case n == 0 || strings.Contains(text, best):
		return ""
	case n == 1:
		return "a kernel was replaced: " + best
	}
	return fmt.Sprintf("%d kernels were replaced, most of all %s", n, best)
}

// mixText says that the mix of units changed, which the times of one kind of unit do not feel.
func (x *Parts) mixText() string {
	for i := range x.c.Mix {
		m := &x.c.Mix[i]
		if m.Compared && m.BaseShare != nil && m.HeadShare != nil && math.Abs(*m.HeadShare-*m.BaseShare) >= mixMoved {
			return fmt.Sprintf("units of this kind (%s) take %s of the time instead of %s, a change of the mix and not of the cost", x.kind, unit.Percent(*m.HeadShare), unit.Percent(*m.BaseShare))
		}
	}
	return ""
}
