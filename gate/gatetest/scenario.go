// Package gatetest is a server that behaves like GitHub's API where it hurts: small pages, missing permissions, rate
// limits, 422 for long comments, answers that get lost, other jobs that write between two requests, planted markers and
// artifacts. Tests of package gate use it in-process; others serve it to whole workflows.
package gatetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
)

// Scenario is the state of a repository, and what happens to it. The zero value of a field is the harmless case.
type Scenario struct {
	Repository   string `json:"repository"`    // owner/name; empty: octo/llm
	RepositoryID int64  `json:"repository_id"` // 0: 1
	Prefix       string `json:"prefix"`        // of every path: /api/v3 for an Enterprise server
	Token        string `json:"token"`         // what requests must carry; empty: any
	User         User   `json:"user"`          // who the token is; empty: github-actions[bot]
	PageSize     int    `json:"page_size"`     // most entries on a page; 0: 100
	// permissions that the token lacks, "pull-requests: write" say; "graphql"
	Denied []string `json:"denied"`

	Pulls     []Pull            `json:"pulls"`
	Comments  []Comment         `json:"comments"`
	Runs      []Run             `json:"runs"`
	Artifacts []Artifact        `json:"artifacts"`
	Commits   []Commit          `json:"commits"`
	Branches  map[string]string `json:"branches"` // name → commit
	Gone      []string          `json:"gone"`     // commits that the repository does not have
	Files     []File            `json:"files"`
	Steps     []Step            `json:"steps"`
	Checks    []Check           `json:"checks"`
	Roles     map[string]string `json:"roles"` // of people in the repository; those not named have write
	Teams     map[string]string `json:"teams"` // org/team → its members, separated by blanks
	Now       string            `json:"now"`   // when what the token writes happens, RFC 3339; empty: a day before the first label
}

// Check is a check run.
type Check struct {
	SHA        string `json:"sha"`
	Name       string `json:"name"`
	App        string `json:"app"` // slug; empty: who the token is
	ExternalID string `json:"external_id"`
	Text       string `json:"text"`
	At         string `json:"at"` // RFC 3339, when it was completed
}

// User of GitHub.
type User struct {
	Login string `json:"login"`
	Type  string `json:"type"` // User or Bot
}

// Pull is a pull request.
type Pull struct {
	Number     int     `json:"number"`
	State      string  `json:"state"` // empty: open
	HeadSHA    string  `json:"head_sha"`
	HeadRef    string  `json:"head_ref"`
	HeadRepo   string  `json:"head_repo"`    // empty: the repository
	HeadRepoID int64   `json:"head_repo_id"` // 0: the repository
	BaseSHA    string  `json:"base_sha"`
	BaseRef    string  `json:"base_ref"` // empty: main
	MergeSHA   string  `json:"merge_sha"`
	Labels     []Label `json:"labels"`
}

// Label on a pull request, and who put it there.
type Label struct {
	Name string `json:"name"`
	By   string `json:"by"` // NAME[bot] is an app
	At   string `json:"at"` // RFC 3339; empty: a second after the label before it, from 2026-01-01 on
}

// Comment on a pull request.
type Comment struct {
	ID     int64  `json:"id"` // 0: the next one
	Number int    `json:"number"`
	Author User   `json:"author"` // empty: who the token is
	Body   string `json:"body"`
}

// Run of a workflow.
type Run struct {
	ID         int64  `json:"id"`
	Attempt    int    `json:"attempt"`  // the newest one; 0: 1
	Workflow   string `json:"workflow"` // its file; empty: gate.yml
	Event      string `json:"event"`    // empty: push
	HeadSHA    string `json:"head_sha"`
	HeadBranch string `json:"head_branch"`  // empty: main
	HeadRepoID int64  `json:"head_repo_id"` // 0: the repository
	FailedJob  string `json:"failed_job"`   // name; empty: none failed
}

// Artifact of a run. Its zip holds Files, symbolic links of Links and, where Bomb is not 0, bomb.json with so many
// zeros; names are taken as they are, so that they may lead anywhere. Raw, where it is not empty, is served instead.
type Artifact struct {
	ID      int64             `json:"id"`
	Name    string            `json:"name"`
	RunID   int64             `json:"run_id"`
	Expired bool              `json:"expired"`
	Size    int64             `json:"size"` // as listed; 0: of the zip
	Files   map[string]string `json:"files"`
	Links   map[string]string `json:"links"`
	Bomb    int64             `json:"bomb"`
	Raw     []byte            `json:"raw"`
}

// Commit of the repository.
type Commit struct {
	SHA    string `json:"sha"`
	Parent string `json:"parent"` // empty for the first
}

// File of the repository at a commit or branch.
type File struct {
	Path string `json:"path"`
	Ref  string `json:"ref"`
	Text string `json:"text"`
}

// Step is something that happens when a request comes in: the state changes before it is answered, or the answer is
// another one, or is lost.
type Step struct {
	Method string `json:"method"` // empty: any
	Path   string `json:"path"`   // pattern of path.Match without Prefix; empty: any
	After  int    `json:"after"`  // so many matching requests pass first
	Times  int    `json:"times"`  // how many it is for; 0: one

	AddComments    []Comment      `json:"add_comments"`
	DeleteComments []int64        `json:"delete_comments"`
	AddLabels      map[int]string `json:"add_labels"` // pull request → label
	MoveHeads      map[int]string `json:"move_heads"` // pull request → commit

	Status int               `json:"status"` // 0: the request is answered
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
	Done   bool              `json:"done"` // the request takes effect all the same: only its answer is lost
}

// ReadScenario reads a scenario from JSON; keys that it does not know are errors.
func ReadScenario(r io.Reader) (Scenario, error) {
	var s Scenario
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	return s, nil
}

// fill gives empty fields what they stand for.
func (s *Scenario) fill() {
	s.Repository = cmp.Or(s.Repository, "octo/llm")
	s.RepositoryID = cmp.Or(s.RepositoryID, 1)
	s.User = cmp.Or(s.User, User{"github-actions[bot]", "Bot"})
	s.PageSize = cmp.Or(s.PageSize, 100)
	s.Now = cmp.Or(s.Now, "2025-12-31T00:00:00Z")
	for i := range s.Pulls {
		p := &s.Pulls[i]
		p.State = cmp.Or(p.State, "open")
		p.BaseRef = cmp.Or(p.BaseRef, "main")
		p.HeadRepoID = cmp.Or(p.HeadRepoID, s.RepositoryID)
		p.HeadRepo = cmp.Or(p.HeadRepo, s.Repository)
	}
	for i := range s.Runs {
		r := &s.Runs[i]
		r.Event = cmp.Or(r.Event, "push")
		r.Workflow = cmp.Or(r.Workflow, "gate.yml")
		r.Attempt = max(r.Attempt, 1)
		r.HeadBranch = cmp.Or(r.HeadBranch, "main")
		r.HeadRepoID = cmp.Or(r.HeadRepoID, s.RepositoryID)
	}
}
