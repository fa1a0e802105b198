package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/analyze"
	recorder "github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/diff"
)

func newCapture(w *world) *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "capture [flags] -- COMMAND [ARGUMENT…]",
		Short: "Run a program under nsys profile and report on it",
		Long: `capture runs a program under Nsight Systems with the flags that suit inference, exports the trace and analyses it. It leaves one
folder, whole or not at all:

  trace.nsys-rep, trace.sqlite            the trace and its export
  report.*, tables/, …                    what "explain report" writes
  metadata.txt, env.json                  versions, devices, commands and how they ended
  inputs.yaml, config.yaml, cmd.txt       the workload, every option, every command
  logs/                                   output, exit code and signal of each program that was run (children.json)

What is recorded:

  (nothing said)                          the whole run
  --delay 30s --duration 10s              10 s, 30 s after the start; nsys ends the program then
  --nvtx 'decode@*'                       from the start to the end of an NVTX range
  --ready http://127.0.0.1:8000/health    from the moment the program is ready: for --duration, or while --client runs. This works
                                          for servers, whatever they call: cudaProfilerStart in a client never reaches them

"explain capture vllm" also starts the server and sends the load. The flags that nsys is given fit the installed version (2021.4 to
2025); --dry-run shows them. Ctrl-C ends the recording and every process, and exports what there is; pressed twice, it gives up.

With --repeat 3 there are three captures, in run-1 to run-3, as a sound comparison wants. With --pair, base and head are two command lines
in quotes, captured in turns on this machine (base, head, base, head, …) and compared; exit codes are then those of explain diff.

In command lines that are written, the values of --api-key, --hf-token, *TOKEN*= and the like are replaced by ` + recorder.Redacted + `. The trace, logs/ and
evidence/ hold what the programs wrote, secrets included. Where a capture fails, the logs are left in DIR.failed.

Exit codes: 0 done, 2 wrong usage, 3 the program, nsys or the analysis failed, or the capture was interrupted.`,
		Example: `  explain capture --delay 60s --duration 10s --out run/ -- python bench.py
  explain capture --nvtx 'decode@*' --repeat 3 --out run/ -- python bench.py
  explain capture --ready http://127.0.0.1:8000/health --client 'python send.py' -- vllm serve MODEL --port 8000
  explain capture --pair --fail-on 'unit.time.p50:+3%' 'python base.py' 'python head.py'
  explain capture --dry-run -- python bench.py`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case f.pair && len(args) != 2:
				return usagef("--pair takes two command lines in quotes: explain capture --pair 'python base.py' 'python head.py'")
			case f.pair:
			case dash > 0:
				return usagef("what is %q before the --? The program stands after it", args[0])
			case len(args) == 0:
				return usagef("name the program: explain capture [flags] -- COMMAND [ARGUMENT…]")
			case dash < 0:
				return usagef("put -- before the program, so that its flags are its own: explain capture [flags] -- %s …", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, w, args) },
	}
	f.register(cmd, "artifacts/RUN_ID")
	fl := cmd.Flags()
	fl.DurationVar(&f.window.Delay, "delay", 0, "begin to record this `TIME` after the start, in whole seconds")
	fl.StringVar(&f.window.NVTX, "nvtx", "", "record the first NVTX range of this name: `RANGE@DOMAIN`, RANGE@* for any domain")
	fl.StringVar(&f.window.Ready, "ready", "", "begin to record when this `URL` answers 200, or this file exists")
	fl.DurationVar(&f.window.Warmup, "warmup", 0, "with --ready: wait this `TIME` before the recording")
	fl.DurationVar(&f.window.Duration, "duration", 0, "record this `TIME`, in whole seconds but with --ready")
	fl.DurationVar(&f.limit, "timeout", 0, "give up when the program has not ended after this `TIME` (default: never)")
	fl.BoolVar(&f.pair, "pair", false, "capture two command lines, base and head, in turns, and compare them")
	f.diff.policyFlags(cmd)
	cmd.AddCommand(newCaptureServer(w))
	return cmd
}

// policyFlags are the flags of diff by which a pair of captures is judged.
func (f *diffFlags) policyFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.failOn, "fail-on", nil, "with --pair: fail where this `RULE` is broken, see explain diff")
	fl.StringVar(&f.policy, "policy", "", "with --pair: judge by this policy `FILE`")
	fl.StringVar(&f.noise, "noise", "", "with --pair: noise floors from this `FILE` of explain calibrate")
	f.top = diff.DefaultTop
}

// recordFlags are the flags of explain capture and of explain capture vllm.
type recordFlags struct {
	out, nsys     string
	trace, graphs string
	memory        bool
	window        recorder.Window
	client        string
	grace, limit  time.Duration
	repeat        int
	pair          bool
	unit          string
	force, dryRun bool
	noReport      bool
	quiet         bool
	verbose       bool
	diff          diffFlags
}

func (f *recordFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out, "out", "o", "", "write into this `DIR` (default "+out+"; RUN_ID is the variable, or the time)")
	fl.StringVar(&f.out, "output-dir", "", "the same as --out")
	fl.BoolVar(&f.force, "force", false, "replace the folder where it exists")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the commands and run none")
	fl.BoolVar(&f.noReport, "no-report", false, "export the trace and do not analyse it")
	fl.IntVar(&f.repeat, "repeat", 0, "capture `N` times (default 1, with --pair 3)")
	fl.StringVar(&f.nsys, "nsys", "", "run this `PROGRAM` (default: $NSYS, else nsys)")
	fl.StringVar(&f.trace, "trace", "cuda,nvtx,osrt", "what nsys traces: a `LIST`")
	fl.StringVar(&f.graphs, "graph-trace", "node", "trace CUDA graphs by node or as whole graphs (less overhead, no kernels inside them): node or graph")
	fl.BoolVar(&f.memory, "cuda-memory", false, "record the use of GPU memory")
	fl.DurationVar(&f.window.ReadyTimeout, "ready-timeout", recorder.DefaultReadyTimeout, "wait this `TIME` until the program is ready")
	fl.StringVar(&f.client, "client", "", "run this `COMMAND` while recording; it sends the load, and its end ends the recording")
	fl.DurationVar(&f.grace, "grace", 30*time.Second, "wait this `TIME` between asking a process to end, SIGTERM, and SIGKILL")
	fl.StringVar(&f.unit, "unit", "", "one step of the work is this `UNIT`: nvtx:REGEX, kernel:REGEX, graph or none (default: found automatically)")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what the analysis does")
	_ = fl.MarkHidden("output-dir")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.RegisterFlagCompletionFunc("graph-trace", cobra.FixedCompletions([]string{"node", "graph"}, cobra.ShellCompDirectiveNoFileComp))
}

// runID is what a run is called: by the user, or by the time.
func runID(w *world, now time.Time) (string, error) {
	id := w.Getenv("RUN_ID")
	switch {
	case id == "":
		return now.Format("run_20060102_150405"), nil
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id):
		return "", usagef("RUN_ID=%q is no name for a folder: letters, digits, dots, dashes and underscores", id)
	}
	return id, nil
}

// recording is one call of explain capture.
type recording struct {
	*recordFlags
	w         *world
	cmd       *cobra.Command
	id        string
	now       time.Time
	nsysFound *recorder.Nsys
	unusable  string          // why the plan is for another nsys than the one here; empty: it is for that one
	soft      context.Context // ends when the user wants the recording to end
	hard      context.Context // ends when the user gives up
	server    *serverFlags    // nil: explain capture -- COMMAND
	result    *analyze.Result // of the last capture; nil with --no-report
}

// prepare checks the flags, finds nsys, and settles the output folder. Nothing is started before it.
func (f *recordFlags) prepare(cmd *cobra.Command, w *world) (*recording, error) {
	r := &recording{recordFlags: f, w: w, cmd: cmd, now: time.Now()}
	var err error
	if r.id, err = runID(w, r.now); err != nil {
		return nil, err
	}
	if f.out == "" {
		if cmd.Flags().Changed("out") {
			return nil, usagef("--out is empty; name a folder")
		}
		f.out = filepath.Join("artifacts", r.id)
	}
	if f.repeat == 0 {
		f.repeat = 1
		if f.pair {
			f.repeat = 3
		}
	}
	switch {
	case f.graphs != "node" && f.graphs != "graph":
		return nil, usagef("--graph-trace %s is unknown; it is node or graph", f.graphs)
	case !regexp.MustCompile(`^[a-z0-9-]+(,[a-z0-9-]+)*$`).MatchString(f.trace):
		return nil, usagef("--trace %q is no list of what nsys traces: cuda,nvtx,osrt", f.trace)
	case f.repeat < 1 || f.repeat > 100:
		return nil, usagef("--repeat is between 1 and 100, got %d", f.repeat)
	case f.grace < 0 || f.limit < 0:
		return nil, usagef("a time cannot be negative")
	case f.pair && f.noReport:
		return nil, usagef("--pair compares reports: leave out --no-report")
	case !f.pair && (len(f.diff.failOn) > 0 || f.diff.policy != "" || f.diff.noise != ""):
		return nil, usagef("--fail-on, --policy and --noise judge a pair: add --pair")
	case f.quiet && f.verbose:
		return nil, usagef("--quiet and --verbose exclude each other")
	}
	if f.client != "" {
		if f.window.Client, err = recorder.Words(f.client); err != nil {
			return nil, usagef("--client: %w", err)
		}
	}
	if _, err := (&captureFlags{unit: f.unit}).options(w); err != nil {
		return nil, err
	}
	name := f.nsys
	if name == "" {
		name = w.Getenv("NSYS")
	}
	if name == "" {
		name = "nsys"
	}
	if r.nsysFound, err = recorder.FindNsys(cmd.Context(), name); err != nil {
		if !f.dryRun {
			return nil, err
		}
		r.unusable = "nsys is not installed here"
		if !recorder.NotInstalled(err) {
			r.unusable = err.Error()
		}
		r.nsysFound = recorder.Newest()
	}
	return r, nil
}

func (f *recordFlags) run(cmd *cobra.Command, w *world, args []string) error {
	if err := f.checkWindow(); err != nil {
		return err
	}
	programs := [][]string{args}
	if f.pair {
		programs = nil
		for _, line := range args {
			words, err := recorder.Words(line)
			if err != nil {
				return usagef("--pair %q: %w", line, err)
			}
			programs = append(programs, words)
		}
	}
	r, err := f.prepare(cmd, w)
	if err != nil {
		return err
	}
	return r.all(programs)
}

func (f *recordFlags) checkWindow() error {
	w := f.window
	if f.client != "" {
		w.Client = []string{f.client}
	}
	if err := w.Check(); err != nil {
		return usageError{err}
	}
	if w.Triggered() && f.limit > 0 {
		return usagef("--timeout is for a program that ends by itself: with --ready, --ready-timeout and --duration bound it")
	}
	return nil
}

// job is what one capture runs.
func (r *recording) job(program []string) *recorder.Job {
	return &recorder.Job{
		Nsys:    r.nsysFound,
		Trace:   recorder.Trace{Trace: r.trace, Graphs: r.graphs, GraphsAsked: r.cmd.Flags().Changed("graph-trace"), Memory: r.memory, Forks: r.window.Triggered() || r.server != nil},
		Window:  r.window,
		Program: program,
		Grace:   r.grace,
		Limit:   r.limit,
	}
}

// all makes every capture of the call, into one folder.
func (r *recording) all(programs [][]string) error {
	if r.dryRun {
		return r.plan(programs)
	}
	folder, err := recorder.NewFolder(r.out, r.force)
	if errors.Is(err, recorder.ErrExists) {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	soft, hard, done := interruptible(r.cmd.Context(), recorder.ErrInterrupted)
	defer done()
	r.soft, r.hard = soft, hard
	err = r.captures(folder.Stage, programs)
	var kept *keptError
	if err != nil && !errors.As(err, &kept) {
		err = recorder.DiskFull(folder.Stage, err)
		if logs := folder.Discard(); logs != "" {
			return fmt.Errorf("%w (logs: %s)", err, logs)
		}
		return err
	}
	var comparison *diff.Comparison
	if err == nil && r.pair {
		if comparison, err = r.compare(folder.Stage); err != nil {
			folder.Discard()
			return recorder.DiskFull(filepath.Dir(r.out), err)
		}
	}
	if err := folder.Commit(); err != nil {
		folder.Discard()
		return err
	}
	if kept != nil {
		return kept.in(r.out)
	}
	return r.wrote(comparison)
}

// keptError is an error after which the folder is kept, since what it holds is whole and took a GPU to make.
type keptError struct {
	error
	format string // with the folder
}

func (k *keptError) in(dir string) error { return fmt.Errorf(k.format, k.error, dir) }
func (k *keptError) Unwrap() error       { return k.error }

// captures runs the programs in turns and reports whether the user ended them early.
func (r *recording) captures(stage string, programs [][]string) error {
	for i := 1; i <= r.repeat; i++ {
		for side, program := range programs {
			dir := filepath.Join(stage, r.subfolder(side, i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			if err := r.one(dir, program); err != nil {
				return err
			}
		}
	}
	return nil
}

// subfolder of one capture among several: run-2, base-1, head-3; the folder itself where there is only one.
func (r *recording) subfolder(side, i int) string {
	switch {
	case r.pair:
		return []string{"base", "head"}[side] + "-" + strconv.Itoa(i)
	case r.repeat > 1:
		return "run-" + strconv.Itoa(i)
	}
	return "."
}

// one makes one capture: record, export, facts, analysis.
func (r *recording) one(dir string, program []string) error {
	run, err := recorder.NewRun(dir, os.Environ(), r.w.Getenv, r.say)
	if err != nil {
		return err
	}
	job := r.job(program)
	res, err := r.record(run, job)
	if e := run.Close(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	facts := r.facts(job)
	if err := run.WriteFacts(r.hard, facts); err != nil {
		return err
	}
	if run.Interrupted {
		return &keptError{recorder.ErrInterrupted, "%w: %s holds what was recorded up to then"}
	}
	r.result = res
	return nil
}

// record runs the capture and analyses it; the result is nil with --no-report.
func (r *recording) record(run *recorder.Run, job *recorder.Job) (*analyze.Result, error) {
	if r.server != nil {
		return r.server.record(r, run, job)
	}
	if err := run.Profile(r.soft, r.hard, job); err != nil {
		return nil, err
	}
	if r.noReport {
		return nil, nil
	}
	return r.report(run)
}

func (r *recording) say(text string) {
	if !r.quiet {
		fmt.Fprintln(r.w.Err, clean(text))
	}
}

// wrote tells what was found, where everything is, and what to do with several captures. It comes when the folder is in its place, so
// that a reader of the output who has seen enough loses nothing. The verdict on a pair is the exit code of explain diff.
func (r *recording) wrote(comparison *diff.Comparison) error {
	if err := r.tell(comparison); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	if comparison != nil {
		if code := verdictCode(comparison.Verdict); code != exitOK {
			return exitCode(code)
		}
	}
	return nil
}

func (r *recording) tell(comparison *diff.Comparison) error {
	switch {
	case r.quiet:
		return nil
	case comparison != nil:
		if err := r.diff.print(r.w, comparison); err != nil {
			return err
		}
	case r.result != nil && r.repeat == 1:
		return r.w.writeTerminal(r.result, r.out) // which ends in where it is
	}
	text := "Wrote " + clean(r.out) + "\n"
	if r.repeat > 1 && !r.pair {
		var dirs []string
		for i := 1; i <= r.repeat; i++ {
			dirs = append(dirs, filepath.Join(r.out, r.subfolder(0, i)))
		}
		text += "How much captures of this program differ: explain calibrate " + clean(strings.Join(dirs, " ")) + " --out noise.json\n"
	}
	_, err := fmt.Fprint(r.w.Out, text)
	return err
}

// plan prints what would be run.
func (r *recording) plan(programs [][]string) error {
	var b strings.Builder
	if r.unusable != "" {
		b.WriteString("# " + clean(r.unusable) + ": these are the commands for nsys " + r.nsysFound.Version + "\n")
	} else {
		b.WriteString("# nsys " + r.nsysFound.Version + "\n")
	}
	if r.server != nil && r.server.port == 0 {
		b.WriteString("# each port stands for a free one\n")
	}
	for side, program := range programs {
		job := r.job(program)
		var server *recorder.Server
		port := 0
		if r.server != nil {
			server = r.server.server()
			if port = server.Port; port == 0 {
				port = 8000
			}
		}
		dir := filepath.Join(r.out, r.subfolder(side, 1))
		steps, err := recorder.Plan(job, server, port, dir)
		if err != nil {
			return err
		}
		for _, s := range steps {
			line := ""
			if len(s.Argv) > 0 {
				line = recorder.Shell(s.Argv)
			}
			if s.Note != "" {
				line = strings.TrimSpace(line + " # " + s.Note)
			}
			b.WriteString(clean(line) + "\n")
		}
		if r.server != nil {
			for _, line := range r.server.plan(dir) {
				b.WriteString(clean(line) + "\n")
			}
		}
		if !r.noReport {
			var evidence []string
			switch {
			case r.server != nil:
				evidence = r.server.evidence()
			case r.window.Triggered():
				b.WriteString("# with --server-log " + clean(recorder.Shell([]string{filepath.Join(dir, "logs", "server.log")})) + " where that is the log of an inference server:\n")
			}
			b.WriteString(clean(recorder.Shell(r.reportCommand(dir, evidence))) + "\n")
		}
	}
	if r.repeat > 1 {
		fmt.Fprintf(&b, "# all of it %d times\n", r.repeat)
	}
	if r.pair {
		b.WriteString(clean(recorder.Shell(r.diffCommand())) + "\n")
	}
	_, err := fmt.Fprint(r.w.Out, b.String())
	return err
}

// diffCommand is what compares the captures of a pair.
func (r *recording) diffCommand() []string {
	sides := [2][]string{}
	for side := range sides {
		for i := 1; i <= r.repeat; i++ {
			sides[side] = append(sides[side], filepath.Join(r.out, r.subfolder(side, i)))
		}
	}
	argv := []string{"explain", "diff", "--base", strings.Join(sides[0], ","), "--head", strings.Join(sides[1], ","), "--out", filepath.Join(r.out, "comparison")}
	for _, rule := range r.diff.failOn {
		argv = append(argv, "--fail-on", rule)
	}
	for _, o := range [][2]string{{"--policy", r.diff.policy}, {"--noise", r.diff.noise}} {
		if o[1] != "" {
			argv = append(argv, o[0], o[1])
		}
	}
	return argv
}

// facts is what is written about a capture.
func (r *recording) facts(job *recorder.Job) *recorder.Facts {
	f := &recorder.Facts{RunID: r.id, Version: versionText(), When: r.now, Nsys: r.nsysFound, Program: job.Program, Reader: r.w.Getenv}
	f.Config = yaml.MapSlice{
		{Key: "trace", Value: r.trace}, {Key: "graph_trace", Value: job.Trace.Graphs}, {Key: "cuda_memory", Value: job.Trace.Memory},
		{Key: "fork_trace", Value: job.Trace.Forks}, {Key: "delay", Value: r.window.Delay.String()}, {Key: "duration", Value: r.window.Duration.String()},
		{Key: "nvtx", Value: r.window.NVTX}, {Key: "ready", Value: recorder.RedactText(r.window.Ready)},
		{Key: "ready_timeout", Value: r.window.ReadyTimeout.String()}, {Key: "warmup", Value: r.window.Warmup.String()},
		{Key: "client", Value: shell(r.window.Client)}, {Key: "timeout", Value: r.limit.String()}, {Key: "grace", Value: r.grace.String()},
		{Key: "repeat", Value: r.repeat}, {Key: "pair", Value: r.pair}, {Key: "report", Value: !r.noReport}, {Key: "unit", Value: r.unit},
	}
	if r.server != nil {
		r.server.facts(f)
	}
	return f
}

func shell(argv []string) string {
	if len(argv) == 0 {
		return ""
	}
	return recorder.Shell(argv)
}
