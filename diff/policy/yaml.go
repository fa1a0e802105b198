package policy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/wording"
)

// Bounds of a policy file, so that none can keep the parser busy for long or exhaust the stack.
const (
	maxPolicyBytes = 128 << 10
	maxPolicyDepth = 32   // of brackets, and of lists that begin on one line
	maxPolicyRows  = 1000 // rules, budgets, waivers or patterns in one list
	maxPolicyText  = 2000 // bytes of one value
	maxExpanded    = 5000 // metrics that all patterns of metrics mean together
)

type policyDoc struct {
	read     values
	known    []report.MetricDef
	expanded int             // metrics that patterns mean
	ids      map[string]bool // of rules and budgets
	open     func(name string) ([]byte, error)
	folder   string // of the file, from that of the first one
	extended int    // files that lead here
}

// values reads values out of a YAML tree, and remembers the first thing that is wrong, with its place.
//
// Why not decode into structs: errors of values (a unit, a metric, a level) need the line and the column just as errors
// of keys do, and anchors, tags and merge keys have no business in a policy.
type values struct{ err error }

// fail records an error at a node unless there is one already.
func (d *values) fail(n ast.Node, format string, args ...interface{}) {
	if d.err == nil {
		d.err = placed(n, fmt.Errorf(format, args...))
	}
}

// placed is an error with the line and the column of a node.
func placed(n ast.Node, err error) error {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return fmt.Errorf("line %d, column %d: %w", t.Position.Line, t.Position.Column, err)
	}
	return err
}

// parsePolicy parses a policy file, which holds one document: a mapping.
func parsePolicy(b []byte) (ast.Node, error) {
	if len(b) > maxPolicyBytes {
		return nil, fmt.Errorf("policy is larger than %d kB", maxPolicyBytes>>10)
	}
	if err := shallow(b); err != nil {
		return nil, err
	}
	f, err := parser.ParseBytes(b, 0)
	if err != nil {
		if at, ok := errors.AsType[yaml.Error](err); ok && at.GetToken() != nil && at.GetToken().Position != nil {
			p := at.GetToken().Position
			return nil, fmt.Errorf("line %d, column %d: %s", p.Line, p.Column, at.GetMessage())
		}
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(err, false, false)))
	}
	var body ast.Node
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, placed(doc.Body, errors.New("a second document; a policy file holds one"))
		}
		body = doc.Body
	}
	if body == nil {
		return nil, errors.New("policy is empty; write `version: 1` first, then preset, rules or budgets")
	}
	return body, nil
}

// shallow refuses text whose nesting the parser would follow by recursion.
func shallow(b []byte) error {
	line, depth := 1, 0
	entries, start := 0, true // "- ", "? " and the like at the start of a line
	for _, c := range b {
		switch c {
		case '\n':
			line, entries, start = line+1, 0, true
			continue
		case '[', '{':
			depth, start = depth+1, false
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?', '&', '!', ':':
			if start {
				entries++
			}
		case ' ', '\t':
		default:
			start = false
		}
		if depth > maxPolicyDepth || entries > maxPolicyDepth {
			return fmt.Errorf("line %d: nested more than %d deep", line, maxPolicyDepth)
		}
	}
	return nil
}

// fields are the values of a mapping by key, which is one of keys; without keys it is any. what names the mapping in
// errors, as in "a rule".
func (d *values) fields(n ast.Node, what string, keys ...string) map[string]ast.Node {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		d.fail(n, "%s is expected to be a mapping%s", what, strings.TrimSuffix(" with "+list(keys), " with "))
		return nil
	}
	out := make(map[string]ast.Node, len(m.Values))
	for _, v := range m.Values {
		key := d.key(v.Key)
		switch _, twice := out[key]; {
		case d.err != nil:
			return nil
		case len(keys) > 0 && !slices.Contains(keys, key):
			has := "; " + what + " has " + list(keys)
			if what == "match" {
				has += "; for a label write labels: {" + Cut(key) + ": …} beside metric"
			}
			d.fail(v.Key, "unknown key %q%s", Cut(key), cmp.Or(meant(key, keys), has))
			return nil
		case twice:
			d.fail(v.Key, "key %q is there twice", Cut(key))
			return nil
		}
		out[key] = v.Value
	}
	return out
}

// pairs are the keys and values of a mapping of text to text.
func (d *values) pairs(n ast.Node, what string) map[string]string {
	f := d.fields(n, what)
	out := make(map[string]string, len(f))
	for _, key := range slices.Sorted(maps.Keys(f)) {
		out[key] = d.text(f[key], key)
	}
	return out
}

func (d *values) key(n ast.MapKeyNode) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	if n.IsMergeKey() {
		d.fail(n, "merge keys are not read in a policy; write the values out")
		return ""
	}
	return n.GetToken().Value
}

// text is a scalar as it is written; what names it in errors.
func (d *values) text(n ast.Node, what string) string {
	var s string
	switch v := n.(type) {
	case *ast.StringNode:
		s = v.Value
	case *ast.LiteralNode:
		s = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		s = v.GetToken().Value
	case *ast.NullNode:
		d.fail(n, "%s has no value", what)
	case *ast.AliasNode, *ast.AnchorNode, *ast.TagNode:
		d.fail(n, "%s: anchors, aliases and tags are not read in a policy; write the value out", what)
	default:
		d.fail(n, "%s is expected to be one value", what)
	}
	if len(s) > maxPolicyText {
		d.fail(n, "%s has %d bytes, at most %d are read", what, len(s), maxPolicyText)
	}
	return s
}

// items are the entries of a list.
func (d *values) items(n ast.Node, what string) []ast.Node {
	s, ok := n.(*ast.SequenceNode)
	switch {
	case !ok:
		d.fail(n, "%s is expected to be a list", what)
		return nil
	case len(s.Values) > maxPolicyRows:
		d.fail(n, "%s has %d entries, at most %d are read", what, len(s.Values), maxPolicyRows)
		return nil
	}
	return s.Values
}

// word is a scalar that is one of several words.
func (d *values) word(n ast.Node, what string, words ...string) string {
	s := d.text(n, what)
	if d.err != nil || slices.Contains(words, s) {
		return s
	}
	d.fail(n, "%s %q is not one of %s%s", what, Cut(s), list(words), meant(s, words))
	return ""
}

func list(words []string) string { return strings.Join(words, ", ") }

// Cut is the start of text that is quoted in an error.
func Cut(s string) string { return CutTo(s, 60) }

// CutTo is the start of a text, at most so many characters of it.
func CutTo(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// meant asks whether a word was meant that is like s; empty if there is none.
func meant(s string, words []string) string {
	near := nearestWord(s, words)
	if near == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// nearestWord is the one with the fewest edits to s, if few are enough; else empty.
func nearestWord(s string, words []string) string {
	best, least := "", max(2, len(s)/3)+1
	if len(s) > maxIDText {
		return ""
	}
	for _, w := range words {
		if n := wording.Edits(s, w); n < least {
			best, least = w, n
		}
	}
	return best
}
