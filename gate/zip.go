package gate

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Limits of an artifact. A report stays under 2 MB; a folder of one has about 60 files.
const (
	maxZip     = 64 << 20  // bytes, as downloaded
	maxEntries = 2000      // files and folders
	maxEntry   = 32 << 20  // bytes of one .json file
	maxFiles   = 128 << 20 // bytes of all .json files
	maxName    = 512       // bytes of a path
)

// readZip reads the .json and .db files of a zip, sorted by name, or the one file of an artifact that upload-artifact
// stored without a zip. Strangers wrote them: a path that leaves the archive, a link or a duplicate name makes it
// refuse all of it, and it counts sizes instead of trusting headers.
func readZip(b []byte) ([]File, error) {
	if len(b) > maxZip {
		return nil, fmt.Errorf("the zip has more than %d bytes", int64(maxZip))
	}
	if bytes.HasPrefix(b, []byte("{")) { // no zip begins like this
		if len(b) > maxEntry {
			return nil, fmt.Errorf("the file has more than %d bytes", int64(maxEntry))
		}
		return []File{{"report.json", b}}, nil
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, errors.New("it is not a zip file")
	}
	if len(z.File) > maxEntries {
		return nil, fmt.Errorf("the zip has more than %d entries", maxEntries)
	}
	seen := map[string]bool{}
	for _, f := range z.File {
		if err := checkEntry(f); err != nil {
			return nil, err
		}
		// Two such names are one file: slashes in a row count once everywhere, and some file systems fold case.
		if name := strings.ToLower(path.Clean(f.Name)); seen[name] {
			return nil, fmt.Errorf("the zip has %q twice", oneLine(f.Name, 80))
		} else {
			seen[name] = true
		}
	}
	var files []File
	var total int64
	for _, f := range z.File {
		if !strings.HasSuffix(f.Name, ".json") && !strings.HasSuffix(f.Name, ".db") {
			continue
		}
		data, err := readEntry(f, min(maxEntry, maxFiles-total))
		if err != nil {
			return nil, err
		}
		total += int64(len(data))
		files = append(files, File{f.Name, data})
	}
	if len(files) == 0 {
		return nil, errors.New("the zip holds no .json or .db file")
	}
	lists.Sort(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files, nil
}

// checkEntry refuses entries that our uploads never contain.
func checkEntry(f *zip.File) error {
	name := strings.TrimSuffix(f.Name, "/")
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) || r == '\\' || r == ':' }
	switch {
	case name == "" || len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unprintable):
		return fmt.Errorf("the zip has an entry with a bad name: %q", oneLine(f.Name, 80))
	case !filepath.IsLocal(name) || slices.Contains(strings.Split(name, "/"), ".."):
		return fmt.Errorf("the zip has an entry that leads out of it: %q", oneLine(f.Name, 80))
	case !f.Mode().IsRegular() && !f.Mode().IsDir():
		return fmt.Errorf("the zip has an entry that is not a regular file: %q", oneLine(f.Name, 80))
	}
	return nil
}

func readEntry(f *zip.File, limit int64) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("the zip is damaged at %q", oneLine(f.Name, 80))
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, fmt.Errorf("the zip is damaged at %q", oneLine(f.Name, 80))
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("the zip unpacks to too much: more than %d bytes in %q, or %d in all", int64(maxEntry),
			oneLine(f.Name, 80), int64(maxFiles))
	}
	return b, nil
}
