package gatetest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// GitHub takes comments of at most so many characters.
const maxComment = 65536

// object is an object of JSON that is written and never read.
type object map[string]interface{}

// api are the routes of the repository, each with the permission that it needs.
func (s *Server) api() *http.ServeMux {
	mux := http.NewServeMux()
	repo := s.state.Prefix + "/repos/" + s.state.Repository
	for _, r := range []struct {
		pattern, needs string
		handle         http.HandlerFunc
	}{
		{"GET " + repo + "/issues/{number}/comments", "pull-requests: read", s.listComments},
		{"POST " + repo + "/issues/{number}/comments", "pull-requests: write", s.createComment},
		{"PATCH " + repo + "/issues/comments/{id}", "pull-requests: write", s.editComment},
		{"DELETE " + repo + "/issues/comments/{id}", "pull-requests: write", s.deleteComment},
		{"GET " + repo + "/issues/{number}/labels", "pull-requests: read", s.listLabels},
		{"GET " + repo + "/issues/{number}/events", "issues: read", s.listEvents},
		{"GET " + repo + "/pulls", "pull-requests: read", s.listPulls},
		{"GET " + repo + "/pulls/{number}", "pull-requests: read", s.getPull},
		{"GET " + repo + "/actions/artifacts", "actions: read", s.listArtifacts},
		{"GET " + repo + "/actions/artifacts/{id}/zip", "actions: read", s.downloadArtifact},
		{"GET " + repo + "/actions/runs/{run}", "actions: read", s.getRun},
		{"GET " + repo + "/actions/runs/{run}/artifacts", "actions: read", s.listArtifacts},
		{"GET " + repo + "/actions/runs/{run}/jobs", "actions: read", s.listJobs},
		{"GET " + repo + "/commits", "contents: read", s.listCommits},
		{"GET " + repo + "/commits/{ref}", "contents: read", s.getCommit},
		{"GET " + repo + "/actions/workflows/{file}/runs", "actions: read", s.listRuns},
		{"GET " + repo + "/compare/{pair}", "contents: read", s.compare},
		{"GET " + repo + "/contents/{path...}", "contents: read", s.contents},
		{"GET " + repo + "/git/blobs/{sha}", "contents: read", s.blob},
		{"POST " + repo + "/statuses/{sha}", "statuses: write", s.createStatus},
		{"GET " + repo + "/actions/runs", "actions: read", s.listRuns},
		{"GET " + repo + "/commits/{sha}/check-runs", "checks: read", s.listChecks},
		{"POST " + repo + "/check-runs", "checks: write", s.createCheck},
		{"GET " + repo + "/collaborators/{user}/permission", "metadata: read", s.role},
		{"GET " + s.state.Prefix + "/orgs/{org}/teams/{team}/memberships/{user}", "members: read", s.membership},
		{"POST " + strings.TrimSuffix(s.state.Prefix, "/v3") + "/graphql", "graphql", s.viewer},
		{"GET " + s.state.Prefix + "/user", "", s.user},
		{"GET /_storage/{id}", "", s.storage},
	} {
		mux.HandleFunc(r.pattern, func(w http.ResponseWriter, req *http.Request) {
			if slices.Contains(s.state.Denied, r.needs) {
				fail(w, http.StatusForbidden, "Resource not accessible by integration")
				return
			}
			r.handle(w, req)
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fail(w, http.StatusNotFound, "Not Found") })
	return mux
}

func write(w http.ResponseWriter, status int, v interface{}) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // these are our own types
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b)
}

func fail(w http.ResponseWriter, status int, message string) {
	write(w, status, object{"message": message, "documentation_url": "https://docs.github.com/rest"})
}

// page cuts the page out of a list that a request asks for, and links to the next and the last one.
func page[T any](s *Server, w http.ResponseWriter, r *http.Request, all []T) []T {
	q := r.URL.Query()
	size, _ := strconv.Atoi(cmp.Or(q.Get("per_page"), "30"))
	if size < 1 || size > s.state.PageSize {
		size = s.state.PageSize
	}
	number, _ := strconv.Atoi(q.Get("page"))
	number = max(number, 1)
	last := max((len(all)+size-1)/size, 1)
	if number < last {
		link := func(to int, rel string) string {
			q.Set("page", strconv.Itoa(to))
			u := url.URL{Scheme: "http", Host: r.Host, Path: r.URL.Path, RawQuery: q.Encode()}
			return "<" + u.String() + `>; rel="` + rel + `"`
		}
		w.Header().Set("Link", link(number+1, "next")+", "+link(last, "last"))
	}
	return all[min((number-1)*size, len(all)):min(number*size, len(all))]
}

func pathNumber(r *http.Request, name string) int64 {
	n, _ := strconv.ParseInt(r.PathValue(name), 10, 64)
	return n
}

func (s *Server) comment(c Comment) object {
	return object{"id": c.ID, "body": c.Body, "user": c.Author,
		"html_url": fmt.Sprintf("https://github.example/%s/pull/%d#issuecomment-%d", s.state.Repository, c.Number,
			c.ID)}
}

func (s *Server) listComments(w http.ResponseWriter, r *http.Request) {
	all := lists.Filter(s.state.Comments, func(c Comment) bool { return int64(c.Number) == pathNumber(r, "number") })
	write(w, http.StatusOK, lists.Map(page(s, w, r, all), s.comment))
}

// text reads the body of a comment; false where it was refused.
func text(w http.ResponseWriter, r *http.Request) (string, bool) {
	var in struct{ Body string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Body == "" {
		fail(w, http.StatusBadRequest, "Problems parsing JSON")
		return "", false
	}
	if utf8.RuneCountInString(in.Body) > maxComment {
		write(w, http.StatusUnprocessableEntity, object{"message": "Validation Failed", "errors": []object{
			{"resource": "IssueComment", "code": "unprocessable", "field": "data",
				"message": "Body is too long (maximum is 65536 characters)"}}})
		return "", false
	}
	return in.Body, true
}

func (s *Server) createComment(w http.ResponseWriter, r *http.Request) {
	if body, ok := text(w, r); ok {
		c := s.addComment(Comment{Number: int(pathNumber(r, "number")), Body: body})
		write(w, http.StatusCreated, s.comment(c))
	}
}

func (s *Server) editComment(w http.ResponseWriter, r *http.Request) {
	c := named(w, r, "id", s.state.Comments, func(c *Comment) int64 { return c.ID })
	if c == nil {
		return
	}
	if body, ok := text(w, r); ok {
		c.Body = body
		write(w, http.StatusOK, s.comment(*c))
	}
}

func (s *Server) deleteComment(w http.ResponseWriter, r *http.Request) {
	if named(w, r, "id", s.state.Comments, func(c *Comment) int64 { return c.ID }) != nil {
		s.state.Comments = slices.DeleteFunc(s.state.Comments, func(c Comment) bool { return c.ID == pathNumber(r, "id") })
		w.WriteHeader(http.StatusNoContent)
	}
}

// named is the thing whose number a path names; nil after an answer that it is not there.
func named[T any](w http.ResponseWriter, r *http.Request, what string, list []T, number func(*T) int64) *T {
	found := lists.Find(list, func(x *T) bool { return number(x) == pathNumber(r, what) })
	if found == nil {
		fail(w, http.StatusNotFound, "Not Found")
	}
	return found
}

func (s *Server) pull(w http.ResponseWriter, r *http.Request) *Pull {
	return named(w, r, "number", s.state.Pulls, func(p *Pull) int64 { return int64(p.Number) })
}

func (s *Server) listLabels(w http.ResponseWriter, r *http.Request) {
	if p := s.pull(w, r); p != nil {
		write(w, http.StatusOK, page(s, w, r, lists.Map(p.Labels, func(l Label) object { return object{"name": l.Name} })))
	}
}

func (s *Server) listEvents(w http.ResponseWriter, r *http.Request) {
	if p := s.pull(w, r); p != nil {
		var all []object
		for i, l := range p.Labels {
			at := cmp.Or(l.At, fmt.Sprintf("2026-01-01T00:00:%02dZ", i%60))
			all = append(all,
				object{"event": "labeled", "label": object{"name": l.Name}, "actor": actor(l.By), "created_at": at})
		}
		write(w, http.StatusOK, page(s, w, r, all))
	}
}

// actor is who an event is by.
func actor(login string) User {
	if strings.HasSuffix(login, "[bot]") {
		return User{login, "Bot"}
	}
	return User{login, "User"}
}

// label is the owner and the branch of a head.
func (p *Pull) label() string {
	owner, _, _ := strings.Cut(p.HeadRepo, "/")
	return owner + ":" + p.HeadRef
}

func (s *Server) pullObject(p Pull) object {
	return object{"number": p.Number, "state": p.State, "merge_commit_sha": p.MergeSHA,
		"head": object{"sha": p.HeadSHA, "ref": p.HeadRef, "label": p.label(),
			"repo": object{"id": p.HeadRepoID, "full_name": p.HeadRepo}},
		"base": object{"sha": p.BaseSHA, "ref": p.BaseRef,
			"repo": object{"id": s.state.RepositoryID, "full_name": s.state.Repository}}}
}

func (s *Server) getPull(w http.ResponseWriter, r *http.Request) {
	if p := s.pull(w, r); p != nil {
		write(w, http.StatusOK, s.pullObject(*p))
	}
}

// listPulls filters as GitHub does: by owner and branch of the head, which several forks can share, and not by commit.
func (s *Server) listPulls(w http.ResponseWriter, r *http.Request) {
	head := r.URL.Query().Get("head")
	all := lists.Filter(s.state.Pulls, func(p Pull) bool { return p.State == "open" && (head == "" || head == p.label()) })
	write(w, http.StatusOK, lists.Map(page(s, w, r, all), s.pullObject))
}

func (s *Server) listCommits(w http.ResponseWriter, r *http.Request) {
	all := lists.Map(s.history(r.URL.Query().Get("sha")), func(sha string) object { return object{"sha": sha} })
	write(w, http.StatusOK, page(s, w, r, all))
}

// getCommit knows every commit but those that the scenario says are gone.
func (s *Server) getCommit(w http.ResponseWriter, r *http.Request) {
	if slices.Contains(s.state.Gone, r.PathValue("ref")) {
		fail(w, http.StatusUnprocessableEntity, "No commit found for SHA: "+r.PathValue("ref"))
		return
	}
	write(w, http.StatusOK, object{"sha": r.PathValue("ref")})
}

// history are a commit, or the tip of a branch, and what came before it.
func (s *Server) history(ref string) []string {
	if tip, ok := s.state.Branches[ref]; ok {
		ref = tip
	}
	var out []string
	for ref != "" && len(out) <= len(s.state.Commits) {
		c := lists.Find(s.state.Commits, func(c *Commit) bool { return c.SHA == ref })
		if c == nil {
			break
		}
		out = append(out, ref)
		ref = c.Parent
	}
	return out
}

func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	base, head, _ := strings.Cut(r.PathValue("pair"), "...")
	before := s.history(base)
	for _, sha := range s.history(head) {
		if slices.Contains(before, sha) {
			write(w, http.StatusOK, object{"merge_base_commit": object{"sha": sha}, "commits": []object{}})
			return
		}
	}
	fail(w, http.StatusNotFound, "Not Found")
}

func (s *Server) contents(w http.ResponseWriter, r *http.Request) {
	ref := r.URL.Query().Get("ref")
	if slices.Contains(s.state.Gone, ref) {
		fail(w, http.StatusNotFound, "No commit found for the ref "+ref)
		return
	}
	var inside []object
	for i, f := range s.state.Files {
		switch {
		case f.Ref != ref && s.state.Branches[f.Ref] != ref:
		case f.Path == r.PathValue("path"):
			out := object{"type": "file", "size": len(f.Text), "path": f.Path, "sha": blobID(i), "encoding": "base64",
				"content": base64.StdEncoding.EncodeToString([]byte(f.Text))}
			if len(f.Text) > 1<<20 {
				out["encoding"], out["content"] = "none", ""
			}
			write(w, http.StatusOK, out)
			return
		case strings.HasPrefix(f.Path, r.PathValue("path")+"/"):
			inside = append(inside, object{"type": "file", "path": f.Path})
		}
	}
	if inside == nil {
		fail(w, http.StatusNotFound, "Not Found")
		return
	}
	write(w, http.StatusOK, inside)
}

// blobID stands for the hash of a file.
func blobID(i int) string { return fmt.Sprintf("%040x", i) }

func (s *Server) blob(w http.ResponseWriter, r *http.Request) {
	for i, f := range s.state.Files {
		if blobID(i) == r.PathValue("sha") {
			w.Write([]byte(f.Text))
			return
		}
	}
	fail(w, http.StatusNotFound, "Not Found")
}

func (s *Server) createStatus(w http.ResponseWriter, r *http.Request) {
	var in CommitStatus
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || utf8.RuneCountInString(in.Description) > 140 {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	in.SHA = r.PathValue("sha")
	s.statuses = append(s.statuses, in)
	write(w, http.StatusCreated, in)
}

func (s *Server) createCheck(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Name       string `json:"name"`
		SHA        string `json:"head_sha"`
		ExternalID string `json:"external_id"`
		Status     string `json:"status"`
		Conclusion string `json:"conclusion"`
		Output     struct{ Title, Summary, Text string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Name == "" || len(in.SHA) < 40 || len(in.Output.Text) > 65535 ||
		in.Status == "completed" && in.Conclusion == "" {
		fail(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	}
	if s.state.User.Type != "Bot" {
		fail(w, http.StatusForbidden, "You must authenticate via a GitHub App.")
		return
	}
	s.state.Checks = append(s.state.Checks, Check{SHA: in.SHA, Name: in.Name, ExternalID: in.ExternalID, Text: in.Output.Text, At: s.state.Now})
	write(w, http.StatusCreated, object{"id": len(s.state.Checks), "name": in.Name})
}

func (s *Server) listChecks(w http.ResponseWriter, r *http.Request) {
	var all []object
	for i, c := range s.state.Checks {
		if name := r.URL.Query().Get("check_name"); c.SHA != r.PathValue("sha") || name != "" && name != c.Name {
			continue
		}
		app := cmp.Or(c.App, strings.TrimSuffix(s.state.User.Login, "[bot]"))
		all = append(all, object{"id": i + 1, "name": c.Name, "head_sha": c.SHA, "external_id": c.ExternalID, "status": "completed",
			"completed_at": c.At, "app": object{"slug": app}, "output": object{"text": c.Text}})
	}
	write(w, http.StatusOK, object{"total_count": len(all), "check_runs": page(s, w, r, all)})
}

// role is of who is no outsider: write, where the scenario does not say.
func (s *Server) role(w http.ResponseWriter, r *http.Request) {
	role := cmp.Or(s.state.Roles[r.PathValue("user")], "write")
	write(w, http.StatusOK, object{"permission": role, "role_name": role, "user": object{"login": r.PathValue("user"), "role_name": role}})
}

func (s *Server) membership(w http.ResponseWriter, r *http.Request) {
	members := strings.Fields(s.state.Teams[r.PathValue("org")+"/"+r.PathValue("team")])
	if !slices.Contains(members, r.PathValue("user")) {
		fail(w, http.StatusNotFound, "Not Found")
		return
	}
	write(w, http.StatusOK, object{"state": "active", "role": "member"})
}

func (s *Server) viewer(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusOK, object{"data": object{"viewer": object{"login": s.state.User.Login}}})
}

// user answers for users only: an app's token is nobody.
func (s *Server) user(w http.ResponseWriter, _ *http.Request) {
	if s.state.User.Type == "Bot" {
		fail(w, http.StatusForbidden, "Resource not accessible by integration")
		return
	}
	write(w, http.StatusOK, s.state.User)
}
