package history

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Merged is the result of a Merge: new runs, and those that the store already had.
type Merged struct{ Runs, Known int }

// Merge adds everything that another store has. Existing runs stay as they are: merging twice changes nothing, and
// stores merged in any order have the same content. Merge adds everything or nothing.
func (s *Store) Merge(ctx context.Context, from *Store) (*Merged, error) {
	workloads, err := from.Workloads(ctx)
	if err != nil {
		return nil, err
	}
	epochs, err := about(ctx, from, "epochs")
	if err != nil {
		return nil, err
	}
	runs, err := from.Runs(ctx, Filter{})
	if err != nil {
		return nil, err
	}
	tags, err := all(ctx, from, func(t *[3]string) []any { return []any{&t[0], &t[1], &t[2]} },
		"SELECT repository, tag, commit_id FROM tags")
	if err != nil {
		return nil, err
	}
	acks, err := from.Acks(ctx, "")
	if err != nil {
		return nil, err
	}
	out := &Merged{}
	return out, s.change(ctx, func(c *changes) {
		for i := range runs {
			x, pins, err := whole(ctx, from, &runs[i])
			if c.err = cmp.Or(c.err, err); c.err != nil {
				return
			}
			x.workload, x.epoch = workloads[x.Workload], epochs[x.Epoch]
			id := c.run(ctx, x, out)
			for k := range pins {
				c.pin(ctx, id, pins[k].commit, &pins[k].point)
			}
		}
		for _, t := range tags {
			c.tag(ctx, t[0], t[1], t[2])
		}
		for i := range acks {
			c.ack(ctx, &acks[i])
		}
	})
}

// pin is a number of a reference commit.
type pin struct {
	point
	commit string
}

// fields are where the columns of a point go.
func (p *point) fields() []any {
	return []any{&p.metric, &p.labels, &p.kind, &p.unit, &p.better, &p.value}
}

const pointColumns = "m.metric, m.labels, m.kind, m.unit, m.better, p.value"

// whole returns a run with everything that the store has of it.
func whole(ctx context.Context, s *Store, r *Run) (x *row, pins []pin, err error) {
	x = &row{Run: *r}
	if x.points, err = all(ctx, s, (*point).fields,
		"SELECT "+pointColumns+" FROM points p JOIN metrics m ON m.id = p.metric WHERE p.run = ?", r.id); err != nil {
		return nil, nil, err
	}
	if pins, err = all(ctx, s, func(p *pin) []any { return append(p.fields(), &p.commit) },
		"SELECT "+pointColumns+", p.commit_id FROM pinned p JOIN metrics m ON m.id = p.metric WHERE p.run = ?", r.id); err != nil {
		return nil, nil, err
	}
	x.report, err = packed(ctx, s, r)
	return x, pins, err
}

// Prune removes runs older than a given time, and frees their space. It keeps the newest keep commits of each series,
// tagged commits and acknowledged commits. It returns the number of runs that it removed.
func (s *Store) Prune(ctx context.Context, before time.Time, keep int) (int, error) {
	runs, err := s.Runs(ctx, Filter{})
	if err != nil {
		return 0, err
	}
	acks, err := s.Acks(ctx, "")
	if err != nil {
		return 0, err
	}
	named, err := all(ctx, s, func(c *[2]string) []any { return []any{&c[0], &c[1]} },
		"SELECT repository, commit_id FROM tags")
	if err != nil {
		return 0, err
	}
	for _, a := range acks {
		named = append(named, [2]string{a.Repository, a.Commit})
	}
	type series struct{ repository, branch, workload string }
	newest := map[series][]string{}
	var remove []int64
	for _, r := range slices.Backward(runs) {
		key := series{r.Repository, r.Branch, r.Workload}
		if !slices.Contains(newest[key], r.Commit) && len(newest[key]) < keep {
			newest[key] = append(newest[key], r.Commit)
		}
		if r.Time.Before(before) && !slices.Contains(newest[key], r.Commit) &&
			!slices.Contains(named, [2]string{r.Repository, r.Commit}) {
			remove = append(remove, r.id)
		}
	}
	if len(remove) == 0 {
		return 0, nil
	}
	err = s.change(ctx, func(c *changes) {
		for _, id := range remove {
			for _, q := range []string{"DELETE FROM points WHERE run = ?", "DELETE FROM pinned WHERE run = ?", "DELETE FROM runs WHERE id = ?"} {
				c.exec(ctx, q, id)
			}
		}
	})
	if err == nil && s.sql.shrink != "" {
		_, err = s.db.ExecContext(ctx, s.sql.shrink)
	}
	return len(remove), s.fail(err)
}

// Point is one number of one run, in the form in which it is exported.
type Point struct {
	Origin
	Metric string        `json:"metric"`
	Labels report.Labels `json:"labels"`
	Kind   string        `json:"kind"` // kind of unit; empty: the whole capture
	Unit   string        `json:"unit"`
	Value  float64       `json:"value"`
	// PinnedCommit and Pinned are the reference commit that was captured beside the run, and its number; null if none was.
	PinnedCommit *string  `json:"pinned_commit"`
	Pinned       *float64 `json:"pinned"`
}

// Points calls fn with every number of the runs that a filter selects, by run, then metric and labels.
func (s *Store) Points(ctx context.Context, f Filter, fn func(*Point) error) error {
	runs, err := s.Runs(ctx, f)
	if err != nil {
		return err
	}
	for _, r := range runs {
		list, err := s.entries(ctx, Filter{}, [2]string{"r.run_key = ?", r.Key})
		if err != nil {
			return err
		}
		lists.Sort(list, func(a, b entry) int {
			return cmp.Or(strings.Compare(a.metric, b.metric), strings.Compare(a.labels, b.labels),
				strings.Compare(a.kind, b.kind), strings.Compare(a.ref.String, b.ref.String))
		})
		for _, e := range slices.CompactFunc(list, func(a, b entry) bool { return a.metricKey == b.metricKey }) {
			out := Point{Origin: r.Origin, Metric: e.metric, Labels: labelsOf(e.labels), Kind: e.kind, Unit: e.unit,
				Value: e.value}
			if e.ref.Valid {
				out.PinnedCommit, out.Pinned = &e.ref.String, &e.at.Float64
			}
			if err := fn(&out); err != nil {
				return err
			}
		}
	}
	return nil
}
