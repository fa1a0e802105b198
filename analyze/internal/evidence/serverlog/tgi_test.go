package serverlog

import (
	"testing"
	"time"
)

// The launcher, and two requests; the first one's stop string holds what looks like a time, as the log escapes it.
func TestTGI(t *testing.T) {
	const end = `"}: text_generation_router::server: router/src/server.rs:299: Success`
	d, tally := read(t, []byte(`2026-03-01T10:00:00.100000Z  INFO text_generation_launcher: Args {`+"\n"+
		`2026-03-01T10:00:01.437631Z  INFO generate{parameters=GenerateParameters { best_of: None, stop: ["total_time=\"9s\"}: text_generation_router"], seed: None } total_time="600.5ms" validation_time="750.5µs" queue_time="125ns" inference_time="600ms" time_per_token="20ms" seed="None`+end+"\n"+
		"\x1b[2m2026-03-01T10:00:03.478010Z\x1b[0m \x1b[32m INFO\x1b[0m \x1b[1mchat_completions\x1b[0m{"+`total_time="1.5s" validation_time="1ms" queue_time="499ms" inference_time="1s" time_per_token="10ms" seed="Some(7)`+end+"\n"+
		`2026-03-01T10:00:04.000000Z  INFO generate{parameters=GenerateParameters { stop: ["x"] }}: text_generation_router::server: router/src/server.rs:291: Connected`+"\n"))
	if tally.Understood != 3 || tally.Format != "TGI" {
		t.Errorf("tally %+v", *tally)
	}
	const ms = time.Millisecond
	want := []Timed{
		{Total: 600500 * time.Microsecond, Validation: 750500, Queue: 125, Work: 600 * ms, PerToken: 20 * ms},
		{Total: 1500 * ms, Validation: ms, Queue: 499 * ms, Work: 1000 * ms, PerToken: 10 * ms},
	}
	got := d.Requests.Timed
	if len(got) != len(want) {
		t.Fatalf("%d requests", len(got))
	}
	if got[1].Clock-got[0].Clock != 2 {
		t.Errorf("clocks %d and %d", got[0].Clock, got[1].Clock)
	}
	for i := range want {
		want[i].Clock = got[i].Clock
		if got[i] != want[i] {
			t.Errorf("request %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestLogsOfLMDeployAndTGIAreRecognised(t *testing.T) {
	for line, want := range map[string]bool{
		"[2026-03-01 10:00:20 Engine 002] Avg thr (in/out): 0.0 / 1500.0 tokens/s, Engine (running/waiting): 12 / 0":                 true,
		"web-1  | 2026-03-01T10:00:00.100000Z  INFO text_generation_launcher: Args {":                                                true,
		"2026-03-01T10:00:00.100000Z  INFO text_generation_router::server: router/src/server.rs:2402: Connected":                     true,
		`2026-03-01T10:00:00.1Z  INFO openai_embed{total_time="1s"}: text_embeddings_router::http::server: router/src/http: Success`: false,
		`someone said: INFO generate{total_time="1s"}: text_generation_router::server: x: Success`:                                   false,
		`2026-03-01T10:00:00.1Z  INFO generate{total_time="-1s"}: text_generation_router::server: router/src/server.rs:299: Success`: false,
	} {
		if got := Is("a.log", []byte(line+"\n")); got != want {
			t.Errorf("%s: %v, want %v", line, got, want)
		}
	}
}
