package history

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Ack says that a change at a commit is known, why it is accepted, and until when.
type Ack struct {
	Repository string `json:"repository"`
	Commit     string `json:"commit"`
	Reason     string `json:"reason"`
	Expires    string `json:"expires"` // the last day on which it is valid: 2026-12-31
}

// Holds reports whether the acknowledgement is valid on a day.
func (a *Ack) Holds(today time.Time) bool {
	last, err := time.Parse(time.DateOnly, a.Expires)
	return err == nil && !today.After(last)
}

// maxReason bounds the reason of an acknowledgement, in bytes.
const maxReason = 500

// Acknowledge records that the change at a commit is known, without a repository in each that has runs of it.
// Acknowledging twice changes nothing.
func (s *Store) Acknowledge(ctx context.Context, a Ack) (*Ack, error) {
	commit, err := s.Resolve(ctx, a.Repository, a.Commit)
	if err != nil {
		return nil, err
	}
	a.Commit = commit
	if len(a.Reason) > maxReason {
		return nil, fmt.Errorf("the reason has %d bytes, the limit is %d", len(a.Reason), maxReason)
	}
	of := []string{a.Repository}
	if a.Repository == "" {
		if of, err = all(ctx, s, one[string], "SELECT DISTINCT repository FROM runs WHERE commit_id = ? ORDER BY repository", commit); err != nil {
			return nil, err
		}
	}
	return &a, s.change(ctx, func(c *changes) {
		for _, a.Repository = range of {
			c.ack(ctx, &a)
		}
	})
}

func (c *changes) ack(ctx context.Context, a *Ack) {
	c.exec(ctx, "INSERT INTO acks (repository, commit_id, reason, expires) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		a.Repository, a.Commit, a.Reason, a.Expires)
}

// Acks returns the acknowledgements of a repository, or all if it is empty, by commit and then by the last day.
func (s *Store) Acks(ctx context.Context, repository string) ([]Ack, error) {
	fields := func(a *Ack) []any { return []any{&a.Repository, &a.Commit, &a.Reason, &a.Expires} }
	list, err := all(ctx, s, fields,
		"SELECT repository, commit_id, reason, expires FROM acks WHERE ? IN ('', repository)", repository)
	lists.Sort(list, func(a, b Ack) int {
		return cmp.Or(strings.Compare(a.Repository, b.Repository), strings.Compare(a.Commit, b.Commit),
			strings.Compare(a.Expires, b.Expires), strings.Compare(a.Reason, b.Reason))
	})
	return list, err
}

// labelsOf reads labels as the store keeps them: JSON with sorted keys.
func labelsOf(text string) report.Labels {
	l := report.Labels{}
	_ = json.Unmarshal([]byte(text), &l) // pointsOf wrote them
	return l
}
