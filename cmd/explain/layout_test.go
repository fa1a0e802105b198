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

	"github.com/goccy/go-yaml"
)

const module = "github.com/nsys-llm/explain/"

// TestTopLevelIsClosed holds the root of the repository to a fixed list: what lies there is what a reader meets first.
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

// room is a package and what it may import of this module. Nothing else of the module may be in its imports, those of its
// siblings included; a room that does not exist yet is held to its line as soon as it does.
type room struct {
	path, why string
	imports   string   // rooms, by path, separated by spaces; PATH/... is the room and all below it
	banned    []string // packages outside the module, by prefix; "." is all but the standard library
}

var (
	noSQL   = []string{"modernc.org", "database/sql"}
	stdOnly = []string{"."}
)

// rooms are the packages in the order in which imports may go: each knows only those above it that its line names.
var rooms = []room{
	{"analyze/report", "the model: standard library only", "", stdOnly},
	{"analyze/report/pattern", "regular expressions stand alone", "", stdOnly},
	{"analyze/report/secret", "what a secret looks like", "analyze/report/pattern", stdOnly},
	{"analyze/report/align", "alignment stands alone", "", stdOnly},
	{"analyze/report/doc", "the document tree stands alone", "", noSQL},
	{"analyze/report/stacks", "trees of a step stand alone", "", stdOnly},
	{"analyze/report/schema", "schemas are files", "", noSQL},
	{"analyze/report/unit", "units know the model only", "analyze/report", noSQL},
	{"analyze/report/wording", "counts and names in sentences", "analyze/report/unit", noSQL},
	{"analyze/report/order", "medians stand alone", "", stdOnly},
	{lists, "loops over lists stand alone", "", stdOnly},
	{"analyze/report/render", "document to text", "analyze/report analyze/report/doc analyze/report/unit analyze/report/wording", noSQL},
	{"analyze/report/present", "report to document",
		"analyze/report analyze/report/doc analyze/report/order analyze/report/stacks analyze/report/unit analyze/report/wording analyze/report/render", noSQL},

	{"analyze/tracetest", "a test kit needs nothing of the product", "", nil},
	{"analyze/tracetest/longtest", "how much the tests take stands alone", "", stdOnly},
	{"analyze/limit", "what an input may cost", "analyze/report analyze/report/unit", stdOnly},
	{"analyze/loadfile", "the format of load.json",
		"analyze/report/... analyze/internal/evidence/file analyze/internal/stat", stdOnly},
	{"analyze/internal/interval", "algebra stands alone", "", noSQL},
	{"analyze/internal/kernelname", "names stand alone", "analyze/report/wording", noSQL},
	{"analyze/internal/spill", "memory stands alone", "", noSQL},
	{"analyze/internal/parallel", "side by side stands alone", "", noSQL},
	{"analyze/internal/stat", "statistics", "analyze/report", noSQL},
	{"analyze/internal/trace/pages", "the file format stands alone", "analyze/internal/parallel", noSQL},
	{"analyze/internal/trace/source", "rows of a file, whatever they mean",
		"analyze/limit analyze/internal/trace/pages analyze/report/wording", nil},
	{"analyze/internal/trace/payload", "what libraries write into single events, without tables", "", noSQL},
	{"analyze/internal/trace/span", "times of events, whatever they are of", "analyze/internal/spill", noSQL},
	{"analyze/internal/trace/kineto", "the PyTorch profiler's JSON as the tables of an export",
		"analyze/internal/spill analyze/internal/trace/pages analyze/internal/trace/payload analyze/internal/trace/source", noSQL},
	{"analyze/internal/trace", "the only reader", "analyze/report/secret analyze/report/pattern analyze/internal/kernelname analyze/internal/parallel analyze/internal/spill " +
		"analyze/internal/trace/kineto analyze/internal/trace/pages analyze/internal/trace/payload analyze/internal/trace/source analyze/internal/trace/span", nil},
	{"analyze/internal/timeline", "attribution",
		"analyze/internal/trace analyze/internal/trace/span analyze/internal/interval analyze/internal/parallel analyze/internal/spill", noSQL},
	{"analyze/internal/workunit", "units of work",
		"analyze/internal/trace analyze/internal/timeline analyze/internal/interval analyze/internal/kernelname analyze/report/order " +
			"analyze/report/wording analyze/internal/stat analyze/internal/parallel analyze/internal/spill", noSQL},
	{"analyze/internal/stepgraph", "what waits for what",
		"analyze/internal/trace analyze/internal/timeline analyze/internal/interval analyze/internal/stat " +
			"analyze/internal/parallel analyze/internal/spill analyze/internal/workunit", noSQL},
	{"analyze/internal/whatif", "ceilings know no section",
		"analyze/internal/trace analyze/internal/timeline analyze/internal/interval analyze/internal/kernelname " +
			"analyze/internal/parallel analyze/internal/stat analyze/internal/stepgraph analyze/internal/workunit analyze/report/wording", noSQL},
	{"analyze/internal/section/kit", "what a section is made of knows no section", beneath, noSQL},
	{"analyze/internal/section/gpu", "a family knows the kit and no other family", family, noSQL},
	{"analyze/internal/section/steps", "a family knows the kit and no other family",
		family + " analyze/report/stacks", noSQL},
	{"analyze/internal/section/host", "a family knows the kit and no other family", family, noSQL},
	{"analyze/internal/section/cpu", "a family knows the kit and no other family", family, noSQL},
	{"analyze/internal/section/engine", "a family knows the kit and no other family", family, noSQL},
	{"analyze/internal/section/kernelcounters", "a family knows the kit and no other family", family, noSQL},
	{"analyze/compat/perfopt", "reads llm-perf-opt's files", "analyze/internal/evidence/file analyze/report analyze/report/pattern", noSQL},
	{"analyze/compat/session", "reads profilemate's files",
		"analyze/internal/evidence/file analyze/internal/stat analyze/report", noSQL},
	{"analyze/compat", "sections on other tools' files", family + " analyze/compat/...", noSQL},
	{"analyze/compat/export", "writes other tools' files",
		"analyze/report analyze/report/doc analyze/report/unit analyze/report/wording analyze/report/present", noSQL},

	{"analyze/merge/ranks", "who waits for whom stands alone", "analyze/report/order", stdOnly},
	{"analyze/merge", "partials know reports, and no trace", "analyze/report analyze/report/unit analyze/report/wording analyze/internal/stat analyze/merge/ranks", noSQL},

	{"diff/comparison", "the result as plain data", "analyze/report analyze/report/unit", noSQL},
	{"diff/policy", "rules know no report that is judged", "analyze/report analyze/report/unit analyze/report/wording diff/comparison", noSQL},
	{"diff/student", "the test that comparisons and histories share stands alone", "", stdOnly},
	{"diff/internal/significance", "statistics know the words of comparisons alone", "analyze/report/order diff/comparison diff/student", stdOnly},
	{"diff/sequential", "a test of pairs stands alone", "", stdOnly},
	{"diff/internal/side", "one side knows nothing of the other",
		"analyze/report analyze/report/align diff/comparison diff/internal/significance", noSQL},
	{"diff/internal/pairing", "what two sides have in common",
		"analyze/report analyze/report/align analyze/report/unit analyze/report/wording diff/comparison diff/policy diff/internal/side", noSQL},
	{"diff/internal/noise", "whether a change is real",
		"analyze/report analyze/report/unit analyze/report/wording diff/comparison diff/policy diff/student diff/internal/significance diff/internal/side " +
			"diff/internal/pairing", noSQL},
	{"diff/internal/breakdown", "where a change comes from",
		"analyze/report analyze/report/stacks analyze/report/unit analyze/report/wording diff/comparison diff/internal/significance diff/internal/side " +
			"diff/internal/pairing", noSQL},
	{"diff/internal/rules", "gates and waivers",
		"analyze/report analyze/report/unit analyze/report/wording diff/comparison diff/policy diff/internal/significance diff/internal/side " +
			"diff/internal/noise", noSQL},
	{"diff/internal/difftest", "a test kit", "analyze/report analyze/report/unit diff/...", noSQL},
	{"diff/diffdoc", "a comparison as text: selects and lays out",
		"analyze/report analyze/report/doc analyze/report/stacks analyze/report/unit analyze/report/wording analyze/report/render diff/comparison " +
			"diff/internal/noise analyze/report/pattern", noSQL},
	{"diff", "reports in, comparison out",
		"analyze/report analyze/report/unit analyze/report/wording diff/comparison diff/policy diff/internal/...", noSQL},
	{"gate/gitfile", "reads git's files", "analyze/limit", noSQL},
	{"gate", "verdict in, GitHub out", "diff/comparison analyze/limit analyze/report/pattern gate/gitfile", noSQL},
	{"gate/history", "past runs, and what follows from them; the one room of gate that links a database",
		"analyze/report analyze/report/doc analyze/report/unit analyze/report/wording analyze/report/render diff diff/comparison diff/policy analyze/report/order " +
			"analyze/report/pattern gate/history/...", nil},
	{"gate/history/change", "where a series changes knows numbers alone", "analyze/report/order diff/student", stdOnly},
	{"gate/history/historytest", "a test kit", "analyze analyze/report analyze/tracetest", nil},
	{"gate/gatetest", "a test kit needs nothing of the product", "", stdOnly},

	{"cmd/explain/internal/fakeserver", "a test kit needs nothing of the product", "", stdOnly},
	{"cmd/explain/internal/explaintest", "a test kit: runs the program, and knows none of its rooms",
		"analyze analyze/report analyze/report/schema analyze/tracetest analyze/tracetest/longtest cmd/explain/internal/capture/capturetest cmd/explain/internal/fakeserver", nil},
	{"cmd/explain/internal/browser", "tests alone", "", nil},
	{"cmd/explain/internal/exampletest", "tests alone", "", nil},
	{"cmd/explain/internal/bisect", "a search stands alone", "analyze/report/order", stdOnly},
	{"cmd/explain/internal/help", "lays out help; knows no command", "analyze/report/pattern analyze/report/wording cmd/explain/internal/usage", noSQL},
	{"cmd/explain/internal/mcp", "answers agents; reads by what it is given",
		"analyze/report analyze/report/render cmd/explain/internal/atomicfile cmd/explain/internal/crash " +
			"cmd/explain/internal/docs diff/comparison diff/diffdoc", nil},
	{"examples", "files to copy", "", stdOnly},
	{"cmd/explain/internal/docs", "pages and their index",
		"analyze analyze/report analyze/report/wording diff diff/policy examples gate/history/change", nil},
	{"cmd/explain/internal/atomicfile", "writes files", "cmd/explain/internal/usage", noSQL},
	{"cmd/explain/internal/fetch", "standard input and addresses as files", "analyze/limit", stdOnly},
	{"cmd/explain/internal/crash", "a panic as an error stands alone", "", stdOnly},
	{"cmd/explain/internal/usage", "an error stands alone", "", stdOnly},
	{"cmd/explain/internal/output", "what is written; reads no input",
		"analyze analyze/compat/export analyze/report/... diff/comparison diff/diffdoc cmd/explain/internal/input " +
			"cmd/explain/internal/usage cmd/explain/internal/atomicfile", noSQL},
	{"cmd/explain/internal/capture", "runs other programs",
		"analyze/limit analyze/report analyze/report/pattern analyze/report/render analyze/report/secret analyze/report/wording cmd/explain/internal/usage", noSQL},
	{"cmd/explain/internal/progress", "what takes long, on a terminal",
		"analyze/report analyze/report/render analyze/report/unit cmd/explain/internal/load", noSQL},
	{"cmd/explain/internal/interrupt", "signals stand alone", "", stdOnly},
	{"cmd/explain/internal/input", "what files are; analyses none",
		"analyze analyze/limit analyze/report cmd/explain/internal/fetch cmd/explain/internal/usage", noSQL},
	{"cmd/explain/internal/cmdenv", "what commands share; knows no command",
		"analyze analyze/report analyze/report/render analyze/report/unit cmd/explain/internal/capture " +
			"cmd/explain/internal/input cmd/explain/internal/progress cmd/explain/internal/usage diff/comparison diff/policy", nil},
	{"cmd/explain/internal/historycmd", "explain history",
		"analyze/report analyze/report/doc analyze/report/render analyze/report/unit analyze/report/wording cmd/explain/internal/cmdenv " +
			"cmd/explain/internal/input cmd/explain/internal/output cmd/explain/internal/usage cmd/explain/internal/atomicfile " +
			"diff diff/policy gate/gitfile gate/history", nil},
	{"cmd/explain/internal/bisectcmd", "captures until something is known",
		"analyze/limit analyze/report analyze/report/render analyze/report/unit analyze/report/wording cmd/explain/internal/bisect cmd/explain/internal/capture " +
			"cmd/explain/internal/cmdenv cmd/explain/internal/input cmd/explain/internal/usage " +
			"cmd/explain/internal/atomicfile diff diff/comparison diff/sequential gate/gitfile gate/history", nil},
	{"cmd/explain/internal/mergecmd", "explain partial and merge",
		"analyze analyze/merge analyze/report analyze/report/render cmd/explain/internal/cmdenv " +
			"cmd/explain/internal/fetch cmd/explain/internal/input cmd/explain/internal/output cmd/explain/internal/progress " +
			"cmd/explain/internal/usage cmd/explain/internal/atomicfile", nil},
	{"cmd/explain/internal/whatifcmd", "explain whatif",
		"analyze analyze/report/doc analyze/report/present analyze/report/render analyze/report/unit analyze/report/wording " +
			"cmd/explain/internal/cmdenv cmd/explain/internal/input cmd/explain/internal/output " +
			"cmd/explain/internal/progress cmd/explain/internal/usage", nil},
	{"cmd/explain/internal/rulesfile", "by what comparisons are judged",
		"analyze analyze/report cmd/explain/internal/cmdenv cmd/explain/internal/historycmd cmd/explain/internal/input " +
			"cmd/explain/internal/usage diff diff/policy", nil},
	{"cmd/explain/internal/look", "commands that look at captures",
		commandRoom + " analyze/compat/export cmd/explain/internal/capture cmd/explain/internal/fetch " +
			"cmd/explain/internal/help cmd/explain/internal/mergecmd cmd/explain/internal/rulesfile cmd/explain/internal/whatifcmd " +
			"diff/diffdoc diff/policy", nil},
	{"cmd/explain/internal/ci", "commands of CI know none of those that look or record",
		commandRoom + " analyze/report/doc analyze/report/wording cmd/explain/internal/bisectcmd cmd/explain/internal/capture cmd/explain/internal/crash " +
			"cmd/explain/internal/historycmd cmd/explain/internal/rulesfile diff/diffdoc diff/policy gate gate/gitfile", nil},
	{"cmd/explain/internal/capturesession", "captures, their load and their reports; a pair is compared as by diff; no flags",
		"analyze analyze/loadfile analyze/report/... cmd/explain/internal/bisectcmd cmd/explain/internal/capture " +
			"cmd/explain/internal/cmdenv cmd/explain/internal/interrupt cmd/explain/internal/load cmd/explain/internal/look " +
			"cmd/explain/internal/output cmd/explain/internal/progress cmd/explain/internal/rulesfile " +
			"cmd/explain/internal/usage cmd/explain/internal/atomicfile " +
			"diff/comparison diff/diffdoc", []string{"modernc.org", "github.com/spf13/cobra"}},
	{"cmd/explain/internal/record", "commands that record",
		commandRoom + " analyze/report/doc analyze/report/secret analyze/report/wording " +
			"cmd/explain/internal/bisectcmd cmd/explain/internal/capture " +
			"cmd/explain/internal/capturesession cmd/explain/internal/help " +
			"cmd/explain/internal/interrupt cmd/explain/internal/load", nil},
	{"cmd/explain/internal/guide", "commands that help know none of the others",
		commandRoom + " analyze/report/schema cmd/explain/internal/docs cmd/explain/internal/help cmd/explain/internal/mcp " +
			"cmd/explain/internal/mergecmd gate/history", nil},
	{"cmd/explain", "the tree of commands, the version and exit codes",
		"analyze analyze/limit analyze/report analyze/report/render cmd/explain/internal/capture cmd/explain/internal/ci " +
			"cmd/explain/internal/cmdenv cmd/explain/internal/crash cmd/explain/internal/guide cmd/explain/internal/help " +
			"cmd/explain/internal/input cmd/explain/internal/interrupt cmd/explain/internal/look cmd/explain/internal/record " +
			"cmd/explain/internal/usage", nil},
	{"cmd/explain/internal/load", "a client of a server; what it measured is analyzed elsewhere",
		"analyze/loadfile analyze/report/... cmd/explain/internal/usage", []string{"modernc.org"}},
}

const (
	// lists is what every room may import.
	lists = "analyze/report/lists"
	// beneath is all that sections stand on.
	beneath = "analyze/report analyze/report/align analyze/report/secret analyze/report/stacks analyze/report/unit analyze/report/wording analyze/loadfile analyze/internal/timeline analyze/internal/evidence/... " +
		"analyze/internal/interval analyze/internal/kernelname analyze/internal/parallel analyze/internal/spill " +
		"analyze/internal/stat analyze/internal/stepgraph analyze/internal/trace analyze/internal/whatif " +
		"analyze/internal/workunit"
	// family is what every family of sections may import.
	family = beneath + " analyze/internal/section/kit"
	// commandRoom is what every family of commands may import.
	commandRoom = "analyze analyze/report analyze/report/render analyze/report/unit cmd/explain/internal/atomicfile cmd/explain/internal/cmdenv " +
		"cmd/explain/internal/input cmd/explain/internal/output cmd/explain/internal/progress cmd/explain/internal/usage diff diff/comparison"
)

// may reports whether the room's line names a package of the module. Lists are for all, like the standard library's.
func (r room) may(dep string) bool {
	return dep == lists || slices.ContainsFunc(strings.Fields(r.imports), func(a string) bool {
		below, all := strings.CutSuffix(a, "/...")
		return dep == a || all && (dep == below || strings.HasPrefix(dep, below+"/"))
	})
}

// TestImportsGoOneWay holds every room to its line.
func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	imports := packageImports(t)
	for _, r := range rooms {
		for _, dep := range imports[module+r.path] {
			if rest, ok := strings.CutPrefix(dep, module); ok {
				if !r.may(rest) {
					t.Errorf("%s imports %s (%s)", r.path, rest, r.why)
				}
				continue
			}
			for _, b := range r.banned {
				if strings.HasPrefix(dep, b) || b == "." && strings.Contains(strings.Split(dep, "/")[0], ".") {
					t.Errorf("%s imports %s (%s)", r.path, dep, r.why)
				}
			}
		}
	}
}

// TestWhoKnowsOtherTools: their formats are for package analyze and the command alone, and reports stand without the
// analyzer.
func TestWhoKnowsOtherTools(t *testing.T) {
	for pkg, list := range packageImports(t) {
		from := strings.TrimPrefix(pkg, module)
		for _, dep := range list {
			to := strings.TrimPrefix(dep, module)
			if strings.HasPrefix(to+"/", "analyze/compat/") && !strings.HasPrefix(from+"/", "analyze/compat/") &&
				from != "analyze" && !strings.HasPrefix(from, "cmd/") {
				t.Errorf("%s imports %s", from, to)
			}
			if strings.HasPrefix(from, "analyze/report") && strings.HasPrefix(to, "analyze/internal") {
				t.Errorf("%s imports %s", from, to)
			}
		}
	}
}

// TestEveryRoomOfDiffHasALine: a package that is added below diff or gate is held to something.
func TestEveryRoomOfDiffHasALine(t *testing.T) {
	for pkg := range packageImports(t) {
		path := strings.TrimPrefix(pkg, module)
		if top, _, _ := strings.Cut(path, "/"); (top == "diff" || top == "gate") && !slices.ContainsFunc(rooms, func(r room) bool { return r.path == path }) {
			t.Errorf("%s is in no line of rooms", path)
		}
	}
}

// TestPackageNamesAreUnique: a name says which package is meant, without its path.
func TestPackageNamesAreUnique(t *testing.T) {
	paths := map[string]string{}
	for pkg := range packageImports(t) {
		name := pkg[strings.LastIndex(pkg, "/")+1:]
		if other, ok := paths[name]; ok && pkg != strings.TrimSuffix(module, "/")+"/cmd/explain" {
			t.Errorf("%s and %s have one name", other, pkg)
		}
		paths[name] = pkg
	}
}

// TestEveryRoomOfTheCommandIsTested: each package behind the command has a test beside it, test kits aside.
func TestEveryRoomOfTheCommandIsTested(t *testing.T) {
	dirs, err := filepath.Glob("internal/*")
	if err != nil || len(dirs) < 20 {
		t.Fatalf("%d folders, %v", len(dirs), err)
	}
	for _, dir := range dirs {
		if tests, err := filepath.Glob(filepath.Join(dir, "*_test.go")); filepath.Base(dir) != "explaintest" && (err != nil || len(tests) == 0) {
			t.Errorf("%s has no test of its own", dir)
		}
	}
}

// TestNoSQLiteBehindDiff: neither diff nor gate links SQLite, by whatever way, but for the history; their test kits do not either.
func TestNoSQLiteBehindDiff(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", "./diff/...", "./gate", "./gate/gatetest")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if strings.HasPrefix(dep, "modernc.org/sqlite") || dep == module+"analyze" || strings.HasPrefix(dep, module+"analyze/internal") {
			t.Errorf("diff or gate depends on %s", dep)
		}
	}
}

// TestNoTemplates: templates call methods by name, so that the linker would keep every exported method of the program, which
// makes it 3 MB larger. Cobra has setters that need templates.
func TestNoTemplates(t *testing.T) {
	t.Parallel()
	for path, imports := range packageImports(t) {
		for _, bad := range []string{"text/template", "html/template"} {
			if slices.Contains(imports, bad) {
				t.Errorf("%s imports %s: write pages with the markup of analyze/report/render", path, bad)
			}
		}
	}
	sources, err := filepath.Glob("../../cmd/explain/*.go")
	if err != nil {
		t.Fatal(err)
	}
	rooms, err := filepath.Glob("../../cmd/explain/internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	template := regexp.MustCompile(`\.Set(Version|Usage|Help)Template\(`)
	for _, name := range append(sources, rooms...) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if call := template.Find(source); call != nil {
			t.Errorf("%s calls %s...), which links text/template: use the setter of a function", name, call)
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
		parts := []string{id + "_test.go", id + ".md", filepath.Join("testdata", id)}
		if id == "model" { // testdata/evidence has no config.json: no model stands behind the synthetic capture
			parts = parts[:2]
		}
		for _, part := range parts {
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
	t.Parallel()
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

// TestGitHubForms: what people meet on GitHub is there, forms are valid YAML with a name and fields, and links lead somewhere.
func TestGitHubForms(t *testing.T) {
	forms, err := filepath.Glob("../../.github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) < 4 {
		t.Fatalf("%d forms, %v", len(forms), err)
	}
	for _, f := range forms {
		var form struct {
			Name, Description string
			Body              []struct {
				Type, ID   string
				Attributes struct{ Label, Value string }
			}
		}
		if err := yaml.Unmarshal(read(t, f), &form); err != nil {
			t.Errorf("%s: %v", f, err)
		}
		if filepath.Base(f) == "config.yml" {
			continue
		}
		if form.Name == "" || form.Description == "" || len(form.Body) < 2 {
			t.Errorf("%s: %+v", f, form)
		}
		for _, b := range form.Body {
			if b.Type != "markdown" && (b.ID == "" || b.Attributes.Label == "") || b.Type == "markdown" && b.Attributes.Value == "" {
				t.Errorf("%s: %+v", f, b)
			}
		}
	}
	for _, page := range []string{"SECURITY.md", "CONTRIBUTING.md"} {
		for _, l := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(read(t, "../../.github/"+page)), -1) {
			if _, err := os.Stat(filepath.Join("../../.github", l[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, l[1])
			}
		}
	}
}
