package diff

import (
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
)

// capture is one report, taken apart for comparing.
type capture struct {
	report *report.Report
	byKey  map[string]*report.Metric
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
	kind
	signature string
	count     int64   // units, over all devices
	mean      float64 // ns, on the slowest device
	device    int64   // the slowest; -1 unknown
	kernels   int64   // in one unit, median
	share     float64 // of the time of all kept units, 0..1
}

// time is about how long the capture spent in units of this kind, over all devices.
func (g *group) time() float64 { return float64(g.count) * g.mean }

func newCapture(r *report.Report) *capture {
	c := &capture{report: r, byKey: make(map[string]*report.Metric, len(r.Metrics)), main: -1}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		c.byKey[metricKey(m.ID, m.Labels)] = m
	}
	t := c.table("unit", "unit_groups")
	if t.t == nil {
		t = c.table("iterations", "iteration_groups") // of a log
	}
	for i := range t.rows() {
		if _, ok := t.num(i, "mean"); !ok {
			continue // the others row
		}
		g := group{kind: kind{phase: t.str(i, "phase"), batch: t.whole(i, "batch"), tokens: t.whole(i, "tokens")}, signature: t.str(i, "signature"), count: t.whole(i, "units"), device: t.whole(i, "device_id"), kernels: t.whole(i, "kernels")}
		g.mean, _ = t.num(i, "mean")
		g.share, _ = t.num(i, "share")
		c.groups = append(c.groups, g)
		if m := c.metric("unit.time", nil); m != nil && m.Summary != nil && c.main < 0 {
			if p50, _ := t.num(i, "p50"); p50 == m.Summary.P50 && g.mean == m.Summary.Mean {
				c.main = len(c.groups) - 1
			}
		}
	}
	return c
}

func metricKey(id string, l report.Labels) string {
	if len(l) == 0 {
		return id
	}
	return id + "{" + l.String() + "}"
}

// metric is the metric with this id and exactly these labels, or nil.
func (c *capture) metric(id string, l report.Labels) *report.Metric { return c.byKey[metricKey(id, l)] }

// summary of a metric, or nil.
func (c *capture) summary(id string, l report.Labels) *report.Summary {
	if m := c.metric(id, l); m != nil {
		return m.Summary
	}
	return nil
}

// value of a metric; ok is false where the report does not have it.
func (c *capture) value(id string, l report.Labels) (v float64, ok bool) {
	if m := c.metric(id, l); m != nil && m.Value != nil {
		return *m.Value, true
	}
	return 0, false
}

// rows reads a table by column.
type rows struct {
	t  *report.Table
	at map[string]int
}

// table finds a table of a section; a missing one has no rows.
func (c *capture) table(section, id string) rows {
	r := rows{at: map[string]int{}}
	for i := range c.report.Sections {
		s := &c.report.Sections[i]
		if s.ID != section {
			continue
		}
		for j := range s.Tables {
			if s.Tables[j].ID == id {
				r.t = &s.Tables[j]
				for k := range r.t.Columns {
					r.at[r.t.Columns[k].ID] = k
				}
			}
		}
	}
	return r
}

func (r rows) rows() int {
	if r.t == nil {
		return 0
	}
	return len(r.t.Rows)
}

// cut reports whether the last row sums rows that are not there.
func (r rows) cut() bool { return r.t != nil && r.t.Others }

func (r rows) cell(i int, column string) report.Cell {
	at, ok := r.at[column]
	if !ok {
		return report.Null
	}
	return r.t.Rows[i][at]
}

func (r rows) str(i int, column string) string {
	s, _ := r.cell(i, column).Str()
	return s
}

func (r rows) num(i int, column string) (float64, bool) { return r.cell(i, column).Num() }

// whole is an integer cell, -1 where it is not known.
func (r rows) whole(i int, column string) int64 {
	if v, ok := r.cell(i, column).Int(); ok {
		return v
	}
	return -1
}

// hasGPUWork reports whether kernels or CUDA graphs ran. Copies alone are no work to compare.
func (c *capture) hasGPUWork() bool {
	for _, id := range []string{"kernel.count", "gpu.compute_time"} {
		if v, ok := c.value(id, nil); ok && v > 0 {
			return true
		}
	}
	for i := range c.report.Metrics {
		if m := &c.report.Metrics[i]; m.ID == "gpu.compute_time" && m.Value != nil && *m.Value > 0 {
			return true
		}
	}
	return false
}

// find is the group of a kind: the one with this signature, else the main one, else the one with most time; -1 if none.
func (c *capture) find(k kind, signature string) int {
	best := -1
	for i := range c.groups {
		g := &c.groups[i]
		if g.kind != k {
			continue
		}
		if g.signature == signature {
			return i
		}
		if best < 0 || i == c.main {
			best = i
		}
	}
	return best
}

// labels are those that the report's metrics of a group carry; ok is false where it has none of that group.
func (c *capture) labels(g int) (l report.Labels, ok bool) {
	if g == c.main {
		return report.Labels{}, true
	}
	x := &c.groups[g]
	if x.batch >= 0 {
		l = report.Labels{"phase": x.phase, "batch": strconv.FormatInt(x.batch, 10)}
		if x.tokens >= 0 {
			l["tokens"] = strconv.FormatInt(x.tokens, 10)
		}
		if c.summary("unit.time", l) != nil {
			return l, true
		}
	}
	if x.batch < 0 && x.tokens >= 0 {
		l = report.Labels{"phase": x.phase, "tokens": strconv.FormatInt(x.tokens, 10)}
		if c.summary("unit.time", l) != nil {
			return l, true
		}
	}
	if c.phaseMain(x.phase) == g {
		l = report.Labels{"phase": x.phase}
		if c.summary("unit.time", l) != nil {
			return l, true
		}
	}
	return nil, false
}

// phaseMain is the group that metrics labelled with the phase alone are of: the phase's with most time.
func (c *capture) phaseMain(phase string) int {
	for i := range c.groups {
		if c.groups[i].phase == phase {
			return i
		}
	}
	return -1
}

// side is what stands on one side of a comparison: one capture or several.
type side struct {
	captures []*capture
	views    []*view // of the kind of unit that is compared, one per capture
}

func newSide(reports []*report.Report) *side {
	s := &side{}
	for _, r := range reports {
		s.captures = append(s.captures, newCapture(r))
	}
	return s
}

func (s *side) describe() Side {
	d := Side{Names: []string{}, Captures: len(s.captures)}
	for _, c := range s.captures {
		d.Names = append(d.Names, c.report.Trace.Name)
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
			at := c.find(k, s.captures[0].groups[i].signature)
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
				sum += c.groups[i].share
			}
		}
	}
	return sum / float64(len(s.captures))
}
