package serverlog

import (
	"bytes"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// header is the part of a log record before its message.
type header struct {
	level byte   // first letter of the level; 0 unknown
	clock int64  // seconds, see clock.go; NoClock unknown
	year  bool   // the timestamp has a year
	vllm  bool   // the form of vLLM's own formatter: level, date, source file
	http  bool   // uvicorn's form: level, a colon, spaces
	at    int    // where it begins in the line
	tags  []byte // SGLang: the tags after the date, as DP0 TP0
}

// fails reports whether the level is that of an error.
func (h *header) fails() bool { return h.level == 'E' || h.level == 'C' }

// headReach is how far into a line its header may start, in bytes: docker, kubectl, journald, compose and process
// prefixes stand before it.
const headReach = 256

// findHeader finds the header of a record behind any prefix, and the message after it. For a line without a header ok
// is false, and the message is the line.
func findHeader(line []byte) (h header, msg []byte, ok bool) {
	for i := 0; i < len(line) && i < headReach; i++ {
		switch line[i] {
		case 'I', 'W', 'E', 'D', 'C':
			if i > 0 && isWord(line[i-1]) && !endsANSI(line[:i]) {
				continue
			}
			if h, msg, ok := levelHeader(line, i); ok {
				h.at = i
				return h, msg, true
			}
		case '[':
			if h, msg, ok := dateHeader(line[i:]); ok {
				h.at = i
				return h, msg, true
			}
		}
	}
	return header{clock: NoClock}, line, false
}

func isWord(c byte) bool {
	return isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '"' || c == '\''
}

// endsANSI reports whether b ends with a colour: …[0;36m.
func endsANSI(b []byte) bool {
	rest, ok := bytes.CutSuffix(b, []byte("m"))
	return ok && bytes.HasSuffix(bytes.TrimRight(rest, "0123456789;"), []byte("["))
}

var levels = []string{"INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "WARN"}

// levelHeader reads a header that starts with a level at i:
//
//	INFO 02-01 13:22:00 [core.py:348] message      vLLM
//	INFO 05-25 06:50:29 metrics.py:486] message    vLLM before 0.8
//	INFO:     127.0.0.1:1 - "POST /v1 …            uvicorn
//	2026-02-01 13:18:22,229 - INFO - message       logging's usual form
func levelHeader(line []byte, i int) (h header, msg []byte, ok bool) {
	h = header{clock: NoClock}
	b := line[i:]
	for _, l := range levels {
		if !hasPrefix(b, l) {
			continue
		}
		h.level = l[0]
		b = skipANSI(b[len(l):])
		switch {
		case len(b) > 1 && b[0] == ':' && b[1] == ' ':
			h.http = true
			return h, skipSpace(b[1:]), true
		case i >= 3 && hasPrefix(b, " - ") && string(line[i-3:i]) == " - ":
			h.clock, h.year, _, _ = clockText(line)
			return h, b[3:], true
		case len(b) == 0 || b[0] != ' ':
			continue
		}
		var good bool
		if h.clock, h.year, b, good = clockText(skipGap(b)); !good {
			continue
		}
		msg, h.vllm = sourceFile(skipGap(b))
		return h, msg, true
	}
	return header{}, nil, false
}

// dateHeader reads SGLang's header: [2026-08-01 23:37:40 TP0] message. A program that writes to the same log may add
// its own header after it. Before 0.4 the date was missing, [23:37:40 TP0]: a time that starts anew every day cannot
// order records, so such a record has no time.
func dateHeader(b []byte) (h header, msg []byte, ok bool) {
	clock, year, rest, ok := clockText(b[1:])
	if !ok && len(b) > 3 && b[3] == ':' && undated().Match(b) {
		clock, rest = NoClock, b[9:]
	} else if !ok || !year {
		return header{}, nil, false
	}
	end := bytes.IndexByte(rest[:min(len(rest), 64)], ']')
	if end < 0 {
		return header{}, nil, false
	}
	h, msg = header{clock: clock, year: clock != NoClock, tags: rest[:end]}, skipGap(rest[end+1:])
	if len(msg) > 0 && msg[0] >= 'C' && msg[0] <= 'W' {
		if inner, rest, ok := levelHeader(msg, 0); ok {
			if inner.clock == NoClock {
				inner.clock, inner.year = h.clock, h.year
			}
			return inner, rest, true
		}
		if n := len(levelSource().Find(msg[:min(len(msg), 160)])); n > 0 {
			h.level, msg = msg[0], msg[n:]
		}
	}
	return h, msg, true
}

// levelSource is the level and the source file that SGLang since 0.5.4 writes after the date, in processes other than a
// scheduler: INFO engine.py:156: message.
var levelSource = pattern.New(`^(?:INFO|WARNING|ERROR|DEBUG|CRITICAL|WARN) [^ ]*\.py:[0-9]+: [ \t]*`)

// undated is the time of day alone, and what follows it.
var undated = pattern.New(`^\[(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9][\] ]`)

// sourceFile skips [core.py:348] or metrics.py:349] and reports whether it was there.
func sourceFile(b []byte) ([]byte, bool) {
	reach := b[:min(len(b), 160)]
	end := bytes.IndexByte(reach, ']')
	if end < 1 {
		return b, false
	}
	name := bytes.TrimRight(b[:end], "0123456789")
	if n := len(name); n == end || n < 2 || name[n-1] != ':' || bytes.IndexByte(name, ' ') >= 0 {
		return b, false
	}
	return skipGap(b[end+1:]), true
}

// skipANSI skips colours, also those that lost their escape character.
func skipANSI(b []byte) []byte {
	for {
		rest, ok := cutPrefix(bytes.TrimPrefix(b, []byte{0x1b}), "[")
		if ok {
			rest, ok = cutPrefix(bytes.TrimLeft(rest, "0123456789;"), "m")
		}
		if !ok {
			return b
		}
		b = rest
	}
}

// skipGap skips spaces and colours.
func skipGap(b []byte) []byte {
	for {
		rest := skipANSI(skipSpace(b))
		if len(rest) == len(b) {
			return b
		}
		b = rest
	}
}

func skipSpace(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return b
}

// process is the name in the first (NAME pid=N) or (NAME, pid=N) before a message, or nil.
func process(prefix []byte) []byte {
	if !bytes.Contains(prefix, []byte("pid=")) { // searching is slow
		return nil
	}
	if m := named().FindSubmatch(prefix); m != nil {
		return m[1]
	}
	return nil
}

var named = pattern.New(`\(([^(]*pid=[^)]*)\)`)

// plain is a message without its control sequences.
func plain(msg []byte) []byte {
	if bytes.IndexByte(msg, 0x1b) < 0 {
		return msg
	}
	return control().ReplaceAll(msg, nil)
}

var control = pattern.New(`\x1b(?:\[[^@-~]*[@-~]?|(?s:.)?)`)

// progress reports whether a line is a progress bar, and returns the text after its last state on the same line.
func progress(line []byte) (rest []byte, ok bool) {
	if !bytes.Contains(line, []byte("%|")) && !bytes.Contains(line, []byte("% Completed |")) {
		return nil, false
	}
	if n := len(barEnd().Find(line)); n > 0 {
		return line[n:], true
	}
	return nil, true
}

var barEnd = pattern.New(`(?s)^.*(?:it/s\]|s/it\]|profile\]|profile/s\]|\r)`)
