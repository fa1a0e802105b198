package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Trace selects what nsys records.
type Trace struct {
	Kinds       string   // --trace: cuda,nvtx,osrt
	Graphs      string   // --cuda-graph-trace: node or graph
	GraphsAsked bool     // the user set Graphs: an nsys without the flag is an error
	Memory      bool     // --cuda-memory-usage
	Host        bool     // host activity: scheduler switches, CPU samples, and Python if nsys can
	Counters    bool     // GPU counters, at nsys's default rate
	More        []string // further arguments for nsys profile or launch
}

// line is a command line of nsys in the making, with notes on what the installed version cannot record.
type line struct {
	*Nsys
	command     string
	args, notes []string
}

func (n *Nsys) line(command string, args ...string) *line {
	return &line{Nsys: n, command: command, args: append([]string{n.Name, command}, args...)}
}

func (l *line) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// optional adds a flag, or a note on what is lost if the installed version lacks it.
func (l *line) optional(flag, value, lost string) {
	if l.has(l.command, flag) {
		l.args = append(l.args, flag+"="+value)
	} else {
		l.note("nsys %s has no %s: %s", l.Version, flag, lost)
	}
}

// need returns an error if the installed version lacks a flag, which says what to install.
func (l *line) need(flags ...string) error {
	for _, flag := range flags {
		if !l.has(l.command, flag) {
			return fmt.Errorf("nsys %s %s has no %s: install 2022.4 or later, or name another with --nsys or $NSYS",
				strings.TrimSpace(l.Version), l.command, flag)
		}
	}
	return nil
}

// trace adds the flags that profile and launch share.
func (l *line) trace(t *Trace) error {
	traced := t.Kinds
	if t.Host && l.lists(l.command, pythonGIL) && !strings.Contains(traced, pythonGIL) {
		traced += "," + pythonGIL
	}
	if l.command == "launch" && l.lists(l.command, softwareCUDA) && cudaAlone().MatchString(traced) {
		// Hardware tracing places kernels in time only when the process ends: a window that ends before would lose them.
		traced = cudaAlone().ReplaceAllString(traced, "${1}"+softwareCUDA+"${2}")
		l.note("nsys %s traces CUDA by software (%s), since a window that ends before the program does loses what hardware traced; name another with --trace", l.Version, softwareCUDA)
	}
	l.args = append(l.args, "--trace="+traced)
	if t.GraphsAsked {
		if err := l.need("--cuda-graph-trace"); err != nil {
			return err
		}
	}
	l.optional("--cuda-graph-trace", t.Graphs, "kernels inside CUDA graphs may be missing")
	if t.Memory {
		l.optional("--cuda-memory-usage", "true", "memory use is not recorded")
	}
	if l.command == "launch" { // servers start their workers by fork
		l.optional("--trace-fork-before-exec", "true", "worker processes may be missing")
	}
	if t.Host && l.lists(l.command, "--python-sampling") {
		l.args = append(l.args, "--python-sampling=true")
		if l.lists(l.command, "--python-sampling-frequency") {
			l.args = append(l.args, "--python-sampling-frequency="+pythonHz)
		}
	} else if t.Host {
		l.note("nsys %s has no --python-sampling: Python's functions are not recorded", l.Version)
	}
	if l.lists(l.command, "--discard-environment") { // otherwise a trace holds the whole environment, including keys
		l.args = append(l.args, "--discard-environment=true")
	}
	l.args = append(l.args, t.More...)
	return nil
}

// cudaAlone matches plain cuda in a list of what is traced, which lets nsys choose hardware or software.
var cudaAlone = pattern.New(`(^|,)cuda(,|$)`)

// pythonHz is the rate at which Python's stacks are sampled: low, since each sample stops the interpreter.
const pythonHz = "100"

// recording adds the flags for sampling and output, which profile and start share.
func (l *line) recording(t *Trace, output string) {
	sampled := "none"
	if t.Host {
		sampled = "process-tree"
		l.note("--host samples CPUs and records every switch of the scheduler, which takes time from the host itself: --overhead measures how much")
	}
	l.args = append(l.args, "--sample="+sampled)
	l.optional("--cpuctxsw", sampled, "thread scheduling is recorded too")
	if t.Counters {
		flag := "--gpu-metrics-devices"
		if !l.lists(l.command, flag) && l.lists(l.command, "--gpu-metrics-device") {
			flag = "--gpu-metrics-device"
		}
		l.optional(flag, "all", "GPU counters are not recorded")
	}
	l.args = append(l.args, "--force-overwrite=true", "--output="+output)
}

// profileCommand returns nsys profile with a program, for windows that nsys opens by itself.
func profileCommand(n *Nsys, t *Trace, w *Window, output string, program []string) (argv, notes []string, err error) {
	l := n.line("profile")
	if err := l.trace(t); err != nil {
		return nil, nil, err
	}
	l.recording(t, output)
	if w.Delay > 0 {
		l.args = append(l.args, "--delay="+seconds(w.Delay))
	}
	if w.Duration > 0 {
		l.args = append(l.args, "--duration="+seconds(w.Duration))
	}
	if w.NVTX != "" {
		if err := l.need("--capture-range", "--nvtx-capture", "--capture-range-end"); err != nil {
			return nil, nil, err
		}
		// Without the variable only registered strings open the window, and Python's NVTX registers none.
		l.args = append(l.args, "--capture-range=nvtx", "--nvtx-capture="+w.NVTX, "--capture-range-end=stop",
			"--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0")
	}
	return append(l.args, program...), l.notes, nil
}

// sessionCommands return nsys launch with a program, which opens a session that does not record yet, and nsys start,
// with which it does.
func sessionCommands(n *Nsys, t *Trace, session, output string, program []string) (launch, start, notes []string, err error) {
	l := n.line("launch", "--session-new="+session, "--wait=all")
	if err := l.need("--session-new", "--wait"); err != nil {
		return nil, nil, nil, err
	}
	if err := l.trace(t); err != nil {
		return nil, nil, nil, err
	}
	s := n.line("start", "--session="+session)
	s.recording(t, output)
	return append(l.args, program...), s.args, append(l.notes, s.notes...), nil
}

func stopCommand(n *Nsys, session string) []string {
	return []string{n.Name, "stop", "--session=" + session}
}

func shutdownCommand(n *Nsys, session string) []string {
	return []string{n.Name, "shutdown", "--session=" + session, "--kill=sigterm"}
}

// exportCommand returns the export to SQLite. --lazy=false also writes empty tables, to distinguish "none" from "not
// recorded". --include-blobs writes the payloads of ranges: sizes of NCCL messages, Python stacks.
func exportCommand(n *Nsys, report, sqlite string) []string {
	argv := []string{n.Name, "export", "--type=sqlite", "--lazy=false", "--force-overwrite=true"}
	if n.lists("export", "--include-blobs") {
		argv = append(argv, "--include-blobs=true")
	}
	return append(argv, "--output="+sqlite, report)
}

// seconds returns whole seconds, as nsys takes them: a fraction makes nsys 2022.4 ignore the flag.
func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }

func base(dir string) string { return filepath.Join(dir, "trace") }

// Plan returns the commands that Profile would run, with a server on this port, and what happens between them, as lines
// of a shell.
func Plan(j *Job, port int, dir string) (lines []string, err error) {
	out := base(dir)
	add := func(argv ...string) { lines = append(lines, Shell(argv)) }
	say := func(note string) { lines = append(lines, "# "+note) }
	var notes []string
	if p := j.target(port); j.Server == nil && !j.Window.Triggered() {
		var argv []string
		if argv, notes, err = profileCommand(j.Nsys, &j.Trace, &j.Window, out, j.Program); err != nil {
			return nil, err
		}
		add(argv...)
	} else {
		if len(p.env) > 0 {
			say("with " + strings.Join(p.env, " ") + " in the environment:")
		}
		var argv, start []string
		if argv, start, notes, err = sessionCommands(j.Nsys, &j.Trace, "explain", out, p.argv); err != nil {
			return nil, err
		}
		lines = append(lines, Shell(argv)+" # in the background")
		say("wait until " + RedactText(p.ready) + " is ready")
		w, client := &j.Window, len(j.Window.Client) > 0
		own := j.Server != nil && !client // explain sends the load
		switch {
		case own:
			say("send the warm-up requests")
		case w.Warmup > 0 && client:
			lines = append(lines, Shell(w.Client)+" # in the background")
			fallthrough
		case w.Warmup > 0:
			say("wait " + w.Warmup.String())
		}
		add(start...)
		switch {
		case own:
			say("send the measured requests")
		case client && w.Warmup == 0:
			add(w.Client...)
		case client:
			say("wait until the client ends")
		default:
			say("wait " + w.Duration.String())
		}
		if client && w.Duration > 0 {
			say("end the client after " + w.Duration.String() + " of recording")
		}
		add(stopCommand(j.Nsys, "explain")...)
		add(shutdownCommand(j.Nsys, "explain")...)
	}
	add(exportCommand(j.Nsys, out+".nsys-rep", out+".sqlite")...)
	for _, n := range notes {
		say(n)
	}
	return lines, nil
}

// Window selects the part of the run to record. The zero value is all of it.
type Window struct {
	Delay    time.Duration // after the start of the program; whole seconds
	Duration time.Duration // whole seconds with nsys's own timer; 0: to the end
	NVTX     string        // the first range of this name, as nsys takes it: range@domain

	// A trigger: the program is started, explain waits until it is ready, and only then nsys begins to record. This
	// works for servers, in which nobody calls cudaProfilerStart.
	Ready        string        // http(s):// address that answers 200, or a file that exists
	ReadyTimeout time.Duration // 0: DefaultReadyTimeout
	Warmup       time.Duration // from ready, with Client from its start, to the window
	Client       []string      // sends the load; the window ends with it, or after Duration; empty: after Duration
}

// DefaultReadyTimeout bounds the wait for a program to be ready. Loading a large model takes minutes.
const DefaultReadyTimeout = 10 * time.Minute

// Triggered reports whether explain opens the window, not nsys.
func (w *Window) Triggered() bool { return w.Ready != "" }

// Check returns an error for windows that record nothing, or that nsys reads in another sense.
func (w *Window) Check() error {
	switch {
	case w.Delay < 0 || w.Duration < 0 || w.Warmup < 0 || w.ReadyTimeout < 0:
		return errors.New("a time cannot be negative")
	case w.NVTX != "" && (w.Delay > 0 || w.Duration > 0 || w.Triggered()):
		return errors.New("--nvtx opens and ends the window: leave out --delay, --duration and --ready, " +
			"which together with it record nothing")
	case w.Triggered() && w.Delay > 0:
		return errors.New("--ready opens the window: use --warmup, not --delay, for the time between")
	case w.Triggered() && len(w.Client) == 0 && w.Duration == 0:
		return errors.New("--ready opens the window, and nothing ends it: add --duration, or --client with the " +
			"command that sends the load")
	case !w.Triggered() && (w.Warmup > 0 || len(w.Client) > 0):
		return errors.New(
			"--warmup and --client need --ready: the address or file that says when the program can be used")
	case !w.Triggered() && (w.Delay%time.Second != 0 || w.Duration%time.Second != 0):
		return errors.New(
			"nsys counts --delay and --duration in whole seconds and ignores fractions: round them, or use --ready")
	}
	return nil
}

// begun reports whether nsys surely records by now a program that it started then.
func (w *Window) begun(start time.Time) bool { return w.NVTX == "" && time.Since(start) >= w.Delay }

func (w *Window) describe() string {
	switch {
	case w.NVTX != "":
		return "NVTX range " + w.NVTX
	case w.Triggered() && len(w.Client) > 0 && w.Duration > 0:
		return fmt.Sprintf("at most %s while the client runs", w.Duration)
	case w.Triggered() && len(w.Client) > 0:
		return "while the client runs"
	case w.Triggered():
		return fmt.Sprintf("%s from readiness on", w.Duration)
	case w.Duration > 0:
		return fmt.Sprintf("%s, after %s", w.Duration, w.Delay)
	case w.Delay > 0:
		return fmt.Sprintf("from %s on", w.Delay)
	}
	return "the whole run"
}

// pollEvery is the interval between checks for readiness.
const pollEvery = 200 * time.Millisecond

// waitReady waits until the address answers, or until the file exists and is not old.
func waitReady(ctx context.Context, c *child, ready string, old os.FileInfo, limit time.Duration) error {
	limit = cmp.Or(limit, DefaultReadyTimeout)
	for deadline := time.After(limit); ; {
		ok, said, err := isReady(ctx, ready, old)
		if ok || err != nil {
			c.ready.Store(true)
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return withWords(fmt.Errorf("%s was not ready within %s (%s): raise --ready-timeout, or see its log",
				c.name, limit, said), c.log)
		case <-time.After(pollEvery):
		}
	}
}

// isReady asks once. An error means that waiting cannot help.
func isReady(ctx context.Context, ready string, old os.FileInfo) (ok bool, said string, err error) {
	if !strings.Contains(ready, "://") {
		info, err := os.Stat(ready)
		if err != nil {
			return false, "the file does not exist", nil
		}
		renewed := old == nil || !os.SameFile(old, info) || !old.ModTime().Equal(info.ModTime()) ||
			old.Size() != info.Size()
		return renewed, "the file is that of the run before", nil
	}
	if _, err := url.Parse(ready); err != nil {
		return false, "", errors.New("--ready is not a valid address")
	}
	res, _, _ := get(ctx, ready, 5*time.Second, 1<<20)
	if res == nil {
		return false, "no answer", nil
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return false, "", fmt.Errorf("the server wants a key before it says whether it is ready (%s): it needs an address that is open, like /health of vLLM", res.Status)
	}
	return res.StatusCode == http.StatusOK, "it answers " + res.Status, nil
}

// begun is when this explain process started.
var begun = time.Now()

// notYet makes sure that nothing is ready before the program starts: an old server on the same port, or a file from the
// last run, would open the window at once, and the load would go to the wrong program. It returns a file that an
// earlier run of this capture left: the program has to write it again.
func notYet(ctx context.Context, ready string) (old os.FileInfo, err error) {
	ok, _, err := isReady(ctx, ready, nil)
	switch {
	case !ok && err == nil:
		return nil, nil
	case strings.Contains(ready, "://"):
		return nil, fmt.Errorf("%s answers before the program is started: another server has its port; end that one, or take another port", RedactText(ready))
	}
	if old, err = os.Stat(ready); err == nil && old.ModTime().After(begun) {
		return old, nil
	}
	return nil, fmt.Errorf(
		"%s is there before the program is started: remove it: it has to appear when the program is ready", ready)
}

// Sleep waits, and returns the cause of ctx if that ends first.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
