package diff

import (
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
)

// capture is one report, taken apart for comparing.
type capture struct {
	*report.Index
	groups []group // kinds of unit, those with most time first
	main   int     // the group that the report's unlabelled metrics are of; -1 if none
}

// kind of unit: what two groups must share to be compared.
type kind struct {
	phase         string
	batch, tokens int64 // -1 unknown
}

// group is one kind of unit in one capture.
type group struct {
	report.Group
	kind kind
}

// time is about how long the capture spent in units of this kind, over all devices.
func (g *group) time() float64 { return float64(g.Count) * g.Mean }

func newCapture(r *report.Report) *capture {
	c := &capture{Index: report.NewIndex(r), main: -1}
	for _, g := range c.Groups() {
		c.groups = append(c.groups, group{Group: g, kind: kind{phase: g.Phase, batch: g.Batch, tokens: g.Tokens}})
	}
	if g, ok := c.Main(); ok {
		c.main = g
	}
	return c
}

// hasGPUWork reports whether kernels or CUDA graphs ran. Copies alone are no work to compare.
func (c *capture) hasGPUWork() bool {
	if v, ok := c.Value("kernel.count", nil); ok && v > 0 {
		return true
	}
	return slices.ContainsFunc(c.Metrics("gpu.compute_time"), func(m *report.Metric) bool { return m.Value != nil && *m.Value > 0 })
}

// find is the group of a kind: the one with this signature, else the main one, else the one with most time; -1 if none.
func (c *capture) find(k kind, signature string) int {
	best := -1
	for i := range c.groups {
		g := &c.groups[i]
		if g.kind != k {
			continue
		}
		if g.Signature == signature {
			return i
		}
		if best < 0 || i == c.main {
			best = i
		}
	}
	return best
}

// labels are those that the report's metrics of a group carry, the fewest of several; ok is false where it has none of that
// group.
func (c *capture) labels(g int) (l report.Labels, ok bool) {
	id := c.groups[g].ID
	for _, m := range c.Metrics("unit.time") {
		_, device := m.Labels["device"]
		if id == "" || c.GroupOf(m) != id || m.Summary == nil || device {
			continue
		}
		if !ok || len(m.Labels) < len(l) {
			l, ok = m.Labels, true
		}
	}
	return l, ok
}

// side is what stands on one side of a comparison: one capture or several.
type side struct {
	captures []*capture
	views    []*view // of the kind of unit that is compared, one per capture
}

func newCaptures(reports []*report.Report) []*capture {
	list := make([]*capture, 0, len(reports))
	for _, r := range reports {
		list = append(list, newCapture(r))
	}
	return list
}

func (s *side) describe() Side {
	d := Side{Names: []string{}, Captures: len(s.captures)}
	for _, c := range s.captures {
		d.Names = append(d.Names, c.Report.Trace.Name)
	}
	return d
}

// mean over the captures of a side of one number; ok is false where a capture lacks it.
func (s *side) mean(of func(v *view) (float64, bool)) (float64, bool) {
	values, ok := s.values(of)
	if !ok || len(values) == 0 {
		return 0, false
	}
	return average(values), true
}

// values of one number by capture; ok is false where a capture lacks it.
func (s *side) values(of func(v *view) (float64, bool)) (values []float64, ok bool) {
	values = make([]float64, 0, len(s.views))
	for _, v := range s.views {
		x, ok := of(v)
		if !ok {
			return []float64{}, false
		}
		values = append(values, x)
	}
	return values, true
}

// units behind the numbers of a side.
func (s *side) units() int64 {
	var n int64
	for _, v := range s.views {
		n += v.time.N
	}
	return n
}

func average(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// kinds that occur on a side, in all of its captures, those with most time first.
func (s *side) kinds() []kind {
	var list []kind
	for i := range s.captures[0].groups {
		k := s.captures[0].groups[i].kind
		everywhere := !slices.Contains(list, k)
		for _, c := range s.captures {
			at := c.find(k, s.captures[0].groups[i].Signature)
			if at < 0 {
				everywhere = false
				break
			}
			if _, ok := c.labels(at); !ok {
				everywhere = false
			}
		}
		if everywhere {
			list = append(list, k)
		}
	}
	return list
}

// time that a side spent in units of a kind.
func (s *side) time(match func(k kind) bool) float64 {
	var sum float64
	for _, c := range s.captures {
		for i := range c.groups {
			if match(c.groups[i].kind) {
				sum += c.groups[i].Share
			}
		}
	}
	return sum / float64(len(s.captures))
}
