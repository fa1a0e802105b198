package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/compat/export"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/cmd/explain/internal/whole"
)

// file is one file of the output folder.
type file struct {
	name  string
	write func(w io.Writer) error
}

// mainFiles are the ones a reader opens first.
var mainFiles = []string{"report.html", "report.md", "report.json", "tables/kernels.csv"}

// folder lists what goes into the output folder.
func folder(res *analyze.Result) []file {
	format := func(name string, write func(io.Writer, *report.Report) error) file {
		return file{name, func(w io.Writer) error { return write(w, res.Report) }}
	}
	files := []file{
		format("report.json", writeJSON),
		format("report.md", writeMarkdown),
		format("report.html", writeHTML),
		format("summary.json", writeSummary),
		format("kernels.md", writeKernels),
		format("stakeholder_summary.md", writeStakeholder),
	}
	if hasSection(res.Report, "ncu") {
		files = append(files,
			file{"ncu_summary.json", func(w io.Writer) error { return writeNCUSummary(w, res.Details) }})
	}
	if export.HasRegions(res.Report) {
		files = append(files, format("ncu/regions/report.json", writeRegionsJSON),
			format("ncu/regions/report.md", writeRegions))
	}
	done := map[string]bool{}
	table := func(t *report.Table) {
		if t.File != "" && !done[t.File] {
			done[t.File] = true
			files = append(files,
				file{filepath.Join("tables", t.File), func(w io.Writer) error { return render.CSV(w, t) }})
		}
	}
	for i := range res.Details { // whole, where the report has some rows of the table
		table(&res.Details[i])
	}
	for i := range res.Report.Sections {
		for j := range res.Report.Sections[i].Tables {
			table(&res.Report.Sections[i].Tables[j])
		}
	}
	return files
}

func hasSection(r *report.Report, id string) bool {
	return slices.ContainsFunc(r.Sections, func(s report.Section) bool { return s.ID == id })
}

// writeFolder writes files into dir, whole or not at all.
func writeFolder(ctx context.Context, dir string, files []file) error {
	if err := refuseForeign(filepath.Clean(dir), files); err != nil {
		return err
	}
	writers := map[string]func(io.Writer) error{}
	for _, f := range files {
		writers[f.name] = f.write
	}
	return whole.Folder(ctx, dir, writers)
}

// refuseForeign makes sure that nothing is replaced in a folder that explain did not write: a folder is its own where
// report.json, or comparison.json, says so.
func refuseForeign(dir string, files []file) error {
	marker, there := "", ""
	for _, f := range files {
		if marker == "" && (f.name == "report.json" || f.name == "comparison.json") {
			marker = f.name
		}
		if info, err := os.Lstat(filepath.Join(dir, f.name)); err == nil && !info.IsDir() && there == "" {
			there = f.name
		}
	}
	if marker == "" || there == "" || writtenHere(filepath.Join(dir, marker)) {
		return nil
	}
	return usagef("%s is there, and explain did not write it: name another folder, or remove it",
		filepath.Join(dir, there))
}

// writtenHere reports whether a file is JSON of explain: its first member is the schema.
func writtenHere(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := io.ReadFull(f, head)
	return regexp.MustCompile(`^\s*\{\s*"schema":\s*"explain\.`).Match(head[:n])
}

// checkOut finds out before the work whether the folder can be written.
func checkOut(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--out: %w", err)
	case !info.IsDir():
		return usagef("--out %s is a file; name a folder", dir)
	}
	return nil
}

// reportName is a folder name for the report of a capture, unlike any other: taken from its file's name, in characters
// that every file system and artifact store takes.
func reportName(path string, taken map[string]bool) string {
	base := filepath.Base(path)
	if base == "report.json" {
		if dir := filepath.Base(filepath.Dir(path)); dir != "." && dir != string(filepath.Separator) {
			base = dir
		}
	}
	for _, ext := range []string{".gz", ".zst", ".sqlite", ".nsys-rep", ".json"} {
		base = strings.TrimSuffix(base, ext)
	}
	name := strings.Map(func(r rune) rune {
		if r < 128 &&
			(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return r
		}
		return '_'
	}, base)
	if name = strings.TrimLeft(name, "."); name == "" {
		name = "capture"
	}
	name = name[:min(len(name), 60)]
	unique := name
	for n := 2; taken[strings.ToLower(unique)]; n++ {
		unique = name + "-" + strconv.Itoa(n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}
