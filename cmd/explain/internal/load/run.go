package load

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
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
	r := &runner{opt: &opt, client: newClient(base, &opt), begun: time.Now()}
	defer r.client.close()
	stop := r.report()
	defer stop()
	return r.run(ctx)
}

// runner is the state of one run.
type runner struct {
	opt    *Options
	client *client
	bodies *bodies
	begun  time.Time

	stage              atomic.Pointer[string]
	sent, done, failed atomic.Int64
	inFlight           atomic.Int64
	lastSign           atomic.Int64 // ns since begun: when the server last sent something
	row                atomic.Int64 // connections that failed in a row

	mu       sync.Mutex
	records  []loadfile.Record
	gaps     []int64 // between tokens, ns
	examples map[string]string
}

func (r *runner) run(ctx context.Context) (*Result, error) {
	opt := r.opt
	r.at("wait")
	if opt.HealthTimeout > 0 {
		if err := r.client.waitHealthy(ctx, opt.HealthTimeout); err != nil {
			return nil, err
		}
	}
	model := opt.Model
	if model == "" {
		var err error
		if model, err = r.client.firstModel(ctx, opt.Timeout); err != nil {
			return nil, err
		}
	}
	r.bodies = &bodies{prompts: opt.prompts(), opt: opt, model: model}
	workload, err := r.workload()
	if err != nil {
		return nil, err
	}
	r.client.sign = func() { r.lastSign.Store(int64(time.Since(r.begun))) }
	if err := r.warmUp(ctx); err != nil {
		return r.result(workload, model, err)
	}
	if opt.BeforeLoad != nil {
		if err := opt.BeforeLoad(ctx); err != nil {
			return nil, err
		}
	}
	r.at("load")
	stopped := r.load(ctx)
	if opt.AfterLoad != nil {
		opt.AfterLoad()
	}
	if len(r.records) == 0 && stopped == nil {
		stopped = failf(ErrNothingSucceeded, "the duration was over before the first request was due")
	}
	return r.result(workload, model, stopped)
}

// result returns what the records say; nil without records. stopped is why the run ended early.
func (r *runner) result(workload loadfile.Workload, model string, stopped error) (*Result, error) {
	if len(r.records) == 0 {
		return nil, stopped
	}
	res := &Result{Result: loadfile.Build(workload, r.opt.SLO.limits(), r.records, r.gaps), examples: r.examples}
	res.Describe(r.opt.Version, model)
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

func (o *Options) prompts() prompts {
	switch {
	case o.Dataset != nil:
		d := *o.Dataset
		d.output = o.OutputTokens
		return &d
	case o.PromptTokens > 0:
		s := synthetic{tokens: o.PromptTokens, output: o.OutputTokens, seed: o.Seed}
		if s.output == 0 {
			s.output = defaultOutput
		}
		return s
	}
	return mode{kind: o.Mode, output: o.OutputTokens}
}

// workload describes the load. Its fingerprint covers prompts, how they are asked, and when.
func (r *runner) workload() (loadfile.Workload, error) {
	o := r.opt
	w := loadfile.Workload{
		API: "completions", Stream: !o.NoStream, Prompts: r.bodies.prompts.name(), Loop: "closed",
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
	if err := r.bodies.fingerprint(h); err != nil {
		return w, err
	}
	w.Fingerprint = hex.EncodeToString(h.Sum(nil)[:8])
	return w, nil
}

func positive[T int | time.Duration](v T) *int64 {
	if v <= 0 {
		return nil
	}
	return new(int64(v))
}

// warmupPrompts is where the prompts of the warm-up begin: different from the load's, so that no prefix cache knows
// those. It is a multiple of three, as the mixed mode wants.
const warmupPrompts = 3 * maxRequests

// warmUp sends requests that are not measured, as many at a time as the load may have in flight. If none succeeds there
// is nothing to measure.
func (r *runner) warmUp(ctx context.Context) error {
	n := r.opt.Warmup
	if n == 0 {
		return nil
	}
	r.at("warm-up")
	var next, ok atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	start := time.Now()
	for range min(n, max(1, r.opt.Concurrency)) {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				body, err := r.bodies.at(warmupPrompts + i)
				if err != nil {
					cancel(err)
					return
				}
				r.sent.Add(1)
				o := r.client.do(ctx, r.opt.Timeout, body)
				r.done.Add(1)
				if o.gaps != nil {
					recycle(o.gaps)
				}
				if o.failed == "" {
					ok.Add(1)
					continue
				}
				r.failed.Add(1)
				r.example(o)
				r.failedFirst(o.failed, time.Since(start))
				if ok.Load() == 0 { // a server that hangs costs its time-out once, not n times
					return
				}
			}
		})
	}
	wg.Wait()
	if ok.Load() == 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return failf(ErrNothingSucceeded, "the first request to the server failed%s", r.firstExample())
	}
	r.sent.Store(0)
	r.done.Store(0)
	r.failed.Store(0)
	clear(r.examples)
	r.records = nil
	return context.Cause(ctx)
}

// failedFirst records a failed request of the warm-up: if none succeeds, these are the result.
func (r *runner) failedFirst(kind string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind != loadfile.Cancelled {
		r.records = append(r.records,
			loadfile.Record{First: -1, Last: -1, End: int64(took), Input: -1, Output: -1, Failed: kind})
	}
}

// load sends the measured requests and waits for all answers. It returns an error if it was cut short.
func (r *runner) load(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	start := time.Now()
	var wg sync.WaitGroup
	if r.opt.Rate > 0 {
		r.open(ctx, cancel, start, &wg)
	} else {
		r.closed(ctx, cancel, start, &wg)
	}
	wg.Wait()
	if why := context.Cause(ctx); why != nil || r.row.Load() == 0 {
		return why
	}
	// The last connections failed, but too few to end the load: check whether the server is still there.
	if _, _, err := r.client.get(ctx, "/health", min(r.opt.Timeout, pollTimeout)); err != nil && parent.Err() == nil {
		return failf(ErrServerGone, "the server is gone: the last connections failed, and %s; its log should say why",
			reason(err))
	}
	return context.Cause(parent)
}

// open sends each request when it is due, regardless of earlier ones.
func (r *runner) open(ctx context.Context, cancel context.CancelCauseFunc, start time.Time, wg *sync.WaitGroup) {
	limit := r.opt.Concurrency
	if limit == 0 {
		limit = maxConcurrency
	}
	places := make(chan struct{}, limit)
	times := newArrivals(r.opt.Rate, r.opt.Seed)
	for i := 0; r.opt.Requests == 0 || i < r.opt.Requests; i++ {
		due := times.next()
		if r.opt.Duration > 0 && due >= r.opt.Duration {
			return
		}
		body, err := r.bodies.at(i) // before it is due: making a prompt takes time
		if err != nil {
			cancel(err)
			return
		}
		if !sleepUntil(ctx, start.Add(due)) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case places <- struct{}{}:
		}
		wg.Go(func() {
			r.one(ctx, cancel, start, due, body)
			<-places
		})
	}
}

// closed keeps the wanted number of requests in flight, and sends the next one after each answer.
func (r *runner) closed(ctx context.Context, cancel context.CancelCauseFunc, start time.Time, wg *sync.WaitGroup) {
	var next atomic.Int64
	for range r.opt.Concurrency {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if r.opt.Requests > 0 && i >= r.opt.Requests {
					return
				}
				body, err := r.bodies.at(i) // before it is due, as in an open loop
				if err != nil {
					cancel(err)
					return
				}
				due := time.Since(start)
				if r.opt.Duration > 0 && due >= r.opt.Duration {
					return
				}
				r.one(ctx, cancel, start, due, body)
			}
		})
	}
}

// one sends a request, records its outcome, and ends the load if the server is gone.
func (r *runner) one(ctx context.Context, cancel context.CancelCauseFunc, start time.Time, due time.Duration,
	body []byte) {
	r.sent.Add(1)
	r.inFlight.Add(1)
	sent := time.Now()
	o := r.client.do(ctx, r.opt.Timeout, body)
	if o.end.IsZero() {
		o.end = time.Now()
	}
	flying := r.inFlight.Add(-1)
	since := func(t time.Time) int64 {
		if t.IsZero() {
			return -1
		}
		return int64(t.Sub(start))
	}
	c := loadfile.Record{Due: int64(due), Sent: since(sent), First: since(o.first), Last: since(o.last),
		End: since(o.end), Input: o.input, Output: o.output, ByUsage: o.output >= 0, Failed: o.failed}
	if !c.ByUsage && r.client.stream {
		c.Output = o.events
	}
	r.mu.Lock()
	r.records = append(r.records, c)
	if o.failed == "" && o.gaps != nil {
		r.gaps = append(r.gaps, *o.gaps...)
	}
	r.mu.Unlock()
	if o.gaps != nil {
		recycle(o.gaps)
	}
	r.done.Add(1)
	if o.failed != "" && o.failed != loadfile.Cancelled {
		r.failed.Add(1)
		r.example(o)
	}
	if why := r.gone(o, flying); why != nil && r.more(start) {
		cancel(why)
	}
}

func recycle(gaps *[]int64) {
	*gaps = (*gaps)[:0]
	gapBuffers.Put(gaps)
}

// more reports whether requests are left to send. If none are, those in flight may as well run out of time by
// themselves.
func (r *runner) more(start time.Time) bool {
	return (r.opt.Requests == 0 || r.sent.Load() < int64(r.opt.Requests)) &&
		(r.opt.Duration == 0 || time.Since(start) < r.opt.Duration)
}

// deadConnections is how many connections in a row have to fail, at least, until the server is taken to be gone.
const deadConnections = 20

// gone returns why the load cannot go on, or nil: connections fail in a row with no answer between, or a request timed
// out while the server sent nothing for any request.
func (r *runner) gone(o outcome, inFlight int64) error {
	switch o.failed {
	case loadfile.Connect, loadfile.Reset:
		if n := r.row.Add(1); n >= max(deadConnections, 2*inFlight) {
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

// example keeps what went wrong first of each kind.
func (r *runner) example(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.examples == nil {
		r.examples = map[string]string{}
	}
	if _, ok := r.examples[o.failed]; !ok && o.failed != loadfile.Cancelled {
		r.examples[o.failed] = o.detail
	}
}

// firstExample says in brackets what went wrong; of several kinds the first by name.
func (r *runner) firstExample() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	kinds := slices.Sorted(maps.Keys(r.examples))
	switch {
	case len(kinds) == 0:
		return ""
	case r.examples[kinds[0]] == "":
		return " (" + kinds[0] + ")"
	}
	return " (" + kinds[0] + ": " + r.examples[kinds[0]] + ")"
}

func (r *runner) at(stage string) { r.stage.Store(&stage) }

// report calls Progress until stop is called.
func (r *runner) report() (stop func()) {
	if r.opt.Progress == nil {
		return func() {}
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				return
			case <-tick.C:
				p := Progress{Sent: r.sent.Load(), Done: r.done.Load(), Failed: r.failed.Load(),
					Elapsed: time.Since(r.begun)}
				if s := r.stage.Load(); s != nil {
					p.Stage = *s
				}
				switch p.Stage {
				case "warm-up":
					p.Total = int64(r.opt.Warmup)
				case "load":
					p.Total = int64(r.opt.Requests)
				}
				r.opt.Progress(p)
			}
		}
	}()
	return func() { close(end); <-ended }
}
