package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
)

func architecture(t *testing.T) string {
	t.Helper()
	page, ok := docs.ByName("architecture")
	if !ok {
		t.Fatal("there is no page on the architecture")
	}
	return page.Text
}

// TestTheDrawingIsTheHouse: each floor of the drawing is a package, and imports none of those above it.
func TestTheDrawingIsTheHouse(t *testing.T) {
	t.Parallel()
	_, drawing, _ := strings.Cut(architecture(t), "\n```\n")
	drawing, _, _ = strings.Cut(drawing, "\n```\n")
	imports := packageImports(t)
	var above []string
	for _, line := range strings.Split(drawing, "\n") {
		floor := strings.Fields(line)[0]
		list, ok := imports[module+floor]
		if !ok {
			t.Errorf("%s is no package", floor)
		}
		for _, up := range above {
			if slices.Contains(list, module+up) {
				t.Errorf("%s imports %s, which is drawn above it", floor, up)
			}
		}
		above = append(above, floor)
	}
	if len(above) < 20 {
		t.Errorf("%d floors", len(above))
	}
}

// TestTheWalksLeadThroughTheCode: each step of the walks names a function or type of the file beside it.
func TestTheWalksLeadThroughTheCode(t *testing.T) {
	_, text, _ := strings.Cut(architecture(t), "\n## Three walks\n")
	text, _, _ = strings.Cut(text, "\n## ")
	steps := regexp.MustCompile("`(\\w+)` in\\s+\\[([^]]+)\\]\\(([^)]+)\\)").FindAllStringSubmatch(text, -1)
	for _, s := range steps {
		name, file, link := s[1], s[2], s[3]
		if link != "../../"+file {
			t.Errorf("the link of %s leads to %s", file, link)
		}
		if declared := regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type |var )` + name + `\b`); !declared.Match(read(t, filepath.Join("../..", file))) {
			t.Errorf("%s does not declare %s", file, name)
		}
	}
	if len(steps) < 17 {
		t.Errorf("%d steps", len(steps))
	}
}

// TestAdding follows the page on adding a section, a metric, a column, a finding and a command in a copy of the
// repository: a block with the name of a file is that file, or a change of it.
func TestAdding(t *testing.T) {
	if !longtest.On() {
		t.Skip("builds a copy of the repository: only with -args -long")
	}
	dir := t.TempDir()
	for _, name := range trackedFiles(t) {
		if b, err := os.ReadFile(filepath.Join("../..", name)); err == nil {
			put(t, filepath.Join(dir, name), b, 0o644)
		}
	}
	inCopy := func(args ...string) string {
		t.Helper()
		c := exec.Command("go", args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	blocks := regexp.MustCompile("(?s)\n```(\\w+)\n// (\\S+)\n(.*?\n)```\n").FindAllStringSubmatch(architecture(t), -1)
	for _, b := range blocks {
		kind, path, text := b[1], filepath.Join(dir, b[2]), b[3]
		if kind != "diff" {
			put(t, path, []byte(text), 0o644)
			continue
		}
		was, is := "", ""
		for _, line := range strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") {
			switch sign, rest := line[0], line[1:]; sign {
			case '-':
				was += rest
			case '+':
				is += rest
			default:
				was, is = was+rest, is+rest
			}
		}
		whole := string(read(t, path))
		if was, is = strings.TrimSuffix(was, "\n"), strings.TrimSuffix(is, "\n"); strings.Count(whole, was) != 1 {
			t.Fatalf("%s does not have this once:\n%s", b[2], was)
		}
		put(t, path, []byte(strings.Replace(whole, was, is, 1)), 0o644)
	}
	if len(blocks) < 17 {
		t.Fatalf("%d blocks", len(blocks))
	}
	inCopy("vet", "./analyze/internal/section/gpu", "./cmd/explain/internal/guide")
	inCopy("test", "./analyze/internal/section/gpu", "-run", "TestLongest")
	inCopy("test", "./analyze", "-run", "Golden", "-update")
	inCopy("test", "./analyze", "-run", "Golden|Doc|Page|Section|Finding|Declar|Scale|Merge")
	inCopy("test", "./cmd/explain", "-run", "TestScripts/hello|TestSectionsAreWhole")
	var r struct {
		Metrics []struct {
			ID    string
			Value float64
		}
	}
	if err := json.Unmarshal([]byte(inCopy("run", "./cmd/explain", "testdata/tiny.sqlite", "--format", "json")), &r); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"kernel.longest_call", "kernel.longest_share"} {
		if n := slices.IndexFunc(r.Metrics, func(m struct {
			ID    string
			Value float64
		}) bool {
			return m.ID == id
		}); n < 0 || r.Metrics[n].Value <= 0 {
			t.Errorf("the report lacks %s", id)
		}
	}
}
