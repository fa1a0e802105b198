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

// prompts returns the prompt of each request.
type prompts interface {
	name() string
	at(i int) prompt
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

func isMode(s string) bool { return s == "prefill" || s == "decode" || s == "mixed" }

// mode is one of the documented request mixes.
type mode struct {
	kind   string
	output int // overrides the mode's output tokens; 0: does not
}

func (m mode) name() string { return m.kind }

func (m mode) at(i int) prompt {
	p := m.shape(i)
	if m.output > 0 {
		p.maxTokens = m.output
	}
	return p
}

func (m mode) shape(i int) prompt {
	switch m.kind {
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

// synthetic prompts have about the wanted number of tokens. No two begin alike, so that no prefix cache serves them.
// They consist of words that most vocabularies hold as one token; the result gives the server's own count.
type synthetic struct {
	tokens, output int
	seed           uint64
}

// defaultOutput is the default number of output tokens to ask for.
const defaultOutput = 128

func (synthetic) name() string { return "synthetic" }

func (s synthetic) at(i int) prompt {
	random := rand.New(rand.NewPCG(s.seed, uint64(i)))
	var b strings.Builder
	for k := range s.tokens {
		if k > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[random.IntN(len(words))])
	}
	return prompt{text: b.String(), maxTokens: s.output, ignoreEOS: true}
}

var words = strings.Fields(`the of and to in is that for it as was with be by on not he his but at are this have from or had an they which one you were
her all she there would their we him been has when who will more no if out so said what up its about into than them can only other new some could
time these two may then do first any my now such like our over man me even most made after also did many before must through back years where much
your way well down should because each just those people how too little state good very make world still own see men work long get here between both`)

// bodies builds the bodies of requests.
type bodies struct {
	prompts prompts
	opt     *Options
	model   string
}

// body of a request to /v1/completions or /v1/chat/completions. vLLM and SGLang understand ignore_eos.
type body struct {
	Model         string          `json:"model"`
	Prompt        *string         `json:"prompt,omitempty"`
	Messages      json.RawMessage `json:"messages,omitempty"`
	MaxTokens     int             `json:"max_tokens"`
	Temperature   float64         `json:"temperature"`
	Stream        bool            `json:"stream,omitempty"`
	StreamOptions *streamOptions  `json:"stream_options,omitempty"`
	IgnoreEOS     bool            `json:"ignore_eos,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (b *bodies) at(i int) ([]byte, error) {
	p := b.prompts.at(i)
	v := body{Model: b.model, MaxTokens: p.maxTokens, Temperature: b.opt.Temperature, IgnoreEOS: p.ignoreEOS}
	switch {
	case !b.opt.Chat:
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
	if !b.opt.NoStream {
		v.Stream, v.StreamOptions = true, &streamOptions{true}
	}
	return json.Marshal(v)
}

// fingerprinted is the most prompts that the fingerprint of a load covers.
const fingerprinted = 1000

// fingerprint hashes everything in the requests except the model: loads with equal fingerprints sent the same requests.
func (b *bodies) fingerprint(h hash.Hash) error {
	nameless := *b
	nameless.model = ""
	n := fingerprinted
	if b.opt.Requests > 0 {
		n = min(n, b.opt.Requests)
	}
	for i := range n {
		text, err := nameless.at(i)
		if err != nil {
			return err
		}
		h.Write(text)
	}
	return nil
}
