package report

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"unique"
)

// Index is a report prepared for many lookups: metrics by id and labels, tables by section and id, kinds of unit by id.
// The report must not change while it is in use.
type Index struct {
	Report *Report

	byID   func() map[string]*sameID // made at the first call: who looks at tables alone does not need it
	tables map[string]*Table
	groups []Group
	main   int // of groups; -1 if none
}

type sameID struct {
	list []*Metric

	once sync.Once                         // for keys: most ids have few metrics, or are never looked up
	keys map[unique.Handle[string]]*Metric // by labels: reports that are compared have most of them in common
}

// Group is one kind of unit with its row in the report's table of kinds. Unknown numbers are -1.
type Group struct {
	ID            string // empty if only the report's table lists the kind, so that no metric describes it
	Phase         string
	Batch, Tokens int64
	Signature     string
	Count         int64   // units kept, over all devices
	Kernels       int64   // in one unit, median
	Mean          float64 // ns, on the slowest device
	Device        int64   // the slowest
	Share         float64 // of the time of all kept units, 0 to 1
	Row           []Cell  // of the table of kinds
}

// NewIndex takes a report apart.
func NewIndex(r *Report) *Index {
	x := &Index{Report: r, tables: map[string]*Table{}, main: -1}
	x.byID = sync.OnceValue(x.readMetrics)
	for i := range r.Sections {
		for j := range r.Sections[i].Tables {
			t := &r.Sections[i].Tables[j]
			x.tables[r.Sections[i].ID+"/"+t.ID] = t
		}
	}
	x.readGroups()
	return x
}

func (x *Index) readMetrics() map[string]*sameID {
	byID := map[string]*sameID{}
	for i := range x.Report.Metrics {
		m := &x.Report.Metrics[i]
		same := byID[m.ID]
		if same == nil {
			same = &sameID{}
			byID[m.ID] = same
		}
		same.list = append(same.list, m)
	}
	return byID
}

// MetricKey names a metric: its id, and its labels in braces if it has any.
func MetricKey(id string, l Labels) string {
	if len(l) == 0 {
		return id
	}
	return id + "{" + l.String() + "}"
}

// Metric is the metric with this id and exactly these labels, or nil.
func (x *Index) Metric(id string, l Labels) *Metric {
	same := x.byID()[id]
	switch {
	case same == nil:
		return nil
	case len(same.list) <= fewMetrics:
		for _, m := range same.list {
			if maps.Equal(m.Labels, l) {
				return m
			}
		}
		return nil
	}
	same.once.Do(func() {
		same.keys = make(map[unique.Handle[string]]*Metric, len(same.list))
		for _, m := range same.list {
			same.keys[unique.Make(m.Labels.String())] = m
		}
	})
	return same.keys[unique.Make(l.String())]
}

// fewMetrics are compared one by one.
const fewMetrics = 8

// Metrics are all metrics with this id, in the order of the report.
func (x *Index) Metrics(id string) []*Metric {
	if same := x.byID()[id]; same != nil {
		return same.list
	}
	return nil
}

// Value of a metric; ok is false if the report does not have it, or does not know it.
func (x *Index) Value(id string, l Labels) (v float64, ok bool) {
	if m := x.Metric(id, l); m != nil && m.Value != nil {
		return *m.Value, true
	}
	return 0, false
}

// Summary of a metric, or nil.
func (x *Index) Summary(id string, l Labels) *Summary {
	if m := x.Metric(id, l); m != nil {
		return m.Summary
	}
	return nil
}

// Table finds a table of a section; nil, which has no rows, where it is missing.
func (x *Index) Table(section, id string) *Table { return x.tables[section+"/"+id] }

// Groups are the kinds of unit that the report knows the mean time of, those with most time first.
func (x *Index) Groups() []Group { return x.groups }

// Main is the kind of unit that unlabelled metrics are of; ok is false if there is none.
func (x *Index) Main() (g int, ok bool) { return x.main, x.main >= 0 }

// PhaseMain is the kind that metrics labelled with the phase alone are of, the phase's with most time; -1 if
// there is none.
func (x *Index) PhaseMain(phase string) int {
	return slices.IndexFunc(x.groups, func(g Group) bool { return g.Phase == phase })
}

// readGroups reads the table of kinds of unit and matches its rows with the kinds that the unit lists.
func (x *Index) readGroups() {
	t := cmp.Or(x.Table("unit", "unit_groups"), x.Table("iterations", "iteration_groups")) // the second is of a log
	listed := x.Report.Unit.Groups
	for i := range t.Len() {
		mean, ok := t.Num(i, "mean")
		if !ok {
			continue // the others row
		}
		g := Group{
			Phase: t.Str(i, "phase"), Batch: t.Whole(i, "batch"), Tokens: t.Whole(i, "tokens"),
			Signature: t.Str(i, "signature"),
			Count:     t.Whole(i, "units"), Kernels: t.Whole(i, "kernels"), Mean: mean, Device: t.Whole(i, "device_id"),
			Row: t.Rows[i],
		}
		g.Share, _ = t.Num(i, "share")
		if at := slices.IndexFunc(listed, g.is); at >= 0 {
			g.ID = listed[at].ID
			if listed[at].Main {
				x.main = len(x.groups)
			}
		}
		x.groups = append(x.groups, g)
	}
}

// is reports whether a kind that the unit lists is the one of this row: the signature tells kinds of one phase
// and size apart.
func (g *Group) is(u UnitGroup) bool {
	return g.Phase == u.Phase && g.Batch == ValueOr(u.Batch, -1) && g.Tokens == ValueOr(u.Tokens, -1) &&
		g.Signature == u.Signature
}
