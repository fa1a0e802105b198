package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// maxEvent is the largest event of a stream, in bytes.
const maxEvent = 8 << 20

// errNotSSE: the response is not a server-sent-event stream.
var errNotSSE = errors.New("not a stream of server-sent events")

// events reads server-sent events: the data of each event, its lines joined. It skips comments and other fields; any
// other line is an error, so that a server that streams garbage does not look slow.
type events struct {
	r          io.Reader
	read       func() time.Time // called after each read that returned bytes; returns their arrival time
	buf        []byte
	start, end int
	at         time.Time // when the bytes last read left the socket
	err        error
	joined     []byte
	begun      bool // past the byte order mark that a stream may begin with
}

func newEvents(r io.Reader, buf []byte, read func() time.Time) *events {
	return &events{r: r, buf: buf, read: read}
}

// next returns the data of the next event, valid until the next call, or io.EOF at the end of the stream. It drops an
// event that the end of the stream cuts off, as the standard demands.
func (e *events) next() ([]byte, error) {
	var first []byte // the only data line of most events
	have := 0
	for {
		line, err := e.line(&first)
		if err != nil {
			return nil, err
		}
		if !e.begun {
			line, e.begun = bytes.TrimPrefix(line, []byte("\ufeff")), true
		}
		if len(line) == 0 {
			switch {
			case have == 1:
				return first, nil
			case have > 1:
				return e.joined, nil
			}
			continue
		}
		if line[0] == ':' {
			continue
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		switch string(field) {
		case "data":
			value = bytes.TrimPrefix(value, []byte{' '})
			switch have++; have {
			case 1:
				first = value
			case 2:
				e.joined = append(append(append(e.joined[:0], first...), '\n'), value...)
			default:
				e.joined = append(append(e.joined, '\n'), value...)
			}
			if len(e.joined) > maxEvent {
				return nil, errNotSSE
			}
		case "event", "id", "retry":
		default:
			return nil, errNotSSE
		}
	}
}

// line returns the next line without its end: LF, CRLF or CR. keep is a slice of the buffer that must stay valid.
func (e *events) line(keep *[]byte) ([]byte, error) {
	scanned := e.start
	for {
		if i := bytes.IndexAny(e.buf[scanned:e.end], "\r\n"); i >= 0 {
			i += scanned
			// A CR at the end of the buffer may be half of a CRLF: only the next byte shows which.
			if e.buf[i] == '\n' || i+1 < e.end || e.err != nil {
				line := e.buf[e.start:i]
				e.start = i + 1
				if e.buf[i] == '\r' && e.start < e.end && e.buf[e.start] == '\n' {
					e.start++
				}
				return line, nil
			}
			scanned = i
		} else {
			scanned = e.end
		}
		if e.err != nil {
			return nil, e.err
		}
		if err := e.fill(&scanned, keep); err != nil {
			return nil, err
		}
	}
}

// fill reads more bytes. It moves the kept part of the event along with the buffer.
func (e *events) fill(scanned *int, keep *[]byte) error {
	if e.start == e.end && *keep == nil {
		e.start, e.end, *scanned = 0, 0, 0
	}
	if e.end == len(e.buf) {
		from := e.start
		if *keep != nil { // a copy, as the buffer moves; rare: an event over two reads with two lines
			*keep = bytes.Clone(*keep)
		}
		n := copy(e.buf, e.buf[from:e.end])
		e.start, e.end, *scanned = 0, n, *scanned-from
		if n == len(e.buf) {
			if n >= maxEvent {
				return errNotSSE
			}
			bigger := make([]byte, 2*n)
			copy(bigger, e.buf)
			e.buf = bigger
		}
	}
	n, err := e.r.Read(e.buf[e.end:])
	e.end += n
	if n > 0 {
		e.at = e.read()
	}
	e.err = err
	return nil
}

// event is the content of one event of a stream, or of one whole answer.
type event struct {
	token         bool  // holds text of the answer
	finished      bool  // states why the answer ended
	failed        bool  // reports an error
	input, output int64 // tokens, by the server's own count; -1: not stated
}

// done is the data of the event that ends a stream.
var done = []byte("[DONE]")

// completion is the part of OpenAI's completion objects that a load needs: of /v1/completions (text) and of
// /v1/chat/completions (message, or delta if streamed).
type completion struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	} `json:"usage"`
}

type choice struct {
	Text         string      `json:"text"`
	Delta        chatMessage `json:"delta"`
	Message      chatMessage `json:"message"`
	FinishReason string      `json:"finish_reason"`
}

// chatMessage is a message or a piece of one. Reasoning has two names: vLLM's older and newer one.
type chatMessage struct {
	Content          string `json:"content"`
	Reasoning        string `json:"reasoning"`
	ReasoningContent string `json:"reasoning_content"`
	ToolCalls        []struct {
		Function struct {
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

func (m *chatMessage) hasText() bool {
	if m.Content != "" || m.Reasoning != "" || m.ReasoningContent != "" {
		return true
	}
	for _, call := range m.ToolCalls {
		if call.Function.Arguments != "" {
			return true
		}
	}
	return false
}

// parseEvent reads one JSON object of the API; ok is false if data is not one. It ignores a field of an unexpected
// type: additions to a server's answers must not end a load.
func parseEvent(data []byte) (e event, ok bool) {
	e.input, e.output = -1, -1
	if data = bytes.Trim(data, " \t\r\n"); !bytes.HasPrefix(data, []byte{'{'}) {
		return e, false
	}
	var c completion
	c.Usage.Input, c.Usage.Output = -1, -1
	var wrongType *json.UnmarshalTypeError
	if err := json.Unmarshal(data, &c); err != nil && !errors.As(err, &wrongType) {
		return e, false
	}
	for i := range c.Choices {
		choice := &c.Choices[i]
		e.token = e.token || choice.Text != "" || choice.Delta.hasText() || choice.Message.hasText()
		e.finished = e.finished || choice.FinishReason != ""
	}
	e.failed = len(c.Error) > 0 && string(c.Error) != "null" || c.Object == "error"
	e.input, e.output = tokenCount(c.Usage.Input), tokenCount(c.Usage.Output)
	return e, true
}

// maxCount is the most tokens that a server's count for one request may state.
const maxCount = 1 << 40

// tokenCount returns n, or -1 if n cannot be a count.
func tokenCount(n int64) int64 {
	if n < 0 || n > maxCount {
		return -1
	}
	return n
}
