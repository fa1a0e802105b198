package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write examples/docs anew")

// TestExamplesDocsAreCurrent: examples/docs holds every page, byte for byte, and a list of them.
func TestExamplesDocsAreCurrent(t *testing.T) {
	dir := filepath.Join(root, "examples", "docs")
	want := map[string]string{"README.md": contents()}
	for _, p := range Pages() {
		want[p.Name+".md"] = p.Text
	}
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	const remedy = "go test ./cmd/explain/internal/docs -update"
	for name, text := range want {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != text {
			t.Errorf("examples/docs/%s is not the page of today (%v): %s", name, err, remedy)
		}
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range there {
		if _, ok := want[f.Name()]; !ok {
			t.Errorf("examples/docs/%s is no page any more: %s", f.Name(), remedy)
		}
	}
}

// contents is the list of pages as markdown.
func contents() string {
	var b strings.Builder
	b.WriteString("# Documentation\n\nThe same pages as `explain doc` prints; made from them, not to be edited here.\n")
	group := ""
	for _, p := range Pages() {
		if p.Group != group {
			group = p.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
		}
		fmt.Fprintf(&b, "- [%s](%s.md): %s\n", p.Name, p.Name, p.Title)
	}
	return b.String()
}
