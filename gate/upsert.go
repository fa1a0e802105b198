package gate

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

const (
	needComments = "pull-requests: write"
	// maxPages bounds every list that is read to its end. In a pull request with more than 5,000 comments ours cannot be
	// found.
	maxPages = 50
	perPage  = 100
)

type found struct {
	id   int64
	url  string
	text string
	marker
}

// upsert is one call of upsert: the wanted comment, and how small it must be.
type upsert struct {
	c      *client
	number int
	want   comment
	marker marker
	limit  int
}

// upsert updates the comment with that key, or writes it. It never touches comments of others, whatever marker they
// have. Two jobs that race end with one comment, the newer run's.
//
// A comment that already says the same stays as it is if this run wrote it. A newer run signs it again, or a late run
// between the two could still overwrite it with older numbers.
func (c *client) upsert(ctx context.Context, number int, w comment) posted {
	u := &upsert{c: c, number: number, want: w, limit: CommentLimit, marker: marker{CleanKey(w.Key), w.Stamp}}
	// If somebody deletes the comment between the list and the edit, search once more.
	for try := 1; ; try++ {
		mine, err := u.list(ctx)
		if err != nil {
			return notPosted(err)
		}
		if len(mine) == 0 {
			if !w.opens() {
				return posted{Action: commentSilent,
					Reason: fmt.Sprintf("no comment: the mode is %s and the verdict %s", w.Mode, w.Verdict)}
			}
			return u.create(ctx)
		}
		posted, gone := u.update(ctx, mine)
		if !gone || try == 2 {
			return posted
		}
	}
}

func notPosted(err error) posted { return posted{Action: commentRefused, Reason: err.Error()} }

// body is the text with its marker.
func (u *upsert) body() string { return u.marker.sign(u.want.Body(u.limit)) }

// shrink renders the text smaller, once; false if it did so already.
func (u *upsert) shrink() bool {
	if u.limit < CommentLimit {
		return false
	}
	u.limit = CommentLimit / 2
	return true
}

// list are our comments with this key, oldest first.
func (u *upsert) list(ctx context.Context) ([]found, error) {
	var all []*github.IssueComment
	page := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: perPage}}
	for n := 0; n < maxPages; n++ {
		some, resp, err := u.c.api.Issues.ListComments(ctx, u.c.owner, u.c.repo, u.number, page)
		if err != nil {
			return nil, u.c.trouble(fmt.Sprintf("read the comments of #%d", u.number), needComments, err)
		}
		all = append(all, some...)
		if page.Page = resp.NextPage; page.Page == 0 {
			break
		}
	}
	var mine []found
	for _, c := range all {
		text, m, ok := readMarker(c.GetBody())
		if ok && m.key == u.marker.key && u.c.wroteIt(ctx, c.GetUser()) {
			mine = append(mine, found{c.GetID(), c.GetHTMLURL(), text, m})
		}
	}
	lists.Sort(mine, func(a, b found) int { return cmp.Compare(a.id, b.id) })
	return mine, nil
}

// update updates the oldest of our comments and deletes the others, left by jobs that raced and were killed. gone says
// that the oldest was deleted meanwhile.
func (u *upsert) update(ctx context.Context, mine []found) (p posted, gone bool) {
	keep := mine[0]
	for _, f := range mine {
		if f.stamp.newer(u.want.Stamp) && u.happened(ctx, f.stamp) {
			return posted{Action: commentStale, ID: keep.id, URL: keep.url,
				Reason: fmt.Sprintf("a newer run (%d, attempt %d) has commented already", f.stamp.RunID,
					f.stamp.Attempt)}, false
		}
	}
	p, gone = u.edit(ctx, keep)
	if p.Action == commentUpdated || p.Action == commentUnchanged {
		for _, f := range mine[1:] {
			u.remove(ctx, f.id)
		}
	}
	return p, gone
}

// happened reports whether the run of a stamp exists: a planted marker with a future run would stop every update. If
// runs cannot be read, the pull request says whose head is the newest.
func (u *upsert) happened(ctx context.Context, s stamp) bool {
	run, _, err := u.c.api.Actions.GetWorkflowRunByID(ctx, u.c.owner, u.c.repo, s.RunID)
	switch refused(err).status {
	case http.StatusNotFound:
		return false
	case http.StatusForbidden, http.StatusUnauthorized:
		pull, err := u.c.pull(ctx, u.number)
		return err != nil || pull.Head.SHA != u.want.Stamp.HeadSHA
	}
	return err != nil || run.GetRunAttempt() >= s.Attempt && (s.HeadSHA == "" || run.GetHeadSHA() == s.HeadSHA)
}

// edit writes what is wanted into a comment; gone says that it no longer exists.
func (u *upsert) edit(ctx context.Context, f found) (p posted, gone bool) {
	for {
		text, m, _ := readMarker(u.body())
		m.stamp.Attempt = f.stamp.Attempt // attempts of one run succeed each other
		if text == f.text && m.String() == f.marker.String() {
			return posted{Action: commentUnchanged, ID: f.id, URL: f.url}, false
		}
		_, _, err := u.c.api.Issues.EditComment(ctx, u.c.owner, u.c.repo, f.id,
			&github.IssueComment{Body: github.String(u.body())})
		switch {
		case err == nil:
			return posted{Action: commentUpdated, ID: f.id, URL: f.url}, false
		case refused(err).status == http.StatusUnprocessableEntity && u.shrink():
			continue
		}
		p = notPosted(u.c.trouble(fmt.Sprintf("update the comment on #%d", u.number), needComments, err))
		p.ID, p.URL = f.id, f.url
		return p, refused(err).status == http.StatusNotFound
	}
}

// remove deletes a duplicate of our comment. A 404 means that another job has already deleted it.
func (u *upsert) remove(ctx context.Context, id int64) {
	_, err := u.c.api.Issues.DeleteComment(ctx, u.c.owner, u.c.repo, id)
	if err != nil && refused(err).status != http.StatusNotFound {
		u.c.tries.notice(u.c.trouble("delete a duplicate comment", needComments, err).Error())
	}
}

// create writes the first comment. A try without an answer may have worked, so it reads the list again before the next
// one.
func (u *upsert) create(ctx context.Context) posted {
	for try := 1; ; try++ {
		made, _, err := u.c.api.Issues.CreateComment(ctx, u.c.owner, u.c.repo, u.number,
			&github.IssueComment{Body: github.String(u.body())})
		if err == nil {
			if login := made.GetUser().GetLogin(); login != "" {
				u.c.login = login
			}
			return u.converge(ctx, posted{Action: commentCreated, ID: made.GetID(), URL: made.GetHTMLURL()})
		}
		if refused(err).status == http.StatusUnprocessableEntity && u.shrink() {
			continue
		}
		if why := refused(err); !why.later || !u.c.tries.wait(ctx, &why, try) {
			return notPosted(u.c.trouble(fmt.Sprintf("comment on #%d", u.number), needComments, err))
		}
		mine, err := u.list(ctx)
		if err != nil {
			return notPosted(err)
		}
		if len(mine) > 0 { // ours after all, or that of a concurrent job
			p, _ := u.update(ctx, mine)
			if p.Action == commentUnchanged {
				p.Action = commentCreated
			}
			return p
		}
	}
}

// converge checks whether another job wrote the same comment at the same time. The older one stays, with the newer
// run's text; every job deletes its own.
func (u *upsert) converge(ctx context.Context, made posted) posted {
	mine, err := u.list(ctx)
	if err != nil || len(mine) == 0 || mine[0].id >= made.ID {
		return made
	}
	p, gone := u.update(ctx, mine[:1])
	if gone || p.Action == commentRefused {
		return made
	}
	u.remove(ctx, made.ID)
	return p
}

// wroteIt reports whether a user owns the token. It asks GitHub once, and only if there is a marker to check.
func (c *client) wroteIt(ctx context.Context, u *github.User) bool {
	if c.login == "" {
		c.login = c.whoami(ctx)
	}
	login, isBot := strings.CutSuffix(u.GetLogin(), "[bot]")
	mine, wantBot := strings.CutSuffix(c.login, "[bot]")
	return login != "" && strings.EqualFold(login, mine) && isBot == wantBot && (u.GetType() == "Bot") == wantBot
}

// whoami is the login of the token: GraphQL knows it for users and for apps, REST for users only. If neither says, it
// is assumed to be that of GITHUB_TOKEN.
func (c *client) whoami(ctx context.Context) string {
	isApp := strings.HasPrefix(c.token, "ghs_") // no user is behind it
	req, err := c.api.NewRequest(http.MethodPost, c.graphql, map[string]string{"query": "{viewer{login}}"})
	if err == nil {
		var answer struct {
			Data struct{ Viewer struct{ Login string } }
		}
		if _, err = c.api.Do(repeatable(ctx), req, &answer); err == nil && answer.Data.Viewer.Login != "" {
			login := answer.Data.Viewer.Login
			if isApp && !strings.HasSuffix(login, "[bot]") {
				login += "[bot]"
			}
			return login
		}
	}
	if !isApp {
		if user, _, err := c.api.Users.Get(ctx, ""); err == nil && user.GetLogin() != "" {
			return user.GetLogin()
		}
	}
	return "github-actions[bot]"
}
