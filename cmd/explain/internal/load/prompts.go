package load

import (
	"encoding/json"
	"hash"
	"math/rand/v2"
	"strconv"
	"strings"
)

// prompt is the content of one request.
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
		p = ofMode(o.Mode, i)
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

// Sizes of the modes, as profilemate's send_test_requests.py documents them.
const (
	sentence      = "The quick brown fox jumps over the lazy dog while the server computes every token of this prompt. "
	short         = "Write a short story."
	hello         = "Hello world "
	prefillLong   = 20 // sentences
	mixedLong     = 15
	mixedMiddle   = 5
	prefillTokens = 50 // output tokens
	decodeTokens  = 200
)

// Modes are the request mixes.
var Modes = []string{"prefill", "decode", DefaultMode}

// ofMode returns the i-th prompt of a documented request mix.
func ofMode(mode string, i int) prompt {
	switch mode {
	case "prefill":
		return prompt{text: strings.Repeat(sentence, prefillLong), maxTokens: prefillTokens}
	case "decode":
		return prompt{text: hello + strconv.Itoa(i), maxTokens: decodeTokens}
	}
	switch i % 3 {
	case 0:
		return prompt{text: strings.Repeat(sentence, mixedLong), maxTokens: 100}
	case 1:
		return prompt{text: strings.Repeat(sentence, mixedMiddle), maxTokens: 150}
	}
	return prompt{text: short, maxTokens: 50}
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
	Messages      json.RawMessage `json:"messages,omitempty"`
	MaxTokens     int             `json:"max_tokens"`
	Temperature   float64         `json:"temperature"`
	Stream        bool            `json:"stream"`
	StreamOptions streamOptions   `json:"stream_options"`
	IgnoreEOS     bool            `json:"ignore_eos,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// body returns the body of the i-th request.
func (o *Options) body(model string, i int) ([]byte, error) {
	p := o.prompt(i)
	v := body{Model: model, MaxTokens: p.maxTokens, Temperature: o.Temperature, IgnoreEOS: p.ignoreEOS,
		Stream: true, StreamOptions: streamOptions{true}}
	switch {
	case !o.Chat:
		v.Prompt = &p.text
	case p.messages != nil:
		v.Messages = p.messages
	default:
		m, err := json.Marshal([]message{{"user", p.text}})
		if err != nil {
			return nil, err
		}
		v.Messages = m
	}
	return json.Marshal(v)
}

// fingerprinted is the most prompts that the fingerprint of a load covers.
const fingerprinted = 1000

// fingerprint hashes everything in the requests except the model: loads with equal fingerprints sent the same requests.
func (o *Options) fingerprint(h hash.Hash) error {
	n := fingerprinted
	if o.Requests > 0 {
		n = min(n, o.Requests)
	}
	for i := range n {
		text, err := o.body("", i)
		if err != nil {
			return err
		}
		h.Write(text)
	}
	return nil
}
