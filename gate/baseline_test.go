package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/gate/gatetest"
)

// history is a repository whose main has the commits 1 (first) to 5 (tip); the head "a" of pull request 7 left it at 4.
func history(s gatetest.Scenario) gatetest.Scenario {
	s.Branches = map[string]string{"main": sha("5")}
	s.Commits = []gatetest.Commit{{SHA: sha("a"), Parent: sha("4")}, {SHA: sha("5"), Parent: sha("4")}, {SHA: sha("4"), Parent: sha("3")}, {SHA: sha("3"), Parent: sha("2")}, {SHA: sha("2"), Parent: sha("1")}, {SHA: sha("1")}}
	return s
}

// measured are runs, each with an artifact of the same number, of those commits.
func measured(commits ...string) gatetest.Scenario {
	var s gatetest.Scenario
	for i, c := range commits {
		id := int64(100 + i)
		s.Runs = append(s.Runs, gatetest.Run{ID: id, HeadSHA: sha(c)})
		s.Artifacts = append(s.Artifacts, gatetest.Artifact{ID: id, Name: "explain-baseline", RunID: id,
			Files: map[string]string{"report.json": `{"of":"` + c + `"}`, "report.md": "# left where it is", "tables/kernels.csv": "a,b"}})
	}
	return history(s)
}

// with changes a scenario.
func with(s gatetest.Scenario, change func(*gatetest.Scenario)) gatetest.Scenario {
	change(&s)
	return s
}

func (s *stage) baseline(q baselineQuery) {
	s.t.Helper()
	b, err := s.client.baseline(context.Background(), q)
	var none *NoBaseline
	switch {
	case errors.As(err, &none):
		s.say("never ran: %t; %v", none.NeverRan, none)
	case err != nil:
		s.say("error: %v", err)
	default:
		s.say("%s", b.Source)
		for _, w := range b.Warnings {
			s.say("warning: %s", w)
		}
		for _, f := range b.Files {
			s.say("%s: %s", f.Name, f.Data)
		}
	}
}

// TestBaseline runs every case of a baseline by artifact.
func TestBaseline(t *testing.T) {
	mallory := int64(666)
	for name, c := range map[string]struct {
		scenario gatetest.Scenario
		run      func() *Run
		query    baselineQuery
	}{
		"merge_base":                          {scenario: measured("3", "4", "5")},
		"newest_of_several_at_the_merge_base": {scenario: measured("4", "4", "5")},
		"nearest_ancestor":                    {scenario: measured("2", "3", "5")},
		"far_ancestor":                        {scenario: measured("1", "5")},
		"newest_on_branch":                    {scenario: measured("5", "5")},
		"push_to_the_branch": {scenario: measured("3", "4", "5"), query: baselineQuery{Artifact: "explain-baseline", Branch: "main", HeadSHA: sha("5")},
			run: func() *Run { r := pullRun(); r.Pull, r.Number, r.Event = nil, 0, "push"; return r }},
		"own_run_is_no_baseline":       {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].ID, s.Artifacts[0].RunID = 500, 500 })},
		"nothing_yet":                  {scenario: history(gatetest.Scenario{})},
		"it_ran_and_left_another_name": {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Artifacts[0].Name = "baseline" })},
		"it_ran_for_another_branch":    {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].HeadBranch, s.Artifacts = "next", nil })},
		"it_ran_before_many_runs_of_forks": {scenario: with(measured("4", "5", "5", "5"), func(s *gatetest.Scenario) {
			s.PageSize, s.Artifacts = 2, nil
			for i := 1; i < 4; i++ {
				s.Runs[i].HeadRepoID, s.Runs[i].Event = mallory, "pull_request"
			}
			slices.Reverse(s.Runs) // the newest first
		})},
		"it_may_have_run_before_a_thousand_runs_of_forks": {scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.PageSize, s.Artifacts = 100, nil
			s.Runs[0].HeadRepoID, s.Runs[0].Event = mallory, "pull_request"
			s.Runs = slices.Repeat(s.Runs, 1000)
		})},
		"the_branch_was_renamed": {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].HeadBranch = "master" })},
		"the_same_commit_again": {scenario: with(measured("4", "a"), func(s *gatetest.Scenario) { s.Branches["main"] = sha("a") }),
			query: baselineQuery{Artifact: "explain-baseline", Branch: "main", HeadSHA: sha("a"), Again: true}},
		"a_plain_file":                        {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Artifacts[0].Raw = []byte(`{"of":"4"}`) })},
		"all_expired":                         {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Artifacts[0].Expired = true })},
		"planted_by_a_fork":                   {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].HeadRepoID, s.Runs[0].Event = mallory, "pull_request" })},
		"planted_by_a_fork_beside_a_good_one": {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) { s.Runs[1].HeadRepoID = mallory })},
		"of_another_branch":                   {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].HeadBranch = "faster" })},
		"planted_by_a_comment":                {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) { s.Runs[1].Event = "issue_comment" })},
		"only_planted_ones":                   {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Runs[0].Event = "workflow_run" })},
		"spam_of_a_fork_on_many_pages": {scenario: with(measured("4", "5", "5", "5", "5", "5"), func(s *gatetest.Scenario) {
			s.PageSize = 2
			for i := 1; i < 6; i++ {
				s.Runs[i].HeadRepoID = mallory
			}
		})},
		"zip_slip": {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) {
			s.Artifacts[1].Files["../../home/runner/.bashrc.json"] = "{}"
		})},
		"zip_with_a_link": {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) {
			s.Artifacts[1].Links = map[string]string{"secret.json": "/etc/passwd"}
		})},
		"zip_bomb":        {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) { s.Artifacts[1].Bomb = maxEntry + 1 })},
		"not_a_zip":       {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) { s.Artifacts[1].Raw = []byte("<html>") })},
		"too_large":       {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) { s.Artifacts[1].Size = maxZip + 1 })},
		"without_reports": {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Artifacts[0].Files = map[string]string{"a.txt": "b"} })},
		"gone_meanwhile": {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/repos/octo/llm/actions/artifacts/101/zip", Status: 410, Body: `{"message":"Artifact has expired"}`}}
		})},
		"its_run_is_gone": {scenario: with(measured("3", "4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/repos/octo/llm/actions/runs/101", Status: 404, Body: `{"message":"Not Found"}`}}
		})},
		"its_run_says_otherwise": {scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/repos/octo/llm/actions/runs/100", Status: 200, Body: `{"id":100,"event":"push","head_sha":"` + sha("9") + `","head_branch":"main"}`}}
		})},
		"history_cannot_be_listed": {scenario: with(measured("3"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/repos/octo/llm/commits", Status: 409, Body: `{"message":"Git Repository is empty."}`}}
		})},
		"unrelated_histories": {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Commits[0].Parent = "" })},
		"storage_has_trouble": {scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/_storage/100", Status: 503}}
		})},
		"storage_refuses": {scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/_storage/100", Times: 9, Status: 403, Body: "AuthenticationFailed"}}
		})},
		"forbidden":          {scenario: with(measured("4"), func(s *gatetest.Scenario) { s.Denied = []string{"actions: read"} })},
		"merge_base_unknown": {scenario: with(measured("4", "5"), func(s *gatetest.Scenario) { s.Denied = []string{"contents: read"} })},
		"github_has_trouble": {scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.Steps = []gatetest.Step{{Path: "/repos/octo/llm/actions/artifacts", Times: 9, Status: 502}}
		})},
		"branch_with_a_slash": {query: baselineQuery{Artifact: "explain baseline&x", Branch: "release/1.0", HeadSHA: sha("a")}, scenario: with(measured("4"), func(s *gatetest.Scenario) {
			s.Branches["release/1.0"], s.Runs[0].HeadBranch, s.Artifacts[0].Name = sha("5"), "release/1.0", "explain baseline&x"
		})},
		"no_head_known": {query: baselineQuery{Artifact: "explain-baseline", Branch: "main"}, scenario: measured("4")},
		"no_branch":     {query: baselineQuery{Artifact: "explain-baseline"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.run == nil {
				c.run = pullRun
			}
			if c.query == (baselineQuery{}) {
				c.query = baselineQuery{Artifact: "explain-baseline", Branch: "main", HeadSHA: sha("a")}
			}
			s := open(t, c.run(), c.scenario)
			s.baseline(c.query)
			s.golden()
		})
	}
}

// TestManyArtifacts: the search is bounded, and says so.
func TestManyArtifacts(t *testing.T) {
	sc := with(measured("4"), func(s *gatetest.Scenario) {
		s.PageSize = 1
		for id := int64(200); id < 215; id++ {
			s.Runs = append(s.Runs, gatetest.Run{ID: id, HeadSHA: sha("5"), HeadRepoID: 666})
			s.Artifacts = append(s.Artifacts, gatetest.Artifact{ID: id, Name: "explain-baseline", RunID: id})
		}
	})
	s := open(t, pullRun(), sc)
	_, err := s.client.baseline(context.Background(), baselineQuery{Artifact: "explain-baseline", Branch: "main", HeadSHA: sha("a")})
	var none *NoBaseline
	if want := fmt.Sprintf("among the newest %d of that name", maxArtifactPages*perPage); !errors.As(err, &none) || len(s.srv.Requests()) != 3+maxArtifactPages || !contains(none.Reason, want) {
		t.Errorf("%v after %d requests", err, len(s.srv.Requests()))
	}
}

// TestRunArtifact: the privileged half fetches what the other half left, the newest attempt of it.
func TestRunArtifact(t *testing.T) {
	sc := gatetest.Scenario{PageSize: 1, Runs: []gatetest.Run{{ID: 9, HeadRepoID: 666}}, Artifacts: []gatetest.Artifact{
		{ID: 1, Name: "explain-report", RunID: 9, Files: map[string]string{"report.json": "old"}},
		{ID: 2, Name: "explain-report", RunID: 9, Files: map[string]string{"report.json": "new", "comment.md": "@everyone"}},
		{ID: 3, Name: "other", RunID: 9, Files: map[string]string{"report.json": "no"}},
		{ID: 4, Name: "explain-report", RunID: 9, Expired: true},
		{ID: 5, Name: "explain-report", RunID: 10, Files: map[string]string{"report.json": "other run"}}}}
	s := open(t, pullRun(), sc)
	files, err := s.client.runArtifact(context.Background(), 9, "explain-report")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		s.say("%s: %s", f.Name, f.Data)
	}
	_, err = s.client.runArtifact(context.Background(), 9, "missing")
	if !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
	s.err(err)
	s.golden()
}
