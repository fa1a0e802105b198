package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/nsys-llm/explain/cmd/explain/internal/explaintest"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// explainLoad runs explain load against a server by script, in this process.
func explainLoad(t *testing.T, script fakeserver.Script, args ...string) (code int, out, errs string) {
	t.Helper()
	ts := httptest.NewServer(fakeserver.New(script))
	defer ts.Close()
	var o, e bytes.Buffer
	w := &env{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: func(string) string { return "" }}
	code = run(context.Background(), append([]string{"load", "--url", ts.URL}, args...), w)
	return code, o.String(), e.String()
}

// What load writes is valid by the published schema and an independent validator, in each of its forms.
func TestLoadKeepsItsSchema(t *testing.T) {
	t.Parallel()
	published := explaintest.Schema(t, "load")
	for name, c := range map[string]struct {
		script fakeserver.Script
		args   []string
	}{
		"closed":       {fakeserver.Script{Tokens: 3}, []string{"--num-requests", "5"}},
		"open":         {fakeserver.Script{Tokens: 3}, []string{"--num-requests", "5", "--rate", "500", "--chat", "--slo-e2e", "1s", "--prompt-tokens", "5", "--output-tokens", "2"}},
		"no usage":     {fakeserver.Script{Tokens: 3, NoUsage: true}, []string{"--num-requests", "5"}},
		"with faults":  {fakeserver.Script{Tokens: 3, Fault: "http_429", Every: 2}, []string{"--num-requests", "5", "--max-failures", "100%"}},
		"one token":    {fakeserver.Script{Tokens: 1}, []string{"--num-requests", "1", "--warmup", "0"}},
		"for a moment": {fakeserver.Script{Tokens: 1, TTFT: time.Millisecond}, []string{"--duration", "500ms", "--warmup", "0"}},
	} {
		code, out, errs := explainLoad(t, c.script, append(c.args, "--format", "json")...)
		if code != exitOK {
			t.Errorf("%s: exit %d: %s", name, code, errs)
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(out))
		if err != nil {
			t.Fatal(err)
		}
		if err := published.Validate(value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server's words reach the terminal without the power to do anything there.
func TestLoadShowsHostileWordsHarmless(t *testing.T) {
	code, out, errs := explainLoad(t, fakeserver.Script{Fault: "http_500\x1b]0;owned\x07", Every: 2}, "--num-requests", "4", "--warmup", "0", "--max-failures", "100%")
	if code != exitOK || strings.ContainsAny(out+errs, "\x1b\x07") {
		t.Errorf("exit %d: %q %q", code, out, errs)
	}
}
