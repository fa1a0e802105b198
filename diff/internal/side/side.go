package side

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
)

func (k Kind) String() string {
	text := k.Phase
	if k.Batch >= 0 {
		text += " " + strconv.FormatInt(k.Batch, 10)
	}
	if k.Tokens >= 0 {
		text += " of " + strconv.FormatInt(k.Tokens, 10) + " tokens"
	}
	return text
}

// Reports without a trace come from server logs, metric dumps and profiler exports. They have no kernel timeline to
// attribute a change to: their measurements are compared number by number, and iterations of a log per unit of work,
// like steps of a trace.

// EvidenceOnly reports whether the report does not come from a trace.
func (c *Capture) EvidenceOnly() bool {
	kind := c.Report.Trace.Kind
	return len(c.Report.Evidence) > 0 && kind != "" && !strings.HasPrefix(kind, "nsys-")
}

// OfKind sums up the units of a kind on a side: their count, their mean time in ns over all of them, and their share of
// all unit time, 0 to 1, averaged over captures. row holds the kind's index in each capture, -1 for none.
func (s *Side) OfKind(row []int) (count int64, mean, share *float64) {
	var time float64
	for i, at := range row {
		if at >= 0 {
			g := &s.Captures[i].Kinds[at]
			count += g.Count
			time += g.Time()
		}
	}
	if len(s.Captures[0].Kinds) > 0 {
		share = new(s.Share(row))
	}
	if count > 0 {
		mean = new(time / float64(count))
	}
	return count, mean, share
}

// Share returns the share of a side's unit time in units of a kind, 0 to 1, averaged over its captures.
func (s *Side) Share(row []int) (sum float64) {
	for i, at := range row {
		if at >= 0 {
			sum += s.Captures[i].Kinds[at].Share
		}
	}
	return sum / float64(len(s.Captures))
}

// Texts joins a field's distinct values on a side, in capture order.
func (s *Side) Texts(of func(c *Capture) string) string {
	var list []string
	for _, c := range s.Captures {
		lists.Place[int32](&list, of(c))
	}
	return strings.Join(list, " | ")
}

// HoldsWork reports whether GPU work was captured, or evidence has numbers other than 0.
func (c *Capture) HoldsWork() bool {
	return c.HasGPUWork() || c.EvidenceOnly() &&
		slices.ContainsFunc(c.Report.Metrics, func(m report.Metric) bool { return comparison.Value(m.Value) != 0 })
}

// Within reports whether the other capture has every number of c, for the metrics that it has at all.
func (c *Capture) Within(other *Capture) bool {
	families := make(map[string]bool, len(other.Report.Metrics))
	for i := range other.Report.Metrics {
		families[metricFamily(&other.Report.Metrics[i])] = true
	}
	for i := range c.Report.Metrics {
		m := &c.Report.Metrics[i]
		n := other.Metric(m.ID, m.Labels)
		switch {
		case n == nil && m.Labels["pid"] == "" && m.Labels["process"] == "" && families[metricFamily(m)]:
			return false
		case n == nil || m.Value == nil || n.Value == nil:
		case *m.Value != *n.Value || m.Summary != nil && n.Summary != nil && *m.Summary != *n.Summary:
			return false
		}
	}
	return true
}

// Agree reports whether no number that both captures have differs.
func Agree(a, b *Capture) bool {
	return !slices.ContainsFunc(a.Report.Metrics, func(m report.Metric) bool {
		v, ok := b.Value(m.ID, m.Labels)
		return ok && m.Value != nil && *m.Value != v
	})
}

// metricFamily identifies a metric by its id and label keys.
func metricFamily(m *report.Metric) string { return m.ID + "{" + m.Labels.Keys() }

// DisplayNames returns the short name of each kernel of a side, by full name.
func (s *Side) DisplayNames() map[string]string {
	names := map[string]string{}
	for _, c := range s.Captures {
		t := c.Table("kernels", "kernels")
		for i := range t.Len() {
			full, text := t.Str(i, "kernel_name"), t.Str(i, "short")
			if _, ok := names[full]; !ok && full != "" && text != "" {
				names[full] = text
			}
		}
	}
	return names
}

// Capture is one report, broken down for comparing.
type Capture struct {
	*report.Index
	Kinds []Group // kinds of unit, those with most time first
	main  int     // index of the kind of the report's unlabelled metrics; -1 if none
	units []unit  // kept units, in run order
}

// Kind identifies a kind of unit: two groups are comparable if theirs are equal.
type Kind struct {
	Phase         string
	Batch, Tokens int64 // -1 if unknown
}

// Labels returns the labels of the kind, without what is unknown.
func (k Kind) Labels() report.Labels {
	l := report.Labels{"phase": k.Phase}
	if k.Batch >= 0 {
		l["batch"] = strconv.FormatInt(k.Batch, 10)
	}
	if k.Tokens >= 0 {
		l["tokens"] = strconv.FormatInt(k.Tokens, 10)
	}
	return l
}

// Group is one kind of unit in one capture.
type Group struct {
	report.Group
	Kind Kind
}

// Plain reports whether only its kernels identify the kind: no marker names a phase or a size. The name of such a kind
// is only for display.
func (k Kind) Plain() bool {
	return (k.Phase == plainPhase || strings.HasPrefix(k.Phase, plainPhase+":")) && k.Batch < 0 && k.Tokens < 0
}

// plainPhase is the phase of steps that no marker names.
const plainPhase = "step"

// IsMain reports whether the report's unlabelled metrics describe the kind at this index.
func (c *Capture) IsMain(at int) bool { return at == c.main }

// Time returns about how long the capture spent in units of this kind, ns, over all devices.
func (g *Group) Time() float64 { return float64(g.Count) * g.Mean }

func newCapture(r *report.Report) *Capture {
	c := &Capture{Index: report.NewIndex(r), main: -1}
	for _, g := range c.Groups() {
		c.Kinds = append(c.Kinds, Group{Group: g, Kind: Kind{Phase: g.Phase, Batch: g.Batch, Tokens: g.Tokens}})
	}
	if g, ok := c.Main(); ok {
		c.main = g
	}
	for i := range c.Kinds {
		if l, ok := c.Labels(i); ok {
			if s := c.Summary("unit.time", l); s != nil {
				c.Kinds[i].Mean = s.Mean // from the metric that rows use, not from the table
			}
		}
	}
	c.units = readUnits(c.Index, c.Kinds)
	return c
}

// HasGPUWork reports whether kernels or CUDA graphs ran. Copies alone are not work to compare.
func (c *Capture) HasGPUWork() bool {
	if v, ok := c.Value("kernel.count", nil); ok && v > 0 {
		return true
	}
	return slices.ContainsFunc(c.Metrics("gpu.compute_time"), func(m *report.Metric) bool { return comparison.Value(m.Value) > 0 })
}

// Labels returns the labels of the group's metrics in the report, the smallest set if there are several; ok is false if
// the group has no metrics.
func (c *Capture) Labels(g int) (l report.Labels, ok bool) {
	id := c.Kinds[g].ID
	for _, m := range c.Metrics("unit.time") {
		_, device := m.Labels["device"]
		if id == "" || m.Group != id || m.Summary == nil || device {
			continue
		}
		if !ok || len(m.Labels) < len(l) {
			l, ok = m.Labels, true
		}
	}
	return l, ok
}

// Side is one side of a comparison: one capture or several.
type Side struct {
	Captures []*Capture
	Views    []*View // of the kind of unit that is compared, one per capture
}

func NewCaptures(reports []*report.Report) []*Capture {
	return lists.Map(reports, newCapture)
}

// Each yields the captures of the base and of the head, each with "base" or "head".
func Each(base, head []*Capture) iter.Seq2[string, *Capture] {
	return func(yield func(string, *Capture) bool) {
		for i, c := range slices.Concat(base, head) {
			name := "base"
			if i >= len(base) {
				name = "head"
			}
			if !yield(name, c) {
				return
			}
		}
	}
}

func (s *Side) Describe() comparison.Side {
	d := comparison.Side{Names: []string{}, Captures: len(s.Captures)}
	for _, c := range s.Captures {
		d.Names = append(d.Names, c.Report.Trace.Name)
		if e := c.Report.Environment.Software(); !strings.Contains(d.Engine, e) {
			d.Engine = strings.TrimPrefix(d.Engine+", "+e, ", ")
		}
	}
	return d
}

// Mean averages one number over the views of a side; ok is false if one lacks it.
func (s *Side) Mean(of func(v *View) (float64, bool)) (float64, bool) { return MeanOf(s.Views, of) }

// MeanOf averages one number over views or captures; ok is false if one lacks it, or if there are none.
func MeanOf[T any](list []T, of func(T) (float64, bool)) (mean float64, ok bool) {
	values, _ := ValuesOf(list, of)
	if len(values) == 0 {
		return 0, false
	}
	return Average(values), true
}

// ValuesOf returns one number of each view or capture; ok is false if one lacks it.
func ValuesOf[T any](list []T, of func(T) (float64, bool)) (values []float64, ok bool) {
	for _, x := range list {
		v, ok := of(x)
		if !ok {
			return nil, false
		}
		values = append(values, v)
	}
	return values, true
}

// UnitTime returns the mean time of a unit, ns; 0 if the side has no views.
func (s *Side) UnitTime() float64 {
	time, _ := s.Mean(func(v *View) (float64, bool) { return Mean(v.Time) })
	return time
}

// Units returns the number of units behind a side's numbers.
func (s *Side) Units() int64 {
	return lists.Sum(s.Views, func(v *View) int64 { return v.Time.N })
}
