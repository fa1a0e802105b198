package load

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
)

// BenchmarkStreams is how many streamed requests per second the generator drives, with the fake server in the same
// process on the same cores, 16 tokens each.
func BenchmarkStreams(b *testing.B) {
	ts := httptest.NewServer(fakeserver.New(fakeserver.Script{Tokens: 16}))
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

// benchRequests is how many requests BenchmarkAccuracy sends.
const benchRequests = 5000

// BenchmarkAccuracy drives 500 streamed requests per second in an open loop, of which each takes its own scripted time (see
// mixedPlans), and reports how far p50, p90 and p99 of each latency are from the script's, in ms, the furthest of the three. The
// goal is at most 1 ms for ms-ttft and ms-itl on two cores that both share and that do nothing else. Latencies count from when a
// request was due, so that what timers, connections and HTTP cost is in the difference: Go's timers are 0.5 ms late on average in
// an idle process on Linux. The server is a process of its own and keeps its script to a tenth of a millisecond (beat).
func BenchmarkAccuracy(b *testing.B) {
	url := startScripted(b)
	b.ResetTimer()
	res, err := Run(context.Background(), Options{
		URL: url, Rate: 500, Requests: benchRequests, Mode: "decode", OutputTokens: benchTokens,
	})
	if err != nil || res.Counts.Failed > 0 {
		b.Fatalf("%v %v", err, res)
	}
	b.StopTimer()
	for name, off := range promised(mixedPlans(benchRequests)).off(res.Latency) {
		b.ReportMetric(off.ns/1e6, "ms-"+name)
	}
	b.ReportMetric(benchRequests/(float64(res.Requests[benchRequests-1].Due)/1e9), "requests/s")
	b.ReportMetric(100*float64(res.Counts.Late)/benchRequests, "%late")
	b.ReportMetric(0, "ns/op")
}

// serveScripted, in the environment, makes this test binary the server of BenchmarkAccuracy.
const serveScripted = "EXPLAIN_SERVE_SCRIPTED"

func TestMain(m *testing.M) {
	if os.Getenv(serveScripted) == "" {
		os.Exit(m.Run())
	}
	plans := mixedPlans(benchRequests)
	beat()
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan { return plans[i%len(plans)] }}
	ts := httptest.NewServer(fakeserver.New(script))
	fmt.Println(ts.URL)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the benchmark ends
}

// startScripted starts the server of BenchmarkAccuracy and returns its address.
func startScripted(b *testing.B) (url string) {
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), serveScripted+"=1")
	in, err := c.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { in.Close(); _ = c.Wait() })
	if _, err := fmt.Fscanln(out, &url); err != nil {
		b.Fatal(err)
	}
	return url
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
