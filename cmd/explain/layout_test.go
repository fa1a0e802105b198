package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/nsys-llm/explain/"

// TestTopLevelIsClosed holds the root of the repository to the list of design.md.
func TestTopLevelIsClosed(t *testing.T) {
	allowed := []string{"go.mod", "go.sum", "cmd", "analyze", "diff", "gate", "action.yml", "testdata", "examples", "README.md", "LICENSE", "CHANGELOG.md"}
	for _, name := range trackedFiles(t) {
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains(allowed, top) && !strings.HasPrefix(top, ".") {
			t.Errorf("%s does not belong at the top level", name)
		}
	}
}

// trackedFiles are the files of the repository: what somebody wrote beside them, a report say, is none of it.
func trackedFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Skip("not a git checkout")
	}
	return strings.Fields(string(out))
}

// TestImportsGoOneWay holds the rooms to the order in which design.md lists them.
func TestImportsGoOneWay(t *testing.T) {
	imports := packageImports(t)
	// What sections stand on: all of analyze but the sections themselves and package analyze.
	beneath := []string{"analyze/report", "analyze/loadfile", "analyze/internal/attrib", "analyze/internal/evidence", "analyze/internal/interval",
		"analyze/internal/kernelname", "analyze/internal/parallel", "analyze/internal/spill", "analyze/internal/stat", "analyze/internal/trace", "analyze/internal/workunit"}
	kit := []string{"analyze/internal/section/kit"}
	noSQL := []string{"modernc.org", "database/sql"}
	for _, rule := range []struct {
		room, why string
		allowed   []string // module packages, by prefix; nothing else of this module
		banned    []string // packages outside, by prefix
	}{
		{"analyze/report", "the model: standard library only", nil, []string{"."}},
		{"analyze/report/unit", "units know the model only", []string{"analyze/report"}, nil},
		{"analyze/report/doc", "the document tree stands alone", nil, nil},
		{"analyze/report/schema", "schemas are files", nil, nil},
		{"analyze/report/order", "sorting stands alone", nil, []string{"."}},
		{"analyze/report/present", "report to document", []string{"analyze/report"}, []string{"modernc.org"}},
		{"analyze/report/render", "document to text", []string{"analyze/report"}, []string{"modernc.org"}},
		{"analyze/internal/interval", "algebra stands alone", nil, nil},
		{"analyze/internal/kernelname", "names stand alone", nil, nil},
		{"analyze/internal/stat", "statistics", []string{"analyze/report"}, nil},
		{"analyze/internal/spill", "memory stands alone", nil, nil},
		{"analyze/internal/parallel", "side by side stands alone", nil, nil},
		{"analyze/internal/trace", "the only reader", []string{"analyze/internal/kernelname", "analyze/internal/spill"}, nil},
		{"analyze/internal/trace/pages", "the file format stands alone", nil, []string{"modernc.org", "database/sql"}},
		{"analyze/internal/attrib", "attribution", []string{"analyze/internal/trace", "analyze/internal/interval", "analyze/internal/parallel", "analyze/internal/spill"}, []string{"modernc.org", "database/sql"}},
		{"analyze/internal/workunit", "units of work", []string{"analyze/internal/trace", "analyze/internal/attrib", "analyze/internal/interval", "analyze/internal/kernelname", "analyze/internal/stat", "analyze/internal/parallel", "analyze/internal/spill"}, []string{"modernc.org", "database/sql"}},
		{"analyze/internal/section/kit", "what sections are made of", beneath, noSQL},
		{"analyze/internal/section/gpu", "a family knows the kit and no other", append(kit, beneath...), noSQL},
		{"analyze/internal/section/host", "a family knows the kit and no other", append(kit, beneath...), noSQL},
		{"analyze/internal/section/ncu", "a family knows the kit and no other", append(kit, beneath...), noSQL},
		{"analyze/internal/section/engine", "a family knows the kit and no other", append(kit, beneath...), noSQL},
		{"analyze/compat", "other tools' formats: known to analyze and the command alone", append(kit, beneath...), noSQL},
		{"analyze/loadfile", "the format of load.json", []string{"analyze/report", "analyze/internal/stat"}, []string{"."}},
		{"cmd/explain/internal/standin", "a test kit needs nothing of the product", nil, []string{"."}},
		{"cmd/explain/internal/load", "a client of a server; what it measured is analyzed elsewhere", []string{"analyze/loadfile", "analyze/report"}, []string{"modernc.org"}},
		{"analyze/tracetest", "a test kit needs nothing of the product", nil, nil},
		{"diff", "reports in, comparison out", []string{"analyze/report"}, []string{"modernc.org", "database/sql"}},
		{"gate", "verdict in, GitHub out", []string{"diff"}, []string{"modernc.org", "database/sql"}},
	} {
		for pkg, list := range imports {
			if pkg != module+rule.room && !strings.HasPrefix(pkg, module+rule.room+"/") {
				continue
			}
			if rule.room == "analyze/report" && pkg != module+rule.room {
				continue
			}
			for _, dep := range list {
				if rest, ok := strings.CutPrefix(dep, module); ok {
					if dep != pkg && !slices.ContainsFunc(append(rule.allowed, rule.room), func(a string) bool { return rest == a || strings.HasPrefix(rest, a+"/") }) {
						t.Errorf("%s imports %s (%s)", pkg, dep, rule.why)
					}
					continue
				}
				for _, b := range rule.banned {
					if strings.HasPrefix(dep, b) || b == "." && strings.Contains(strings.Split(dep, "/")[0], ".") {
						t.Errorf("%s imports %s (%s)", pkg, dep, rule.why)
					}
				}
			}
		}
	}
	for pkg, list := range imports {
		for _, dep := range list {
			if rest, ok := strings.CutPrefix(dep, module+"analyze/compat"); ok && (rest == "" || rest[0] == '/') &&
				!strings.HasPrefix(pkg, module+"analyze/compat") && pkg != module+"analyze" && !strings.HasPrefix(pkg, module+"cmd/") {
				t.Errorf("%s imports %s: other tools' formats are for package analyze and the command alone", pkg, dep)
			}
		}
		if strings.HasPrefix(pkg, module+"analyze/report") && slices.ContainsFunc(list, func(d string) bool { return strings.HasPrefix(d, module+"analyze/internal") }) {
			t.Errorf("%s imports the analyzer's inside: the report must stand without it", pkg)
		}
	}
}

// packageImports is, for each package of the module, what it imports directly, tests left out.
func packageImports(t *testing.T) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	imports := map[string][]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		imports[p.ImportPath] = p.Imports
	}
	if len(imports) < 10 {
		t.Fatalf("go list found %d packages", len(imports))
	}
	return imports
}

// TestSectionsAreWhole: a section is one file with its test, its page and its golden folder, all named after its id.
func TestSectionsAreWhole(t *testing.T) {
	found := 0
	files, err := filepath.Glob(filepath.FromSlash("../../analyze/internal/section/*/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	others, err := filepath.Glob(filepath.FromSlash("../../analyze/compat/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, others...) {
		dir := filepath.Dir(f)
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`= kit\.Section\{\s*ID:\s*"([a-z_]+)"`).FindSubmatch(b)
		if m == nil {
			continue
		}
		found++
		id := string(m[1])
		if name := strings.TrimSuffix(filepath.Base(f), ".go"); name != id {
			t.Errorf("section %s lives in %s.go", id, name)
		}
		for _, part := range []string{id + "_test.go", id + ".md", filepath.Join("testdata", id)} {
			if info, err := os.Stat(filepath.Join(dir, part)); err != nil {
				t.Errorf("section %s has no %s", id, part)
			} else if !info.IsDir() && info.Size() < 200 {
				t.Errorf("section %s: %s is a stub", id, part)
			}
		}
	}
	if found < 44 {
		t.Errorf("found %d sections", found)
	}
}

// TestNoMachineInTheTree: committed text holds no path of a developer's machine.
func TestNoMachineInTheTree(t *testing.T) {
	private := regexp.MustCompile(`(^|[^A-Za-z0-9_.-])/(work|root)/`)
	for _, name := range trackedFiles(t) {
		if strings.HasSuffix(name, ".sqlite") || name == "cmd/explain/layout_test.go" {
			continue
		}
		b, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // deleted in the working tree
		}
		if m := private.Find(b); m != nil {
			t.Errorf("%s holds a path of a machine: %q", name, m)
		}
	}
}
