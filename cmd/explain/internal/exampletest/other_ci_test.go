package exampletest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// otherCI are the lines that the examples for other CI systems run, as a shell gets them.
func otherCI(t *testing.T) map[string]string {
	t.Helper()
	file := func(name string) []byte { return explaintest.Read(t, "../../../../examples/"+name) }
	var gitlab map[string]struct {
		Script []string `yaml:"script"`
	}
	var buildkite struct {
		Steps []struct {
			Commands []string `yaml:"commands"`
		} `yaml:"steps"`
	}
	if err := yaml.Unmarshal(file("gitlab/.gitlab-ci.yml"), &gitlab); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(file("buildkite/pipeline.yml"), &buildkite); err != nil {
		t.Fatal(err)
	}
	var jenkins []string
	for _, m := range regexp.MustCompile(`(?s)(?:sh |script: )(?:'''(.*?)'''|'([^'\n]*)')`).FindAllStringSubmatch(string(file("jenkins/Jenkinsfile")), -1) {
		if line := m[1] + m[2]; line != "rm -rf captures" { // post: always, after the exit code is known
			jenkins = append(jenkins, strings.ReplaceAll(line, `\\`, `\`))
		}
	}
	return map[string]string{
		"gitlab":    strings.Join(gitlab["explain"].Script, "\n"),
		"buildkite": strings.ReplaceAll(strings.Join(buildkite.Steps[0].Commands, "\n"), "$$", "$"),
		"jenkins":   strings.Join(jenkins, "\n"),
	}
}

// TestOtherCIs runs the lines of the examples for GitLab, Jenkins and Buildkite in a shell, without Go and with an nsys that behaves as
// nsys does, three times in one workspace: a slower head fails, a capture that fails is an error that judges nothing, and the slower
// head fails again. Each side is measured with a Python environment of its own: one for both would measure the same code twice.
func TestOtherCIs(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{root: root, tools: t.TempDir()}
	l.stubs(t)
	program := explaintest.Program(t)
	base, slow := explaintest.Read(t, "../../../../testdata/serving.sqlite"), explaintest.Edited(t)["slow.sqlite"]
	for name, script := range otherCI(t) {
		if name != "gitlab" && !longtest.On() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := &bench{T: t, lab: l, dir: t.TempDir()}
			b.repository("on: push", base, slow, map[string]string{"bench.py": "pass\n"})
			repo, bin := filepath.Join(b.dir, "repo"), filepath.Join(b.dir, "bin")
			built := filepath.Join(b.dir, "built")
			for name, text := range map[string]string{
				"python3": `mkdir -p .venv/bin
echo 'echo "built $PWD" >> "` + built + `"' > .venv/bin/pip
chmod +x .venv/bin/pip`,
				"nsys":            "[ \"$1\" != profile ] || echo \"measured $PWD ${*: -2}\" >> '" + built + "'\n[ \"$1\" != profile ] || [ -z \"${CI_FAILS:-}\" ] || exit 1\nexec '" + filepath.Join(l.tools, "bin/nsys") + "' \"$@\"",
				"explain":         "exec '" + program + "' \"$@\"",
				"buildkite-agent": "grep -q . -",
			} {
				explaintest.Put(t, filepath.Join(bin, name), []byte("#!/usr/bin/env bash\n"+text+"\n"), 0o755)
			}
			git := func(args ...string) string {
				out, err := exec.Command("git", append([]string{"-C", repo}, args...)...).Output()
				if err != nil {
					t.Fatal(err)
				}
				return strings.TrimSpace(string(out))
			}
			git("update-ref", "refs/remotes/origin/main", "HEAD^")
			for run, fails := range []string{"", "1", ""} {
				cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
				cmd.Dir = repo
				cmd.Env = append(os.Environ(), "PATH="+bin+":/usr/bin:/bin", "CI_FAILS="+fails, "CI_MERGE_REQUEST_DIFF_BASE_SHA="+git("rev-parse", "HEAD^"), "CI_PROJECT_DIR="+repo,
					"CHANGE_TARGET=main", "WORKSPACE="+repo, "WORKSPACE_TMP="+b.dir, "BUILDKITE_PULL_REQUEST_BASE_BRANCH=main", "BUILDKITE_BUILD_CHECKOUT_PATH="+repo,
					"E2E_PROGRAM="+os.Args[0], "E2E_COUNT="+filepath.Join(b.dir, "captured"))
				out, err := cmd.CombinedOutput()
				code := cmd.ProcessState.ExitCode()
				verdict, _ := os.ReadFile(filepath.Join(repo, "gate/comparison.json"))
				switch {
				case fails == "" && (code != 1 || !strings.Contains(string(verdict), `"verdict": "fail"`)):
					t.Fatalf("run %d: exit %d (%v), want 1: %s", run, code, err, out)
				case fails != "" && (code == 0 || strings.Contains(string(verdict), `"verdict": "pass"`) || strings.Contains(string(verdict), `"verdict": "warn"`)):
					t.Errorf("run %d: a capture that failed: exit %d: %s", run, code, out)
				}
			}
			head, base := repo, filepath.Join(repo, "base")
			const measured = " .venv/bin/python bench.py"
			want := []string{"built " + base, "built " + head, "measured " + base + measured, "measured " + head + measured}
			said, _ := os.ReadFile(built)
			if lines := strings.Split(string(said), "\n"); !slices.Equal(lines[:min(len(lines), len(want))], want) {
				t.Errorf("the sides were built and measured so:\n%s", said)
			}
		})
	}
}
