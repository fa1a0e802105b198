package history

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/order"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/history/change"
)

// ChecksSchema names the format of [Checks].
const ChecksSchema = "explain.history.check/1"

// LeastNights is how many nights a series needs before a change of it can be found.
const LeastNights = 9

// mostUnseen is the largest change, a share, that a series may be unable to show: what a diff assumes as the least.
const mostUnseen = 0.05

// Checks is what a check found.
type Checks struct {
	Schema  string      `json:"schema"`
	Series  []*Checked  `json:"series"`
	Changes []*Found    `json:"changes"` // the newest first
	Borders []*Border   `json:"borders"` // the newest first
	Open    int         `json:"open"`    // changes for the worse that are not accepted and still there
	Warned  int         `json:"warned"`  // creeps for the worse, and borders with Warn
	Tool    report.Tool `json:"tool"`

	workloads map[string]Workload // by id
}

// Checked is a checked series, without its nights.
type Checked struct {
	Series
	Nights int            `json:"nights"`
	Enough bool           `json:"enough"` // enough nights to find a change
	Noise  change.Noise   `json:"noise"`  // as learned from the series
	Odd    string         `json:"unlike"` // why no model of noise fits the nights; empty: one does
	Flips  []change.Flips `json:"flips"`  // places in the nights, levels as ln
	Creep  *change.Creep  `json:"creep"`  // null: the level does not creep
	// Sees is the smallest change for the worse, a share, that its noise lets five nights show; null: 40 nights or more
	Sees *float64 `json:"sees"`
	// Blind reports whether a series has too few nights to show a change of mostUnseen
	Blind bool `json:"blind"`

	told    *change.Told
	least   float64
	borders []*Border
}

// Border is a place at which the environment of a series changed, and the change of its level there. The effect of the
// environment cannot be separated from that of the night's commits.
type Border struct {
	Series   string   `json:"series"` // the metric and its kind of unit
	Branch   string   `json:"branch"`
	Workload string   `json:"workload"`
	Fields   []Moved  `json:"fields"`
	Before   Night    `json:"before"` // the last night before the border
	After    Night    `json:"after"`
	Night    int      `json:"night"`  // index of the first night after the border, from 0
	Nights   int      `json:"nights"` // number of nights after the border from which the level is known
	Ratio    float64  `json:"ratio"`  // of the levels, new over old
	SE       *float64 `json:"se"`     // standard error of ln Ratio; null if there are too few nights
	Warn     bool     `json:"warn"`   // the level got worse by at least as much as a change needs, and by more than noise
}

// Moved is a field of an environment that changed; an empty value is unknown.
type Moved struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Found is one change of the level of one series.
type Found struct {
	Number
	Pinned  *string   `json:"pinned"`
	Before  Night     `json:"before"` // the last night of the old level
	After   Night     `json:"after"`  // the first night of the new one
	FoundAt time.Time `json:"found_at"`
	Ratio   float64   `json:"ratio"` // of the levels, new over old
	// LevelBefore and LevelAfter are the levels before and after the change, in Unit or as ratio to Pinned.
	LevelBefore float64 `json:"level_before"`
	LevelAfter  float64 `json:"level_after"`
	P           float64 `json:"p"`
	Worse       bool    `json:"worse"`
	Open        bool    `json:"open"`   // for the worse, not accepted, and still there
	Gone        bool    `json:"gone"`   // the level has come back since
	Bisect      string  `json:"bisect"` // the command that finds the commit; empty if both nights are of one commit
	Cause       string  `json:"cause"`  // in words, see the comparison
	// Rows are the causes from the comparison of the nights around the change, the largest first.
	Rows []comparison.AnswerRow `json:"rows"`
	// Attribution says where the change comes from, per unit, between the nights around it; empty if these cannot be
	// compared.
	Attribution []comparison.AttributionRow `json:"attribution"`
	Ack         *Ack                        `json:"ack"` // the acknowledgement of the change, which may have expired
	// Commits lie between the two nights, the newest last, and Owners own the files that they change. The caller fills
	// both in from git.
	Commits []Commit `json:"commits"`
	Owners  []string `json:"owners"`

	near   []string // commits whose acknowledgement covers the change
	series *Checked
}

// Commit is one commit between two nights.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"` // hostile text
}

// CheckOptions are the choices of [Store.Check].
type CheckOptions struct {
	Filter  Filter
	Metrics []string  // empty: StepTime
	Least   float64   // smallest change of a level to report, ln; 0: change.Least
	Today   time.Time // the day on which acknowledgements must be valid
}

// Check looks for changes in the series of the runs that a filter selects.
func (s *Store) Check(ctx context.Context, o CheckOptions) (*Checks, error) {
	out := &Checks{Schema: ChecksSchema, Series: []*Checked{}, Changes: []*Found{}, Borders: []*Border{},
		Tool: report.Tool{Name: "explain"}}
	if len(o.Metrics) == 0 {
		o.Metrics = []string{StepTime}
	}
	acks, err := s.Acks(ctx, o.Filter.Repository)
	if err != nil {
		return nil, err
	}
	if out.workloads, err = s.Workloads(ctx); err != nil {
		return nil, err
	}
	for _, metric := range o.Metrics {
		list, err := s.Series(ctx, o.Filter, metric)
		if err != nil {
			return nil, err
		}
		first := len(out.Series)
		for _, x := range list {
			checked := x.checked(o.Least)
			out.Series = append(out.Series, checked)
			checked.borders = checked.moves()
			out.Borders = append(out.Borders, checked.borders...)
			if c := checked.Creep; c != nil && x.Worse(c.PerYear) {
				out.Warned++
			}
			for k := range checked.told.Changes {
				found := checked.found(k)
				found.acknowledge(acks)
				found.Open = found.Worse && !found.Gone && (found.Ack == nil || !found.Ack.Holds(o.Today))
				if err := x.explain(ctx, s, checked.told.Changes, k, found); err != nil {
					return nil, err
				}
				if found.Bisect != "" {
					found.Bisect += " --history " + strconv.Quote(s.name)
				}
				if found.Open {
					out.Open++
				}
				out.Changes = append(out.Changes, found)
			}
		}
		out.Borders = append(out.Borders, successions(out.Series[first:], out.workloads)...)
	}
	out.Warned += lists.Count(out.Borders, func(b *Border) bool { return b.Warn })
	lists.Sort(out.Borders, func(a, b *Border) int { return b.After.Time.Compare(a.After.Time) })
	lists.Sort(out.Changes, func(a, b *Found) int { return b.After.Time.Compare(a.After.Time) })
	return out, nil
}

// nearby is how many nights from a change an acknowledged commit may be: the place can move as nights are added.
const nearby = 2

// Limits beyond which no model of noise fits a series: the share of odd nights, and the correlation of neighbours.
const (
	mostOdd         = 0.1
	mostCorrelation = 0.9
)

func (s *Series) checked(least float64) *Checked {
	c := &Checked{Series: *s, Nights: len(s.Nights), Enough: len(s.Nights) >= LeastNights,
		told: s.Read(change.Options{Least: least}), least: least}
	c.Noise, c.Flips, c.Creep = c.told.Noise, append([]change.Flips{}, c.told.Flips...), c.told.Creep
	if x := c.told.Sees; x > 0 {
		if s.Better == report.Higher {
			x = -x
		}
		c.Sees = new(math.Expm1(x))
	}
	c.Blind = !c.Enough || c.Sees != nil && math.Abs(*c.Sees) > mostUnseen
	switch n := c.Noise; {
	case n.Nights < LeastNights:
	case n.Odd > mostOdd:
		c.Odd = fmt.Sprintf("%.0f %% of the nights are odd, far off their level", 100*n.Odd)
	case n.Correlation > mostCorrelation:
		c.Odd = "the level wanders from night to night"
	}
	return c
}

// moves returns the changes of the environment of a series.
func (c *Checked) moves() (list []*Border) {
	for _, b := range c.told.Borders {
		x := c.border(c.Series.Nights[max(0, b.At-1)], c.Series.Nights[b.At], b.Shift, b.SE)
		x.Night, x.Nights = b.At, b.Nights
		x.Fields = x.Before.about.without(machineField).moved(x.After.about.without(machineField))
		list = append(list, x)
	}
	return list
}

// border returns the border between two nights at which the level moved, ln; se is infinite if it is not known.
func (c *Checked) border(before, after Night, shift, se float64) *Border {
	x := &Border{Series: c.Of(), Branch: c.Branch, Workload: c.Workload, Before: before, After: after,
		Ratio: math.Exp(shift)}
	if !math.IsInf(se, 0) && !math.IsNaN(se) {
		x.SE = &se
		x.Warn = c.Worse(shift) && math.Abs(shift) >= cmp.Or(c.least, change.Least) && math.Abs(shift) > 3*se
	}
	return x
}

// levelNights is the number of nights on each side of such a border that give its level.
const levelNights = 30

// hardware lists the workload fields that may differ when a series continues elsewhere: the same work on another GPU.
var hardware = []string{"gpu", "gpus", "source"}

// successions returns the borders at which a series ends and the same work continues on another GPU. The nights after
// such a border are a series with a baseline of its own.
func successions(list []*Checked, workloads map[string]Workload) (borders []*Border) {
	type key struct{ repository, branch, labels, kind, work string }
	ran := slices.DeleteFunc(slices.Clone(list), func(x *Checked) bool { return x.Nights == 0 })
	for _, next := range lists.Groups(ran, func(x *Checked) key {
		return key{x.Repository, x.Branch, x.Labels.String(), x.Kind, workloads[x.Workload].without(hardware...).text()}
	}) {
		lists.Sort(next, func(a, b *Checked) int { return a.Series.Nights[0].Time.Compare(b.Series.Nights[0].Time) })
		for i := 1; i < len(next); i++ {
			if a, b := next[i-1], next[i]; newest(a).Before(b.Series.Nights[0].Time) && (a.Pinned == nil) == (b.Pinned == nil) {
				borders = append(borders, b.after(a, workloads))
			}
		}
	}
	return borders
}

// after returns the border between a series and the one that continues its work.
func (c *Checked) after(was *Checked, workloads map[string]Workload) *Border {
	shift := order.Median(c.told.Levels[:min(c.Nights, levelNights)]) - order.Median(was.told.Levels[max(0, was.Nights-levelNights):])
	se := math.Inf(1)
	if was.Enough && c.Enough {
		se = math.Hypot(was.Noise.Error(was.Nights), c.Noise.Error(c.Nights))
	}
	x := c.border(was.Series.Nights[was.Nights-1], c.Series.Nights[0], shift, se)
	x.Night, x.Nights = was.Nights, c.Nights
	x.Fields = workloads[was.Workload].moved(workloads[c.Workload])
	return x
}

// found returns the k-th change of a series.
func (s *Checked) found(k int) *Found {
	changes, nights := s.told.Changes, s.Series.Nights
	c := changes[k]
	f := &Found{series: s, Number: s.Number, Pinned: s.Pinned, Before: nights[s.before(c.At)], After: nights[c.At],
		FoundAt: nights[c.Found].Time, Ratio: math.Exp(c.Shift), P: c.P, Worse: s.Worse(c.Shift),
		Rows: []comparison.AnswerRow{}, Attribution: []comparison.AttributionRow{},
		Commits: []Commit{}, Owners: []string{}}
	f.LevelAfter = math.Exp(s.told.Levels[c.At])
	f.LevelBefore = f.LevelAfter / f.Ratio
	if f.Before.Commit != f.After.Commit {
		f.Bisect = "explain bisect --good " + f.Before.Commit + " --bad " + f.After.Commit
	}
	rest := 0.0 // sum of the later changes of the level, ln
	for _, later := range changes[k+1:] {
		if !later.Gone && s.comparable(later.At, c.At) {
			rest += later.Shift
		}
	}
	f.Gone = c.Gone || math.Abs(c.Shift+rest) < math.Abs(c.Shift)/2 || (c.Shift+rest)*c.Shift < 0
	for i := max(0, c.At-nearby); i <= min(s.Nights-1, c.At+nearby); i++ {
		f.near = append(f.near, nights[i].Commit)
	}
	return f
}

// before returns the last night before a place that can be compared with it.
func (s *Series) before(at int) int {
	i := at - 1
	for i > 0 && !s.comparable(i, at) {
		i--
	}
	return i
}

// acknowledge sets the acknowledgement of a change: the one that expires last.
func (f *Found) acknowledge(acks []Ack) {
	for _, a := range acks {
		if a.Repository == f.Repository && slices.Contains(f.near, a.Commit) && (f.Ack == nil || a.Expires > f.Ack.Expires) {
			f.Ack = &a
		}
	}
}

// compared is the number of nights on each side of a change that are compared to find its cause.
const compared = 5

// explain finds where a change comes from: it compares the nights around it.
func (x *Series) explain(ctx context.Context, s *Store, changes []change.Change, k int, f *Found) error {
	c := changes[k]
	from, to := -1, len(x.Nights)
	for i, o := range changes {
		switch {
		case o.Gone || !x.comparable(o.At, c.At):
		case i < k:
			from = max(from, o.At-1)
		case i > k:
			to = min(to, o.At)
		}
	}
	base, head := x.around(from, c.At, to, true)
	if len(base) == 0 || len(head) == 0 { // no machine ran on both sides
		base, head = x.around(from, c.At, to, false)
	}
	if len(base) == 0 || len(head) == 0 {
		return nil
	}
	before, err := s.Reports(ctx, base)
	if err != nil {
		return err
	}
	after, err := s.Reports(ctx, head)
	if err != nil {
		return err
	}
	found, err := diff.Compare(before, after, x.options(before[0]))
	if err != nil {
		return err
	}
	f.Cause = found.Cause
	if a := found.Answer; found.Comparable && len(a.Rows) > 0 {
		f.Rows = a.Rows
		f.Cause = f.answer(&a).String()
	}
	if found.Comparable {
		f.Attribution = found.Attribution.Rows
	}
	return nil
}

// answer returns the answer of the comparison with the two levels in place of its own numbers: those are of a few
// nights only, and less certain.
func (f *Found) answer(of *comparison.Answer) *comparison.Answer {
	a := *of
	change, from, to := f.Ratio-1, f.LevelBefore, f.LevelAfter
	a.Metric, a.Change, a.From, a.To, a.Unit, a.Of, a.Notes = f.Of(), &change, &from, &to, f.Unit, nil, nil
	if f.Pinned != nil {
		a.Unit = report.Ratio
	}
	a.Direction = comparison.Faster
	switch slower := f.Ratio > 1; {
	case f.Unit != report.Nanoseconds && slower:
		a.Direction = comparison.More
	case f.Unit != report.Nanoseconds:
		a.Direction = comparison.Less
	case slower:
		a.Direction = comparison.Slower
	}
	return &a
}

// around returns the runs of the nearest nights on both sides of a change. With shared, only nights of machines that
// ran on both sides count, so that the machine cannot be the cause.
func (s *Series) around(from, at, to int, shared bool) (base, head []Run) {
	alike := lists.Filter(lists.Indexes[int](to)[from+1:], func(i int) bool { return s.comparable(i, at) })
	cut, _ := slices.BinarySearch(alike, at)
	before, after := alike[:cut], alike[cut:]
	if shared && s.Pinned == nil {
		machine := func(i int) string { return s.Nights[i].about[machineField] }
		was, is := lists.Set(before, machine), lists.Set(after, machine)
		both := func(i int) bool { return was[machine(i)] && is[machine(i)] }
		before, after = lists.Filter(before, both), lists.Filter(after, both)
	}
	slices.Reverse(before)
	for _, i := range before[:min(len(before), compared)] {
		base = append(base, s.Nights[i].Runs...)
	}
	for _, i := range after[:min(len(after), compared)] {
		head = append(head, s.Nights[i].Runs...)
	}
	slices.Reverse(base)
	return base, head
}

// options returns the options that compare the kind of unit of the series.
func (s *Series) options(r *report.Report) diff.Options {
	of := func(g *report.UnitGroup) bool { return s.Kind != "" && g.ID == s.Kind }
	if g := lists.Find(r.Unit.Groups, of); g != nil {
		return diff.Options{Phase: g.Phase, Batch: g.Batch}
	}
	return diff.Options{}
}
