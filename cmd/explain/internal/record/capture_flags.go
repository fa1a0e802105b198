package record

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/cmd/explain/internal/bisectcmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/capturesession"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// captureFlags are the flags of explain capture and of explain capture vllm.
type captureFlags struct {
	capturesession.Options
	client string // --client of the window, as one line
}

func (f *captureFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.StringVarP(&f.Out, "out", "o", "",
		"write into this `DIR` (default "+out+"; RUN_ID is the variable, or the time)")
	fl.StringVar(&f.Out, "output-dir", "", "the same as --out")
	fl.BoolVar(&f.Force, "force", false, "replace the folder if it exists")
	fl.BoolVar(&f.DryRun, "dry-run", false, "print the commands without running them")
	fl.IntVar(&f.Repeat, "repeat", 0, "capture `N` times (default 1, with --pair 3)")
	fl.BoolVar(&f.Overhead, "overhead", false,
		"send the same load once more without nsys, and say what profiling costs (takes as long again, with the start of the server)")
	f.registerReport(cmd, "one step of the work: nvtx:`REGEX`, kernel:REGEX, graph or none (default: found automatically)")
	fl.StringVar(&f.Trace.Kinds, "trace", "cuda,nvtx,osrt", "what nsys traces, a `LIST`")
	fl.StringVar(&f.Trace.Graphs, "graph-trace", "node",
		"trace CUDA graphs `HOW`: by node, or as a whole graph (less overhead, no kernels inside it)")
	fl.StringArrayVar(&f.Trace.More, "nsys-arg", nil, "pass `ARGUMENT` on to nsys, as --cuda-flush-interval=100 (repeatable)")
	fl.BoolVar(&f.Trace.Memory, "cuda-memory", false, "record the use of GPU memory")
	fl.BoolVar(&f.Trace.Host, "host", false,
		"record what the host's threads do: switches of the scheduler, samples of CPUs, Python's functions where nsys can")
	fl.BoolVar(&f.Trace.Counters, "gpu-metrics", false, "record counters of the GPUs: memory bandwidth, tensor cores, clocks")
	fl.DurationVar(&f.Window.ReadyTimeout, "ready-timeout", capture.DefaultReadyTimeout,
		"wait this `TIME` until the program is ready")
	fl.StringVar(&f.client, "client", "",
		"run this `COMMAND` while recording; it sends the load, and its end ends the recording")
	fl.DurationVar(&f.Grace, "grace", 30*time.Second,
		"wait this `TIME` between asking a process to end, SIGTERM, and SIGKILL")
	_ = fl.MarkHidden("output-dir")
	cmdenv.Complete(cmd, "graph-trace", []string{"node", "graph"})
}

// registerReport adds the flags of what follows a recording, which capture resume has too.
func (f *captureFlags) registerReport(cmd *cobra.Command, unit string) {
	fl := cmd.Flags()
	fl.StringVar(&f.NsysName, "nsys", "", "run this `PROGRAM` (default: $NSYS, else nsys)")
	fl.BoolVar(&f.NoReport, "no-report", false, "export the trace and do not analyse it")
	fl.StringVar(&f.Analysis.Unit, "unit", "", unit)
	cmdenv.RegisterMaps(cmd, &f.Analysis.PhaseMap, &f.Analysis.KernelMap, "")
	fl.BoolVarP(&f.Analysis.Quiet, "quiet", "q", false, "print nothing but errors")
	fl.BoolVarP(&f.Analysis.Verbose, "verbose", "v", false, "print the progress of the analysis on standard error")
	_ = cmd.MarkFlagDirname("out")
}

// runID returns the name of the run: the one that the user set, else one made from the time.
func runID(e *cmdenv.Env, now time.Time) (string, error) {
	id := e.Getenv("RUN_ID")
	switch {
	case id == "":
		return now.Format("run_20060102_150405"), nil
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id):
		return "", usage.Errorf("RUN_ID=%q is not a folder name; use letters, digits, dots, dashes and underscores", id)
	}
	return id, nil
}

// prepare checks the flags, finds nsys, and chooses the output folder, before anything is started.
func (f *captureFlags) prepare(cmd *cobra.Command, e *cmdenv.Env) (*capturesession.Session, error) {
	r, err := f.session(cmd, e)
	if err != nil {
		return nil, err
	}
	if r.ID, err = runID(e, r.Began); err != nil {
		return nil, err
	}
	if f.Out == "" {
		f.Out = filepath.Join("artifacts", r.ID)
	}
	if f.Repeat == 0 {
		f.Repeat = 1
		if f.Pair {
			f.Repeat = 3
		}
		if f.Until.On {
			f.Repeat = bisectcmd.MostPairs
		}
	}
	switch {
	case !regexp.MustCompile(`^(node|graph)(:host-only|:host-and-device)?$`).MatchString(f.Trace.Graphs):
		return nil, usage.Errorf("--graph-trace %s is unknown; it is node or graph, and in newer versions of nsys :host-only or :host-and-device behind it", f.Trace.Graphs)
	case slices.ContainsFunc(f.Trace.More, func(arg string) bool { return !strings.HasPrefix(arg, "-") }):
		return nil, usage.Errorf("--nsys-arg %q is not an argument of nsys; write --nsys-arg=--cuda-flush-interval=100", f.Trace.More)
	case !regexp.MustCompile(`^[a-z0-9-]+(,[a-z0-9-]+)*$`).MatchString(f.Trace.Kinds):
		return nil, usage.Errorf("--trace %q is not a valid nsys trace list; use e.g. cuda,nvtx,osrt", f.Trace.Kinds)
	case f.Repeat < 1 || f.Repeat > 100:
		return nil, usage.Errorf("--repeat is between 1 and 100, got %d", f.Repeat)
	case f.Grace < 0 || f.Limit < 0:
		return nil, usage.Errorf("a time cannot be negative")
	case !f.Pair && (f.Until.On || f.Until.Cooldown != 0):
		return nil, usage.Errorf("--until-decided and --cooldown are for a pair: add --pair")
	case !f.Until.On && cmdenv.Given(cmd, []string{"budget", "tolerance"}) != "":
		return nil, usage.Errorf("--budget and --tolerance say when --until-decided ends: add it")
	case f.Pair && f.NoReport:
		return nil, usage.Errorf("--pair compares reports: leave out --no-report")
	case !f.Pair && (len(f.Rules.FailOn) > 0 || f.Rules.Policy != "" || f.Rules.Noise != ""):
		return nil, usage.Errorf("--fail-on, --policy and --noise judge a pair: add --pair")
	}
	if f.client != "" {
		if f.Window.Client, err = capture.Words(f.client); err != nil {
			return nil, usage.Errorf("--client: %w", err)
		}
	}
	name := cmp.Or(f.NsysName, e.Getenv("NSYS"), "nsys")
	if f.Nsys, err = capture.FindNsys(cmd.Context(), name); err != nil {
		if !f.DryRun {
			return nil, err
		}
		r.Unusable = err.Error()
		if errors.Is(err, capture.ErrNotInstalled) {
			r.Unusable = "nsys is not installed here"
		}
		f.Nsys = capture.Newest()
	}
	r.Want = f.Options
	r.Config = config(cmd)
	return r, nil
}

// config returns the options of a command with their values, secrets replaced, and the arguments behind --.
func config(cmd *cobra.Command) (list yaml.MapSlice) {
	add := func(name string, value any) {
		list = append(list, yaml.MapItem{Key: strings.ReplaceAll(name, "-", "_"), Value: value})
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		text := f.Value.String()
		whole, notWhole := strconv.ParseInt(text, 10, 64)
		switch {
		case f.Hidden || f.Name == "help":
		case f.Value.Type() == "bool":
			add(f.Name, text == "true")
		case f.Value.Type() == "stringArray":
			values, _ := cmd.Flags().GetStringArray(f.Name)
			add(f.Name, capture.Shell(values))
		case notWhole == nil:
			add(f.Name, whole)
		case f.Name == "client" && text != "":
			words, _ := capture.Words(text)
			add(f.Name, capture.Shell(words))
		default:
			add(f.Name, capture.RedactText(text))
		}
	})
	if args := cmd.Flags().Args(); len(args) > 0 {
		add("arguments", capture.Shell(args))
	}
	return list
}

// session builds the session from the flags.
func (f *captureFlags) session(cmd *cobra.Command, e *cmdenv.Env) (*capturesession.Session, error) {
	f.Trace.GraphsAsked = cmd.Flags().Changed("graph-trace")
	analysis, err := f.Analysis.Options(e, 1)
	return &capturesession.Session{Want: f.Options, Env: e, Began: time.Now(), Analysis: analysis}, err
}
