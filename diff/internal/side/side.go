package side

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
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

// Comparing reports that no trace is behind: server logs, dumps of metrics, exports of profilers. There are no kernels
// of a timeline to attribute a change to; what they measured is compared number by number, and iterations of a log per
// unit of work, as steps of a trace are.

// EvidenceOnly reports whether no trace is behind the report.
func (c *Capture) EvidenceOnly() bool {
	kind := c.Report.Trace.Kind
	return len(c.Report.Evidence) > 0 && kind != "" && !strings.HasPrefix(kind, "nsys-")
}

// OfKind are the units of a kind on a side: how many, how long one takes on average over all of them, and their share
// of the time of all units, averaged over captures. row has the kind's place in each capture, -1 for none.
func (s *Side) OfKind(row []int) (count int64, mean, share *float64) {
	var time, shares float64
	some := false
	for i, at := range row {
		if at >= 0 {
			g := &s.Captures[i].Kinds[at]
			some = true
			count += g.Count
			time += g.Time()
			shares += g.Share
		}
	}
	if len(s.Captures[0].Kinds) > 0 {
		shares /= float64(len(s.Captures))
		share = &shares
	}
	if some && count > 0 {
		time /= float64(count)
		mean = &time
	}
	return count, mean, share
}

// Texts are the values of a field on a side, each once, in the order of the captures.
func (s *Side) Texts(of func(c *Capture) string) string {
	var list []string
	for _, c := range s.Captures {
		if t := of(c); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	return strings.Join(list, " | ")
}

// HoldsWork reports whether GPU work was captured, or there is evidence with numbers in it.
func (c *Capture) HoldsWork() bool {
	return c.HasGPUWork() ||
		c.EvidenceOnly() &&
			slices.ContainsFunc(c.Report.Metrics, func(m report.Metric) bool { return m.Value != nil && *m.Value != 0 })
}

// Within reports whether the other capture has every number that c has, as far as it has such metrics.
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

// metricFamily is a metric with the dimensions that it has here.
func metricFamily(m *report.Metric) string { return m.ID + "{" + m.Labels.Keys() }

// DisplayNames is the short name of each kernel of a side, by its full one.
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

// Capture is one report, taken apart for comparing.
type Capture struct {
	*report.Index
	Kinds []Group // kinds of unit, those with most time first
	main  int     // the group that the report's unlabelled metrics are of; -1 if none
	units []unit  // kept ones, in the order in which they ran
}

// Kind of unit: what two groups must share to be compared.
type Kind struct {
	Phase         string
	Batch, Tokens int64 // -1 unknown
}

// Group is one kind of unit in one capture.
type Group struct {
	report.Group
	Kind Kind
}

// Plain reports whether nothing but its kernels tells the kind from others: no marker names a phase or a size. What
// such a kind is called beside others is for display.
func (k Kind) Plain() bool {
	return (k.Phase == plainPhase || strings.HasPrefix(k.Phase, plainPhase+":")) && k.Batch < 0 && k.Tokens < 0
}

// plainPhase is the phase of steps that no marker names.
const plainPhase = "step"

// IsMain reports whether the report's unlabelled metrics are of the kind in this place of the list.
func (c *Capture) IsMain(at int) bool { return at == c.main }

// Time is about how long the capture spent in units of this kind, over all devices.
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
				c.Kinds[i].Mean = s.Mean // of the metric that rows are of, rather than of the table
			}
		}
	}
	c.units = c.readUnits()
	return c
}

// HasGPUWork reports whether kernels or CUDA graphs ran. Copies alone are no work to compare.
func (c *Capture) HasGPUWork() bool {
	if v, ok := c.Value("kernel.count", nil); ok && v > 0 {
		return true
	}
	return slices.ContainsFunc(c.Metrics("gpu.compute_time"),
		func(m *report.Metric) bool { return m.Value != nil && *m.Value > 0 })
}

// Labels are those that the report's metrics of a group carry, the fewest of several; ok is false if it has none
// of that group.
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

// Side is what stands on one side of a comparison: one capture or several.
type Side struct {
	Captures []*Capture
	Views    []*View // of the kind of unit that is compared, one per capture
}

func NewCaptures(reports []*report.Report) []*Capture {
	list := make([]*Capture, 0, len(reports))
	for _, r := range reports {
		list = append(list, newCapture(r))
	}
	return list
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

// Mean over the captures of a side of one number; ok is false if a capture lacks it.
func (s *Side) Mean(of func(v *View) (float64, bool)) (float64, bool) {
	values, ok := s.Values(of)
	if !ok || len(values) == 0 {
		return 0, false
	}
	return Average(values), true
}

// Values of one number by capture; ok is false if a capture lacks it.
func (s *Side) Values(of func(v *View) (float64, bool)) (values []float64, ok bool) {
	values = make([]float64, 0, len(s.Views))
	for _, v := range s.Views {
		x, ok := of(v)
		if !ok {
			return []float64{}, false
		}
		values = append(values, x)
	}
	return values, true
}

// Units behind the numbers of a side.
func (s *Side) Units() int64 {
	var n int64
	for _, v := range s.Views {
		n += v.Time.N
	}
	return n
}

// Step is one unit of work of any kind.
type Step struct {
	At   int     // place of its kind among the capture's kinds
	Time float64 // ns
}

// Steps are the kept units that are listed, of each kind those on its slowest device, in the order in which they ran.
func (c *Capture) Steps() []Step {
	var list []Step
	for i := range c.units {
		if u := &c.units[i]; u.device == c.Kinds[u.at].Device {
			list = append(list, Step{u.at, u.Time})
		}
	}
	return list
}
