package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Pinned holds captures of a reference commit, made beside those of an Add on the same machine in the same hours: the
// ratio of the two cancels the effect of the machine.
type Pinned struct {
	Commit  string
	Reports []*report.Report // at least one
}

// Added is the result of an Add.
type Added struct {
	Merged
	Pinned bool // numbers of a reference commit were added
	Near   bool // the time is the clock's, and the newest run of another commit is of the same minute
}

// Add stores captures of one commit, at least one, all of one workload. Existing runs stay as they are: adding twice
// changes nothing. Add stores all of them or none.
func (s *Store) Add(ctx context.Context, p Place, reports []*report.Report, pinned *Pinned, now time.Time) (
	*Added, error) {
	clock := p.Time.IsZero()
	if clock {
		p.Time = now
	}
	if err := p.Check(pinned, now); err != nil {
		return nil, err
	}
	workload := WorkloadOf(reports[0], p.Workload)
	rows, err := rowsOf(&p, reports, workload)
	if err != nil {
		return nil, err
	}
	beside, err := pinned.points(workload, p.Workload)
	if err != nil {
		return nil, err
	}
	out := &Added{}
	return out, s.change(ctx, func(c *changes) {
		if clock {
			out.Near = c.clock(ctx, &p, workload.id())
		}
		for i := range rows {
			if clock {
				rows[i].Time = p.Time
			}
			id := c.run(ctx, &rows[i], &out.Merged)
			for _, b := range beside {
				out.Pinned = c.pin(ctx, id, pinned.Commit, &b) || out.Pinned
			}
		}
		for _, tag := range p.Tags {
			c.tag(ctx, p.Repository, tag, p.Commit)
		}
	})
}

// row is a run with everything that is stored with it.
type row struct {
	Run
	workload, epoch Workload
	points          []point
	report          []byte
}

// rowsOf returns the runs of an Add, each capture once.
func rowsOf(p *Place, reports []*report.Report, w Workload) ([]row, error) {
	var rows []row
	for _, r := range reports {
		if d := w.Differs(WorkloadOf(r, p.Workload)); d != "" {
			return nil, fmt.Errorf("%s and %s ran different workloads: %s; add each on its own", reports[0].Trace.Name, r.Trace.Name, d)
		}
		capture, err := captureOf(r)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(rows, func(x row) bool { return x.Capture == capture }) {
			continue
		}
		packed, err := pack(Keep(r))
		if err != nil {
			return nil, err
		}
		x := row{workload: w, epoch: epochOf(r, p.Environment), points: pointsOf(r), report: packed}
		x.Origin = Origin{Repository: p.Repository, Branch: p.Branch, Commit: p.Commit,
			Time: p.Time.UTC().Truncate(time.Second), Workload: w.id(), Epoch: x.epoch.id(), Capture: capture}
		x.Name = r.Trace.Name
		if len(x.points) == 0 {
			return nil, fmt.Errorf("%s has no number that a series can be made of: no unit of work was found (%s)", r.Trace.Name, r.Unit.Why)
		}
		x.Key = hash(p.Repository, p.Branch, p.Commit, x.Workload, x.Epoch, capture)[:32]
		rows = append(rows, x)
	}
	return rows, nil
}

// points returns the mean, over the captures of the reference commit, of each number that all of them have.
func (p *Pinned) points(w Workload, name string) ([]point, error) {
	if p == nil {
		return nil, nil
	}
	var all []point
	for _, r := range p.Reports {
		if d := w.Differs(WorkloadOf(r, name)); d != "" {
			return nil, fmt.Errorf("%s has another workload than the runs beside it: %s", r.Trace.Name, d)
		}
		all = append(all, pointsOf(r)...)
	}
	var list []point
	for _, same := range lists.Groups(all, func(x point) metricKey { return x.metricKey }) {
		if x := same[0]; len(same) == len(p.Reports) {
			x.value = lists.Sum(same, func(x point) float64 { return x.value }) / float64(len(same))
			list = append(list, x)
		}
	}
	return list, nil
}

// clockSlack bounds how far the clocks of two writers may differ, and how long one may have waited for the other.
const clockSlack = 2 * time.Minute

// clock sets the time inside the transaction: after the newest run of another commit, which another writer may have
// added since this transaction began, and reports whether that run is of the same minute. It refuses to order runs by a
// clock that is wrong.
func (c *changes) clock(ctx context.Context, p *Place, workload string) (near bool) {
	if c.s.sql.migration != "" { // PostgreSQL: other writers wait here; in SQLite they wait from the start
		c.exec(ctx, "LOCK TABLE runs IN SHARE ROW EXCLUSIVE MODE")
	}
	var newest int64
	c.get(ctx, &newest, "SELECT COALESCE(MAX(at), 0) FROM runs WHERE repository = ? AND branch = ? "+
		"AND workload = ? AND commit_id <> ?", p.Repository, p.Branch, workload, p.Commit)
	p.Time = p.Time.UTC().Truncate(time.Second)
	t := time.Unix(newest, 0).UTC()
	switch late := t.Sub(p.Time); {
	case late > clockSlack:
		c.refuse("the clock says %s, and the newest run of %s is of %s: name the time of this one with --time",
			p.Time.Format(time.RFC3339), p.Branch, t.Format(time.RFC3339))
	case late >= 0:
		p.Time = t.Add(time.Second) // adds within one second keep their order
	}
	return p.Time.Sub(t) < time.Minute
}

// run adds one run with its points, unless the store has it, and counts it.
func (c *changes) run(ctx context.Context, x *row, count *Merged) (id int64) {
	for _, about := range []struct{ table, id, text string }{
		{"workloads", x.Workload, x.workload.text()}, {"epochs", x.Epoch, x.epoch.text()},
	} {
		c.exec(ctx, "INSERT INTO "+about.table+" (id, about) VALUES (?, ?) ON CONFLICT DO NOTHING", about.id, about.text)
	}
	var other string
	c.get(ctx, &other, "SELECT COALESCE(MAX(commit_id), '') FROM runs WHERE capture = ? AND repository = ? AND commit_id <> ?",
		x.Capture, x.Repository, x.Commit)
	if other != "" {
		c.refuse("capture %s is in the history as one of commit %s, and cannot be of %s as well", x.Name, other, x.Commit)
	}
	id, fresh := c.insert(ctx, "INSERT INTO runs (run_key, repository, branch, commit_id, at, workload, epoch, "+
		"capture, name, report) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		[]any{x.Key, x.Repository, x.Branch, x.Commit, x.Time.Unix(), x.Workload, x.Epoch, x.Capture, x.Name, x.report},
		"SELECT id FROM runs WHERE run_key = ?", x.Key)
	if !fresh {
		count.Known++
		return id
	}
	count.Runs++
	for i := range x.points {
		c.exec(ctx, "INSERT INTO points (metric, run, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
			c.metric(ctx, &x.points[i]), id, x.points[i].value)
	}
	return id
}

func (c *changes) metric(ctx context.Context, p *point) int64 {
	id, ok := c.metrics[p.metricKey]
	if !ok {
		id, _ = c.insert(ctx, "INSERT INTO metrics (metric, labels, kind, unit, better) VALUES (?, ?, ?, ?, ?)",
			[]any{p.metric, p.labels, p.kind, p.unit, string(p.better)},
			"SELECT id FROM metrics WHERE metric = ? AND labels = ? AND kind = ?", p.metric, p.labels, p.kind)
		c.metrics[p.metricKey] = id
	}
	return id
}

// pin adds a number of a reference commit to a run, and reports whether it was not there.
func (c *changes) pin(ctx context.Context, run int64, commit string, p *point) bool {
	return c.exec(ctx, "INSERT INTO pinned (metric, run, commit_id, value) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		c.metric(ctx, p), run, commit, p.value) > 0
}

// tag names a commit. It is an error if the tag already names another commit; the tag then stays as it is.
func (c *changes) tag(ctx context.Context, repository, tag, commit string) {
	c.exec(ctx, "INSERT INTO tags (repository, tag, commit_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", repository, tag, commit)
	var at string
	if c.get(ctx, &at, "SELECT commit_id FROM tags WHERE repository = ? AND tag = ?", repository, tag); at != commit {
		c.refuse("tag %s names commit %s already, and not %s: take another name", tag, at, commit)
	}
}
