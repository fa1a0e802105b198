package fakeserver

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestParseScript(t *testing.T) {
	p, err := parseScript("ttft=5ms, gap=1ms,tokens=8,model=m,healthy_after=never,fault=cut,every=3,after=4,start_fail=7,stop=ignore,no_usage")
	if err != nil {
		t.Fatal(err)
	}
	s := p.script
	if s.TTFT != 5*time.Millisecond || s.Gap != time.Millisecond || s.Tokens != 8 || s.Model != "m" || s.HealthyAfter >= 0 || s.Fault != Cut || s.Every != 3 || s.After != 4 || !s.NoUsage || p.startFail != 7 || !p.ignoreStop {
		t.Errorf("%+v", p)
	}
	for _, text := range []string{"ttft", "ttft=5", "tokens=x", "speed=3"} {
		if _, err := parseScript(text); err == nil {
			t.Errorf("%q is a script", text)
		}
	}
}

// The process says what is wrong in the words and with the codes that a server has.
func TestMainThatDoesNotStart(t *testing.T) {
	for script, want := range map[string]int{"start_fail=3": 3, "speed=3": 2} {
		var out, errs bytes.Buffer
		if code := Main([]string{"serve", "model", "--port=0"}, func(string) string { return script }, &out, &errs); code != want || errs.Len() == 0 {
			t.Errorf("%s: exit %d, %q", script, code, errs.String())
		}
	}
}

// Every event is JSON of the API, the counts agree, and /metrics counts along.
func TestAnswersAreOfTheAPI(t *testing.T) {
	ts := httptest.NewServer(New(Script{Tokens: 3}))
	defer ts.Close()
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		res, err := http.Post(ts.URL+path, "application/json", strings.NewReader(`{"prompt":"12345678","stream":true,"stream_options":{"include_usage":true}}`))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		events := strings.Split(strings.TrimSpace(string(b)), "\n\n")
		for i, e := range events {
			data, ok := strings.CutPrefix(e, "data: ")
			if last := i == len(events)-1; !ok || last && data != "[DONE]" || !last && !json.Valid([]byte(data)) {
				t.Errorf("%s: %q", path, e)
			}
		}
		if usage := events[len(events)-2]; !strings.Contains(usage, `"completion_tokens":3}`) {
			t.Errorf("%s: %q", path, usage)
		}
	}
	res, err := http.Get(ts.URL + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if b, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(b), "vllm:generation_tokens_total{engine=\"0\",model_name=\"fake\"} 6.0\n") {
		t.Errorf("%s (%v)", b, err)
	}
}
