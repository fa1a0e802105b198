package serverlog

import "bytes"

const lmdeployEngine = "LMDeploy"

// lmdeployStats begins the line of statistics that LMDeploy logs every ten seconds (--log-level INFO with metrics on).
const lmdeployStats = "Avg thr (in/out): "

// lmdeploy takes that line; its form is that of LMDeploy 0.11 (API server) and 0.12 on (Server):
//
//	[2026-02-05 17:05:17 DP0] Avg thr (in/out): 4618.5 / 2756.3 tokens/s, API server (completed/routed/waiting): 1 / 50 / 50,
//	Engine (running/waiting): 45 / 5, KV cache: 21.6%,
//	[2026-02-05 17:05:17 Engine 000] Avg thr (in/out): …, Server (succeeded/failed/routed/waiting): 1 / 0 / 50 / 50, Engine
//	(running/waiting): 45 / 5, KV cache: 21.6%, Prefix cache hit rate: 12.5%,
//
// Requests that wait at the server for an engine also wait: they are added to those that wait in the engine.
func lmdeploy(r *reader, m message) bool {
	s := newSample()
	good, waiting := true, 0.0
	for part := range bytes.SplitSeq(m.text, []byte(", ")) {
		key, text, ok := bytes.Cut(part, []byte(": "))
		if !ok {
			continue
		}
		var v [4]float64
		n, rest := fractions(text, v[:])
		switch k := string(key); {
		case k == "Avg thr (in/out)":
			s.Prompt, s.Generation, good = v[0], v[1], good && n == 2
		case k == "Engine (running/waiting)":
			s.Running, waiting, good = v[0], waiting+v[1], good && n == 2
		case k == "API server (completed/routed/waiting)":
			waiting, good = waiting+v[2], good && n == 3
		case k == "Server (succeeded/failed/routed/waiting)":
			waiting, good = waiting+v[3], good && n == 4
		case k == "KV cache" && n == 1 && hasPrefix(rest, "%"):
			s.Usage = percent(v[0])
		case k == "Prefix cache hit rate" && n == 1 && hasPrefix(rest, "%"):
			s.PrefixHits = percent(v[0])
		}
	}
	if s.Waiting = waiting; !good || !(s.Prompt >= 0) || !(s.Running >= 0) {
		return r.broken()
	}
	setFirst(&r.start.Engine, lmdeployEngine)
	r.sample(s, m.engine)
	return true
}

// fractions reads numbers between slashes, "45 / 5", at most as many as out holds, and returns their count and the
// rest.
func fractions(b []byte, out []float64) (n int, rest []byte) {
	for n < len(out) {
		v, after, ok := decimal(b)
		if !ok {
			return n, b
		}
		out[n], n = v, n+1
		if b, ok = cutPrefix(after, " / "); !ok {
			return n, after
		}
	}
	return n, b
}
