package history

import (
	"cmp"
	"context"
	"database/sql"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/gate/history/change"
)

// Number is what a series follows: one number of one workload on a branch.
type Number struct {
	Repository string        `json:"repository"`
	Branch     string        `json:"branch"`
	Workload   string        `json:"workload"`
	Metric     string        `json:"metric"`
	Labels     report.Labels `json:"labels"`
	Kind       string        `json:"kind"` // kind of unit; empty: the whole capture
	Unit       string        `json:"unit"`
}

// Series is a number over the nights.
type Series struct {
	Number
	Better report.Direction `json:"better"`
	// Pinned is the commit that ratios refer to; null: changes are sought in the numbers themselves
	Pinned  *string `json:"pinned"`
	LeftOut int     `json:"left_out"`
	Nights  []Night `json:"nights"` // the oldest first
}

// Night is one commit at one time: the median over its captures.
type Night struct {
	Commit string    `json:"commit"`
	Time   time.Time `json:"time"`
	Epoch  string    `json:"epoch"`
	Value  float64   `json:"value"` // in the unit of the series
	Ratio  *float64  `json:"ratio"` // to the reference commit; null if Pinned is
	Runs   []Run     `json:"-"`

	about    Workload // the fields of the epoch
	software string   // all of them but the machine
}

// followed returns the number in which changes are sought: the ratio if the night has one, else the value.
func (n *Night) followed() float64 {
	return report.ValueOr(n.Ratio, n.Value)
}

// StepTime is the default metric in which changes are sought.
const StepTime = "unit.time.p50"

// Series returns all series of a metric in the runs that a filter selects, by repository, branch, workload and kind of
// unit.
func (s *Store) Series(ctx context.Context, f Filter, metric string) ([]Series, error) {
	if metric == "unit.time" {
		metric = StepTime
	}
	more := [][2]string{{"m.metric = ?", metric}}
	if f.Branch == "" {
		more = append(more, [2]string{"r.branch <> ?", BisectBranch})
	}
	list, err := s.entries(ctx, f, more...)
	if err != nil {
		return nil, err
	}
	epochs, err := about(ctx, s, "epochs")
	if err != nil {
		return nil, err
	}
	type key struct{ repository, branch, workload, labels, kind string }
	software := map[string]string{}
	for id, about := range epochs {
		software[id] = about.without(machineField).text()
	}
	out := []Series{}
	for _, of := range lists.Groups(list, func(e entry) key {
		return key{e.run.Repository, e.run.Branch, e.run.Workload, e.labels, e.kind}
	}) {
		e := of[0]
		x := Series{Better: e.better, Number: Number{Repository: e.run.Repository, Branch: e.run.Branch,
			Workload: e.run.Workload, Metric: e.metric, Labels: labelsOf(e.labels), Kind: e.kind, Unit: e.unit}}
		fill(&x, of)
		for i := range x.Nights {
			n := &x.Nights[i]
			n.about, n.software = epochs[n.Epoch], software[n.Epoch]
		}
		out = append(out, x)
	}
	lists.Sort(out, func(a, b Series) int {
		return cmp.Or(strings.Compare(a.Repository, b.Repository), strings.Compare(a.Branch, b.Branch),
			strings.Compare(a.Workload, b.Workload),
			strings.Compare(a.Kind, b.Kind), strings.Compare(a.Labels.String(), b.Labels.String()))
	})
	return out, nil
}

// entry is a number of a run, with one of a reference commit that was captured beside it.
type entry struct {
	run Run
	point
	ref sql.NullString  // the reference commit; null: none was
	at  sql.NullFloat64 // its number
}

// entries are the numbers of the runs that a filter selects, in any order, under more conditions: see [Filter.where].
func (s *Store) entries(ctx context.Context, f Filter, more ...[2]string) ([]entry, error) {
	where, args := f.where(more...)
	fields := func(e *entry) []any { return append(append(e.run.fields(), e.fields()...), &e.ref, &e.at) }
	return all(ctx, s, fields, "SELECT "+runColumns+", "+pointColumns+", b.commit_id, b.value FROM points p "+
		"JOIN runs r ON r.id = p.run JOIN metrics m ON m.id = p.metric "+
		"LEFT JOIN pinned b ON b.metric = p.metric AND b.run = p.run"+where, args...)
}

// MetricsOf are the ids of all numbers that a store holds, sorted.
func MetricsOf(ctx context.Context, s *Store) ([]string, error) {
	return all(ctx, s, one[string], "SELECT DISTINCT metric FROM metrics ORDER BY metric")
}

// Ratios are used if at least sharePinned of the newest nights were captured beside one reference commit.
const (
	sharePinned   = 0.5
	newestToCheck = 30
)

// fill groups the numbers into nights, and decides whether to use ratios.
func fill(s *Series, all []entry) {
	lists.Sort(all, func(a, b entry) int {
		return cmp.Or(a.run.Time.Compare(b.run.Time), strings.Compare(a.run.Commit, b.run.Commit),
			strings.Compare(a.run.Epoch, b.run.Epoch), strings.Compare(a.run.Key, b.run.Key))
	})
	nights := groups(all, func(a, b *entry) bool {
		return a.run.Time.Equal(b.run.Time) && a.run.Commit == b.run.Commit && a.run.Epoch == b.run.Epoch
	})
	ref := reference(nights)
	for _, night := range nights {
		n := Night{Commit: night[0].run.Commit, Time: night[0].run.Time, Epoch: night[0].run.Epoch}
		var values, ratios []float64
		for i, e := range night {
			if i == 0 || e.run.id != night[i-1].run.id {
				values, n.Runs = append(values, e.value), append(n.Runs, e.run)
			}
			if e.ref.Valid && e.ref.String == ref && e.at.Float64 > 0 {
				ratios = append(ratios, e.value/e.at.Float64)
			}
		}
		n.Value = order.Median(values)
		if len(ratios) > 0 {
			n.Ratio = new(order.Median(ratios))
		}
		if ref != "" && n.Ratio == nil || !(n.followed() > 0) {
			s.LeftOut++
			continue
		}
		s.Nights = append(s.Nights, n)
	}
	if ref != "" {
		s.Pinned = &ref
	}
}

// groups cuts a list where neighbours are not alike.
func groups[T any](list []T, alike func(a, b *T) bool) [][]T {
	var out [][]T
	for from, i := 0, 1; i <= len(list); i++ {
		if i == len(list) || !alike(&list[i-1], &list[i]) {
			out, from = append(out, list[from:i]), i
		}
	}
	return out
}

// reference returns the reference commit of most of the newest nights; empty if those are fewer than sharePinned.
func reference(nights [][]entry) string {
	newest := nights[max(0, len(nights)-newestToCheck):]
	count := map[string]int{}
	for _, n := range newest {
		for _, e := range n {
			if e.ref.Valid && e.run.id == n[0].run.id {
				count[e.ref.String]++
			}
		}
	}
	best := ""
	for commit, n := range count {
		if best == "" || n > count[best] || n == count[best] && commit < best {
			best = commit
		}
	}
	if float64(count[best]) < sharePinned*float64(len(newest)) {
		return ""
	}
	return best
}

// Of returns the name of the series within its workload: unit.time.p50 of decode/32.
func (n *Number) Of() string {
	switch {
	case n.Kind != "":
		return n.Metric + " of " + n.Kind
	case len(n.Labels) > 0:
		return n.Metric + " of " + n.Labels.String()
	}
	return n.Metric
}

// Worse reports whether a change of the level is for the worse.
func (s *Series) Worse(shift float64) bool { return (shift > 0) == (s.Better != report.Higher) }

// Read analyses the series: changes, borders, noise. Places are indices of Nights.
func (s *Series) Read(o change.Options) *change.Told {
	order, breaks := s.order()
	y := make([]float64, len(order))
	o.Days, o.Machines = make([]int, len(order)), make([]int, len(order))
	var machines lists.Numbering[string]
	for i, at := range order {
		n := &s.Nights[at]
		y[i], o.Days[i] = math.Log(n.followed()), int(n.Time.Weekday())
		o.Machines[i] = int(machines.Of(n.about[machineField]))
	}
	if s.Pinned != nil || len(machines.Keys) < 2 {
		o.Machines = nil
	}
	o.Falls, o.Breaks = s.Better == report.Higher, breaks
	told := change.Read(y, o)
	for i := range told.Changes {
		c := &told.Changes[i]
		c.At, c.Found = order[c.At], order[c.Found]
	}
	lists.Sort(told.Changes, func(a, b change.Change) int { return a.At - b.At })
	for i := range told.Borders {
		told.Borders[i].At = order[told.Borders[i].At]
	}
	for i := range told.Flips {
		told.Flips[i].From, told.Flips[i].To = order[told.Flips[i].From], order[told.Flips[i].To]
	}
	if told.Creep != nil {
		told.Creep.From = order[told.Creep.From]
	}
	levels := make([]float64, len(order))
	for i, at := range order {
		levels[at] = told.Levels[i]
	}
	told.Levels = levels
	return told
}

// comparable reports whether two nights have the same software beneath them; with a reference commit all do.
func (s *Series) comparable(i, k int) bool {
	return s.Pinned != nil || s.Nights[i].software == s.Nights[k].software
}

// order sorts the nights by the software beneath them, so that drivers that alternate are each compared with
// themselves. breaks are the places at which other software begins. With a reference commit neither is needed.
func (s *Series) order() (order, breaks []int) {
	order = lists.Indexes[int](len(s.Nights))
	if s.Pinned != nil {
		return order, nil
	}
	order = slices.Concat(lists.Groups(order, func(i int) string { return s.Nights[i].software })...)
	for i := 1; i < len(order); i++ {
		if !s.comparable(order[i], order[i-1]) {
			breaks = append(breaks, i)
		}
	}
	return order, breaks
}

// Level is the level of a series since its last change, from nights in the environment of the newest night.
type Level struct {
	Nights []Night
	Value  float64 // median of the ratios, or of the values
	Spread float64 // standard deviation of ln between nights, from the median deviation; 0 for fewer than 3 nights
}

// Level returns the level up to a time; nil if there are no nights.
func (s *Series) Level(until time.Time) *Level {
	upTo := *s
	upTo.Nights = slices.DeleteFunc(slices.Clone(s.Nights), func(n Night) bool { return n.Time.After(until) })
	if len(upTo.Nights) == 0 {
		return nil
	}
	last := len(upTo.Nights) - 1
	epoch := upTo.Nights[last].Epoch
	from := 0
	for _, c := range upTo.Read(change.Options{}).Changes {
		if !c.Gone && upTo.comparable(c.At, last) {
			from = max(from, c.At)
		}
	}
	elsewhere := func(n Night) bool { return s.Pinned == nil && n.Epoch != epoch }
	l := &Level{Nights: slices.DeleteFunc(upTo.Nights[from:], elsewhere)}
	l.Value = median(l.Nights)
	off := lists.Map(l.Nights, func(n Night) float64 { return math.Log(n.followed() / l.Value) })
	if len(off) >= 3 {
		l.Spread = order.Spread(off)
	}
	return l
}

func median(nights []Night) float64 { return order.Median(followed(nights)) }

// followed are the numbers of some nights in which changes are sought.
func followed(nights []Night) []float64 {
	return lists.Map(nights, func(n Night) float64 { return n.followed() })
}
