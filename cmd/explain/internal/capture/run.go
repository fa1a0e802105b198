package capture

import (
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
	settleLimit   = 3 * time.Second  // for agents of nsys to end once their program and their nsys are gone
)

// Job is what one capture runs and how.
type Job struct {
	Nsys    *Nsys
	Trace   Trace
	Window  Window
	Program []string
	Server  *Server       // started instead of Program; nil: none
	Send    Sender        // sends the load to Server, if the window has no client
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
	soft    context.Context // ends when the user interrupts: the recording ends, and what there is is exported
	hard    context.Context // ends when the user gives up
	grace   time.Duration   // of the job: how long a step may still take after an interrupt
	getenv  func(string) string
	say     func(string)
}

// NewRun begins a capture into a folder that exists. say prints a line for the user, and getenv reads the environment.
func NewRun(soft, hard context.Context, dir string, getenv func(string) string, say func(string)) (*Run, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b, err := newBook(filepath.Join(full, "logs"), say)
	if err != nil {
		return nil, err
	}
	return &Run{Dir: full, book: b, soft: soft, hard: hard, getenv: getenv, say: say}, nil
}

// Note prints notes for the user and adds them to metadata.txt, each once.
func (r *Run) Note(list ...string) {
	for _, n := range list {
		if !slices.Contains(r.Notes, n) {
			r.Notes = append(r.Notes, n)
			r.say("Note: " + n)
		}
	}
}

// Close kills what is left of the children and writes logs/children.json.
func (r *Run) Close() error {
	killTree(0, r.book.marker)
	return writeJSON(filepath.Join(r.book.dir, recordsFile), append([]record{}, r.book.copies()...), 0o600)
}

func writeJSON(path string, v any, mode os.FileMode) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), mode)
}

// Profile runs the job's server or program under nsys as the window says and exports the trace.
func (r *Run) Profile(j *Job) error {
	r.grace = j.Grace
	if j.Server != nil || j.Window.Triggered() {
		return r.session(j)
	}
	argv, notes, err := profileCommand(j.Nsys, &j.Trace, &j.Window, base(r.Dir), j.Program)
	if err != nil {
		return err
	}
	r.Note(notes...)
	r.say("Recording " + j.Window.describe() + ": " + Shell(j.Program))
	c, err := r.book.run("nsys-profile", argv)
	if err != nil {
		return err
	}
	defer c.kill()
	if err := r.wait(c, j); err != nil {
		return err
	}
	if r.hard.Err() != nil {
		return context.Cause(r.hard)
	}
	if !recorded(r.Dir) {
		return r.full(j.nothingLeft(c, r.Interrupted))
	}
	// nsys ends the program then
	timed := j.Window.Duration > 0 && time.Since(c.start) >= j.Window.Delay+j.Window.Duration
	if c.exit != 0 && !r.Interrupted && !timed {
		r.Program = c.failure("the program")
		r.Note(r.Program.Error() + " (its trace is kept)")
	}
	return r.export(j.Nsys)
}

// wait waits for the end of a program under nsys profile. It returns an error if the program or nsys exceeded its
// limit.
func (r *Run) wait(c *child, j *Job) error {
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
			c.endProgram(r.hard, j.Window.begun(c.start), j.Grace, complete)
			return fmt.Errorf("the program did not end within %s: raise --timeout, or record a part with --duration",
				j.Limit)
		case <-r.soft.Done():
			r.Interrupted = true
			begun, what := j.Window.begun(c.start), "program"
			if begun {
				what = "recording"
			}
			r.say("Interrupted: ending the " + what + "; once more to give up")
			c.endProgram(r.hard, begun, j.Grace, complete)
			return nil
		}
	}
}

// nothingLeft explains why nsys left no report.
func (j *Job) nothingLeft(c *child, interrupted bool) error {
	switch {
	case interrupted:
		return fmt.Errorf("%w before anything was recorded", ErrInterrupted)
	case c.exit != 0:
		return c.failure(c.name)
	case j.Window.NVTX != "":
		return fmt.Errorf("nothing was recorded: the NVTX range %q never began; check its name and domain (NAME@DOMAIN, NAME@*)", j.Window.NVTX)
	case j.Window.Delay > 0:
		return fmt.Errorf("nothing was recorded: the program ended before the delay of %s was over; lower --delay",
			j.Window.Delay)
	}
	return errors.New("nsys ended without leaving a report: see its log")
}

// session runs the server or the program under nsys launch, where nothing is recorded until nsys start, and exports what
// was recorded while it was loaded.
func (r *Run) session(j *Job) error {
	port, what, during := 0, RedactText(j.Window.Ready), j.Window.describe()
	if j.Server != nil {
		port, what, during = j.Server.Port, "the server", "while the load is sent"
	}
	p, err := r.phase(j, "server", port)
	if err != nil {
		return err
	}
	if p.load.Dir = filepath.Join(r.Dir, "evidence"); j.Server != nil {
		if err := os.MkdirAll(p.load.Dir, 0o755); err != nil {
			return err
		}
	}
	j.Program = p.argv
	session := fmt.Sprintf("explain-%d-%d", os.Getpid(), time.Now().UnixNano()%1e9)
	argv, start, notes, err := sessionCommands(j.Nsys, &j.Trace, session, base(r.Dir), p.argv)
	if err != nil {
		return err
	}
	r.Note(notes...)
	r.say("Starting " + Shell(p.argv))
	c, err := r.book.run(p.name, argv, p.env...)
	if err != nil {
		return err
	}
	defer c.kill()
	c.watchProgram()
	opened, closed := false, false
	p.load.Open = func(ctx context.Context) error {
		r.metrics(ctx, j.Server, p.load.URL, "metrics_before.prom")
		opened = true
		if err := r.book.tool(ctx, "nsys-start", start, limit.Wait(startLimit)); err != nil {
			return err
		}
		r.say("Recording " + during)
		return nil
	}
	shut := func() error {
		if closed || !opened {
			return nil
		}
		closed = true
		return r.step(extended(r.hard, giveUpLimit), "nsys-stop", "nsys to end the recording", stopCommand(j.Nsys, session), stopLimit)
	}
	p.load.Shut = func() error {
		if closed {
			return nil
		}
		err := shut()
		r.metrics(r.soft, j.Server, p.load.URL, "metrics_after.prom")
		return err
	}
	r.say("Waiting until " + what + " is ready")
	err = c.drive(r.soft, p)
	if r.soft.Err() != nil && !opened { // nsys 2024.2 stays, interrupted or asked to shut down, while a daemon lives
		r.Interrupted = r.hard.Err() == nil
		c.endProgram(r.hard, false, j.Grace, giveUpLimit)
		return fmt.Errorf("%w before anything was recorded", ErrInterrupted)
	}
	if r.soft.Err() != nil && r.hard.Err() == nil {
		r.Interrupted = true
		r.say("Interrupted: ending the recording; once more to give up")
		if err = shut(); err != nil && !recorded(r.Dir) {
			err = fmt.Errorf("%w before anything was recorded", ErrInterrupted)
		}
	}
	if err != nil {
		_ = shut() // keep what was recorded until then
	}
	r.endSession(j, c, session)
	switch {
	case err != nil:
		return err
	case r.hard.Err() != nil:
		return context.Cause(r.hard)
	}
	if c.exit != 0 && c.record.Sent == "" && c.exit != 128+int(syscall.SIGTERM) {
		r.Note(fmt.Sprintf("the server ended with exit code %d after the recording: see logs/server.log", c.exit))
	}
	if !recorded(r.Dir) {
		return r.full(withWords(errors.New("nsys left no report of the window: see logs/nsys-stop.log"),
			filepath.Join(r.book.dir, "nsys-stop.log")))
	}
	return r.export(j.Nsys)
}

// endSession ends the program and the session: it asks first, since a server has files to write, and then uses force.
func (r *Run) endSession(j *Job, c *child, session string) {
	if c.running() {
		limit := min(shutdownLimit, max(j.Grace, time.Second)*2)
		argv := shutdownCommand(j.Nsys, session)
		if err := r.book.tool(context.Background(), "nsys-shutdown", argv, limit); err == nil {
			c.within(j.Grace)
		}
	}
	if c.running() {
		r.Note("the server did not end when it was asked to, and was ended by force")
	}
	c.endProgram(r.hard, recorded(r.Dir), j.Grace, j.Grace)
	c.kill()
}

// Resume exports what was recorded with the named nsys, unless that is done already.
func (r *Run) Resume(nsys string) error {
	exported := slices.ContainsFunc(r.book.records, func(rec *record) bool {
		return rec.Name == exportName && rec.ExitCode != nil && *rec.ExitCode == 0
	})
	if err := checkSQLite(r.SQLite()); !recorded(r.Dir) || exported && err == nil {
		return err
	}
	n, err := FindNsys(r.hard, nsys)
	if err != nil {
		return err
	}
	return r.export(n)
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
func (r *Run) step(ctx context.Context, name, what string, argv []string, usual time.Duration) error {
	tool, cancel := context.WithCancelCause(ctx)
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
func (r *Run) export(n *Nsys) error {
	want := base(r.Dir) + ".nsys-rep"
	report, stream := captured(r.Dir)
	if report == "" {
		importer := findImporter(n.Path, r.getenv)
		if importer == "" {
			return fmt.Errorf("nsys left a raw stream (.qdstrm) and no report, and its %s is not installed here: install all of Nsight Systems, or name it with $QDSTRM_IMPORTER", importerName)
		}
		report = want
		r.say("Importing the raw stream")
		argv := []string{importer, "--input-file", stream, "--output-file", report, "--force-overwrite"}
		if err := r.step(r.hard, "importer", "the raw stream to be imported", argv, importLimit); err != nil {
			os.Remove(report) // half a report would pass for a recording
			if lib := missingLibrary().FindStringSubmatch(err.Error()); lib != nil {
				err = fmt.Errorf("%w: install the library %s, or continue on a machine that has it", err, lib[1])
			}
			return r.full(err)
		}
		if !filled(report) {
			return r.full(fmt.Errorf("%s wrote no report: see logs/importer.log", importerName))
		}
		if err := os.Remove(stream); err != nil {
			return err
		}
	}
	if report != want {
		r.Note("nsys left several reports, and the first one is analysed: " + filepath.Base(report))
		if err := os.Rename(report, want); err != nil {
			return err
		}
	}
	r.say("Exporting " + filepath.Base(want))
	if err := r.step(r.hard, exportName, "the export", exportCommand(n, want, r.SQLite()), exportLimit); err != nil {
		return r.full(err)
	}
	if err := checkSQLite(r.SQLite()); err != nil {
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
func checkSQLite(path string) error {
	head, err := readHead(path, 15)
	switch {
	case err != nil:
		return errors.New("nsys export said that it succeeded and wrote no trace.sqlite: see logs/nsys-export.log")
	case string(head) != "SQLite format 3":
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
