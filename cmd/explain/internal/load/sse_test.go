package load

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// all reads every event of a stream through a buffer of a few bytes.
func all(r io.Reader, size int) (list []string, err error) {
	e := newEvents(r, make([]byte, size), time.Now)
	for {
		data, err := e.next()
		if err != nil {
			return list, err
		}
		list = append(list, string(data))
	}
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
		err  error
	}{
		"one":              {"data: {}\n\n", []string{"{}"}, io.EOF},
		"no space":         {"data:{}\n\n", []string{"{}"}, io.EOF},
		"two":              {"data: a\n\ndata: b\n\n", []string{"a", "b"}, io.EOF},
		"CRLF":             {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, io.EOF},
		"CR":               {"data: a\r\rdata: b\r\r", []string{"a", "b"}, io.EOF},
		"lines are joined": {"data: a\ndata: b\ndata: c\n\n", []string{"a\nb\nc"}, io.EOF},
		"comment":          {": ping\n\ndata: a\n\n: ping\n\n", []string{"a"}, io.EOF},
		"other fields":     {"event: x\nid: 7\ndata: a\nretry: 3\n\n", []string{"a"}, io.EOF},
		"empty lines":      {"\n\n\ndata: a\n\n\n\n", []string{"a"}, io.EOF},
		"cut":              {"data: a\n\ndata: b\n", []string{"a"}, io.EOF},
		"byte order mark":  {"\ufeffdata: a\n\n", []string{"a"}, io.EOF},
		"two marks":        {"data: a\n\n\ufeffdata: b\n\n", []string{"a"}, errNotSSE},
		"garbage":          {"data: a\n\n<html>\n", []string{"a"}, errNotSSE},
		"nothing":          {"", nil, io.EOF},
		"empty data":       {"data\n\n", []string{""}, io.EOF},
	} {
		for _, size := range []int{2, 3, 7, 8192} {
			for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
				got, err := all(r, size)
				if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
					t.Errorf("%s, buffer %d: %q, %v", name, size, got, err)
				}
			}
		}
	}
}

func TestEventsAreBounded(t *testing.T) {
	endless := io.MultiReader(strings.NewReader("data: "), iotest.TimeoutReader(zeros{}))
	if _, err := all(io.LimitReader(io.MultiReader(strings.NewReader("data: "), zeros{}), 1<<30), 8192); !errors.Is(err, errNotSSE) {
		t.Errorf("an endless line: %v", err)
	}
	if _, err := all(endless, 8192); err == nil {
		t.Error("a broken stream has no error")
	}
	if _, err := all(io.LimitReader(&repeat{text: "data: xxxxxxxx\n"}, 1<<30), 8192); !errors.Is(err, errNotSSE) {
		t.Errorf("an event of endless lines: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

type repeat struct {
	text string
	at   int
}

func (r *repeat) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = r.text[r.at]
		r.at = (r.at + 1) % len(r.text)
	}
	return len(b), nil
}

// plainEvents is the standard, word by word, slowly.
func plainEvents(text string) (list []string, bad bool) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var data []string
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && data != nil:
			list, data = append(list, strings.Join(data, "\n")), nil
		case line == "", line[0] == ':', field == "event", field == "id", field == "retry":
		case field == "data":
			data = append(data, strings.TrimPrefix(value, " "))
		default:
			return list, true
		}
	}
	return list, false
}

func FuzzEvents(f *testing.F) {
	f.Add("data: {\"choices\":[]}\r\n\r\ndata: [DONE]\n\n", uint8(3))
	f.Add(": c\rdata: a\rdata: b\r\rid: 1\n\n", uint8(1))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		want, bad := plainEvents(text)
		got, err := all(iotest.HalfReader(strings.NewReader(text)), 2+int(size))
		if !slices.Equal(got, want) || errors.Is(err, errNotSSE) != bad {
			t.Fatalf("%q: %q (%v), want %q (bad %v)", text, got, err, want, bad)
		}
	})
}

func TestParseEvent(t *testing.T) {
	none := event{input: -1, output: -1}
	token := event{token: true, input: -1, output: -1}
	for text, want := range map[string]event{
		`{"choices":[{"index":0,"text":" a","finish_reason":null}]}`:                                            token,
		`{"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": null}]}`:                         token,
		`{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}`:                        none,
		`{"choices":[{"delta":{"role":"assistant","content":null,"reasoning_content":"x"}}]}`:                   token,
		`{"choices":[{"delta":{"reasoning":"x"}}]}`:                                                             token,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`:                               token,
		`{"choices":[{"delta":{},"logprobs":{"content":[{"token":"a"}]}}]}`:                                     none,
		`{"choices":[{"text":"","finish_reason":"stop"}]}`:                                                      {finished: true, input: -1, output: -1},
		`{"choices":[{"text":"\"text\":\"x\"","finish_reason":"length"}],"usage":null}`:                         {token: true, finished: true, input: -1, output: -1},
		`{"choices":[{"text":"","stop_reason":"\"text\": \"x\""}]}`:                                             none,
		`{"choices":[],"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5}}`:                    {input: 7, output: 5},
		`{"choices":[],"usage":{"completion_tokens_details":{"x":1},"completion_tokens":5,"prompt_tokens": 7}}`: {input: 7, output: 5},
		`{"choices":[],"usage":{"completion_tokens":5e3,"prompt_tokens":-1}}`:                                   none,
		`{"error":{"message":"died"}}`:                                                                          {failed: true, input: -1, output: -1},
		`{"choices":[{"text":" a","finish_reason":"abort"}]}`:                                                   {token: true, finished: true, failed: true, input: -1, output: -1},
		`{"choices":[{"delta":{},"finish_reason":"error"}]}`:                                                    {finished: true, failed: true, input: -1, output: -1},
		`{"object":"error","message":"died"}`:                                                                   {failed: true, input: -1, output: -1},
		`{"error":null}`:                                                                                        none,
		`{}`:                                                                                                    none,
	} {
		if got, ok := parseEvent([]byte(text)); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "null", "3", `"x"`, "[1]", "{", `{"choices":[}`, "[DONE"} {
		if _, ok := parseEvent([]byte(text)); ok {
			t.Errorf("%s is taken for an object", text)
		}
	}
}

// Compared with a decoder that builds values: what is not JSON is refused, and text is found where there is some.
func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(`{"choices":[{"text":" a","finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`))
	f.Add([]byte(`{"choices":[{"delta":{"content":"\"text\":\"x\""}}],"error":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, ok := parseEvent(text)
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); (err == nil && object != nil) != ok {
			t.Fatalf("%q: %v, encoding/json says %v", text, ok, err)
		}
		if e.input < -1 || e.output < -1 || e.input > maxCount || e.output > maxCount {
			t.Fatalf("%q: %+v", text, e)
		}
		var known struct {
			Choices []struct {
				Text string `json:"text"`
			} `json:"choices"`
		}
		if bytes.Contains(text, []byte(`"choices":[{"text":"`)) && !bytes.Contains(text, []byte(`\`)) && json.Unmarshal(text, &known) == nil && bytes.Count(text, []byte(`"choices"`)) == 1 &&
			len(known.Choices) == 1 && known.Choices[0].Text != "" && !e.token {
			t.Fatalf("%q has text", text)
		}
	})
}
