package secret

import (
	"strings"
	"testing"
)

// Every kind of token that people put into names, alone and inside one.
func TestTokensAreReplaced(t *testing.T) {
	const long, hex = "0a1b2c3d4e5f6g7h8i9j0k1l2m3n4o5p", "0a1b2c3d0a1b2c3d0a1b2c3d0a1b2c3d"
	for _, s := range []string{
		"hf_0123456789abcdefghijABCDEFGHIJ0123", "sk-live-0123456789abcdefghij", "sk-proj-0123456789abcdefghij", "sk_live_0123456789abcdefghij",
		"rk-0123456789abcdefghij", "nvapi-0123456789abcdefghij", "ghp_0123456789abcdefghij0123", "gho_0123456789abcdefghij0123",
		"github_pat_0123456789abcdefghij0123", "glpat-0123456789abcdefghij", "npm_0123456789abcdefghij0123", "r8_0123456789abcdefghij0123",
		"pypi-0123456789abcdefghij0123", "xoxb-0123456789-abc", "AKIA0123456789ABCDEF", "ASIA0123456789ABCDEF", "AIza0123456789abcdefghij",
		"ya29.0123456789abcdefghij", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", "api_org_0123456789abcdefghij", "-----BEGIN RSA PRIVATE KEY-----",
		"gsk_" + long, "xai-" + long, "pplx-" + long, "pcsk_" + long, "lsv2_pt_" + hex + "_0a1b2c3d4e", "lin_api_" + long, "hvs." + long, "dop_v1_" + hex + hex, "dapi" + hex,
		"SG." + long + "." + long, "shpat_" + hex, "PMAK-" + hex[:24] + "-" + hex, "NRAK-0A1B2C3D4E5F6G7H8I9J0K1L2M3", "dckr_pat_" + long, "AGE-SECRET-KEY-1" + strings.ToUpper(long),
		"sntrys_" + long, "figd_" + long, "glsa_" + long, "whsec_" + long, "ntn_" + long + "0a1b2c3d", "glrt-0123456789abcdefghij", "glsoat-0123456789abcdefghij", "GOCSPX-" + long,
		"123456789:AA" + long, "xapp-1-A0B1C2D3E-0123456789", "gldt-0123456789abcdefghij", "glpat-AbCdEfGhIjKlMnOpQrSt", "ghp_AbCdEfGhIjKlMnOpQrStUvWx",
	} {
		for _, name := range []string{s, "request " + s + " done", `{"k":"` + s + `"}`, "a/" + s + "/b"} {
			if got := Tokens(name); strings.Contains(got, s) || !strings.Contains(got, Redacted) {
				t.Errorf("%s → %s", name, got)
			}
			if Of(name) != Token {
				t.Errorf("%s is not called a token", name)
			}
		}
	}
	for name, want := range map[string]string{
		"Authorization: Bearer abc12345":                    "Authorization: Bearer [redacted]",
		"basic dXNlcjpodW50ZXIy":                            "basic [redacted]",
		"https://user:hunter2@host/x":                       "https://[redacted]@host/x",
		"https://h/c?sv=1&sig=abc%2Fdef&se=2":               "https://h/c?sv=1&sig=[redacted]&se=2",
		"https://h/o?X-Amz-Security-Token=abcd1&x=1":        "https://h/o?X-Amz-Security-Token=[redacted]&x=1",
		"https://h/o?X-Amz-Credential=abcd/1&x=1":           "https://h/o?X-Amz-Credential=[redacted]&x=1",
		"https://h/o?a=1&token=abcd":                        "https://h/o?a=1&token=[redacted]",
		"https://hooks.slack.com/services/T0AB/B0CD/abcdef": "https://hooks.slack.com/services/[redacted]",
		"https://discord.com/api/webhooks/123/abc-def_g x":  "https://discord.com/api/webhooks/[redacted] x",
		"x;AccountKey=hunter2==;EndpointSuffix=y":           "x;AccountKey=[redacted];EndpointSuffix=y",
		"Endpoint=sb://x/;SharedAccessKey=hunter2":          "Endpoint=sb://x/;SharedAccessKey=[redacted]",
		"serve --api_key=hunter2 --port 1":                  "serve --api_key=[redacted] --port 1",
		"env FOO_TOKEN=hunter2 run":                         "env FOO_TOKEN=[redacted] run",
		"-Dspring.password=hunter2":                         "-Dspring.password=[redacted]",
		`{"aws_secret_access_key": "hunter2", "n": 1}`:      `{"aws_secret_access_key": "[redacted]", "n": 1}`,
		"X-Api-Key: hunter2":                                "X-Api-Key: [redacted]",
		"password=Tr0ub&dor3long;x done":                    "password=[redacted] done",
		`run "password=a{b}(c),d" next`:                     `run "password=[redacted]" next`,
		"password=a&b1&api_key=cdef&n=1":                    "password=[redacted]&api_key=[redacted]&n=1",
		"a -----BEGIN OPENSSH PRIVATE KEY----- b3Bl\nbn== -----END OPENSSH PRIVATE KEY----- z": "a [redacted] z",
		"a -----BEGIN RSA PRIVATE KEY----- b3Bl bn":                                            "a [redacted]",
		"PGPASSWORD=hunter2 psql":                                                              "PGPASSWORD=[redacted] psql",
		"GET /o?X-Amz-Signature=0abc&X-Amz-D=1":                                                "GET /o?X-Amz-Signature=[redacted]&X-Amz-D=1",
	} {
		if got := Tokens(name); got != want {
			t.Errorf("%s → %s, want %s", name, got, want)
		}
	}
}

// Names of code stay as they are.
func TestNamesStay(t *testing.T) {
	for _, name := range []string{
		"", "sk", "execute_context_0(0)_generation_64(64)", "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_tn", "hf_generate_with_cache",
		"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3> >(int)", "task-manager-0123456789abcdef",
		"decode_token=17 num_tokens=128", "LLM@decode step[DECODE bs=16]", "aten::mm, seq = 12, op_id = 34", "disk-0123456789abcdefghijkl", "mask_0123456789abcdefghij",
		"ProfilerStep#12", "nccl:all_reduce", "sk-this-is-a-long-name-of-words", "bearer something", "vllm.entrypoints@openai", "r8_c4_tile", "int8_r8_kernel",
		"token=17", "tokens: 128", "token: world", "seq_token=12", "key=value", "cache_key: 17", "hash_key=17", "Map<Key, Value>::find", "secret::Keeper::run", "kv.key=1234567", "sk.key: abcd",
		"password check", "MAX_TOKENS=4096", "12345678: decode", "step 123456789:1024", "org.apache.Foo_bar", "dp.pt.0", "lin.weight_0", "SG.load", "hooks.forward_pre", "exit code: 1234",
		"cudaLaunchKernel", "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x64_32x4_tn_align8>(T1::Params)", "basic block",
	} {
		if got := Tokens(name); got != name {
			t.Errorf("%s → %s", name, got)
		}
		if k := Of(name); k != None {
			t.Errorf("%s is called a %s", name, k)
		}
	}
}

func TestOf(t *testing.T) {
	for name, want := range map[string]Kind{
		"user jane.doe@example.com": Email, "prompt: why is the sky blue": Prompt, "Prompt = tell me": Prompt, "prompt:": None,
		"please write me a poem about the sea and its many fish": Prompt, "prefill of a batch": None, "a@b": None,
	} {
		if got := Of(name); got != want {
			t.Errorf("%s is called %q, want %q", name, got, want)
		}
	}
}

// What Tokens does not look at closely is what it leaves alone.
func FuzzTokens(f *testing.F) {
	for _, s := range []string{"hf_0123456789abcdefghijABCDEFGHIJ0123", "x sk-0123456789abcdefghij", "https://a:b@c", "?sig=a", "Bearer 0123456789", "AKIA0123456789ABCDEF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) >= 8 && !mayHold(s) &&
			(userInfo().MatchString(s) || keyValue().MatchString(s) || hook().MatchString(s) || header().MatchString(s) || token().MatchString(s)) {
			t.Errorf("%q is not looked at", s)
		}
	})
}

func BenchmarkTokens(b *testing.B) {
	const name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3> >(int)"
	b.SetBytes(int64(len(name)))
	for b.Loop() {
		Tokens(name)
	}
}
