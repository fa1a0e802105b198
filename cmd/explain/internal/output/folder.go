package output

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/doc"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/pattern"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// File is one file of the output folder.
type File = atomicfile.Item

// mainFiles are the files that a reader opens first.
var mainFiles = []string{"report.html", "report.md", "report.json", "tables/kernels.csv"}

// stepFile has the shown units of the main kind for Perfetto.
const stepFile = "step.perfetto.json"

// StepBeside is the name of that file if it lies beside a report; empty if it does not.
func StepBeside(file string) string {
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), stepFile)); err != nil {
		return ""
	}
	return stepFile
}

// FileOf is a file with a value as write writes it.
func FileOf[T any](name string, value T, write func(io.Writer, T) error) File {
	return File{Name: name, Write: func(w io.Writer) error { return write(w, value) }}
}

// Report lists what goes into the folder of a report.
func Report(res *analyze.Result) []File {
	r := res.Report
	page := func(name string, of func(*report.Report) doc.Document) File {
		return File{Name: name, Write: func(w io.Writer) error {
			return render.Markdown(w, of(r), render.MarkdownOptions{})
		}}
	}
	step := ""
	units, err := export.PerfettoUnits(r)
	if err == nil {
		step = stepFile
	}
	files := []File{
		FileOf("report.json", r, report.Write),
		page("report.md", func(r *report.Report) doc.Document { return present.Full(r, step) }),
		{Name: "report.html", Write: func(w io.Writer) error { return HTML(w, r, step) }},
		FileOf("summary.json", r, bytesOf(export.SummaryJSON)),
		page("kernels.md", func(r *report.Report) doc.Document { return export.KernelsMD(r, res.Details...) }),
		page("operators.md", export.OperatorsMD),
		page("stakeholder_summary.md", func(r *report.Report) doc.Document { return export.StakeholderMD(r, res.Details...) }),
	}
	if step != "" {
		files = append(files, FileOf(step, units, export.Perfetto))
	}
	if slices.ContainsFunc(r.Sections, func(s report.Section) bool { return s.ID == "ncu" }) {
		files = append(files, FileOf("ncu_summary.json", res.Details, bytesOf(export.NCUSummaryJSON)))
	}
	if export.HasRegions(r) {
		files = append(files, FileOf("ncu/regions/report.json", r, bytesOf(export.RegionsJSON)),
			page("ncu/regions/report.md", export.RegionsMD))
	}
	tables := slices.Clone(res.Details) // whole, if the report has only some rows of the table
	for _, s := range r.Sections {
		tables = append(tables, s.Tables...)
	}
	for _, same := range lists.Groups(tables, func(t report.Table) string { return t.File }) {
		if t := &same[0]; t.File != "" {
			files = append(files, FileOf(filepath.Join("tables", t.File), t, render.CSV))
		}
	}
	return files
}

// Write writes files into dir, whole or not at all.
func Write(ctx context.Context, dir string, files []File) error {
	return WriteOver(ctx, dir, files, false)
}

// WriteOver writes files into dir; with force it also replaces files that explain did not write. Files of a report or
// comparison that was there before and that this one does not have are removed, so that none is taken for one of this.
func WriteOver(ctx context.Context, dir string, files []File, force bool) error {
	if err := refuseForeign(filepath.Clean(dir), files); err != nil && !force {
		return err
	}
	old := earlier(dir, files)
	if err := atomicfile.Folder(ctx, dir, files); err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(filepath.Join(dir, f.Name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove a file that was there before: %w", err)
		}
	}
	return nil
}

// earlier lists what the report or comparison in dir has beside it and the one of these files has not: nothing if only
// a report's JSON is there, which --format json may have put among the files of a profiler that have the same names.
func earlier(dir string, files []File) []File {
	now := lists.Set(files, func(f File) string { return f.Name })
	if now["comparison.json"] && !now["junit.xml"] { // a study or a gate, in the folder of a comparison
		if ours, _ := atomicfile.Begins(filepath.Join(dir, "junit.xml"), junitBegins); ours {
			return []File{{Name: "junit.xml"}}
		}
	}
	if !now["report.json"] {
		return nil
	}
	r, err := input.ReadReport(filepath.Join(dir, "report.json"))
	if err != nil || !input.Exists(filepath.Join(dir, "report.html")) {
		return nil // there is none
	}
	list := Report(&analyze.Result{Report: r})
	for _, s := range append(analyze.Sections(), analyze.RunSection()) { // whole tables, which are not in report.json
		for _, t := range s.Tables {
			if t.File != "" {
				list = append(list, File{Name: filepath.Join("tables", t.File)})
			}
		}
	}
	return lists.Filter(list, func(f File) bool { return !now[f.Name] })
}

// refuseForeign makes sure that nothing is replaced in a folder that explain did not write: a folder is its own where
// report.json, comparison.json or check.json says so.
func refuseForeign(dir string, files []File) error {
	marker := lists.Find(files, func(f *File) bool {
		return f.Name == "report.json" || f.Name == "comparison.json" || f.Name == "check.json"
	})
	there := lists.Find(files, func(f *File) bool {
		info, err := os.Lstat(filepath.Join(dir, f.Name))
		return err == nil && !info.IsDir()
	})
	if marker == nil || there == nil {
		return nil
	}
	if ours, err := atomicfile.Begins(filepath.Join(dir, marker.Name), begins); ours || err != nil {
		return err
	}
	return usage.Errorf("%s is there, and explain did not write it: name another folder, or remove it",
		filepath.Join(dir, there.Name))
}

// Ours reports whether a file is JSON of explain: its first member is the schema.
func Ours(path string) (bool, error) { return atomicfile.Begins(path, begins) }

const begins = `{"schema":"explain.`

// junitBegins is how the junit.xml of a comparison begins; a folder may hold that of somebody's tests.
const junitBegins = `<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite name="explain diff"`

// fileNames are name endings of files, which are wrong for a folder.
var fileNames = []string{".html", ".md", ".json", ".csv", ".txt", ".xml"}

// Check reports, before any work, whether the folder can be written; an empty name is that of none, and fine.
func Check(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && slices.Contains(fileNames, filepath.Ext(dir)):
		return usage.Errorf("--out names a folder, and %s is called like a file: name a folder, or --format FORMAT > %s", dir, dir)
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return usage.Errorf("--out: %w", err)
	case !info.IsDir():
		return usage.Errorf("--out %s is a file; name a folder", dir)
	}
	return nil
}

// RemoveReports removes the folders in dir that hold a report and nothing else, and dir if nothing is left in it. other
// is one that holds something else, which stays: a capture may lie beside its report.
func RemoveReports(dir string) (other string, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		alone, err := reportAlone(name)
		if err == nil && alone {
			err = os.RemoveAll(name)
		}
		if err != nil {
			return "", err
		}
		if !alone {
			other = name
		}
	}
	if other == "" {
		err = os.Remove(dir)
	}
	return other, err
}

// reportAlone reports whether a folder holds a report and nothing that [Report] does not write.
func reportAlone(dir string) (bool, error) {
	alone, err := Ours(filepath.Join(dir, "report.json"))
	if !alone || err != nil {
		return false, err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator)))
		table := strings.HasPrefix(name, "tables/") && strings.HasSuffix(name, ".csv")
		if err == nil {
			alone = alone && (d.IsDir() || table || slices.Contains(reportFiles, name))
		}
		return err
	})
	return alone, err
}

// reportFiles are the names of what [Report] writes, but for tables.
var reportFiles = []string{"report.json", "report.md", "report.html", "summary.json", "kernels.md", "operators.md",
	"stakeholder_summary.md", stepFile, "ncu_summary.json", "ncu/regions/report.json", "ncu/regions/report.md"}

var notInName = pattern.New(`[^A-Za-z0-9._-]`)

// Name is a folder name for the report of a capture, unlike any other: taken from its file's name, in characters
// that every file system and artifact store takes.
func Name(path string, taken map[string]bool) string {
	base := filepath.Base(path)
	if base == "report.json" {
		if dir := filepath.Base(filepath.Dir(path)); dir != "." && dir != string(filepath.Separator) {
			base = dir
		}
	}
	for _, ext := range []string{".gz", ".zst", ".sqlite", ".nsys-rep", ".json"} {
		base = strings.TrimSuffix(base, ext)
	}
	name := cmp.Or(strings.TrimLeft(notInName().ReplaceAllString(base, "_"), "."), "capture")
	name = name[:min(len(name), 60)]
	unique := name
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}
