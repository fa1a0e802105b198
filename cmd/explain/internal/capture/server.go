package capture

import (
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

// Command returns the command that starts the server on a port of this machine. eager turns off CUDA graphs, which
// Nsight Compute cannot look into.
func (s *Server) Command(port int, eager bool) []string {
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
	if eager && s.Engine == SGLang {
		argv = append(argv, "--disable-cuda-graph")
	} else if eager {
		argv = append(argv, "--enforce-eager")
	}
	return append(argv, s.Extra...)
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
	if named != "" {
		if _, err := os.Stat(filepath.Join(named, "sitecustomize.py")); err != nil {
			return "", fmt.Errorf("%s holds no sitecustomize.py: name profilemate's folder with --profiler-path", named)
		}
		return named, nil
	}
	for _, dir := range filepath.SplitList(pythonPath) {
		if dir == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "sitecustomize.py")); err == nil {
			return dir, nil
		}
	}
	return "", nil
}

// FreePort returns the port to use: want if it is free, any free one if want is 0. It is an error if want is taken.
func FreePort(want int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(want)))
	if err != nil {
		return 0, fmt.Errorf(
			"port %d is taken or not allowed: name another with --port, or leave it out for a free one", want)
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no free port")
	}
	return addr.Port, nil
}

func address(port int) string { return fmt.Sprintf("http://127.0.0.1:%d", port) }

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

// metrics saves the server's /metrics; a server without them gets a note.
func (r *Run) metrics(ctx context.Context, url, name string) {
	text, err := fetch(ctx, url+"/metrics")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, "evidence", name), text, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		r.note("the server's metrics are missing: " + err.Error())
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	res, err := direct.Do(req)
	if err != nil {
		return nil, errors.New("/metrics does not answer")
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("/metrics answers %s", res.Status)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, metricsLimit+1))
	switch {
	case err != nil:
		return nil, errors.New("/metrics broke off")
	case len(text) > metricsLimit:
		return nil, fmt.Errorf("/metrics is larger than %d MB", metricsLimit>>20)
	}
	return text, nil
}

// Serve starts the server under nsys, warms it up, records while the load is sent, stops it and exports.
func (r *Run) Serve(ctx, hard context.Context, j *Job, s *Server, send Sender) error {
	port, err := FreePort(s.Port)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(r.Dir, "evidence"), 0o755); err != nil {
		return err
	}
	url := address(port)
	j.Program = s.Command(port, false)
	j.Env = s.Env()
	return r.session(ctx, hard, j,
		func(ctx context.Context, c *child, open func(context.Context) error, shut func() error) error {
			r.say("Waiting until the server is ready")
			if err := waitReady(ctx, c, url+"/health", nil, j.Window.ReadyTimeout); err != nil {
				return err
			}
			err := send(ctx, &Load{
				URL: url, Model: s.Model, Dir: filepath.Join(r.Dir, "evidence"),
				Open: func(ctx context.Context) error {
					r.metrics(ctx, url, "metrics_before.prom")
					r.say("Recording while the load is sent")
					return open(ctx)
				},
				Shut: func() error {
					err := shut()
					r.metrics(ctx, url, "metrics_after.prom")
					return err
				},
			})
			if err != nil {
				return err
			}
			return shut()
		})
}

// trackRequests is the number of requests of a run with expert tracking, as profile_vllm.sh sends.
const trackRequests = 100

// Track starts the server a second time, without nsys, with profilemate's sitecustomize.py on its path, and sends load
// to it. Its session files are left in evidence/session.
func (r *Run) Track(ctx, hard context.Context, j *Job, s *Server, profiler string, send Sender) error {
	profiler, err := filepath.Abs(profiler)
	if err != nil {
		return err
	}
	session := filepath.Join(r.Dir, "evidence", "session")
	if err := os.MkdirAll(session, 0o755); err != nil {
		return err
	}
	path := profiler
	if old := r.getenv("PYTHONPATH"); old != "" {
		path += string(os.PathListSeparator) + old
	}
	r.say("Starting the server again, to track its experts")
	err = r.plain(ctx, hard, &phase{
		name: "tracking", job: j, server: s, requests: trackRequests, send: send,
		env: append(s.Env(), "PYTHONPATH="+path, "VLLM_ENABLE_PROFILING=1", "VLLM_PROFILING_DIR="+session),
	})
	if err != nil {
		return err
	}
	if entries, err := os.ReadDir(session); err != nil || len(entries) == 0 {
		r.note("the profiler left no session files: does its sitecustomize.py fit this version of the engine?")
		return os.RemoveAll(session)
	}
	return nil
}

// phase is a further run of the server, without nsys, after the one that was recorded.
type phase struct {
	name     string // of its log: logs/NAME.log
	job      *Job
	server   *Server
	prefix   []string // another profiler's command, put before the server's; empty: none
	env      []string // added to the environment of the server
	requests int      // to send; 0: as configured
	dir      string   // for what the load measured; empty: nowhere
	send     Sender
}

// plain starts the server of a phase, sends load to it, and stops it.
func (r *Run) plain(ctx, hard context.Context, p *phase) error {
	port, err := FreePort(0)
	if err != nil {
		return err
	}
	profiled := len(p.prefix) > 0
	c, err := r.book.run(p.name, slices.Concat(p.prefix, p.server.Command(port, profiled)), p.env...)
	if err != nil {
		return err
	}
	defer c.kill()
	err = r.watched(ctx, c, func(ctx context.Context) error {
		if err := waitReady(ctx, c, address(port)+"/health", nil, p.job.Window.ReadyTimeout); err != nil {
			return err
		}
		nothing := func(context.Context) error { return nil }
		return p.send(ctx, &Load{
			URL: address(port), Model: p.server.Model, Requests: p.requests, Dir: p.dir,
			Open: nothing, Shut: func() error { return nil },
		})
	})
	if hard.Err() != nil {
		return context.Cause(hard)
	}
	if profiled {
		r.stopInside(c, p.job.Grace)
	}
	c.stop(p.job.Grace)
	return err
}

// stopInside asks the programs below a profiler to end, but not the profiler, which writes its results once they are
// gone.
func (r *Run) stopInside(c *child, grace time.Duration) {
	for _, pid := range tree(c.cmd.Process.Pid, c.marker) {
		terminate(pid)
	}
	c.within(grace)
}

// ClientSender sends the load with the user's own program, which finds the server in EXPLAIN_URL and EXPLAIN_MODEL.
func (r *Run) ClientSender(argv []string) Sender {
	return func(ctx context.Context, l *Load) error {
		if err := l.Open(ctx); err != nil {
			return err
		}
		if err := r.client(ctx, argv, "EXPLAIN_URL="+l.URL, "EXPLAIN_MODEL="+l.Model); err != nil {
			return err
		}
		return l.Shut()
	}
}
