package gate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v62/github"
)

// label is a label that is on a pull request now.
type label struct {
	Name string
	By   string    // login of who put it there last; empty if GitHub does not say
	At   time.Time // zero if GitHub does not say

	bot bool // By is an app
}

// maxEventPages bounds how far back the events of a pull request are searched for who set a label.
const maxEventPages = 5

// label reads whether a label is on the pull request now: the payload of a re-run is as old as its first attempt. It is
// nil if the label is not there. Names compare without case, as on GitHub.
func (c *client) label(ctx context.Context, number int, name string) (*label, error) {
	page := &github.ListOptions{PerPage: perPage}
	for n := 0; n < maxPages; n++ {
		list, resp, err := c.api.Issues.ListLabelsByIssue(ctx, c.owner, c.repo, number, page)
		if err != nil {
			return nil, c.trouble(fmt.Sprintf("read the labels of #%d", number), needPulls, err)
		}
		for _, l := range list {
			if strings.EqualFold(l.GetName(), name) {
				found := &label{Name: l.GetName()}
				found.labelledBy(ctx, c, number)
				return found, nil
			}
		}
		if page.Page = resp.NextPage; page.Page == 0 {
			break
		}
	}
	return nil, nil
}

// labelledBy fills in who set a label last. Events come oldest first, so it reads the last pages, backwards. If no
// event names the person, the label counts for nothing.
func (l *label) labelledBy(ctx context.Context, c *client, number int) {
	first, resp, err := c.api.Issues.ListIssueEvents(ctx, c.owner, c.repo, number,
		&github.ListOptions{PerPage: perPage})
	if err != nil {
		c.tries.notice(c.trouble(fmt.Sprintf("read who set the label on #%d", number), needPulls, err).Error())
		return
	}
	for page, n := resp.LastPage, 0; page > 1 && n < maxEventPages; page, n = page-1, n+1 {
		events, _, err := c.api.Issues.ListIssueEvents(ctx, c.owner, c.repo, number,
			&github.ListOptions{PerPage: perPage, Page: page})
		if err != nil || l.setBy(events) {
			return
		}
	}
	if resp.LastPage <= maxEventPages+1 { // else pages between were not read, and a newer event may be there
		l.setBy(first)
	}
}

// setBy takes the last event that set the label.
func (l *label) setBy(events []*github.IssueEvent) bool {
	for i := len(events) - 1; i >= 0; i-- {
		if e := events[i]; e.GetEvent() == "labeled" && strings.EqualFold(e.GetLabel().GetName(), l.Name) {
			l.By, l.At = oneLine(e.GetActor().GetLogin(), 60), e.GetCreatedAt().Time
			l.bot = e.GetActor().GetType() == "Bot"
			return true
		}
	}
	return false
}
