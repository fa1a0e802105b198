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
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.New("no free port")
	}
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
	text, err := fetch(ctx, url+"/metrics")
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, "evidence", name), text, 0o600)
	}
	if err != nil && ctx.Err() == nil {
		r.Note("the server's metrics are missing: " + err.Error())
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	res, text, err := get(ctx, url, 20*time.Second, metricsLimit+1)
	switch {
	case res == nil:
		return nil, errors.New("/metrics does not answer")
	case res.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("/metrics answers %s", res.Status)
	case err != nil:
		return nil, errors.New("/metrics broke off")
	case len(text) > metricsLimit:
		return nil, fmt.Errorf("/metrics is larger than %d MB", metricsLimit>>20)
	}
	return text, nil
}

// direct sends requests to servers of this machine, without any proxy.
var direct = &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}

// get asks a server of this machine, and reads the first bytes of its answer; without one the response is nil.
func get(ctx context.Context, url string, timeout time.Duration, most int64) (res *http.Response, text []byte, err error) {
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
