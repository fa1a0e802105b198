package docs

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/examples"
)

// included is a line of a page in place of which stands an example.
var included = regexp.MustCompile(`(?m)^\{\{(.+)\}\}$`)

// withExamples is the text of a page with the examples that it includes.
func withExamples(text string) string {
	return included.ReplaceAllStringFunc(text, func(line string) string {
		file, _ := examples.Files.ReadFile(strings.Trim(line, "{}"))
		return strings.TrimSuffix(string(file), "\n")
	})
}

// Example is the text of the example of a name: its file, with or without the ending (same-runner), or the system that
// it is for (gitlab). Empty if there is none, and if there are several for the system.
func Example(name string) string {
	name = strings.ToLower(name)
	var found []string
	_ = fs.WalkDir(examples.Files, ".", func(file string, entry fs.DirEntry, _ error) error {
		base := strings.ToLower(path.Base(file))
		names := []string{base, strings.TrimSuffix(base, path.Ext(base)), path.Dir(file)}
		if !entry.IsDir() && slices.Contains(names, name) {
			found = append(found, file)
		}
		return nil
	})
	if len(found) != 1 {
		return ""
	}
	text, _ := examples.Files.ReadFile(found[0])
	return "# " + source + "examples/" + found[0] + "\n\n" + string(text)
}
