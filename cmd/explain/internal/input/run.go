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
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil
	}
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
	}
	return nil
}
