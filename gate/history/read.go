package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Filter selects runs. Empty fields select all.
type Filter struct {
	Repository, Branch, Workload string
	Commit                       string // or a prefix of one, or a tag
	Limit                        int    // only the newest ones, at most this many; 0: all
}

// where returns the filter as SQL, with more conditions: each has one parameter, whose value follows it.
func (f *Filter) where(more ...[2]string) (query string, args []any) {
	asked := lists.Filter([][2]string{{"r.repository = ?", f.Repository}, {"r.branch = ?", f.Branch}, {"r.workload = ?", f.Workload}},
		func(c [2]string) bool { return c[1] != "" })
	if f.Commit != "" {
		asked = append(asked, [2]string{"r.commit_id >= ?", f.Commit}, [2]string{"r.commit_id <= ?", f.Commit + "g"})
	}
	joined := " WHERE "
	for _, c := range append(asked, more...) {
		query, args, joined = query+joined+c[0], append(args, c[1]), " AND "
	}
	return query, args
}

const runColumns = "r.id, r.run_key, r.repository, r.branch, r.commit_id, r.at, r.workload, r.epoch, r.capture, r.name"

// fields are where these columns go.
func (r *Run) fields() []any {
	return []any{&r.id, &r.Key, &r.Repository, &r.Branch, &r.Commit, (*moment)(&r.Time), &r.Workload, &r.Epoch,
		&r.Capture, &r.Name}
}

// moment reads a time that is stored in seconds since 1970.
type moment time.Time

// Scan implements [sql.Scanner].
func (m *moment) Scan(v any) error {
	seconds, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is %v, not a number of seconds", v)
	}
	*m = moment(time.Unix(seconds, 0).UTC())
	return nil
}

// Runs returns the runs that a filter selects, the oldest first. A prefix that fits several commits is an error.
func (s *Store) Runs(ctx context.Context, f Filter) ([]Run, error) {
	if f.Commit != "" {
		commit, err := s.Resolve(ctx, f.Repository, f.Commit)
		if err != nil {
			return nil, err
		}
		f.Commit = commit
	}
	where, args := f.where()
	query := "SELECT " + runColumns + " FROM runs r" + where + " ORDER BY r.at DESC, r.run_key DESC"
	if f.Limit > 0 {
		query += fmt.Sprintf(" LIMIT %d", f.Limit)
	}
	list, err := all(ctx, s, (*Run).fields, query, args...)
	slices.Reverse(list)
	return list, err
}

// ErrUnknown is the error for a commit or tag that the store does not have.
var ErrUnknown = errors.New("the history has no such commit")

// Resolve returns the commit that a tag, a commit or the prefix of a commit names, of a repository or, if that is
// empty, of any.
func (s *Store) Resolve(ctx context.Context, repository, name string) (string, error) {
	list, err := all(ctx, s, one[string],
		"SELECT DISTINCT commit_id FROM tags WHERE tag = ? AND ? IN ('', repository)", name, repository)
	if err == nil && len(list) == 0 {
		list, err = all(ctx, s, one[string], "SELECT DISTINCT commit_id FROM runs WHERE commit_id >= ? AND commit_id <= ? AND ? IN ('', repository) "+
			"ORDER BY commit_id LIMIT 3", name, name+"g", repository)
	}
	switch {
	case err != nil:
		return "", err
	case len(list) == 0:
		return "", fmt.Errorf("%w: %s", ErrUnknown, name)
	case len(list) > 1:
		return "", fmt.Errorf("%s is %s and %s: name the commit in full, or the repository with --repository", name, list[0], list[1])
	}
	return list[0], nil
}

// Report returns the stored report of a run.
func (s *Store) Report(ctx context.Context, r *Run) (*report.Report, error) {
	text, err := packed(ctx, s, r)
	if err != nil {
		return nil, err
	}
	rep, err := unpack(text)
	return rep, s.fail(err)
}

// packed returns that report as it is stored.
func packed(ctx context.Context, s *Store, r *Run) ([]byte, error) {
	list, err := all(ctx, s, one[[]byte], "SELECT report FROM runs WHERE run_key = ?", r.Key)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("run %s of %s is not in the history any more", r.Key, r.Commit)
	}
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// Reports returns the reports of runs, in their order, each named by its commit and its trace.
func (s *Store) Reports(ctx context.Context, runs []Run) ([]*report.Report, error) {
	list := make([]*report.Report, 0, len(runs))
	for i := range runs {
		r, err := s.Report(ctx, &runs[i])
		if err != nil {
			return nil, err
		}
		r.Trace.Name = Short(runs[i].Commit) + "/" + r.Trace.Name
		list = append(list, r)
	}
	return list, nil
}

// Short returns the first 10 characters of a commit.
func Short(commit string) string { return commit[:min(len(commit), 10)] }

// Workloads returns all workloads that the store has runs of, by id.
func (s *Store) Workloads(ctx context.Context) (map[string]Workload, error) {
	return about(ctx, s, "workloads")
}

func about(ctx context.Context, s *Store, table string) (map[string]Workload, error) {
	list, err := all(ctx, s, func(e *[2]string) []any { return []any{&e[0], &e[1]} }, "SELECT id, about FROM "+table)
	if err != nil {
		return nil, err
	}
	out := map[string]Workload{}
	for _, e := range list {
		w := Workload{}
		if err := json.Unmarshal([]byte(e[1]), &w); err != nil {
			return nil, s.fail(fmt.Errorf("%s %s is malformed: %w", table, e[0], err))
		}
		out[e[0]] = w
	}
	return out, nil
}
