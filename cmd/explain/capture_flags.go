package main

import (
	"cmp"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// captureFlags are the flags of explain capture and of explain capture vllm.
type captureFlags struct {
	out, nsys     string
	trace, graphs string
	memory        bool
	window        capture.Window
	client        string
	grace, limit  time.Duration
	repeat        int
	overhead      bool
	pair          bool
	unit          string
	kernelMap     string
	force, dryRun bool
	noReport      bool
	quiet         bool
	verbose       bool
	rules         ruleFlags // of a pair
}

func (f *captureFlags) register(cmd *cobra.Command, out string) {
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVarP(&f.out, "out", "o", "",
		"write into this `DIR` (default "+out+"; RUN_ID is the variable, or the time)")
	fl.StringVar(&f.out, "output-dir", "", "the same as --out")
	fl.BoolVar(&f.force, "force", false, "replace the folder where it exists")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the commands and run none")
	fl.BoolVar(&f.noReport, "no-report", false, "export the trace and do not analyse it")
	fl.IntVar(&f.repeat, "repeat", 0, "capture `N` times (default 1, with --pair 3)")
	fl.BoolVar(&f.overhead, "overhead", false,
		"send the same load once more without nsys, and say what profiling costs (takes as long again, with the start of the server)")
	fl.StringVar(&f.nsys, "nsys", "", "run this `PROGRAM` (default: $NSYS, else nsys)")
	fl.StringVar(&f.trace, "trace", "cuda,nvtx,osrt", "`LIST` of what nsys traces")
	fl.StringVar(&f.graphs, "graph-trace", "node",
		"trace CUDA graphs `HOW`: by node, or as a whole graph (less overhead, no kernels inside it)")
	fl.BoolVar(&f.memory, "cuda-memory", false, "record the use of GPU memory")
	fl.DurationVar(&f.window.ReadyTimeout, "ready-timeout", capture.DefaultReadyTimeout,
		"wait this `TIME` until the program is ready")
	fl.StringVar(&f.client, "client", "",
		"run this `COMMAND` while recording; it sends the load, and its end ends the recording")
	fl.DurationVar(&f.grace, "grace", 30*time.Second,
		"wait this `TIME` between asking a process to end, SIGTERM, and SIGKILL")
	fl.StringVar(&f.unit, "unit", "",
		"one step of the work: nvtx:`REGEX`, kernel:REGEX, graph or none (default: found automatically)")
	fl.StringVar(&f.kernelMap, "kernel-map", "", kernelMapHelp)
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "print nothing but errors")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "say on standard error what the analysis does")
	_ = cmd.MarkFlagFilename("kernel-map", "yml", "yaml", "csv")
	_ = fl.MarkHidden("output-dir")
	_ = cmd.MarkFlagDirname("out")
	completeFlag(cmd, "graph-trace", []string{"node", "graph"})
}

// runID is what a run is called: by the user, or by the time.
func runID(e *env, now time.Time) (string, error) {
	id := e.Getenv("RUN_ID")
	switch {
	case id == "":
		return now.Format("run_20060102_150405"), nil
	case !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`).MatchString(id):
		return "", usagef("RUN_ID=%q is not a folder name; use letters, digits, dots, dashes and underscores", id)
	}
	return id, nil
}

// prepare checks the flags, finds nsys, and settles the output folder. Nothing is started before it.
func (f *captureFlags) prepare(cmd *cobra.Command, e *env) (*recording, error) {
	r := &recording{captureFlags: f, env: e, cmd: cmd, now: time.Now()}
	var err error
	if r.id, err = runID(e, r.now); err != nil {
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
		return nil, usagef("--trace %q is not a valid nsys trace list; use e.g. cuda,nvtx,osrt", f.trace)
	case f.repeat < 1 || f.repeat > 100:
		return nil, usagef("--repeat is between 1 and 100, got %d", f.repeat)
	case f.grace < 0 || f.limit < 0:
		return nil, usagef("a time cannot be negative")
	case f.pair && f.noReport:
		return nil, usagef("--pair compares reports: leave out --no-report")
	case !f.pair && (len(f.rules.failOn) > 0 || f.rules.policy != "" || f.rules.noise != ""):
		return nil, usagef("--fail-on, --policy and --noise judge a pair: add --pair")
	case f.quiet && f.verbose:
		return nil, usagef("--quiet and --verbose exclude each other")
	}
	if f.client != "" {
		if f.window.Client, err = capture.Words(f.client); err != nil {
			return nil, usagef("--client: %w", err)
		}
	}
	if r.options, err = (&analysisFlags{unit: f.unit, kernelMap: f.kernelMap}).options(e, 1); err != nil {
		return nil, err
	}
	name := cmp.Or(f.nsys, e.Getenv("NSYS"), "nsys")
	if r.nsysFound, err = capture.FindNsys(cmd.Context(), name); err != nil {
		if !f.dryRun {
			return nil, err
		}
		r.unusable = "nsys is not installed here"
		if !capture.NotInstalled(err) {
			r.unusable = err.Error()
		}
		r.nsysFound = capture.Newest()
	}
	return r, nil
}
