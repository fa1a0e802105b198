//go:build linux

package exampletest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestRanksOnClusters runs what the examples for Kubernetes, Argo, GitHub and the Nsight Operator tell a scheduler to
// run, as a stand-in for each: every one makes the report that a single process makes, byte for byte.
func TestRanksOnClusters(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed here")
	}
	const n = 5
	captures := t.TempDir()
	manifest := fleet(t, captures, n)
	put(t, filepath.Join(captures, "manifest.txt"), []byte(manifest), 0o600)
	shell := func(dir, script string, env ...string) {
		t.Helper()
		c := explaintest.Process(t, dir, env)
		c.Path, c.Args = "/bin/bash", []string{"bash", "-euc", script}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, out)
		}
	}
	shell(captures, "explain merge rank*.sqlite --out alone --quiet")
	alone := explaintest.Read(t, filepath.Join(captures, "alone", "report.json"))
	same := func(t *testing.T, report string) {
		t.Helper()
		if !bytes.Equal(explaintest.Read(t, filepath.Join(report, "report.json")), alone) {
			t.Error("the report is not the one of a single process")
		}
	}
	example := func(name string) string {
		return string(explaintest.Read(t, filepath.Join("../../../../examples", name)))
	}
	// claim is the volume of a cluster, with the manifest as it is seen there.
	claim := func(t *testing.T) string {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "manifest.txt"), []byte(manifest), 0o600)
		return dir
	}

	t.Run("indexed job", func(t *testing.T) {
		dir := claim(t)
		text := strings.ReplaceAll(example("kubernetes/partials.yaml"), "/captures", dir)
		ran := map[string]bool{}
		for _, doc := range strings.Split(text, "\n---\n") {
			var job struct {
				Metadata struct{ Name string }
				Spec     struct {
					CompletionMode string `yaml:"completionMode"`
					Completions    int
					Suspend        bool
					Template       struct {
						Spec struct{ Containers []struct{ Command []string } }
					}
				}
			}
			if err := yaml.Unmarshal([]byte(doc), &job); err != nil {
				t.Fatal(err)
			}
			command := job.Spec.Template.Spec.Containers[0].Command
			if len(command) != 3 || command[0] != "/bin/sh" || command[1] != "-c" {
				t.Fatalf("%s runs %q", job.Metadata.Name, command)
			}
			ran[job.Metadata.Name] = true
			if job.Spec.CompletionMode != "Indexed" {
				if !job.Spec.Suspend {
					t.Errorf("%s does not wait for the partials", job.Metadata.Name)
				}
				shell(dir, command[2])
				continue
			}
			for i := range n { // as "sed" in its head says: as many as lines of the manifest
				shell(dir, command[2], "JOB_COMPLETION_INDEX="+strconv.Itoa(i))
			}
		}
		if !ran["explain-partials"] || !ran["explain-merge"] {
			t.Errorf("jobs %v", ran)
		}
		same(t, filepath.Join(dir, "report"))
	})

	t.Run("argo", func(t *testing.T) {
		dir := claim(t)
		var flow struct {
			Spec struct {
				Entrypoint string
				Templates  []struct {
					Name  string
					Steps [][]struct {
						Template     string
						WithSequence struct{ Start, End string } `yaml:"withSequence"`
					}
					Container struct{ Command []string }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(example("kubernetes/argo.yaml"), "/captures", dir)), &flow); err != nil {
			t.Fatal(err)
		}
		commands := map[string][]string{}
		for _, x := range flow.Spec.Templates {
			commands[x.Name] = x.Container.Command
		}
		for _, x := range flow.Spec.Templates {
			if x.Name != flow.Spec.Entrypoint {
				continue
			}
			for _, group := range x.Steps {
				for _, step := range group {
					first, last := 0, 0
					if end := step.WithSequence.End; end != "" {
						if end != "{{workflow.parameters.last}}" {
							t.Fatalf("the sequence ends at %s", end)
						}
						last = n - 1
					}
					for i := first; i <= last; i++ {
						line := "'" + strings.Join(commands[step.Template], "' '") + "'"
						shell(dir, strings.ReplaceAll(line, "{{inputs.parameters.index}}", strconv.Itoa(i)))
					}
				}
			}
		}
		same(t, filepath.Join(dir, "report"))
	})

	t.Run("github matrix", func(t *testing.T) {
		dir := claim(t)
		var flow struct {
			Jobs map[string]struct {
				Steps []struct {
					ID, Run, Uses string
				}
			}
		}
		if err := yaml.Unmarshal([]byte(example("github/partials.yml")), &flow); err != nil {
			t.Fatal(err)
		}
		script := func(job string) string {
			last := ""
			for _, s := range flow.Jobs[job].Steps {
				last = cmp.Or(s.Run, last)
			}
			return last
		}
		output := filepath.Join(dir, "output")
		shell(dir, script("list"), "MANIFEST="+manifest, "GITHUB_OUTPUT="+output)
		_, list, _ := strings.Cut(strings.TrimSpace(string(explaintest.Read(t, output))), "indexes=")
		var indexes []int
		if err := json.Unmarshal([]byte(list), &indexes); err != nil || len(indexes) != n {
			t.Fatalf("indexes %q: %v", list, err)
		}
		parts := filepath.Join(dir, "parts")
		if err := os.Mkdir(parts, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, i := range indexes { // each on a machine of its own; what it uploads is downloaded into one folder
			own := t.TempDir()
			shell(own, script("partial"), "MANIFEST="+manifest, "INDEX="+strconv.Itoa(i), "EXPLAIN=explain")
			found, err := filepath.Glob(filepath.Join(own, "parts", "*.partial"))
			if err != nil || len(found) != 1 {
				t.Fatalf("job %d uploads %v", i, found)
			}
			put(t, filepath.Join(parts, filepath.Base(found[0])), explaintest.Read(t, found[0]), 0o600)
		}
		shell(dir, script("merge"), "EXPLAIN=explain")
		same(t, filepath.Join(dir, "report"))
	})

	t.Run("nsight operator", func(t *testing.T) {
		dir := t.TempDir()
		for i := range n {
			own := filepath.Join(dir, "session", fmt.Sprintf("pod-%d", i))
			if err := os.MkdirAll(own, 0o700); err != nil {
				t.Fatal(err)
			}
			name := fmt.Sprintf("rank%d.sqlite", i)
			put(t, filepath.Join(own, name), explaintest.Read(t, filepath.Join(captures, name)), 0o600)
		}
		script, err := filepath.Abs("../../../../examples/kubernetes/nsight-operator.sh")
		if err != nil {
			t.Fatal(err)
		}
		shell(dir, "sh '"+script+"' session report")
		same(t, filepath.Join(dir, "report"))
	})
}

func put(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}
