package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// record describes a child process in logs/children.json.
type record struct {
	Name    string   `json:"name"`
	Command []string `json:"command"` // secrets replaced
	// ExitCode is null if the process was ended by a signal or never started.
	ExitCode *int    `json:"exit_code"`
	Signal   string  `json:"signal,omitempty"`     // signal that ended it
	Sent     string  `json:"sent,omitempty"`       // the last signal that explain sent it
	Seconds  float64 `json:"seconds"`              // from start to end
	Log      string  `json:"log"`                  // standard output and error, inside the folder
	Error    string  `json:"error,omitempty"`      // why it could not be started
	Limit    string  `json:"time_limit,omitempty"` // reason if it could not be started
}

// child is a running program. It writes its output straight into a file, so that explain never waits for a pipe that a
// grandchild holds.
type child struct {
	name   string
	marker string
	cmd    *exec.Cmd
	log    string // path
	start  time.Time
	ended  chan struct{} // closed when the process has been waited for
	// exit is the exit code; 128 plus the signal, as in a shell, if a signal ended the process. It is -1 until the end.
	exit int
	// left is closed when the program that nsys runs has ended while nsys still runs. It is nil if watchProgram was not
	// called.
	left   chan struct{}
	seen   atomic.Bool // the program was seen below the child
	ready  atomic.Bool // it has been ready, and is under load
	record *record
	book   *book
}

// book collects the records of all children, in the order of their start.
type book struct {
	mu      sync.Mutex
	records []*record
	dir     string // of the logs
	say     func(string)
	// marker begins the NAME=VALUE in the environment of every child, by which processes that left their group are found.
	// The number of the child and a dot follow.
	marker string
}

// markerName is the environment variable that marks the children of one capture. Its value holds the pid of explain,
// its start time, and the time of the capture.
const markerName = "EXPLAIN_CAPTURE"

// keepEnviron asks Python's setproctitle, with which vLLM names its processes, not to overwrite the environment, which
// holds the mark.
const keepEnviron = "SPT_NOENV=1"

// recordsFile is where the records are kept, in the folder of the logs.
const recordsFile = "children.json"

func newBook(dir string, say func(string)) (*book, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	me := thisProcess()
	b := &book{dir: dir, say: say,
		marker: fmt.Sprintf("%s=%d-%d-%d-", markerName, me.PID, me.Start, time.Now().UnixNano())}
	// a resumed capture already has records
	if text, err := os.ReadFile(filepath.Join(dir, recordsFile)); err == nil {
		_ = json.Unmarshal(text, &b.records)
	}
	return b, nil
}

// run starts a program. Its log is logs/NAME.log.
func (b *book) run(name string, argv []string, env ...string) (*child, error) {
	shown := redact(argv)
	for i := range shown { // show the commands as run inside the folder, not the scratch folder
		shown[i] = strings.ReplaceAll(shown[i], filepath.Dir(b.dir), ".")
	}
	rec := &record{Name: name, Command: shown, Log: filepath.ToSlash(filepath.Join("logs", name+".log"))}
	b.mu.Lock()
	b.records = append(b.records, rec)
	marker := fmt.Sprintf("%s%d.", b.marker, len(b.records))
	b.mu.Unlock()
	c := &child{name: name, marker: marker, log: filepath.Join(b.dir, name+".log"), start: time.Now(),
		ended: make(chan struct{}), exit: -1, record: rec, book: b}
	fail := func(err error) error {
		b.mu.Lock()
		rec.Error = err.Error()
		b.mu.Unlock()
		return err
	}
	out, err := os.OpenFile(c.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fail(err)
	}
	defer out.Close()
	c.cmd = exec.Command(argv[0], argv[1:]...)
	c.cmd.Stdout, c.cmd.Stderr = out, out
	c.cmd.Env = slices.Concat(os.Environ(), []string{keepEnviron}, env, []string{marker})
	if err := start(c.cmd); err != nil {
		if errors.As(err, new(*exec.Error)) || errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%s is not installed here, or not on PATH", argv[0])
		}
		return nil, fail(err)
	}
	go c.wait()
	return c, nil
}

func (c *child) wait() {
	err := c.cmd.Wait()
	c.book.mu.Lock()
	c.record.Seconds = time.Since(c.start).Round(time.Millisecond).Seconds()
	if state := c.cmd.ProcessState; state != nil {
		if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			c.record.Signal, c.exit = status.Signal().String(), 128+int(status.Signal())
		} else {
			c.exit = state.ExitCode()
			c.record.ExitCode = new(c.exit)
		}
	} else if err != nil {
		c.record.Error = err.Error()
	}
	c.book.mu.Unlock()
	close(c.ended)
}

func (c *child) running() bool {
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// failure describes how the child, called name, ended, with the last line of its log. It is valid only after the end.
func (c *child) failure(name string) error {
	how := fmt.Sprintf("ended with exit code %d", c.exit)
	if c.record.Signal != "" {
		how = "was ended by a signal (" + c.record.Signal + ")"
	}
	return withWords(fmt.Errorf("%s %s", name, how), c.log)
}

// withWords appends the last line of a log to an error.
func withWords(err error, log string) error {
	if said := lastLine(log); said != "" {
		return fmt.Errorf("%w: %s", err, said)
	}
	return err
}

// watchProgram closes left once the program that nsys runs below the child has ended but the child has not.
func (c *child) watchProgram() {
	c.left = make(chan struct{})
	go func() {
		var program process
		for {
			select {
			case <-c.ended:
				return
			case <-time.After(pollEvery):
			}
			now := processOf(program.pid)
			switch {
			case program.pid == 0:
				if program = programBelow(c.cmd.Process.Pid); program.pid > 0 {
					c.seen.Store(true)
				}
			case !now.running() || now.start != program.start: // another process with its pid
				if c.within(deathDelay); c.running() {
					close(c.left)
				}
				return
			}
		}
	}()
}

// nsysWords matches lines that nsys and similar tools always write at the end: the report's path, progress, usage.
var nsysWords = pattern.New(`^(Try '|usage:|Generat(ing|ed)\b|Collecting data|Processing( \[|\s\d)|Saving |Saved |Creating final |Importer error status|Unable to retrieve the importer|The target application (terminated|exited)|Waiting for termination|Use the .--wait. option|\[\d+/\d+\] |\S*/trace\.\S*$|Capture range (started|ended)|Failed to create .*\.nsys-rep)`)

// lastLine returns the last meaningful line of a log, shortened. Progress bars redraw their line with carriage returns.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	const tail = 4096
	_, _ = f.Seek(-tail, io.SeekEnd) // a shorter file stays at its start
	b := make([]byte, tail)
	n, _ := f.Read(b)
	lines := strings.FieldsFunc(string(b[:n]), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := len(lines) - 1; i >= 0; i-- {
		if s := strings.TrimSpace(lines[i]); s != "" && !nsysWords().MatchString(s) {
			s = RedactText(s)
			if r := []rune(s); len(r) > 200 {
				s = string(r[:200]) + "…"
			}
			return strings.ToValidUTF8(s, "�")
		}
	}
	return ""
}

// tool runs a program to its end, for at most most, and returns an error that says how it failed.
func (b *book) tool(ctx context.Context, name string, argv []string, most time.Duration, env ...string) error {
	c, err := b.run(name, argv, env...)
	if err != nil {
		return err
	}
	select {
	case <-c.ended:
	case <-time.After(most):
		b.mu.Lock()
		c.record.Limit = most.String()
		b.mu.Unlock()
		c.kill()
		return limit.Late(name, most)
	case <-ctx.Done():
		c.kill()
		return context.Cause(ctx)
	}
	if c.exit != 0 {
		return c.failure(c.name)
	}
	return nil
}

func (c *child) sent(sig os.Signal) {
	c.book.mu.Lock()
	c.record.Sent = sig.String()
	c.book.mu.Unlock()
}

// stop ends the child and everything it started: it interrupts the process group, so that a profiler can write its
// data, sends SIGTERM after the grace time, and SIGKILL after the same time again. It finds processes that left the
// group by their mark.
func (c *child) stop(grace time.Duration) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !c.running() {
			break
		}
		c.sent(sig)
		signalGroup(c.cmd.Process, sig)
		c.within(grace)
	}
	c.kill()
}

// within waits until the child ends, but at most limit.
func (c *child) within(limit time.Duration) {
	select {
	case <-c.ended:
	case <-time.After(limit):
	}
}

// kill kills what is left of the child and of everything it started.
func (c *child) kill() {
	if c.running() {
		c.sent(syscall.SIGKILL)
		signalGroup(c.cmd.Process, syscall.SIGKILL)
		// a process in an uninterruptible call does not die: give up after a while
		c.within(10 * time.Second)
	}
	killTree(c.cmd.Process.Pid, c.marker)
}

// endProgram ends the programs under nsys but not nsys, which completes the recording once they are gone: if
// interrupted, nsys waits for daemons of the program, and the recording is lost. After a second interrupt it kills the
// programs and gives nsys little time. If no program was ever seen under nsys, it stops the child instead. If recording
// is false, there is none to complete.
func (c *child) endProgram(hard context.Context, recording bool, grace, complete time.Duration) {
	asked := map[int]bool{}
	grown, twice := time.After(grace), hard.Done()
	for force := false; c.running(); {
		left := remaining(c.cmd.Process.Pid)
		if len(left) == 0 && (c.seen.Load() || force) {
			break
		}
		if len(left) > 0 {
			c.seen.Store(true)
		}
		for _, p := range left {
			if force {
				killProcess(p.pid)
			} else if !asked[p.pid] {
				asked[p.pid] = true
				terminate(p.pid)
			}
		}
		select {
		case <-grown:
			force = true
		case <-twice:
			force, twice = true, nil
		case <-c.ended:
		case <-time.After(pollEvery):
		}
	}
	if !c.seen.Load() {
		defer context.AfterFunc(hard, c.kill)()
		c.stop(grace)
		return
	}
	work := "end"
	if recording {
		work = "complete the recording"
	}
	for limit, said := complete, "; once more to give up"; ; {
		if twice = hard.Done(); hard.Err() != nil {
			limit, said, twice = min(complete, giveUpLimit), "", nil
		}
		c.within(deathDelay)
		if !c.running() {
			return
		}
		c.book.say(fmt.Sprintf("Waiting at most %s for nsys to %s%s", limit, work, said))
		select {
		case <-twice:
			continue
		case <-c.ended:
		case <-time.After(limit):
		}
		break
	}
	c.stop(min(grace, giveUpLimit))
}

// watched runs work, and cancels it, with the reason, if the child ends first.
func (c *child) watched(parent context.Context, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	go func() {
		select {
		case <-c.ended:
		case <-c.left:
		case <-ctx.Done():
			return
		}
		cancel(c.gone())
	}()
	err := work(ctx)
	if err == nil && parent.Err() == nil && !c.running() && c.exit != 0 {
		return c.gone()
	}
	if err == nil || errors.As(err, new(*goneError)) || parent.Err() != nil {
		return err
	}
	// A dying server breaks its connections before it is gone: wait for the real reason.
	select {
	case <-c.ended:
		return c.gone()
	case <-c.left:
		return c.gone()
	case <-time.After(2 * deathDelay):
	}
	return err
}

// deathDelay is the time that a process with broken connections may take to end, and nsys to notice.
const deathDelay = time.Second

// goneError means that a child ended too soon.
type goneError struct{ error }

func (e *goneError) Unwrap() error { return e.error }

// gone describes how a child, or the program that nsys runs in it, ended, and what it was needed for.
func (c *child) gone() error {
	when := "before it was ready"
	if c.ready.Load() {
		when = "while the load was sent"
	}
	if c.running() {
		err := fmt.Errorf("%s ended, but processes that it started are still running: %s (%s)", c.name,
			list(remaining(c.cmd.Process.Pid)), when)
		return &goneError{withWords(err, c.log)}
	}
	return &goneError{fmt.Errorf("%w (%s)", c.failure(c.name), when)}
}
