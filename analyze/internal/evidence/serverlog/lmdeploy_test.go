package serverlog

import "testing"

// Both forms of the line: 50 wait at the server and 5 in the engine.
func TestLMDeploy(t *testing.T) {
	d, tally := read(t, []byte("[2026-03-01 10:00:10 DP1] Avg thr (in/out): 4000.5 / 2000.25 tokens/s, "+
		"API server (completed/routed/waiting): 1 / 45 / 50, Engine (running/waiting): 40 / 5, KV cache: 25.0%, \n"+
		"[2026-03-01 10:00:20 Engine 002] Avg thr (in/out): 0.0 / 1500.0 tokens/s, "+
		"Server (succeeded/failed/routed/waiting): 9 / 1 / 12 / 3, Engine (running/waiting): 12 / 0, KV cache: 50.0%, Prefix cache hit rate: 12.5%, \n"+
		"[2026-03-01 10:00:30 DP0] Avg thr (in/out): 1.0, Engine (running/waiting): 1 / 0\n"))
	if tally.Understood != 2 || tally.Format != "LMDeploy" || d.malformed != 1 || len(d.Samples) != 2 {
		t.Fatalf("tally %+v, malformed %d, %d samples", *tally, d.malformed, len(d.Samples))
	}
	a, b := d.Samples[0], d.Samples[1]
	if a.Prompt != 4000.5 || a.Generation != 2000.25 || a.Running != 40 || a.Waiting != 55 || a.Usage != 0.25 || a.Engine != 1 ||
		a.PrefixHits == a.PrefixHits {
		t.Errorf("%+v", a)
	}
	if b.Prompt != 0 || b.Generation != 1500 || b.Running != 12 || b.Waiting != 3 || b.Usage != 0.5 || b.PrefixHits != 0.125 ||
		b.Engine != 2 || b.Clock-a.Clock != 10 {
		t.Errorf("%+v", b)
	}
}
