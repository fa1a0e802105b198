package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
)

// Unknown is something that cannot be known, in the form that all tools use.
type Unknown struct {
	What string `json:"what"` // a metric, a section, a change
	Code string `json:"code"` // a reason: explain doc CODE
	Why  string `json:"why"`
	Do   string `json:"do"` // what would make it known; empty if nothing would
}

// Next is a suggested follow-up call.
type Next struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Why       string         `json:"why"`
}

// answer is the content of one answer: facts, lists that can be cut, what is unknown, suggested next calls.
type answer struct {
	fields []field
}

type field struct {
	name  string
	value json.RawMessage // nil: a list
	rows  [][]byte        // rows of a list
	left  int             // rows left out, including those that were never added
}

func (a *answer) put(name string, value any) {
	a.fields = append(a.fields, field{name: name, value: encode(value)})
}

// add adds a list; more is the number of its rows that are not in rows.
func add[T any](a *answer, name string, rows []T, more int) {
	encoded := lists.Map(rows, func(row T) []byte { return encode(row) })
	a.fields = append(a.fields, field{name: name, left: more, rows: encoded})
}

// addMatching adds the rows whose text holds what was asked for, as many as were asked for.
func addMatching[T any](to *answer, name string, rows []T, a arguments, text func(T) string) {
	rows = lists.Filter(rows, func(row T) bool { return matches(text(row), a.Match) })
	kept := rows[:min(len(rows), a.Limit)]
	add(to, name, kept, len(rows)-len(kept))
}

// text returns the answer as JSON of at most [MaxAnswer] bytes. It drops rows from the end of the longest list until
// the answer fits.
func (a *answer) text(unknown []Unknown, next []Next) string {
	add(a, "unknown", unknown, 0)
	add(a, "next", next, 0)
	for {
		out := a.json()
		if len(out) <= MaxAnswer {
			return string(out)
		}
		size := func(f field) int { return lists.Sum(f.rows, func(row []byte) int { return len(row) }) }
		f := &a.fields[0]
		for i := range a.fields {
			if size(a.fields[i]) > size(*f) {
				f = &a.fields[i]
			}
		}
		if len(f.rows) == 0 { // facts alone, such as the columns of a stranger's table
			return `{"unknown":[{"what":"the answer","code":"too_long","why":"it does not fit","do":""}],"next":[]}`
		}
		drop := max(1, len(f.rows)/8)
		f.rows = f.rows[:len(f.rows)-drop]
		f.left += drop
	}
}

func (a *answer) json() []byte {
	var parts [][]byte
	for _, f := range a.fields {
		if f.value == nil {
			f.value = fmt.Appendf(nil, "[%s]", bytes.Join(f.rows, []byte(",")))
		}
		parts = append(parts, fmt.Appendf(nil, "%q:%s", f.name, f.value))
		if f.left > 0 {
			parts = append(parts, fmt.Appendf(nil, "%q:%d", f.name+"_left_out", f.left))
		}
	}
	return fmt.Appendf(nil, "{%s}", bytes.Join(parts, []byte(",")))
}

// encode returns a value as JSON; null if it cannot be encoded, such as NaN.
func encode(v any) json.RawMessage {
	text, err := report.JSON(v, "")
	if err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(text)
}

// maxText bounds one text in an answer, in bytes.
const maxText = 480

// plain makes text of a capture fit for an answer: visible and short.
func plain(s string) string { return upTo(maxText, s) }

func upTo(most int, s string) string {
	s = render.Visible(s)
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// short returns a number with seven significant digits, so that 1/3 does not take 18 bytes; whole numbers stay whole.
func short(v *float64) any {
	switch {
	case v == nil || math.IsNaN(*v) || math.IsInf(*v, 0):
		return nil
	case *v == math.Trunc(*v) && math.Abs(*v) < 1e15:
		return int64(*v)
	}
	r, _ := strconv.ParseFloat(strconv.FormatFloat(*v, 'g', 7, 64), 64)
	return r
}
