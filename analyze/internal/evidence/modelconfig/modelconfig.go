// Package modelconfig reads the config.json of a Hugging Face model, and computes the cost of a token from its
// dimensions.
package modelconfig

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
	"github.com/nsys-llm/explain/analyze/report"
)

// Data is the first model that was given.
type Data struct {
	Model  Model
	others int
}

// Model is the content of a config.json. A zero means not stated.
type Model struct {
	Type      string `json:"model_type"`
	Hidden    int64  `json:"hidden_size"`
	Layers    int64  `json:"num_hidden_layers"`
	Heads     int64  `json:"num_attention_heads"`
	KVHeads   int64  `json:"num_key_value_heads"`
	HeadSize  int64  `json:"head_dim"`
	Inner     int64  `json:"intermediate_size"`
	Vocab     int64  `json:"vocab_size"`
	Tied      *bool  `json:"tie_word_embeddings"`
	TorchType string `json:"torch_dtype"`
	Type2     string `json:"dtype"` // its newer name

	// Mixture of experts, by the three names that models use.
	Experts      int64 `json:"num_experts"`
	LocalExperts int64 `json:"num_local_experts"`
	Routed       int64 `json:"n_routed_experts"`
	PerToken     int64 `json:"num_experts_per_tok"`
	ExpertInner  int64 `json:"moe_intermediate_size"`
	Shared       int64 `json:"n_shared_experts"`
	SharedInner  int64 `json:"shared_expert_intermediate_size"`
	DenseFirst   int64 `json:"first_k_dense_replace"`
	// Every how many layers one has experts, by the three names that models use; a number or something else.
	EveryDecoder any `json:"decoder_sparse_step"`
	EveryStep    any `json:"interleave_moe_layer_step"`
	EveryLayer   any `json:"moe_layer_freq"`

	// Multi-head latent attention.
	KVRank int64 `json:"kv_lora_rank"`
	QRank  int64 `json:"q_lora_rank"`
	Nope   int64 `json:"qk_nope_head_dim"`
	Rope   int64 `json:"qk_rope_head_dim"`
	Value  int64 `json:"v_head_dim"`

	Text *Model `json:"text_config"` // of a model that also sees or hears
}

// Is reports whether a file that starts with head is of this kind.
func Is(_ string, head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && bytes.Contains(head, []byte(`"model_type"`)) &&
		bytes.Contains(head, []byte(`"num_hidden_layers"`))
}

// maxSize is a bound, in bytes, that no config.json reaches.
const maxSize = 4 << 20

// Read reads the files; the report describes the first.
func Read(ctx context.Context, files []file.Input) (*Data, error) {
	d := &Data{others: len(files) - 1}
	return d, file.Each(ctx, files, func(in *file.Input, r io.Reader) error {
		m, err := read(r)
		if err != nil {
			return err
		}
		in.Tally.Format, in.Tally.Records, in.Tally.Understood = "config.json of a Hugging Face model", 1, 1
		if in == &files[0] {
			d.Model = *m
		}
		return nil
	})
}

func read(r io.Reader) (*Model, error) {
	var m Model
	if err := json.NewDecoder(io.LimitReader(r, maxSize)).Decode(&m); err != nil {
		return nil, fmt.Errorf("is not the config.json of a model: %w", err)
	}
	if whole := m; m.Text != nil && m.Hidden == 0 { // what the part leaves out, the whole states
		m = *whole.Text
		m.Tied, m.Type2 = cmp.Or(m.Tied, whole.Tied), cmp.Or(m.Type2, m.TorchType, whole.TorchType, whole.Type2)
	}
	m.TorchType = cmp.Or(m.TorchType, m.Type2)
	m.Experts = cmp.Or(m.Experts, m.LocalExperts, m.Routed)
	if m.Experts == 1 && m.PerToken == 0 { // a dense model of a type that may have experts, as HunYuan's
		m.Experts = 0
	}
	m.KVHeads = cmp.Or(m.KVHeads, m.Heads)
	if m.HeadSize == 0 && m.Heads > 0 {
		m.HeadSize = m.Hidden / m.Heads
	}
	m.ExpertInner = cmp.Or(m.ExpertInner, m.Inner)
	for _, v := range []int64{m.Hidden, m.Layers, m.Heads, m.KVHeads, m.HeadSize, m.Vocab, m.ExpertInner} {
		if v <= 0 || v > 1<<24 {
			return nil, errors.New("does not state the model's dimensions (hidden_size, num_hidden_layers, num_attention_heads, intermediate_size, vocab_size)")
		}
	}
	for _, v := range []int64{m.Inner, m.Experts, m.PerToken, m.ExpertInner, m.Shared, m.SharedInner, m.DenseFirst,
		m.KVRank, m.QRank, m.Nope, m.Rope, m.Value} {
		if v < 0 || v > 1<<24 {
			return nil, fmt.Errorf("states a dimension of %d", v)
		}
	}
	for _, every := range []any{m.EveryDecoder, m.EveryStep, m.EveryLayer} {
		if every != nil && every != 1.0 && m.Experts > 0 {
			return nil, errors.New("has experts in some of its layers, which the formulas do not count")
		}
	}
	if m.Experts > 0 && m.PerToken == 0 {
		return nil, errors.New("states the number of experts, and not how many of them a token takes (num_experts_per_tok)")
	}
	return &m, nil
}

// ungated are the model types whose feed-forward layers have two matrices, up and down; others have a gate too.
var ungated = []string{"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj", "mpt", "opt", "phi",
	"starcoder2"}

// tied are the model types that use the embedding as the head unless they state otherwise: a config.json leaves out
// what is the default of its type.
var tied = []string{"cohere", "cohere2", "gemma", "gemma2", "gemma3", "gemma3_text", "opt", "starcoder2"}

func (m *Model) mlp(inner int64) float64 {
	matrices := 3.0
	if slices.Contains(ungated, m.Type) {
		matrices = 2
	}
	return matrices * float64(m.Hidden) * float64(inner)
}

// Attention is how the model attends: MHA, GQA or MLA.
func (m *Model) Attention() string {
	switch {
	case m.KVRank > 0:
		return "MLA"
	case m.KVHeads < m.Heads:
		return "GQA"
	}
	return "MHA"
}

// attention is the number of weights of one layer's attention.
func (m *Model) attention() float64 {
	d, h := float64(m.Hidden), float64(m.Heads)
	if m.KVRank == 0 {
		size := float64(m.HeadSize)
		return 2*d*h*size + 2*d*float64(m.KVHeads)*size // q and o, k and v
	}
	query := float64(m.Nope + m.Rope)
	q := d * h * query
	if m.QRank > 0 {
		q = d*float64(m.QRank) + float64(m.QRank)*h*query
	}
	kv := d*float64(m.KVRank+m.Rope) + float64(m.KVRank)*h*float64(m.Nope+m.Value)
	return q + kv + h*float64(m.Value)*d
}

// Parameters are the weights of all matrices, and the weights that one token uses: embeddings are looked up and count
// only in the first number, norms and biases in neither.
func (m *Model) Parameters() (all, active float64) {
	layers, dense := float64(m.Layers), float64(m.Layers)
	all = layers * m.attention()
	active = all
	if m.Experts > 0 {
		dense = float64(min(m.DenseFirst, m.Layers))
		shared := m.mlp(cmp.Or(m.SharedInner, m.Shared*m.ExpertInner))
		router, expert := float64(m.Hidden)*float64(m.Experts), m.mlp(m.ExpertInner)
		all += (layers - dense) * (router + float64(m.Experts)*expert + shared)
		active += (layers - dense) * (router + float64(min(m.PerToken, m.Experts))*expert + shared)
	}
	mlp, table := dense*m.mlp(m.Inner), float64(m.Vocab)*float64(m.Hidden)
	all += mlp + table
	active += mlp + table // the head
	if isTied := slices.Contains(tied, m.Type); m.Tied != nil && !*m.Tied || m.Tied == nil && !isTied {
		all += table
	}
	return all, active
}

// FLOPsPerToken are the floating point operations of one token's matrices: two for each weight it passes through.
func (m *Model) FLOPsPerToken() float64 {
	_, active := m.Parameters()
	return 2 * active
}

// FLOPsPerContext are the operations of attention for each token and each token of its context: a multiplication and an
// addition for every element of a query and of a value, in every head and layer.
func (m *Model) FLOPsPerContext() float64 {
	query, value := m.HeadSize, m.HeadSize
	if m.KVRank > 0 {
		query, value = m.Nope+m.Rope, m.Value
	}
	return 2 * float64(m.Layers) * float64(m.Heads) * float64(query+value)
}

// StepFLOPs are the floating point operations of a step that decodes some tokens and computes some tokens of prompts.
// All tokens pass the layers; the head is computed once for each decoded token and once for each prompt. Attention is
// counted only within the prompts, which are assumed to be equally long: this is the split of their tokens that needs
// the fewest operations. A token of a prompt of t tokens attends to (t + 1) / 2 on average.
func (m *Model) StepFLOPs(decode, prompt, prompts int64) float64 {
	_, active := m.Parameters()
	head := float64(m.Vocab) * float64(m.Hidden)
	flops := 2*(active-head)*float64(decode+prompt) + 2*head*float64(decode+prompts)
	if prompts > 0 {
		flops += m.FLOPsPerContext() * float64(prompt) * (float64(prompt)/float64(prompts) + 1) / 2
	}
	return flops
}

// weightBytes are the bytes of one weight, by its type.
var weightBytes = map[string]float64{"bfloat16": 2, "float16": 2, "float32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1}

// BytesOf is the size of one weight, 0 if the config does not state its type.
func (m *Model) BytesOf() float64 { return weightBytes[m.TorchType] }

// KVPerToken is how many numbers the KV cache holds for a token.
func (m *Model) KVPerToken() float64 {
	if m.KVRank > 0 {
		return float64(m.Layers) * float64(m.KVRank+m.Rope)
	}
	return 2 * float64(m.Layers) * float64(m.KVHeads) * float64(m.HeadSize)
}

// Warnings are the facts that limit trust in the numbers.
func (d *Data) Warnings() []report.Warning {
	var list report.Warnings
	list.If(d.others > 0, "models_several", "Several models were given: the report describes the first.")
	return list
}

// Environment adds nothing: which model ran is known only from the server.
func (d *Data) Environment(*report.Environment) {}
