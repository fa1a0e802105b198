package main

import (
	"regexp"
	"strings"

	"github.com/nsys-llm/explain/gate"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// scenario is one of TestWorkflows.
type scenario struct {
	name string
	run  func(*bench)
}

// The pull request's comments, as the API addresses them.
const commentsPath = "/repos/octo/llm/issues/7/comments"

func scenarios() []scenario {
	// onePull runs the newcomer's workflow against a GitHub that hurts in one way, with a slower head.
	onePull := func(add func(*gatetest.Scenario), check func(b *bench, ok bool, log string)) func(*bench) {
		return func(b *bench) {
			b.github(add)
			b.repository(b.example("same-runner.yml"), b.base, b.slow, nil)
			ok, log := b.run("pull_request", pullEvent)
			check(b, ok, log)
		}
	}
	failed := func(b *bench, ok bool, _ string) {
		if ok {
			b.Error("a slower head passes")
		}
		b.want(b.one(), `^### \*\*FAIL\*\* \+11\.2 % per unit of work`, `baseline: .files of this job.`, `^<!-- explain:v1:key=`)
	}
	return []scenario{
		{"the workflow of the README, built from the action's source", func(b *bench) {
			b.github(nil)
			b.build = true
			b.repository(readmeWorkflow(b.T), b.base, b.slow, nil)
			ok, log := b.run("pull_request", pullEvent)
			failed(b, ok, log)
		}},
		{"a slower head fails and says why", onePull(nil, func(b *bench, ok bool, log string) {
			failed(b, ok, log)
			b.want(log, `^::error title=explain%3A fail::unit\.time\.p50 \+11\.2 %25, 537\.8 µs → 597\.9 µs; [0-9]+ gates checked, [0-9]+ failed`, `comment: created`)
		})},
		{"a faster head passes, and the comment turns green", func(b *bench) {
			b.github(nil)
			b.repository(b.example("same-runner.yml"), b.base, b.slow, nil)
			b.run("pull_request", pullEvent)
			b.repository(b.example("same-runner.yml"), b.slow, b.base, nil)
			if ok, _ := b.run("pull_request", pullEvent); !ok {
				b.Error("a faster head fails")
			}
			b.want(b.one(), `^### \*\*PASS\*\* work\.time -5\.7 %`, `^\*\*Faster, `)
		}},
		{"a label that is added between two runs", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Steps = []gatetest.Step{{Method: "GET", Path: "/repos/octo/llm/issues/7/labels", After: 1, AddLabels: map[int]string{7: "perf:accept"}}}
			})
			b.repository(b.example("same-runner.yml"), b.base, b.slow, nil)
			if ok, _ := b.run("pull_request", pullEvent); ok {
				b.Error("passes before the label is there")
			}
			if ok, _ := b.run("pull_request", pullEvent); !ok {
				b.Error("fails although the label accepts it")
			}
			b.want(b.one(), `^### \*\*WARN\*\*`, "Accepted: the label `perf:accept` turns fail into warn")
		}},
		{"a token that may not comment", onePull(func(sc *gatetest.Scenario) {
			sc.Denied = []string{"pull-requests: write", "issues: write"}
		}, func(b *bench, ok bool, log string) {
			if ok || len(b.comments()) > 0 {
				b.Error("the verdict changed, or a comment was written")
			}
			b.want(log, `pull-requests: write`)
		})},
		{"a comment that GitHub finds too long", onePull(func(sc *gatetest.Scenario) {
			sc.Steps = []gatetest.Step{answer("POST", commentsPath, 422, 1, nil, `{"message": "Validation Failed", "errors": [{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}]}`)}
		}, failed)},
		{"too many requests", onePull(func(sc *gatetest.Scenario) {
			sc.Steps = []gatetest.Step{answer("GET", commentsPath, 429, 1, map[string]string{"Retry-After": "1"}, quoted("slow down"))}
		}, failed)},
		{"a secondary limit", onePull(func(sc *gatetest.Scenario) {
			sc.Steps = []gatetest.Step{answer("GET", commentsPath, 403, 1, map[string]string{"Retry-After": "1"},
				`{"message": "You have exceeded a secondary rate limit", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`)}
		}, failed)},
		{"a server that fails twice", onePull(func(sc *gatetest.Scenario) {
			sc.Steps = []gatetest.Step{answer("GET", commentsPath, 502, 2, nil, "bad gateway")}
		}, failed)},
		{"a server that is down", onePull(func(sc *gatetest.Scenario) {
			sc.Steps = []gatetest.Step{answer("", "", 503, 1000, map[string]string{"Retry-After": "0"}, "down")}
		}, func(b *bench, ok bool, log string) {
			if ok || len(b.comments()) > 0 {
				b.Error("the verdict changed, or a comment was written")
			}
			b.want(log, `FAIL unit\.time\.p50`, `comment: refused`)
		})},
		{"many comments on small pages", onePull(func(sc *gatetest.Scenario) {
			sc.PageSize = 2
			for range 7 {
				sc.Comments = append(sc.Comments, gatetest.Comment{Number: 7, Author: gatetest.User{Login: "bob", Type: "User"}, Body: "me too"})
			}
			sc.Comments = append(sc.Comments, gatetest.Comment{Number: 7, Body: "old\n\n" + marker(gate.CleanKey("Inference performance-gate"), baseSHA, 3)})
		}, func(b *bench, ok bool, log string) {
			failed(b, ok, log)
			b.want(log, `comment: updated`)
		})},
		{"a marker that somebody planted", onePull(func(sc *gatetest.Scenario) {
			sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Author: gatetest.User{Login: "mallory", Type: "User"}, Body: "all fine\n\n" + marker(gate.CleanKey("Inference performance-gate"), headSHA, 99999)}}
		}, func(b *bench, ok bool, log string) {
			failed(b, ok, log)
			if c := b.server.Comments()[0]; !strings.HasPrefix(c.Body, "all fine") {
				b.Error("somebody else's comment was changed")
			}
		})},
		{"a newer run has commented", onePull(func(sc *gatetest.Scenario) {
			sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Body: "newer\n\n" + marker(gate.CleanKey("Inference performance-gate"), headSHA, 99999)}}
		}, func(b *bench, ok bool, log string) {
			if ok {
				b.Error("a slower head passes")
			}
			b.want(b.one(), `^newer$`)
			b.want(log, `comment: stale`)
		})},
		{"the base from an artifact, and one that a fork planted", artifactBaseline},
		{"a fork: one half judges, the other comments", forkPattern(nil, func(b *bench, ok bool, _ string) {
			if !ok {
				b.Error("the half that comments fails")
			}
			b.want(b.one(), `^### .performance.: \*\*FAIL\*\* \+11\.2 % per unit of work`, `Reported by a run of the fork.s own code`, `actions/runs/900`)
		})},
		{"a fork whose head moved on", forkPattern(func(sc *gatetest.Scenario) { sc.Pulls[0].HeadSHA = strings.Repeat("e", 40) }, func(b *bench, ok bool, log string) {
			if !ok || len(b.comments()) > 0 {
				b.Error("fails, or comments on numbers of an old head")
			}
			b.want(log, `nothing is posted: `)
		})},
		{"a fork that writes its own comparison", forkPattern(func(sc *gatetest.Scenario) {
			sc.Artifacts[0].Files["comparison.json"] = `{"schema": "explain.comparison/1", "verdict": "splendid", "cause": "@octo/everyone look"}`
		}, func(b *bench, ok bool, _ string) {
			if ok || len(b.comments()) > 0 {
				b.Error("a comparison that is none is accepted")
			}
		})},
		{"a matrix: a comment each and one for all", func(b *bench) {
			b.github(nil)
			b.repository(strings.ReplaceAll(b.example("matrix.yml"), `[self-hosted, "${{ matrix.gpu }}"]`, "self-hosted"), b.base, b.slow, nil)
			if ok, _ := b.run("pull_request", pullEvent); ok {
				b.Error("slower legs pass")
			}
			all := strings.Join(b.comments(), "\n")
			if n := len(b.comments()); n != 3 {
				b.Errorf("%d comments, want 3", n)
			}
			b.want(all, "^### `a100`: \\*\\*FAIL\\*\\*", "^### `h100`: \\*\\*FAIL\\*\\*", "^### `all`: \\*\\*FAIL\\*\\* in 2 of 2 comparisons$", "^\\| `explain-h100` \\| \\*\\*fail\\*\\* ")
		}},
		{"two jobs that race for one comment", func(b *bench) {
			b.github(nil)
			w := strings.ReplaceAll(b.example("matrix.yml"), `[self-hosted, "${{ matrix.gpu }}"]`, "self-hosted")
			w, _, _ = strings.Cut(strings.ReplaceAll(w, "comment-key: ${{ matrix.gpu }}", "comment-key: same"), "  all:\n")
			b.repository(w, b.base, b.slow, nil)
			b.run("pull_request", pullEvent)
			b.want(b.one(), "^### `same`: \\*\\*FAIL\\*\\*")
		}},
		{"strangers' code beside a token that can write", func(b *bench) {
			b.github(nil)
			b.repository(strings.Replace(b.example("same-runner.yml"), "on: pull_request", "on: pull_request_target", 1), b.base, b.slow, nil)
			ok, log := b.run("pull_request_target", pullEvent)
			if ok || len(b.server.Requests()) > 0 {
				b.Error("it ran")
			}
			b.want(log, `pull_request_target`)
		}},
		{"outputs for the steps that follow", func(b *bench) {
			b.github(nil)
			w := strings.Replace(b.example("same-runner.yml"), "      - uses: nsys-llm/explain@v1\n        with: {", "      - uses: nsys-llm/explain@v1\n        id: e\n        continue-on-error: true\n        with: {", 1)
			w += `      - run: '{ echo "OUT ${{ steps.e.outputs.verdict }} ${{ steps.e.outputs.exit-code }} ${{ steps.e.outputs.regressions }} ${{ steps.e.outputs.comment-id }}"; ls ${{ steps.e.outputs.comparison-json }} ${{ steps.e.outputs.report-dir }}/*/report.json ${{ steps.e.outputs.comment-markdown }}; } >> "$E2E_LOG"'` + "\n"
			b.repository(w, b.base, b.slow, nil)
			ok, log := b.run("pull_request", pullEvent)
			if !ok {
				b.Error("a step that may fail stops the job")
			}
			b.want(log, `OUT fail 1 8 1000`, `explain/reports/head/report\.json`)
		}},
	}
}

// artifactBaseline: the first push finds nothing and leaves an artifact; the pull request is compared with it, not with what
// a fork left under the same name. The policy is the base's.
func artifactBaseline(b *bench) {
	policy := "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 3%, abs: 10us}}\n"
	files := func(sc *gatetest.Scenario) {
		sc.Files = []gatetest.File{{Path: ".github/explain.yml", Ref: baseSHA, Text: policy}}
	}
	// act copies the tree where a checkout has no ref, and does nothing else.
	workflow := regexp.MustCompile(`(?m)^ +with: \{ref: .*\n`).ReplaceAllString(b.example("artifact-baseline.yml"), "")
	b.github(files)
	b.repository(workflow, b.base, b.base, map[string]string{".github/explain.yml": policy})
	ok, log := b.run("push", pushEvent)
	if !ok {
		b.Error("the first push fails")
	}
	b.want(log, `first run`)
	left := b.artifact(5, 500, "explain-baseline")
	b.github(func(sc *gatetest.Scenario) {
		files(sc)
		sc.Commits = []gatetest.Commit{{SHA: baseSHA}, {SHA: headSHA, Parent: baseSHA}}
		sc.Branches = map[string]string{"main": baseSHA}
		sc.Runs = []gatetest.Run{{ID: 500, HeadSHA: baseSHA}, {ID: 501, HeadSHA: baseSHA, HeadRepoID: 2}}
		sc.Artifacts = []gatetest.Artifact{left, {ID: 6, Name: "explain-baseline", RunID: 501, Files: map[string]string{"report.json": "planted"}}}
	})
	b.repository(workflow, b.base, b.slow, map[string]string{".github/explain.yml": strings.Replace(policy, "3%", "30%", 1)})
	if ok, _ := b.run("pull_request", pullEvent); ok {
		b.Error("a slower head passes")
	}
	b.want(b.one(), `^### \*\*FAIL\*\* \+11\.2 %`, "baseline: `artifact explain-baseline of run 500 at bbbbbbb \\(merge base\\)`",
		`The policy .\.github/explain\.yml. is changed here; judged by the one at .bbbbbbb.`, `One capture on a side`)
}

// forkPattern: the fork's run cannot write and leaves an artifact, the second workflow comments.
func forkPattern(add func(*gatetest.Scenario), check func(b *bench, ok bool, log string)) func(*bench) {
	return func(b *bench) {
		b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"pull-requests: write", "issues: write"} })
		b.repository(b.example("fork-gate.yml"), b.base, b.slow, nil)
		if ok, _ := b.run("pull_request", forkEvent); ok || strings.Contains(b.server.Transcript(), "POST ") {
			b.Error("a slower head of a fork passes, or its run tried to write")
		}
		left := b.artifact(5, 900, "explain")
		b.github(func(sc *gatetest.Scenario) {
			sc.Pulls = []gatetest.Pull{{Number: 7, HeadSHA: headSHA, HeadRef: "patch-1", HeadRepo: "mallory/llm", HeadRepoID: 2, BaseSHA: baseSHA}}
			sc.Runs = []gatetest.Run{{ID: 900, Event: "pull_request", HeadSHA: headSHA, HeadBranch: "patch-1", HeadRepoID: 2}}
			sc.Artifacts = []gatetest.Artifact{left}
			if add != nil {
				add(sc)
			}
		})
		b.repository(b.example("fork-comment.yml"), b.base, b.base, nil)
		ok, log := b.run("workflow_run", doneEvent)
		check(b, ok, log)
	}
}
