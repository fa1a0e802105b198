package load

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/fakeserver"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

const ms = time.Millisecond

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// Every latency is what the script says, to the nanosecond.
func TestLatenciesAreExact(t *testing.T) {
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan {
		return fakeserver.Plan{TTFT: time.Duration(i+1) * 10 * ms, Gaps: []time.Duration{1 * ms, 2 * ms, 6 * ms}}
	}}
	drive(t, script, Options{Requests: 5}, func(t *testing.T, r ran) {
		if r.err != nil {
			t.Fatal(r.err)
		}
		l := r.res.Latency
		for _, c := range []struct {
			name      string
			d         *loadfile.Distribution
			n         int64
			p50, mean float64
			p90       float64
		}{
			{"ttft", l.TTFT, 5, 30e6, 30e6, 46e6}, // 10 20 30 40 50
			{"e2e", l.E2E, 5, 39e6, 39e6, 55e6},   // 9 ms more each
			{"tpot", l.TPOT, 5, 3e6, 3e6, 3e6},    // 9 ms / 3
			{"itl", l.ITL, 15, 2e6, 3e6, 6e6},     // 1 2 6, five times
			{"delay", l.Delay, 5, 0, 0, 0},        // sent when due
		} {
			if c.d == nil || c.d.Summary.N != c.n || c.d.Summary.P50 != c.p50 || c.d.Summary.Mean != c.mean || c.d.Summary.P90 != c.p90 {
				t.Errorf("%s: %+v", c.name, c.d)
			}
		}
		if r.res.Window != 195e6 || !near(*r.res.Rates.Requests, 5/0.195) || !near(*r.res.Rates.OutputTokens, 20/0.195) {
			t.Errorf("window %d, rates %v %v", r.res.Window, *r.res.Rates.Requests, *r.res.Rates.OutputTokens)
		}
		if r.res.Tokens.CountedBy != "usage" || *r.res.Tokens.Output != 20 {
			t.Errorf("tokens: %+v", r.res.Tokens)
		}
	})
}

// A server that stands still charges every request that was due meanwhile, not only the one that it held.
func TestNoCoordinatedOmission(t *testing.T) {
	const n = 200
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan {
		if i == 0 {
			return fakeserver.Plan{TTFT: time.Second}
		}
		return fakeserver.Plan{TTFT: ms}
	}}
	drive(t, script, Options{Requests: n, Rate: 100, Concurrency: 1, Seed: 7}, func(t *testing.T, r ran) {
		if r.err != nil {
			t.Fatal(r.err)
		}
		// One at a time, in the order in which they are due: each ends 1 ms after the later of its due moment and the end before.
		next := arrivals(100, 7)
		var want []float64
		end := time.Duration(0)
		for i := range n {
			due := next()
			took := ms
			if i == 0 {
				took = time.Second
			}
			end = max(end, due) + took
			want = append(want, float64(end-due))
		}
		slices.Sort(want)
		s := r.res.Latency.E2E.Summary
		if s.Max != want[n-1] || s.Min != want[0] || s.P50 != (want[99]+want[100])/2 {
			t.Errorf("e2e %+v, want min %g p50 %g max %g", s, want[0], (want[99]+want[100])/2, want[n-1])
		}
		if s.P50 < 50e6 {
			t.Errorf("the median %g ns hides a second of standstill", s.P50)
		}
		if r.res.Counts.Late < 50 {
			t.Errorf("%d late", r.res.Counts.Late)
		}
	})
}

// Without a limit an open loop is never late, however slow the server.
func TestOpenLoopKeepsItsSchedule(t *testing.T) {
	drive(t, fakeserver.Script{TTFT: 3 * time.Second, Tokens: 2, Gap: ms}, Options{Requests: 300, Rate: 250}, func(t *testing.T, r ran) {
		if r.err != nil || r.res.Counts.Late != 0 || r.res.Latency.Delay.Summary.Max != 0 || r.res.Latency.TTFT.Summary.P99 != 3e9 {
			t.Errorf("%v, %+v", r.err, r.res.Counts)
		}
		if got := 299 / (float64(r.res.Requests[299].Due) / 1e9); math.Abs(got-250) > 30 {
			t.Errorf("rate of arrivals %g", got)
		}
	})
}

// Arrivals are a Poisson process: gaps have the mean and the spread of an exponential distribution, and e^-1 of them are
// longer than the mean. The same seed gives the same.
func TestArrivals(t *testing.T) {
	const n, rate = 200_000, 50.0
	a, b, other := arrivals(rate, 1), arrivals(rate, 1), arrivals(rate, 2)
	var sum, squares float64
	var long, same int
	last := a()
	if last != 0 || b() != 0 || other() != 0 {
		t.Error("the first request is not due at once")
	}
	for range n {
		at := a()
		if b() != at {
			t.Fatal("the same seed gives other arrivals")
		}
		if other() == at {
			same++
		}
		gap := float64(at-last) / 1e9 * rate
		sum, squares = sum+gap, squares+gap*gap
		if gap > 1 {
			long++
		}
		last = at
	}
	if mean, second := sum/n, squares/n; math.Abs(mean-1) > 0.01 || math.Abs(second-2) > 0.05 || math.Abs(float64(long)/n-math.Exp(-1)) > 0.005 || same > 0 {
		t.Errorf("mean %g, second moment %g, long %g, equal to another seed %d", mean, second, float64(long)/n, same)
	}
}

func TestFaultsHaveKinds(t *testing.T) {
	for fault, kind := range map[string]string{
		fakeserver.Reset: loadfile.Reset, fakeserver.Hang: loadfile.Timeout, fakeserver.Stall: loadfile.Timeout, fakeserver.Cut: loadfile.CutStream, fakeserver.Short: loadfile.CutStream,
		fakeserver.Garbage: loadfile.BadStream, fakeserver.NotJSON: loadfile.BadStream, fakeserver.HTML: loadfile.BadStream, fakeserver.ErrorEvent: loadfile.ServerError,
		fakeserver.Abort: loadfile.ServerError, fakeserver.Empty: loadfile.NoOutput, "http_500": "http_500", "http_503": "http_503", "http_429": "http_429", "http_302": "http_302",
	} {
		for _, chat := range []bool{false, true} {
			t.Run(fault, func(t *testing.T) {
				script := fakeserver.Script{TTFT: 10 * ms, Gap: ms, Tokens: 8, Fault: fault, Every: 5}
				drive(t, script, Options{Requests: 20, Concurrency: 3, Timeout: 2 * time.Second, Chat: chat}, func(t *testing.T, r ran) {
					if r.err != nil {
						t.Fatal(r.err)
					}
					want := []loadfile.Failure{{Kind: kind, Count: 4}}
					if !slices.Equal(r.res.Failures, want) || r.res.Counts.Succeeded != 16 {
						t.Errorf("%v, %+v", r.res.Failures, r.res.Counts)
					}
					if s := r.res.Latency.TTFT.Summary; s.Min != 10e6 || s.Max != 10e6 {
						t.Errorf("failures disturb the latencies of others: %+v", s)
					}
					if r.res.Latency.ITL.Summary.N != 16*7 {
						t.Errorf("gaps of failed requests count: %d", r.res.Latency.ITL.Summary.N)
					}
				})
			})
		}
	}
}

func TestServerThatIsNotThere(t *testing.T) {
	for name, c := range map[string]struct {
		script fakeserver.Script
		opt    Options
		kind   error
		text   string
		within time.Duration
	}{
		"never healthy":     {fakeserver.Script{HealthyAfter: -1}, Options{HealthTimeout: 7 * time.Second}, ErrNotHealthy, "did not become healthy within 7s: /health answers HTTP 503", 7 * time.Second},
		"wants a key":       {fakeserver.Script{Key: "k"}, Options{}, ErrNotHealthy, "wants a key", 0},
		"no model":          {fakeserver.Script{NoModels: true}, Options{}, ErrNotHealthy, "name the model with --model", 0},
		"hangs":             {fakeserver.Script{Fault: fakeserver.Hang}, Options{Timeout: 3 * time.Second, Warmup: 4}, ErrNothingSucceeded, "the first request to the server failed (timeout", 3 * time.Second},
		"hangs in the load": {fakeserver.Script{Fault: fakeserver.Hang, After: 10}, Options{Timeout: 3 * time.Second}, ErrServerGone, "the server hangs: nothing came from it for 3s", 4 * time.Second},
		"hangs for all":     {fakeserver.Script{Fault: fakeserver.Hang}, Options{Timeout: 3 * time.Second, Rate: 50, Requests: 1000}, ErrServerGone, "hangs", 4 * time.Second},
		"always 500":        {fakeserver.Script{Fault: "http_500"}, Options{Warmup: 1}, ErrNothingSucceeded, "http_500: {", 0},
		"500 in the load":   {fakeserver.Script{Fault: "http_500", Every: 1, After: 2}, Options{Warmup: 1, Concurrency: 4}, ErrNothingSucceeded, "none of 100 requests succeeded (http_500", 0},
		"dies":              {fakeserver.Script{Fault: fakeserver.Die, After: 30}, Options{Concurrency: 4}, ErrServerGone, "the server is gone: ", time.Second},
		"dies at the end":   {fakeserver.Script{Fault: fakeserver.Die, After: 96}, Options{}, ErrServerGone, "the server is gone: the last connections failed, and nothing accepts connections there", 2 * time.Second},
		"dies in open loop": {fakeserver.Script{Fault: fakeserver.Die, After: 30}, Options{Rate: 100}, ErrServerGone, "the server is gone: ", 2 * time.Second},
		"garbage":           {fakeserver.Script{Fault: fakeserver.Garbage}, Options{Warmup: 1}, ErrNothingSucceeded, "bad_stream", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if c.opt.Requests == 0 {
				c.opt.Requests = 100
			}
			drive(t, c.script, c.opt, func(t *testing.T, r ran) {
				if !errors.Is(r.err, c.kind) || !strings.Contains(r.err.Error(), c.text) {
					t.Errorf("error %v", r.err)
				}
				if r.took > c.within+50*ms {
					t.Errorf("took %v, may take %v", r.took, c.within)
				}
				if strings.Contains(r.err.Error(), "\n") || strings.Contains(r.err.Error(), "127.0.0.1") {
					t.Errorf("not one sentence, or an address: %v", r.err)
				}
				if r.res != nil && errors.Is(c.kind, ErrServerGone) && (r.res.Complete || r.res.Stopped != "server_gone") {
					t.Errorf("complete: %v %s", r.res.Complete, r.res.Stopped)
				}
			})
		})
	}
}

func TestServerThatStartsSlowly(t *testing.T) {
	for name, script := range map[string]fakeserver.Script{"health": {HealthyAfter: 3 * time.Second, TTFT: ms}, "no health": {NoHealth: true}, "no [DONE]": {NoDone: true}} {
		drive(t, script, Options{Requests: 3, Warmup: 2}, func(t *testing.T, r ran) {
			if r.err != nil || r.res.Counts.Succeeded != 3 || r.srv.Completions() != 5 {
				t.Errorf("%s: %v, %d completions", name, r.err, r.srv.Completions())
			}
		})
	}
}

func TestKey(t *testing.T) {
	drive(t, fakeserver.Script{Key: "sesame-hunter2"}, Options{Requests: 2, APIKey: "sesame-hunter2"}, func(t *testing.T, r ran) {
		if r.err != nil || r.res.Counts.Succeeded != 2 {
			t.Fatal(r.err)
		}
	})
}

// The documented mixtures, request by request.
func TestModes(t *testing.T) {
	const short = "Write a short story."
	for mode, want := range map[string][]struct {
		bytes, tokens int
		prefix        string
	}{
		"prefill": {{20 * len(sentence), 50, sentence}, {20 * len(sentence), 50, sentence}},
		"decode":  {{len("Hello world 0"), 200, "Hello world 0"}, {len("Hello world 1"), 200, "Hello world 1"}},
		"mixed":   {{15 * len(sentence), 100, sentence}, {5 * len(sentence), 150, sentence}, {len(short), 50, short}, {15 * len(sentence), 100, sentence}},
	} {
		drive(t, fakeserver.Script{Model: "org/model"}, Options{Mode: mode, Requests: len(want), Temperature: DefaultTemperature}, func(t *testing.T, r ran) {
			if r.err != nil {
				t.Fatal(r.err)
			}
			for i, a := range r.srv.Asked() {
				if len(a.Prompt) != want[i].bytes || a.MaxTokens != want[i].tokens || !strings.HasPrefix(a.Prompt, want[i].prefix) || a.Temperature != 0.8 || a.Model != "org/model" || !a.Stream || !a.Options.IncludeUsage || a.IgnoreEOS {
					t.Errorf("%s %d: %+v", mode, i, a)
				}
			}
			if *r.res.Model != "org/model" {
				t.Errorf("model %s", *r.res.Model)
			}
		})
	}
}

func TestSyntheticPromptsAreSeededAndDiffer(t *testing.T) {
	var seen []string
	for _, seed := range []uint64{1, 1, 2} {
		drive(t, fakeserver.Script{}, Options{PromptTokens: 50, OutputTokens: 7, Requests: 2, Seed: seed}, func(t *testing.T, r ran) {
			for _, a := range r.srv.Asked() {
				if n := len(strings.Fields(a.Prompt)); n != 50 || a.MaxTokens != 7 || !a.IgnoreEOS {
					t.Errorf("%d words, %+v", n, a)
				}
				seen = append(seen, a.Prompt)
			}
			seen = append(seen, r.res.Workload.Fingerprint)
		})
	}
	if len(seen) != 9 || seen[0] != seen[3] || seen[2] != seen[5] || seen[0] == seen[1] || seen[0] == seen[6] || seen[2] == seen[8] {
		t.Errorf("%q", seen)
	}
}

// The warm-up asks for nothing that the load asks for, in the same mixture.
func TestWarmupLeavesCachesCold(t *testing.T) {
	for _, opt := range []Options{{Mode: "decode"}, {PromptTokens: 20}} {
		opt.Requests, opt.Warmup = 6, 6
		drive(t, fakeserver.Script{}, opt, func(t *testing.T, r ran) {
			seen := map[string]bool{}
			for _, a := range r.srv.Asked() {
				if seen[a.Prompt] {
					t.Errorf("%.40q is asked twice", a.Prompt)
				}
				seen[a.Prompt] = true
			}
			if len(seen) != 12 || r.res.Counts.Sent != 6 {
				t.Errorf("%d prompts, %+v", len(seen), r.res.Counts)
			}
		})
	}
	drive(t, fakeserver.Script{}, Options{Requests: 3, Warmup: 3}, func(t *testing.T, r ran) {
		for i, a := range r.srv.Asked() {
			if want := []int{100, 150, 50}[i%3]; a.MaxTokens != want {
				t.Errorf("request %d asks for %d tokens", i, a.MaxTokens)
			}
		}
	})
}

// Servers close a connection after 5 s without a request: a load with long pauses does not meet them half-way.
func TestPausesAreNoFailures(t *testing.T) {
	drive(t, fakeserver.Script{Tokens: 2}, Options{Requests: 30, Rate: 0.2, Seed: 3}, func(t *testing.T, r ran) {
		if r.err != nil || r.res.Counts.Failed > 0 {
			t.Errorf("%v %v", r.err, r.res.Failures)
		}
	})
}

// Goodput by hand: TTFT 10, 20, … 100 ms; the limit 55 ms lets five pass, one of which fails.
func TestGoodput(t *testing.T) {
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan {
		p := fakeserver.Plan{TTFT: time.Duration(i+1) * 10 * ms, Gaps: []time.Duration{10 * ms}}
		if i == 2 {
			p.Fault = "http_500"
		}
		return p
	}}
	drive(t, script, Options{Requests: 10, SLO: SLO{TTFT: 55 * ms, TPOT: 10 * ms, E2E: time.Second}}, func(t *testing.T, r ran) {
		if g := r.res.Goodput; g == nil || g.Good != 4 || *g.Ratio != 0.4 {
			t.Errorf("%+v", g)
		}
	})
}

func TestDurationEndsTheLoad(t *testing.T) {
	for _, opt := range []Options{{Duration: 2 * time.Second, Concurrency: 2}, {Duration: 2 * time.Second, Rate: 40}} {
		drive(t, fakeserver.Script{TTFT: 100 * ms, Tokens: 1}, opt, func(t *testing.T, r ran) {
			if r.err != nil || !r.res.Complete || r.took > 2100*ms || r.res.Counts.Sent < 30 {
				t.Errorf("%v after %v: %+v", r.err, r.took, r.res.Counts)
			}
			for _, q := range r.res.Requests {
				if q.Due >= 2e9 {
					t.Errorf("due at %d", q.Due)
				}
			}
		})
	}
}

// One request in flight, of 100 ms each: at most 20 are sent in 2 s, however many of the about 80 that were due wait.
// If the server hangs, the one in flight runs out of time, and none follows it.
func TestDurationEndsALoadWithAQueue(t *testing.T) {
	opt := Options{Duration: 2 * time.Second, Rate: 40, Concurrency: 1, Timeout: 3 * time.Second}
	drive(t, fakeserver.Script{TTFT: 100 * ms, Tokens: 1}, opt, func(t *testing.T, r ran) {
		if c := r.res.Counts; r.err != nil || c.Sent > 20 || c.Sent < 15 || c.Succeeded != c.Sent || r.took > 2100*ms {
			t.Errorf("%v after %v: %+v", r.err, r.took, c)
		}
		for _, q := range r.res.Requests {
			if q.Sent >= 2e9 {
				t.Errorf("sent at %d", q.Sent)
			}
		}
	})
	drive(t, fakeserver.Script{TTFT: 100 * ms, Tokens: 1, Fault: fakeserver.Hang, After: 5}, opt, func(t *testing.T, r ran) {
		if c := r.res.Counts; c.Succeeded != 4 || c.Failed != 1 || r.took > 5*time.Second {
			t.Errorf("%v after %v: %+v", r.err, r.took, c)
		}
	})
}

func TestTokensWithoutUsage(t *testing.T) {
	drive(t, fakeserver.Script{NoUsage: true, Tokens: 5}, Options{Requests: 2}, func(t *testing.T, r ran) {
		if r.res.Tokens.CountedBy != "events" || *r.res.Tokens.Output != 10 || r.res.Tokens.Input != nil || r.res.Rates.InputTokens != nil {
			t.Errorf("%+v", r.res.Tokens)
		}
	})
	drive(t, fakeserver.Script{PerEvent: 3, Tokens: 5, Gap: 3 * ms}, Options{Requests: 2}, func(t *testing.T, r ran) {
		// 15 tokens in 5 events over 12 ms: 12/14 ms per token, whole ns
		if *r.res.Tokens.Output != 30 || r.res.Latency.TPOT.Summary.P50 != math.Floor(12e6/14) || r.res.Latency.ITL.Summary.P50 != 3e6 {
			t.Errorf("%+v %+v", r.res.Tokens, r.res.Latency.TPOT)
		}
	})
}

var errDied = errors.New("the server process died with exit code 1")

// A caller that sees the server die ends the run at once, and gets what was measured.
func TestCauseEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	opt := Options{Requests: 1000, Concurrency: 8}
	var order []string
	opt.BeforeLoad = func(context.Context) error {
		order = append(order, "before")
		return nil
	}
	opt.AfterLoad = func() { order = append(order, "after") }
	script := fakeserver.Script{TTFT: 10 * ms, Plan: func(i int) fakeserver.Plan {
		if i == 100 {
			cancel(errDied)
		}
		return fakeserver.Plan{TTFT: 10 * ms}
	}}
	driveCtx(t, ctx, script, opt, func(t *testing.T, r ran) {
		if !errors.Is(r.err, errDied) || r.res == nil || r.res.Complete || r.res.Stopped != "aborted" || r.res.Counts.Succeeded < 80 || r.res.Counts.Cancelled == 0 || r.res.Counts.Failed != 0 {
			t.Errorf("%v %+v", r.err, r.res)
		}
		if !slices.Equal(order, []string{"before", "after"}) {
			t.Errorf("%v", order)
		}
	})
}

func TestBeforeLoadEndsTheRun(t *testing.T) {
	opt := Options{Requests: 10, Warmup: 2, BeforeLoad: func(context.Context) error { return errDied }, AfterLoad: func() { t.Error("called") }}
	drive(t, fakeserver.Script{}, opt, func(t *testing.T, r ran) {
		if !errors.Is(r.err, errDied) || r.res != nil || r.srv.Completions() != 2 {
			t.Errorf("%v, %d completions", r.err, r.srv.Completions())
		}
	})
}

func TestProgress(t *testing.T) {
	var stages []string
	var last Progress
	opt := Options{Requests: 50, Warmup: 5, Progress: func(p Progress) {
		if len(stages) == 0 || stages[len(stages)-1] != p.Stage {
			stages = append(stages, p.Stage)
		}
		last = p
	}}
	drive(t, fakeserver.Script{HealthyAfter: time.Second, TTFT: 100 * ms}, opt, func(t *testing.T, r ran) {
		if !slices.Equal(stages, []string{"wait", "warm-up", "load"}) || last.Total != 50 || last.Done == 0 || last.Done > 50 {
			t.Errorf("%v %+v", stages, last)
		}
	})
}

// What is written holds nothing of prompts, addresses, keys, answers or paths.
func TestResultHoldsNoSecrets(t *testing.T) {
	data := &Dataset{list: []prompt{{text: "PROMPT-hunter2", maxTokens: 3}}}
	script := fakeserver.Script{Key: "KEY-hunter2", Model: "/home/somebody-hunter2/models/llama-8b", Plan: func(i int) fakeserver.Plan {
		if i == 3 {
			return fakeserver.Plan{Fault: fakeserver.ErrorEvent}
		}
		return fakeserver.Plan{}
	}}
	drive(t, script, Options{URL: "http://host-hunter2:8123", Dataset: data, Requests: 8, APIKey: "KEY-hunter2", Version: "test"}, func(t *testing.T, r ran) {
		if r.err != nil {
			t.Fatal(r.err)
		}
		var a, b bytes.Buffer
		if err := r.res.Write(&a); err != nil {
			t.Fatal(err)
		}
		if err := r.res.Write(&b); err != nil || a.String() != b.String() {
			t.Errorf("writing twice differs (%v)", err)
		}
		for _, secret := range []string{"hunter2", "8123", "token\"", "somebody"} {
			if strings.Contains(a.String(), secret) {
				t.Errorf("holds %s: %s", secret, a.String())
			}
		}
		if *r.res.Model != "llama-8b" {
			t.Errorf("model %q", *r.res.Model)
		}
		again, err := loadfile.Read(&a)
		if err != nil || again.Counts != r.res.Counts {
			t.Errorf("%v %+v", err, again)
		}
	})
}

func TestOptionsThatCannotBeMeant(t *testing.T) {
	for name, o := range map[string]Options{
		"address": {URL: "::", Requests: 1}, "scheme": {URL: "ftp://x", Requests: 1}, "user": {URL: "http://u:p@x", Requests: 1}, "query": {URL: "http://x?a=b", Requests: 1},
		"mode": {Mode: "fast", Requests: 1}, "both": {Mode: "mixed", PromptTokens: 3, Requests: 1}, "no end": {}, "rate": {Rate: math.NaN(), Requests: 1}, "negative": {Rate: -1, Requests: 1},
		"concurrency": {Concurrency: -1, Requests: 1}, "slo": {SLO: SLO{TTFT: -1}, Requests: 1}, "key": {APIKey: "a\nb", Requests: 1}, "temperature": {Temperature: -1, Requests: 1},
	} {
		if _, err := Run(context.Background(), o); !errors.As(err, new(usage.Error)) || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A server that repeats what it was sent puts the key on no terminal.
func TestKeyOfAnEchoIsBlanked(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such "+r.Header.Get("Authorization"), http.StatusTeapot)
	}))
	defer ts.Close()
	c := newClient(ts.URL, &Options{APIKey: "KEYCANARY-123"})
	if o := c.do(context.Background(), time.Minute, []byte("{}")); o.detail != "no such Bearer [redacted]" {
		t.Errorf("said %q", o.detail)
	}
	// The cut after 200 bytes would leave half of the key.
	if got, want := c.quoted([]byte(strings.Repeat("x", 190)+"KEYCANARY-123")), strings.Repeat("x", 190)+"[redacted]"; got != want {
		t.Errorf("said %q", got)
	}
	if got, want := c.quoted([]byte(strings.Repeat("x", 195)+"KEYCANARY-123")), strings.Repeat("x", 195)+"[reda…"; got != want {
		t.Errorf("said %q", got)
	}
}

func TestBaseURL(t *testing.T) {
	for in, want := range map[string]string{"localhost:8000": "http://localhost:8000", "http://h:1/v1/": "http://h:1", "https://h/proxy/v1": "https://h/proxy", "http://[::1]:8000": "http://[::1]:8000",
		"http://h/v1/completions": "http://h", "http://h/p/v1/chat/completions/": "http://h/p", "http://h/v1/models": "http://h", "http://h/completions": "http://h/completions"} {
		if got, err := baseURL(in); got != want || err != nil {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
}

// A failure that comes back first does not end a warm-up whose other requests are still on their way.
func TestWarmUpOutlivesAnEarlyFailure(t *testing.T) {
	script := fakeserver.Script{Plan: func(i int) fakeserver.Plan {
		p := fakeserver.Plan{TTFT: 10 * ms, Gaps: make([]time.Duration, 3)}
		if i == 0 {
			p = fakeserver.Plan{Fault: "http_429"}
		}
		return p
	}}
	drive(t, script, Options{Requests: 8, Warmup: 4, Concurrency: 2}, func(t *testing.T, r ran) {
		if r.err != nil || !r.res.Complete {
			t.Errorf("error %v, result %+v", r.err, r.res)
		}
	})
}
