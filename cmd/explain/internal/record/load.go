package record

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/help"
	"github.com/nsys-llm/explain/cmd/explain/internal/input"
	"github.com/nsys-llm/explain/cmd/explain/internal/interrupt"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
	"github.com/nsys-llm/explain/cmd/explain/internal/progress"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

func newLoad(e *cmdenv.Env) *cobra.Command {
	var f loadFlags
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Send requests to a server, and measure what clients see",
		Long: `load sends requests to a server that speaks OpenAI's completions API (vLLM, SGLang and others), and
measures time to first token, time between tokens, time to the end of the answer, tokens per second,
and failures by kind.

It waits until /health answers, asks /v1/models which model is served, sends the warm-up requests,
and then the load: in a closed loop (--concurrency) the next request is sent when an answer arrives;
in an open loop (--rate) requests are due at random moments with that mean rate, whatever the server
does. Latencies count from the moment a request was due. Failed requests are not retried.

What it sends: --load-mode prefill (long prompts, 50 tokens), decode (short prompts, 200 tokens) or
mixed; or the prompts of --dataset, a file of JSON lines ({"prompt": …} or {"messages": […]}, with
max_tokens) or in ShareGPT's form; or --prompt-tokens, random words that no prefix cache has seen.

--out writes load.json, which is evidence: "explain report --evidence load.json", "explain diff
base/load.json head/load.json". It holds no prompts, answers, addresses or keys.

Ctrl-C ends the load: requests in flight are cancelled, and what was measured until then is written,
marked as interrupted. A second Ctrl-C gives up.

Exit code 3 if the server never becomes healthy, if no request succeeds, or if the load did not
finish: the server died or hung, or somebody interrupted it. Exit code 1 if more than
--max-failures of the requests failed (1 % by default): latencies of the others then say little, and
a comparison judges none of them. With --fail-on-errors it is 1 if any request failed.`,
		Example: `  explain load --out load.json
  explain load --url http://gpu7:8000 --rate 8 --duration 2m --slo-ttft 500ms --slo-tpot 50ms --out load.json
  explain load --load-mode decode --concurrency 32 --num-requests 500 --chat
  explain load --dataset prompts.jsonl --api-key-env SERVER_KEY --rate 4 --num-requests 400`,
		Args: cmdenv.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, e) },
	}
	f.register(cmd)
	return cmd
}

type loadFlags struct {
	opt                      load.Options
	port                     int
	stream                   bool
	dataset                  string
	keyEnv                   string
	cacert                   string
	out                      string
	format                   string
	maxFailures              string
	failOnErrors, noProfiler bool
	force                    bool
	quiet, verbose           bool
	writing                  sync.Mutex // locked while the file is written
}

var loadFormats = []string{"text", "json"}

func (f *loadFlags) register(cmd *cobra.Command) {
	fl, o := cmd.Flags(), &f.opt
	fl.SortFlags = false
	fl.StringVar(&o.URL, "url", load.DefaultURL, "`ADDRESS` of the server")
	fl.IntVar(&f.port, "port", 0, "`PORT` of a server on this machine, instead of --url")
	fl.StringVar(&o.Model, "model", "", "`MODEL` to ask for (default: the first that the server lists)")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "read the API key from the environment variable `NAME`")
	fl.StringVar(&f.cacert, "cacert", "", "trust the authorities in this `FILE` (PEM) for the server's certificate")
	fl.BoolVar(&o.Insecure, "insecure", false, "do not check the server's certificate")
	fl.BoolVar(&o.Chat, "chat", false, "ask /v1/chat/completions instead of /v1/completions")
	fl.BoolVar(&f.stream, "stream", true, "stream answers; --stream=false measures no times of tokens")
	fl.StringVar(&o.Mode, "load-mode", "", "the requests: `MODE` is prefill, decode or mixed (default mixed)")
	fl.StringVar(&f.dataset, "dataset", "", "send the prompts in this `FILE`, JSON lines or ShareGPT's form")
	fl.IntVar(&o.PromptTokens, "prompt-tokens", 0, "send random words, about `N` tokens in each prompt")
	fl.IntVar(&o.OutputTokens, "output-tokens", 0,
		"ask for `N` tokens in each answer (default: as the mode or the dataset says)")
	fl.Float64Var(&o.Temperature, "temperature", load.DefaultTemperature, "sampling temperature `T`")
	fl.Uint64Var(&o.Seed, "seed", load.DefaultSeed, "`NUMBER` from which arrival times and random prompts are drawn")
	fl.IntVar(&o.Requests, "num-requests", load.DefaultRequests,
		"send `N` requests (with --duration: without limit, if not given)")
	fl.DurationVar(&o.Duration, "duration", 0, "send requests for this `TIME`")
	fl.Float64Var(&o.Rate, "rate", 0, "open loop: send `R` requests per second, at random times")
	fl.IntVar(&o.Concurrency, "concurrency", load.DefaultConcurrency, "keep at most `N` requests in flight; with --rate there is no limit unless this is given")
	fl.IntVar(&o.Warmup, "warmup-requests", load.DefaultWarmup, "send `N` requests before the load, not measured")
	fl.DurationVar(&o.Timeout, "timeout", load.DefaultTimeout, "give up on a request after this `TIME`")
	fl.DurationVar(&o.HealthTimeout, "health-timeout", load.DefaultHealthTimeout,
		"wait this `TIME` for the server to become healthy; 0: do not wait")
	fl.DurationVar(&o.SLO.TTFT, "slo-ttft", 0, "a request counts as good if its first token comes within this `TIME`")
	fl.DurationVar(&o.SLO.TPOT, "slo-tpot", 0, "… and its later tokens take at most this `TIME` each, on average")
	fl.DurationVar(&o.SLO.E2E, "slo-e2e", 0, "… and its whole answer comes within this `TIME`")
	fl.StringVarP(&f.out, "out", "o", "", "write the result to this `FILE`; a folder gets load.json")
	cmdenv.Force(fl, &f.force)
	fl.StringVar(&f.format, "format", "text",
		"print this `FORMAT` to standard output: "+strings.Join(loadFormats, ", "))
	fl.StringVar(&f.maxFailures, "max-failures", "1%",
		"exit with 1 if more than this `SHARE` of the requests failed: 1%, 0.01; 100% never does")
	fl.BoolVar(&f.failOnErrors, "fail-on-errors", false, "exit with 1 if any request failed, as --max-failures 0")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors, and what --format json asks for")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print progress on standard error, line by line")
	fl.BoolVar(&f.noProfiler, "no-profiler", false, "accepted for profilemate scripts; load never starts a profiler")
	_ = fl.MarkHidden("no-profiler")
	_ = cmd.MarkFlagFilename("dataset", "jsonl", "json")
	_ = cmd.MarkFlagFilename("cacert", "pem", "crt")
	_ = cmd.MarkFlagFilename("out", "json")
	help.Renamed(cmd, map[string]string{"mode": "load-mode", "warmup": "warmup-requests"})
	cmdenv.Complete(cmd, "load-mode", []string{"prefill", "decode", "mixed"})
	cmdenv.Complete(cmd, "format", loadFormats)
}

// options turns flags into the options of a run.
func (f *loadFlags) options(cmd *cobra.Command, e *cmdenv.Env) (load.Options, error) {
	o, set := f.opt, cmd.Flags().Changed
	o.Version, o.NoStream = e.Version, !f.stream
	switch {
	case f.quiet && f.verbose:
		return o, usage.Errorf("--quiet and --verbose exclude each other")
	case !slices.Contains(loadFormats, f.format):
		return o, usage.Errorf("--format %s is unknown; it is one of %s", f.format, strings.Join(loadFormats, ", "))
	case set("port") && set("url"):
		return o, usage.Errorf("--port and --url exclude each other")
	case set("port") && (f.port < 1 || f.port > 65535):
		return o, usage.Errorf("--port is between 1 and 65535, got %d", f.port)
	case f.out == "" && set("out"):
		return o, usage.Errorf("--out is empty; name a file")
	case set("prompt-tokens") && o.PromptTokens < 1, set("output-tokens") && o.OutputTokens < 1,
		set("num-requests") && o.Requests < 1, set("concurrency") && o.Concurrency < 1:
		return o, usage.Errorf("--prompt-tokens, --output-tokens, --num-requests and --concurrency are at least 1")
	case set("rate") && !(o.Rate > 0):
		return o, usage.Errorf("--rate is more than 0 requests per second; leave it out for a closed loop")
	case set("duration") && o.Duration <= 0, set("timeout") && o.Timeout <= 0, o.HealthTimeout < 0:
		return o, usage.Errorf("--duration and --timeout are more than 0, --health-timeout is not negative")
	}
	if f.cacert != "" && o.Insecure {
		return o, usage.Errorf("--cacert and --insecure exclude each other")
	}
	if set("max-failures") && f.failOnErrors {
		return o, usage.Errorf("--max-failures and --fail-on-errors exclude each other")
	}
	if _, err := f.failures(); err != nil {
		return o, err
	}
	if f.port > 0 {
		o.URL = fmt.Sprintf("http://127.0.0.1:%d", f.port)
	}
	if o.Duration > 0 && !set("num-requests") {
		o.Requests = 0
	}
	if o.Rate > 0 && !set("concurrency") {
		o.Concurrency = 0
	}
	if o.HealthTimeout == 0 {
		o.HealthTimeout = -1
	}
	if f.cacert != "" {
		pem, err := input.ReadText(f.cacert)
		if err != nil {
			return o, usage.Errorf("--cacert: %w", err)
		}
		o.Trust = x509.NewCertPool()
		if !o.Trust.AppendCertsFromPEM(pem) {
			return o, usage.Errorf("--cacert %s holds no certificate in PEM form", f.cacert)
		}
	}
	if f.keyEnv != "" {
		if o.APIKey = e.Getenv(f.keyEnv); o.APIKey == "" {
			return o, usage.Errorf("--api-key-env: the environment variable %s is empty or not set", f.keyEnv)
		}
	}
	if f.dataset != "" {
		data, err := load.ReadDataset(f.dataset)
		if err != nil {
			return o, err
		}
		o.Dataset = data
	}
	return o, nil
}

func (f *loadFlags) run(cmd *cobra.Command, e *cmdenv.Env) error {
	opt, err := f.options(cmd, e)
	if err != nil {
		return err
	}
	path, err := f.target()
	if err != nil {
		return err
	}
	soft, hard, done := interrupt.Contexts(cmd.Context(), load.ErrInterrupted)
	defer done()
	ended := make(chan error, 1)
	go func() { ended <- f.measure(soft, hard, e, opt, path) }()
	select {
	case err := <-ended:
		return err
	case <-hard.Done(): // abort anything except a file write in progress
		f.writing.Lock()
		return load.ErrInterrupted
	}
}

// measure runs the load and writes the result, also if the server or the user ended it early.
func (f *loadFlags) measure(soft, hard context.Context, e *cmdenv.Env, opt load.Options, path string) error {
	bar := progress.NewLoad(e.Err, f.quiet, f.verbose)
	opt.Progress = bar.Update
	res, err := load.Run(soft, opt)
	bar.Stop()
	interrupted := errors.Is(err, load.ErrInterrupted)
	switch {
	case errors.Is(err, load.ErrUsage):
		return usage.Error{Err: err}
	case interrupted && (res == nil || res.Counts.Succeeded == 0):
		return fmt.Errorf("%w before any request succeeded; nothing was written", load.ErrInterrupted)
	case res == nil:
		return err
	}
	if path != "" { // also if every request failed
		if werr := f.write(hard, path, res); werr != nil {
			return errors.Join(err, werr)
		}
	}
	if errors.Is(err, load.ErrNothingSucceeded) {
		_ = res.WriteSummary(e.Err) // which requests failed; the error follows
		return err
	}
	if interrupted {
		err = interruptedText(res, path)
	}
	if werr := f.print(e, res, path); werr != nil {
		return werr
	}
	if most, merr := f.failures(); err == nil && merr == nil && res.Counts.FailedMoreThan(most) {
		return cmdenv.Exit(cmdenv.Fail)
	}
	return err
}

// failures returns the share of failed requests up to which a load still succeeds, 0 to 1.
func (f *loadFlags) failures() (float64, error) {
	if f.failOnErrors {
		return 0, nil
	}
	text, percent := strings.CutSuffix(strings.TrimSpace(f.maxFailures), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return 0, usage.Errorf("--max-failures %s is not a share of the requests; write 1%% or 0.01", f.maxFailures)
	}
	return v, nil
}

// interruptedText returns an error that says how far an interrupted load got.
func interruptedText(res *load.Result, path string) error {
	text := unit.Int(res.Counts.Succeeded + res.Counts.Failed)
	if n := res.Workload.Requests; n != nil {
		text += " of " + unit.Int(*n)
	}
	text += " requests measured"
	if path != "" {
		text += "; written to " + path
	}
	took := unit.Format(float64(res.Window), report.Nanoseconds)
	return fmt.Errorf("%w after %s: %s", load.ErrInterrupted, took, text)
}

// target returns the path of the file to write. It checks before the load that the file can be written.
func (f *loadFlags) target() (string, error) {
	path := f.out
	if path == "" {
		return "", nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() || strings.HasSuffix(path, string(filepath.Separator)) {
		path = filepath.Join(path, "load.json")
	}
	return path, atomicfile.Ready(path, f.over())
}

func (f *loadFlags) over() atomicfile.Over {
	return atomicfile.Over{Begins: `{"schema":"explain.load/`, Force: f.force}
}

// write writes the whole result to a file; if ctx ends first, it writes nothing.
func (f *loadFlags) write(ctx context.Context, path string, res *load.Result) error {
	f.writing.Lock()
	defer f.writing.Unlock()
	return atomicfile.File(path, f.over(),
		func(w io.Writer) error { return errors.Join(res.Write(until{ctx, w}), context.Cause(ctx)) })
}

// until is a writer that fails when its context has ended.
type until struct {
	ctx context.Context
	to  io.Writer
}

func (u until) Write(b []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.to.Write(b)
}

func (f *loadFlags) print(e *cmdenv.Env, res *load.Result, path string) error {
	if f.format == "json" {
		return res.Write(e.Out)
	}
	if f.quiet {
		return nil
	}
	if err := res.WriteSummary(e.Out); err != nil {
		return err
	}
	if path != "" {
		_, err := fmt.Fprintf(e.Out, "\nWritten: %s\n", render.Visible(path))
		return err
	}
	return nil
}
