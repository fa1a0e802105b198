//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/gate/gatetest"
	"github.com/nsys-llm/explain/gate/history/historytest"
)

// attack is what an attacker, or a runner that keeps its workspace, has done around a change that is 11.8 % slower.
type attack struct {
	moves []string
	sc    gatetest.Scenario
	files map[string][]byte // of the workspace
	args  []string          // of gate, beside those of every run
	fork  bool              // judged on workflow_run
	merge bool              // by the comment over the legs of a matrix
	spoil bool              // evidence is spoiled: not even an acceptance helps

	accepted bool // by somebody who may
}

// ground is what attacks start from: reports by name, and what the label would be held to.
type ground struct {
	reports map[string][]byte // base, head, small (+4 %), same, slowbase
	stamped map[string][]byte // the same as a run made them
	wild    []byte            // a forged history with a floor of some 100 %
	mild    []byte            // one whose floor hides the change and is not too high to be believed
	noise   []byte            // forged floors of some 100 %
}

const (
	laxPolicy    = "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 90%}}\n"
	strictPolicy = "version: 1\npreset: llm-serving\n"
	softPolicy   = strictPolicy + "stats: {on_inconclusive: warn}\n"
)

const smallHead = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"

// newGround measures the sides, and forges what an attacker would.
func newGround(t *testing.T) *ground {
	t.Helper()
	g := &ground{reports: map[string][]byte{}, stamped: map[string][]byte{}}
	for i, c := range []struct {
		name  string
		level float64
	}{{"base", 1}, {"head", 1.14}, {"small", 1.045}, {"same", 1.0001}, {"slowbase", 1.14}} {
		r := historytest.Report(t, historytest.Capture{Seed: uint64(i + 1), Level: c.level, Steps: 24})
		var b bytes.Buffer
		if err := report.Write(&b, r); err != nil {
			t.Fatal(err)
		}
		g.reports[c.name] = b.Bytes()
	}
	g.wild, g.noise = g.forged(t, 0.7, 0.1)
	g.mild, _ = g.forged(t, 0.98, mildStep)
	return g
}

// mildStep is by how much the levels of the mild history differ.
const mildStep = 0.0075

// forged is a history of nine commits, and noise floors of the first five, whose levels differ by step from a level on.
func (g *ground) forged(t *testing.T, from, step float64) (history, noise []byte) {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "history.db")
	var out bytes.Buffer
	e := &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(string) string { return "" }}
	var captures []string
	for i := range 9 {
		r := historytest.Report(t, historytest.Capture{Seed: uint64(20 + i), Level: from + step*float64(i*4%10), Steps: 24})
		var b bytes.Buffer
		if err := report.Write(&b, r); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, fmt.Sprintf("r%d.json", i))
		put(t, path, b.Bytes(), 0o644)
		if code := run(context.Background(), []string{"history", "add", path, "--store", store, "--commit", fmt.Sprintf("%040d", i+1), "--branch", "main", "--repository", "octo/llm",
			"--time", fmt.Sprintf("2026-01-%02dT00:00:00Z", i+1)}, e); code != 0 {
			t.Fatal(out.String())
		}
		captures = append(captures, path)
	}
	if code := run(context.Background(), append([]string{"calibrate", "--out", filepath.Join(dir, "noise")}, captures[:5]...), e); code != 0 && code != exitFail {
		t.Fatal(out.String())
	}
	return read(t, store), read(t, filepath.Join(dir, "noise"))
}

// of is a report as a run made it; 0: none did.
func (g *ground) of(name string, runID int64) []byte {
	if runID == 0 {
		return g.reports[name]
	}
	key := fmt.Sprint(name, runID)
	if b, ok := g.stamped[key]; ok {
		return b
	}
	r, err := report.Read(bytes.NewReader(g.reports[name]))
	if err != nil {
		panic(err) // our own
	}
	r.Trace.Run = &report.MeasuredBy{ID: runID, Attempt: 1}
	var b bytes.Buffer
	if err := report.Write(&b, r); err != nil {
		panic(err)
	}
	g.stamped[key] = b.Bytes()
	return b.Bytes()
}

// checks are what the gate left on the server when it judged something before: the record that a label is held to.
func (g *ground) checks(t *testing.T, head, name, at string, merge bool) []gatetest.Check {
	a := &attack{sc: gatetest.Scenario{Now: at, Pulls: []gatetest.Pull{{Number: 7, HeadSHA: head, HeadRef: "feature", BaseSHA: gatetest.BaseSHA}}},
		files: map[string][]byte{"reports/base/1/report.json": g.of("base", 1000), "reports/head/1/report.json": g.of(name, 1000)}, merge: merge}
	_, server := g.run(t, a, head)
	return server.Checks()
}

// run judges in a workspace of its own, and reports whether the change can be merged: by exit 0, or by a status of success that
// stands on its head, which for a fork there was before.
func (g *ground) run(t *testing.T, a *attack, head string) (green bool, server *gatetest.Server) {
	t.Helper()
	server = gatetest.New(a.sc)
	listener := httptest.NewServer(server)
	defer listener.Close()
	dir := t.TempDir()
	for name, b := range a.files {
		put(t, filepath.Join(dir, name), b, 0o644)
	}
	event, payload := "pull_request", strings.ReplaceAll(gatetest.PullEvent, gatetest.HeadSHA, head)
	args := append([]string{"gate", "--out", "explain", "--quiet"}, a.args...)
	if a.fork {
		event = "workflow_run"
		payload = `{"action": "completed", "workflow_run": {"id": 1000, "run_attempt": 1, "event": "pull_request", "head_sha": "` + head +
			`", "head_branch": "feature", "head_repository": {"id": 2, "full_name": "mallory/llm"}}, "repository": {"id": 1, "full_name": "octo/llm"}}`
		args = append(args, "--artifact", "explain-reports", "--status", "performance")
	} else {
		args = append(args, "--head", "reports/head/*/report.json")
		if !slices.Contains(a.args, "--baseline-artifact") {
			args = append(args, "--base", "reports/base/*/report.json")
		}
	}
	put(t, filepath.Join(dir, "event.json"), []byte(payload), 0o644)
	vars := map[string]string{"GITHUB_ACTIONS": "true", "GITHUB_API_URL": listener.URL, "GITHUB_REPOSITORY": "octo/llm", "GITHUB_WORKSPACE": dir, "GITHUB_WORKFLOW": "performance",
		"GITHUB_JOB": "judge", "GITHUB_RUN_ID": "1000", "GITHUB_TOKEN": "ghs_secret", "GITHUB_EVENT_NAME": event, "GITHUB_EVENT_PATH": filepath.Join(dir, "event.json"),
		"GITHUB_OUTPUT": filepath.Join(dir, "outputs"), "GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"), "GITHUB_WORKFLOW_REF": "octo/llm/.github/workflows/gate.yml@refs/heads/main"}
	if a.fork {
		vars["GITHUB_RUN_ID"] = "1001"
	}
	t.Chdir(dir)
	var out bytes.Buffer
	e := &env{In: strings.NewReader(""), Out: &out, Err: &out, Getenv: func(name string) string { return vars[name] }}
	stands := true // the success that a fork earned against another base
	if a.fork {
		put(t, filepath.Join(dir, "event.json"), []byte(strings.Replace(payload, "completed", "requested", 1)), 0o644)
		run(context.Background(), args, e)
		stands = standing(server)
		put(t, filepath.Join(dir, "event.json"), []byte(payload), 0o644)
	}
	code := run(context.Background(), args, e)
	if a.merge {
		code = run(context.Background(), []string{"gate", "comment", "--merge", "explain/comparison.json", "--expect", "explain", "--comment-key", "all"}, e)
	}
	if code == 0 != a.accepted { // else ten thousand logs are kept until the end
		t.Logf("%s: exit %d\n%s", strings.Join(a.moves, ", "), code, &out)
	}
	if a.fork && !a.accepted {
		return code == 0 || stands || standing(server), server
	}
	return code == 0, server
}

// standing reports whether the last status of the head is a success; before any was set, that of another base stands.
func standing(server *gatetest.Server) bool {
	list := server.Statuses()
	return len(list) == 0 || list[len(list)-1].State == "success"
}

// seventh is the place of pull request 7.
func (a *attack) seventh() int {
	return slices.IndexFunc(a.sc.Pulls, func(p gatetest.Pull) bool { return p.Number == 7 })
}

// draw is a random state of an attacker.
func (g *ground) draw(rng *rand.Rand, small []gatetest.Check) *attack {
	a := &attack{files: map[string][]byte{"reports/base/1/report.json": g.of("base", 1000), "reports/head/1/report.json": g.of("head", 1000)},
		sc: gatetest.Scenario{Now: "2026-03-01T00:00:00Z", Pulls: []gatetest.Pull{{Number: 7, HeadSHA: gatetest.HeadSHA, HeadRef: "feature", BaseSHA: gatetest.BaseSHA}},
			Runs: []gatetest.Run{{ID: 500, HeadSHA: gatetest.BaseSHA}, {ID: 900, Event: "pull_request", HeadSHA: smallHead, HeadBranch: "feature"}}}}
	did := func(move string) { a.moves = append(a.moves, move) }
	label := func(by, at string) {
		a.sc.Pulls[a.seventh()].Labels = []gatetest.Label{{Name: "perf:accept", By: by, At: at}}
	}
	switch rng.IntN(6) { // how it is judged
	case 0:
		a.fork = true
		did("a fork's")
		a.sc.Pulls[a.seventh()].HeadRepo, a.sc.Pulls[a.seventh()].HeadRepoID = "mallory/llm", 2
		a.sc.Runs[1].HeadRepoID = 2
		a.sc.Artifacts = []gatetest.Artifact{{ID: 5, Name: "explain-reports", RunID: 1000, Files: map[string]string{
			"base/1/report.json": string(g.of("base", 1000)), "head/1/report.json": string(g.of("head", 1000)), "comparison.json": `{"verdict": "pass"}`}}}
		a.sc.Runs = append(a.sc.Runs, gatetest.Run{ID: 1000, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "feature", HeadRepoID: 2})
		a.files = map[string][]byte{}
		if rng.IntN(2) == 0 {
			did("another pull request with this head, against a branch with a lax policy")
			a.sc.Pulls = append(a.sc.Pulls, gatetest.Pull{Number: 8, HeadSHA: gatetest.HeadSHA, HeadRef: "feature", HeadRepo: "mallory/llm", HeadRepoID: 2,
				BaseSHA: smallHead, BaseRef: "release"})
			a.sc.Files = append(a.sc.Files, gatetest.File{Path: "p.yml", Ref: smallHead, Text: laxPolicy}, gatetest.File{Path: "p.yml", Ref: gatetest.BaseSHA, Text: strictPolicy})
			a.args = append(a.args, "--policy", "p.yml")
			if rng.IntN(2) == 0 {
				slices.Reverse(a.sc.Pulls)
			}
		}
	case 1:
		a.merge = true
		did("merged")
	}
	soften := func() { // the base's own policy passes what is not settled, and a history that hides everything settles nothing
		if rng.IntN(2) == 0 && !slices.Contains(a.args, "--policy") {
			did("the base's policy passes what is not settled")
			a.sc.Files = append(a.sc.Files, gatetest.File{Path: "soft.yml", Ref: gatetest.BaseSHA, Text: softPolicy})
			a.args = append(a.args, "--policy", "soft.yml")
		}
	}
	var moves []func()
	if !a.fork {
		moves = append(moves,
			func() { // files of another run, in place of its own or beside them
				did("stale")
				a.spoil = true
				switch rng.IntN(3) {
				case 0:
					delete(a.files, "reports/head/1/report.json")
				case 1:
					delete(a.files, "reports/head/1/report.json")
					delete(a.files, "reports/base/1/report.json")
					a.files["reports/base/7/report.json"] = g.of("slowbase", 900)
				}
				a.files["reports/head/7/report.json"] = g.of([]string{"same", "base"}[rng.IntN(2)], []int64{900, 900, 0}[rng.IntN(3)])
			},
			func() {
				did("history in the workspace")
				a.spoil = true
				soften()
				a.files["history.db"] = [][]byte{g.wild, g.mild}[rng.IntN(2)]
				a.args = append(a.args, "--history", "history.db")
			},
			func() {
				did("history of a pull request's run")
				a.spoil = true
				soften()
				a.sc.Artifacts = append(a.sc.Artifacts, gatetest.Artifact{ID: 8, Name: "explain-history", RunID: 900, Files: map[string]string{"history.db": string([][]byte{g.wild, g.mild}[rng.IntN(2)])}})
				a.args = append(a.args, "--history-artifact", "explain-history")
			},
			func() {
				did("noise of the base that hides everything")
				a.spoil = true
				a.sc.Files = append(a.sc.Files, gatetest.File{Path: "noise.json", Ref: gatetest.BaseSHA, Text: string(g.noise)})
				a.args = append(a.args, "--noise", "noise.json")
			},
			func() {
				did("lax policy")
				a.files["p.yml"] = []byte(laxPolicy)
				a.args = append(a.args, "--policy", "p.yml")
			})
	}
	moves = append(moves,
		func() { did("label before any verdict"); label("alice", "2026-01-01T00:00:00Z") },
		func() { // only +4 % was seen, on another head
			did("label for another head")
			a.sc.Checks = append(a.sc.Checks, small...)
			label("alice", "2026-02-01T00:00:00Z")
		},
		func() {
			app := []string{"other-app[bot]", "github-actions[bot]"}[rng.IntN(2)]
			did("label by " + app)
			a.sc.Checks = append(a.sc.Checks, g.seen(a)...)
			label(app, "2026-02-01T00:00:00Z")
		},
		func() {
			did("label by who may not")
			a.sc.Roles = map[string]string{"mallory": []string{"read", "triage"}[rng.IntN(2)]}
			a.sc.Checks = append(a.sc.Checks, g.seen(a)...)
			label("mallory", "2026-02-01T00:00:00Z")
		},
		func() {
			did("marker")
			a.sc.Comments = append(a.sc.Comments, gatetest.Comment{Number: 7, Body: "fine\n\n<!-- explain:v1:key=performance-judge head=" + gatetest.HeadSHA +
				" run=900 attempt=1 accepted=" + gatetest.HeadSHA + ",4b1334a1=99.0000 -->"})
			if len(a.sc.Pulls[a.seventh()].Labels) == 0 {
				label("alice", "2026-01-01T00:00:00Z")
			}
		},
		func() {
			did("check of another app")
			for _, c := range g.seen(a) {
				c.App = "other-app"
				a.sc.Checks = append(a.sc.Checks, c)
			}
			if len(a.sc.Pulls[a.seventh()].Labels) == 0 {
				label("alice", "2026-02-01T00:00:00Z")
			}
		})
	rng.Shuffle(len(moves), func(i, j int) { moves[i], moves[j] = moves[j], moves[i] })
	labelled := false
	for _, move := range moves[:rng.IntN(4)] {
		before := len(a.sc.Pulls[a.seventh()].Labels)
		if move(); labelled && before > 0 && len(a.moves) > 0 { // one label: the last move with one counts
			continue
		}
		labelled = len(a.sc.Pulls[a.seventh()].Labels) > 0
	}
	return a
}

// full are the records of the +11.8 % as the gate, and the comment over a matrix, leave them; filled once.
var full = map[bool][]gatetest.Check{}

func (g *ground) seen(a *attack) []gatetest.Check { return full[a.merge] }

// TestNoAttackerPasses draws states around a failure that nobody accepted: none exits 0. The same states exit 0 where somebody who may
// has accepted what stands, but for those whose evidence is spoiled. 10,000 of them:
//
//	go test ./cmd/explain -run TestNoAttackerPasses -timeout 0 -args -damaged 2000
func TestNoAttackerPasses(t *testing.T) {
	g := newGround(t)
	for _, merge := range []bool{false, true} {
		full[merge] = g.checks(t, gatetest.HeadSHA, "head", "2026-01-10T00:00:00Z", merge)
		if len(full[merge]) == 0 {
			t.Fatal("no record was kept")
		}
	}
	small := slices.Concat(g.checks(t, smallHead, "small", "2026-01-09T00:00:00Z", false), g.checks(t, smallHead, "small", "2026-01-09T00:00:00Z", true))
	rng := rand.New(rand.NewPCG(*longSeed, 35))
	passed, spoiled := 0, 0
	for range 5 * damaged() {
		a := g.draw(rng, small)
		// A valid acceptance that was forged by no one stands in none of the states: labels of alice are older than what stands.
		if slices.ContainsFunc(a.sc.Pulls[a.seventh()].Labels, func(l gatetest.Label) bool { return l.By == "alice" && l.At > "2026-01-10" }) {
			a.sc.Checks = slices.DeleteFunc(a.sc.Checks, func(c gatetest.Check) bool { return c.SHA == gatetest.HeadSHA && c.App == "" })
		}
		name := strings.Join(a.moves, ", ")
		t.Run("state", func(t *testing.T) {
			if green, _ := g.run(t, a, gatetest.HeadSHA); green {
				t.Errorf("it passes: %s", name)
			}
			if a.spoil {
				spoiled++
				return
			}
			a.sc.Checks = slices.Concat(a.sc.Checks, full[false], full[true])
			a.sc.Roles = nil
			a.sc.Pulls[a.seventh()].Labels = []gatetest.Label{{Name: "perf:accept", By: "alice", At: "2026-02-15T00:00:00Z"}}
			a.accepted = true
			if green, _ := g.run(t, a, gatetest.HeadSHA); !green {
				t.Errorf("accepted, and does not pass: %s", name)
			}
			passed++
		})
		if t.Failed() {
			break
		}
	}
	if passed == 0 || spoiled == 0 {
		t.Errorf("%d states accepted, %d spoiled: too few of a kind", passed, spoiled)
	}
}

// mends are what stands between an attacker and a merge: the file, a piece of it, and what it would be without the mend. One
// that stands behind another is taken out with it.
var mends = []struct{ why, with, file, old, without string }{
	{"D2, reports of another run", "", "internal/ci/gate.go",
		"if err := f.madeHere(s, reports)", "if err := f.madeHere(nil, reports)"},
	{"D5, a history in the workspace", "D5, a gate that cannot fail", "internal/ci/gate_baseline.go", "if change && s != nil {", "if !change && s != nil {"},
	{"D5, a gate that cannot fail", "D5, what is suspected", "../../diff/internal/rules/noisy.go", "if floor, most, is := blind(n, v); is &&", "if floor, most, is := blind(n, v); is && floor < 0 &&"},
	{"D5, what is suspected", "D5, a gate that cannot fail", "../../diff/internal/rules/noisy.go", "		g.Open(cmp.Or(v.Code, comparison.WideInterval), text+\", and this is not certain: \"+why)\n",
		"		if g.Verdict = comparison.Pass; v == nil {\n			g.Open(cmp.Or(v.Code, comparison.WideInterval), why)\n		}\n"},
	{"D6, a marker by the same login", "", "../../gate/accept.go", "	seen, err := s.client.seen(ctx, pull, s.key, l.At)\n", `	list, _, _ := s.client.api.Issues.ListComments(ctx, s.client.owner, s.client.repo, number, nil)
	for _, c := range list {
		if strings.Contains(c.GetBody(), "accepted="+now.Head) {
			return l, ""
		}
	}
	seen, err := s.client.seen(ctx, pull, s.key, l.At)
`},
	{"D6, a label for another head", "", "../../gate/accept.go", "if ok, why := seen.covers(now); !ok {", "if ok, why := seen.covers(now); !ok && why == \"\" {"},
	{"D6, a label before any verdict", "", "../../gate/accept.go", "	case seen == nil:\n", "	case seen == nil && l != nil:\n		return l, \"\"\n	case seen == nil:\n"},
	{"D6, a label by an app", "", "../../gate/accept.go", "case l.bot || strings.HasSuffix(l.By, \"[bot]\"):", "case l.bot && l.By == \"\":"},
	{"D6, a label by who may not", "", "../../gate/accept.go", "if ok, why := a.may(ctx, s, l.By); !ok {", "if ok, why := a.may(ctx, s, l.By); !ok && why == \"\" {"},
	{"D6, a check of another app", "", "../../gate/record.go", "if app == \"\" || !c.wroteIt(", "if app == \"\" || false && !c.wroteIt("},
	{"D7, the comment over a matrix", "", "internal/ci/comment.go",
		"(s != nil || f.judges) && code != cmdenv.OK:", "f.judges && code > 99:"},
	{"D13, a success of another base", "", "internal/ci/gate.go", "	s.Pending(cmd.Context())\n", ""},
	{"D13, two pull requests with one head", "", "../../gate/pull.go", "	if len(match) > 0 {\n		return match, nil", "	if len(match) > 0 {\n		return match[len(match)-1:], nil"},
}

// TestEachMendIsNeeded takes each mend out, by an overlay of its source, and wants the attacker to find a way. Whole, it builds
// the test once for each:
//
//	go test ./cmd/explain -run TestEachMendIsNeeded -timeout 0 -args -damaged 500
func TestEachMendIsNeeded(t *testing.T) {
	for _, m := range mends {
		t.Run(m.why, func(t *testing.T) {
			path, err := filepath.Abs(m.file)
			if err != nil {
				t.Fatal(err)
			}
			b := read(t, path)
			if strings.Count(string(b), m.old) != 1 {
				t.Fatalf("%s does not have %q once", m.file, m.old)
			}
			if damaged() < 100 {
				t.Skip("builds the test: only with -args -long")
			}
			overlay, replace := filepath.Join(t.TempDir(), "overlay.json"), map[string]string{}
			for _, o := range mends {
				if o.why != m.why && o.why != m.with {
					continue
				}
				path, err := filepath.Abs(o.file)
				if err != nil {
					t.Fatal(err)
				}
				if replace[path] == "" {
					replace[path] = filepath.Join(t.TempDir(), filepath.Base(path))
					put(t, replace[path], read(t, path), 0o644)
				}
				put(t, replace[path], []byte(strings.Replace(string(read(t, replace[path])), o.old, o.without, 1)), 0o644)
			}
			text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
			if err != nil {
				t.Fatal(err)
			}
			put(t, overlay, text, 0o644)
			cmd := exec.Command("go", "test", "-overlay", overlay, "-vet=off", "-run", "^TestNoAttackerPasses$", "-count=1", "-timeout", "0", ".", "-args", "-damaged", fmt.Sprint(damaged()))
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "it passes: ") {
				t.Errorf("without it no attacker passes: %v\n%s", err, out)
			}
			_, way, _ := strings.Cut(string(out), "it passes: ")
			way, _, _ = strings.Cut(way, "\n")
			t.Logf("found: %s", way)
		})
	}
}
