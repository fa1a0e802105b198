package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Kernels selects the kernels that Nsight Compute measures.
type Kernels struct {
	NCU   string // program
	Names string // regular expression over demangled names
	Skip  int64  // matching launches to skip first
	Count int64  // launches to measure
	NVTX  string // --nvtx-include: only inside these ranges; empty: everywhere
	Set   string // --set
}

// kernelRequests is the number of requests under Nsight Compute: few, since it runs each kernel many times.
const kernelRequests = 5

// Command returns the ncu command line, before the program; log is its output file.
func (k *Kernels) Command(log string) []string {
	argv := []string{k.NCU, "--target-processes", "all", "--set", k.Set}
	if k.NVTX != "" {
		argv = append(argv, "--nvtx", "--nvtx-include", k.NVTX)
	}
	return append(argv,
		"--kernel-name-base", "demangled", "--kernel-name", "regex:"+k.Names,
		"--launch-skip", strconv.FormatInt(k.Skip, 10),
		"--launch-count", strconv.FormatInt(k.Count, 10), "--csv", "--page", "raw", "--log-file", log)
}

// FindNCU checks, before anything is started, that ncu is installed.
func FindNCU(path string) (string, error) {
	full, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("%s is not installed here, or not on PATH: install Nsight Compute, name it with --ncu or $NCU, or use --mode quick", path)
	}
	return full, nil
}

// errNoKernels is what ncu prints if no kernel matched.
var errNoKernels = errors.New("no kernels were profiled")

// MeasureKernels starts the server under Nsight Compute, without CUDA graphs, and leaves ncu/raw.csv. If no kernel
// was measured inside the NVTX ranges, it tries again without them.
func (r *Run) MeasureKernels(ctx, hard context.Context, j *Job, s *Server, k Kernels, send Sender) error {
	dir := filepath.Join(r.Dir, "ncu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.say("Starting the server again, to measure kernels with Nsight Compute (slow)")
	log := filepath.Join(dir, "raw.csv")
	p := phase{
		name: "ncu", job: j, server: s, prefix: k.Command(log), env: s.Env(),
		requests: kernelRequests, send: send,
	}
	err := r.measure(ctx, hard, &p, log)
	if errors.Is(err, errNoKernels) && k.NVTX != "" {
		r.note(fmt.Sprintf("Nsight Compute measured no kernel inside the NVTX ranges %s: measured again without them",
			k.NVTX))
		k.NVTX = ""
		p.name, p.prefix = "ncu-again", k.Command(log)
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = r.measure(ctx, hard, &p, log)
	}
	if errors.Is(err, errNoKernels) {
		r.note("Nsight Compute measured no kernel: the report is of the trace alone")
		return os.RemoveAll(dir)
	}
	return err
}

// measure runs a phase under Nsight Compute, which writes into log. It returns errNoKernels if none was measured.
func (r *Run) measure(ctx, hard context.Context, p *phase, log string) error {
	if err := r.plain(ctx, hard, p); err != nil {
		return err
	}
	head, err := readHead(log)
	if err != nil || bytes.Contains(head, []byte("No kernels were profiled")) ||
		!bytes.Contains(head, []byte(`"Kernel Name"`)) {
		return errNoKernels
	}
	return os.Chmod(log, 0o600)
}

// readHead returns the first 64 kB of a file: ncu's messages and the header of its table.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 64<<10))
}
