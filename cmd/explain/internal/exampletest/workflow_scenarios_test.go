package exampletest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

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
	failed := func(b *bench, ok bool, _ string) {
		if ok {
			b.Error("a slower head passes")
		}
		b.want(b.one(), `^### ❌ \*\*FAIL\*\* \+11\.2 % slower`, `baseline: .files of this job.`, `^<!-- explain:v1:key=`)
	}
	return []scenario{
		{"the workflow of the README, built from the action's source", func(b *bench) {
			b.github(nil)
			b.build = true
			b.repository(readmeWorkflow(b.T), b.base, b.slow, nil)
			ok, log := b.run("pull_request", gatetest.PullEvent)
			failed(b, ok, log)
			b.want(b.one(), "explain `.*\\+source`", "`[0-9a-f]{7}` → `aaaaaaa`")
		}},
		{"a faster head passes, and the comment turns green", func(b *bench) {
			b.github(nil)
			b.repository(readmeWorkflow(b.T), b.base, b.slow, nil)
			b.run("pull_request", gatetest.PullEvent)
			b.repository(readmeWorkflow(b.T), b.slow, b.base, nil)
			if ok, _ := b.run("pull_request", gatetest.PullEvent); !ok {
				b.Error("a faster head fails")
			}
			b.want(b.one(), `^### ✅ \*\*PASS\*\* -10\.1 % faster`, `36 gates checked: 36 passed`)
		}},
		{"a capture that fails replaces the last verdict", func(b *bench) {
			b.github(nil)
			b.repository(readmeWorkflow(b.T), b.base, b.slow, nil)
			b.run("pull_request", gatetest.PullEvent)
			if err := os.RemoveAll(b.artifacts()); err != nil { // they are a run's own
				b.Fatal(err)
			}
			b.repository(strings.Replace(readmeWorkflow(b.T), "python bench.py", "'false'", 1), b.base, b.slow, map[string]string{"fail": "x"})
			if ok, _ := b.run("pull_request", gatetest.PullEvent); ok {
				b.Error("a capture that failed passes")
			}
			b.want(b.one(), `^### 🛑 \*\*ERROR\*\* nothing was judged$`, `--head reports/head/.*/report\.json matches no file`)
		}},
		{"the base from an artifact, and one that a fork planted", artifactBaseline},
		{"a fork: one half measures, the other judges and comments", forkPattern(nil, func(b *bench, ok bool, _ string) {
			if ok {
				b.Error("a slower head of a fork passes")
			}
			b.want(b.one(), `^### ❌ .performance.: \*\*FAIL\*\* \+11\.2 % slower`, `Measured by a run of the change's own code, judged here`, `actions/runs/900`)
			if st := b.server.Statuses(); len(st) != 2 || st[0].State != "pending" || st[1].State != "failure" || st[1].SHA != gatetest.HeadSHA || st[1].Context != "performance" {
				b.Errorf("statuses %+v", st)
			}
		})},
		{"a matrix: a comment each and one for all", func(b *bench) {
			b.github(nil)
			b.repository(b.matrix(), b.base, b.slow, nil)
			if ok, _ := b.run("pull_request", gatetest.PullEvent); ok {
				b.Error("slower legs pass")
			}
			all := strings.Join(b.comments(), "\n")
			if n := len(b.comments()); n != 3 {
				b.Errorf("%d comments, want 3", n)
			}
			b.want(all, "^### ❌ `a100`: \\*\\*FAIL\\*\\*", "^### ❌ `h100`: \\*\\*FAIL\\*\\*", "^### ❌ `all`: \\*\\*FAIL\\*\\* 2 failed of 2$", "^\\| `h100` \\| \\*\\*fail\\*\\* ")
		}},
		{"two jobs that race for one comment", func(b *bench) {
			b.github(nil)
			raced := strings.NewReplacer("comment-key: ${{ matrix.gpu }}", "comment-key: same", oneByOne, "").Replace(b.matrix())
			w, _, _ := strings.Cut(raced, "  all:\n")
			b.repository(w, b.base, b.slow, nil)
			b.run("pull_request", gatetest.PullEvent)
			b.want(b.one(), "^### ❌ `same`: \\*\\*FAIL\\*\\*")
		}},
		{"strangers' code beside a token that can write", func(b *bench) {
			b.github(nil)
			w := strings.Replace(b.oneJob(""), "on: pull_request", "on: pull_request_target", 1)
			b.repository(w, b.base, b.slow, nil)
			ok, log := b.run("pull_request_target", gatetest.PullEvent)
			if ok || len(b.server.Requests()) > 0 {
				b.Error("it ran")
			}
			b.want(log, `pull_request_target`)
		}},
		{"outputs for the steps that follow", func(b *bench) {
			b.github(nil)
			b.repository(b.oneJob(`      - run: '{ echo "OUT ${{ steps.e.outputs.verdict }} ${{ steps.e.outputs.exit-code }} ${{ steps.e.outputs.regressions }} ${{ steps.e.outputs.comment-id }}"; ls ${{ steps.e.outputs.comparison-json }} ${{ steps.e.outputs.report-dir }}/*/report.json ${{ steps.e.outputs.comment-markdown }}; } >> "$E2E_LOG"'`+"\n"), b.base, b.slow, nil)
			ok, log := b.run("pull_request", gatetest.PullEvent)
			if !ok {
				b.Error("a step that may fail stops the job")
			}
			b.want(log, `OUT fail 1 [0-9]+ 1000`, `explain/reports/head/report\.json`)
		}},
	}
}

// oneJob is a workflow in one job, captures and gate, with what is added after it.
func (b *bench) oneJob(more string) string {
	return `name: Inference performance
on: pull_request
permissions: {contents: read, pull-requests: write}
jobs:
  gate:
    runs-on: self-hosted
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683
      - run: nsys profile -o head python bench.py
      - run: git checkout HEAD^1
      - run: nsys profile -o base python bench.py
      - uses: nsys-llm/explain@v1
        id: e
        continue-on-error: ` + strconv.FormatBool(more != "") + `
        with: {baseline: base.nsys-rep, candidate: head.nsys-rep}
` + more
}

// oneByOne makes act run the jobs of a matrix one after the other: side by side they can end it with "concurrent map
// iteration and map write" (nektos/act#2199).
const oneByOne = "      max-parallel: 1\n"

// matrix is the example, on the one runner that there is.
func (b *bench) matrix() string {
	w := strings.ReplaceAll(b.example("matrix.yml"), `[self-hosted, "${{ matrix.gpu }}"]`, "self-hosted")
	return strings.ReplaceAll(w, "fail-fast: false\n", "fail-fast: false\n"+oneByOne)
}

// artifactBaseline: the first push finds nothing and leaves an artifact; the pull request is compared with it, not with what
// a fork left under the same name. The policy is the base's.
func artifactBaseline(b *bench) {
	policy := "version: 1\nrules:\n  - {id: step, metric: unit.time.p50, level: error, regress: {rel: 3%, abs: 10us}}\n"
	files := func(sc *gatetest.Scenario) {
		sc.Files = []gatetest.File{at(".github/explain.yml", gatetest.BaseSHA, policy), at(".github/explain.yml", gatetest.HeadSHA, strings.Replace(policy, "3%", "30%", 1))}
	}
	workflow := b.example("artifact-baseline.yml")
	b.github(files)
	b.repository(workflow, b.base, b.base, map[string]string{".github/explain.yml": policy})
	ok, log := b.run("push", pushEvent)
	if !ok {
		b.Error("the first push fails")
	}
	b.want(log, `WARN no baseline`)
	left := b.artifact(5, 500, "explain-baseline")
	b.github(func(sc *gatetest.Scenario) {
		files(sc)
		sc.Commits = []gatetest.Commit{{SHA: gatetest.BaseSHA}, {SHA: gatetest.HeadSHA, Parent: gatetest.BaseSHA}}
		sc.Branches = map[string]string{"main": gatetest.BaseSHA}
		sc.Runs = []gatetest.Run{{ID: 500, HeadSHA: gatetest.BaseSHA}, {ID: 501, HeadSHA: gatetest.BaseSHA, HeadRepoID: 2}}
		sc.Artifacts = []gatetest.Artifact{left, {ID: 6, Name: "explain-baseline", RunID: 501, Files: map[string]string{"report.json": "planted"}}}
	})
	b.repository(workflow, b.base, b.slow, map[string]string{".github/explain.yml": strings.Replace(policy, "3%", "30%", 1)})
	if ok, _ := b.run("pull_request", gatetest.PullEvent); ok {
		b.Error("a slower head passes")
	}
	b.want(b.one(), `^### ❌ \*\*FAIL\*\* \+11\.2 %`, "baseline: `artifact explain-baseline of run 500 \\(push\\) at bbbbbbb \\(merge base\\), sha256 [0-9a-f]+`",
		`^> policy: as of bbbbbbb; changed here: policy$`)
}

// forkPattern: the fork's run cannot write and leaves an artifact, the second workflow comments.
func forkPattern(add func(*gatetest.Scenario), check func(b *bench, ok bool, log string)) func(*bench) {
	return func(b *bench) {
		b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"pull-requests: write", "issues: write"} })
		b.repository(b.example("fork-gate.yml"), b.base, b.slow, nil)
		if ok, _ := b.run("pull_request", forkEvent); !ok || b.server.Transcript() != "" {
			b.Error("measuring fails, or talked to GitHub")
		}
		left := b.artifact(5, 900, "explain-reports")
		for name, text := range left.Files { // GitHub calls that run 900
			left.Files[name] = strings.Replace(text, fmt.Sprintf(`"run":{"id":%d,`, 1000+b.runs), `"run":{"id":900,`, 1)
		}
		b.github(func(sc *gatetest.Scenario) {
			sc.Pulls = []gatetest.Pull{{Number: 7, HeadSHA: gatetest.HeadSHA, HeadRef: "patch-1", HeadRepo: "mallory/llm", HeadRepoID: 2, BaseSHA: gatetest.BaseSHA}}
			sc.Runs = []gatetest.Run{{ID: 900, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "patch-1", HeadRepoID: 2}}
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
