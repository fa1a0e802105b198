package capturesession

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Server is an inference server to capture, the load that is sent to it, and what is measured beside the trace.
type Server struct {
	capture.Server
	Mode       string // of explain capture vllm
	Load       load.Options
	Measure    bool            // the kernels with most time, with Nsight Compute
	Top        int             // how many
	Kernels    capture.Kernels // how they are measured
	NCUVersion string
	Profiler   string // folder of profilemate's sitecustomize.py; empty: experts are not tracked
}

// plan lists the runs of the server after the recording. Which kernels are measured is known only then.
func (s *Server) plan(dir string) (lines []string) {
	if s.Profiler != "" {
		lines = append(lines,
			"# with PYTHONPATH="+s.Profiler+" VLLM_ENABLE_PROFILING=1 in the environment, to track experts:",
			capture.Shell(s.Command(8002)))
	}
	if s.Measure {
		k := s.Kernels.Planned(s.Top)
		lines = append(lines,
			fmt.Sprintf("# measure the %d kernels with most time, in the NVTX ranges of the steps, if there are any:", s.Top),
			capture.Shell(append(k.Command(filepath.Join(dir, "ncu", "raw.csv")), s.Eager().Command(8001)...)))
	}
	return lines
}

// evidence returns the flags of explain report for the files that the server leaves beside the trace.
func (s *Server) evidence(dir string, client bool) (flags []string) {
	missing := map[string]bool{"ncu/raw.csv": !s.Measure, "evidence/load.json": client, "evidence/session": s.Profiler == ""}
	for _, e := range besideTrace {
		if !missing[e.name] {
			flags = append(flags, e.flag, filepath.Join(dir, filepath.FromSlash(e.name)))
		}
	}
	return flags
}

// markerPrefix matches the constant beginning of a unit's name; capital N and M stand for numbers.
var markerPrefix = regexp.MustCompile(`^([a-z_]{3,}|[A-Z][A-Za-z]*[a-z]|[A-Z]{3,})`)

// kernels measures the kernels with most time.
func (r *Session) kernels(run *capture.Run, job *capture.Job) error {
	r.Say("Finding the kernels with most time")
	res, err := r.analyse(r.hard, run)
	if err != nil {
		return err
	}
	k := r.Of.Kernels
	if !k.Choose(capture.Targets(res.Report), r.Of.Top) {
		return errors.New("the trace holds no kernels for Nsight Compute to measure: did the server run on the GPU?")
	}
	switch u := res.Report.Unit; {
	case k.NVTX == "none":
		k.NVTX = ""
	case k.NVTX == "" && u.Kind == "nvtx":
		if prefix := markerPrefix.FindString(u.Name); prefix != "" {
			k.NVTX = "regex:" + prefix + ".*/"
		}
	}
	return run.MeasureKernels(job, k)
}

// sent returns what inputs.yaml says of the load.
func (s *Server) sent() yaml.MapSlice {
	l, mode, dataset := &s.Load, s.Load.Mode, ""
	if l.Dataset != nil {
		dataset = l.Dataset.Name
	} else if mode == "" {
		mode = load.DefaultMode
	}
	return yaml.MapSlice{
		{Key: "requests", Value: l.Requests},
		{Key: "concurrency", Value: l.Concurrency},
		{Key: "rate", Value: l.Rate},
		{Key: "mode", Value: mode},
		{Key: "dataset", Value: dataset},
		{Key: "warmup_requests", Value: l.Warmup},
		{Key: "seed", Value: l.Seed},
	}
}

// sender sends the load with explain's own generator.
func (s *Server) sender(run *capture.Run, version string) capture.Sender {
	return func(ctx context.Context, l *capture.Load) error {
		opt := s.Load
		opt.URL, opt.Version = l.URL, version
		if s.Argument("--served-model-name") == "" { // else the server is asked for its name
			opt.Model = s.Model
		}
		if l.Requests > 0 {
			opt.Requests, opt.Warmup = l.Requests, 0
		}
		var shut error
		opt.BeforeLoad = l.Open
		opt.AfterLoad = func() { shut = l.Shut() }
		res, err := load.Run(ctx, opt)
		err = cmp.Or(err, shut)
		interrupted := errors.Is(err, capture.ErrInterrupted)
		if err != nil && !interrupted {
			err = fmt.Errorf("the load failed: %w", err)
		}
		if l.Dir == "" || res == nil || res.Counts.Succeeded == 0 {
			return err
		}
		if interrupted && !res.Complete {
			res.Stopped = "interrupted"
		}
		if c := res.Counts; c.Failed > 0 {
			run.Note(fmt.Sprintf("%d of %d requests of the load failed: evidence/load.json says how", c.Failed, c.Sent))
		}
		return cmp.Or(atomicfile.File(filepath.Join(l.Dir, "load.json"), atomicfile.Any, res.Write), err)
	}
}

// Argument is the value of a flag of the server; empty: it is not there.
func (s *Server) Argument(flag string) string {
	for i, a := range s.Extra {
		if value, ok := strings.CutPrefix(a, flag+"="); ok {
			return value
		}
		if a == flag && i+1 < len(s.Extra) {
			return s.Extra[i+1]
		}
	}
	return ""
}
