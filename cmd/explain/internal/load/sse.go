package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"time"
)

// maxEvent is the largest event of a stream, in bytes.
const maxEvent = 8 << 20

// errNotSSE: the response is not a server-sent-event stream.
var errNotSSE = errors.New("not a stream of server-sent events")

// events reads server-sent events: the data of each event, its lines joined. It skips comments and other fields; any
// other line is an error, so that a server that streams garbage does not look slow.
type events struct {
	from  io.Reader
	read  func() time.Time // called after each read that returned bytes; returns their arrival time
	at    time.Time        // when the bytes last read left the socket
	lines *bufio.Scanner
	data  []byte
	begun bool // past the byte order mark that a stream may begin with
}

func newEvents(r io.Reader, buf []byte, read func() time.Time) *events {
	e := &events{from: r, read: read}
	e.lines = bufio.NewScanner(e)
	e.lines.Buffer(buf, maxEvent)
	e.lines.Split(splitLine)
	return e
}

// Read reads the stream, and notes when its bytes arrived.
func (e *events) Read(b []byte) (int, error) {
	n, err := e.from.Read(b)
	if n > 0 {
		e.at = e.read()
	}
	return n, err
}

// splitLine finds the next line, which ends with LF, CRLF or CR. A CR at the end of what was read may be half of a
// CRLF: only the next byte shows which.
func splitLine(text []byte, atEnd bool) (length int, line []byte, err error) {
	i := bytes.IndexAny(text, "\r\n")
	if i < 0 || text[i] == '\r' && i+1 == len(text) && !atEnd {
		return 0, nil, nil
	}
	if bytes.HasPrefix(text[i:], []byte("\r\n")) {
		return i + 2, text[:i], nil
	}
	return i + 1, text[:i], nil
}

// next returns the data of the next event, valid until the next call, or io.EOF at the end of the stream. It drops an
// event that the end of the stream cuts off, as the standard demands.
func (e *events) next() ([]byte, error) {
	e.data = e.data[:0]
	for have := false; e.lines.Scan(); {
		line := e.lines.Bytes()
		if !e.begun {
			line, e.begun = bytes.TrimPrefix(line, []byte("\ufeff")), true
		}
		field, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case len(line) == 0 && have:
			return e.data, nil
		case len(line) == 0, line[0] == ':':
		case string(field) == "data":
			if have {
				e.data = append(e.data, '\n')
			}
			e.data, have = append(e.data, bytes.TrimPrefix(value, []byte{' '})...), true
			if len(e.data) > maxEvent {
				return nil, errNotSSE
			}
		case !slices.Contains([]string{"event", "id", "retry"}, string(field)):
			return nil, errNotSSE
		}
	}
	switch err := e.lines.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, errNotSSE
	default:
		return nil, err
	}
}

type event struct {
	token         bool  // holds text of the answer
	finished      bool  // states why the answer ended
	failed        bool  // reports an error
	input, output int64 // tokens, by the server's own count; -1: not stated
}

// done is the data of the event that ends a stream.
var done = []byte("[DONE]")

// completion is the part of OpenAI's completion objects that a load needs: of /v1/completions (text) and of
// /v1/chat/completions (delta).
type completion struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Text         string      `json:"text"`
		Delta        chatMessage `json:"delta"`
		FinishReason string      `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		Input  int64 `json:"prompt_tokens"`
		Output int64 `json:"completion_tokens"`
	} `json:"usage"`
}

// chatMessage is a piece of a message. Reasoning has two names: vLLM's older and newer one.
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
	text := m.Content + m.Reasoning + m.ReasoningContent
	for _, call := range m.ToolCalls {
		text += call.Function.Arguments
	}
	return text != ""
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
	if err := json.Unmarshal(data, &c); err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) {
		return e, false
	}
	for _, choice := range c.Choices {
		e.token = e.token || choice.Text != "" || choice.Delta.hasText()
		e.finished = e.finished || choice.FinishReason != ""
		// what vLLM and SGLang give as the reason of an answer that they gave up
		e.failed = e.failed || choice.FinishReason == "abort" || choice.FinishReason == "error"
	}
	e.failed = e.failed || len(c.Error) > 0 && string(c.Error) != "null" || c.Object == "error"
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
