package capture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/nsys-llm/explain/analyze/limit"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// ErrInterrupted is the cause of a context that the user ended.
var ErrInterrupted = errors.New("interrupted")

// Time limits of the nsys commands, in the order of a capture. Writing and exporting a large trace takes minutes.
const (
	startLimit    = 2 * time.Minute
	stopLimit     = 15 * time.Minute
	shutdownLimit = 2 * time.Minute
	importLimit   = 30 * time.Minute
	exportLimit   = 60 * time.Minute
	// After an interrupt: to complete a recording, and to turn it into a trace, which can also be done later.
	completeLimit = 15 * time.Minute
	afterLimit    = 5 * time.Minute
	giveUpLimit   = 15 * time.Second // to complete a recording after a second interrupt
)

// Job is what one capture runs and how.
type Job struct {
	Nsys    *Nsys
	Trace   Trace
	Window  Window
	Program []string
	Env     []string      // added to the environment of the program
	Grace   time.Duration // between an interrupt, SIGTERM and SIGKILL
	Limit   time.Duration // for the whole run of the program; 0: none
}

// Run is one capture in its folder: the processes it started and what was noted on the way.
type Run struct {
	Dir         string // absolute
	Notes       []string
	Interrupted bool // the user ended the recording; what there was has been exported
	// Program is the error of a program that failed although its recording is complete.
	Program error
	book    *book
	soft    context.Context // ends when the user interrupts
	grace   time.Duration   // of the job: how long a step may still take after an interrupt
	getenv  func(string) string
	say     func(string)
}

// NewRun begins a capture into a folder that exists. say prints a line for the user, getenv reads the environment, and
// environ is the environment of the children.
func NewRun(dir string, environ []string, getenv func(string) string, say func(string)) (*Run, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b, err := newBook(filepath.Join(full, "logs"), environ)
	if err != nil {
		return nil, err
	}
	return &Run{Dir: full, book: b, soft: context.Background(), getenv: getenv, say: say}, nil
}

// Note prints a note for the user and adds it to metadata.txt, once.
func (r *Run) Note(text string) { r.note(text) }

func (r *Run) note(list ...string) {
	for _, n := range list {
		if !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
			r.say("Note: " + n)
		}
	}
}

// Close kills what is left of the children and writes logs/children.json.
func (r *Run) Close() error {
	r.book.sweep()
	r.book.mu.Lock()
	defer r.book.mu.Unlock()
	list := r.book.records
	if list == nil {
		list = []*record{}
	}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.book.dir, recordsFile), append(b, '\n'), 0o600)
}

// Profile runs a program under nsys as the job's window says and exports the trace. When ctx ends, it ends the
// recording and exports what there is; when hard ends, it gives up.
func (r *Run) Profile(ctx, hard context.Context, j *Job) error {
	r.soft, r.grace = ctx, j.Grace
	if j.Window.Triggered() {
		old, err := notYet(ctx, j.Window.Ready)
		if err != nil {
			return err
		}
		return r.session(ctx, hard, j, r.triggered(j, old))
	}
	argv, notes, err := profileCommand(j.Nsys, &j.Trace, &j.Window, base(r.Dir), j.Program)
	if err != nil {
		return err
	}
	r.note(notes...)
	r.say("Recording " + j.Window.describe() + ": " + Shell(j.Program))
	c, err := r.book.run("nsys-profile", argv, j.Env...)
	if err != nil {
		return err
	}
	defer c.kill()
	if err := r.wait(ctx, hard, c, j); err != nil {
		return err
	}
	if err := hard.Err(); err != nil {
		return context.Cause(hard)
	}
	report, stream := captured(r.Dir)
	if report == "" && stream == "" {
		return r.full(r.nothingLeft(c, j))
	}
	// nsys ends the program then
	timed := j.Window.Duration > 0 && time.Since(c.start) >= j.Window.Delay+j.Window.Duration
	if c.code() != 0 && !r.Interrupted && !timed {
		r.Program = c.failureOf("the program")
		r.note(r.Program.Error() + " (its trace is kept)")
	}
	return r.export(hard, j.Nsys)
}

// wait waits for the end of a program under nsys profile. It returns an error if the program or nsys exceeded its
// limit.
func (r *Run) wait(ctx, hard context.Context, c *child, j *Job) error {
	var over, late <-chan time.Time
	if j.Limit > 0 {
		over = time.After(j.Limit)
	}
	complete := limit.Wait(completeLimit)
	c.watchProgram()
	for left := c.left; ; {
		select {
		case <-c.ended:
			return nil
		case <-left:
			left = nil
			what := "is completing the recording, in at most " + complete.String()
			late = time.After(complete)
			if started := remaining(c.cmd.Process.Pid); len(started) > 0 {
				what, late = "is waiting for processes that it started: "+list(started), nil
			}
			r.say("The program has ended; nsys " + what + ". Ctrl-C ends them and keeps the recording")
		case <-late:
			c.stop(min(j.Grace, giveUpLimit))
			return limit.Late("nsys", complete)
		case <-over:
			r.endProgram(hard, c, j.Grace, complete)
			return fmt.Errorf("the program did not end within %s: raise --timeout, or record a part with --duration",
				j.Limit)
		case <-ctx.Done():
			r.Interrupted = true
			r.say("Interrupted: ending the recording; once more to give up")
			r.endProgram(hard, c, j.Grace, complete)
			return nil
		}
	}
}

// endProgram ends the programs under nsys but not nsys, which completes the recording once they are gone: if
// interrupted, nsys waits for daemons of the program, and the recording is lost. After a second interrupt it kills the
// programs and gives nsys little time. If no program was ever seen under nsys, it stops the child instead.
func (r *Run) endProgram(hard context.Context, c *child, grace, complete time.Duration) {
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
		r.stopUnless(hard, c, grace)
		return
	}
	for limit, said := complete, "; once more to give up"; ; {
		if twice = hard.Done(); hard.Err() != nil {
			limit, said, twice = min(complete, giveUpLimit), "", nil
		}
		c.within(deathDelay)
		if !c.running() {
			return
		}
		r.say(fmt.Sprintf("Waiting at most %s for nsys to complete the recording%s", limit, said))
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

// stopUnless stops a child, and kills it at once after a second interrupt.
func (r *Run) stopUnless(hard context.Context, c *child, grace time.Duration) {
	done := make(chan struct{})
	go func() {
		select {
		case <-hard.Done():
			c.kill()
		case <-done:
		}
	}()
	c.stop(grace)
	close(done)
}

// nothingLeft explains why nsys left no report.
func (r *Run) nothingLeft(c *child, j *Job) error {
	switch {
	case r.Interrupted:
		return fmt.Errorf("%w before anything was recorded", ErrInterrupted)
	case c.code() != 0:
		return c.failure()
	case j.Window.NVTX != "":
		return fmt.Errorf("nothing was recorded: the NVTX range %q never began; check its name and domain (NAME@DOMAIN, NAME@*)", j.Window.NVTX)
	case j.Window.Delay > 0:
		return fmt.Errorf("nothing was recorded: the program ended before the delay of %s was over; lower --delay",
			j.Window.Delay)
	}
	return errors.New("nsys ended without leaving a report: see its log")
}

// during runs while a program runs in a session of nsys: open starts the recording, shut ends it.
type during func(ctx context.Context, c *child, open func(context.Context) error, shut func() error) error

// triggered waits until the program is ready, then records while the client runs, or for the duration.
func (r *Run) triggered(j *Job, old os.FileInfo) during {
	w := &j.Window
	return func(ctx context.Context, c *child, open func(context.Context) error, shut func() error) error {
		r.say("Waiting until " + RedactText(w.Ready) + " is ready")
		if err := waitReady(ctx, c, w.Ready, old, w.ReadyTimeout); err != nil {
			return err
		}
		if err := sleep(ctx, c, w.Warmup); err != nil {
			return err
		}
		if err := open(ctx); err != nil {
			return err
		}
		r.say("Recording " + w.describe())
		if len(w.Client) > 0 {
			if err := r.client(ctx, w.Client); err != nil {
				return err
			}
			return shut()
		}
		if err := sleep(ctx, c, w.Duration); err != nil {
			return err
		}
		return shut()
	}
}

// clientLimit bounds a client that does not end.
const clientLimit = 24 * time.Hour

// client runs the user's own load generator.
func (r *Run) client(ctx context.Context, argv []string, env ...string) error {
	return r.book.tool(ctx, "client", argv, clientLimit, env...)
}

// session runs a program under nsys launch, if nothing is recorded until nsys start, and exports what was recorded.
func (r *Run) session(ctx, hard context.Context, j *Job, work during) error {
	r.soft, r.grace = ctx, j.Grace
	session := fmt.Sprintf("explain-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	argv, notes, err := launchCommand(j.Nsys, &j.Trace, session, j.Program)
	if err != nil {
		return err
	}
	r.note(notes...)
	start, notes := startCommand(j.Nsys, &j.Trace, session, base(r.Dir))
	r.note(notes...)
	r.say("Starting " + Shell(j.Program))
	c, err := r.book.run("server", argv, j.Env...)
	if err != nil {
		return err
	}
	defer c.kill()
	c.watchProgram()
	opened, closed := false, false
	open := func(ctx context.Context) error {
		opened = true
		return r.book.tool(ctx, "nsys-start", start, limit.Wait(startLimit))
	}
	shut := func() error {
		if closed || !opened {
			return nil
		}
		closed = true
		return r.step(extended(hard, giveUpLimit), "nsys-stop", "nsys to end the recording", stopCommand(j.Nsys, session), stopLimit)
	}
	err = r.watched(ctx, c, func(ctx context.Context) error { return work(ctx, c, open, shut) })
	if ctx.Err() != nil && hard.Err() == nil {
		r.Interrupted = true
		if !opened {
			c.stop(j.Grace)
			return fmt.Errorf("%w before anything was recorded", ErrInterrupted)
		}
		r.say("Interrupted: ending the recording; once more to give up")
		if err = shut(); err != nil {
			if report, stream := captured(r.Dir); report+stream == "" {
				err = fmt.Errorf("%w before anything was recorded", ErrInterrupted)
			}
		}
	}
	if err != nil {
		_ = shut() // keep what was recorded until then
		r.endSession(hard, j, c, session)
		return err
	}
	r.endSession(hard, j, c, session)
	if err := hard.Err(); err != nil {
		return context.Cause(hard)
	}
	if c.code() != 0 && c.record.Sent == "" && c.code() != 128+int(syscall.SIGTERM) {
		r.note(fmt.Sprintf("the server ended with exit code %d after the recording: see logs/server.log", c.code()))
	}
	if report, stream := captured(r.Dir); report == "" && stream == "" {
		return r.full(withWords(errors.New("nsys left no report of the window: see logs/nsys-stop.log"),
			filepath.Join(r.book.dir, "nsys-stop.log")))
	}
	return r.export(hard, j.Nsys)
}

// watched runs work, and cancels it, with the reason, if the child ends first.
func (r *Run) watched(parent context.Context, c *child, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-c.ended:
			cancel(c.gone())
		case <-c.left:
			cancel(c.gone())
		case <-done:
		}
	}()
	err := work(ctx)
	var gone *goneError
	if err == nil && parent.Err() == nil && !c.running() && c.code() != 0 {
		return c.gone()
	}
	if err == nil || errors.As(err, &gone) || parent.Err() != nil {
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
	if w := c.when.Load(); w != nil {
		when = *w
	}
	if c.running() {
		err := fmt.Errorf("%s ended, but processes that it started are still running: %s (%s)", c.name,
			list(remaining(c.cmd.Process.Pid)), when)
		return &goneError{withWords(err, c.log)}
	}
	return &goneError{fmt.Errorf("%w (%s)", c.failure(), when)}
}

// endSession ends the program and the session: it asks first, since a server has files to write, and then uses force.
func (r *Run) endSession(hard context.Context, j *Job, c *child, session string) {
	if c.running() {
		limit := min(shutdownLimit, max(j.Grace, time.Second)*2)
		argv := shutdownCommand(j.Nsys, session)
		if err := r.book.tool(context.Background(), "nsys-shutdown", argv, limit); err == nil {
			c.within(j.Grace)
		}
	}
	if c.running() {
		r.note("the server did not end when it was asked to, and was ended by force")
	}
	r.endProgram(hard, c, j.Grace, j.Grace)
	c.kill()
}

// Resume exports what was recorded, unless that is done already.
func (r *Run) Resume(hard context.Context, find func() (*Nsys, error)) error {
	report, stream := captured(r.Dir)
	exported := slices.ContainsFunc(r.book.records, func(rec *record) bool {
		return rec.Name == exportName && rec.ExitCode != nil && *rec.ExitCode == 0
	})
	if report+stream == "" || exported && r.checkSQLite() == nil {
		return r.checkSQLite()
	}
	n, err := find()
	if err != nil {
		return err
	}
	return r.export(hard, n)
}

// missingLibrary is how the system says that a program lacks one.
var missingLibrary = pattern.New(`error while loading shared libraries: ([^:\s]+)`)

// extended returns a context that ends by after ctx.
func extended(ctx context.Context, by time.Duration) context.Context {
	late, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(by, func() { cancel(context.Cause(ctx)) }) })
	return late
}

// step runs one of the steps after a recording, which is kept even if they fail. After an interrupt it says what it
// waits for, and how long.
func (r *Run) step(hard context.Context, name, what string, argv []string, usual time.Duration) error {
	tool, cancel := context.WithCancelCause(hard)
	defer cancel(nil)
	most, interrupted := r.grace, "Interrupted: w"
	if r.soft.Err() != nil {
		most, interrupted = afterLimit, "W"
	}
	defer context.AfterFunc(r.soft, func() {
		r.say(fmt.Sprintf("%saiting at most %s for %s; once more to end it, and what was recorded is kept", interrupted, most, what))
		select {
		case <-tool.Done():
		case <-time.After(most):
			cancel(fmt.Errorf("%w: %s did not end within %s (--grace sets it)", ErrInterrupted, name, most))
		}
	})()
	return r.book.tool(tool, name, argv, limit.Wait(usual))
}

// exportName is the name of the export in logs/children.json.
const exportName = "nsys-export"

// export turns what nsys recorded into trace.nsys-rep and trace.sqlite.
func (r *Run) export(hard context.Context, n *Nsys) error {
	report, stream := captured(r.Dir)
	if report == "" {
		importer := findImporter(n.Path, r.getenv)
		if importer == "" {
			return fmt.Errorf("nsys left a raw stream (.qdstrm) and no report, and its %s is not installed here: install all of Nsight Systems, or name it with $QDSTRM_IMPORTER", importerName)
		}
		report = base(r.Dir) + ".nsys-rep"
		r.say("Importing the raw stream")
		argv := []string{importer, "--input-file", stream, "--output-file", report, "--force-overwrite"}
		if err := r.step(hard, "importer", "the raw stream to be imported", argv, importLimit); err != nil {
			os.Remove(report) // half a report would pass for a recording
			if lib := missingLibrary().FindStringSubmatch(err.Error()); lib != nil {
				err = fmt.Errorf("%w: install the library %s, or continue on a machine that has it", err, lib[1])
			}
			return r.full(err)
		}
		if info, err := os.Stat(report); err != nil || info.Size() == 0 {
			return r.full(fmt.Errorf("%s wrote no report: see logs/importer.log", importerName))
		}
		if err := os.Remove(stream); err != nil {
			return err
		}
	}
	want := base(r.Dir) + filepath.Ext(report)
	if report != want {
		r.note("nsys left several reports, and the first one is analysed: " + filepath.Base(report))
		if err := os.Rename(report, want); err != nil {
			return err
		}
	}
	r.say("Exporting " + filepath.Base(want))
	if err := r.step(hard, exportName, "the export", exportCommand(n, want, r.SQLite()), exportLimit); err != nil {
		return r.full(err)
	}
	if err := r.checkSQLite(); err != nil {
		return r.full(err)
	}
	for _, p := range []string{want, r.SQLite()} { // both hold the environment of the program
		if err := os.Chmod(p, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// checkSQLite makes sure that the export is there.
func (r *Run) checkSQLite() error {
	head := make([]byte, 15)
	f, err := os.Open(r.SQLite())
	if err != nil {
		return errors.New("nsys export said that it succeeded and wrote no trace.sqlite: see logs/nsys-export.log")
	}
	defer f.Close()
	if n, _ := f.Read(head); !bytes.Equal(head[:n], []byte("SQLite format 3")) {
		return errors.New("nsys export wrote a trace.sqlite that is not a database: see logs/nsys-export.log")
	}
	return nil
}

// full adds to an error of nsys that the disk is full, if it is. nsys first writes into the temporary folder, and frees
// that space when it gives up: the disk counts as full if less is left than any trace takes.
func (r *Run) full(err error) error {
	const small = 16 << 20 // bytes; nsys's shortest recording takes 12 MB
	for _, dir := range []string{r.Dir, cmp.Or(r.getenv("TMPDIR"), os.TempDir())} {
		if free, ok := limit.Free(dir); ok && free < small && err != nil {
			return fmt.Errorf("the disk is full: %d kB are left; free some space, or name another place with --out and TMPDIR (%w)",
				free>>10, err)
		}
	}
	return DiskFull(r.Dir, err)
}

// DiskFull adds to an error that the disk of a folder is full, if it is and the error does not say so.
func DiskFull(dir string, err error) error {
	if free, ok := limit.Free(dir); err != nil && ok && free < 16<<10 && !limit.Full(err) {
		return fmt.Errorf("the disk is full: free some space, or name another place with --out (%w)", err)
	}
	return limit.FullText(err)
}

// SQLite is the path of the exported trace.
func (r *Run) SQLite() string { return base(r.Dir) + ".sqlite" }
