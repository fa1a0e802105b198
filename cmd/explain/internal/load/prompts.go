package load

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

type prompt struct {
	text      string
	messages  json.RawMessage // of a chat, as in the dataset; nil: text is the only message, from the user
	maxTokens int
	ignoreEOS bool // generate maxTokens tokens, even past the end token
}

// prompt returns what the i-th request asks.
func (o *Options) prompt(i int) (p prompt) {
	switch {
	case o.Dataset != nil:
		p = o.Dataset.at(i)
	case o.PromptTokens > 0:
		p = prompt{text: randomWords(o.PromptTokens, o.Seed, i), maxTokens: defaultOutput, ignoreEOS: true}
	default:
		mix := mixes[o.Mode]
		if p = mix[i%len(mix)]; o.Mode == "decode" {
			p.text += strconv.Itoa(i)
		}
	}
	if o.OutputTokens > 0 {
		p.maxTokens = o.OutputTokens
	}
	return p
}

// kind names where the prompts come from.
func (o *Options) kind() string {
	switch {
	case o.Dataset != nil:
		return "dataset"
	case o.PromptTokens > 0:
		return "synthetic"
	}
	return o.Mode
}

// Modes are the request mixes.
var Modes = []string{"prefill", "decode", DefaultMode}

const sentence = "The quick brown fox jumps over the lazy dog while the server computes every token of this prompt. "

// mixes are the prompts of each mode, taken in turns, as profilemate's send_test_requests.py documents them.
var mixes = map[string][]prompt{
	"prefill": {{text: strings.Repeat(sentence, 20), maxTokens: 50}},
	"decode":  {{text: "Hello world ", maxTokens: 200}}, // its number follows
	DefaultMode: {{text: strings.Repeat(sentence, 15), maxTokens: 100}, {text: strings.Repeat(sentence, 5), maxTokens: 150},
		{text: "Write a short story.", maxTokens: 50}},
}

// defaultOutput is the default number of output tokens to ask for.
const defaultOutput = 128

// randomWords is a prompt of about the wanted number of tokens. No two begin alike, so that no prefix cache serves them.
// It consists of words that most vocabularies hold as one token; the result gives the server's own count.
func randomWords(tokens int, seed uint64, i int) string {
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	list := make([]string, tokens)
	for k := range list {
		list[k] = words[random.IntN(len(words))]
	}
	return strings.Join(list, " ")
}

var words = strings.Fields(`the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were
her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could
time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much
your way well down should because each just those people how too little state good very make world still own see men work long get here between both`)

// body of a request to /v1/completions or /v1/chat/completions. vLLM and SGLang understand ignore_eos.
type body struct {
	Model         string          `json:"model"`
	Prompt        *string         `json:"prompt,omitempty"`
	Messages      any             `json:"messages,omitempty"` // a list
	MaxTokens     int             `json:"max_tokens"`
	Temperature   float64         `json:"temperature"`
	Stream        bool            `json:"stream"`
	StreamOptions map[string]bool `json:"stream_options"`
	IgnoreEOS     bool            `json:"ignore_eos,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body returns the body of the i-th request. It can always be written: the messages were read as JSON.
func (o *Options) body(model string, i int) []byte {
	p := o.prompt(i)
	v := body{Model: model, MaxTokens: p.maxTokens, Temperature: o.Temperature, IgnoreEOS: p.ignoreEOS,
		Stream: true, StreamOptions: map[string]bool{"include_usage": true}}
	switch {
	case !o.Chat:
		v.Prompt = &p.text
	case p.messages != nil:
		v.Messages = p.messages
	default:
		v.Messages = []message{{"user", p.text}}
	}
	text, _ := json.Marshal(v)
	return text
}

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
	Conversations []struct {
		From  string `json:"from"`
		Value string `json:"value"`
	} `json:"conversations"`
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
		p.text = cmp.Or(p.text, " ")
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
