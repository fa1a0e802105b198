package examples

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// ruleBook is what the rules below look at in a workflow, or in action.yml.
type ruleBook struct {
	On          map[string]any `yaml:"on"`
	Permissions any            `yaml:"permissions"`
	Jobs        map[string]struct {
		If          string         `yaml:"if"`
		Permissions any            `yaml:"permissions"`
		Uses        string         `yaml:"uses"`
		Secrets     any            `yaml:"secrets"`
		Container   any            `yaml:"container"`
		Steps       []ruleBookStep `yaml:"steps"`
	} `yaml:"jobs"`
}

type ruleBookStep struct {
	If   string         `yaml:"if"`
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

var (
	pinnedUses = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	ownUses    = regexp.MustCompile(`^(\./|nsys-llm/explain(/\.github/workflows/gate\.yml)?@v1$)`)
)

// brokenRules names the well-known rules on workflows that a file breaks, as zizmor calls them.
func brokenRules(name, text string) ([]string, error) {
	var w ruleBook
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return nil, err
	}
	var list []string
	broken := func(rule string, where any) { list = append(list, fmt.Sprintf("%s: %v", rule, where)) }
	writes := func(permissions any) bool { return strings.Contains(fmt.Sprint(permissions), "write") }
	if w.Permissions == nil || writes(w.Permissions) {
		broken("excessive-permissions", w.Permissions)
	}
	if _, ok := w.On["pull_request_target"]; ok {
		broken("dangerous-triggers", "pull_request_target")
	}
	_, after := w.On["workflow_run"]
	for _, word := range []string{"GITHUB_ENV", "GITHUB_PATH"} {
		if strings.Contains(text, word) {
			broken("github-env", word)
		}
	}
	for _, word := range []string{"ACTIONS_ALLOW_UNSECURE_COMMANDS", "toJSON(secrets)", "secrets: inherit"} {
		if strings.Contains(text, word) {
			broken("overprovisioned-secrets", word)
		}
	}
	release := strings.Contains(fmt.Sprint(w.On["push"]), "tags") || w.On["release"] != nil
	for id, job := range w.Jobs {
		if after && job.Uses != "" {
			broken("dangerous-triggers", id+" calls a workflow after another run")
		}
		if fmt.Sprint(job.Permissions) == "write-all" {
			broken("excessive-permissions", id)
		}
		if job.Container != nil && job.Container != "${{ inputs.container }}" { // which the caller names
			broken("unpinned-images", job.Container)
		}
		uses, conditions := []string{job.Uses}, []string{job.If}
		for _, s := range job.Steps {
			uses, conditions = append(uses, s.Uses), append(conditions, s.If)
			action, _, _ := strings.Cut(s.Uses, "@")
			switch {
			case strings.Contains(s.Run, "${{"):
				broken("template-injection", s.Run)
			case action == "actions/checkout" && fmt.Sprint(s.With["persist-credentials"]) != "false":
				broken("artipacked", id)
			case action == "actions/checkout" && after:
				broken("dangerous-triggers", id+" checks out after another run")
			case release && (action == "actions/cache" || action == "actions/setup-go" && fmt.Sprint(s.With["cache"]) != "false"):
				broken("cache-poisoning", s.Uses)
			}
		}
		for _, u := range uses {
			if u != "" && !pinnedUses.MatchString(u) && !ownUses.MatchString(u) {
				broken("unpinned-uses", u)
			}
		}
		for _, c := range conditions {
			if strings.Contains(c, "github.actor") || strings.Contains(c, "contains(") {
				broken("bot-conditions", c)
			}
		}
	}
	for i, line := range strings.Split(text, "\n") { // a reader and a bot see which version a commit is
		if u := regexp.MustCompile(`uses: \S+@[0-9a-f]{40}(.*)$`).FindStringSubmatch(line); u != nil &&
			!regexp.MustCompile(`^ # v\d+\.\d+\.\d+$`).MatchString(u[1]) {
			broken("ref-version-mismatch", fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	slices.Sort(list)
	return list, nil
}

// TestWorkflowsKeepTheKnownRules: the project's workflows and those that people copy break none of the rules on workflows that
// can be checked offline. The rules are zizmor's, whose binary no registry here has.
func TestWorkflowsKeepTheKnownRules(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../../../.github/workflows/*.yml", "../../../../examples/github/*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 6 {
			t.Fatalf("%v, %v", found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		list, err := brokenRules(filepath.Base(file), string(explaintest.Read(t, file)))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, rule := range list {
			t.Errorf("%s: %s", file, rule)
		}
	}
	if bot := string(explaintest.Read(t, "../../../../.github/dependabot.yml")); !strings.Contains(bot, "cooldown:") ||
		strings.Contains(bot, "insecure-external-code-execution: allow") {
		t.Error("dependabot takes releases of the same day, or runs the code of others")
	}
}

// TestKnownRulesFindWhatIsWrong: a workflow that breaks every rule is told each.
func TestKnownRulesFindWhatIsWrong(t *testing.T) {
	list, err := brokenRules("bad.yml", `on: {pull_request_target: {}, workflow_run: {}, push: {tags: [v*]}}
permissions: write-all
jobs:
  a:
    if: github.actor == 'dependabot[bot]'
    container: golang
    permissions: write-all
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4
      - uses: actions/checkout@v4
        with: {persist-credentials: false}
      - uses: actions/setup-go@d35c59abb061a4a6fb18e82ac0862c26744d6ab5 # v5.5.0
      - run: echo "${{ github.event.pull_request.title }}" >> "$GITHUB_ENV"
  b:
    uses: other/repo/.github/workflows/x.yml@main
    secrets: inherit
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"excessive-permissions": 2, "dangerous-triggers": 3, "github-env": 1, "overprovisioned-secrets": 1, "unpinned-images": 1,
		"template-injection": 1, "artipacked": 1, "cache-poisoning": 1, "unpinned-uses": 2, "bot-conditions": 1, "ref-version-mismatch": 1}
	got := map[string]int{}
	for _, l := range list {
		rule, _, _ := strings.Cut(l, ":")
		got[rule]++
	}
	for rule, n := range want {
		if got[rule] != n {
			t.Errorf("%s: found %d times, want %d, in %q", rule, got[rule], n, list)
		}
	}
}
