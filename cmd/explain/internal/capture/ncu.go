package capture

import (
	"bytes"
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
func (r *Run) MeasureKernels(j *Job, k Kernels) error {
	dir := filepath.Join(r.Dir, "ncu")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.say("Starting the server again, to measure kernels with Nsight Compute (slow)")
	log := filepath.Join(dir, "raw.csv")
	slow := *j
	slow.Server = j.Server.Eager()
	err := r.measure(&slow, "ncu", &k, log)
	if errors.Is(err, errNoKernels) && k.NVTX != "" {
		r.Note(fmt.Sprintf("Nsight Compute measured no kernel inside the NVTX ranges %s: measured again without them",
			k.NVTX))
		k.NVTX = ""
		if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		err = r.measure(&slow, "ncu-again", &k, log)
	}
	if errors.Is(err, errNoKernels) {
		r.Note("Nsight Compute measured no kernel: the report covers the trace alone")
		return os.RemoveAll(dir)
	}
	return err
}

// measure runs the server under Nsight Compute, which writes into log. It returns errNoKernels if none was measured.
func (r *Run) measure(j *Job, name string, k *Kernels, log string) error {
	p, err := r.phase(j, name, 0)
	if err != nil {
		return err
	}
	p.profiler, p.load.Requests = k.Command(log), kernelRequests
	if err := r.plain(p); err != nil {
		return err
	}
	head, err := readHead(log, 64<<10) // ncu's messages and the header of its table
	if err != nil || bytes.Contains(head, []byte("No kernels were profiled")) ||
		!bytes.Contains(head, []byte(`"Kernel Name"`)) {
		return errNoKernels
	}
	return os.Chmod(log, 0o600)
}

// readHead returns the first bytes of a file, at most most.
func readHead(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}
