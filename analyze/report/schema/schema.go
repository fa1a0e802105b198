// Package schema holds the published JSON Schemas of the files explain writes, and of the policy that it reads. They
// are contracts: a test holds them to the Go types, and an independent validator holds every committed report and
// preset to them.
package schema

import (
	_ "embed"
	"sort"
)

//go:embed report.schema.json
var reportSchema string

//go:embed comparison.schema.json
var comparisonSchema string

//go:embed policy.schema.json
var policySchema string

//go:embed load.schema.json
var loadSchema string

//go:embed history.schema.json
var historySchema string

//go:embed bisect.schema.json
var bisectSchema string

//go:embed decisions.schema.json
var decisionsSchema string

var texts = map[string]string{"report": reportSchema, "comparison": comparisonSchema, "policy": policySchema,
	"load": loadSchema, "history": historySchema, "bisect": bisectSchema, "decisions": decisionsSchema}

// Names lists the schemas.
func Names() []string {
	names := make([]string, 0, len(texts))
	for n := range texts {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Text returns the schema of that name.
func Text(name string) (string, bool) {
	t, ok := texts[name]
	return t, ok
}
