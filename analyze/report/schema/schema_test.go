package schema

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/policy"
)

// node is the part of JSON Schema the published schema uses.
type node struct {
	Ref        string           `json:"$ref"`
	Type       json.RawMessage  `json:"type"`
	Const      string           `json:"const"`
	Required   []string         `json:"required"`
	Properties map[string]*node `json:"properties"`
	Items      *node            `json:"items"`
	AnyOf      []*node          `json:"anyOf"`
	Defs       map[string]*node `json:"$defs"`
}

// TestSchemaFollowsTheTypes fails when a field is added to the model and not to the schema, or the other way round.
func TestSchemaFollowsTheTypes(t *testing.T) {
	for name, typ := range map[string]reflect.Type{"report": reflect.TypeFor[report.Report](), "comparison": reflect.TypeFor[comparison.Comparison](), "load": reflect.TypeFor[loadfile.Result]()} {
		text, _ := Text(name)
		var root node
		if err := json.Unmarshal([]byte(text), &root); err != nil {
			t.Fatal(err)
		}
		compare(t, &root, &root, typ, name)
	}
}

func compare(t *testing.T, root, n *node, typ reflect.Type, path string) {
	t.Helper()
	for n.Ref != "" || len(n.AnyOf) > 0 {
		if len(n.AnyOf) > 0 {
			n = n.AnyOf[0]
			continue
		}
		d := root.Defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
		if d == nil {
			t.Fatalf("%s: no definition %s", path, n.Ref)
		}
		n = d
	}
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	switch {
	case typ == reflect.TypeFor[report.Cell](), typ == reflect.TypeFor[report.CutMetrics](): // with a form of their own
		return
	case typ.Kind() == reflect.Slice || typ.Kind() == reflect.Array:
		if n.Items == nil {
			t.Errorf("%s: a list in the model, not in the schema", path)
			return
		}
		compare(t, root, n.Items, typ.Elem(), path+"[]")
	case typ.Kind() == reflect.Struct:
		var fields, required []string
		for f := range typ.Fields() {
			name, opt, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue // not written
			}
			fields = append(fields, name)
			if opt != "omitempty" {
				required = append(required, name)
			}
			if p := n.Properties[name]; p == nil {
				t.Errorf("%s.%s: in the model, not in the schema", path, name)
			} else {
				compare(t, root, p, f.Type, path+"."+name)
			}
		}
		for name := range n.Properties {
			if !slices.Contains(fields, name) {
				t.Errorf("%s.%s: in the schema, not in the model", path, name)
			}
		}
		sort.Strings(required)
		have := slices.Clone(n.Required)
		sort.Strings(have)
		if !slices.Equal(required, have) {
			t.Errorf("%s: required %v in the schema, %v in the model", path, have, required)
		}
	}
}

func TestNames(t *testing.T) {
	if got := Names(); !slices.Equal(got, []string{"bisect", "comparison", "decisions", "history", "load", "policy", "report"}) {
		t.Errorf("Names() = %v", got)
	}
	if _, ok := Text("no such"); ok {
		t.Error("a schema that does not exist has a text")
	}
}

// A preset that is added to the folder of policies is one that editors complete.
func TestThePolicySchemaNamesEveryPreset(t *testing.T) {
	text, _ := Text("policy")
	var root struct {
		Properties struct {
			Preset struct{ Enum []string }
		}
	}
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	got, want := slices.Clone(root.Properties.Preset.Enum), policy.PresetNames()
	sort.Strings(got)
	sort.Strings(want)
	if !slices.Equal(got, want) {
		t.Errorf("presets %v in the schema, %v in the folder", got, want)
	}
}

// Reasons and warnings have the codes of one list in Go.
func TestTheComparisonSchemaNamesEveryCode(t *testing.T) {
	text, _ := Text("comparison")
	var root struct {
		Defs struct {
			Reason struct {
				Properties struct {
					Code struct{ Enum []comparison.Code }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(text), &root); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("../../../diff/comparison/verdict.go")
	if err != nil {
		t.Fatal(err)
	}
	var want []comparison.Code
	for _, m := range regexp.MustCompile(`(?m)^\t\w+ +Code = "(\w+)"`).FindAllSubmatch(source, -1) {
		want = append(want, comparison.Code(m[1]))
	}
	if len(want) < 20 {
		t.Fatalf("only %d codes are declared: %q", len(want), want)
	}
	want = append(want, comparison.Doubts()...)
	if got := root.Defs.Reason.Properties.Code.Enum; !slices.Equal(got, want) {
		t.Errorf("the schema has %q, want %q", got, want)
	}
}
