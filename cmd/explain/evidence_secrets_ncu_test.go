package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze/tracetest"
)

// What a page of Nsight Compute holds besides numbers and kernel names never gets out: process names, host names, paths in what ncu prints,
// device names that are none, descriptions of rules, what the program itself printed.
func TestNCUSecretsStayInside(t *testing.T) {
	t.Parallel()
	raw := read(t, "../../testdata/evidence/ncu/raw.csv")
	details := read(t, "../../testdata/evidence/ncu/details.csv")
	dir := filepath.Join(t.TempDir(), "hunter2-folder")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for from, to := range map[string]string{
		`"python3.12","127.0.0.1"`: `"alice-hunter2","node17.hunter2.example.com"`, "NVIDIA H100 80GB HBM3": "hunter2 /home/alice/<b>",
		"(/usr/bin/python3.12)": "(/home/alice/hunter2/bin/python --api-key sk-hunter2)", "the server says something here": "Authorization: Bearer hunter2",
		"1 kernel was not profiled": "hunter2 was not profiled", `"(256, 1, 1)"`: `"hunter2"`, `"9.0"`: `"hunter2"`,
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("no %s in the page", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	long := strings.ReplaceAll(strings.ReplaceAll(string(details), "This kernel exhibits", "hunter2 exhibits"), "2022-Nov-03", "hunter2")
	long += strings.ReplaceAll(strings.ReplaceAll(strings.Split(string(details), "\n")[1], "DRAM Frequency", "hunter2 metric"), "Speed Of Light", "hunter2 section") + "\n"
	var args []string
	for name, content := range map[string]string{"raw.csv": text, "details.csv": long} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--ncu", path)
	}
	for name, content := range explainTrace(t, "../../testdata/serving.sqlite", args...) {
		for _, secret := range []string{"hunter2", "alice", filepath.Dir(dir)} {
			if at := strings.Index(content, secret); at >= 0 {
				t.Errorf("%s leaks %s: …%q", name, secret, content[max(0, at-80):min(len(content), at+20)])
			}
		}
	}
}

// Kernel names of ncu pages are hostile text in every format, as those of traces are.
func TestNCUNamesAreLiteral(t *testing.T) {
	t.Parallel()
	var page bytes.Buffer
	page.WriteString("\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"sm__throughput.avg.pct_of_peak_sustained_elapsed\",\"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed\",\"dram__bytes.sum\"\n\"\",\"\",\"us\",\"%\",\"%\",\"byte\"\n")
	n := 0
	for _, name := range tracetest.HostileNames() {
		if strings.ContainsAny(name, "\n\r") || strings.TrimSpace(name) == "" {
			continue
		}
		n++
		page.WriteString("\"" + string(rune('0'+n%10)) + "\",\"" + strings.ReplaceAll(name, `"`, `""`) + "\",\"1.5\",\"70\",\"20\",\"100\"\n")
	}
	path := filepath.Join(t.TempDir(), "ncu.csv")
	if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	files := explainTrace(t, path)
	if !strings.Contains(files["report.json"], `"id":"ncu.launches"`) || n < 10 {
		t.Fatalf("no launches of %d names", n)
	}
	for name, content := range files {
		switch {
		case strings.HasSuffix(name, ".csv"):
			checkFormulas(t, name, content)
		case strings.HasSuffix(name, ".md"):
			checkMarkdown(t, name, content)
		}
	}
}

// The list of targets is YAML that holds every name to the letter, each expression matches its name and no other one, and no line could be
// taken for a command to a runner or a shell.
func TestTargetsOfHostileNames(t *testing.T) {
	t.Parallel()
	text := targetsOf(t, "../../testdata/hostile.sqlite", "1000")
	var list struct {
		Kernels []struct{ Name, Regex, Description string }
	}
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Kernels) < 20 {
		t.Fatalf("%d kernels", len(list.Kernels))
	}
	for _, k := range list.Kernels {
		expression, err := regexp.Compile(k.Regex)
		if err != nil {
			t.Errorf("%q: %v", k.Name, err)
			continue
		}
		for _, other := range list.Kernels {
			if expression.MatchString(other.Name) != (other.Name == k.Name) {
				t.Errorf("%q and %q: wrong match", k.Regex, other.Name)
			}
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("a workflow command: %q", line)
		}
	}
}
