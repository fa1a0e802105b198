package noise

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
	"github.com/nsys-llm/explain/diff/internal/significance"
)

// Limits that choose the parts to judge. They never depend on how much a part changed.
const (
	mostParts = 12   // the largest parts, by their larger share on either side; the rest is one more part
	leastPart = 0.02 // share of the units' time on a side; a tenth of it for a part that only one side has
)

type partKey struct{ kind, name string }

const overUnits = "t interval over units"

// partRows judges the parts of one kind of unit if the reports list them: over units with one capture a side, over
// the captures' means with several.
func (x *Decider) partRows(u *units) []comparison.Part {
	t := &partTimes{method: "t interval over captures", nb: len(u.base.Views), nh: len(u.head.Views), alpha: x.Policy.Stats.Alpha}
	if t.nb == 1 && t.nh == 1 {
		base, head, tied := partUnits(u.base.Views[0], u.head.Views[0], x.ties.between(u.base.Views, u.head.Views))
		t.method, t.nb, t.nh, t.tied = overUnits, len(base), len(head), tied
		if min(t.nb, t.nh) < significance.LeastUnits {
			return nil
		}
		t.base, t.head = timesOf(u.base.Views[0].Parts(), base), timesOf(u.head.Views[0].Parts(), head)
	} else {
		t.base, t.head = partMeans(u.base.Views), partMeans(u.head.Views)
		if min(t.nb, t.nh) < 2 || t.base == nil || t.head == nil {
			return nil
		}
	}
	rename(t.base, t.head, u)
	parts := t.judge(u)
	x.parts[u.labels().String()] = parts
	return parts.list
}

// partTimes are the times of parts, ns by unit or by capture, and how they are judged.
type partTimes struct {
	base, head map[partKey][]float64
	nb, nh     int    // units or captures
	method     string // overUnits, or over captures
	tied       bool   // units are pairs
	alpha      float64
}

type judgedParts struct {
	list   []comparison.Part
	total  float64 // ns, of the base's mean unit
	drifts []bool  // by part
	// apart, of kind "unit", covers the units whose whole time stands apart although most of their parts are too small to;
	// its kind is empty if no unit does
	apart comparison.Part
}

// rename makes one part of kernels that the head runs under a name of another family, as the rows of kernels pair them.
func rename(b, h map[partKey][]float64, u *units) {
	for _, p := range pairing.Kernels(u.base, u.head) {
		if !p.Both() || p.By == comparison.ByExact {
			continue
		}
		row := pairing.KernelRow(p, 1)
		was, is := partKey{report.PartCompute, p.Base.Family}, partKey{report.PartCompute, p.Head.Family}
		if !pairing.Renamed(&row) || b[was] == nil || h[is] == nil {
			continue
		}
		switch gone, isNew := h[was] == nil, b[is] == nil; {
		case gone && isNew:
			both := partKey{report.PartCompute, was.name + " → " + is.name}
			b[both], h[both] = b[was], h[is]
			delete(b, was)
			delete(h, is)
		case isNew: // one kernel of several of its family
			addTo(h[was], h[is])
			delete(h, is)
		case gone:
			addTo(b[is], b[was])
			delete(b, was)
		}
	}
}

func (t *partTimes) judge(u *units) (out judgedParts) {
	keys, parts := pooled(t.base, t.head, t.nb, t.nh)
	whole := significance.Part{Base: make([]float64, t.nb), Head: make([]float64, t.nh)}
	for i := range parts {
		addTo(whole.Base, parts[i].Base)
		addTo(whole.Head, parts[i].Head)
	}
	total := lists.Total(whole.Base) / float64(t.nb)
	if total <= 0 {
		return out
	}
	out.total = total
	stands := total
	if t.method != overUnits {
		stands = math.Inf(1) // single captures never stand apart, as single steps do
	}
	if v := significance.JudgeParts([]significance.Part{whole}, stands, t.tied, timer, t.alpha)[0]; v.Hits > 0 && v.Certain {
		out.apart = comparison.Part{Kind: "unit", Delta: v.Delta, Share: v.Delta / total, Hits: hitsOf(&v, &whole)}
	}
	for i, v := range significance.JudgeParts(parts, stands, t.tied, timer, t.alpha) {
		row := comparison.Part{Unit: u.kind.String(), Labels: u.labels(), Kind: keys[i].kind, Name: keys[i].name,
			Base: lists.Total(parts[i].Base) / float64(t.nb), Head: lists.Total(parts[i].Head) / float64(t.nh), Delta: v.Delta,
			Share: v.Delta / total, P: v.P, Class: comparison.Unsettled}
		switch {
		case v.Certain && v.Delta > 0:
			row.Class = comparison.Regressed
		case v.Certain:
			row.Class = comparison.Improved
		case v.Hits == 0 && max(v.High, -v.Low) <= Tau*total:
			row.Class = comparison.Same
		}
		if v.Hits > 0 {
			row.Hits = hitsOf(&v, &parts[i])
		} else {
			row.Interval = &comparison.Interval{Low: v.Low, High: v.High, Level: 1 - 2*t.alpha, Method: t.method}
		}
		out.list, out.drifts = append(out.list, row), append(out.drifts, v.Drifts)
	}
	return out
}

func hitsOf(v *significance.PartVerdict, of *significance.Part) *comparison.PartHits {
	return &comparison.PartHits{Units: int64(v.Hits), Of: int64(len(of.Head)), Every: int64(v.Every), Times: v.Times}
}

// partMeans returns the mean time of each part by capture, ns; nil if a report does not list parts.
func partMeans(views []*side.View) map[partKey][]float64 {
	out := map[partKey][]float64{}
	for at, v := range views {
		n := numbersOf(v.Parts())
		if len(n) == 0 {
			return nil
		}
		for key, times := range timesOf(v.Parts(), lists.Indexes[int](len(n))) {
			if out[key] == nil {
				out[key] = make([]float64, len(views))
			}
			out[key][at] = lists.Total(times) / float64(len(n))
		}
	}
	return out
}

// partUnits returns the indices of the units to compare in the list of each report; if tied, they are pairs.
func partUnits(onBase, onHead *side.View, tie significance.Tie) (base, head []int, tied bool) {
	b, h := numbersOf(onBase.Parts()), numbersOf(onHead.Parts())
	from, to := b, h // places
	switch tie {
	case significance.TieNone:
		return lists.Indexes[int](len(b)), lists.Indexes[int](len(h)), false
	case significance.TieNumber:
		from, to = stepsOf(onBase, b), stepsOf(onHead, h)
	case significance.TieStart:
	}
	at := make(map[int64]int, len(to))
	for i, s := range to {
		at[s] = i
	}
	for i, s := range from {
		if k, ok := at[s]; ok {
			base, head = append(base, i), append(head, k)
		}
	}
	if len(base) >= significance.MinUnits {
		return base, head, true
	}
	return lists.Indexes[int](len(b)), lists.Indexes[int](len(h)), false
}

// numbersOf returns the number of each unit of which the report lists parts; none if it lists none.
func numbersOf(p *report.UnitParts) (numbers []int64) {
	if p != nil {
		numbers, _ = p.Numbers() // validated
	}
	return numbers
}

// stepsOf returns the marker number of each unit in numbers.
func stepsOf(v *side.View, numbers []int64) []int64 {
	steps := map[int64]int64{}
	list, kept := v.Series()
	for i, u := range list {
		if kept[i] {
			steps[u.Number] = u.Step
		}
	}
	return lists.Map(numbers, func(n int64) int64 { return steps[n] })
}

// timesOf returns the time of each part by unit, ns.
func timesOf(p *report.UnitParts, units []int) map[partKey][]float64 {
	out := map[partKey][]float64{}
	for i := range p.Parts {
		times := p.Parts[i].Times()
		list := lists.Map(units, func(at int) float64 { return float64(times[at]) })
		out[partKey{p.Parts[i].Kind, p.Parts[i].Name}] = list
	}
	return out
}

// pooled returns the parts to judge, largest first, and then one part with the sum of all others.
func pooled(b, h map[partKey][]float64, nb, nh int) (keys []partKey, parts []significance.Part) {
	shares := map[partKey]float64{}
	for _, s := range []map[partKey][]float64{b, h} {
		total := 0.0
		for _, times := range s {
			total += lists.Total(times)
		}
		for k, times := range s {
			if share := lists.Total(times) / max(total, 1); share > shares[k] {
				shares[k] = share
			}
		}
	}
	keys = slices.Collect(maps.Keys(shares))
	lists.Sort(keys, func(p, q partKey) int {
		return cmp.Or(cmp.Compare(shares[q], shares[p]), cmp.Compare(p.kind, q.kind), cmp.Compare(p.name, q.name))
	})
	own := 0
	rest := significance.Part{Base: make([]float64, nb), Head: make([]float64, nh)}
	for _, k := range keys {
		least := leastPart
		if b[k] == nil || h[k] == nil {
			least /= 10
		}
		if own == mostParts || shares[k] < least || k.name == "" {
			addTo(rest.Base, b[k])
			addTo(rest.Head, h[k])
			continue
		}
		part := significance.Part{Base: make([]float64, nb), Head: make([]float64, nh)}
		part.Waits = k.kind == report.PartComm
		addTo(part.Base, b[k])
		addTo(part.Head, h[k])
		keys[own] = k
		parts = append(parts, part)
		own++
	}
	return append(keys[:own:own], partKey{kind: "rest"}), append(parts, rest)
}

func addTo(to, of []float64) {
	for i, v := range of {
		to[i] += v
	}
}

// Net returns what the parts of the units with these labels sum to, see [judgedParts.net].
func (x *Decider) Net(labels report.Labels, drifts bool) (share float64, text string) {
	parts := x.parts[labels.String()]
	return parts.net(drifts)
}

// net returns the sum of the parts that certainly changed, both up and down, as a share of the base's mean unit, and a
// text about the largest part that changed in that direction. If the units that stand apart as a whole add more, it
// returns their share. If the work drifts, only idle time and parts that do not drift count: the others depend on the
// place of the capture in the work. Idle time that went from one cause to another, as where a graph replaces launches,
// counts for at most what all idle time changed by.
func (j *judgedParts) net(drifts bool) (share float64, text string) {
	var certain []*comparison.Part
	var idle struct{ up, down, all float64 }
	for i := range j.list {
		p := &j.list[i]
		if p.Kind == report.PartIdle {
			idle.all += (p.Head - p.Base) / j.total
			if p.Class == comparison.Regressed || p.Class == comparison.Improved {
				idle.up, idle.down = idle.up+max(0, p.Share), idle.down+min(0, p.Share)
			}
		}
		if (!drifts || p.Kind == report.PartIdle || !j.drifts[i]) && (p.Class == comparison.Regressed || p.Class == comparison.Improved) {
			certain = append(certain, p)
			share += p.Share
		}
	}
	if moved := idle.up + idle.down; idle.up > 0 && idle.down < 0 {
		share += min(max(moved, min(0, idle.all)), max(0, idle.all)) - moved
	}
	switch {
	case !drifts && j.apart.Kind != "" && share*j.apart.Share >= 0 && math.Abs(j.apart.Share) > math.Abs(share):
		return j.apart.Share, PartText(&j.apart)
	case share == 0:
		return 0, ""
	}
	return share, PartText(slices.MaxFunc(certain, func(p, q *comparison.Part) int { return cmp.Compare(p.Delta*share, q.Delta*share) }))
}

// NetOfWork returns the sum of the parts that certainly changed over all work, as a share of the base's work. It adds
// up every kind of unit that both sides run, each with the kinds that do nearly the same work. It is 0 if a side has
// several captures or a report does not list these units. rows are the primary rows, which say whether a kind drifts.
func (x *Decider) NetOfWork(rows []comparison.Row) (share float64, text string) {
	w := x.work
	if w == nil || len(x.Base.Captures) > 1 || len(x.Head.Captures) > 1 {
		return 0, ""
	}
	most := 0.0
	for _, k := range x.kinds {
		own, count, ok := w.price(k, x.Base, baseOf)
		if !ok || !k.Both() || w.skips(k) {
			continue
		}
		base, head := k.Of(x.Base, x.Head)
		u := &units{kind: k.Name, base: base, head: head}
		b, h := w.together(k, base.Views[0], baseOf), w.together(k, head.Views[0], headOf)
		if min(len(b.numbers), len(h.numbers)) < significance.LeastUnits {
			continue
		}
		var common []partKey
		for key := range b.times {
			if key.kind == report.PartCompute && h.times[key] != nil {
				common = append(common, key)
			}
		}
		b.pool(common)
		h.pool(common)
		labels := u.labels().String()
		drifts := slices.ContainsFunc(rows, func(r comparison.Row) bool {
			return r.Code == comparison.Trend && r.Labels.String() == labels
		})
		parts := (&partTimes{b.times, h.times, len(b.numbers), len(h.numbers), overUnits, false, x.Policy.Stats.Alpha}).judge(u)
		part, why := parts.net(drifts)
		part *= count * side.Average(own) / w.total
		if share += part; math.Abs(part) > most {
			most, text = math.Abs(part), why
		}
	}
	return share, text
}

// mixed holds the times of the parts of units of several kinds, ns by unit, in the order in which the units ran.
type mixed struct {
	times   map[partKey][]float64
	numbers []int64
}

// together merges the units of kind k with those that do nearly the same work, on one device. It takes the same share
// of every kind: the smallest share that the report lists of any of them. The result is empty if the report lists none.
func (w *workload) together(k *pairing.Kind, v *side.View, of func(k *pairing.Kind) []int) mixed {
	m := mixed{times: map[partKey][]float64{}}
	var list []*report.UnitParts
	var places [][]int64
	var rates []float64
	for _, o := range w.kinds {
		row := of(o)
		if !w.of(o, k) || row == nil || row[0] < 0 {
			continue
		}
		g := &v.C.Kinds[row[0]]
		p := v.C.Report.Unit.PartsOf(g.ID, v.Device())
		numbers := numbersOf(p)
		if len(numbers) == 0 {
			return mixed{}
		}
		list, places, rates = append(list, p), append(places, numbers), append(rates, float64(len(numbers))/float64(g.Count))
	}
	for i, p := range list {
		take, before := slices.Min(rates)/rates[i], len(m.numbers)
		var units []int
		for at, number := range places[i] {
			if math.Floor(float64(at+1)*take+1e-9) > math.Floor(float64(at)*take+1e-9) {
				units, m.numbers = append(units, at), append(m.numbers, number)
			}
		}
		for key, times := range timesOf(p, units) {
			m.times[key] = slices.Concat(m.times[key], make([]float64, before-len(m.times[key])), times)
		}
	}
	order := lists.Indexes[int](len(m.numbers))
	lists.Sort(order, func(i, j int) int { return cmp.Compare(m.numbers[i], m.numbers[j]) })
	for key, list := range m.times {
		own := make([]float64, len(order))
		for i, at := range order {
			if at < len(list) {
				own[i] = list[at]
			}
		}
		m.times[key] = own
	}
	return m
}

// pool merges the kernels that both sides run into one part, because reports list different kernels by name for
// different kinds.
func (m *mixed) pool(common []partKey) {
	all := make([]float64, len(m.numbers))
	for _, key := range common {
		addTo(all, m.times[key])
		delete(m.times, key)
	}
	m.times[partKey{report.PartCompute, "on both sides"}] = all
}

// PartText describes the change of a part: "exposed copies DtoH +4.9 ms per unit, in 3 of 19 units, every 7th".
func PartText(p *comparison.Part) string {
	text := fmt.Sprintf("%s %s per unit", partName(p), unit.Delta(p.Delta, report.Nanoseconds))
	if h := p.Hits; h != nil {
		text += ", in " + h.String()
	}
	return text
}

func partName(p *comparison.Part) string {
	switch p.Kind {
	case "unit":
		return "time"
	case report.PartIdle:
		return "GPU idle (" + p.Name + ")"
	case report.PartCopy:
		return "exposed copies " + p.Name
	case report.PartComm:
		return "exposed communication " + p.Name
	case report.PartCompute:
		return "kernels " + p.Name
	}
	return "the smaller parts"
}
