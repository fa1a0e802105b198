package exampletest

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// auditsOffline are the audits of zizmor 1.30 that need no network, and why brokenRules leaves some of them out.
var auditsOffline = map[string]string{
	"adhoc-packages": "", "archived-uses": "", "artipacked": "", "bot-conditions": "", "cache-poisoning": "", "dangerous-triggers": "",
	"dependabot-cooldown": "", "dependabot-execution": "", "excessive-permissions": "", "github-env": "", "hardcoded-container-credentials": "",
	"insecure-commands": "", "insecure-url-scheme": "", "misfeature": "", "obfuscation": "", "overprovisioned-secrets": "", "secrets-inherit": "",
	"self-repository": "", "template-injection": "", "unpinned-images": "", "unpinned-uses": "", "unredacted-secrets": "",
	"unsound-condition": "", "unsound-contains": "", "unsound-ternary": "",

	"github-app":               "archived-uses knows every action",
	"superfluous-actions":      "archived-uses knows every action",
	"typosquat-uses":           "archived-uses knows every action",
	"unpinned-tools":           "archived-uses knows every action: setup-go alone installs a tool, by go.mod",
	"use-trusted-publishing":   "archived-uses knows every action, and no step publishes to a registry of packages",
	"anonymous-definition":     "pedantic",
	"concurrency-limits":       "pedantic",
	"forbidden-uses":           "finds nothing unless it is configured",
	"secrets-outside-env":      "for auditors",
	"self-hosted-runner":       "for auditors",
	"undocumented-permissions": "pedantic",
}

// ruleBook is what the rules below look at in a workflow, or in action.yml.
type ruleBook struct {
	On          map[string]any `yaml:"on"`
	Permissions any            `yaml:"permissions"`
	Runs        ruleBookJob    `yaml:"runs"` // of an action

	Jobs map[string]ruleBookJob `yaml:"jobs"`
}

type ruleBookJob struct {
	If          string         `yaml:"if"`
	Permissions any            `yaml:"permissions"`
	Uses        string         `yaml:"uses"`
	Container   any            `yaml:"container"`
	Services    any            `yaml:"services"`
	Steps       []ruleBookStep `yaml:"steps"`
}

type ruleBookStep struct {
	If    string         `yaml:"if"`
	Uses  string         `yaml:"uses"`
	Run   string         `yaml:"run"`
	Shell string         `yaml:"shell"`
	With  map[string]any `yaml:"with"`
}

var (
	pinnedUses = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	// Actions of others that somebody looked at: kept up by their owners, not replaced by what a runner has, called as meant.
	knownUses = regexp.MustCompile(`^(actions/(attest-build-provenance|cache|checkout|download-artifact|setup-go|upload-artifact)|github/codeql-action/[a-z-]+|ossf/scorecard-action|nsys-llm/explain(/\.github/workflows/gate\.yml)?)@`)
	// lineRules are what no line of a workflow may hold.
	lineRules = map[string]*regexp.Regexp{
		"github-env":                      regexp.MustCompile(`GITHUB_ENV|GITHUB_PATH`),
		"insecure-commands":               regexp.MustCompile(`ACTIONS_ALLOW_UNSECURE_COMMANDS`),
		"insecure-url-scheme":             regexp.MustCompile(`\bhttp://`),
		"overprovisioned-secrets":         regexp.MustCompile(`toJSON\(secrets\)`),
		"secrets-inherit":                 regexp.MustCompile(`secrets: inherit`),
		"unredacted-secrets":              regexp.MustCompile(`(?i)fromJSON\(\s*secrets\.`),
		"obfuscation":                     regexp.MustCompile(`uses: [^ ]*(//|/\.\.?/|/\./)|\$\{\{ *('[^']*'|true|false|\d+) *\}\}`),
		"unsound-ternary":                 regexp.MustCompile(`&& *(''|0|false|null) *\|\|`),
		"unsound-condition":               regexp.MustCompile(`^\s*(- )?if: [|>]`), // whose line break makes ${{ … }} a text, which is true
		"hardcoded-container-credentials": regexp.MustCompile(`^\s*password: [^$\s]`),
		"adhoc-packages":                  regexp.MustCompile(`\bgem install\b`),
		"self-repository":                 regexp.MustCompile(`uses: \./`),
	}
)

// zizmorConfig is what .github/zizmor.yml tells it to pass over.
type zizmorConfig struct {
	Rules map[string]struct {
		Disable bool     `yaml:"disable"`
		Ignore  []string `yaml:"ignore"`
		Config  struct {
			Policies map[string]string `yaml:"policies"`
		} `yaml:"config"`
	} `yaml:"rules"`
}

// brokenRules names the well-known rules on workflows that a file breaks, as zizmor calls them.
func brokenRules(name, text string, config zizmorConfig) ([]string, error) {
	var w ruleBook
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return nil, err
	}
	var list []string
	broken := func(rule string, where any) {
		if c := config.Rules[rule]; !c.Disable && !slices.Contains(c.Ignore, name) {
			list = append(list, fmt.Sprintf("%s: %v", rule, where))
		}
	}
	writes := func(permissions any) bool { return strings.Contains(fmt.Sprint(permissions), "write") }
	if w.Runs.Steps == nil && (w.Permissions == nil || writes(w.Permissions)) {
		broken("excessive-permissions", w.Permissions)
	}
	for _, event := range []string{"pull_request_target", "workflow_run"} {
		if _, ok := w.On[event]; ok {
			broken("dangerous-triggers", event)
		}
	}
	_, after := w.On["workflow_run"]
	release := strings.Contains(fmt.Sprint(w.On["push"]), "tags") || w.On["release"] != nil
	jobs := map[string]ruleBookJob{"runs": w.Runs}
	maps.Copy(jobs, w.Jobs)
	for id, job := range jobs {
		if after && job.Uses != "" {
			broken("code-after-another-run", id+" calls a workflow after another run")
		}
		if fmt.Sprint(job.Permissions) == "write-all" {
			broken("excessive-permissions", id)
		}
		if job.Services != nil || job.Container != nil && job.Container != "${{ inputs.container }}" { // which the caller names
			broken("unpinned-images", job.Container)
		}
		uses, conditions := []string{job.Uses}, []string{job.If}
		for _, s := range job.Steps {
			uses, conditions = append(uses, s.Uses), append(conditions, s.If)
			action, _, _ := strings.Cut(s.Uses, "@")
			switch {
			case strings.Contains(s.Run, "${{"):
				broken("template-injection", s.Run)
			case strings.HasPrefix(s.Shell, "cmd"):
				broken("misfeature", s.Shell)
			case action == "actions/checkout" && fmt.Sprint(s.With["persist-credentials"]) != "false":
				broken("artipacked", id)
			case action == "actions/checkout" && after:
				broken("code-after-another-run", id+" checks out after another run")
			case release && (action == "actions/cache" || action == "actions/setup-go" && fmt.Sprint(s.With["cache"]) != "false"):
				broken("cache-poisoning", s.Uses)
			}
		}
		for _, u := range uses {
			if u == "" || strings.HasPrefix(u, "./") {
				continue
			}
			if !knownUses.MatchString(u) {
				broken("archived-uses", u)
			}
			own, _, _ := strings.Cut(u, "/")
			if policy := config.Rules["unpinned-uses"].Config.Policies[own+"/*"]; !pinnedUses.MatchString(u) && policy != "ref-pin" {
				broken("unpinned-uses", u)
			}
		}
		for _, c := range conditions {
			if strings.Contains(c, "github.actor") {
				broken("bot-conditions", c)
			}
			if strings.Contains(c, "contains(") {
				broken("unsound-contains", c)
			}
		}
	}
	for i, line := range strings.Split(text, "\n") {
		for rule, found := range lineRules {
			if !strings.HasPrefix(strings.TrimSpace(line), "#") && found.MatchString(line) {
				broken(rule, fmt.Sprintf("%s:%d", name, i+1))
			}
		}
		// A reader and a bot see which version a commit is.
		if u := regexp.MustCompile(`uses: \S+@[0-9a-f]{40}(.*)$`).FindStringSubmatch(line); u != nil &&
			!regexp.MustCompile(`^ # v\d+\.\d+\.\d+$`).MatchString(u[1]) {
			broken("ref-version-mismatch", fmt.Sprintf("%s:%d", name, i+1))
		}
	}
	slices.Sort(list)
	return list, nil
}

// TestWorkflowsKeepTheKnownRules: the action, the project's workflows and those that people copy break none of the rules that
// can be checked offline, but what .github/zizmor.yml says. The rules are zizmor's, whose binary no registry here has.
func TestWorkflowsKeepTheKnownRules(t *testing.T) {
	var config zizmorConfig
	if err := yaml.Unmarshal(explaintest.Read(t, "../../../../.github/zizmor.yml"), &config); err != nil {
		t.Fatal(err)
	}
	for rule := range config.Rules {
		if _, ok := auditsOffline[rule]; !ok {
			t.Errorf("zizmor has no audit %s that works offline", rule)
		}
	}
	files := []string{"../../../../action.yml"}
	for _, pattern := range []string{"../../../../.github/workflows/*.yml", "../../../../examples/github/*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) < 6 {
			t.Fatalf("%v, %v", found, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		list, err := brokenRules(filepath.Base(file), string(explaintest.Read(t, file)), config)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, rule := range list {
			t.Errorf("%s: %s", file, rule)
		}
	}
	bot := string(explaintest.Read(t, "../../../../.github/dependabot.yml"))
	if n := strings.Count(bot, "package-ecosystem:"); n == 0 || strings.Count(bot, "cooldown: {default-days: 7}") != n {
		t.Error("dependabot-cooldown: releases of the same week are taken")
	}
	if strings.Contains(bot, "insecure-external-code-execution: allow") {
		t.Error("dependabot-execution: it runs the code of others")
	}
}

// TestKnownRulesFindWhatIsWrong: a workflow that breaks every rule is told each, and no offline audit is left out without a reason.
func TestKnownRulesFindWhatIsWrong(t *testing.T) {
	list, err := brokenRules("bad.yml", `on: {pull_request_target: {}, workflow_run: {}, push: {tags: [v*]}}
permissions: write-all
env: {ACTIONS_ALLOW_UNSECURE_COMMANDS: true, ALL: "${{ toJSON(secrets) }}", ONE: "${{ fromJSON(secrets.all).one }}", WORD: "${{ 'x' }}"}
jobs:
  a:
    if: github.actor == 'dependabot[bot]'
    container:
      image: golang
      credentials:
        username: me
        password: secret
    permissions: write-all
    steps:
      - uses: actions/checkout@11bd71901bbe5b1630ceea73d27597364c9af683 # v4
      - uses: actions/checkout@v4
        with: {persist-credentials: false}
      - uses: actions/setup-go@d35c59abb061a4a6fb18e82ac0862c26744d6ab5 # v5.5.0
      - run: echo "${{ github.event.pull_request.title }}" >> "$GITHUB_ENV"
      - if: |
          ${{ contains('main release', github.ref_name) }}
        shell: cmd
        run: gem install rake && curl http://example.com
        env: {TO: "${{ github.ref && '' || 'b' }}"}
      - uses: ./
  b:
    uses: other/repo/.github/workflows/x.yml@main
    secrets: inherit
`, zizmorConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"excessive-permissions": 2, "dangerous-triggers": 2, "code-after-another-run": 2, "unpinned-uses": 2, "ref-version-mismatch": 1}
	for rule, why := range auditsOffline {
		if why == "" && want[rule] == 0 && !strings.HasPrefix(rule, "dependabot-") { // of another file
			want[rule] = 1
		}
	}
	got := map[string]int{}
	for _, l := range list {
		rule, _, _ := strings.Cut(l, ":")
		got[rule]++
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v, in %q", got, want, list)
	}
}
