package modelconfig

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// Worked out by hand.
//
// GQA, dimensions of an 8 B model: attention of a layer 2·4096·4096 + 2·4096·1024 = 41,943,040; its MLP 3·4096·14336 =
// 176,160,768; 32 layers 6,979,321,856; head and embedding 128256·4096 = 525,336,576 each.
//
// Experts, of a 47 B model with 8 of which 2 are chosen: a layer has the same attention, a router 4096·8 = 32,768 and
// 8 · 176,160,768, of which a token takes 2; head and embedding 32000·4096 = 131,072,000.
//
// MLA, of a 16 B model: attention 2048·16·192 + 2048·576 + 512·16·256 + 16·128·2048 = 13,762,560; the first layer's MLP
// 3·2048·10944 = 67,239,936; each of 26 others 2048·64 for the router, 64 experts of 3·2048·1408 = 8,650,752 of which 6
// are chosen, and two shared ones; head and embedding 102400·2048 = 209,715,200.
//
// A type that is tied unless it says otherwise, a 2 B model: attention 2·2304·8·256 + 2·2304·4·256 = 14,155,776; its MLP
// 3·2304·9216 = 63,700,992; 26 layers 2,024,275,968; embedding and head in one 256000·2304 = 589,824,000.
//
// Tied and dense: hidden 4, one layer, 2 heads, inner 8, vocab 10, two matrices in the MLP: 4·4·4 + 2·4·8 + 40 = 168.
func TestParametersAndFLOPs(t *testing.T) {
	for _, c := range []struct {
		name, config, attention        string
		all, flops, context, kv, bytes float64
	}{
		{"gqa", `{"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
			"intermediate_size":14336,"vocab_size":128256,"torch_dtype":"bfloat16"}`, "GQA",
			6_979_321_856 + 2*525_336_576, 2 * (6_979_321_856 + 525_336_576), 2 * 32 * 32 * 256, 2 * 32 * 8 * 128, 2},
		{"experts", `{"model_type":"mixtral","hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
			"intermediate_size":14336,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2,"decoder_sparse_step":1,"moe_layer_freq":null,"dtype":"float16"}`, "GQA",
			32*(41_943_040+32_768+8*176_160_768) + 2*131_072_000, 2 * (32*(41_943_040+32_768+2*176_160_768) + 131_072_000),
			2 * 32 * 32 * 256, 2 * 32 * 8 * 128, 2},
		{"mla", `{"model_type":"deepseek_v2","hidden_size":2048,"num_hidden_layers":27,"num_attention_heads":16,"num_key_value_heads":16,
			"intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":64,"n_shared_experts":2,"num_experts_per_tok":6,
			"first_k_dense_replace":1,"kv_lora_rank":512,"q_lora_rank":null,"qk_nope_head_dim":128,"qk_rope_head_dim":64,
			"v_head_dim":128,"vocab_size":102400,"torch_dtype":"bfloat16"}`, "MLA",
			27*13_762_560 + 67_239_936 + 26*(131_072+66*8_650_752) + 2*209_715_200,
			2 * (27*13_762_560 + 67_239_936 + 26*(131_072+8*8_650_752) + 209_715_200), 2 * 27 * 16 * 320, 27 * 576, 2},
		{"tied", `{"model_type":"opt","text_config":null,"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,
			"intermediate_size":8,"vocab_size":10,"tie_word_embeddings":true}`, "MHA", 168, 336, 2 * 2 * 4, 2 * 2 * 2, 0},
		{"one expert is none", `{"model_type":"opt","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,"num_experts":1,
			"moe_topk":1,"intermediate_size":8,"vocab_size":10,"tie_word_embeddings":true}`, "MHA", 168, 336, 2 * 2 * 4, 2 * 2 * 2, 0},
		{"tied by its type", `{"model_type":"gemma2","hidden_size":2304,"num_hidden_layers":26,"num_attention_heads":8,
			"num_key_value_heads":4,"head_dim":256,"intermediate_size":9216,"vocab_size":256000,"torch_dtype":"float32"}`, "GQA",
			2_024_275_968 + 589_824_000, 2 * (2_024_275_968 + 589_824_000), 2 * 26 * 8 * 512, 2 * 26 * 4 * 256, 4},
		{"part of a whole", `{"model_type":"x","tie_word_embeddings":true,"torch_dtype":"bfloat16","text_config":{"model_type":"opt",
			"hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,"intermediate_size":8,"vocab_size":10}}`, "MHA",
			168, 336, 2 * 2 * 4, 2 * 2 * 2, 2},
		{"part that differs from its whole", `{"model_type":"x","tie_word_embeddings":true,"torch_dtype":"bfloat16","text_config":{
			"model_type":"opt","tie_word_embeddings":false,"dtype":"float16","hidden_size":4,"num_hidden_layers":1,
			"num_attention_heads":2,"intermediate_size":8,"vocab_size":10}}`, "MHA", 208, 336, 2 * 2 * 4, 2 * 2 * 2, 2},
		{"byte order mark", "\ufeff" + `{"model_type":"opt","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,
			"intermediate_size":8,"vocab_size":10,"tie_word_embeddings":true}`, "MHA", 168, 336, 2 * 2 * 4, 2 * 2 * 2, 0},
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(c.config), 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, "config.json")
		if err != nil {
			t.Fatal(err)
		}
		if head, err := in.Head(); err != nil || !Is("config.json", head) {
			t.Errorf("%s: not recognised (%v)", c.name, err)
		}
		d, err := Read(context.Background(), []file.Input{in})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		m := &d.Model
		all, _ := m.Parameters()
		if all != c.all || m.FLOPsPerToken() != c.flops || m.FLOPsPerContext() != c.context || m.KVPerToken() != c.kv ||
			m.BytesOf() != c.bytes || m.Attention() != c.attention {
			t.Errorf("%s: %s, %v weights, %v and %v FLOP, %v in the KV cache, %v bytes each", c.name, m.Attention(), all,
				m.FLOPsPerToken(), m.FLOPsPerContext(), m.KVPerToken(), m.BytesOf())
		}
	}
	const experts = `{"model_type":"opt","hidden_size":4,"num_hidden_layers":2,"num_attention_heads":2,"intermediate_size":8,"vocab_size":10,"num_experts":64,`
	for bad, want := range map[string]string{
		`{"model_type":"x","num_hidden_layers":-1}`:                        "dimensions",
		`{"model_type":"x","num_hidden_layers":`:                           "is not the config.json",
		`{"model_type":"x","num_hidden_layers":"many"}`:                    "is not the config.json",
		experts + `"moe_topk":8}`:                                          "num_experts_per_tok", // a token would pass through none
		experts + `"num_experts_per_tok":8,"decoder_sparse_step":2}`:       "some of its layers",
		experts + `"num_experts_per_tok":8,"interleave_moe_layer_step":2}`: "some of its layers",
		experts + `"num_experts_per_tok":8,"moe_layer_freq":[0,1]}`:        "some of its layers",
	} {
		path := filepath.Join(t.TempDir(), "config.json")
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		in, _ := file.New(path, "config.json")
		if _, err := Read(context.Background(), []file.Input{in}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", bad, err, want)
		}
	}
}
