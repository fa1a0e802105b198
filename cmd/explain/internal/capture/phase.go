package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// phase is one run of the server or the program, from its start to its end, with the load between.
type phase struct {
	name     string        // of its log: logs/NAME.log
	argv     []string      // without the profiler
	profiler []string      // another profiler's command, put before argv; empty: none
	env      []string      // added to the environment
	ready    string        // address or file that says when it can be used
	old      os.FileInfo   // the file that an earlier run left there
	limit    time.Duration // until it is ready
	warmup   time.Duration // after ready, without a load
	load     Load
	send     Sender
}

// target describes a run of the job's server on a port, or of its program.
func (j *Job) target(port int) *phase {
	w := &j.Window
	p := &phase{argv: j.Program, ready: w.Ready, limit: w.ReadyTimeout, send: j.Send}
	p.load.Open, p.load.Shut = func(context.Context) error { return nil }, func() error { return nil }
	if s := j.Server; s != nil {
		p.load.URL, p.load.Model = fmt.Sprintf("http://127.0.0.1:%d", port), s.Model
		p.argv, p.env, p.ready = s.Command(port), s.Env(), p.load.URL+"/health"
	}
	return p
}

// phase prepares a run: it makes sure that its port is free, and that nothing says yet that it is ready.
func (r *Run) phase(j *Job, name string, port int) (p *phase, err error) {
	if j.Server != nil {
		if port, err = FreePort(port); err != nil {
			return nil, err
		}
	}
	p = j.target(port)
	p.name = name
	switch {
	case len(j.Window.Client) > 0:
		p.send = r.book.client(&j.Window)
	case j.Server == nil:
		p.warmup = j.Window.Warmup
		p.send = func(ctx context.Context, l *Load) error {
			if err := l.Open(ctx); err != nil {
				return err
			}
			return Sleep(ctx, j.Window.Duration)
		}
	}
	p.old, err = notYet(r.soft, p.ready)
	return p, err
}

// drive waits until the program of a phase is ready, and sends the load.
func (c *child) drive(soft context.Context, p *phase) error {
	return c.watched(soft, func(ctx context.Context) error {
		if err := waitReady(ctx, c, p.ready, p.old, p.limit); err != nil {
			return err
		}
		if err := Sleep(ctx, p.warmup); err != nil {
			return err
		}
		if err := p.send(ctx, &p.load); err != nil {
			return err
		}
		return p.load.Shut()
	})
}

// plain runs a phase without nsys.
func (r *Run) plain(p *phase) error {
	c, err := r.book.run(p.name, slices.Concat(p.profiler, p.argv), p.env...)
	if err != nil {
		return err
	}
	defer c.kill()
	err = c.drive(r.soft, p)
	if r.hard.Err() != nil {
		return context.Cause(r.hard)
	}
	if len(p.profiler) > 0 { // end the program first: the profiler writes its results once it is gone
		for _, p := range tree(c.cmd.Process.Pid, c.marker) {
			terminate(p.pid)
		}
		c.within(r.grace)
	}
	c.stop(r.grace)
	return err
}

const (
	clientName  = "client"       // in logs/children.json
	clientLimit = 24 * time.Hour // bounds a client that does not end
)

// client sends the load with the user's own program, which finds a server that explain started in EXPLAIN_URL and
// EXPLAIN_MODEL. The window opens once it has run for the warm-up; it ends with it, or after the duration, and then
// ends it.
func (b *book) client(w *Window) Sender {
	return func(ctx context.Context, l *Load) error {
		var env []string
		if l.URL != "" {
			env = []string{"EXPLAIN_URL=" + l.URL, "EXPLAIN_MODEL=" + l.Model}
		}
		if w.Warmup == 0 {
			if err := l.Open(ctx); err != nil {
				return err
			}
		}
		running, end := context.WithCancel(ctx)
		defer end()
		ended := make(chan error, 1)
		go func() { ended <- b.tool(running, clientName, w.Client, clientLimit, env...) }()
		if w.Warmup > 0 {
			select {
			case err := <-ended:
				return cmp.Or(err, fmt.Errorf("the client ended within the warm-up of %s, before the recording began: "+
					"lower --warmup", w.Warmup))
			case <-time.After(w.Warmup):
			}
			if err := l.Open(ctx); err != nil {
				end()
				<-ended
				return err
			}
		}
		if w.Duration == 0 {
			return <-ended
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(w.Duration):
		}
		err := l.Shut()
		end()
		<-ended
		return err
	}
}

// trackRequests is the number of requests of a run with expert tracking, as profile_vllm.sh sends.
const trackRequests = 100

// Track starts the server a second time, without nsys, with profilemate's sitecustomize.py on its path, and sends load
// to it. Its session files are left in evidence/session.
func (r *Run) Track(j *Job, profiler string) error {
	path, err := filepath.Abs(profiler)
	if err != nil {
		return err
	}
	session := filepath.Join(r.Dir, "evidence", "session")
	if err := os.MkdirAll(session, 0o755); err != nil {
		return err
	}
	if old := r.getenv("PYTHONPATH"); old != "" {
		path += string(os.PathListSeparator) + old
	}
	p, err := r.phase(j, "tracking", 0)
	if err != nil {
		return err
	}
	p.load.Requests = trackRequests
	p.env = append(p.env, "PYTHONPATH="+path, "VLLM_ENABLE_PROFILING=1", "VLLM_PROFILING_DIR="+session)
	r.say("Starting the server again, to track its experts")
	if err := r.plain(p); err != nil {
		return err
	}
	if entries, err := os.ReadDir(session); err != nil || len(entries) == 0 {
		r.Note("the profiler left no session files: does its sitecustomize.py fit this version of the engine?")
		return os.RemoveAll(session)
	}
	return nil
}

const overheadDir = "overhead"

// Unprofiled runs the same load once more, without nsys, and leaves what the sender measured in overhead/. It returns how
// long the client ran while nsys recorded, and without nsys; 0 if it did not run.
func (r *Run) Unprofiled(j *Job) (client [2]time.Duration, err error) {
	p, err := r.phase(j, "unprofiled", 0)
	if err != nil {
		return client, err
	}
	what := "program"
	if j.Server != nil {
		what = "server"
	}
	r.say("Starting the " + what + " again, without nsys, to measure what profiling costs")
	p.load.Dir = filepath.Join(r.Dir, overheadDir)
	if err := os.MkdirAll(p.load.Dir, 0o755); err != nil {
		return client, err
	}
	if err := r.plain(p); err != nil {
		return client, err
	}
	for _, rec := range r.book.copies() { // the last two
		if rec.Name == clientName {
			client = [2]time.Duration{client[1], time.Duration(rec.Seconds * float64(time.Second))}
		}
	}
	return client, nil
}

// OverheadLoad is the file in the folder of a capture where Unprofiled leaves the result of explain's own load.
const OverheadLoad = overheadDir + "/load.json"

// Engines that explain can start.
const (
	VLLM   = "vllm"
	SGLang = "sglang"
)

// Server is an inference server to start.
type Server struct {
	Engine string
	Model  string
	DType  string   // empty: as the engine decides
	Port   int      // 0: a free one
	Extra  []string // further arguments
	Venv   string   // virtual environment that holds the engine; empty: PATH
}

// Command returns the command that starts the server on a port of this machine.
func (s *Server) Command(port int) []string {
	program := func(name string) string {
		if s.Venv != "" {
			return filepath.Join(s.Venv, "bin", name)
		}
		return name
	}
	var argv []string
	if s.Engine == SGLang {
		argv = []string{program("python3"), "-m", "sglang.launch_server", "--model-path", s.Model, "--enable-metrics"}
	} else {
		argv = []string{program("vllm"), "serve", s.Model}
	}
	argv = append(argv, "--host", "127.0.0.1", "--port", strconv.Itoa(port))
	if s.DType != "" {
		argv = append(argv, "--dtype", s.DType)
	}
	return append(argv, s.Extra...)
}

// Eager returns a server without CUDA graphs, which Nsight Compute cannot look into.
func (s Server) Eager() *Server {
	flag := "--enforce-eager"
	if s.Engine == SGLang {
		flag = "--disable-cuda-graph"
	}
	s.Extra = append([]string{flag}, s.Extra...)
	return &s
}

// Env returns the variables that make the server emit the NVTX ranges by which steps are recognized. They turn off a
// sitecustomize.py of profilemate on PYTHONPATH, which would slow every step.
func (s *Server) Env() []string {
	env := []string{"VLLM_ENABLE_PROFILING=0"}
	if s.Engine == VLLM {
		env = append(env, "VLLM_NVTX_SCOPES_FOR_PROFILING=1")
	}
	return env
}

// Profiler returns the folder of profilemate's sitecustomize.py: the named one, else the first on PYTHONPATH that holds
// one; empty if there is none. It is an error if the named folder holds none.
func Profiler(named, pythonPath string) (string, error) {
	holds := func(dir string) bool { return dir != "" && there(filepath.Join(dir, "sitecustomize.py")) }
	if named != "" && !holds(named) {
		return "", fmt.Errorf("%s holds no sitecustomize.py: name profilemate's folder with --profiler-path", named)
	}
	path := filepath.SplitList(pythonPath)
	if i := slices.IndexFunc(path, holds); named == "" && i >= 0 {
		return path[i], nil
	}
	return named, nil
}

// FreePort returns the port to use: want if it is free, any free one if want is 0. It is an error if want is taken.
func FreePort(want int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(want)))
	if err != nil {
		return 0, fmt.Errorf(
			"port %d is taken or not allowed: name another with --port, or leave it out for a free one", want)
	}
	defer l.Close()
	addr, _ := l.Addr().(*net.TCPAddr) // a listener of TCP has one
	return addr.Port, nil
}

// Load is the input of a Sender.
type Load struct {
	URL      string
	Model    string
	Dir      string // for files that are evidence
	Requests int    // 0: as configured
	// Open is called after the warm-up, before the first measured request; Shut after the last answer.
	Open func(context.Context) error
	Shut func() error
}

// Sender sends requests to a server. It ends when ctx does, with its cause.
type Sender func(context.Context, *Load) error

// metricsLimit bounds what is read of /metrics, in bytes.
const metricsLimit = 32 << 20

// metrics saves a server's /metrics; a server without them gets a note.
func (r *Run) metrics(ctx context.Context, s *Server, url, name string) {
	if s == nil {
		return
	}
	res, text, err := get(ctx, url+"/metrics", 20*time.Second, metricsLimit+1)
	switch {
	case res == nil:
		err = errors.New("/metrics does not answer")
	case res.StatusCode != http.StatusOK:
		err = fmt.Errorf("/metrics answers %s", res.Status)
	case err != nil:
		err = errors.New("/metrics broke off")
	case len(text) > metricsLimit:
		err = fmt.Errorf("/metrics is larger than %d MB", metricsLimit>>20)
	default:
		err = os.WriteFile(filepath.Join(r.Dir, "evidence", name), text, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		r.Note("the server's metrics are missing: " + err.Error())
	}
}

// direct sends requests to servers of this machine, without any proxy.
var direct = &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}

// get asks a server of this machine, and reads the first bytes of its answer; without one the response is nil.
func get(
	ctx context.Context, url string, timeout time.Duration, most int64,
) (res *http.Response, text []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, err
	}
	if res, err = direct.Do(req); err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, most))
	return res, text, err
}
