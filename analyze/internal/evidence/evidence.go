// Package evidence reads the artifacts beside a trace: server logs, exports of Nsight Compute, recordings of profilers.
// Each kind has a package of its own; this one finds the kind of each file by its content.
//
// To add a kind, for example the CSV of nvidia-smi, change five files: smi/smi.go with its Kind, Is and Read, and a
// Data with warnings and facts on the environment; smi/smi_test.go; evidence.go, which lists the readers; evidence.md,
// one row; and the kinds in analyze/report/schema/report.schema.json. --evidence, the list of files in a report and the
// check of the environment need no change. go test ./cmd/explain/internal/docs -update writes examples/docs/evidence.md
// again. How to add a section with the new numbers is described in package analyze.
package evidence

import (
	"bytes"
	"context"
	_ "embed" // the page
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/internal/evidence/loadmetrics"
	"github.com/nsys-llm/explain/analyze/internal/evidence/modelconfig"
	"github.com/nsys-llm/explain/analyze/internal/evidence/ncu"
	"github.com/nsys-llm/explain/analyze/internal/evidence/prom"
	"github.com/nsys-llm/explain/analyze/internal/evidence/serverlog"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

//go:embed evidence.md
var page string

// Page says which files count as evidence and which numbers are taken from them, as markdown.
func Page() string { return page }

// Set is all the evidence of one report. Kinds that were not given are nil.
type Set struct {
	Files   []file.Input // in the order in which they were read
	Folder  string       // name, without its path, of the first folder that was named; empty if none was
	Skipped []string     // files of a folder or pattern whose kind is unknown, or not the required one

	NCU  *ncu.Data
	Log  *serverlog.Data
	Prom *prom.Data
	Load *loadmetrics.Data

	all     []Data // what each reader returned, in the order of readers
	readers []Reader
	looked  func(files int64)
}

// Reader reads one kind of evidence.
type Reader struct {
	Kind  file.Kind
	Title string                                                      // names the kind in a sentence
	Is    func(name string, head []byte) bool                         // by the start of the file
	Read  func(ctx context.Context, files []file.Input) (Data, error) // all files of the kind together
}

// Of returns the data of one kind by its type, or nil: Of[*session.Data](set).
func Of[D Data](s *Set) (none D) {
	if s == nil {
		return none
	}
	for _, d := range s.all {
		if v, ok := d.(D); ok {
			return v
		}
	}
	return none
}

// Data is the result of every reader.
type Data interface {
	Warnings() []report.Warning
	Environment(e *report.Environment)
}

// readers of all kinds, in the order in which a file is compared with them: the most specific form first. For the
// environment, statements of the server come before measurements of others.
func readers(others []Reader) []Reader {
	return slices.Concat([]Reader{
		{file.Load, "a result of explain load or of another load generator", loadmetrics.Is, Reading(loadmetrics.Read)},
		{file.NCU, "a Nsight Compute CSV", ncu.Is, Reading(ncu.Read)},
		{file.ModelConfig, "the config.json of a model", modelconfig.Is, Reading(modelconfig.Read)},
	}, others, []Reader{
		{file.Prometheus, "a dump of Prometheus metrics", prom.Is, Reading(prom.Read)},
		{file.ServerLog, "a log of vLLM, SGLang, TensorRT-LLM, LMDeploy or TGI", serverlog.Is, Reading(serverlog.Read)},
	})
}

// Reading turns a function that returns a specific type into the Read of a Reader.
func Reading[D Data](
	read func(ctx context.Context, files []file.Input) (D, error),
) func(ctx context.Context, files []file.Input) (Data, error) {
	return func(ctx context.Context, files []file.Input) (Data, error) { return read(ctx, files) }
}

// Kind is what the file in path is by its content, or empty.
func Kind(path string, others ...Reader) file.Kind {
	in, err := file.New(path, filepath.Base(path))
	if err != nil {
		return ""
	}
	kind, _ := kindOf(readers(others), &in)
	return kind
}

// Holds reports whether a folder holds evidence of some kind. It is also true for too many files, which Read reports.
func Holds(dir string, others ...Reader) bool {
	files, all := regular(dir)
	return !all || slices.ContainsFunc(files, func(path string) bool { return Kind(path, others...) != "" })
}

// regular are the files in a folder and below it, sorted by name. Files that cannot be opened are not evidence. all is
// false if there are more than maxFiles: then no file is opened.
func regular(dir string) (files []string, all bool) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return nil
		}
		if files = append(files, path); len(files) > maxFiles {
			return fs.SkipAll
		}
		return nil
	})
	return files, len(files) <= maxFiles
}

func kindOf(readers []Reader, in *file.Input) (file.Kind, error) {
	head, err := in.Head()
	if err != nil {
		return "", err
	}
	if bytes.HasPrefix(head, []byte("SQLite format 3\x00")) {
		return "", nil
	}
	for _, r := range readers {
		if r.Is(in.Name, head) {
			return r.Kind, nil
		}
	}
	return "", nil
}

// Named is a file or folder as the user named it, and its required kind; any kind if Kind is empty. In a pattern, as in
// a folder, files of other kinds are skipped.
type Named struct {
	Path    string
	Kind    file.Kind
	Pattern string // that the file was found by; empty if the user named it
	Beside  bool   // a trace is given too: the report is not of evidence alone
}

// maxFiles bounds the files that a folder may hold.
const maxFiles = 5_000

// Read finds the kind of each named file and reads them all; the readers given handle the kinds of package compat. It
// calls looked, unless that is nil, with the number of files whose kind has been found.
func Read(ctx context.Context, named []Named, looked func(files int64), others ...Reader) (*Set, error) {
	s := &Set{readers: readers(others), looked: looked}
	seen := map[string]bool{}
	for i, n := range named {
		if err := s.find(ctx, n, seen); err != nil {
			return nil, err
		}
		last := i+1 == len(named) || named[i+1].Pattern != n.Pattern || named[i+1].Kind != n.Kind
		if n.Pattern != "" && last && !s.Has(n.Kind) && (n.Kind != "" || len(s.Files) == 0) {
			return nil, &source.InputError{File: filepath.Base(n.Pattern), What: "matches no evidence that explain knows" +
				s.wanted(n.Kind), Do: "explain doc evidence lists what it reads"}
		}
	}
	for _, r := range s.readers {
		files := lists.Filter(s.Files, func(in file.Input) bool { return in.Kind == r.Kind })
		if len(files) == 0 {
			continue
		}
		d, err := r.Read(ctx, files)
		if err != nil && ctx.Err() == nil {
			d, err = s.readable(ctx, &r, files, named, err)
		}
		if err != nil {
			return nil, err
		}
		if d != nil {
			s.all = append(s.all, d)
		}
	}
	s.NCU, s.Log, s.Prom, s.Load = Of[*ncu.Data](s), Of[*serverlog.Data](s), Of[*prom.Data](s), Of[*loadmetrics.Data](s)
	return s, ctx.Err()
}

// readable reads again without the files that cannot be read and that nobody named: they are skipped. Without any left
// there is no data. If one that was named cannot be read, if nothing else was given, or if the user asked for the kind
// and no file of it is left, the error is that of before.
func (s *Set) readable(ctx context.Context, r *Reader, files []file.Input, named []Named, err error) (Data, error) {
	beside := slices.ContainsFunc(named, func(n Named) bool { return n.Beside })
	var good []file.Input
	var bad []string
	for _, in := range files {
		*in.Tally = file.Tally{}
		switch _, failed := r.Read(ctx, []file.Input{in}); {
		case failed == nil:
			*in.Tally = file.Tally{}
			good = append(good, in)
		case in.Found && (beside || len(bad)+1 < len(s.Files)):
			bad = append(bad, in.Path)
			s.Skipped = append(s.Skipped, in.Name+" (cannot be read; name it to see why)")
		default:
			return nil, err
		}
	}
	if len(good) == 0 && slices.ContainsFunc(named, func(n Named) bool { return n.Kind == r.Kind }) {
		return nil, err
	}
	s.Files = slices.DeleteFunc(s.Files, func(in file.Input) bool { return slices.Contains(bad, in.Path) })
	if len(good) == 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return r.Read(ctx, good)
}

// find adds the files that n stands for.
func (s *Set) find(ctx context.Context, n Named, seen map[string]bool) error {
	base := filepath.Base(n.Path)
	info, err := os.Stat(n.Path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return &source.InputError{File: base, What: "does not exist", Do: "check the path"}
	case err != nil:
		return &source.InputError{File: base, What: "cannot be read", Err: errors.Unwrap(err)}
	case !info.IsDir():
		return s.add(n, base, seen, n.Pattern != "")
	}
	found := len(s.Files)
	if found == 0 && n.Pattern == "" && base != "." && base != ".." && base != string(filepath.Separator) {
		s.Folder = strings.ToValidUTF8(base, "?")
	}
	files, all := regular(n.Path)
	if !all {
		return &source.InputError{File: base, What: fmt.Sprintf("holds more than %d files", maxFiles),
			Do: "name the folder of one run"}
	}
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := filepath.Rel(n.Path, path)
		if err != nil {
			return err
		}
		if err := s.add(Named{Path: path, Kind: n.Kind}, name, seen, true); err != nil {
			return err
		}
	}
	if len(s.Files) == found && n.Pattern == "" {
		return &source.InputError{File: base, What: "is a folder without evidence that explain knows" + s.wanted(n.Kind),
			Do: "name a .sqlite or .nsys-rep file in it; explain doc evidence lists what is evidence"}
	}
	return nil
}

// add looks at one file. In a folder or a pattern, a file of another kind is skipped and counted.
func (s *Set) add(n Named, name string, seen map[string]bool, oneOfMany bool) error {
	if real, err := filepath.EvalSymlinks(n.Path); err == nil {
		if seen[real] {
			return nil
		}
		seen[real] = true
	}
	if s.looked != nil {
		s.looked(int64(len(seen) - 1))
	}
	in, err := file.New(n.Path, name)
	if err != nil {
		if oneOfMany { // a core dump or a model beside the logs is larger than any evidence
			name = filepath.ToSlash(name)
			if beyond, is := errors.AsType[*limit.Error](err); is {
				name += " (" + beyond.Error() + ")"
			}
			s.Skipped = append(s.Skipped, name)
			return nil
		}
		return &source.InputError{File: name, What: "cannot be read", Err: err}
	}
	kind, err := kindOf(s.readers, &in)
	if n.Kind == file.NCU && kind != file.NCU && err == nil && in.Any(ncu.IsHeader) {
		kind = file.NCU // a server that ran under ncu may print much before the page begins
	}
	if n.Kind == file.ServerLog && kind == "" && err == nil && !oneOfMany && in.Any(serverlog.IsLine) {
		kind = file.ServerLog
	}
	switch {
	case oneOfMany && (err != nil || kind == "" || n.Kind != "" && kind != n.Kind):
		s.Skipped = append(s.Skipped, in.Name)
		return nil
	case err != nil:
		return &source.InputError{File: name, What: "cannot be read", Err: err}
	case kind == "" && in.Bytes == 0:
		return &source.InputError{File: name, What: "is empty"}
	case kind == "":
		return &source.InputError{File: name, What: "is not evidence that explain knows" + s.wanted(n.Kind),
			Do: "explain doc evidence lists what it reads"}
	case n.Kind != "" && kind != n.Kind:
		return &source.InputError{File: name, What: "is " + s.title(kind) + ", not " + s.title(n.Kind),
			Do: "give it with --evidence, which takes any kind"}
	}
	in.Kind, in.Found = kind, oneOfMany
	s.Files = append(s.Files, in)
	return nil
}

func (s *Set) wanted(k file.Kind) string {
	if k == "" {
		return ""
	}
	return " (wanted: " + s.title(k) + ")"
}

// title names a kind in a sentence.
func (s *Set) title(k file.Kind) string {
	return lists.Find(s.readers, func(r *Reader) bool { return r.Kind == k }).Title
}

// Has reports whether the set holds evidence of the kind.
func (s *Set) Has(k file.Kind) bool {
	return s != nil && lists.Find(s.Files, func(in *file.Input) bool { return in.Kind == k }) != nil
}

// Describe writes into the report which files were read, the environment they state, and the warnings.
func (s *Set) Describe(r *report.Report) {
	for _, d := range slices.Backward(s.all) { // statements of the server first
		d.Environment(&r.Environment)
	}
	for _, d := range s.all {
		r.Warnings = append(r.Warnings, d.Warnings()...)
	}
	for _, f := range s.Files {
		t := f.Tally
		r.Evidence = append(r.Evidence, report.EvidenceFile{
			Name: f.Name, Kind: string(f.Kind), Format: t.Format, Bytes: f.Bytes,
			Records: t.Records, Understood: t.Understood, Known: t.Known, Unknown: t.Unknown,
			Version: report.Stated(t.Version),
		})
	}
	for _, reader := range s.readers {
		empty := lists.Filter(s.Files, func(in file.Input) bool { return in.Kind == reader.Kind && in.Tally.Understood == 0 })
		names := lists.Map(empty, func(in file.Input) string { return fmt.Sprintf("%s (%d records)", in.Name, in.Tally.Records) })
		if len(names) > 0 {
			r.Warnings = append(r.Warnings, report.Warning{Code: "evidence_empty", Text: "Recognised as " +
				reader.Title + ", but it holds nothing usable: " + file.Some(names, 5)})
		}
	}
	if len(s.Skipped) > 0 {
		r.Warnings = append(r.Warnings, report.Warning{Code: "evidence_skipped",
			Text: "Not read, as the kind is unknown or not the one asked for, or as stated: " +
				file.Some(s.Skipped, 5)})
	}
}
