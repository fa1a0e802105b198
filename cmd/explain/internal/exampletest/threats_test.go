package exampletest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
)

// TestThreatsHaveTests: each row of gate/threats.md names a scenario or a test function that exists, and none is empty.
func TestThreatsHaveTests(t *testing.T) {
	known := map[string]bool{}
	for _, s := range append(steps(), scenarios()...) {
		known[s.name] = true
	}
	for _, dir := range []string{".", "../..", "../../../../gate", "../../../../gate/gitfile", "../../../../diff/diffdoc"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`).FindAllStringSubmatch(string(b), -1) {
				known[m[1]] = true
			}
		}
	}
	rows := 0
	for _, line := range strings.Split(string(explaintest.Read(t, "../../../../gate/threats.md")), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || cells[0] == "way" {
			continue
		}
		rows++
		if len(cells) != 3 || cells[0] == "" || cells[1] == "" {
			t.Errorf("%q is not a way, what happens and a test", line)
		} else if !known[cells[2]] {
			t.Errorf("there is no test %q", cells[2])
		}
	}
	if rows < 30 {
		t.Errorf("%d rows", rows)
	}
}
