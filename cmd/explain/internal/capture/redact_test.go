package capture

import (
	"strings"
	"testing"
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
		{`serve --config {"api_key":"abc","n":1}`, `serve --config {"api_key":"[redacted]","n":1}`},
		{"curl -H 'X-Whatever: abc' http://h", "curl -H [redacted] http://h"},
		{"python a.py hf_abcdefghijkl sk-abcdefghijkl", "python a.py [redacted] [redacted]"},
		{"python a.py eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", "python a.py [redacted]"},
		{"sh -c 'export SECRET=abc; serve --password hunter2 --port 1'", "sh -c export SECRET=[redacted] serve --password [redacted] --port 1"},
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

// TestNoSecretIsShown: the ways in which secrets stand on command lines. None may be seen, in an argument or in a line of text, and the
// name of what was hidden stays.
func TestNoSecretIsShown(t *testing.T) {
	const plain, random = "hunter2", "Zk39xQ0vLm72TbR8wYp4"
	hex := strings.Repeat("0a1b2c3d", 5)
	forms := [][]string{
		{"--api-key", plain}, {"--api-key=" + plain}, {"--hf-token", plain}, {"--pass", plain}, {"--pass=" + plain}, {"--pwd", plain}, {"--mysql-pw", plain},
		{"--db-pass", plain}, {"--password", plain}, {"--passphrase=" + plain}, {"-k", plain}, {"token", plain}, {"password", plain}, {"--tok", plain}, {"--tok=" + plain},
		{"--auth", plain}, {"--jwt", plain}, {"--sas", plain}, {"--client-secret", plain}, {"--clientSecret=" + plain}, {"--private-key", plain}, {"--access_key", plain},
		{"--cookie", plain}, {"-H", "X-Api-Key: " + plain}, {"--header", "Authorization: " + plain}, {"--header=Authorization: Bearer " + plain}, {"-u", "me:" + plain},
		{"--proxy-user", "me:" + plain}, {"--webhook", "https://h/" + plain}, {"--dsn", "x;" + plain}, {"HF_TOKEN=" + plain}, {"AWS_SECRET_ACCESS_KEY=" + plain},
		{"-e", "OPENAI_API_KEY=" + plain}, {"--env-var=A=1,WANDB_API_KEY=" + plain}, {"DB_PWD=" + plain}, {"https://me:" + plain + "@host/x"}, {"https://me:p@" + plain + "@host/x"},
		{"--url", "postgres://u:" + plain + "@h/db"}, {"--url", "https://h/x?access_token=" + plain}, {"https://a.blob.core.windows.net/c?sv=1&sig=" + plain + "&se=2"},
		{"https://h/o?X-Amz-Signature=" + plain}, {"--dsn=Server=h;Password=" + plain + ";"}, {`{"api_key":"` + plain + `"}`},
		{"--kv-transfer-config", `{"kv_connector":"Mooncake","kv_connector_extra_config":{"password":"` + plain + `","port":1}}`},
		{`--config={"a":[{"b":{"token": "` + plain + `"}}]}`}, {`{"credentials":{"user":"` + plain + `","n":[1,"` + plain + `"]}}`}, {`{"pwd":"` + plain + `","x":true}`},
		{`{"url":"https://me:` + plain + `@h"}`}, {`{"argv":["--api-key=` + plain + `"]}`}, {"--json", `{'password': '` + plain + `'}`}, {`[{"x-api-key":"` + plain + `"}]`},
		{"sh", "-c", "serve --password " + plain + " --port 1"}, {"sh", "-c", "export SECRET=" + plain + "; run"}, {"sh", "-c", "curl -k https://h -H 'Authorization: Bearer " + plain + "'"},
		{"sh", "-c", "login -k " + plain}, {"sh", "-c", "run --pass " + plain + "&"}, {"sh", "-c", "x --mysql-pw=" + plain},
		{"hf_" + random}, {"sk-" + random}, {"sk-ant-api03-" + random}, {"nvapi-" + random}, {"ghp_" + random}, {"gho_" + random}, {"github_pat_" + random}, {"glpat-" + random},
		{"npm_" + random}, {"r8_" + random}, {"xoxb-" + random}, {"AKIA" + "Z0Q9Z0Q9Z0Q9Z0Q9"}, {"AIza" + random}, {"pypi-" + random}, {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx." + random},
		{"glrt-" + random}, {"gsk_" + random + random}, {"dapi" + hex}, {"123456789:AA" + random + random}, {"https://hooks.slack.com/services/T0AB/B0CD/" + random}, {"SG." + random + "." + random},
		{"https://discord.com/api/webhooks/1234567890/" + random}, {"--conn", "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=" + plain + "==;EndpointSuffix=core.windows.net"},
		{"--conn=Endpoint=sb://x/;SharedAccessKeyName=R;SharedAccessKey=" + plain}, {"--api_key=" + plain}, {"env", "FOO_TOKEN=" + plain, "run"}, {"https://h/o?X-Amz-Security-Token=" + plain},
		{"sshpass", "-p", plain, "ssh"}, {"docker", "login", "-p", plain}, {"curl", "-b", "session=" + plain, "http://h"}, {"-HX-Api-Key: " + plain}, {"-Dspring.password=" + plain}, {"--set", "auth.password=" + plain},
		{"redis://:" + plain + "@h:6379/0"}, {"sh", "-c", "PGPASSWORD=" + plain + " psql"}, {"sh", "-c", "echo machine h login me password " + plain + " > .netrc"}, {"--otp", plain}, {"--hmac", plain}, {"--salt=" + plain},
		{"--whatever", random}, {"--whatever=" + random}, {"WHATEVER=" + random}, {"--account", hex}, {"--account=" + hex}, {"--customer", "0a1b2c3d-0a1b-2c3d-0a1b-2c3d0a1b2c3d"},
		{"--blob", random + "/" + random + "=="}, {hex}, {`{"x":"` + hex + `"}`}, {"sh", "-c", "x --whatever " + random},
		{"sh", "-c", "curl -u me:" + plain + " http://h; run"}, {"sh", "-c", "curl -b session=" + plain + " http://h"}, {"sh", "-c", "curl -H 'X-Whatever: " + plain + "' http://h"},
		{"sh", "-c", `export API_KEY="a\"` + plain + `"`}, {"sh", "-c", `serve --api-key "a ` + plain + `"`}, {"sh", "-c", `serve --api-key 'a'` + plain}, {"sh", "-c", `serve --api-key 'a` + plain}, {"curl", "--user", "me:" + plain},
		{"sh", "-c", "bash -c 'serve --api-key " + plain + "'"}, {"sh", "-c", `bash -c "serve --api-key ` + plain + ` --port 80"`}, {"sh", "-c", "bash -c 'curl -u me:" + plain + " http://h'"},
		{"sh", "-c", `run --more "--api-key ` + plain + `" --port 80`}, {"sh", "-c", "a --b 'c d' --e 'f' --api-key 'g " + plain + "'"},
	}
	if len(forms) < 60 {
		t.Errorf("only %d forms", len(forms))
	}
	for _, argv := range forms {
		shown := strings.Join(redact(append([]string{"vllm", "serve", "m"}, argv...)), " ")
		for _, s := range []string{plain, random, hex, "Z0Q9Z0Q9", "0a1b-2c3d"} {
			if strings.Contains(shown, s) {
				t.Errorf("%q is shown as %s", argv, shown)
			}
		}
		if !strings.Contains(shown, Redacted) || !strings.HasPrefix(shown, "vllm serve m ") {
			t.Errorf("%q is shown as %s", argv, shown)
		}
	}
}

// TestHarmlessStays: what a capture is repeated from is shown as it was.
func TestHarmlessStays(t *testing.T) {
	lines := []string{
		"vllm serve meta-llama/Llama-2-7b-hf --port 8000", "--max-num-batched-tokens 8192", "--tokenizer org/tok --tokenizer-mode auto", "--skip-special-tokens true",
		"--kv-cache-dtype fp8", "--keyframes 3", "--model Qwen/Qwen2.5-0.5B-Instruct-GPTQ-Int4", "--quantization compressed-tensors", "--revision " + strings.Repeat("0a1b2c3d", 5),
		"--served-model-name DeepSeek-R1-Distill-Llama-70B-FP8-dynamic", "CUDA_VISIBLE_DEVICES=0,1,2,3", "CUDA_VISIBLE_DEVICE=GPU-0a1b2c3d-0a1b-2c3d-0a1b-2c3d0a1b2c3d",
		"--output=/data/models/snapshots/" + strings.Repeat("0a1b2c3d", 5) + "/trace", "--trace=cuda,nvtx,osrt", "--session-new=explain-12345-678901234", "--nvtx-capture=decode@*",
		"--api-key-env VLLM_API_KEY", "--ssl-keyfile-path /etc/key.pem", `--compilation-config {"level": 3, "cudagraph_capture_sizes": [1, 2, 4]}`,
		`--speculative-config {"model": "org/draft", "num_speculative_tokens": 5}`, "--max-tokens 128 --token-budget 4096", "--download-dir /data/huggingface/hub",
		"--generation-config auto --override-neuron-config {}", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "--chat-template ./templates/tool_chat_template_llama3.1_json.jinja",
		"--dtype bfloat16 --enable-prefix-caching", "--regex-pattern ^execute_context_[0-9]+", "--bypass 1", "--url http://127.0.0.1:8000/v1/chat/completions?stream=true",
		"--distributed-executor-backend mp --pipeline-parallel-size 2", "docker run -p 8000:8000 img",
		"python -u serve.py --port 80", "gunicorn -b 0.0.0.0:8000 app", "sudo -u me python -u a.py",
	}
	if len(lines) < 20 {
		t.Errorf("only %d lines", len(lines))
	}
	for _, line := range lines {
		argv := strings.Split(line, " ")
		if i := strings.Index(line, " {"); i >= 0 {
			argv = append(strings.Split(line[:i], " "), line[i+1:])
		}
		if got := strings.Join(redact(argv), " "); got != line {
			t.Errorf("%s\n is shown as %s", line, got)
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
		if err != nil || strings.Join(back, "\x00") != strings.Join(shown, "\x00") {
			t.Errorf("%q → %s → %q (%v)", shown, Shell(argv), back, err)
		}
	})
}
