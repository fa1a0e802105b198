// Package input finds out what the files that a user names are: traces, reports, summaries, folders of evidence. It
// decides by their content, not their names, and analyses none of them.
package input

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/fetch"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// Kind is what an input is, by its content.
type Kind string

// The kinds.
const (
	Trace   Kind = "trace" // and evidence without a trace, which is analysed like one
	Report  Kind = "report"
	Summary Kind = "summary" // profilemate's summary.json
)

// File is one file to compare, or a folder of evidence.
type File struct {
	Path string
	Kind Kind
}

// Find finds out what a path is. A folder is the report that explain --out wrote into it, or one of evidence.
func Find(path string) (File, error) {
	in := File{Path: path, Kind: Trace}
	if err := Local(path); err != nil {
		return in, err
	}
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		in.Path = filepath.Join(path, "report.json")
		if _, err := os.Stat(in.Path); err != nil {
			if analyze.HoldsEvidence(path) {
				return File{Path: path, Kind: Trace}, nil
			}
			switch list := capturesIn(path); len(list) {
			case 0:
				return in, fmt.Errorf("%s is a folder without report.json; name a trace, a report.json, or a folder that explain --out wrote", path)
			case 1:
				in.Path = list[0]
			default:
				const text = "%s holds %d captures: name repeats by a quoted glob, '%s/*%s', " +
					"and make one report of the ranks of a run: explain %[1]s --out REPORT"
				return in, fmt.Errorf(text, path, len(list), filepath.ToSlash(filepath.Clean(path)), filepath.Ext(list[0]))
			}
		}
	}
	head := objectHead(in.Path)
	if head == nil { // if it cannot be read, analyze says why
		return in, nil
	}
	if strings.HasPrefix(report.SchemaFirst(head), "explain.report/") {
		in.Kind = Report
		return in, nil
	}
	in.Kind, err = jsonKind(in.Path)
	return in, err
}

// Local refuses an address, also one that a file or folder is named like: a checkout may hold one. The error does not
// show what may be secret in it.
func Local(path string) error {
	if path == "-" || !fetch.Remote(path) {
		return nil
	}
	return usage.Errorf("%s is an address: download it first; only explain partial and explain merge fetch captures",
		fetch.Shown(path))
}

// FindAll returns the inputs that a list of file names, globs and comma-separated lists names. A glob without matches
// is an error: a side must not shrink silently.
func FindAll(flag string, names []string) ([]File, error) {
	paths, err := Expand(flag, names)
	if err != nil {
		return nil, err
	}
	list := make([]File, len(paths))
	for i, p := range paths {
		if list[i], err = Find(p); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Captures is FindAll, but refuses inputs that hold only totals.
func Captures(flag string, names []string) ([]File, error) {
	list, err := FindAll(flag, names)
	for _, in := range list {
		if in.Kind == Summary {
			return nil, usage.Errorf("%s: %s is a summary.json, which holds totals: name the trace or its report.json",
				flag, in.Path)
		}
	}
	return list, err
}

// Expand turns names into paths: a name that exists and an address are taken as they are, else split at commas, else
// expanded as a glob. Matches of a glob are in the order of their names.
func Expand(flag string, names []string) ([]string, error) {
	var list []string
	for _, name := range names {
		parts := []string{name}
		if !Exists(name) && !fetch.Remote(name) {
			parts = strings.Split(name, ",")
		}
		for _, p := range parts {
			if p = strings.TrimSpace(p); p == "" {
				return nil, usage.Errorf("%s: a file name is empty", flag)
			}
			if Exists(p) || fetch.Remote(p) || !strings.ContainsAny(p, "*?[") {
				list = append(list, p)
				continue
			}
			found, err := filepath.Glob(p)
			if err != nil {
				return nil, usage.Errorf("%s %s: %w", flag, p, err)
			}
			if len(found) == 0 {
				return nil, fmt.Errorf("%s %s matches no file", flag, p)
			}
			list = append(list, found...)
		}
	}
	return list, nil
}

// Exists reports whether there is a file or a folder of this path.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// jsonKind tells the JSON files apart that people may name.
func jsonKind(path string) (Kind, error) {
	if analyze.IsProfile(path) {
		return Trace, nil
	}
	b, err := ReadText(path)
	if err != nil {
		return "", err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(b, &top); err != nil {
		return "", fmt.Errorf("%s is not valid JSON (%w); was it cut off?", path, err)
	}
	var schema string
	_ = json.Unmarshal(top["schema"], &schema) // else it states none
	switch {
	case strings.HasPrefix(schema, "explain.report/"):
		return Report, nil
	case strings.HasPrefix(schema, "explain.load/"):
		return Trace, nil // evidence, which is analysed like a trace
	case strings.HasPrefix(schema, "explain."):
		return "", fmt.Errorf("%s holds %s, not a report; name a trace or a report.json", path, schema)
	}
	for _, key := range []string{"prefill_decode", "top_kernels", "cuda_graphs"} {
		if _, ok := top[key]; ok {
			return Summary, nil
		}
	}
	if analyze.IsEvidence(path) {
		return Trace, nil
	}
	return "", fmt.Errorf(
		"%s is neither a report of explain nor a summary.json of profilemate: it has no field \"schema\"", path)
}

// ReadText reads a file of text whole, without a byte order mark.
func ReadText(path string) ([]byte, error) {
	return limit.Text.ReadFile(path)
}

// ReadReport reads a report.json.
func ReadReport(path string) (*report.Report, error) {
	b, err := ReadText(path)
	if err != nil {
		return nil, err
	}
	r, err := report.Read(bytes.NewReader(b))
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("%s is not valid JSON (%w); was it cut off?", path, syntax)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Named are the reports with the names that inputs go by in a comparison: the trace's own, or, if several inputs
// share it, the end of the path that tells them apart: run-1/trace.sqlite and run-9/trace.sqlite. The reports stay as
// they are.
func Named(inputs []File, reports []*report.Report) []*report.Report {
	path := func(i int) string {
		if dir, file := filepath.Split(inputs[i].Path); file == "report.json" { // which explain --out wrote
			return filepath.Join(dir, reports[i].Trace.Name)
		}
		return filepath.Clean(inputs[i].Path)
	}
	list := slices.Clone(reports)
	for i, r := range reports {
		var same []string // other files of this name
		for k, o := range reports {
			if o.Trace.Name == r.Trace.Name && path(k) != path(i) {
				same = append(same, path(k))
			}
		}
		if len(same) > 0 {
			own := *r
			own.Trace.Name = apart(path(i), same)
			list[i] = &own
		}
	}
	return list
}

// apart returns the shortest end of a path, in whole parts, that no other path ends with.
func apart(path string, others []string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for n := len(parts) - 1; n > 0; n-- {
		end := strings.Join(parts[n:], "/")
		if !slices.ContainsFunc(others, func(o string) bool {
			return strings.HasSuffix("/"+filepath.ToSlash(o), "/"+end)
		}) {
			return end
		}
	}
	return strings.TrimPrefix(strings.Join(parts, "/"), "/")
}

// CapturedTrace is the trace that explain capture writes into its folder.
const CapturedTrace = "trace.sqlite"

// Schema is the schema that a JSON file states, with the file's content; empty of anything else.
func Schema(path string) (schema string, content []byte) {
	if objectHead(path) == nil || analyze.IsProfile(path) {
		return "", nil
	}
	content, err := ReadText(path)
	var top struct{ Schema string }
	if err != nil || json.Unmarshal(content, &top) != nil {
		return "", nil
	}
	return top.Schema, content
}

// objectHead is the beginning of a file that holds a JSON object; nil if it holds anything else or cannot be read. A
// pipe is not opened: nobody may write to it, and what was read of it is gone.
func objectHead(path string) []byte {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 512)) // what cannot be read is no object
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if !bytes.HasPrefix(head, []byte("{")) {
		return nil
	}
	return head
}

// AsTyped names a file in an error as the user did: of two captures called trace.sqlite, the folder says which.
func AsTyped(err error, path string) error {
	if wrong, ok := errors.AsType[*analyze.InputError](err); ok && wrong.File == filepath.Base(path) {
		wrong.File = path
	}
	return err
}

// Plain returns the text of an error; errors about missing, unreadable or wrong files are in plain words.
func Plain(err error) string {
	text := err.Error()
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok {
		return text
	}
	for kind, said := range map[error]string{
		fs.ErrNotExist:   "does not exist; check the path",
		fs.ErrPermission: "you may not read or write it; check its permissions",
		syscall.EISDIR:   "is a folder; name a file",
	} {
		if errors.Is(at.Err, kind) {
			return strings.Replace(text, at.Error(), at.Path+": "+said, 1)
		}
	}
	return text
}

// Spool copies standard input into a file if an argument is -, since a capture is read more than once, and puts the
// name of the file, stdin, into the arguments. remove deletes it.
func Spool(ctx context.Context, in io.Reader, args []string) (remove func(), err error) {
	at := slices.Index(args, "-")
	switch {
	case at < 0:
		return func() {}, nil
	case slices.Contains(args[at+1:], "-"):
		return func() {}, usage.Errorf("- is named twice, and there is one standard input")
	}
	path, remove, err := fetch.File(ctx, "-", in)
	if err != nil {
		return func() {}, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return remove, usage.Errorf("- is standard input, and nothing came in")
	}
	args[at] = path
	return remove, nil
}

// RunIn returns the captures or partials in a folder; nil if it holds fewer than two, or is the folder of one
// capture or report.
func RunIn(path string) []string {
	for _, name := range []string{"report.json", "comparison.json", CapturedTrace} {
		if Exists(filepath.Join(path, name)) {
			return nil
		}
	}
	if list := capturesIn(path); len(list) > 1 {
		return list
	}
	return nil
}

// capturesIn returns the partials in a folder, else its exported captures, else those of nsys: of the first of these
// that it holds several of, else of the first that it holds one of.
func capturesIn(path string) (found []string) {
	entries, _ := os.ReadDir(path)
	for _, ends := range [][]string{{".partial"}, {".sqlite", ".sqlite.gz", ".sqlite.zst"}, {".nsys-rep"}} {
		var list []string
		for _, e := range entries {
			named := func(end string) bool { return strings.HasSuffix(e.Name(), end) }
			if !e.IsDir() && slices.ContainsFunc(ends, named) {
				list = append(list, filepath.Join(path, e.Name()))
			}
		}
		if len(list) > 1 {
			return list
		}
		if found == nil {
			found = list
		}
	}
	return found
}
