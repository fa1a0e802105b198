package serverlog

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// messageKeys are the fields of a JSON log record that hold the program's output, the most specific first.
var messageKeys = []string{`"message"`, `"msg"`, `"event"`}

// lineKeys are the fields in which a log driver (Docker, journald, Google Cloud, Loki) puts a line of the program.
var lineKeys = []string{`"log"`, `"MESSAGE"`, `"textPayload"`, `"line"`}

// maxDrivers bounds the log drivers that wrapped a line one after the other: Loki behind Docker are two.
const maxDrivers = 4

// driverLine unwraps the program's line from a line of a log driver, into scratch.
func driverLine(line, scratch []byte) ([]byte, bool) {
	for _, k := range messageKeys {
		if _, found := jsonField(line, k); found {
			return nil, false
		}
	}
	for _, k := range lineKeys {
		if raw, found := jsonField(line, k); found {
			return bytes.TrimRight(unescape(raw, scratch), "\r\n"), true
		}
	}
	return nil, false
}

// timeKeys are the fields that hold the time of a record.
var timeKeys = []string{`"timestamp"`, `"time"`, `"asctime"`, `"@timestamp"`, `"ts"`}

// jsonRecord takes the message out of a line that is a JSON object, as JSON formatters write them, into scratch. The
// rest of the object is not checked.
func jsonRecord(line, scratch []byte) (msg []byte, clock int64, year, ok bool) {
	for _, k := range messageKeys {
		if raw, found := jsonField(line, k); found {
			msg, ok = unescape(raw, scratch), true
			break
		}
	}
	clock = NoClock
	if !ok {
		return nil, clock, false, false
	}
	for _, k := range timeKeys {
		if raw, found := jsonField(line, k); found {
			if c, y, _, good := clockText(raw); good {
				clock, year = c, y
				break
			}
		}
	}
	return msg, clock, year, true
}

// jsonField is the raw text of a string field, without its quotes.
func jsonField(line []byte, quoted string) ([]byte, bool) {
	rest, ok := after(line, quoted)
	if !ok {
		return nil, false
	}
	rest = skipSpace(rest)
	if len(rest) == 0 || rest[0] != ':' {
		return nil, false
	}
	rest = skipSpace(rest[1:])
	if len(rest) == 0 || rest[0] != '"' {
		return nil, false
	}
	rest = rest[1:]
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case '"':
			return rest[:i], true
		}
	}
	return nil, false
}

// unescape resolves the escapes of a JSON string.
func unescape(raw, scratch []byte) []byte {
	out := scratch[:0]
	var high rune
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' || i+1 == len(raw) {
			out = append(out, c)
			continue
		}
		i++
		switch c = raw[i]; c {
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b', 'f':
			out = append(out, ' ')
		case 'u':
			r, good := hex4(raw[i+1:])
			if !good {
				out = append(out, '?')
				continue
			}
			i += 4
			switch {
			case utf16.IsSurrogate(r) && high == 0:
				high = r
				continue
			case high != 0:
				r, high = utf16.DecodeRune(high, r), 0
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
	}
	return out
}

func hex4(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case isDigit(c):
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
