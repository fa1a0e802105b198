package load

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/standin"
)

// BenchmarkStreams is how many streamed requests per second the generator drives, with the stand-in server in the same
// process on the same cores, 16 tokens each.
func BenchmarkStreams(b *testing.B) {
	ts := httptest.NewServer(standin.New(standin.Script{Tokens: 16}))
	defer ts.Close()
	b.ReportAllocs()
	b.ResetTimer()
	res, err := Run(context.Background(), Options{URL: ts.URL, Concurrency: 64, Requests: b.N, Mode: "decode", OutputTokens: 16, Timeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	if res.Counts.Failed > 0 {
		b.Fatalf("%v %v", res.Failures, res.examples)
	}
	b.ReportMetric(*res.Rates.Requests, "requests/s")
	b.ReportMetric(*res.Rates.OutputTokens, "tokens/s")
}

// BenchmarkAccuracy drives more than 2,000 streamed requests per second in an open loop, of which each takes its own scripted time
// (see mixedPlans), and reports how far p50, p90 and p99 of each latency are from the script's, and from what the server itself says
// it did, in percent, the furthest of the three. The server shares process and cores; it keeps its script to a tenth of a millisecond
// (standin.Beat). Latencies count from when a request was due, so that what connections and HTTP cost is in the difference. On a
// machine that has other work to do, both measure that work.
func BenchmarkAccuracy(b *testing.B) {
	n := max(10_000, b.N)
	plans := mixedPlans(n)
	var mu sync.Mutex
	var did samples
	script := standin.Script{
		Plan: func(i int) standin.Plan { return plans[i%n] },
		Saw: func(_ int, wrote []time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			did.add(wrote)
		},
	}
	ts := httptest.NewServer(standin.New(script))
	defer ts.Close()
	defer standin.Beat()()
	b.ResetTimer()
	res, err := Run(context.Background(), Options{URL: ts.URL, Rate: benchRate, Requests: n, Mode: "decode", OutputTokens: benchTokens})
	if err != nil || res.Counts.Failed > 0 {
		b.Fatalf("%v %v", err, res)
	}
	b.StopTimer()
	mu.Lock()
	defer mu.Unlock()
	scripted := promised(plans)
	for _, truth := range []struct {
		name string
		of   samples
	}{{"script", scripted}, {"server", did}} {
		for name, off := range truth.of.off(res.Latency) {
			b.ReportMetric(100*off, "%"+name+"-vs-"+truth.name)
		}
	}
	b.ReportMetric(float64(n)/(float64(res.Requests[len(res.Requests)-1].Due)/1e9), "requests/s")
	b.ReportMetric(100*float64(res.Counts.Late)/float64(n), "%late")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkEvents is what one event of a stream costs to read.
func BenchmarkEvents(b *testing.B) {
	text := `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"m","choices":[{"index":0,"text":" token","logprobs":null,"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n"
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	e := newEvents(&repeat{text: text}, make([]byte, 8<<10), time.Now)
	for b.Loop() {
		data, err := e.next()
		if err != nil {
			b.Fatal(err)
		}
		if v, ok := parseEvent(data); !ok || !v.token {
			b.Fatal(string(data))
		}
	}
}
