package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/crash"
	"github.com/nsys-llm/explain/cmd/explain/internal/docs"
	"github.com/nsys-llm/explain/diff/comparison"
)

// tool is one question that can be asked.
type tool struct {
	name, title, about string
	properties         map[string]any
	required           []string
	run                func(s *Server, ctx context.Context, a arguments) (string, error)
}

// arguments of all tools. A tool reads those that its schema names.
type arguments struct {
	File  string `json:"file"`
	Base  paths  `json:"base"`
	Head  paths  `json:"head"`
	ID    string `json:"id"`
	Table string `json:"table"`
	Part  string `json:"part"`
	Match string `json:"match"`
	Name  string `json:"name"`
	Limit int    `json:"limit"`
	Sort  string `json:"sort"`

	History string `json:"history"`

	Focus
}

// compares reports whether the arguments say what is to be compared, and how.
func (a *arguments) compares() bool {
	return cmp.Or(slices.Concat(a.Base, a.Head, a.Study, paths{a.Phase})...) != "" || a.Device != nil
}

// paths are one path or several.
type paths []string

// UnmarshalJSON takes a text or a list of texts.
func (p *paths) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*p = paths{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(p))
}

func text(about string) map[string]any { return map[string]any{"type": "string", "description": about} }

func files(about string) map[string]any {
	return map[string]any{"description": about, "anyOf": []any{map[string]any{"type": "string"},
		map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}
}

// Rows of an answer.
const (
	usualRows = 20
	mostRows  = 200
)

var (
	fileArgument  = text("a capture (.sqlite), a report.json or the folder of one, as the tool files names them; a folder of captures is a run of many ranks")
	limitArgument = map[string]any{"type": "integer", "minimum": 1, "maximum": mostRows,
		"description": fmt.Sprintf("rows, %d by default", usualRows)}
	matchArgument  = text("keep rows that hold this text, upper and lower case alike")
	resultArgument = text("instead of base and head: a comparison.json")
	baseArgument   = files("the base: one file, or several captures of one commit")
	headArgument   = files("the head, likewise")
	phaseArgument  = text("compare units of this phase, such as prefill; else the one with most time")
	deviceArgument = map[string]any{"type": "integer", "minimum": 0, "description": "compare units on this GPU; else the one on which they take longest"}
	studyArgument  = files("the sides differ in these fields on purpose, so there is no verdict: " + strings.Join(comparison.StudyFields(), ", "))
	pastArgument   = text("instead of base and head: a history (explain history), to ask which levels changed, since when and why")
)

// tools in the order in which an agent uses them.
var tools = []tool{
	{"files", "List files", "Lists captures, reports, comparisons and histories.", map[string]any{"match": matchArgument}, nil, (*Server).files},
	{"report", "Explain one capture", "Says where the time of one capture goes: window, GPUs, unit of work, key numbers, warnings, findings with advice, and what it cannot say.",
		map[string]any{"file": fileArgument}, []string{"file"}, (*Server).report},
	{"metrics", "Look up numbers", "Values of metrics of one capture, largest first: by id, or by words such as tokens per second.",
		map[string]any{"file": fileArgument, "id": text("a metric, how its id begins, or words of what it measures: gpu., unit.time, time to first token"),
			"match": matchArgument, "limit": limitArgument},
		[]string{"file", "id"}, (*Server).metrics},
	{"table", "Read a table", "Rows of a table of one capture's report; without a table, the list of tables.",
		map[string]any{"file": fileArgument, "table": text("id of a table: kernels, idle_causes, sync"), "match": matchArgument,
			"sort": text("id of a column, largest first; else the order of the report"), "limit": limitArgument},
		[]string{"file"}, (*Server).table},
	{"compare", "Compare two captures", "Says whether the head is slower than the base per unit of work, by how much, why, and whether that is real.",
		map[string]any{"base": baseArgument, "head": headArgument, "file": resultArgument, "history": pastArgument,
			"phase": phaseArgument, "device": deviceArgument, "study": studyArgument}, nil, (*Server).compare},
	{"changes", "Read one part of a comparison", "Rows of a comparison: one part of it in full.",
		map[string]any{"base": baseArgument, "head": headArgument, "file": resultArgument,
			"phase": phaseArgument, "device": deviceArgument, "study": studyArgument,
			"part": map[string]any{"type": "string", "enum": parts,
				"description": "which rows"}, "match": matchArgument, "limit": limitArgument},
		[]string{"part"}, (*Server).changes},
	{"doc", "Look up a word", "Says what a name means: a metric, a finding, a warning, a column, a class, a reason, an exit code; or a page.",
		map[string]any{"name": text("the name; empty lists the pages")}, nil, (*Server).doc},
}

// outputSchema is the schema of every answer: facts and lists of the tool, what cannot be known, suggested next calls.
var outputSchema = json.RawMessage(`{"type": "object", "required": ["unknown", "next"], "properties": {
	"unknown": {"type": "array", "items": {"type": "object", "required": ["what", "code", "why", "do"], "properties": {
		"what": {"type": "string"}, "code": {"type": "string"}, "why": {"type": "string"}, "do": {"type": "string"}}}},
	"next": {"type": "array", "items": {"type": "object", "required": ["tool", "arguments", "why"], "properties": {
		"tool": {"type": "string"}, "arguments": {"type": "object"}, "why": {"type": "string"}}}}}}`)

func toolList() []any {
	var list []any
	for _, t := range tools {
		schema := map[string]any{"type": "object", "properties": t.properties, "additionalProperties": false}
		if len(t.required) > 0 {
			schema["required"] = t.required
		}
		list = append(list, map[string]any{"name": t.name, "title": t.title, "description": t.about, "inputSchema": schema,
			"outputSchema": outputSchema,
			"annotations":  map[string]any{"readOnlyHint": true, "openWorldHint": false}})
	}
	return list
}

// tool runs one tool. A wrong file or argument gives an answer, not a protocol error: the agent reads it and asks
// again.
func (s *Server) tool(ctx context.Context, name string, raw json.RawMessage) (any, error) {
	i := slices.IndexFunc(tools, func(t tool) bool { return t.name == name })
	if i < 0 {
		return nil, &rpcError{codeParams, "there is no tool " + quoted(name) + "; tools/list names them"}
	}
	t := &tools[i]
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	var a arguments
	if err := json.Unmarshal(raw, &given); err != nil {
		return failedAnswer("arguments are a JSON object"), nil
	}
	for key := range given {
		if _, known := t.properties[key]; !known {
			return failedAnswer("tool " + name + " has no argument " + quoted(key) + "; it takes " +
				strings.Join(slices.Sorted(maps.Keys(t.properties)), ", ")), nil
		}
	}
	for _, key := range t.required {
		if _, there := given[key]; !there {
			return failedAnswer("tool " + name + " needs the argument " + key), nil
		}
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return failedAnswer("arguments of " + name + " are of another type: see tools/list"), nil
	}
	if a.Limit = min(a.Limit, mostRows); a.Limit < 1 {
		a.Limit = usualRows
	}
	out, err := func() (out string, err error) {
		defer crash.Caught("tool "+name, &err) // the server survives for the next question
		return t.run(s, ctx, a)
	}()
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return failedAnswer(err.Error()), nil
	}
	return map[string]any{"content": textContent(out), "structuredContent": json.RawMessage(out), "isError": false}, nil
}

func failedAnswer(why string) any {
	return map[string]any{"content": textContent(plain(why)), "isError": true}
}

func textContent(text string) []any { return []any{map[string]any{"type": "text", "text": text}} }

func outside(name string) error {
	return fmt.Errorf("%s is outside of the folder that explain mcp was started for", name)
}

// path returns the path of a file below the root, after following links.
func (s *Server) path(name string) (string, error) {
	if name == "" {
		return "", errors.New("a file name is empty: call the tool `files` for what is there")
	}
	at := name
	if !filepath.IsAbs(at) {
		at = filepath.Join(s.Root, at)
	}
	root, err := filepath.EvalSymlinks(s.Root)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		if rel, err := filepath.Rel(s.Root, at); err != nil || !filepath.IsLocal(rel) {
			return "", outside(name)
		}
		return "", fmt.Errorf("%s does not exist: call the tool `files` for what is there", name)
	}
	rel, err := filepath.Rel(root, real)
	if err != nil || !filepath.IsLocal(rel) {
		return "", outside(name)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is neither a file nor a folder: call the tool `files` for what is there", name)
	}
	if strings.HasSuffix(real, ".nsys-rep") {
		return "", fmt.Errorf("%s has to be exported first: nsys export --type=sqlite %s", name, name)
	}
	return real, nil
}

// stamp distinguishes versions of a file, or of the files in a folder.
func stamp(path string) string {
	sum := sha256.New()
	_ = filepath.WalkDir(path, func(at string, _ fs.DirEntry, _ error) error {
		if info, err := os.Stat(at); err == nil {
			fmt.Fprintln(sum, at, info.ModTime().UnixNano(), info.Size())
		}
		return nil
	})
	return fmt.Sprintf("%s %x", path, sum.Sum(nil))
}

// kept bounds how many reports, and how many comparisons, stay in memory.
const kept = 8

// cache keeps what was made of files, by their stamps.
type cache[V any] struct{ of map[string]V }

func (c *cache[V]) get(key string, make func() (V, error)) (V, error) {
	if v, ok := c.of[key]; ok {
		return v, nil
	}
	v, err := make()
	if err != nil {
		return v, err
	}
	if c.of == nil || len(c.of) >= kept {
		c.of = map[string]V{}
	}
	c.of[key] = v
	return v, nil
}

func (s *Server) load(ctx context.Context, file string) (*report.Report, error) {
	path, err := s.path(file)
	if err != nil {
		return nil, err
	}
	return s.reports.get(stamp(path), func() (*report.Report, error) { return s.Source.Report(ctx, path) })
}

func (s *Server) comparison(ctx context.Context, a arguments) (*comparison.Comparison, error) {
	if a.File != "" {
		if a.compares() {
			return nil, errors.New("file is a comparison that was made before: name it alone, or base and head without it")
		}
		return s.readComparison(a.File)
	}
	for _, field := range a.Study {
		if !slices.Contains(comparison.StudyFields(), field) {
			return nil, errors.New("a study is of " + strings.Join(comparison.StudyFields(), ", "))
		}
	}
	var sides [2][]string
	key := string(encode(a.Focus)) + "\n"
	for i, names := range [][]string{a.Base, a.Head} {
		if len(names) == 0 || len(names) > 20 {
			return nil, errors.New("name base and head, 1 to 20 files each, or a comparison.json as file")
		}
		for _, name := range names {
			path, err := s.path(name)
			if err != nil {
				return nil, err
			}
			sides[i] = append(sides[i], path)
			key += stamp(path) + "\n"
		}
		key += "\n"
	}
	return s.comparisons.get(key, func() (*comparison.Comparison, error) { return s.Source.Compare(ctx, sides[0], sides[1], a.Focus) })
}

func (s *Server) readComparison(file string) (*comparison.Comparison, error) {
	path, err := s.path(file)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	c, err := comparison.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// matches reports whether a row contains the requested text.
func matches(text, match string) bool {
	return match == "" || strings.Contains(strings.ToLower(text), strings.ToLower(match))
}

// maxDepth and maxFiles bound the search for files below the root.
const (
	maxDepth = 4
	maxFiles = 500
)

func (s *Server) files(ctx context.Context, a arguments) (string, error) {
	kinds := map[string][]string{}
	seen := 0
	root, err := filepath.EvalSymlinks(s.Root) // WalkDir does not follow a link
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // a folder that cannot be read holds nothing for the agent
		}
		rel, relErr := filepath.Rel(root, path)
		if relErr != nil || ctx.Err() != nil {
			return errors.Join(relErr, ctx.Err())
		}
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && rel != "." || strings.Count(rel, string(filepath.Separator)) >= maxDepth {
				return fs.SkipDir
			}
			return nil
		}
		kind := ""
		begins := func(text string) bool { ours, _ := atomicfile.Begins(path, text); return ours }
		switch {
		case d.Name() == "report.json" && begins(`{"schema":"explain.report/`):
			kind = "reports"
		case d.Name() == "comparison.json" && begins(`{"schema":"explain.comparison/`):
			kind = "comparisons"
		case captureName.MatchString(d.Name()):
			kind = "captures"
		case strings.HasSuffix(d.Name(), ".db") && begins("SQLite format 3"):
			kind = "histories"
		}
		if kind == "" || !matches(rel, a.Match) {
			return nil
		}
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		kinds[kind] = append(kinds[kind], filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		return "", err
	}
	var out answer
	for _, kind := range []string{"captures", "reports", "comparisons", "histories"} {
		add(&out, kind, kinds[kind], 0)
	}
	var next []Next
	if c := kinds["captures"]; len(c) > 0 {
		next = append(next, Next{"report", map[string]any{"file": c[0]}, "where the time of one capture goes"})
		if len(c) > 1 {
			base, head := pair(c)
			next = append(next, Next{"compare", map[string]any{"base": base, "head": head}, "what changed between two"})
		}
	}
	if h := kinds["histories"]; len(h) > 0 {
		next = append(next, Next{"compare", map[string]any{"history": h[0]}, "which levels changed over the nights"})
	}
	return out.text(nil, next), nil
}

// pair returns the first capture named base and the same one named head; without such a pair the first two.
func pair(captures []string) (base, head string) {
	for _, b := range captures {
		if h := strings.Replace(b, "base", "head", 1); h != b && slices.Contains(captures, h) {
			return b, h
		}
	}
	return captures[0], captures[1]
}

// captureName matches file names of captures by nsys and by the PyTorch profiler.
var captureName = regexp.MustCompile(`\.(sqlite|trace\.json)(\.gz|\.zst)?$`)

// maxPage bounds a page in an answer, in bytes.
const maxPage = 8_000

func (s *Server) doc(_ context.Context, a arguments) (string, error) {
	var out answer
	name := strings.TrimSpace(a.Name)
	if name == "" {
		list := lists.Map(docs.Pages(), func(p docs.Page) string { return p.Name + ": " + p.Title })
		add(&out, "pages", list, 0)
		return out.text(nil, nil), nil
	}
	entries := docs.Find(name)
	if page, ok := docs.ByName(name); ok && len(entries) == 0 || ok && page.Name == name {
		body := page.Text
		if len(body) > maxPage {
			body = strings.ToValidUTF8(body[:maxPage], "") + "…"
			out.put("cut", "the page is longer: explain doc "+page.Name)
		}
		out.put("page", body)
		return out.text(nil, nil), nil
	}
	if len(entries) == 0 {
		entries = docs.Search(name)
	}
	if len(entries) == 0 {
		return out.text([]Unknown{{plain(name), "no_such_name", "no name of explain; kernels and NVTX ranges have the names that the program gave them", "ask with an empty name for the pages"}}, nil), nil
	}
	type meaning struct {
		Page string `json:"page"`
		Text string `json:"text"`
	}
	list := lists.Map(entries, func(e docs.Entry) meaning { return meaning{e.Page, strings.TrimSpace(e.Text)} })
	add(&out, "meanings", list, 0)
	return out.text(nil, []Next{{"doc", map[string]any{"name": entries[0].Page}, "the whole page"}}), nil
}
