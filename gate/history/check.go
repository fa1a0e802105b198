package history

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/history/change"
)

// ChecksSchema names the format of [Checks].
const ChecksSchema = "explain.history.check/1"

// LeastNights is how many nights a series needs before a change of it can be found.
const LeastNights = 8

// Checks is what a check found.
type Checks struct {
	Schema  string      `json:"schema"`
	Series  []Checked   `json:"series"`
	Changes []Found     `json:"changes"` // the newest first
	Open    int         `json:"open"`    // for the worse, not accepted, and still there
	Store   string      `json:"-"`
	Tool    report.Tool `json:"tool"`
}

// Checked is a series that was looked at, without its nights.
type Checked struct {
	Series
	Nights int  `json:"nights"`
	Enough bool `json:"enough"` // for a change to be found at all
}

// Found is one change of the level of one series.
type Found struct {
	Repository string        `json:"repository"`
	Branch     string        `json:"branch"`
	Workload   string        `json:"workload"`
	Metric     string        `json:"metric"`
	Labels     report.Labels `json:"labels"`
	Kind       string        `json:"kind"`
	Unit       string        `json:"unit"`
	Pinned     *string       `json:"pinned"`
	Before     Night         `json:"before"` // the last night of the old level
	After      Night         `json:"after"`  // the first night of the new one
	FoundAt    time.Time     `json:"found_at"`
	Ratio      float64       `json:"ratio"` // of the levels, new over old
	P          float64       `json:"p"`
	Worse      bool          `json:"worse"`
	Open       bool          `json:"open"`  // for the worse, not accepted, and still there
	Gone       bool          `json:"gone"`  // the level came back since
	Cause      string        `json:"cause"` // in words, see the comparison
	// Attribution is where the change comes from, per unit, between the nights around it; empty where those cannot be
	// compared.
	Attribution []comparison.AttributionRow `json:"attribution"`
	Ack         *Ack                        `json:"ack"` // that accepts it, or did until it expired
	// Commits lie between the two nights, the newest last, and Owners are who their files belong to: for those who know
	// git to fill in.
	Commits []Commit `json:"commits"`
	Owners  []string `json:"owners"`

	near []string // commits by which it can be acknowledged
}

// Commit is one commit between two nights.
type Commit struct {
	SHA     string `json:"sha"`
	Subject string `json:"subject"` // hostile text
}

// Name of the number that changed.
func (f *Found) Name() string {
	s := Series{Metric: f.Metric, Labels: f.Labels, Kind: f.Kind}
	return s.Of()
}

// CheckOptions are the choices of [Store.Check].
type CheckOptions struct {
	Filter  Filter
	Metrics []string // none: StepTime
	Change  change.Options
	Today   time.Time // the day that acknowledgements are held to
	Causes  bool      // compare the reports around each change, which takes time
}

// Check looks for changes in the series of the runs that a filter selects.
func (s *Store) Check(ctx context.Context, o CheckOptions) (*Checks, error) {
	out := &Checks{Schema: ChecksSchema, Series: []Checked{}, Changes: []Found{}, Store: s.name,
		Tool: report.Tool{Name: "explain"}}
	if len(o.Metrics) == 0 {
		o.Metrics = []string{StepTime}
	}
	acks, err := s.Acks(ctx, o.Filter.Repository)
	if err != nil {
		return nil, err
	}
	for _, metric := range o.Metrics {
		list, err := s.Series(ctx, o.Filter, metric)
		if err != nil {
			return nil, err
		}
		for i := range list {
			x := &list[i]
			out.Series = append(out.Series, Checked{Series: *x, Nights: len(x.Nights), Enough: len(x.Nights) >= LeastNights})
			changes := x.Changes(o.Change)
			for k := range changes {
				found := x.found(changes, k)
				found.acknowledge(acks, o.Today)
				found.Open = found.Worse && !found.Gone && (found.Ack == nil || !found.Ack.Holds(o.Today))
				if o.Causes {
					if err := s.explain(ctx, x, changes, k, &found); err != nil {
						return nil, err
					}
				}
				if found.Open {
					out.Open++
				}
				out.Changes = append(out.Changes, found)
			}
		}
	}
	slices.SortStableFunc(out.Changes, func(a, b Found) int { return b.After.Time.Compare(a.After.Time) })
	return out, nil
}

// nearby nights of the place of a change count for acknowledgements: the place can move while nights come in.
const nearby = 2

// found is the k-th change of a series.
func (s *Series) found(changes []change.Change, k int) Found {
	c := changes[k]
	before := s.before(c.At)
	f := Found{Repository: s.Repository, Branch: s.Branch, Workload: s.Workload, Metric: s.Metric, Labels: s.Labels,
		Kind: s.Kind, Unit: s.Unit,
		Pinned: s.Pinned, Before: s.Nights[before], After: s.Nights[c.At], FoundAt: s.Nights[c.Found].Time,
		Ratio: math.Exp(c.Shift), P: c.P,
		Worse: s.Worse(c.Shift), Attribution: []comparison.AttributionRow{}, Commits: []Commit{}, Owners: []string{}}
	rest := 0.0 // what later changes took back
	for _, later := range changes[k+1:] {
		if s.Pinned != nil || s.Nights[later.At].Epoch == s.Nights[c.At].Epoch {
			rest += later.Shift
		}
	}
	f.Gone = math.Abs(c.Shift+rest) < math.Abs(c.Shift)/2 || (c.Shift+rest)*c.Shift < 0
	for i := max(0, c.At-nearby); i <= min(len(s.Nights)-1, c.At+nearby); i++ {
		f.near = append(f.near, s.Nights[i].Commit)
	}
	return f
}

// before is the last night before a place that can be compared with it.
func (s *Series) before(at int) int {
	for i := at - 1; i >= 0; i-- {
		if s.Pinned != nil || s.Nights[i].Epoch == s.Nights[at].Epoch {
			return i
		}
	}
	return max(0, at-1)
}

// acknowledge finds the acknowledgement of a change: the one that holds longest.
func (f *Found) acknowledge(acks []Ack, _ time.Time) {
	for i := range acks {
		a := &acks[i]
		if a.Repository == f.Repository && slices.Contains(f.near, a.Commit) && (f.Ack == nil || a.Expires > f.Ack.Expires) {
			f.Ack = a
		}
	}
}

// compared nights on each side of a change say where it comes from.
const compared = 5

// explain says where a change comes from: the comparison of the nights around it.
func (s *Store) explain(ctx context.Context, x *Series, changes []change.Change, k int, f *Found) error {
	c := changes[k]
	same := func(i int) bool { return x.Pinned != nil || x.Nights[i].Epoch == x.Nights[c.At].Epoch }
	from, to := -1, len(x.Nights)
	for i, o := range changes {
		switch {
		case i < k && same(o.At):
			from = max(from, o.At-1)
		case i > k && same(o.At):
			to = min(to, o.At)
		}
	}
	var base, head []Run
	for i, n := c.At-1, 0; i > from && n < compared; i-- {
		if same(i) {
			base, n = append(base, x.Nights[i].Runs...), n+1
		}
	}
	for i, n := c.At, 0; i < to && n < compared; i++ {
		if same(i) {
			head, n = append(head, x.Nights[i].Runs...), n+1
		}
	}
	if len(base) == 0 || len(head) == 0 {
		return nil
	}
	slices.Reverse(base)
	before, err := s.Reports(ctx, base)
	if err != nil {
		return err
	}
	after, err := s.Reports(ctx, head)
	if err != nil {
		return err
	}
	cmp, err := diff.Compare(before, after, x.options(before[0]))
	if err != nil {
		return err
	}
	f.Cause = cmp.Cause
	if cmp.Comparable {
		f.Attribution = cmp.Attribution.Rows
	}
	return nil
}

// options of a comparison of the kind of unit that the series is of.
func (s *Series) options(r *report.Report) diff.Options {
	for _, g := range r.Unit.Groups {
		if s.Kind != "" && g.ID == s.Kind {
			return diff.Options{Phase: g.Phase, Batch: g.Batch}
		}
	}
	return diff.Options{}
}
