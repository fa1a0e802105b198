package breakdown

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
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/internal/pairing"
	"github.com/nsys-llm/explain/diff/internal/side"
)

// Limits of the rules that name the parts of a change, as ratios unless noted.
const (
	causePart   = 0.25  // least share of the change of the unit's time for a part to be named
	causeCall   = 0.10  // least change per API call for it to be named
	commonLeast = 0.015 // least shift of all kernels for it to be named
	commonAlike = 0.01  // most distance (ln) from the common shift at which a kernel still counts as shifted alike
	commonShare = 0.80  // least share of the compute time that must have shifted alike
	commonRest  = 0.50  // likewise of the compute time without the kernel that takes most of it
	commonKinds = 5     // least number of kernels that must have shifted alike
	clockAlike  = 0.005 // most by which the clocks may differ from the shift of all kernels, or from the base's
	namedShare  = 0.01  // least share of the unit's time for a replaced kernel to be named
)

// ownEvidence reports whether the kernels alone show a change of compute time: all of them shifted alike, or one that
// makes up a large enough part of the change is known to have changed.
func (s *story) ownEvidence(d float64) bool {
	if shift, ok := s.common(); ok && shift.middle*d > 0 {
		return true
	}
	return slices.ContainsFunc(s.parts.C.Kernels, func(k comparison.Kernel) bool {
		return k.Delta*d > 0 && math.Abs(k.Delta) >= causePart*math.Abs(d) && k.Class != comparison.Same &&
			k.Class != comparison.Unsettled
	})
}

type split []comparison.AttributionRow

// part returns the row of a class or a cause; an empty one if there is none.
func (s split) part(id string) *comparison.AttributionRow {
	r := lists.Find(s, func(r *comparison.AttributionRow) bool {
		return r.ID == id && (r.Kind == comparison.KindClass || r.Kind == comparison.KindCause)
	})
	return cmp.Or(r, &comparison.AttributionRow{})
}

// largest returns the row that changed most of those of which is holds; nil if there are none.
func (s split) largest(is func(r *comparison.AttributionRow) bool) (most *comparison.AttributionRow) {
	for i := range s {
		if r := &s[i]; is(r) && (most == nil || math.Abs(r.Delta) > math.Abs(most.Delta)) {
			most = r
		}
	}
	return most
}

func (s split) change(id string) string {
	r := s.part(id)
	if r.Base <= 0 {
		return delta(r.Delta)
	}
	if math.Abs(r.Delta/r.Base) < 0.5e-4 {
		return unit.Change(0) // not "<0.01 %"
	}
	return unit.Change(r.Delta / r.Base)
}

func delta(v float64) string { return unit.Delta(v, report.Nanoseconds) }

// more picks the word for a change of a time or a count.
func more(d float64, up, down string) string {
	if d > 0 {
		return up
	}
	return down
}

// hostText says what the launching thread does longer or shorter, if the captures show it and it is a large enough part
// of the change.
func (s split) hostText(d float64) string {
	cause := s.largest(func(r *comparison.AttributionRow) bool { return r.Kind == comparison.KindHost && r.Delta*d > 0 })
	if cause == nil || hostWords[cause.ID] == "" || math.Abs(cause.Delta) < causePart*math.Abs(d) {
		return ""
	}
	calls := slices.DeleteFunc(slices.Clone(s), func(r comparison.AttributionRow) bool {
		return r.Kind != comparison.KindCall || r.Category != cause.ID || r.Delta*d <= 0 || cause.ID == "profiler"
	})
	lists.Falling(calls, func(r comparison.AttributionRow) float64 { return math.Abs(r.Delta) })
	sum, text := 0.0, ""
	for i := range calls[:min(2, len(calls))] {
		sum += calls[i].Delta
		text += " and " + delta(calls[i].Delta) + " in " + wording.Shorten(calls[i].ID, 60)
		if math.Abs(sum) >= math.Abs(cause.Delta)/2 {
			return strings.TrimPrefix(text, " and ")
		}
	}
	return delta(cause.Delta) + " " + hostWords[cause.ID]
}

// idleRange says inside which range of the host most of a change of idle time lies. A side that does not list a range
// idles little in it.
func idleRange(base, head *side.Side, d float64) string {
	change := map[string]float64{}
	for way, s := range map[float64]*side.Side{-1: base, 1: head} {
		for _, v := range s.Views {
			for name, time := range v.IdleRanges() {
				change[name] += way * time / float64(len(s.Views))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(change)) {
		if change[name]*d >= d*d/2 {
			return "inside " + wording.Shorten(name, 70)
		}
	}
	return ""
}

// hostWords say what the launching thread does. The cause "unknown" has no words.
var hostWords = map[string]string{
	"api": "in CUDA calls other than launches", "profiler": "of the profiler itself",
	"os_call": "in calls of the operating system", "not_scheduled": "on no CPU", "running": "running",
}

// sizeOf returns by how much the time of a unit's calls changed, either way.
func sizeOf(a comparison.API) float64 { return math.Abs(a.Cost()) }

// blockingCall names the blocking call whose time per unit grew most, or fell most.
func blockingCall(api []comparison.API, d float64) string {
	calls := lists.Filter(api, func(a comparison.API) bool { return side.Blocks(a.Name) && a.Cost()*d > 0 })
	if len(calls) == 0 {
		return ""
	}
	lists.Falling(calls, sizeOf)
	most := &calls[0]
	b, h := comparison.Value(most.BaseCount), comparison.Value(most.HeadCount)
	text := perUnit(b, h)
	if b == h {
		text = wording.Means("per unit", h)
	}
	what := "blocking call "
	if b == 0 {
		what = "new blocking call "
	}
	return what + most.Name + ", " + text
}

// callText names the two launch or copy calls whose time per unit (calls × mean) changed most, among those that changed
// per call.
func callText(api []comparison.API, d float64) []string {
	list := lists.Filter(api, func(a comparison.API) bool {
		change := comparison.Value(a.Ratio) - 1
		return (a.Kind == "launch" || a.Kind == "copy") && !side.Blocks(a.Name) && a.Ratio != nil && change*d > 0 &&
			math.Abs(change) >= causeCall
	})
	lists.Falling(list, sizeOf)
	var texts []string
	for _, a := range list[:min(2, len(list))] {
		if len(texts) > 0 && sizeOf(a) < sizeOf(list[0])/2 {
			break
		}
		texts = append(texts, fmt.Sprintf("host time in %s %s per unit (%s per call)", a.Name, delta(a.Cost()),
			unit.Change(comparison.Value(a.Ratio)-1)))
	}
	return texts
}

// common finds a shift that most kernels share, but for those of a replacement. ok is false unless kernels with
// commonShare of the compute time changed by that much, within a quarter of it, and not because one kernel takes that
// share. One kernel may stand apart.
func (s *story) common() (x kernelShift, ok bool) {
	x = shifted(s.parts.Base, s.parts.Head, s.parts.fuse().taken)
	return x, math.Abs(x.middle) >= commonLeast && len(x.names) >= commonKinds && x.alike >= commonShare &&
		x.rest >= commonRest
}

// kernelShift is by how much the kernels that both sides run changed.
type kernelShift struct {
	middle float64         // the median change per run (ln), weighted by time
	alike  float64         // share of the time that changed by about as much, without the largest kernel that did not
	rest   float64         // that share, without the kernel that takes most time
	names  map[string]bool // of the pairs that changed by about as much
}

func (x *kernelShift) ratio() float64 { return math.Expm1(x.middle) }

// shifted leaves out the pairs of these names.
func shifted(onBase, onHead *side.Side, but map[string]bool) kernelShift {
	type change struct {
		ln, time float64
		name     string
	}
	var list []change
	sum, most, largest, apart := 0.0, 0.0, 0.0, 0.0 // largest is 0 if the kernel with most time is not alike
	for _, p := range pairing.Kernels(onBase, onHead) {
		b, h := p.Works()
		name := p.Name()
		if b.Category != side.Communication && b.Time > 0 && h.Time > 0 && b.Count > 0 && h.Count > 0 && !but[name] {
			sum, most = sum+b.Time, max(most, b.Time)
			list = append(list, change{math.Log(h.Time / h.Count / (b.Time / b.Count)), b.Time, name})
		}
	}
	x := kernelShift{names: map[string]bool{}}
	if sum == 0 {
		return x
	}
	lists.Sort(list, func(a, b change) int { return cmp.Compare(a.ln, b.ln) })
	passed := 0.0
	for _, c := range list {
		if passed += c.time; passed >= sum/2 {
			x.middle = c.ln
			break
		}
	}
	for _, c := range list {
		if math.Abs(c.ln-x.middle) > max(math.Abs(x.middle)/4, commonAlike) {
			apart = max(apart, c.time)
			continue
		}
		x.alike += c.time
		x.names[c.name] = true
		if c.time == most {
			largest = most
		}
	}
	x.alike, x.rest = x.alike/max(sum-apart, 1), (x.alike-largest)/max(sum-most, 1)
	return x
}

// unmoved returns another kind of unit that both sides run and whose kernels did not change by about as much, or nil. A
// change of the device's clock would affect all kinds.
func unmoved(chosen *pairing.Chosen, base, head *side.Side, shift float64) *pairing.Kind {
	for _, k := range chosen.Kinds {
		if !k.Both() || k.Name == chosen.Kind {
			continue
		}
		onBase, onHead := k.Of(base, head)
		x := shifted(onBase, onHead, nil)
		if len(x.names) > 0 && math.Abs(x.middle-math.Log1p(shift)) > max(math.Abs(shift)/2, commonAlike) {
			return k
		}
	}
	return nil
}

// inMost reports whether these kernels' change is in most units: their median moved with their mean, or that of the
// units where the steps are not aligned.
func (s *story) inMost(names map[string]bool) bool {
	if s.some() != nil {
		return false
	}
	c := s.parts.C
	if c.Step != nil {
		mean, median := 0.0, 0.0
		for i := range c.Step.Rows {
			r := &c.Step.Rows[i]
			name := c.Step.NameOf(r.Name)
			if r.HeadName != nil {
				name += " → " + c.Step.NameOf(r.HeadName)
			}
			if r.Kind == comparison.RowFolded || r.Kind == comparison.RowPaired && names[name] {
				mean, median = mean+r.HeadKernel-r.BaseKernel, median+r.KernelMedian
			}
		}
		return median*mean > mean*mean*medianMoved
	}
	total, ofMedian := c.Attribution.TotalDelta, func(r *comparison.Row) bool { return r.Metric == "unit.time.p50" }
	median := cmp.Or(lists.Find(rowsOf(c.Primary, s.parts.Chosen.Kind), ofMedian), c.Row("unit.time.p50"))
	return median == nil || median.Delta == nil || comparison.Value(median.Delta)*total > total*total*medianMoved
}

// structural returns up to three structural findings that the text does not name yet.
func structural(found []comparison.Structural, text string) string {
	graphs := len(findings(found, comparison.FoundGraphs))+len(findings(found, comparison.FoundStorm)) > 0
	list := texts(found, func(s comparison.Structural) bool {
		d, copies := strings.CutPrefix(s.ID, comparison.FoundCopies+"/")
		there := s.ID == comparison.FoundLaunches && graphs ||
			copies && len(findings(found, comparison.FoundPageable+"/"+d)) > 0
		return !there && !strings.Contains(text, s.Text)
	})
	return strings.Join(list[:min(len(list), 3)], ", ")
}

// replaced names the largest replaced kernel, if it takes at least so many ns of a unit and is not named yet.
func replaced(kernels []comparison.Kernel, names *kernelNames, least float64, text string) string {
	best, most, n, small, word := "", 0.0, 0, 0, "renamed"
	for i := range kernels {
		k := &kernels[i]
		if k.BaseName == nil || k.HeadName == nil || k.PairedBy == comparison.ByExact {
			continue
		}
		if max(comparison.Value(k.Base), comparison.Value(k.Head)) < least {
			if pairing.Renamed(k) {
				small++
			}
			continue
		}
		if strings.Contains(text, names.shown(comparison.Value(k.BaseName))+splitWord) ||
			strings.Contains(text, splitWord+names.shown(comparison.Value(k.HeadName))) {
			continue // named there
		}
		n++
		if !pairing.Renamed(k) {
			word = "replaced"
		}
		if m := max(comparison.Value(k.Base), comparison.Value(k.Head)); m > most {
			best, most = names.shown(comparison.Value(k.BaseName))+" → "+names.shown(comparison.Value(k.HeadName)), m
			if parts := splits(kernels, k); parts > 1 {
				best += fmt.Sprintf(" and %d more", parts-1)
			}
		}
	}
	switch {
	case n == 0 || strings.Contains(text, best):
		return ""
	case word == "renamed":
		n += small
	}
	if n == 1 {
		return "a kernel was " + word + ": " + best
	}
	return fmt.Sprintf("%d kernels were %s, most of all %s", n, word, best)
}
