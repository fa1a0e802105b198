package exampletest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/gate/gatetest"
)

// steps are the scenarios of TestSteps. gate/threats.md names most of them.
func steps() []scenario {
	return []scenario{
		// What decides is the base's.
		{"the policy is the base's", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)} })
			b.file("p.yml", []byte(laxRules))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
			b.want(b.one(), `^> policy: as of bbbbbbb; changed here: policy$`, `policy: .p\.yml at bbbbbbb.`)
		}},
		{"the policy of a merge queue is the base's", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)} })
			b.file("p.yml", []byte(laxRules))
			b.code(1, "merge_group", queueEvent, map[string]string{"policy": "p.yml"})
		}},
		{"the policy of a push is that of the commit before it", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)} })
			b.file("p.yml", []byte(laxRules))
			push := strings.Replace(pushEvent, strings.Repeat("0", 40), gatetest.BaseSHA, 1)
			b.code(1, "push", push, map[string]string{"policy": "p.yml"}, "GITHUB_REF=refs/heads/main")
		}},
		{"the policy of another branch is the default branch's", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at("p.yml", "main", strictRules), at("p.yml", gatetest.BaseSHA, laxRules)}
			})
			b.file("p.yml", []byte(laxRules))
			b.code(1, "push", branchEvent, map[string]string{"policy": "p.yml"}, "GITHUB_REF=refs/heads/feature")
			b.code(1, "workflow_dispatch", cronEvent, map[string]string{"policy": "p.yml"}, "GITHUB_REF=refs/heads/feature")
			tag := strings.Replace(strings.Replace(branchEvent, "refs/heads/feature", "refs/tags/v9", 1), gatetest.BaseSHA, strings.Repeat("0", 40), 1)
			b.code(1, "push", tag, map[string]string{"policy": "p.yml"}, "GITHUB_REF=refs/tags/v9")
			b.code(1, "workflow_dispatch", cronEvent, map[string]string{"policy": "p.yml"}, "GITHUB_REF=refs/tags/v9")
		}},
		{"a policy that cannot be read at the base is no pass", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Steps = []gatetest.Step{answer("GET", "/repos/octo/llm/contents/*", 403, 99, nil, quoted("API rate limit exceeded"))}
			})
			b.file("p.yml", []byte(laxRules))
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
			b.want(b.one(), `^### ❔ \*\*INCONCLUSIVE\*\* nothing was judged$`, `cannot be read at the base bbbbbbb`)
		}},
		{"a base that GitHub does not have is no pass", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Gone = []string{gatetest.BaseSHA} })
			b.file("p.yml", []byte(laxRules))
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
		}},
		{"a pull request that GitHub does not show is no pass", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Pulls = nil })
			b.file("p.yml", []byte(laxRules))
			b.code(4, "issue_comment", `{"issue": {"number": 7, "pull_request": {}}, `+cronEvent[1:], map[string]string{"policy": "p.yml"})
		}},
		{"a policy that is new with the change counts once merged", func(b *bench) {
			b.file("p.yml", []byte(laxRules))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
			b.want(b.one(), `^> new here, counts once merged: policy$`, "policy: `default rules`")
		}},
		{"noise floors are the base's", func(b *bench) {
			b.file("noise.json", []byte(`{"schema": "explain.noise/1", "floors": "everything"}`))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"noise": "noise.json"})
			b.want(b.one(), `^> new here, counts once merged: noise$`)
		}},
		{"a checked-in baseline is the base's", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at("perf/baseline.json", gatetest.BaseSHA, string(b.reports["base"]))}
			})
			b.file("perf/baseline.json", b.reports["slow"])
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-file": "perf/baseline.json"})
			b.want(b.one(), `^> baseline: as of bbbbbbb; changed here: baseline$`)
			if strings.Contains(b.one(), "`bbbbbbb` vs") {
				b.Error("it claims that the file was made at the base")
			}
		}},
		{"waivers expire by the real clock", func(b *bench) {
			day := time.Now().AddDate(0, 0, -3).Format(time.DateOnly)
			rules := strictRules + "waivers:\n  - {rule: step, expires: " + day + ", reason: later}\n"
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, rules)} })
			b.file("p.yml", []byte(rules))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"}, "SOURCE_DATE_EPOCH=1760000000")
		}},
		{"a retargeted pull request is judged by its new base", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, laxRules), at("p.yml", strings.Repeat("d", 40), strictRules)}
			})
			b.file("p.yml", []byte(laxRules))
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
			edited := strings.Replace(strings.Replace(gatetest.PullEvent, gatetest.BaseSHA, strings.Repeat("d", 40), 1), "synchronize", "edited", 1)
			b.code(1, "pull_request", edited, map[string]string{"policy": "p.yml"})
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"what a policy extends is the base's", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at("gates/p.yml", gatetest.BaseSHA, "version: 1\nextends: ../org.yml\n"), at("org.yml", gatetest.BaseSHA, strictRules)}
			})
			b.file("gates/p.yml", []byte("version: 1\nextends: ../org.yml\n"))
			b.file("org.yml", []byte(laxRules))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "gates/p.yml"})
			b.server.Change(func(sc *gatetest.Scenario) { sc.Files = sc.Files[:1] })
			b.want(b.code(2, "pull_request", gatetest.PullEvent, map[string]string{"policy": "gates/p.yml"}), `the base bbbbbbb has no file org\.yml`)
		}},
		{"a waiver of several rules covers those and no other", func(b *bench) {
			rules := strings.Replace(strictRules, "metric: unit.time.p50", "metric: unit.time.p50, labels: {phase: decode}", 1) +
				"  - {id: mean, metric: unit.time.mean, labels: {phase: decode}, level: error, regress: {rel: 3%, abs: 10us}}\nwaivers:\n  - {rule: [step, mean], ceiling: 15%, expires: " + time.Now().AddDate(1, 0, 0).Format(time.DateOnly) + ", reason: the new sampler}\n"
			policy := func(rules string) {
				b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, rules)} })
				b.file("p.yml", []byte(rules))
			}
			policy(rules)
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
			b.want(b.one(), `^### ⚠ \*\*WARN\*\*`, `passed \(\d+ by a waiver\)`)
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml", "candidate": "worse.json"}) // above the ceiling
			policy(strings.Replace(rules, "rule: [step, mean]", "rule: [mean]", 1))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"})
		}},
		{"what must improve and does not fails, until it is accepted as it is", func(b *bench) {
			rules := "version: 1\nrules:\n  - {id: faster, metric: unit.time.p50, labels: {phase: decode}, improve: {rel: 5%}}\n"
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, rules)} })
			b.file("p.yml", []byte(rules))
			in := map[string]string{"policy": "p.yml", "baseline": "slow.json", "candidate": "base.json"}
			b.code(0, "pull_request", gatetest.PullEvent, in)
			in["candidate"] = "slow.json"
			in["baseline"] = "base.json"
			b.code(1, "pull_request", gatetest.PullEvent, in)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", gatetest.PullEvent, in)
			in["candidate"] = "worse.json"
			b.code(1, "pull_request", gatetest.PullEvent, in)
		}},
		{"a draft that is ready is judged", func(b *bench) {
			b.code(1, "pull_request", strings.Replace(gatetest.PullEvent, "synchronize", "ready_for_review", 1), nil)
		}},

		// A baseline, or not a pass.
		{"no baseline and no budget is inconclusive", func(b *bench) {
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"baseline": ""})
		}},
		{"before main has run the workflow a missing baseline warns", func(b *bench) {
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `^### ⚠ \*\*WARN\*\* no baseline`, `its first run on main makes the baseline`)
		}},
		{"a baseline of another name is inconclusive", func(b *bench) {
			b.github(b.measured("explain-baseline", "main"))
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baselin"})
			b.want(b.one(), `no artifact explain-baselin .*what runs on that branch left: explain-baseline`)
		}},
		{"a baseline that expired is inconclusive", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				b.measured("explain-baseline", "main")(sc)
				sc.Artifacts[0].Expired = true
			})
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `1 of that name expired, the newest of run 500`)
		}},
		{"a default branch that was renamed is inconclusive", func(b *bench) {
			b.github(b.measured("explain-baseline", "master"))
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `there is one of that name from master: was the branch renamed\?`)
		}},
		{"a baseline that cannot be listed is an error", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"actions: read"} })
			b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `actions: read`)
		}},
		{"a schedule and a hand make the baseline", func(b *bench) {
			for _, event := range []string{"schedule", "workflow_dispatch"} {
				b.code(0, event, cronEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"}, "GITHUB_REF=refs/heads/main", "GITHUB_SHA="+gatetest.BaseSHA)
				b.want(b.outputs, `report-dir`)
			}
			b.github(b.measured("explain-baseline", "main"))
			b.code(1, "schedule", cronEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"}, "GITHUB_REF=refs/heads/main", "GITHUB_SHA="+gatetest.BaseSHA)
		}},
		{"an artifact that is one plain file", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				b.measured("explain-baseline", "main")(sc)
				sc.Artifacts[0].Raw = b.reports["base"]
			})
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
		}},

		// Acceptance.
		{"a label that is set after the verdict accepts it", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", gatetest.PullEvent, nil, "GITHUB_RUN_ATTEMPT=2")
			b.want(b.one(), "^### ⚠ \\*\\*WARN\\*\\* .*, accepted by `perf:accept` of `alice`$")
		}},
		{"a label does not accept a later head that is worse", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.label("alice", "2026-02-01T00:00:00Z")
			later := strings.Replace(gatetest.PullEvent, gatetest.HeadSHA, strings.Repeat("e", 40), 1)
			b.server.Change(func(sc *gatetest.Scenario) {
				sc.Pulls[0].HeadSHA = strings.Repeat("e", 40)
				sc.Runs = append(sc.Runs, gatetest.Run{ID: 1001, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "feature"})
			})
			b.code(0, "pull_request", later, nil) // as bad as what was accepted
			said := b.code(1, "pull_request", later, map[string]string{"candidate": "worse.json"})
			b.want(said, `the rule \S+ (is at \+|had not failed then)`)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"a label before any verdict accepts nothing", func(b *bench) {
			b.label("alice", "2025-06-01T00:00:00Z")
			b.want(b.code(1, "pull_request", gatetest.PullEvent, nil), `set before any verdict stood`)
		}},
		{"a label for what was seen on another head, while this one was measured", func(b *bench) {
			b.code(0, "pull_request", strings.Replace(gatetest.PullEvent, gatetest.HeadSHA, strings.Repeat("e", 40), 1), map[string]string{"candidate": "again.json"})
			b.label("alice", "2026-02-01T00:00:00Z")
			b.server.Change(func(sc *gatetest.Scenario) {
				sc.Runs = append(sc.Runs, gatetest.Run{ID: 1001, Event: "pull_request", HeadSHA: strings.Repeat("e", 40), HeadBranch: "feature"})
			})
			b.want(b.code(1, "pull_request", strings.Replace(gatetest.PullEvent, "synchronize", "labeled", 1), nil), `had not failed then`)
		}},
		{"a marker that says what was accepted accepts nothing", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				labelled("alice", "2026-02-01T00:00:00Z")(sc)
				sc.Comments = []gatetest.Comment{{Number: 7, Body: "old\n\n<!-- explain:v1:key=performance-gate head=" + gatetest.HeadSHA + " run=900 attempt=1 accepted=" + gatetest.HeadSHA + ",4b1334a1=99.0 -->"}}
			})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
		}},
		{"a label that an app set accepts nothing", func(b *bench) {
			for _, app := range []string{"github-actions[bot]", "other-app[bot]"} {
				b.github(nil)
				b.code(1, "pull_request", gatetest.PullEvent, nil)
				b.label(app, "2026-02-01T00:00:00Z")
				said := b.code(1, "pull_request", gatetest.PullEvent, nil)
				b.want(said, `counts only if a person set it`)
			}
		}},
		{"a label of somebody who may not accept", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Roles = map[string]string{"alice": "triage"} })
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.want(b.code(1, "pull_request", gatetest.PullEvent, nil), `alice may not set it \(accept-by: write\)`)
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"accept-by": "bob, alice"})
		}},
		{"a token that may not keep verdicts", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"checks: write"} })
			b.want(b.code(1, "pull_request", gatetest.PullEvent, nil), `checks: write`)
			if strings.Contains(b.one(), "perf:accept") {
				b.Error("it names a label that could accept nothing")
			}
		}},
		{"an inconclusive verdict is accepted for its reasons and its head", func(b *bench) {
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"baseline": ""})
			b.want(b.one(), "To accept this: the label `perf:accept`")
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"baseline": ""})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.code(4, "pull_request", strings.Replace(gatetest.PullEvent, gatetest.HeadSHA, strings.Repeat("e", 40), 1), map[string]string{"baseline": ""})
		}},
		{"what a label accepted is accepted in the merge queue", func(b *bench) {
			b.code(1, "merge_group", queueEvent, nil)
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "merge_group", queueEvent, nil)
			b.code(1, "merge_group", queueEvent, map[string]string{"candidate": "worse.json"})
		}},
		{"a merged comment fails as its legs do, and is accepted as they are", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"out": "legs/explain-a100"})
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"out": "legs/explain-h100", "candidate": "again.json"})
			all := map[string]string{"command": "comment", "candidate": "legs/*/comparison.json", "expect": "a100,h100", "comment-key": "all"}
			b.code(1, "pull_request", gatetest.PullEvent, all)
			b.want(b.outputs, `^fail$`)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", gatetest.PullEvent, all)
			all["exit-on"] = "warn"
			b.code(1, "pull_request", gatetest.PullEvent, all)
		}},

		{"a merged comment over an inconclusive leg is accepted for it, and not for a leg that crashed", func(b *bench) {
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"out": "legs/explain-a100", "baseline": ""})
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"out": "legs/explain-h100", "candidate": "again.json"})
			all := map[string]string{"command": "comment", "candidate": "legs/*/comparison.json", "expect": "a100,h100", "comment-key": "all"}
			b.code(4, "pull_request", gatetest.PullEvent, all)
			b.want(strings.Join(b.comments(), "\n"), "^### ❔ `all`: \\*\\*INCONCLUSIVE\\*\\* 1 inconclusive of 2$")
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", gatetest.PullEvent, all)
			all["expect"] = "a100,h100,b200"
			b.code(3, "pull_request", gatetest.PullEvent, all)
		}},
		{"an error cannot be accepted", func(b *bench) {
			gone := map[string]string{"candidate": "gone-*.json"}
			b.code(3, "pull_request", gatetest.PullEvent, gone)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(3, "pull_request", gatetest.PullEvent, gone)
			b.want(b.one(), `^### 🛑 \*\*ERROR\*\*`)
			b.code(1, "pull_request", gatetest.PullEvent, nil)
		}},

		// Evidence is of this run, or of one that is trusted.
		{"reports of another run are an error", func(b *bench) {
			run := func(name string, id string) []byte {
				return []byte(strings.Replace(string(b.reports[name]), `"tables":`, `"run": {"id": `+id+`, "attempt": 1}, "tables":`, 1))
			}
			in := map[string]string{"baseline": "reports/base/*/report.json", "candidate": "reports/head/*/report.json"}
			b.file("reports/base/1/report.json", run("base", "77"))
			b.file("reports/head/1/report.json", run("slow", "77"))
			b.code(1, "pull_request", gatetest.PullEvent, in, "GITHUB_RUN_ID=77")
			b.file("reports/head/1/report.json", run("again", "76"))
			b.want(b.code(3, "pull_request", gatetest.PullEvent, in, "GITHUB_RUN_ID=77"), `was made by run 76, and run 77 is judged`)
			b.file("reports/head/1/report.json", b.reports["again"])
			b.want(b.code(3, "pull_request", gatetest.PullEvent, in, "GITHUB_RUN_ID=77"), `others name none`)
		}},
		{"a history in the workspace decides nothing", func(b *bench) {
			b.file("history.db", []byte("forged"))
			b.want(b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"history": "history.db"}), `name the artifact of a run on the base branch`)
		}},
		{"a history of a run on the base branch is used", func(b *bench) {
			b.file("b.json", b.reports["base"])
			add := exec.Command(b.program, "history", "add", "b.json", "--store", "h.db", "--commit", gatetest.BaseSHA, "--time", "2026-01-01", "--branch", "main")
			add.Dir = b.workspace()
			if out, err := add.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			store := string(explaintest.Read(b.T, filepath.Join(b.workspace(), "h.db")))
			in := map[string]string{"history-artifact": "explain-history"}
			b.github(func(sc *gatetest.Scenario) {
				b.measured("explain-history", "main")(sc)
				sc.Artifacts[0].Files = map[string]string{"history.db": store}
			})
			b.code(1, "pull_request", gatetest.PullEvent, in)
			b.want(b.one(), `History, noise: 1 run`)
			b.server.Change(func(sc *gatetest.Scenario) { sc.Runs[0].Event = "pull_request" })
			b.code(1, "pull_request", gatetest.PullEvent, in)
			if strings.Contains(b.one(), "History") {
				b.Error("the history of a pull request's run is used")
			}
		}},
		{"noise floors that hide everything are no pass", func(b *bench) {
			for i, name := range []string{"base", "slow", "worse"} {
				b.file(fmt.Sprintf("c%d.json", i), b.reports[name])
			}
			cal := exec.Command(b.program, "calibrate", "c0.json", "c1.json", "c2.json", "--out", "noise.json")
			cal.Dir = b.workspace()
			said, err := cal.CombinedOutput()
			noise, err2 := os.ReadFile(filepath.Join(b.workspace(), "noise.json"))
			if err2 != nil {
				b.Fatalf("%v, %v: %s", err, err2, said)
			}
			b.github(func(sc *gatetest.Scenario) {
				sc.Files = []gatetest.File{at("noise.json", gatetest.BaseSHA, string(noise))}
			})
			b.code(4, "pull_request", gatetest.PullEvent, map[string]string{"noise": "noise.json"})
			b.want(b.one(), `could not fail`)
		}},

		{"a label judges what was measured of the same head, and measures nothing", func(b *bench) {
			again := map[string]string{"baseline": "", "candidate": "", "artifact": "explain-reports"}
			labelled := strings.Replace(gatetest.PullEvent, "synchronize", "labeled", 1)
			b.want(b.code(4, "pull_request", labelled, again), `has not been measured yet`)
			if len(b.comments()) != 0 {
				b.Error("it comments on what nobody has measured")
			}
			b.code(1, "pull_request", gatetest.PullEvent, nil, "GITHUB_RUN_ID=900")
			b.server.Change(func(sc *gatetest.Scenario) {
				sc.Runs = append(sc.Runs, gatetest.Run{ID: 900, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "feature"})
				sc.Artifacts = append(sc.Artifacts, gatetest.Artifact{ID: 5, Name: "explain-reports", RunID: 900, Files: b.pair("base", "slow")})
			})
			b.code(1, "pull_request", labelled, again)
			b.label("alice", "2026-02-01T00:00:00Z")
			b.code(0, "pull_request", labelled, again)
			b.want(b.one(), `^### ⚠ \*\*WARN\*\*`, "run=900")
		}},

		// Every run says what it knows.
		{"two gates of one job keep two comments", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"out": "prefill"}, "GITHUB_RUN_ID=77")
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"out": "decode", "candidate": "again.json"}, "GITHUB_RUN_ID=77")
			all := strings.Join(b.comments(), "\n")
			if n := len(b.comments()); n != 2 {
				b.Errorf("%d comments", n)
			}
			b.want(all, `^### ❌ \*\*FAIL\*\*`, `^### ✅ \*\*PASS\*\*`)
		}},
		{"two gates of one job with one name collide", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, nil, "GITHUB_RUN_ID=77")
			b.code(1, "pull_request", gatetest.PullEvent, nil, "GITHUB_RUN_ID=77") // the same step once more is none
			said := b.code(2, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json"}, "GITHUB_RUN_ID=77")
			b.want(said, `another step of this job has the same`)
			if strings.Contains(b.one(), "**PASS**") {
				b.Error("the second one's pass stands")
			}
		}},
		{"a capture that failed replaces a pass", func(b *bench) {
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json", "status": "perf"})
			b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "gone-*.json", "status": "perf"})
			b.want(b.one(), `^### 🛑 \*\*ERROR\*\* nothing was judged$`)
			if st := b.server.Statuses(); len(st) != 4 || st[0].State != "pending" || st[1].State != "success" || st[2].State != "pending" || st[3].State != "error" {
				b.Errorf("statuses %+v", st)
			}
			b.want(string(explaintest.Read(b.T, filepath.Join(b.workspace(), "explain/gate.junit.xml"))), `<error message="`)
			b.want(string(explaintest.Read(b.T, filepath.Join(b.workspace(), "explain/comment.md"))), `^### 🛑 \*\*ERROR\*\*`)
			b.want(string(explaintest.Read(b.T, filepath.Join(b.workspace(), "explain/comparison.json"))), `"verdict": "error"`)
			if _, err := os.Stat(filepath.Join(b.workspace(), "explain/reports")); err == nil {
				b.Error("reports of the run before are still there")
			}
			for range 2 { // the folder is still explain's
				b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json", "status": "perf"})
				b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "gone-*.json", "status": "perf"})
			}
		}},
		{"a measurement that failed links the log of its job", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Runs = []gatetest.Run{{ID: 77, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "feature", FailedJob: "measure"}}
			})
			b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "gone-*.json"}, "GITHUB_RUN_ID=77")
			b.want(b.one(), `\(https://github\.example/octo/llm/actions/runs/77/job/3\)`)
		}},
		{"the comment links the report that a workflow publishes", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"report-url": "https://pages.example.com/7/diff.html"})
			b.want(b.one(), `\(https://pages\.example\.com/7/diff\.html\)`)
		}},
		{"wrong usage is said where the last verdict stands", func(b *bench) {
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json"})
			for _, in := range []map[string]string{{"exit-on": "red"}, {"comment": "loudly"}, {"base-commit": "main"}, {"policy": "p.yml", "policy-ref": "head"}} {
				b.file("p.yml", []byte("version: 1\nrulez: []\n"))
				b.code(2, "pull_request", gatetest.PullEvent, in)
				b.want(b.one(), `^### 🛑 \*\*ERROR\*\* nothing was judged$`)
				b.want(b.outputs, `^error$`)
				b.want(string(explaintest.Read(b.T, b.summaryFile)), `\*\*ERROR\*\*`)
			}
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"exit-on": "fail"})
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"exit-on": "never", "candidate": "gone-*.json"})
			b.want(b.outputs, `^error$`)
		}},
		{"a leg of the matrix that left nothing is an error", func(b *bench) {
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json", "out": "legs/explain-a100"})
			b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"command": "comment", "candidate": "legs/*/comparison.json", "expect": "a100,h100", "comment-key": "all"})
			b.want(strings.Join(b.comments(), "\n"), "^### 🛑 `all`: \\*\\*ERROR\\*\\* 1 error of 2$", "`h100` .*its job failed or never ran")
		}},
		{"a marker of a run that never was does not stop updates", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Body: "### ✅ **PASS**\n\n" + marker("performance-gate", gatetest.HeadSHA, 999999999999999999)}}
			})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"a marker that somebody planted", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Author: gatetest.User{Login: "mallory", Type: "User"}, Body: "all fine\n\n" + marker("performance-gate", gatetest.HeadSHA, 99999)}}
			})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
			if c := b.server.Comments()[0]; !strings.HasPrefix(c.Body, "all fine") {
				b.Error("somebody else's comment was changed")
			}
		}},
		{"a newer run has commented", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Runs = []gatetest.Run{{ID: 99999, Event: "pull_request", HeadSHA: gatetest.HeadSHA, HeadBranch: "feature"}}
				sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Body: "newer\n\n" + marker("performance-gate", gatetest.HeadSHA, 99999)}}
			})
			said := b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), `^newer$`)
			b.want(said, `comment: stale`)
		}},
		{"a comment that somebody deleted or edited is written again", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			id := b.server.Comments()[0].ID
			b.github(func(sc *gatetest.Scenario) {
				sc.Comments = []gatetest.Comment{{ID: id, Number: 7, Body: "### ✅ **PASS** says who edited\n\n" + marker("performance-gate", gatetest.HeadSHA, 1001)}}
			})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"a head that moved on while it was measured", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Pulls[0].HeadSHA = strings.Repeat("e", 40) })
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), "^> This is of `aaaaaaa`. The head is `eeeeeee` by now, which no run has judged yet\\.$")
		}},
		{"a token that may not comment", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"pull-requests: write", "issues: write"} })
			said := b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(said, `pull-requests: write`)
			b.want(string(explaintest.Read(b.T, b.summaryFile)), `^### ❌ \*\*FAIL\*\*`, `pull-requests: write`)
		}},
		{"a comment that GitHub finds too long", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Steps = []gatetest.Step{answer("POST", commentsPath, 422, 1, nil, `{"message": "Validation Failed", "errors": [{"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is too long (maximum is 65536 characters)"}]}`)}
			})
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"limits and trouble at GitHub", func(b *bench) {
			for _, step := range []gatetest.Step{
				answer("GET", commentsPath, 429, 1, map[string]string{"Retry-After": "1"}, quoted("slow down")),
				answer("GET", commentsPath, 403, 1, map[string]string{"Retry-After": "1"}, `{"message": "You have exceeded a secondary rate limit"}`),
				answer("GET", commentsPath, 502, 2, nil, "bad gateway"),
			} {
				b.github(func(sc *gatetest.Scenario) { sc.Steps = []gatetest.Step{step} })
				b.code(1, "pull_request", gatetest.PullEvent, nil)
				b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
			}
		}},
		{"a server that is down", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.Steps = []gatetest.Step{answer("", "", 503, 1000, map[string]string{"Retry-After": "0"}, "down")}
			})
			said := b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(said, `fail step \+3%,\+10µs on unit\.time\.p50`, `comment: refused`)
		}},
		{"many comments on small pages", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				sc.PageSize = 2
				for range 7 {
					sc.Comments = append(sc.Comments, gatetest.Comment{Number: 7, Author: gatetest.User{Login: "bob", Type: "User"}, Body: "me too"})
				}
				sc.Comments = append(sc.Comments, gatetest.Comment{Number: 7, Body: "old\n\n" + marker("performance-gate", gatetest.BaseSHA, 3)})
			})
			said := b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(said, `comment: updated`)
		}},
		{"a summary that has no room", func(b *bench) {
			b.summaryFile = filepath.Join(b.dir, fmt.Sprintf("summary%d", b.runs+1))
			explaintest.Put(b.T, b.summaryFile, []byte(strings.Repeat("x", 1<<20)), 0o644)
			said := b.code(1, "pull_request", gatetest.PullEvent, nil)
			b.want(said, `summary: `)
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`)
		}},
		{"the summary has what the comment has no room for", func(b *bench) {
			b.code(1, "pull_request", gatetest.PullEvent, nil)
			comment, summary := explaintest.Read(b.T, filepath.Join(b.workspace(), "explain/comment.md")), explaintest.Read(b.T, filepath.Join(b.workspace(), "explain/summary.md"))
			if len(summary) <= len(comment) {
				b.Errorf("summary of %d bytes, comment of %d", len(summary), len(comment))
			}
		}},

		// Where explain runs.
		{"an enterprise server", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Prefix = "/api/v3" })
			b.prefix = "/api/v3"
			b.code(1, "pull_request", gatetest.PullEvent, nil, "GITHUB_SERVER_URL=https://ghe.example.com")
			b.want(b.one(), `https://ghe\.example\.com/octo/llm/actions/runs/`)
		}},
		{"a container without a home, whose checkout git does not trust", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)} })
			b.file("p.yml", []byte(laxRules))
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"policy": "p.yml"}, "HOME=", "GIT_TEST_ASSUME_DIFFERENT_OWNER=1")
		}},
		{"a folder of its own, and a program from there", func(b *bench) {
			b.file("sub/x", nil)
			for name, content := range b.reports {
				b.file("sub/"+name+".json", content)
			}
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"working-directory": "sub"})
			b.want(b.outputs, `^sub/explain/comparison\.json$`)
		}},
		{"dependabot, whose token can only read", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) { sc.Denied = []string{"pull-requests: write", "issues: write"} })
			b.code(0, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "again.json"}, "GITHUB_ACTOR=dependabot[bot]")
			b.want(string(explaintest.Read(b.T, b.summaryFile)), `^### ✅ \*\*PASS\*\*`)
		}},
		{"children do not get the token", func(b *bench) {
			bin := filepath.Join(b.dir, "bin")
			explaintest.Put(b.T, filepath.Join(bin, "nsys"), []byte("#!/bin/bash\nenv > \"$CHILD_ENV\"\nexit 1\n"), 0o755)
			explaintest.Put(b.T, filepath.Join(bin, "git"), []byte("#!/bin/bash\nenv >> \"$CHILD_ENV\"\nexit 1\n"), 0o755)
			b.github(func(sc *gatetest.Scenario) { sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)} })
			b.file("p.yml", []byte(laxRules))
			b.file("head.nsys-rep", []byte("a capture"))
			child := filepath.Join(b.dir, "child")
			b.code(3, "pull_request", gatetest.PullEvent, map[string]string{"candidate": "head.nsys-rep", "policy": "p.yml"}, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
				"CHILD_ENV="+child, "GITHUB_SHA="+gatetest.HeadSHA, "ACTIONS_RUNTIME_TOKEN=rt")
			env := string(explaintest.Read(b.T, child))
			if strings.Contains(env, "ghs_e2e_token") || strings.Contains(env, "ACTIONS_RUNTIME_TOKEN") || !strings.Contains(env, "GITHUB_REPOSITORY=") {
				b.Errorf("a child got:\n%s", env)
			}
		}},

		// Forks: nothing but numbers is believed.
		{"two pull requests of one head are judged each against its own base", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				forked(b.pair("base", "slow"))(sc)
				release := sc.Pulls[0]
				release.Number, release.BaseRef, release.BaseSHA = 8, "release", strings.Repeat("d", 40)
				sc.Pulls = append(sc.Pulls, release)
				sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules), at("p.yml", release.BaseSHA, laxRules)}
			})
			b.code(1, "workflow_run", doneEvent, map[string]string{"baseline": "", "candidate": "", "policy": "p.yml", "status": "perf"})
			said := map[int]string{}
			for _, c := range b.server.Comments() {
				said[c.Number] = c.Body
			}
			b.want(said[7], `^### ❌ \*\*FAIL\*\*`, `policy: as of bbbbbbb`)
			b.want(said[8], `^### ⚠ \*\*WARN\*\*`, `policy: as of ddddddd`)
			if st := b.server.Statuses(); len(st) == 0 || st[len(st)-1].State != "failure" {
				b.Errorf("statuses %+v", st)
			}
		}},
		{"a fork's reports are judged by the base's policy", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				forked(b.pair("base", "slow"))(sc)
				sc.Artifacts[0].Files["p.yml"] = laxRules
				sc.Artifacts[0].Files["comparison.json"] = `{"verdict": "pass"}`
				sc.Artifacts[0].Files["comment.md"] = "### ✅ **PASS** @octo/everyone"
				sc.Files = []gatetest.File{at("p.yml", gatetest.BaseSHA, strictRules)}
			})
			b.code(1, "workflow_run", doneEvent, map[string]string{"baseline": "", "candidate": "", "policy": "p.yml", "status": "perf"})
			b.want(b.one(), `^### ❌ \*\*FAIL\*\*`, `Measured by a run of the change's own code, judged here`)
			if strings.Contains(b.one(), "@octo") {
				b.Error("text of the fork was posted")
			}
			if st := b.server.Statuses(); len(st) != 2 || st[0].State != "pending" || st[1].State != "failure" || st[1].SHA != gatetest.HeadSHA {
				b.Errorf("statuses %+v", st)
			}
		}},
		{"a fork whose measurement begins is pending", func(b *bench) {
			b.github(forked(nil))
			b.code(0, "workflow_run", strings.Replace(doneEvent, "completed", "requested", 1), map[string]string{"baseline": "", "candidate": "", "status": "perf"})
			if st := b.server.Statuses(); len(st) != 1 || st[0].State != "pending" || len(b.comments()) != 0 {
				b.Errorf("statuses %+v, %d comments", st, len(b.comments()))
			}
		}},
		{"a fork that leaves a comparison and no reports is refused", func(b *bench) {
			b.github(forked(map[string]string{"comparison.json": `{"schema": "explain.comparison/1", "verdict": "pass"}`}))
			said := b.code(3, "workflow_run", doneEvent, noFiles)
			b.want(said, `a comparison that the change made itself is not trusted`)
		}},
		{"a fork whose measurement failed replaces a pass", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				forked(nil)(sc)
				sc.Comments = []gatetest.Comment{{ID: 3, Number: 7, Body: "### ✅ **PASS**\n\n" + marker("performance-gate", gatetest.BaseSHA, 3)}}
			})
			b.code(3, "workflow_run", doneEvent, map[string]string{"baseline": "", "candidate": "", "status": "perf"})
			b.want(b.one(), `^### 🛑 \*\*ERROR\*\* nothing was judged$`, `artifact explain-reports of run 900`)
			if st := b.server.Statuses(); len(st) != 2 || st[0].State != "pending" || st[1].State != "error" {
				b.Errorf("statuses %+v", st)
			}
		}},
		{"a fork's base does not replace the baseline of main", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				b.measured("explain-baseline", "main")(sc)
				runs, artifacts := sc.Runs, sc.Artifacts
				forked(b.pair("slow", "more"))(sc)
				sc.Artifacts[0].ID = 6
				sc.Runs, sc.Artifacts = append(sc.Runs, runs...), append(sc.Artifacts, artifacts...)
			})
			b.code(1, "workflow_run", doneEvent, map[string]string{"baseline": "", "candidate": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `artifact explain-baseline of run 500`)
		}},
		{"a fork whose head moved on", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				forked(b.pair("base", "slow"))(sc)
				sc.Pulls[0].HeadSHA = strings.Repeat("e", 40)
			})
			said := b.code(0, "workflow_run", doneEvent, noFiles)
			b.want(said, `nothing is posted: `)
			if len(b.comments()) > 0 {
				b.Error("it commented on numbers of an old head")
			}
		}},
		{"a fork that writes what is no report", func(b *bench) {
			b.github(forked(map[string]string{"base/report.json": `{"schema": "explain.report/1", "metrics": "::error::x"}`, "head/report.json": "@octo/everyone"}))
			b.code(3, "workflow_run", doneEvent, noFiles)
			b.want(b.one(), `^### 🛑 \*\*ERROR\*\* nothing was judged$`)
		}},
		{"a comparison is not taken on workflow_run", func(b *bench) {
			b.file("comparison.json", []byte("{}"))
			b.code(2, "workflow_run", doneEvent, map[string]string{"command": "comment", "candidate": "comparison.json"})
		}},
		{"a planted baseline of a fork", func(b *bench) {
			b.github(func(sc *gatetest.Scenario) {
				b.measured("explain-baseline", "main")(sc)
				sc.Runs = append(sc.Runs, gatetest.Run{ID: 501, HeadSHA: gatetest.BaseSHA, HeadRepoID: 2})
				sc.Artifacts = append(sc.Artifacts, gatetest.Artifact{ID: 6, Name: "explain-baseline", RunID: 501, Files: map[string]string{"report.json": string(b.reports["slow"])}})
			})
			b.code(1, "pull_request", gatetest.PullEvent, map[string]string{"baseline": "", "baseline-artifact": "explain-baseline"})
			b.want(b.one(), `artifact explain-baseline of run 500`)
		}},
	}
}

// TestScenariosHaveNames that are unlike each other: threats.md refers to them.
func TestScenariosHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range append(steps(), scenarios()...) {
		if seen[s.name] {
			t.Errorf("two scenarios are called %q", s.name)
		}
		seen[s.name] = true
	}
	if n := len(seen); n < 45 {
		t.Errorf("%d scenarios", n)
	}
}
