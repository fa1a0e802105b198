package docs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report/schema"
	"github.com/nsys-llm/explain/diff/comparison"
)

const root = "../../../.."

func found(name string) bool {
	_, page := ByName(name)
	return page || len(Find(name)) > 0
}

// sources are the Go files of packages, tests and their kits left out.
func sources(t *testing.T, dirs ...string) string {
	t.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() && strings.HasSuffix(d.Name(), "test") {
				return filepath.SkipDir
			}
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			b.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// reasons are the codes of reasons, as the comparison's schema has them.
func reasons(t *testing.T) []string {
	t.Helper()
	text, _ := schema.Text("comparison")
	var root struct {
		Defs struct {
			Reason struct {
				Properties struct {
					Code struct{ Enum []string }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	if len(root.Defs.Reason.Properties.Code.Enum) == 0 {
		t.Fatal("the schema has no codes of reasons")
	}
	return root.Defs.Reason.Properties.Code.Enum
}

// enums are the values that a schema allows for text.
func enums(t *testing.T, name string) []string {
	t.Helper()
	text, _ := schema.Text(name)
	var tree any
	if err := json.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatal(err)
	}
	var list []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if values, ok := v["enum"].([]any); ok {
				for _, one := range values {
					if s, ok := one.(string); ok && s != "" {
						list = append(list, s)
					}
				}
			}
			for _, child := range v {
				walk(child)
			}
		case []any:
			for _, child := range v {
				walk(child)
			}
		}
	}
	walk(tree)
	return list
}

// TestEveryNameIsFound: each name that an output can show leads somewhere.
func TestEveryNameIsFound(t *testing.T) {
	words := map[string][]string{"exit code": {"0", "1", "2", "3", "4", "exit 4", "exit code 4"}}
	for _, s := range append(analyze.Sections(), analyze.RunSection()) {
		words["section"] = append(words["section"], s.ID, s.Title)
		for i := range s.Tables {
			table := &s.Tables[i]
			words["table"] = append(words["table"], table.ID, table.Title)
			if table.File != "" {
				words["file"] = append(words["file"], table.File, "tables/"+table.File)
			}
			for _, c := range table.Columns {
				words["column"] = append(words["column"], c.ID, c.Title)
				for _, v := range c.CSV {
					words["column"] = append(words["column"], v.Name)
				}
			}
		}
	}
	for _, m := range analyze.Metrics() {
		words["metric"] = append(words["metric"], m.ID)
		for _, l := range m.Labels {
			words["label"] = append(words["label"], strings.Split(l, ",")...)
		}
		for _, statistic := range Statistics {
			if m.Stats {
				words["metric"] = append(words["metric"], m.ID+"."+statistic, m.ID+"."+statistic+"{device=0}")
			}
		}
	}
	words["finding"] = analyze.FindingIDs()
	words["reason"] = reasons(t)
	code := sources(t, "analyze")
	for _, m := range regexp.MustCompile(`(?:Warn|warn)\(\s*"([a-z_]+)"|Code:\s+"([a-z_]+)"`).FindAllStringSubmatch(code, -1) {
		words["warning"] = append(words["warning"], m[1]+m[2])
	}
	_, list, _ := strings.Cut(code, "var worstFirst = []string{")
	list, _, _ = strings.Cut(list, "}")
	for _, m := range regexp.MustCompile(`"([a-z_]+)"`).FindAllStringSubmatch(list, -1) {
		words["warning"] = append(words["warning"], m[1])
	}
	for _, m := range regexp.MustCompile(`\.Find\("([a-z_]+)"`).FindAllStringSubmatch(code, -1) {
		words["finding"] = append(words["finding"], m[1])
	}
	for _, m := range regexp.MustCompile(`[gG]etenv\("([A-Z_]+)"\)`).FindAllStringSubmatch(sources(t, "cmd", "analyze", "gate"), -1) {
		if !strings.HasSuffix(m[1], "STANDIN") { // of tests
			words["variable"] = append(words["variable"], m[1])
		}
	}
	for _, name := range schema.Names() {
		words["value in schema "+name] = enums(t, name)
	}
	for kind, least := range map[string]int{
		"section": 80, "metric": 500, "finding": 40, "reason": 24, "warning": 30, "column": 500, "variable": 14, "label": 20} {
		if len(words[kind]) < least {
			t.Errorf("only %d words of kind %s", len(words[kind]), kind)
		}
	}
	for kind, list := range words {
		slices.Sort(list)
		for _, w := range slices.Compact(list) {
			if w != "" && !found(w) {
				t.Errorf("%s %q is not found", kind, w)
			}
		}
	}
}

// TestFind says what some names mean, one of each way in which they are found.
func TestFind(t *testing.T) {
	for name, want := range map[string]string{
		"unit.time.p50":                        "p50: median",
		"gpu.idle_cause_time":                  "labels device,cause",
		"gpu_idle":                             "finding of section gpu_time. The GPU does no work for 5 % of the judged steps or more, or of the window",
		"wide_interval":                        "the interval includes both no change and a real one",
		"exit code 4":                          "inconclusive; `diff`, `gate`",
		"NO_COLOR":                             "no colour",
		"busy_ms":                              `column "Busy" (busy) of table gpu_time in section gpu_time, in ns`,
		"budgets-only":                         "preset of a policy, which explain policy show prints: budgets-only: ",
		"waivers":                              "an accepted failure with a ceiling and a last day",
		"cudaStreamSynchronize":                "(explain doc sync) shows such calls",
		"cuLaunchKernel":                       "a call of the CUDA driver that starts a kernel",
		"cudaGraphLaunch":                      "explain doc graphs",
		"dependency":                           "the work is launched but waits for an event",
		"execute_context_N(M)_generation_K(L)": "vLLM",
		"PAIRED BY":                            "how the kernel of the base was matched",
		"tables/gpu_time.csv":                  "table gpu_time (Time by class) of section gpu_time",
		"unit.time.p99{phase=decode}":          "p99: 99th percentile",
		"far tail":                             "rule of the preset llm-serving: unit.time.p99",
		"unknown":                              "without the scheduler's switches",
	} {
		list := Find(name)
		if !slices.ContainsFunc(list, func(e Entry) bool { return strings.Contains(e.Text, want) }) {
			t.Errorf("%s: %+v, want %q", name, list, want)
		}
	}
	for name, want := range map[string]Entry{ // words that outputs print, first of all that has their name
		"from slower or faster runs": {"diff", "how much of the change of one unit comes from each run taking longer"},
		"unit.coverage":              {"words", "in report.json: the share of the GPU's compute time"},
		"had nothing to judge":       {"diff", "gates whose rules could not be applied"},
		"assumed":                    {"diff", "the floor of 5 % that applies if nobody measured"},
		"comm.":                      {"diff", "communication that no compute hides"},
		"NVTX coverage":              {"words", "share of the kernel time"},
		"api":                        {"host_idle", "the launching thread was in another CUDA call"},
		"os call":                    {"host_idle", "the launching thread was in a call of the operating system"},
		"running":                    {"host_idle", "the launching thread was on a CPU"},
		// labels with signs, as printed and as typed
		"idle: sync":           {"words", "the host waited in a blocking call"},
		"idle:sync":            {"words", "the host waited in a blocking call"},
		"idle sync":            {"words", "the host waited in a blocking call"},
		"Idle: dependency":     {"words", "the GPU is idle; the work is launched but waits for an event"},
		"idle dep":             {"words", "the GPU is idle; the work is launched but waits for an event"},
		"#16":                  {"words", "position N of a step"},
		"pageable DtoH copies": {"words", "copies from the GPU"},
		"read-backs":           {"memcpy", "finding of section memcpy"},
		"Late by":              {"ranks", "how long after the median rank"},
		"Middle rank":          {"ranks", "what the median rank took"},
		"schema version":       Find("schema_version")[0],
	} {
		if list := Find(name); len(list) == 0 || list[0].Page != want.Page || !strings.HasPrefix(list[0].Text, want.Text) {
			t.Errorf("%s: %+v, want %+v first", name, list, want)
		}
	}
	for _, name := range []string{"dependency", "exposed copy"} {
		if list := Find(name); strings.HasPrefix(list[0].Text, "finding") {
			t.Errorf("%s is no finding: %+v", name, list[0])
		}
	}
	for _, id := range analyze.FindingIDs() {
		if text := Find(id)[0].Text; !regexp.MustCompile(`^finding of section \w+( \([^)]*\))?\. [^a-z(,*]`).MatchString(text) {
			t.Errorf("%s begins within a sentence: %s", id, text)
		}
	}
	for _, name := range []string{"", " ", "no_such_word", "unit.time.p51", "cute::tuple"} {
		if list := Find(name); len(list) != 0 {
			t.Errorf("%q: %+v", name, list)
		}
	}
}

// TestSearch: words are found in the text of pages, marked terms first, parts of ids and plurals too.
func TestSearch(t *testing.T) {
	for asked, want := range map[string]Entry{
		"nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT": {"categories", "if this is a kernel, its name says category gemm"},
		"topkGatingSoftmax":                        {"categories", "if this is a kernel, its name says category moe_route"},
		"jacobi_kernel":                            {"categories", "if this is a kernel, its name does not say its category"},
		"execute_context_0(0)_generation_16(16)":   {"unit", "the NVTX range of a decode step, as vllm marks it"},
		"straggler":                                {"ranks", "**rank_straggler**"},
		"Bubbles":                                  {MetricsPage, "metric rank.bubble_ratio: "},
		"tensor parallel":                          {"comm", "tensor-parallel group"},
		"since":                                    {"policy", "A budget with `since` counts from a release"},
		"classes":                                  {"diff", "Classes\n\n| class | meaning |\n|---|---|\n| `improved` | the head is better"},
	} {
		list := Search(asked)
		if len(list) == 0 || len(list) > maxEntries || list[0].Page != want.Page || !strings.Contains(list[0].Text, want.Text) {
			t.Errorf("%s: %+v, want %+v", asked, list, want)
		}
	}
	for _, asked := range []string{"", " ", "…", "no_such_word", "tensor xyzzy"} {
		if list := Search(asked); len(list) != 0 {
			t.Errorf("%q: %+v", asked, list)
		}
	}
}

// TestPagesAreNamedLoosely: spaces and signs do not matter.
func TestPagesAreNamedLoosely(t *testing.T) {
	for name, want := range map[string]string{"what-if": "whatif", "exit codes": "exit-codes", "KV cache": "kv_cache", "kvcache": "kv_cache", "changepoints": "change-points"} {
		if p, ok := ByName(name); !ok || p.Name != want {
			t.Errorf("%s: page %q, want %s", name, p.Name, want)
		}
	}
}

// TestHeadersAreNoPassages: the header of a table explains nothing.
func TestHeadersAreNoPassages(t *testing.T) {
	for _, p := range passages() {
		if p.row && (p.text == "class; meaning" || p.text == "code; meaning; what to do") {
			t.Errorf("page %s, %s: %s", p.page, p.heading, p.text)
		}
	}
}

// TestExample: a reader without the repository gets the files that pages link to whole.
func TestExample(t *testing.T) {
	for name, want := range map[string]string{
		"gitlab": "gitlab/.gitlab-ci.yml", "Jenkins": "jenkins/Jenkinsfile", "buildkite": "buildkite/pipeline.yml",
		"same-runner": "github/same-runner.yml", "fork-gate.yml": "github/fork-gate.yml", "skill": "agents/SKILL.md"} {
		file, err := os.ReadFile(filepath.Join(root, "examples", filepath.FromSlash(want)))
		if err != nil {
			t.Fatal(err)
		}
		if got := Example(name); got != "# "+source+"examples/"+want+"\n\n"+string(file) {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"", "github", ".", "no_such_word"} {
		if got := Example(name); got != "" {
			t.Errorf("%q: %q", name, got)
		}
	}
	page, _ := ByName("agents")
	for _, file := range []string{"mcp.json", "config.toml"} {
		text, err := os.ReadFile(filepath.Join(root, "examples", "agents", file))
		if err != nil || !strings.Contains(page.Text, string(text)) {
			t.Errorf("the page on agents lacks %s (%v)", file, err)
		}
	}
}

// TestTasksAreInTheReadme: the README lists what people want to do as explain doc does, command by command.
func TestTasksAreInTheReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(readme), "## I want to …\n\n```sh\n")
	block, _, _ = strings.Cut(block, "```")
	if want := TaskList(); block != want {
		t.Errorf("the README has\n%sand explain doc\n%s", block, want)
	}
}

// TestPagesAreWhole: each page has a title of its own, and its links to files of the repository lead somewhere.
func TestPagesAreWhole(t *testing.T) {
	names := map[string]bool{}
	for _, p := range Pages() {
		if names[p.Name] || p.Title == "" || !strings.HasPrefix(p.Text, "# ") || len(p.Text) < 200 {
			t.Errorf("page %q (%q), %d bytes", p.Name, p.Title, len(p.Text))
		}
		names[p.Name] = true
		for _, l := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(p.Text, -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, "examples", "docs", filepath.FromSlash(l[1]))); err != nil {
				t.Errorf("page %s links to %s, which is not there", p.Name, l[1])
			}
		}
	}
	files, err := filepath.Glob("pages/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".md"); !names[name] {
			t.Errorf("page %s is in no group", name)
		}
	}
}

// TestPageNamesEveryFieldOfAStudy: the page of diff has a row for each FIELD of --study.
func TestPageNamesEveryFieldOfAStudy(t *testing.T) {
	page, _ := ByName("diff")
	rows := ""
	for line := range strings.Lines(page.Text) {
		if strings.Contains(line, " | in a study: ") {
			rows += line
		}
	}
	for _, field := range comparison.StudyFields() {
		if !strings.Contains(rows, "`"+field+"`") {
			t.Errorf("no row for %s", field)
		}
	}
}
