package record

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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

It waits until /health answers, 10 minutes at most (--health-timeout), asks /v1/models which model
is served, sends the warm-up requests, and then the load: in a closed loop (--concurrency) the next
request is sent when an answer arrives; in an open loop (--rate) requests are due at random moments
with that mean rate, whatever the server does. Latencies count from the moment a request was due.
Failed requests are not retried.

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
a comparison judges none of them.`,
		Example: `  explain load --out load.json
  explain load --url http://gpu7:8000 --rate 8 --duration 2m --slo-tpot 50ms --out load.json
  explain load --load-mode decode --concurrency 32 --num-requests 500 --chat
  explain load --dataset prompts.jsonl --api-key-env SERVER_KEY --rate 4 --num-requests 400`,
		Args: cmdenv.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, e) },
	}
	f.register(cmd)
	return cmd
}

// requestFlags say which requests a load sends, and how many at a time.
type requestFlags struct {
	load.Options
	dataset string
}

func (f *requestFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Mode, "load-mode", "",
		"the requests: `MODE` is prefill (long prompts), decode (long answers) or mixed (default mixed)")
	fl.StringVar(&f.dataset, "dataset", "", "send the prompts in this `FILE`, JSON lines or ShareGPT's form")
	fl.Uint64Var(&f.Seed, "seed", load.DefaultSeed, "`NUMBER` from which arrival times and random prompts are drawn")
	fl.IntVar(&f.Requests, "num-requests", load.DefaultRequests, "send `N` requests that are measured")
	fl.Float64Var(&f.Rate, "rate", 0, "open loop: send `R` requests per second, at random times")
	fl.IntVar(&f.Concurrency, "concurrency", load.DefaultConcurrency,
		"keep at most `N` requests in flight; with --rate there is no limit unless this is given")
	fl.IntVar(&f.Warmup, "warmup-requests", load.DefaultWarmup, "send `N` requests before, which are not measured")
	f.Temperature = load.DefaultTemperature
	_ = cmd.MarkFlagFilename("dataset", "jsonl", "json")
	cmdenv.Complete(cmd, "load-mode", load.Modes)
}

// complete reads the dataset, and returns an error for requests that cannot be sent.
func (f *requestFlags) complete(cmd *cobra.Command) (err error) {
	if f.Rate > 0 && !cmd.Flags().Changed("concurrency") {
		f.Concurrency = 0
	}
	if f.dataset != "" {
		if f.Dataset, err = load.ReadDataset(f.dataset); err != nil {
			return err
		}
	}
	return f.Check()
}

type loadFlags struct {
	requestFlags
	port           int
	keyEnv         string
	cacert         string
	out            string
	format         string
	maxFailures    string
	tolerated      float64 // the same as a share, 0 to 1
	force          bool
	quiet, verbose bool
}

func (f *loadFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.URL, "url", load.DefaultURL, "`ADDRESS` of the server")
	fl.IntVar(&f.port, "port", 0, "`PORT` of a server on this machine, instead of --url")
	fl.StringVar(&f.Model, "model", "", "`MODEL` to ask for (default: the first that the server lists)")
	fl.StringVar(&f.keyEnv, "api-key-env", "", "read the API key from the environment variable `NAME`")
	fl.StringVar(&f.cacert, "cacert", "", "trust the authorities in this `FILE` (PEM) for the server's certificate")
	fl.BoolVar(&f.Insecure, "insecure", false, "do not check the server's certificate")
	fl.BoolVar(&f.Chat, "chat", false, "ask /v1/chat/completions instead of /v1/completions")
	f.requestFlags.register(cmd)
	fl.IntVar(&f.PromptTokens, "prompt-tokens", 0, "send random words, about `N` tokens in each prompt")
	fl.IntVar(&f.OutputTokens, "output-tokens", 0,
		"ask for `N` tokens in each answer (default: as the mode or the dataset says)")
	fl.Float64Var(&f.Temperature, "temperature", load.DefaultTemperature, "sampling temperature `T`")
	fl.DurationVar(&f.Duration, "duration", 0, "send requests for this `TIME`; their number is unlimited then, unless --num-requests is given")
	fl.DurationVar(&f.Timeout, "timeout", load.DefaultTimeout, "give up on a request after this `TIME`")
	fl.DurationVar(&f.HealthTimeout, "health-timeout", load.DefaultHealthTimeout,
		"wait this `TIME` for the server to become healthy; 0: do not wait")
	fl.DurationVar(&f.SLO.TTFT, "slo-ttft", 0, "a request counts as good if its first token comes within this `TIME`")
	fl.DurationVar(&f.SLO.TPOT, "slo-tpot", 0, "… and its later tokens take at most this `TIME` each, on average")
	fl.DurationVar(&f.SLO.E2E, "slo-e2e", 0, "… and its whole answer comes within this `TIME`")
	fl.StringVarP(&f.out, "out", "o", "", "write the result to this `FILE`; a folder gets load.json")
	cmdenv.Force(fl, &f.force)
	f.format = "text"
	cmdenv.Choice(cmd, &f.format, "format", "print this `FORMAT` to standard output", []string{"text", "json"})
	fl.StringVar(&f.maxFailures, "max-failures", "1%",
		"exit with 1 if more than this `SHARE` of the requests failed: 1%, 0.01; 100% never does")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors, and what --format json asks for")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "print progress on standard error, line by line")
	fl.Bool("no-profiler", false, "accepted for profilemate scripts; load never starts a profiler")
	_ = fl.MarkHidden("no-profiler")
	_ = cmd.MarkFlagFilename("cacert", "pem", "crt")
	_ = cmd.MarkFlagFilename("out", "json")
	help.Renamed(cmd, map[string]string{"mode": "load-mode", "warmup": "warmup-requests"})
}

// check completes the options of the run, before any work.
func (f *loadFlags) check(cmd *cobra.Command, e *cmdenv.Env) (err error) {
	set := cmd.Flags().Changed
	f.Version = e.Version
	switch {
	case f.quiet && f.verbose:
		return usage.Errorf("--quiet and --verbose exclude each other")
	case set("port") && set("url"):
		return usage.Errorf("--port and --url exclude each other")
	case set("port") && (f.port < 1 || f.port > 65535):
		return usage.Errorf("--port is between 1 and 65535, got %d", f.port)
	case f.cacert != "" && f.Insecure:
		return usage.Errorf("--cacert and --insecure exclude each other")
	}
	if f.tolerated, err = cmdenv.ShareUpTo(1, f.maxFailures); err != nil {
		return usage.Errorf("--max-failures %s is not a share of the requests; write 1%% or 0.01", f.maxFailures)
	}
	if f.port > 0 {
		f.URL = fmt.Sprintf("http://127.0.0.1:%d", f.port)
	}
	if f.Duration > 0 && !set("num-requests") {
		f.Requests = 0
	}
	if f.cacert != "" {
		pem, err := input.ReadText(f.cacert)
		if err != nil {
			return usage.Errorf("--cacert: %w", err)
		}
		f.Trust = x509.NewCertPool()
		if !f.Trust.AppendCertsFromPEM(pem) {
			return usage.Errorf("--cacert %s holds no certificate in PEM form", f.cacert)
		}
	}
	if f.keyEnv != "" {
		if f.APIKey = e.Getenv(f.keyEnv); f.APIKey == "" {
			return usage.Errorf("--api-key-env: the environment variable %s is empty or not set", f.keyEnv)
		}
	}
	return f.complete(cmd)
}

// run runs the load and writes the result, also if the server or the user ended it early.
func (f *loadFlags) run(cmd *cobra.Command, e *cmdenv.Env) error {
	if err := f.check(cmd, e); err != nil {
		return err
	}
	path, err := f.target()
	if err != nil {
		return err
	}
	soft, hard, done := interrupt.Contexts(cmd.Context(), load.ErrInterrupted)
	defer done()
	bar := progress.NewLoad(e.Err, f.quiet, f.verbose)
	f.Progress = bar.Update
	res, err := load.Run(soft, f.Options)
	bar.Stop()
	interrupted := errors.Is(err, load.ErrInterrupted)
	switch {
	case interrupted && (res == nil || res.Counts.Succeeded == 0):
		return fmt.Errorf("%w before any request succeeded; nothing was written", load.ErrInterrupted)
	case res == nil:
		return err
	}
	if path != "" { // also if every request failed
		werr := atomicfile.File(path, f.over(), func(w io.Writer) error { return errors.Join(res.Write(w), context.Cause(hard)) })
		if werr != nil {
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
	printed := make(chan error, 1)
	go func() { printed <- f.print(e, res, path) }()
	select {
	case werr := <-printed:
		if werr != nil {
			return werr
		}
	case <-hard.Done(): // nobody reads what is printed
		return load.ErrInterrupted
	}
	if err == nil && res.Counts.FailedMoreThan(f.tolerated) {
		return cmdenv.Exit(cmdenv.Fail)
	}
	return err
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
