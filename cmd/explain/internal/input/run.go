package input

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

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

// capturesIn returns the partials in a folder, else its exported captures, else those of nsys: of the first of these that it
// holds several of, else of the first that it holds one of.
func capturesIn(path string) (found []string) {
	entries, _ := os.ReadDir(path)
	for _, ends := range [][]string{{".partial"}, {".sqlite", ".sqlite.gz", ".sqlite.zst"}, {".nsys-rep"}} {
		var list []string
		for _, e := range entries {
			if !e.IsDir() && slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(e.Name(), end) }) {
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
