package trace

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/kineto"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// Options of Open.
type Options struct {
	// Tag classifies raw NVTX text; ranges with equal canonical text but different tags stay apart. May be nil. Its
	// calls do not overlap, and come in no particular order.
	Tag func(text string) uint32
	// CoarseTag says that the tag does not depend on the counters that PyTorch's emit_nvtx puts into names (seq,
	// op_id), so that Tag need not be called for texts that differ only in these.
	CoarseTag bool
	// MaxMemory is how many bytes the process should hold at most. A capture that would not fit keeps the rest of
	// its columns in a temporary file. 0 means no bound.
	MaxMemory int64
	// FileOptions are about the file, other than its content. Progress also gets "read" with the bytes done so far, and
	// at its end "read: done", and "read TABLE" with the rows; it is called from several goroutines.
	FileOptions
}

// FileOptions say how a file is opened.
type FileOptions = source.Options

// Open loads the capture in path: an Nsight Systems SQLite export or a JSON trace of the PyTorch profiler, the same
// compressed with gzip or zstd, or a report (.nsys-rep, .qdrep) if nsys is installed. The file is never changed and
// nothing is created beside it; a scratch copy, if needed, is in the temporary folder and removed by Close. A file that
// cannot be analysed is an *InputError.
func Open(ctx context.Context, path string, opt Options) (*Trace, error) {
	in := source.NewInput(ctx, path, opt.FileOptions)
	defer in.Cleanup()
	src, facts, err := rows(in)
	if err != nil {
		return nil, err
	}
	t, err := load(ctx, src, in, &opt)
	if err != nil {
		src.Close()
		return nil, err
	}
	t.Meta.Cut, t.Meta.Resolution, t.Meta.Loose = facts.Cut, facts.Resolution, facts.Loose
	if facts.ROCm {
		t.Meta.Source = "pytorch-rocm"
	}
	if facts.Skipped > 0 {
		t.Tables = append(t.Tables, TableStat{Name: "traceEvents", Rows: facts.Skipped, Skipped: facts.Skipped})
	}
	t.source, t.temp = src, in.Keep()
	return t, nil
}

// rows opens a file as the tables of an export, whichever program wrote it.
func rows(in *source.Input) (source.Source, kineto.Facts, error) {
	if err := in.Resolve(); err != nil {
		return nil, kineto.Facts{}, err
	}
	if in.File.Kind == source.PyTorch {
		return profile(in)
	}
	reference, err := in.Open()
	if err != nil {
		return nil, kineto.Facts{}, err
	}
	src, err := in.Fast(reference)
	if err != nil {
		reference.Close()
		return nil, kineto.Facts{}, err
	}
	return src, kineto.Facts{}, nil
}

// IsProfile reports whether a JSON file is a trace of the PyTorch profiler.
func IsProfile(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return kineto.Is(f)
}

// profile reads a trace of the PyTorch profiler.
func profile(in *source.Input) (source.Source, kineto.Facts, error) {
	rd, err := in.JSON()
	if err != nil {
		return nil, kineto.Facts{}, err
	}
	defer rd.Close()
	src, facts, err := kineto.Read(rd)
	switch {
	case errors.Is(err, kineto.ErrForeign):
		return nil, facts, notProfile(in)
	case in.Context().Err() != nil:
		return nil, facts, in.Context().Err()
	case err != nil:
		return nil, facts, in.Fail("cannot be read: it is damaged, or larger than a trace can be", "copy it again", err)
	case src.Empty():
		return nil, facts, in.Fail("is a trace of the PyTorch profiler without GPU work, CUDA calls or ranges",
			"record with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], several steps after a warm-up", nil)
	}
	return src, facts, nil
}

func notProfile(in *source.Input) error {
	return in.Fail("is JSON, but neither a trace of the PyTorch profiler nor a report of explain",
		"name a .sqlite or .nsys-rep file of Nsight Systems, or the trace.json that torch.profiler wrote", nil)
}

// Close releases the file and removes scratch copies.
func (t *Trace) Close() error {
	var err error
	if t.source != nil {
		err = t.source.Close()
	}
	if t.temp != "" {
		err = errors.Join(err, os.RemoveAll(t.temp))
	}
	return errors.Join(err, t.arena.Close())
}

// columnsOf is where the capture's columns are stored: in memory, or those that do not fit, in a temporary file.
func columnsOf(in *source.Input, opt *Options) (*spill.Arena, error) {
	need := int64(float64(in.Size) * memoryPerByte)
	if opt.MaxMemory <= 0 || need <= opt.MaxMemory {
		return spill.New(), nil
	}
	a, err := spill.NewOnDisk("", opt.MaxMemory, int64(float64(in.Size)*columnsPerByte))
	switch {
	case errors.Is(err, spill.ErrUnsupported):
		return spill.New(), nil
	case err != nil:
		return nil, in.Fail(fmt.Sprintf("does not fit into %d MB of memory, and %v", opt.MaxMemory>>20, err),
			"name another folder with TMPDIR, or allow more with --max-memory", nil)
	}
	return a, nil
}

// Memory of an analysis, and of its columns alone, per byte of the file: the most that was measured of real captures of
// 0.5 GB and more, with a margin. Kernels and calls have few bytes of the file each, texts of ranges many.
const (
	memoryPerByte  = 1.0
	columnsPerByte = 0.6
)
