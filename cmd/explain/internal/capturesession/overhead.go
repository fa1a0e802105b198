package capturesession

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/nsys-llm/explain/analyze/loadfile"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/present"
	"github.com/nsys-llm/explain/cmd/explain/internal/atomicfile"
	"github.com/nsys-llm/explain/cmd/explain/internal/capture"
)

// measureOverhead runs the load once more without the profiler and records what profiling cost. Its errors become
// notes, since the capture is complete without it.
func (r *Session) measureOverhead(run *capture.Run, job *capture.Job) {
	if !r.Want.Overhead || run.Interrupted || r.soft.Err() != nil {
		return
	}
	client, err := run.Unprofiled(job)
	var o *report.Overhead
	if err == nil {
		o, err = overheadOf(run.Dir, client)
	}
	if err == nil {
		err = atomicfile.File(filepath.Join(run.Dir, capture.OverheadFile), atomicfile.Any, func(w io.Writer) error {
			return json.NewEncoder(w).Encode(o)
		})
	}
	if err != nil {
		run.Note("the cost of profiling was not measured: " + err.Error())
		return
	}
	run.Note(present.OverheadText(o))
}

// overheadOf compares two loads: how long the user's client ran, else the requests that explain sent.
func overheadOf(dir string, client [2]time.Duration) (*report.Overhead, error) {
	of, sides := "client", [2]report.Summary{}
	for i, path := range []string{"evidence/load.json", capture.OverheadLoad} {
		if client[1] > 0 {
			sides[i] = report.Summary{N: 1, Mean: float64(client[i])}
			continue
		}
		of = "request"
		f, err := os.Open(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil {
			return nil, fmt.Errorf("a load has no result: %w", err)
		}
		res, err := loadfile.Read(f)
		f.Close()
		if err != nil || res.Latency.E2E == nil {
			return nil, errors.New("no request of a load succeeded")
		}
		sides[i] = res.Latency.E2E.Summary
	}
	o := report.NewOverhead(of, sides[0], sides[1])
	if o == nil {
		return nil, errors.New("a load took no time")
	}
	return o, nil
}

// OverheadBeside returns the profiling cost that a capture left beside its trace; nil if there is none.
func OverheadBeside(trace string) *report.Overhead {
	if filepath.Base(trace) != "trace.sqlite" {
		return nil
	}
	f, err := os.Open(filepath.Join(filepath.Dir(trace), capture.OverheadFile))
	if err != nil {
		return nil
	}
	defer f.Close()
	o := new(report.Overhead)
	if json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(o) != nil ||
		!(o.Profiled > 0 && o.Plain > 0 && o.ProfiledN > 0 && o.PlainN > 0) ||
		o.Of != "request" && o.Of != "client" {
		return nil
	}
	return o
}
