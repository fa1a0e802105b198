package serverlog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// messageKeys are the fields of a JSON log record that hold the program's output, the most specific first.
var messageKeys = []string{`"message"`, `"msg"`, `"event"`}

// lineKeys are the fields in which a log driver (Docker, journald, Google Cloud, Loki) puts a line of the program.
var lineKeys = []string{`"log"`, `"MESSAGE"`, `"textPayload"`, `"line"`}

// maxDrivers bounds the log drivers that wrapped a line one after the other: Loki behind Docker are two.
const maxDrivers = 4

// program is a line as the program wrote it: without what log drivers wrapped around it.
func program(line []byte) []byte {
	for range maxDrivers {
		inner, ok := driverLine(skipSpace(line))
		if !ok {
			break
		}
		line = inner
	}
	return line
}

// driverLine unwraps the program's line from a line of a log driver.
func driverLine(line []byte) ([]byte, bool) {
	if len(line) == 0 || line[0] != '{' {
		return nil, false
	}
	if _, found := anyField(line, messageKeys); found {
		return nil, false
	}
	raw, found := anyField(line, lineKeys)
	return bytes.TrimRight(unescape(raw), "\r\n"), found
}

// timeKeys are the fields that hold the time of a record.
var timeKeys = []string{`"timestamp"`, `"time"`, `"asctime"`, `"@timestamp"`, `"ts"`}

// levelKeys and loggerKeys are the fields in which formatters put the level, and the name of who logs.
var (
	levelKeys  = []string{`"levelname"`, `"level"`}
	loggerKeys = []string{`"logger"`, `"name"`}
)

// jsonRecord takes the header and the message out of a line that is a JSON object, as JSON formatters write them. The
// rest of the object is not checked.
func jsonRecord(line []byte) (h header, msg []byte, ok bool) {
	h.clock = NoClock
	if len(line) == 0 || line[0] != '{' {
		return h, nil, false
	}
	raw, ok := anyField(line, messageKeys)
	if !ok {
		return h, nil, false
	}
	for _, k := range timeKeys {
		if text, found := jsonField(line, k); found {
			if c, y, _, good := clockText(text); good {
				h.clock, h.year = c, y
				break
			}
		}
	}
	level, _ := anyField(line, levelKeys)
	if l := strings.ToUpper(string(level[:min(len(level), len("CRITICAL"))])); slices.Contains(levels, l) {
		h.level = l[0]
	}
	logger, _ := anyField(line, loggerKeys)
	h.http = hasPrefix(logger, "uvicorn")
	return h, unescape(raw), true
}

// anyField is the first of some fields that the object has.
func anyField(line []byte, keys []string) (raw []byte, found bool) {
	for _, k := range keys {
		if raw, found = jsonField(line, k); found {
			break
		}
	}
	return raw, found
}

// jsonField is the raw text of a string field, without its quotes.
func jsonField(line []byte, quoted string) ([]byte, bool) {
	rest, _ := after(line, quoted)
	rest, colon := cutPrefix(skipSpace(rest), ":")
	rest, quote := cutPrefix(skipSpace(rest), `"`)
	for i := 0; colon && quote && i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return rest[:i], true
		}
	}
	return nil, false
}

// unescape resolves the escapes of a JSON string. What breaks JSON's rules stays as it is.
func unescape(raw []byte) []byte {
	var s string
	if bytes.IndexByte(raw, '\\') < 0 || json.Unmarshal(slices.Concat([]byte{'"'}, raw, []byte{'"'}), &s) != nil {
		return raw
	}
	return []byte(s)
}
