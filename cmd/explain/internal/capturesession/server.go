package capturesession

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Server is an inference server to capture, the load that is sent to it, and what is measured beside the trace.
type Server struct {
	Engine, Model, DType string
	Mode                 string // of explain capture vllm, for config.yaml
	Port                 int    // 0: a free one
	Extra                []string
	Venv                 string // holds the engine; empty: the one on the path

	Requests, Concurrency, Warmups int
	Rate                           float64 // requests per second; 0: Concurrency at a time
	LoadMode, Dataset              string
	Seed                           uint64
	Key                            string // of the server's API

	Measure                          bool // kernels with Nsight Compute
	NCU, NCUVersion, NCUSet, NCUNVTX string
	NCUTop                           int    // how many
	Profiler                         string // folder of profilemate's sitecustomize.py; empty: experts are not tracked
}

// engine is the server as package capture runs it.
func (s *Server) engine() *capture.Server {
	return &capture.Server{Engine: s.Engine, Model: s.Model, DType: s.DType, Port: s.Port, Extra: s.Extra, Venv: s.Venv}
}

// plan lists the runs of the server after the recording. Which kernels are measured is known only then.
func (s *Server) plan(dir string) (lines []string) {
	if s.Profiler != "" {
		lines = append(lines,
			"# with PYTHONPATH="+s.Profiler+" VLLM_ENABLE_PROFILING=1 in the environment, to track experts:",
			capture.Shell(s.engine().Command(8002, false)))
	}
	if s.Measure {
		k := capture.Planned(s.NCUTop)
		k.NCU, k.Set, k.NVTX = s.NCU, s.NCUSet, s.NCUNVTX
		lines = append(lines,
			fmt.Sprintf("# measure the %d kernels with most time, in the NVTX ranges of the steps, if there are any:", s.NCUTop),
			capture.Shell(append(k.Command(filepath.Join(dir, "ncu", "raw.csv")), s.engine().Command(8001, true)...)))
	}
	return lines
}

// evidence returns the files beside the trace that become evidence for its report, if the server provides them.
func (s *Server) evidence(r *Session) []string {
	names := []string{"logs/server.log", "evidence/metrics_after.prom", "evidence/metrics_before.prom"}
	if len(r.Window.Client) == 0 {
		names = append(names, "evidence/load.json")
	}
	if s.Profiler != "" {
		names = append(names, "evidence/session")
	}
	if s.Measure {
		names = append(names, "ncu/raw.csv")
	}
	return names
}

// record makes one capture of a server with all its runs.
func (s *Server) record(r *Session, run *capture.Run, job *capture.Job) (*analyze.Result, error) {
	server, send := s.engine(), s.sender(r, run)
	if err := run.Serve(r.soft, r.hard, job, server, send); err != nil {
		return nil, err
	}
	r.measureOverhead(run, job)
	if s.Profiler != "" && !run.Interrupted {
		if err := run.Track(r.soft, r.hard, job, server, s.Profiler, send); err != nil {
			return nil, err
		}
	}
	if r.NoReport {
		return nil, nil
	}
	if s.Measure && !run.Interrupted {
		if err := s.kernels(r, run, job, send); err != nil {
			return nil, err
		}
	}
	return r.report(run)
}

// markerPrefix matches the constant beginning of a unit's name; capital N and M stand for numbers.
var markerPrefix = regexp.MustCompile(`^([a-z_]{3,}|[A-Z][A-Za-z]*[a-z]|[A-Z]{3,})`)

// kernels measures the kernels with most time.
func (s *Server) kernels(r *Session, run *capture.Run, job *capture.Job, send capture.Sender) error {
	r.Say("Finding the kernels with most time")
	res, err := r.analyse(r.hard, run)
	if err != nil {
		return err
	}
	k, ok := capture.ToMeasure(capture.Targets(res.Report), s.NCUTop)
	if !ok {
		return errors.New("the trace holds no kernels for Nsight Compute to measure: did the server run on the GPU?")
	}
	k.NCU, k.Set, k.NVTX = s.NCU, s.NCUSet, s.NCUNVTX
	switch u := res.Report.Unit; {
	case k.NVTX == "none":
		k.NVTX = ""
	case k.NVTX == "" && u.Kind == "nvtx":
		if prefix := markerPrefix.FindString(u.Name); prefix != "" {
			k.NVTX = "regex:" + prefix + ".*/"
		}
	}
	return run.MeasureKernels(r.soft, r.hard, job, s.engine(), k, send)
}

// facts adds what is known of the server and the load.
func (s *Server) facts(r *Session, f *capture.Facts) {
	f.Server, f.NCU = s.engine(), s.NCUVersion
	loadMode := s.LoadMode
	if loadMode == "" && s.Dataset == "" {
		loadMode = load.DefaultMode
	}
	f.Config = append(f.Config, yaml.MapSlice{
		{Key: "engine", Value: s.Engine},
		{Key: "model", Value: capture.RedactText(s.Model)},
		{Key: "dtype", Value: s.DType},
		{Key: "mode", Value: s.Mode},
		{Key: "port", Value: s.Port},
		{Key: "server_arguments", Value: shell(s.Extra)},
		{Key: "ncu", Value: s.Measure},
		{Key: "ncu_kernels", Value: s.NCUTop},
		{Key: "ncu_set", Value: s.NCUSet},
		{Key: "nvtx_include", Value: s.NCUNVTX},
		{Key: "expert_tracking", Value: s.Profiler != ""},
	}...)
	if len(r.Window.Client) > 0 {
		return
	}
	dataset := ""
	if s.Dataset != "" {
		dataset = filepath.Base(s.Dataset)
	}
	f.Load = yaml.MapSlice{
		{Key: "requests", Value: s.Requests},
		{Key: "concurrency", Value: s.Concurrency},
		{Key: "rate", Value: s.Rate},
		{Key: "mode", Value: loadMode},
		{Key: "dataset", Value: dataset},
		{Key: "warmup_requests", Value: s.Warmups},
		{Key: "seed", Value: s.Seed},
	}
}
