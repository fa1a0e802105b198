package gate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-github/v62/github"

	"github.com/nsys-llm/explain/gate/gatetest"
)

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestFindPull(t *testing.T) {
	mallory := gatetest.Pull{Number: 7, HeadSHA: sha("a"), HeadRef: "main", HeadRepo: "mallory/llm", HeadRepoID: 666, BaseSHA: sha("b")}
	trigger := Trigger{RunID: 9, HeadSHA: sha("a"), HeadRef: "main", HeadRepo: Repo{666, "mallory/llm"}}
	edit := func(change func(*gatetest.Pull)) gatetest.Pull { p := mallory; change(&p); return p }
	for name, c := range map[string]struct {
		pulls   []gatetest.Pull
		denied  []string
		trigger func(Trigger) Trigger
		number  int
		want    error
	}{
		"found":                             {pulls: []gatetest.Pull{{Number: 6, HeadSHA: sha("c"), HeadRef: "x"}, mallory}},
		"head_moved":                        {pulls: []gatetest.Pull{edit(func(p *gatetest.Pull) { p.HeadSHA = sha("c") })}, want: errHeadMoved},
		"closed":                            {pulls: []gatetest.Pull{edit(func(p *gatetest.Pull) { p.State = "closed" })}, want: errNoPull},
		"same_commit_in_another_repository": {pulls: []gatetest.Pull{edit(func(p *gatetest.Pull) { p.HeadRepo, p.HeadRepoID = "mallory/other", 667 })}, want: errNoPull},
		"same_branch_name_in_the_base":      {pulls: []gatetest.Pull{{Number: 8, HeadSHA: sha("a"), HeadRef: "main"}}, want: errNoPull},
		"two_with_the_same_head":            {pulls: []gatetest.Pull{mallory, edit(func(p *gatetest.Pull) { p.Number, p.BaseRef = 8, "release" })}},
		"the_second_of_two":                 {pulls: []gatetest.Pull{mallory, edit(func(p *gatetest.Pull) { p.Number, p.BaseRef = 8, "release" })}, number: 8},
		"a_number_that_is_not_its_own":      {pulls: []gatetest.Pull{mallory, {Number: 8, HeadSHA: sha("c"), HeadRef: "victim"}}, number: 8, want: errNoPull},
		"deleted_fork":                      {pulls: []gatetest.Pull{mallory}, trigger: func(t Trigger) Trigger { t.HeadRepo.Name = ""; return t }, want: errNoPull},
		"forbidden":                         {pulls: []gatetest.Pull{mallory}, denied: []string{"pull-requests: read"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, &Run{Repository: "octo/llm", Event: "workflow_run", ID: 501, Attempt: 1, Trigger: &trigger}, gatetest.Scenario{PageSize: 1, Pulls: c.pulls, Denied: c.denied})
			tr := trigger
			if c.trigger != nil {
				tr = c.trigger(tr)
			}
			pulls, err := s.client.findPulls(context.Background(), tr, c.number)
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if err != nil {
				s.say("error: %v", err)
			}
			for _, p := range pulls {
				s.say("{Number:%d HeadSHA:%s HeadRef:%s HeadRepo:%+v BaseSHA:%s BaseRef:%s MergeSHA:%s Fork:%t}",
					p.Number, p.Head.SHA, p.Head.Ref, p.Head.Repo, p.Base.SHA, p.Base.Ref, p.MergeSHA, p.Fork)
			}
			s.golden()
		})
	}
}

// TestPull reads a pull request that the payload only numbers.
func TestPull(t *testing.T) {
	s := open(t, pullRun(), gatetest.Scenario{Pulls: []gatetest.Pull{{Number: 7, HeadSHA: sha("a"), HeadRef: "x", HeadRepo: "mallory/llm", HeadRepoID: 666, BaseSHA: sha("b"), MergeSHA: sha("c")}, {Number: 8, HeadSHA: "not a commit"}}})
	p, err := s.client.pull(context.Background(), 7)
	if want := (Pull{7, Branch{sha("a"), "x", Repo{666, "mallory/llm"}}, Branch{sha("b"), "main", Repo{1, "octo/llm"}}, sha("c"), true}); err != nil || *p != want {
		t.Errorf("%+v, %v", p, err)
	}
	for _, number := range []int{8, 9} {
		_, err := s.client.pull(context.Background(), number)
		s.err(err)
	}
	s.golden()
}

// TestLabel: the label counts from the moment it is there, whatever the payload said.
func TestLabel(t *testing.T) {
	path := "/repos/octo/llm/issues/7/labels"
	s := open(t, pullRun(), gatetest.Scenario{PageSize: 2, Pulls: []gatetest.Pull{{Number: 7, Labels: []gatetest.Label{{Name: "bug", By: "one"}, {Name: "docs", By: "two"}}}},
		Steps: []gatetest.Step{{Path: path, After: 1, AddLabels: map[int]string{7: "Perf:Accept"}}}})
	for range 2 {
		l, err := s.client.label(context.Background(), 7, "perf:accept")
		if err != nil {
			t.Fatal(err)
		}
		s.say("%+v", l)
	}
	_, err := s.client.label(context.Background(), 99, "perf:accept")
	s.err(err)
	s.golden()
}

// TestLabelWithoutEvents: who set it is not worth failing for.
func TestLabelWithoutEvents(t *testing.T) {
	s := open(t, pullRun(), gatetest.Scenario{Denied: []string{"issues: read"}, Pulls: []gatetest.Pull{{Number: 7, Labels: []gatetest.Label{{Name: "perf:accept", By: "two"}}}}})
	l, err := s.client.label(context.Background(), 7, "perf:accept")
	if err != nil || l == nil || l.By != "" {
		t.Errorf("%+v, %v", l, err)
	}
	s.golden()
}

func TestFile(t *testing.T) {
	big := strings.Repeat("x", 1<<20+1)
	s := open(t, pullRun(), gatetest.Scenario{Branches: map[string]string{"main": sha("b")}, Files: []gatetest.File{
		{Path: ".github/explain.yml", Ref: "main", Text: "version: 1\n"}, {Path: ".github/explain.yml", Ref: sha("a"), Text: "version: 1 # looser\n"}, {Path: "big.json", Ref: "main", Text: big}}})
	for _, c := range []struct {
		path, ref string
		limit     int
	}{
		{".github/explain.yml", sha("b"), 100}, {"./.github/explain.yml", sha("a"), 100}, {"missing.yml", sha("b"), 100}, {".github", sha("b"), 100},
		{".github/explain.yml", sha("b"), 5}, {"big.json", sha("b"), 2 << 20}, {"../secret", sha("b"), 100}, {"/etc/passwd", sha("b"), 100}, {"", "main", 1},
	} {
		b, err := s.client.file(context.Background(), c.path, c.ref, c.limit)
		if len(b) > 100 {
			b = []byte("… many bytes")
		}
		s.say("%q at %s: %q, %v, not found: %t", c.path, ShortRef(c.ref), b, err, errors.Is(err, ErrNotFound))
	}
	s.golden()
}

func TestStatus(t *testing.T) {
	s := open(t, pullRun(), gatetest.Scenario{Steps: []gatetest.Step{{Method: "POST", Status: 502}}})
	s.say("%q", s.client.setStatus(context.Background(), sha("a"), &github.RepoStatus{State: new("success"), Context: new("explain"), Description: new("pass: 3 gates checked " + strings.Repeat("x", 200)), TargetURL: new("https://github.example/run")}))
	s.say("%q", s.client.setStatus(context.Background(), sha("a"), &github.RepoStatus{State: new("failure"), Context: new("explain"), Description: new("fail")}))
	s.golden()
	s = open(t, pullRun(), gatetest.Scenario{Denied: []string{"statuses: write"}})
	if why := s.client.setStatus(context.Background(), sha("a"), &github.RepoStatus{}); !contains(why, "statuses: write") {
		t.Errorf("reason %q", why)
	}
}
