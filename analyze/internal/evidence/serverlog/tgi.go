package serverlog

import (
	"bytes"
	"slices"
	"time"
)

const tgiEngine = "TGI"

// Timed is a request as the router of text-generation-inference logs it at its end. Unknown durations are -1.
type Timed struct {
	Clock                          int64 // of its end
	Total, Validation, Queue, Work time.Duration
	PerToken                       time.Duration // Work by the tokens that were generated
}

// tgiCalls are the requests of the router that generate.
var tgiCalls = []string{"generate", "generate_stream", "compat_generate", "chat_completions", "completions"}

// tgiRequest takes the router's line about a request that it answered:
//
//	2026-12-10T21:50:03.478010Z  INFO chat_completions{total_time="735.2ms" validation_time="955.5µs" queue_time="73.1µs"
//	inference_time="734.1ms" time_per_token="36.7ms" seed="Some(1)"}: text_generation_router::server: router/src/server.rs:622: Success
//
// After the brace the parameters of the request may follow, which hold text of the client. The times follow them, and
// quotes of a client are escaped: its text can never look like a time.
func tgiRequest(m, reach []byte) (t Timed, ok bool) {
	head, rest := tgiHead(m, reach, " INFO ")
	call, _, open := bytes.Cut(rest[:min(len(rest), 32)], []byte("{"))
	if head == nil || !open || !slices.Contains(tgiCalls, string(call)) {
		return t, false
	}
	end := bytes.LastIndex(rest, []byte("}: text_generation_router"))
	if end < 0 || !bytes.HasSuffix(bytes.TrimSpace(rest), []byte(": Success")) {
		return t, false
	}
	times := rest[:end]
	if t.Clock, _, _, ok = clockText(head); !ok {
		t.Clock = NoClock
	}
	ok = true
	for _, f := range []struct {
		key string
		to  *time.Duration
	}{{"total_time", &t.Total}, {"validation_time", &t.Validation}, {"queue_time", &t.Queue},
		{"inference_time", &t.Work}, {"time_per_token", &t.PerToken}} {
		*f.to = -1
		at := bytes.LastIndex(times, []byte(f.key+`="`))
		if at < 0 {
			continue
		}
		text := until(times[at+len(f.key)+2:], `"`)
		if d, err := time.ParseDuration(string(text[:min(len(text), 40)])); err == nil && d >= 0 {
			*f.to = d
		}
	}
	return t, t.Total >= 0
}

// tgiEvent takes the lines of the launcher and the router about the server itself: that it serves, that it was asked to
// stop, and errors, without those of clients.
func (r *reader) tgiEvent(m, reach []byte) bool {
	if _, rest := tgiHead(m, reach, " ERROR "); bytes.Contains(rest, []byte("text_generation_")) {
		at := max(0, bytes.LastIndex(rest, []byte("}: ")))
		r.d.Events.record(rest[at:], nil, r.last)
		return true
	}
	_, rest := tgiHead(m, reach, " INFO ")
	switch {
	case hasPrefix(rest, "text_generation_launcher: Args"):
		r.start.server = true
	case !hasPrefix(rest, "text_generation_"):
		return false
	case stops(rest), bytes.HasSuffix(bytes.TrimSpace(rest), []byte(": signal received, starting graceful shutdown")):
		r.d.Events.stop()
	case bytes.HasSuffix(bytes.TrimSpace(rest), []byte(": Connected")):
		r.ready()
	default:
		return false
	}
	setFirst(&r.start.Engine, tgiEngine)
	return true
}

// tgiHead splits a line of a program written in Rust at its level: the time, and the text after it.
func tgiHead(m, reach []byte, level string) (clock, rest []byte) {
	at := bytes.Index(reach, []byte(level))
	if at < 0 {
		return nil, nil
	}
	clock = bytes.TrimRight(reach[:at], " ")
	clock = clock[bytes.LastIndexByte(clock, ' ')+1:]
	if !bytes.HasSuffix(clock, []byte("Z")) {
		return nil, nil
	}
	return clock, skipSpace(m[at+len(level):])
}

// tgiLine reports whether a line is of text-generation-inference: a request, or its launcher or router.
func tgiLine(m, reach []byte) bool {
	_, rest := tgiHead(m, reach, " INFO ")
	if hasPrefix(rest, "text_generation_launcher: ") || hasPrefix(rest, "text_generation_router") {
		return true
	}
	_, ok := tgiRequest(m, reach)
	return ok
}

// tgi takes a request of the router.
func tgi(r *reader, t Timed) verdict {
	setFirst(&r.start.Engine, tgiEngine)
	r.start.ready = true
	t.Clock = r.at(t.Clock, true)
	if !keep(&r.d.Requests.Timed, t, maxRequests) {
		r.d.Requests.Dropped++
	}
	return understood
}
