package load

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Result is what a run measured.
type Result struct {
	*loadfile.Result
	// examples say what exactly went wrong with the first request of each kind of failure. They may quote the server,
	// so they are for a terminal and never in a file.
	examples map[string]string
}

// Run drives the server and measures. The result is nil if nothing was measured. Result and error come together
// where a load was cut short, or if no request of it succeeded: the error says which in a sentence. A ctx that ends
// with a cause, as when the caller sees the server die, ends the run with that cause.
func Run(ctx context.Context, opt Options) (*Result, error) {
	base, err := opt.fill()
	if err != nil {
		return nil, err
	}
	r := &runner{opt: &opt, client: newClient(base, &opt), begun: time.Now(), examples: map[string]string{}}
	r.begin("wait", 0)
	defer r.client.http.CloseIdleConnections()
	defer r.report()()
	return r.run(ctx)
}

type runner struct {
	opt    *Options
	client *client
	model  string
	begun  time.Time

	stage    atomic.Pointer[stage]
	lastSign atomic.Int64 // ns since begun: when the server last sent something
	row      atomic.Int64 // connections that failed in a row

	mu       sync.Mutex
	records  []loadfile.Record
	gaps     []int64 // between tokens, ns
	examples map[string]string
}

// stage is a part of a run: wait, warm-up or load.
type stage struct {
	name               string
	total              int // requests; 0: unknown
	sent, done, failed atomic.Int64
}

func (r *runner) begin(name string, total int) { r.stage.Store(&stage{name: name, total: total}) }

func (r *runner) run(ctx context.Context) (*Result, error) {
	opt := r.opt
	if opt.HealthTimeout > 0 {
		if err := r.client.waitHealthy(ctx, opt.HealthTimeout); err != nil {
			return nil, err
		}
	}
	if r.model = opt.Model; r.model == "" {
		var err error
		if r.model, err = r.client.firstModel(ctx, opt.Timeout); err != nil {
			return nil, err
		}
	}
	workload := r.workload()
	r.client.sign = func() { r.lastSign.Store(int64(time.Since(r.begun))) }
	if err := r.warmUp(ctx); err != nil {
		return r.result(workload, err)
	}
	if opt.BeforeLoad != nil {
		if err := opt.BeforeLoad(ctx); err != nil {
			return nil, err
		}
	}
	r.begin("load", opt.Requests)
	stopped := r.load(ctx)
	if opt.AfterLoad != nil {
		opt.AfterLoad()
	}
	if len(r.records) == 0 && stopped == nil {
		stopped = failf(ErrNothingSucceeded, "the duration was over before the first request was due")
	}
	return r.result(workload, stopped)
}

// result returns what the records say; nil without records. stopped is why the run ended early.
func (r *runner) result(workload loadfile.Workload, stopped error) (*Result, error) {
	if len(r.records) == 0 {
		return nil, stopped
	}
	slo := loadfile.SLO{TTFT: positive(r.opt.SLO.TTFT), TPOT: positive(r.opt.SLO.TPOT), E2E: positive(r.opt.SLO.E2E)}
	res := &Result{Result: loadfile.Build(workload, slo, r.records, r.gaps), examples: r.examples}
	res.Describe(r.opt.Version, r.model)
	if stopped != nil {
		res.Complete, res.Stopped = false, stopCode(stopped)
		return res, stopped
	}
	if res.Counts.Succeeded == 0 {
		return res, failf(ErrNothingSucceeded, "none of %d requests succeeded%s", res.Counts.Sent, r.firstExample())
	}
	return res, nil
}

func stopCode(err error) string {
	switch {
	case errors.Is(err, ErrServerGone):
		return "server_gone"
	case errors.Is(err, ErrInterrupted), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "interrupted"
	}
	return "aborted"
}

// fingerprinted is the most prompts that the fingerprint of a load covers.
const fingerprinted = 1000

// workload describes the load. Loads with equal fingerprints sent the same requests at the same times; the model is not
// in it.
func (r *runner) workload() loadfile.Workload {
	o := r.opt
	w := loadfile.Workload{
		API: "completions", Stream: true, Prompts: o.kind(), Loop: "closed",
		Warmup: int64(o.Warmup), Timeout: o.Timeout.Nanoseconds(), Temperature: o.Temperature, Seed: o.Seed,
		Concurrency: positive(o.Concurrency), Requests: positive(o.Requests), Duration: positive(o.Duration),
		PromptTokens: positive(o.PromptTokens), OutputTokens: positive(o.OutputTokens),
	}
	if o.Chat {
		w.API = "chat"
	}
	if o.Rate > 0 {
		w.Loop, w.Rate = "open", &o.Rate
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s %g %d %d %d %d\n", w.API, o.Rate, o.Concurrency, o.Requests, o.Duration, o.Seed)
	for i := range min(fingerprinted, cmp.Or(o.Requests, fingerprinted)) {
		h.Write(o.body("", i))
	}
	w.Fingerprint = hex.EncodeToString(h.Sum(nil)[:8])
	return w
}

func positive[T int | time.Duration](v T) *int64 { return report.Stated(int64(v)) }

// warmupPrompts is where the prompts of the warm-up begin: different from the load's, so that no prefix cache knows
// those. It is a multiple of three, as the mixed mode wants.
const warmupPrompts = 3 * maxRequests

// warmUp sends requests that are not measured, as many at a time as the load may have in flight. If none succeeds there
// is nothing to measure, and the failed ones are the result.
func (r *runner) warmUp(ctx context.Context) error {
	n := r.opt.Warmup
	if n == 0 {
		return nil
	}
	r.begin("warm-up", n)
	start := time.Now()
	var ok atomic.Int64
	err := side(ctx, min(n, max(1, r.opt.Concurrency)), func(ctx context.Context, i int) (bool, error) {
		if i >= n {
			return false, nil
		}
		o := r.ask(ctx, r.opt.body(r.model, warmupPrompts+i))
		if o.failed == "" {
			ok.Add(1)
			return true, nil
		}
		if o.failed != loadfile.Cancelled {
			r.mu.Lock()
			r.records = append(r.records,
				loadfile.Record{First: -1, Last: -1, End: int64(time.Since(start)), Input: -1, Output: -1, Failed: o.failed})
			r.mu.Unlock()
		}
		return ok.Load() > 0, nil // a server that hangs costs its time-out once, not n times
	})
	if ok.Load() == 0 {
		return cmp.Or(err, failf(ErrNothingSucceeded, "the first request to the server failed%s", r.firstExample()))
	}
	clear(r.examples)
	r.records = nil
	return err
}

// side calls do with 0, 1, 2 and so on, as many at a time as wanted, until one of the calls returns false or an error,
// or ctx ends.
func side(ctx context.Context, wanted int, do func(ctx context.Context, i int) (more bool, err error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range wanted {
		all.Go(func() {
			for ctx.Err() == nil {
				more, err := do(ctx, int(next.Add(1))-1)
				if err != nil {
					cancel(err)
				}
				if !more {
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// load sends the measured requests and waits for all answers. It returns an error if it was cut short.
func (r *runner) load(ctx context.Context) error {
	loop := r.closed
	if r.opt.Rate > 0 {
		loop = r.open
	}
	if why := loop(ctx, time.Now()); why != nil || r.row.Load() == 0 {
		return why
	}
	// The last connections failed, but too few to end the load: check whether the server is still there.
	if _, _, err := r.client.get(ctx, "/health", min(r.opt.Timeout, pollTimeout)); err != nil && ctx.Err() == nil {
		return failf(ErrServerGone, "the server is gone: the last connections failed, and %s; its log should say why",
			reason(err))
	}
	return context.Cause(ctx)
}

// open sends each request when it is due, regardless of earlier ones. Those that wait for a place in flight when the
// duration is over are not sent.
func (r *runner) open(ctx context.Context, start time.Time) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sending := ctx // ends when no more requests are to be sent
	if r.opt.Duration > 0 {
		var stop context.CancelFunc
		sending, stop = context.WithDeadline(ctx, start.Add(r.opt.Duration))
		defer stop()
	}
	var all sync.WaitGroup
	places := make(chan struct{}, cmp.Or(r.opt.Concurrency, maxConcurrency))
	next := arrivals(r.opt.Rate, r.opt.Seed)
	for i := 0; r.opt.Requests == 0 || i < r.opt.Requests; i++ {
		due := next()
		body := r.opt.body(r.model, i) // before it is due: making a prompt takes time
		if r.opt.Duration > 0 && due >= r.opt.Duration || !sleepUntil(sending, start.Add(due)) {
			break
		}
		select {
		case <-sending.Done(): // the next wait sees it
		case places <- struct{}{}:
			all.Go(func() {
				if err := r.one(ctx, start, due, body); err != nil {
					cancel(err)
				}
				<-places
			})
		}
	}
	all.Wait()
	return context.Cause(ctx)
}

// closed keeps the wanted number of requests in flight, and sends the next one after each answer.
func (r *runner) closed(ctx context.Context, start time.Time) error {
	return side(ctx, r.opt.Concurrency, func(ctx context.Context, i int) (bool, error) {
		if r.opt.Requests > 0 && i >= r.opt.Requests {
			return false, nil
		}
		body := r.opt.body(r.model, i) // before it is due, as in an open loop
		due := time.Since(start)
		if r.opt.Duration > 0 && due >= r.opt.Duration {
			return false, nil
		}
		return true, r.one(ctx, start, due, body)
	})
}

// ask sends a request and counts it.
func (r *runner) ask(ctx context.Context, body []byte) outcome {
	s := r.stage.Load()
	s.sent.Add(1)
	o := r.client.do(ctx, r.opt.Timeout, body)
	s.done.Add(1)
	if o.failed != "" && o.failed != loadfile.Cancelled {
		s.failed.Add(1)
		r.mu.Lock()
		if _, ok := r.examples[o.failed]; !ok {
			r.examples[o.failed] = o.detail
		}
		r.mu.Unlock()
	}
	return o
}

// one sends a request and records its outcome. It returns an error if the server is gone.
func (r *runner) one(ctx context.Context, start time.Time, due time.Duration, body []byte) error {
	sent := time.Now()
	o := r.ask(ctx, body)
	since := func(t time.Time) int64 {
		if t.IsZero() {
			return -1
		}
		return int64(t.Sub(start))
	}
	c := loadfile.Record{Due: int64(due), Sent: since(sent), First: since(o.first), Last: since(o.last),
		End: since(o.end), Input: o.input, Output: o.output, ByUsage: o.output >= 0, Failed: o.failed}
	if !c.ByUsage {
		c.Output = o.events
	}
	r.mu.Lock()
	r.records = append(r.records, c)
	if o.failed == "" {
		r.gaps = append(r.gaps, o.gaps...)
	}
	r.mu.Unlock()
	if why := r.gone(o); why != nil && r.more(start) {
		return why
	}
	return nil
}

// more reports whether requests are left to send. If none are, those in flight may as well run out of time by
// themselves.
func (r *runner) more(start time.Time) bool {
	return (r.opt.Requests == 0 || r.stage.Load().sent.Load() < int64(r.opt.Requests)) &&
		(r.opt.Duration == 0 || time.Since(start) < r.opt.Duration)
}

// deadConnections is how many connections in a row have to fail, at least, until the server is taken to be gone.
const deadConnections = 20

// gone returns why the load cannot go on, or nil: connections fail in a row with no answer between, or a request timed
// out while the server sent nothing for any request.
func (r *runner) gone(o outcome) error {
	switch s := r.stage.Load(); o.failed {
	case loadfile.Connect, loadfile.Reset:
		if n := r.row.Add(1); n >= max(deadConnections, 2*(s.sent.Load()-s.done.Load())) {
			return failf(ErrServerGone,
				"the server is gone: %d connections in a row failed (%s); its log should say why", n, o.detail)
		}
	case loadfile.Timeout:
		if silent := time.Since(r.begun) - time.Duration(r.lastSign.Load()); silent >= r.opt.Timeout {
			return failf(ErrServerGone,
				"the server hangs: nothing came from it for %s; its log should say why, and --timeout sets how long to wait",
				silent.Round(time.Millisecond))
		}
	case loadfile.Cancelled:
	default:
		r.row.Store(0)
	}
	return nil
}

// firstExample says in brackets what went wrong; of several kinds the first by name.
func (r *runner) firstExample() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(r.examples))
	if len(kinds) == 0 {
		return ""
	}
	return " (" + strings.TrimSuffix(kinds[0]+": "+r.examples[kinds[0]], ": ") + ")"
}

// report calls Progress until stop is called.
func (r *runner) report() (stop func()) {
	if r.opt.Progress == nil {
		return func() {}
	}
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(200 * time.Millisecond):
				s := r.stage.Load()
				r.opt.Progress(Progress{Stage: s.name, Sent: s.sent.Load(), Done: s.done.Load(), Failed: s.failed.Load(),
					Total: int64(s.total), Elapsed: time.Since(r.begun)})
			}
		}
	})
	return func() { close(end); ended.Wait() }
}

// WriteSummary writes what a person at a terminal wants to know first.
func (r *Result) WriteSummary(w io.Writer) error {
	var b strings.Builder
	c, rates := r.Counts, r.Rates
	fmt.Fprintf(&b, "%s requests in %s: %s succeeded, %s failed", unit.Int(c.Sent),
		unit.Format(float64(r.Window), report.Nanoseconds), unit.Int(c.Succeeded), unit.Int(c.Failed))
	if c.Cancelled > 0 {
		fmt.Fprintf(&b, ", %s cancelled", unit.Int(c.Cancelled))
	}
	b.WriteString("\n")
	line := func(label string, v *float64, what string) {
		if v != nil {
			fmt.Fprintf(&b, "%-24s %10.2f %s\n", label, *v, what)
		}
	}
	line("Throughput", rates.Requests, "requests/s")
	line("Tokens in", rates.InputTokens, "tokens/s")
	line("Tokens out", rates.OutputTokens, "tokens/s")
	if g := r.Goodput; g != nil && g.Ratio != nil {
		fmt.Fprintf(&b, "%-24s %10s of requests within every limit", "Goodput", unit.Percent(*g.Ratio))
		if g.Rate != nil {
			fmt.Fprintf(&b, " (%.2f requests/s)", *g.Rate)
		}
		b.WriteString("\n")
	}
	if c.Succeeded > 0 {
		fmt.Fprintf(&b, "\n%-24s %10s %10s %10s %10s %10s\n", "Latency", "p50", "p90", "p99", "max", "n")
		for _, l := range []struct {
			name string
			d    *loadfile.Distribution
		}{{"Time to first token", r.Latency.TTFT}, {"Time per output token", r.Latency.TPOT},
			{"Between tokens", r.Latency.ITL}, {"Whole answer", r.Latency.E2E}} {
			if l.d == nil {
				continue
			}
			s := l.d.Summary
			fmt.Fprintf(&b, "%-24s", l.name)
			for _, v := range []float64{s.P50, s.P90, s.P99, s.Max} {
				fmt.Fprintf(&b, " %10s", unit.Format(v, report.Nanoseconds))
			}
			fmt.Fprintf(&b, " %10s\n", unit.Int(s.N))
		}
	}
	if len(r.Failures) > 0 {
		b.WriteString("\nFailures\n")
		for _, f := range r.Failures {
			fmt.Fprintf(&b, "  %-14s %8s", f.Kind, unit.Int(f.Count))
			if e := r.examples[f.Kind]; e != "" {
				fmt.Fprintf(&b, "  %s", render.Visible(e))
			}
			b.WriteString("\n")
		}
	}
	if float64(c.Late) > 0.01*float64(c.Sent) {
		fmt.Fprintf(&b,
			"\nWarning: %s of %s requests were sent more than 5 ms after they were due; "+
				"the delay is part of their latency.\n",
			unit.Int(c.Late), unit.Int(c.Sent))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
