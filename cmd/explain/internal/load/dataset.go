package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Dataset is a list of prompts from a file.
type Dataset struct {
	Name string // of the file
	list []prompt
}

// at takes the prompts in the order of the file, again and again.
func (d *Dataset) at(i int) prompt { return d.list[i%len(d.list)] }

// maxDataset bounds the file, in bytes.
const maxDataset = 512 << 20

// entry is one prompt of a dataset, or one conversation of ShareGPT's form.
type entry struct {
	Prompt        *string         `json:"prompt"`
	Messages      json.RawMessage `json:"messages"`
	MaxTokens     *int            `json:"max_tokens"`
	Conversations []turn          `json:"conversations"`
}

type turn struct {
	From  string `json:"from"`
	Value string `json:"value"`
}

// bytesPerToken is the assumed length of a token in bytes. It gives max_tokens of a ShareGPT conversation from the
// length of the model's first answer.
const bytesPerToken = 4

// ReadDataset reads prompts from a file of JSON lines ({"prompt": "…"} or {"messages": […]}, with an optional
// max_tokens) or of ShareGPT's form (a JSON list of {"conversations": […]}). Errors name the entry, but repeat nothing
// of its content.
func ReadDataset(path string) (*Dataset, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, err := parseDataset(f)
	if err != nil {
		return nil, fmt.Errorf("dataset %s: %w", filepath.Base(path), err)
	}
	d.Name = filepath.Base(path)
	return d, nil
}

func parseDataset(r io.Reader) (*Dataset, error) {
	file := &io.LimitedReader{R: r, N: maxDataset + 1}
	d, err := parseEntries(bufio.NewReader(file))
	if file.N <= 0 {
		return nil, fmt.Errorf("is larger than %d MB", maxDataset>>20)
	}
	return d, err
}

// parseEntries reads JSON objects, one after the other or in a list.
func parseEntries(in *bufio.Reader) (*Dataset, error) {
	const mark = "\ufeff"
	head, _ := in.Peek(512)
	head, marked := bytes.CutPrefix(head, []byte(mark))
	if marked {
		_, _ = in.Discard(len(mark))
	}
	list := bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte{'['})
	d, dec := &Dataset{}, json.NewDecoder(in)
	if list {
		_, _ = dec.Token()
	}
	for n := 1; dec.More(); n++ {
		var e entry
		if err := dec.Decode(&e); err != nil {
			return nil, fmt.Errorf("entry %d is not a JSON object with a prompt, messages or conversations, or the file was cut off", n)
		}
		p, err := e.prompt()
		switch {
		// ShareGPT has conversations that a model begins, or nobody
		case list && errors.Is(err, errNoPrompt) && e.Conversations != nil:
			continue
		case err != nil:
			return nil, fmt.Errorf("entry %d %w", n, err)
		}
		d.list = append(d.list, p)
	}
	if _, err := dec.Token(); list && err != nil || !list && !errors.Is(err, io.EOF) {
		return nil, errors.New("was cut off")
	}
	if len(d.list) == 0 {
		return nil, errors.New("has no prompts")
	}
	return d, nil
}

var errNoPrompt = errors.New("has no prompt")

func (e *entry) prompt() (prompt, error) {
	p := prompt{maxTokens: defaultOutput}
	switch {
	case e.Prompt != nil && *e.Prompt != "":
		p.text = *e.Prompt
	case len(e.Messages) > 0 && string(e.Messages) != "null":
		var list []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(e.Messages, &list); err != nil || len(list) == 0 {
			return p, errors.New("has messages that are not a list of {role, content}")
		}
		p.messages = e.Messages
		for _, m := range list { // for /v1/completions: what is said, in lines
			var text string
			if json.Unmarshal(m.Content, &text) == nil {
				if p.text != "" {
					p.text += "\n"
				}
				p.text += text
			}
		}
		if p.text == "" {
			p.text = " "
		}
	default:
		for i, t := range e.Conversations {
			if (t.From == "human" || t.From == "user") && t.Value != "" {
				p.text = t.Value
				if i+1 < len(e.Conversations) {
					p.maxTokens = max(1, len(e.Conversations[i+1].Value)/bytesPerToken)
				}
				break
			}
		}
	}
	if p.text == "" {
		return p, errNoPrompt
	}
	if e.MaxTokens != nil {
		if *e.MaxTokens < 1 || *e.MaxTokens > maxTokens {
			return p, fmt.Errorf("has a max_tokens that is not between 1 and %d", maxTokens)
		}
		p.maxTokens = *e.MaxTokens
	}
	return p, nil
}
