package load

import (
	"bytes"
	"encoding/json"
)

// event is what one event of a stream, or one whole answer, says.
type event struct {
	token         bool  // it has text of the answer
	finished      bool  // it says why the answer ended
	failed        bool  // it reports an error
	input, output int64 // tokens, by the server's own count; -1: not stated
}

var (
	done       = []byte("[DONE]")
	textFields = [][]byte{[]byte(`"text"`), []byte(`"content"`), []byte(`"reasoning_content"`), []byte(`"reasoning"`), []byte(`"arguments"`)}

	fieldChoices    = []byte(`"choices"`)
	fieldUsage      = []byte(`"usage"`)
	fieldError      = []byte(`"error"`)
	fieldFinish     = []byte(`"finish_reason"`)
	fieldInput      = []byte(`"prompt_tokens"`)
	fieldOutput     = []byte(`"completion_tokens"`)
	valueErrorQuote = []byte(`"error"`)
	fieldObject     = []byte(`"object"`)
)

// parseEvent reads one JSON object of the API; ok is false where it is none.
//
// Why not into structs: it runs once per token, while the time of the next one is measured. Fields are looked for by their
// quoted names, which occur nowhere else: a quote inside a string is escaped, so `"text":` there reads `\"text\":`.
func parseEvent(data []byte) (e event, ok bool) {
	e.input, e.output = -1, -1
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '{' || !json.Valid(data) {
		return e, false
	}
	choices := value(data, fieldChoices)
	if choices != nil {
		for _, f := range textFields {
			if hasText(choices, f) {
				e.token = true
				break
			}
		}
		if v := value(choices, fieldFinish); len(v) > 0 && v[0] == '"' {
			e.finished = true
		}
	} else {
		if v := value(data, fieldError); len(v) > 0 && v[0] != 'n' {
			e.failed = true
		}
		if v := value(data, fieldObject); bytes.HasPrefix(v, valueErrorQuote) {
			e.failed = true
		}
	}
	if u := value(data, fieldUsage); len(u) > 0 && u[0] == '{' {
		e.input, e.output = count(value(u, fieldInput)), count(value(u, fieldOutput))
	}
	return e, true
}

// value is what follows the first field of this quoted name, to the end of the data; nil where there is none.
func value(data, field []byte) []byte {
	for {
		i := bytes.Index(data, field)
		if i < 0 {
			return nil
		}
		data = data[i+len(field):]
		if v := bytes.TrimLeft(data, " \t\r\n"); len(v) > 0 && v[0] == ':' {
			return bytes.TrimLeft(v[1:], " \t\r\n")
		}
	}
}

// hasText reports whether some field of this name is a string that is not empty.
func hasText(data, field []byte) bool {
	for {
		v := value(data, field)
		if v == nil {
			return false
		}
		if len(v) > 1 && v[0] == '"' && v[1] != '"' {
			return true
		}
		data = v
	}
}

// maxCount bounds what a server may say it counted.
const maxCount = 1 << 40

// count is the number that v begins with, or -1.
func count(v []byte) int64 {
	if len(v) == 0 || v[0] < '0' || v[0] > '9' {
		return -1
	}
	var n int64
	for _, c := range v {
		if c < '0' || c > '9' {
			if c == '.' || c == 'e' || c == 'E' {
				return -1
			}
			return n
		}
		if n = n*10 + int64(c-'0'); n > maxCount {
			return -1
		}
	}
	return n
}
