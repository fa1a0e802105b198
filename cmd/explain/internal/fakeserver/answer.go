package fakeserver

import (
	"fmt"
	"io"
	"net/http"
	"time"
)

// answer is one completion on its way.
type answer struct {
	s       *Server
	w       http.ResponseWriter
	r       *http.Request
	asked   *Asked
	plan    Plan
	arrived time.Time
	chat    bool
}

// Events, in the form in which vLLM writes them: with a text or a delta, and why the answer ended.
const (
	textEvent = `data: {"id":"cmpl-standin","object":"text_completion","created":1700000000,"model":"m","choices":[{"index":0,"text":%q,"logprobs":null,"finish_reason":%s,"stop_reason":null}],"usage":null}` + "\n\n"
	chatEvent = `data: {"id":"chatcmpl-standin","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{%s"content":%q},"logprobs":null,"finish_reason":%s}]}` + "\n\n"
)

// text is what each token reads.
func (a *answer) text() string {
	if a.plan.Fault == Empty {
		return ""
	}
	return " token"
}

// ended is the text of an event that says why the answer ended.
func (a *answer) ended(finish string) string {
	if a.chat {
		return fmt.Sprintf(chatEvent, "", a.text(), finish)
	}
	return fmt.Sprintf(textEvent, a.text(), finish)
}

// wait until a moment after the request came in; false: the client is gone.
func (a *answer) wait(d time.Duration) bool {
	left := d - time.Since(a.arrived)
	if left <= 0 {
		return a.r.Context().Err() == nil
	}
	select {
	case <-a.r.Context().Done():
		return false
	case <-time.After(left):
		return true
	}
}

// stream writes the tokens when they are due, counted from when the request came in, so that no delay adds up.
func (a *answer) stream() {
	a.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	rc := http.NewResponseController(a.w)
	n, at := len(a.plan.Gaps)+1, a.plan.TTFT
	for k := range n {
		if k == 0 && a.chat {
			a.write(fmt.Sprintf(chatEvent, `"role":"assistant",`, "", "null"))
		}
		if k > 0 {
			at += a.plan.Gaps[k-1]
		}
		if !a.wait(at) {
			return
		}
		if k == n/2 && a.half() {
			return
		}
		finish := "null"
		if k == n-1 {
			finish = `"length"`
		}
		a.write(a.ended(finish))
		_ = rc.Flush()
	}
	if usage := a.count(); usage != "" && a.asked.Options.IncludeUsage {
		a.write(`data: {"id":"cmpl-standin","object":"text_completion","created":1700000000,"model":"m","choices":[]` + usage + "}\n\n")
	}
	if !a.s.script.NoDone {
		a.write("data: [DONE]\n\n")
	}
}

// half does what a fault does in the middle of an answer, and reports whether that was the end of it.
func (a *answer) half() bool {
	switch a.plan.Fault {
	case Stall:
		<-a.r.Context().Done()
	case Cut:
		a.reset()
	case Short:
	case Abort:
		a.write(a.ended(`"abort"`) + "data: [DONE]\n\n")
	case ErrorEvent:
		a.write(`data: {"error":{"message":"the engine died","type":"InternalServerError","code":500}}` +
			"\n\ndata: [DONE]\n\n")
	default:
		return false
	}
	return true
}

func (a *answer) write(text string) { _, _ = io.WriteString(a.w, text) }

// count counts the tokens of an answer; usage is what the answer says of them, empty if the server does not count.
func (a *answer) count() (usage string) {
	input := max(1, (len(a.asked.Prompt)+len(a.asked.Messages))/4) // a token for each four bytes
	tokens := (len(a.plan.Gaps) + 1) * max(1, a.s.script.PerEvent)
	a.s.mu.Lock()
	defer a.s.mu.Unlock()
	a.s.prompt += int64(input)
	a.s.tokens += int64(tokens)
	a.s.success++
	if a.s.script.NoUsage {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}`, input, input+tokens, tokens)
}
