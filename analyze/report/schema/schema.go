// Package schema holds the published JSON Schemas of the files explain writes, and of the policy that it reads. They
// are contracts: a test holds them to the Go types, and an independent validator holds every committed report and
// preset to them.
package schema

import (
	"embed"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const suffix = ".schema.json"

// Names lists the schemas.
func Names() (names []string) {
	list, _ := files.ReadDir(".")
	for _, f := range list {
		names = append(names, strings.TrimSuffix(f.Name(), suffix))
	}
	return names
}

// Text returns the schema of that name.
func Text(name string) (string, bool) {
	text, err := files.ReadFile(name + suffix)
	return string(text), err == nil
}
