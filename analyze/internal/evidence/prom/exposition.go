package prom

import (
	"slices"
	"strconv"
	"strings"
)

// sample is one line of the text format, of Prometheus and of OpenMetrics alike:
//
//	vllm:request_success_total{engine="0",finished_reason="stop"} 12.0 1760000000 # {trace_id="x"} 0.05
//	name                      labels                              value time      exemplar
//
// Time and exemplar are checked and left out. So are declarations (# TYPE …): an engine's names say what they are of.
type sample struct {
	name   string
	labels []label
	value  float64
}

type label struct{ name, value string }

// parseSample reads a line; ok is false where it is no sample.
func parseSample(line []byte) (s sample, ok bool) {
	text := string(line)
	end := strings.IndexAny(text, "{ \t")
	if end < 1 || !isName(text[:end]) {
		return s, false
	}
	s.name, text = text[:end], text[end:]
	if text[0] == '{' {
		if s.labels, text, ok = parseLabels(text[1:]); !ok {
			return s, false
		}
	}
	text, _, _ = strings.Cut(text, " # {")
	numbers := strings.Fields(text)
	if len(numbers) < 1 || len(numbers) > 2 {
		return s, false
	}
	for i := len(numbers) - 1; i >= 0; i-- { // the value last: it stays
		var err error
		if s.value, err = strconv.ParseFloat(numbers[i], 64); err != nil {
			return s, false
		}
	}
	return s, true
}

// isName reports whether text is a name of the format: letters, digits, underscores and colons, and no digit first.
func isName(text string) bool {
	for i, c := range []byte(text) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return text != ""
}

// unescape takes back what the format escapes in the value of a label.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n")

// parseLabels reads name="value",… up to the closing brace; rest is what follows it.
func parseLabels(text string) (list []label, rest string, ok bool) {
	for {
		text = strings.TrimLeft(text, " \t")
		if rest, ok := strings.CutPrefix(text, "}"); ok {
			return list, rest, true
		}
		name, after, found := strings.Cut(text, `="`)
		if !found || !isName(name) {
			return nil, "", false
		}
		end := 0
		for end < len(after) && after[end] != '"' {
			if after[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(after) {
			return nil, "", false
		}
		list = append(list, label{name, unescape.Replace(after[:end])})
		text = strings.TrimLeft(after[end+1:], " \t")
		if !strings.HasPrefix(text, "}") {
			if text, ok = strings.CutPrefix(text, ","); !ok {
				return nil, "", false
			}
		}
	}
}

// get is the value of a label; empty where the sample has none of that name.
func (s sample) get(name string) string {
	for _, l := range s.labels {
		if l.name == name {
			return l.value
		}
	}
	return ""
}

// series names the labels without le: the buckets, the sum and the count of one histogram share it.
func (s sample) series() string {
	var parts []string
	for _, l := range s.labels {
		if l.name != "le" {
			parts = append(parts, l.name+"="+strconv.Quote(l.value))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, ",")
}
