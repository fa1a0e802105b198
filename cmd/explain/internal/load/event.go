package load

import (
	"bytes"
	"encoding/json"
	"errors"
)

// event is what one event of a stream, or one whole answer, says.
type event struct {
	token         bool  // it has text of the answer
	finished      bool  // it says why the answer ended
	failed        bool  // it reports an error
	input, output int64 // tokens, by the server's own count; -1: not stated
}

// done is the data of the event that ends a stream.
var done = []byte("[DONE]")

// completion is the part of OpenAI's completion objects that a load needs: of /v1/completions (text) and
// /v1/chat/completions (message, or delta where it streams).
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

// chatMessage is a message or a piece of one. Reasoning has two names: vLLM's older one and its newer one.
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

// parseEvent reads one JSON object of the API; ok is false where data is not one. A field of an unexpected type counts
// as absent: what a server adds to its answers must not end a load.
func parseEvent(data []byte) (e event, ok bool) {
	e.input, e.output = -1, -1
	if data = bytes.TrimSpace(data); !bytes.HasPrefix(data, []byte{'{'}) {
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

// maxCount bounds the tokens that a server may say it counted in one request.
const maxCount = 1 << 40

// tokenCount is n, or -1 where it cannot be a count.
func tokenCount(n int64) int64 {
	if n < 0 || n > maxCount {
		return -1
	}
	return n
}
