package explaintest

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nsys-llm/explain/analyze/report/schema"
)

// Schema is a published schema, in an independent validator.
func Schema(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	body, _ := schema.Text(name)
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name+".json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}
