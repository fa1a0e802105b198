package gate

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gitfile"
)

// Acceptance is a label that accepts a verdict, and who may set it.
type Acceptance struct {
	Label string // empty accepts nothing
	// By are those who may set it: a role (read, triage, write, maintain, admin) or one above it, a login, @org/team, or
	// CODEOWNERS: the owners of File at the base. Empty means the role write.
	By   []string
	File string // as the step sees it; empty: CODEOWNERS itself
}

// Accept accepts a fail or an inconclusive verdict if the pull request (in a merge queue: the last of the group) has
// the label, the person who set it may accept, and that person has seen the failure: the newest verdict before the
// label was as bad, see [record.covers]. It then records the verdict of this run, so that a later label can accept it.
// If that fails, it returns an error: the comment should then offer no label.
func (s *Session) Accept(ctx context.Context, legs []comparison.Leg, a Acceptance) error {
	now := newRecord(legs)
	number := s.Of.Number
	if number == 0 && s.Of.Run.Push != nil {
		number = s.Of.Run.Push.Queued
	}
	if a.Label == "" || number == 0 || !s.token {
		return nil
	}
	now.Pull, now.Key, now.Head, now.Run = number, CleanKey(s.key), s.Of.HeadSHA(), s.Of.stamp().RunID
	if now.Verdict == comparison.Fail || now.Verdict == comparison.Inconclusive {
		l, why := a.accepted(ctx, s, number, now)
		switch {
		case l != nil:
			for _, leg := range legs {
				leg.Comparison.Accept(l.Name, l.By)
			}
		case why != "":
			s.o.Say("the label " + a.Label + " accepts nothing here: " + why)
		}
	}
	if s.Of.Number == 0 || !IsCommit(now.Head) {
		return nil // a group of a merge queue: nobody reads it and sets a label
	}
	if len(now.Failed) > maxFailed {
		return fmt.Errorf("%d gates failed, more than a label can accept", len(now.Failed))
	}
	return s.client.writeRecord(ctx, now)
}

// accepted is the label that accepts a verdict. If it is nil, the text says why; empty if there is no such label.
func (a *Acceptance) accepted(ctx context.Context, s *Session, number int, now *record) (*label, string) {
	l, err := s.client.label(ctx, number, a.Label)
	switch {
	case err != nil:
		return nil, err.Error()
	case l == nil:
		return nil, ""
	case l.By == "" || l.At.IsZero():
		return nil, "GitHub does not say who set it, and when"
	case l.bot || strings.HasSuffix(l.By, "[bot]"):
		return nil, "it counts only if a person set it, and " + l.By + " is an app"
	}
	if ok, why := a.may(ctx, s, l.By); !ok {
		return nil, l.By + " may not set it" + why
	}
	pull := s.Of.Pull
	if pull == nil {
		if pull, err = s.client.pull(ctx, number); err != nil {
			return nil, err.Error()
		}
	}
	seen, err := s.client.seen(ctx, pull, s.key, l.At)
	switch {
	case err != nil:
		return nil, err.Error()
	case seen == nil:
		return nil, "it was set before any verdict stood: look at this one, take it off and set it again"
	}
	if ok, why := seen.covers(now); !ok {
		return nil, "the verdict that stood when it was set was on " + ShortRef(seen.Head) + ", and " + why +
			": take it off and set it again"
	}
	return l, ""
}

// roles of a repository, the weakest first.
var roles = []string{"read", "triage", "write", "maintain", "admin"}

// may reports whether somebody may accept; why says who may.
func (a *Acceptance) may(ctx context.Context, s *Session, login string) (ok bool, why string) {
	by := lists.Filter(lists.Map(a.By, strings.TrimSpace), func(who string) bool { return who != "" })
	if len(by) == 0 {
		by = []string{"write"}
	}
	var missing []string
	for _, who := range by {
		ok, err := false, error(nil)
		switch {
		case slices.Contains(roles, who):
			ok, err = s.client.hasRole(ctx, login, who)
		case strings.EqualFold(who, "CODEOWNERS"):
			ok, err = a.owns(ctx, s, login)
		default:
			ok, err = s.client.isOne(ctx, login, who)
		}
		if ok {
			return true, ""
		}
		if err != nil {
			missing = append(missing, err.Error())
		}
	}
	return false, strings.Join(append([]string{" (accept-by: " + oneLine(strings.Join(by, ", "), 200) + ")"}, missing...), "; ")
}

// hasRole reports whether somebody has a role in the repository, or one above it.
func (c *client) hasRole(ctx context.Context, login, least string) (bool, error) {
	level, _, err := c.api.Repositories.GetPermissionLevel(ctx, c.owner, c.repo, login)
	if refused(err).status == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, c.trouble("read the role of "+login, "metadata: read", err)
	}
	has := max(slices.Index(roles, level.GetUser().GetRoleName()), slices.Index(roles, level.GetPermission()))
	return has >= slices.Index(roles, least), nil
}

// isOne reports whether somebody is a person, or in a team: @alice, alice, @org/team.
func (c *client) isOne(ctx context.Context, login, who string) (bool, error) {
	org, team, isTeam := strings.Cut(strings.TrimPrefix(who, "@"), "/")
	if !isTeam {
		return strings.EqualFold(org, login), nil
	}
	m, _, err := c.api.Teams.GetTeamMembershipBySlug(ctx, org, team, login)
	switch {
	case refused(err).status == http.StatusNotFound:
		return false, nil
	case err != nil:
		return false, c.trouble("read the members of "+oneLine(who, 80), "members: read (a token of the organisation's)", err)
	}
	return m.GetState() == "active", nil
}

// owns reports whether somebody owns the file by the CODEOWNERS at the base.
func (a *Acceptance) owns(ctx context.Context, s *Session, login string) (bool, error) {
	ref, change := s.Of.Base()
	if !change || ref == "" {
		return false, fmt.Errorf("the base, whose CODEOWNERS says who may, is not known")
	}
	file, err := ".github/CODEOWNERS", error(nil)
	if a.File != "" {
		file, err = s.Of.Run.inCheckout(a.File)
	}
	if err != nil {
		return false, err
	}
	for _, name := range []string{".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS"} {
		b, err := s.client.file(ctx, name, ref, 3<<20)
		if err != nil {
			continue
		}
		for _, owner := range gitfile.Owners(string(b), []string{file}) {
			ok, unread := s.client.isOne(ctx, login, owner)
			if ok {
				return true, nil
			}
			err = cmp.Or(err, unread) // a team that cannot be read: another owner may do
		}
		return false, err
	}
	return false, fmt.Errorf("there is no CODEOWNERS at the base %s", ShortRef(ref))
}
