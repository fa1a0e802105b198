package capturesession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/bisectcmd"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/cmdenv"
	"github.com/nsys-llm/explain/cmd/explain/internal/interrupt"
	"github.com/nsys-llm/explain/cmd/explain/internal/look"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/cmd/explain/internal/rulesfile"
	"github.com/nsys-llm/explain/diff/comparison"
	"github.com/nsys-llm/explain/diff/diffdoc"
)

// Options are what the command line says of a capture.
type Options struct {
	capture.Job                      // of each capture, but for its program
	Analysis    cmdenv.AnalysisFlags // of each report
	Out         string               // the folder
	Force       bool                 // replace it where it exists
	DryRun      bool                 // print the commands without running them
	NoReport    bool                 // export the trace and do not analyse it
	Repeat      int                  // captures of each program, at least 1
	Pair        bool                 // base and head in turns, compared
	Overhead    bool                 // measure what profiling costs
	NsysName    string               // the program; empty: $NSYS, else nsys
	Rules       rulesfile.Flags      // by which a pair is judged
	Until       bisectcmd.Until      // when pairs end
}

// Session is one call of explain capture.
type Session struct {
	Want     Options
	Env      *cmdenv.Env
	Of       *Server       // the server to start; nil: explain capture -- COMMAND
	ID       string        // of the run
	Config   yaml.MapSlice // every option with its value, for config.yaml
	Began    time.Time
	Unusable string // why the plan assumes another nsys than the installed one; empty: it does not
	Analysis analyze.Options
	Decider  *bisectcmd.Decider // says after which pair to stop; nil: Repeat sets the number of pairs

	soft, hard context.Context // end when the user wants the recording to end, and when the user gives up
	result     *analyze.Result // of the last capture; nil with --no-report
	programs   []error         // for each capture the error of its program, or nil
}

// Say prints a line for the user.
func (r *Session) Say(text string) {
	if !r.Want.Analysis.Quiet {
		fmt.Fprintln(r.Env.Err, render.Visible(text))
	}
}

// job is what one capture runs.
func (r *Options) job(program []string) *capture.Job {
	j := r.Job
	j.Program = program
	return &j
}

// Run makes every capture of the call, into one folder. The comparison is that of a pair, whose verdict the caller
// turns into an exit code; it is nil if there is none.
func (r *Session) Run(ctx context.Context, programs [][]string) (*comparison.Comparison, error) {
	if r.Want.DryRun {
		return nil, r.plan(programs)
	}
	// before the folder is claimed: what this ends may still write its recording
	if names := capture.EndStale(); names != "" {
		r.Say("Note: ended processes that an earlier, killed capture left running: " + names)
	}
	folder, err := capture.NewFolder(r.Want.Out, r.Want.Force)
	if err != nil {
		return nil, err
	}
	for _, n := range folder.Notes {
		r.Say("Note: " + n)
	}
	defer capture.Watch(folder.Stage)()
	soft, hard, done := interrupt.Contexts(ctx, capture.ErrInterrupted)
	defer done()
	r.soft, r.hard = soft, hard
	if err = r.Want.status(r.nsysNamed()).Write(folder.Stage); err == nil {
		err = r.captures(folder, programs)
	}
	if errors.Is(err, errStopped) { // with all that was recorded in its place
		if err := folder.Done(); err != nil {
			return nil, r.failed(folder, err)
		}
		return nil, fmt.Errorf("%w: %s holds what was recorded up to then", capture.ErrInterrupted, r.Want.Out)
	}
	if err == nil && !r.Want.several() {
		err = folder.Done()
	}
	if err != nil {
		return nil, r.failed(folder, err)
	}
	var compared *comparison.Comparison
	if r.Want.Pair {
		compared, err = r.compare(ctx)
	}
	if r.Want.several() {
		err = errors.Join(err, folder.Done())
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the captures are in %s", capture.DiskFull(filepath.Dir(r.Want.Out), err), r.Want.Out)
	}
	return compared, r.wrote(compared)
}

// status is what resuming the captures needs to know; nsys is the one that was named.
func (r *Options) status(nsys string) *capture.Status {
	return &capture.Status{Out: filepath.Base(r.Out), NoReport: r.NoReport, Unit: r.Analysis.Unit, Nsys: nsys,
		PhaseMap: absolute(r.Analysis.PhaseMap), KernelMap: absolute(r.Analysis.KernelMap)}
}

// absolute returns the absolute path of a file; empty if none is named.
func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil && path != "" {
		return full
	}
	return path
}

// nsysNamed returns the requested nsys, with an absolute path if it has one; empty: the one on PATH.
func (r *Session) nsysNamed() string {
	name := cmp.Or(r.Want.NsysName, r.Env.Getenv("NSYS"))
	if strings.ContainsRune(name, filepath.Separator) {
		return absolute(name)
	}
	return name
}

// failed keeps what was recorded and returns an error that says how to resume.
func (r *Session) failed(folder *capture.Folder, err error) error {
	err = capture.DiskFull(folder.Stage, err)
	kept, resumable := folder.Fail(err)
	switch {
	case resumable:
		return fmt.Errorf("%w; the recording is in %s, continue with: explain capture resume %s",
			err, kept, capture.Shell([]string{kept}))
	case kept != "":
		return fmt.Errorf("%w (logs: %s)", err, kept)
	}
	return err
}

// errStopped means that the user ended the captures, and the last one has been exported.
var errStopped = errors.New("stopped")

// captures runs the programs in turns. Each of several captures is in its place as soon as it is whole.
func (r *Session) captures(folder *capture.Folder, programs [][]string) error {
	for i := 1; i <= r.Want.Repeat; i++ {
		var pair [2]*report.Report
		for turn := range programs {
			side := turn
			if r.Decider != nil && i%2 == 0 { // alternate the order, so that drift favours neither
				side = len(programs) - 1 - turn
			}
			if (i > 1 || turn > 0) && r.Want.Pair { // which ends early where the user wants the recording to end
				_ = capture.Sleep(r.soft, r.Want.Until.Cooldown)
			}
			sub := r.Want.subfolder(side, i)
			dir := filepath.Join(folder.Stage, sub)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			stopped := r.one(dir, programs[side])
			if stopped != nil && !errors.Is(stopped, errStopped) {
				return stopped
			}
			if r.Want.several() {
				if err := folder.Keep(sub); err != nil {
					return err
				}
			}
			if stopped != nil {
				return stopped
			}
			if r.result != nil {
				pair[side] = r.result.Report
			}
		}
		if r.Decider == nil {
			continue
		}
		last, err := r.Decider.Pair(pair[0], pair[1])
		if err != nil {
			return err
		}
		if last {
			r.Want.Repeat = i
		}
	}
	return nil
}

// several reports whether the call makes more than one capture, each in a folder of its own.
func (r *Options) several() bool { return r.Pair || r.Repeat > 1 }

// subfolder of one capture among several: run-2, base-1, head-3; the folder itself if there is only one.
func (r *Options) subfolder(side, i int) string {
	switch {
	case r.Pair:
		return []string{"base", "head"}[side] + "-" + strconv.Itoa(i)
	case r.Repeat > 1:
		return "run-" + strconv.Itoa(i)
	}
	return "."
}

// one makes one capture: record, export, facts, analysis. If the capture fails it still writes the facts that are
// known.
func (r *Session) one(dir string, program []string) error {
	run, err := capture.NewRun(r.soft, r.hard, dir, r.Env.Getenv, r.Say)
	if err != nil {
		return err
	}
	job := r.Want.job(program)
	if r.Of != nil {
		job.Send = r.Of.sender(run, r.Analysis.Version)
	}
	res, err := r.record(run, job)
	if err = cmp.Or(err, run.Close()); err != nil {
		if len(capture.Recordings(dir)) > 0 {
			_ = run.WriteFacts(context.WithoutCancel(r.hard), r.facts(job))
		}
		return err
	}
	if err := run.WriteFacts(r.hard, r.facts(job)); err != nil {
		return err
	}
	if run.Interrupted {
		return errStopped
	}
	r.result = res
	r.programs = append(r.programs, run.Program)
	return nil
}

// record makes one capture with all its runs, and analyses it; the result is nil with --no-report.
func (r *Session) record(run *capture.Run, job *capture.Job) (*analyze.Result, error) {
	if err := run.Profile(job); err != nil {
		return nil, err
	}
	r.measureOverhead(run, job)
	s := r.Of
	if s != nil && s.Profiler != "" && !run.Interrupted {
		if err := run.Track(job, s.Profiler); err != nil {
			return nil, err
		}
	}
	if r.Want.NoReport {
		return nil, nil
	}
	if s != nil && s.Measure && !run.Interrupted {
		if err := r.kernels(run, job); err != nil {
			return nil, err
		}
	}
	return r.report(run)
}

// compare compares the captures of both sides and writes comparison/ into the folder.
func (r *Session) compare(ctx context.Context) (*comparison.Comparison, error) {
	c, err := look.ComparePair(ctx, r.Env, r.Want.Rules, r.Want.Analysis.Quiet, r.Want.folders(0), r.Want.folders(1))
	if err != nil {
		return nil, fmt.Errorf("the captures cannot be compared: %w", err)
	}
	return c, output.Write(r.hard, filepath.Join(r.Want.Out, "comparison"), output.Comparison(c, diffdoc.Links{}))
}

// folders returns the folders of a side's captures.
func (r *Options) folders(side int) (list []string) {
	for i := range r.Repeat {
		list = append(list, filepath.Join(r.Out, r.subfolder(side, i+1)))
	}
	return list
}

// wrote prints the result, the folder, and what to do with several captures. The folder is in place by then, so a
// reader who closes the pipe loses nothing.
func (r *Session) wrote(compared *comparison.Comparison) error {
	if err := r.tell(compared); err != nil && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	if err := r.programsFailed(); err != nil {
		return err
	}
	if r.result != nil && r.result.Report.Window.Length == 0 {
		return fmt.Errorf("nothing was recorded (%s): %s", r.Want.Out, r.Want.nothingAdvice())
	}
	return nil
}

// programsFailed returns an error about the programs that failed although their captures are complete.
func (r *Session) programsFailed() error {
	failed := lists.Filter(r.programs, func(err error) bool { return err != nil })
	switch {
	case len(failed) == 0:
		return nil
	case r.Want.several():
		return fmt.Errorf("%w; %d of %d programs ended like this; their traces "+
			"are kept in %s", failed[0], len(failed), len(r.programs), r.Want.Out)
	}
	return fmt.Errorf("%w; its trace is kept in %s", failed[0], r.Want.Out)
}

// nothingAdvice returns what to change if nothing was recorded.
func (r *Options) nothingAdvice() string {
	switch {
	case !strings.Contains(","+r.Trace.Kinds, ",cuda"): // or cuda-sw, cuda-hw
		return "--trace " + r.Trace.Kinds + " records no CUDA; add cuda to it"
	case r.Server != nil:
		return "did the server use the GPU? See logs/server.log, and whether its worker processes are traced (nsys 2022.4 or later)"
	case r.Window.Triggered(), r.Window.Delay > 0, r.Window.Duration > 0:
		return "the GPU did no work in the window; move it with --delay, --warmup or --duration, or record the whole run"
	}
	return "the program did no work on a GPU while it was recorded; start it so that it uses one (CUDA_VISIBLE_DEVICES, nvidia-smi)"
}

func (r *Session) tell(compared *comparison.Comparison) error {
	switch {
	case r.Want.Analysis.Quiet:
		return nil
	case compared != nil:
		if err := render.Terminal(r.Env.Out, diffdoc.Terminal(compared), r.Env.Terminal()); err != nil {
			return err
		}
	case r.result != nil && r.Want.Repeat == 1:
		return output.Terminal(r.Env.Out, r.result, r.Want.Out, r.Env.Terminal()) // which ends in where it is
	}
	text := "Wrote " + render.Visible(r.Want.Out) + "\n"
	if r.Want.Repeat > 1 && !r.Want.Pair {
		text += "How much captures of this program differ: explain policy init " +
			render.Visible(strings.Join(lists.Map(r.Want.folders(0), wording.ShellWord), " ")) + " --noise noise.json\n"
	}
	_, err := fmt.Fprint(r.Env.Out, text)
	return err
}
