package gate

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/gate/gatetest"
)

const commentsPath = "/repos/octo/llm/issues/7/comments"

// TestComment runs every case of a sticky comment; what is asked and what stands afterwards is in testdata/Comment.
func TestComment(t *testing.T) {
	stranger := gatetest.User{Login: "mallory", Type: "User"}
	var many []gatetest.Comment
	for i := 1; i <= 5; i++ {
		many = append(many, gatetest.Comment{ID: int64(i), Number: 7, Author: stranger, Body: fmt.Sprintf("remark %d", i)})
	}
	for name, c := range map[string]struct {
		run      func() *Run
		scenario gatetest.Scenario
		act      func(s *stage)
	}{
		"created":                   {scenario: gatetest.Scenario{}},
		"updated_on_the_third_page": {scenario: gatetest.Scenario{PageSize: 2, Comments: append(many[:5:5], gatetest.Comment{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))})}},
		"unchanged": {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("step is slower", 500, 1, sha("a"))}}},
			act: func(s *stage) {
				s.run.Attempt = 2 // a new attempt of the same run says the same
				s.upsert(failing(s.run, "step is slower"))
			}},
		"windows_newlines_are_unchanged": {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: strings.ReplaceAll(signed("step\nis slower", 500, 1, sha("a")), "\n", "\r\n")}}},
			act: func(s *stage) { s.upsert(failing(s.run, "step\nis slower\n")) }},
		"a_newer_run_signs_the_same_text":    {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("step is slower", 499, 1, sha("a"))}}}},
		"a_newer_run_was_here":               {scenario: gatetest.Scenario{Runs: []gatetest.Run{{ID: 501, HeadSHA: sha("c")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("newer", 501, 1, sha("c"))}}}},
		"a_newer_attempt_was_here":           {scenario: gatetest.Scenario{Runs: []gatetest.Run{{ID: 500, Attempt: 2, HeadSHA: sha("a")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("newer", 500, 2, sha("a"))}}}},
		"a_run_that_never_was":               {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("planted", 999999999999999999, 1, sha("a"))}}}},
		"an_attempt_that_never_was":          {scenario: gatetest.Scenario{Runs: []gatetest.Run{{ID: 500, HeadSHA: sha("a")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("planted", 500, 99, sha("a"))}}}},
		"a_run_of_another_head":              {scenario: gatetest.Scenario{Runs: []gatetest.Run{{ID: 600, HeadSHA: sha("e")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("planted", 600, 1, sha("a"))}}}},
		"runs_cannot_be_read_head_is_newest": {scenario: gatetest.Scenario{Denied: []string{"actions: read"}, Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a"), BaseSHA: sha("b")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("planted", 600, 1, sha("a"))}}}},
		"runs_cannot_be_read_head_moved_on":  {scenario: gatetest.Scenario{Denied: []string{"actions: read"}, Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("c"), BaseSHA: sha("b")}}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("newer", 600, 1, sha("c"))}}}},
		"another_key_is_another_comment":     {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: strings.Replace(signed("other", 400, 1, sha("c")), "key=gate", "key=gate-2", 1)}}}},
		"a_planted_marker_is_not_ours":       {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Author: stranger, Body: signed("all is well", 900, 1, sha("a"))}}}},
		"a_planted_marker_of_another_bot":    {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Author: gatetest.User{Login: "echo[bot]", Type: "Bot"}, Body: signed("all is well", 900, 1, sha("a"))}}}},
		"a_user_named_like_the_bot":          {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Author: gatetest.User{Login: "github-actions", Type: "User"}, Body: signed("all is well", 900, 1, sha("a"))}}}},
		"a_quoted_marker_is_not_a_last_line": {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("quoted", 900, 1, sha("a")) + "\nand more"}}}},
		"without_graphql_the_bot_is_known":   {scenario: gatetest.Scenario{Denied: []string{"graphql"}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))}}}},
		"a_race_with_an_equal_run": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, AddComments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("the other leg", 500, 1, sha("a"))}}}}}},
		"a_race_with_a_newer_run": {scenario: gatetest.Scenario{Runs: []gatetest.Run{{ID: 501, HeadSHA: sha("c")}}, Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, AddComments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("newer", 501, 1, sha("c"))}}}}}},
		"a_race_that_we_were_first_in": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, After: 1, AddComments: []gatetest.Comment{{ID: 2000, Number: 7, Body: signed("second", 501, 1, sha("c"))}}}}}},
		"leftovers_of_a_race_are_removed": {scenario: gatetest.Scenario{Comments: []gatetest.Comment{
			{ID: 6, Number: 7, Body: signed("one", 498, 1, sha("c"))}, {ID: 8, Number: 7, Body: signed("two", 499, 1, sha("c"))}, {ID: 9, Number: 7, Author: stranger, Body: signed("planted", 1, 1, sha("c"))}}}},
		"deleted_before_the_edit": {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))}}, Steps: []gatetest.Step{
			{Method: "PATCH", DeleteComments: []int64{6}}}}},
		"on_change_stays_silent": {act: func(s *stage) {
			w := failing(s.run, "nothing changed")
			w.Mode, w.Verdict, w.Changed = OnChange, comparison.Pass, false
			s.upsert(w)
			w.Changed = true
			s.upsert(w)
		}},
		"on_failure_turns_green": {act: func(s *stage) {
			w := failing(s.run, "fine")
			w.Mode, w.Verdict = OnFailure, comparison.Pass
			s.upsert(w)
			s.upsert(failing(s.run, "slower"))
			w.Stamp.RunID++
			s.upsert(w)
		}},
		"forbidden":           {scenario: gatetest.Scenario{Denied: []string{"pull-requests: write"}}},
		"forbidden_to_read":   {scenario: gatetest.Scenario{Denied: []string{"pull-requests: read"}}},
		"forbidden_to_a_fork": {run: forkRun, scenario: gatetest.Scenario{Denied: []string{"pull-requests: write"}}},
		"forbidden_to_update": {scenario: gatetest.Scenario{Denied: []string{"pull-requests: write"}, Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))}}}},
		"locked": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, Status: 403, Body: `{"message":"Unable to create comment because issue is locked."}`}}}},
		"a_leftover_that_cannot_be_removed": {scenario: gatetest.Scenario{
			Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("one", 498, 1, sha("c"))}, {ID: 8, Number: 7, Body: signed("two", 499, 1, sha("c"))}},
			Steps:    []gatetest.Step{{Method: "DELETE", Status: 403, Body: `{"message":"Must have admin rights"}`}}}},
		"not_found":               {scenario: gatetest.Scenario{Repository: "octo/moved"}},
		"a_bad_token":             {scenario: gatetest.Scenario{Token: "another"}},
		"too_long_to_create":      {act: func(s *stage) { s.upsert(long(s.run)) }},
		"too_long_to_update":      {scenario: gatetest.Scenario{Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))}}}, act: func(s *stage) { s.upsert(long(s.run)) }},
		"too_long_whatever_we_do": {act: func(s *stage) { s.upsert(failing(s.run, strings.Repeat("x", 70_000))) }},
		"server_errors_pass": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Times: 2, Status: 502, Body: "<html>bad gateway</html>"}}}},
		"server_errors_stay": {scenario: gatetest.Scenario{Steps: []gatetest.Step{{Times: 100, Status: 503}}}},
		"a_created_comment_whose_answer_is_lost": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, Status: 504, Done: true}}}},
		"a_comment_that_was_not_created": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, Times: 2, Status: 500}}}},
		"too_many_requests": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"message":"slow down"}`}}}},
		"secondary_limit_on_a_write": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "POST", Path: commentsPath, Status: 403, Header: map[string]string{"Retry-After": "30"},
				Body: `{"message":"You have exceeded a secondary rate limit.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`}}}},
		"secondary_limit_that_states_no_time": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Status: 403, Body: `{"message":"You have exceeded a secondary rate limit."}`}}}},
		"a_limit_that_lasts_too_long": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Times: 9, Status: 429, Header: map[string]string{"Retry-After": "600"}}}}},
		"primary_limit_that_ends_soon": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800000010"}, Body: `{"message":"API rate limit exceeded"}`}}}},
		"primary_limit_that_lasts": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Times: 9, Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1800003600"}, Body: `{"message":"API rate limit exceeded"}`}}}},
		"an_enterprise_server": {scenario: gatetest.Scenario{Prefix: "/api/v3", Comments: []gatetest.Comment{{ID: 6, Number: 7, Body: signed("old", 499, 1, sha("c"))}}}},
		"a_redirect_to_another_host": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Times: 9, Status: 302, Header: map[string]string{"Location": "https://evil.example/steal"}}}}},
		"hostile_words_of_the_server": {scenario: gatetest.Scenario{Steps: []gatetest.Step{
			{Method: "GET", Path: commentsPath, Status: 403, Body: `{"message":"no\n::error::` + token + `\u001b[31m\u202e"}`}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.run == nil {
				c.run = pullRun
			}
			s := open(t, c.run(), c.scenario)
			if c.act == nil {
				c.act = func(s *stage) { s.upsert(failing(s.run, "step is slower")) }
			}
			c.act(s)
			s.golden()
		})
	}
}

// long is a comment that GitHub finds too long at first: it keeps to its limit in runes of three bytes badly.
func long(run *Run) comment {
	w := failing(run, "")
	w.Body = func(limit int) string { return strings.Repeat("x", limit+limit/5) }
	return w
}

// TestPersonalToken: a token of a user finds the user's comments, and no bot's.
func TestPersonalToken(t *testing.T) {
	s := open(t, pullRun(), gatetest.Scenario{User: gatetest.User{Login: "Octavia", Type: "User"}, Denied: []string{"graphql"}, Comments: []gatetest.Comment{
		{ID: 5, Number: 7, Author: gatetest.User{Login: "octavia[bot]", Type: "Bot"}, Body: signed("bot's", 498, 1, sha("c"))},
		{ID: 6, Number: 7, Author: gatetest.User{Login: "octavia", Type: "User"}, Body: signed("old", 499, 1, sha("c"))}}})
	s.client.token = "ghp_personal"
	s.upsert(failing(s.run, "step is slower"))
	s.golden()
}

// TestTwoJobs: two jobs that both saw no comment end with one, whichever comes first.
func TestTwoJobs(t *testing.T) {
	for _, firstRun := range []int64{500, 501} {
		s := open(t, pullRun(), gatetest.Scenario{Runs: []gatetest.Run{{ID: 500, HeadSHA: sha("a")}, {ID: 501, HeadSHA: sha("a")}}})
		mine, other := failing(s.run, "mine"), failing(s.run, "other")
		mine.Stamp.RunID, other.Stamp.RunID = firstRun, 1001-firstRun
		a := &upsert{c: s.client, number: 7, want: mine, marker: marker{key: "gate", stamp: mine.Stamp}, limit: CommentLimit}
		b := &upsert{c: s.client, number: 7, want: other, marker: marker{key: "gate", stamp: other.Stamp}, limit: CommentLimit}
		a.create(context.Background())
		b.create(context.Background())
		got := s.srv.Comments()
		want := map[int64]string{500: "other", 501: "mine"}[firstRun]
		if len(got) != 1 || !strings.HasPrefix(got[0].Body, want) {
			t.Errorf("first run %d: %d comments stand, %+v", firstRun, len(got), got)
		}
	}
}

// TestCancelled: an interrupted job stops waiting at once.
func TestCancelled(t *testing.T) {
	s := open(t, pullRun(), gatetest.Scenario{Steps: []gatetest.Step{{Times: 100, Status: 503}}})
	ctx, cancel := context.WithCancel(context.Background())
	s.client.tries.sleep = func(ctx context.Context, d time.Duration) error { cancel(); return sleep(ctx, d) }
	if p := s.client.upsert(ctx, 7, failing(s.run, "text")); p.Action != commentRefused || len(s.srv.Requests()) != 1 {
		t.Errorf("%+v after %d requests", p, len(s.srv.Requests()))
	}
}

func TestParseMode(t *testing.T) {
	for in, want := range map[string]Mode{"always": Always, "on-change": OnChange, "on-failure": OnFailure, "on-fail": OnFailure, "never": Never} {
		if got, err := ParseMode(in); err != nil || got != want {
			t.Errorf("%s: %q, %v", in, got, err)
		}
	}
	if _, err := ParseMode("sometimes"); err == nil || !strings.Contains(err.Error(), "always, on-change, on-failure, never") {
		t.Errorf("error %v", err)
	}
}
