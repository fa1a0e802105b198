package capture

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestRedact holds the command lines that are written to what a reader may see.
func TestRedact(t *testing.T) {
	for _, x := range []struct{ line, want string }{
		{"vllm serve m --api-key abc --port 8000", "vllm serve m --api-key [redacted] --port 8000"},
		{"vllm serve m --api-key=abc", "vllm serve m --api-key=[redacted]"},
		{"vllm serve m --hf-token abc --tokenizer t --max-num-batched-tokens 8192", "vllm serve m --hf-token [redacted] --tokenizer t --max-num-batched-tokens 8192"},
		{"env HF_TOKEN=x OPENAI_API_KEY=y MODEL=m python a.py", "env HF_TOKEN=[redacted] OPENAI_API_KEY=[redacted] MODEL=m python a.py"},
		{"nsys profile --env-var=A=1,WANDB_API_KEY=k python", "nsys profile --env-var=A=1,WANDB_API_KEY=[redacted] python"},
		{"python a.py --token --verbose", "python a.py --token --verbose"},
		{"python a.py --skip-special-tokens true --kv-cache-dtype fp8 --keyframes 3", "python a.py --skip-special-tokens true --kv-cache-dtype fp8 --keyframes 3"},
		{"curl https://user:pw@host/x?access_token=abc&n=1", "curl https://[redacted]@host/x?access_token=[redacted]&n=1"},
		{`serve --config {"api_key":"abc","n":1}`, `serve --config {"api_key":[redacted],"n":1}`},
		{"curl -H 'X-Whatever: abc' http://h", "curl -H [redacted] http://h"},
		{"python a.py hf_abcdefghijkl sk-abcdefghijkl", "python a.py [redacted] [redacted]"},
		{"python a.py eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", "python a.py [redacted]"},
		{"sh -c 'export SECRET=abc; serve --password hunter2 --port 1'", "sh -c export SECRET=[redacted]; serve --password [redacted] --port 1"},
		{"sh -c 'curl -s \"Authorization: Bearer abcdefgh\"'", `sh -c curl -s "Authorization: [redacted] [redacted]"`},
		{"python -m sglang.launch_server --model-path m --dtype bfloat16", "python -m sglang.launch_server --model-path m --dtype bfloat16"},
	} {
		argv, err := Words(x.line)
		if strings.Contains(x.line, "{") { // no shell in the way
			argv = strings.Split(x.line, " ")
		} else if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(redact(argv), " "); got != x.want {
			t.Errorf("%s\n got %s\nwant %s", x.line, got, x.want)
		}
	}
}

// FuzzRedact: whatever stands around it, the value of a secret flag is not in the result, and as many words come out as went in.
func FuzzRedact(f *testing.F) {
	for _, s := range []string{"--api-key", "--token=x", `{"a":"b"}`, "A=B=C", "http://a:b@c", "'", "--env-var=A=1,B=2"} {
		f.Add(s, "--hf-token")
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "c0ffee-c0ffee-c0ffee"
		if strings.Contains(before, secret) || strings.Contains(after, secret) {
			return
		}
		argv := []string{before, "--api-key=" + secret, after, "X_SECRET_TOKEN=" + secret}
		got := redact(argv)
		if len(got) != len(argv) || strings.Contains(strings.Join(got, " "), secret) {
			t.Errorf("%q → %q", argv, got)
		}
	})
}

func TestWords(t *testing.T) {
	for _, x := range []struct {
		line string
		want []string // nil: an error
	}{
		{"python a.py  --x=1", []string{"python", "a.py", "--x=1"}},
		{`sh -c 'a "b" \c' ''`, []string{"sh", "-c", `a "b" \c`, ""}},
		{`a "b c\"d \n" e\ f`, []string{"a", `b c"d \n`, "e f"}},
		{"a|b > c", []string{"a|b", ">", "c"}},
		{`"open`, nil}, {`end\`, nil}, {"  ", nil}, {"", nil},
	} {
		got, err := Words(x.line)
		if (err != nil) != (x.want == nil) || strings.Join(got, "\x00") != strings.Join(x.want, "\x00") {
			t.Errorf("%s: %q, %v", x.line, got, err)
		}
	}
}

// FuzzWords: what Shell writes, Words reads back.
func FuzzWords(f *testing.F) {
	f.Add("a b", "it's", `"`)
	f.Add("", `\`, "é\n$x")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		argv := []string{"x", a, b, c}
		shown := redact(argv)
		back, err := Words(Shell(argv))
		for _, s := range argv {
			if !utf8.ValidString(s) {
				return // bytes that are no text are not kept
			}
		}
		if err != nil || strings.Join(back, "\x00") != strings.Join(shown, "\x00") {
			t.Errorf("%q → %s → %q (%v)", shown, Shell(argv), back, err)
		}
	})
}
