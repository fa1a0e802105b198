package source

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/nsys-llm/explain/analyze/limit"
)

// unpacker reads what a file packed with gzip or zstd holds.
func (in *Input) unpacker(kind string, src io.Reader) (z io.Reader, err error) {
	if kind == "gzip" {
		z, err = gzip.NewReader(src)
	} else {
		z, err = zstd.NewReader(src, zstd.WithDecoderMaxMemory(1<<30), zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		return nil, in.Fail("is not valid "+kind, "copy it again", err)
	}
	return z, nil
}

// unpack writes what a packed file holds, but no more than most bytes, into a scratch copy.
func (in *Input) unpack(kind string, most int64) error {
	src, err := os.Open(in.path)
	if err != nil {
		return in.unread(err)
	}
	defer src.Close()
	r, err := in.unpacker(kind, src)
	if err != nil {
		return err
	}
	path, err := in.scratch(fmt.Sprintf("unpacked-%s-%d", kind, len(in.path)))
	if err != nil {
		return err
	}
	if free, ok := limit.Free(in.temp); ok {
		left := int64(min(free, math.MaxInt64))
		most = min(most, max(left-keptFree, left/2, 1<<20)) // 1 MB: a full disk says so itself
	}
	read := &tracked{r: limit.Limit{Bytes: most}.Reader(r), in: in, stage: "unpack"}
	done, err := in.spool(path, read, func(err error) error {
		if beyond, is := errors.AsType[*limit.Error](err); is {
			return in.Fail("is not unpacked: it is "+beyond.Error(),
				"a capture of that size needs room in TMPDIR; unpack it yourself if it is one", nil)
		}
		return in.Fail("cannot be unpacked: it is truncated or not valid "+kind, "copy it again", err)
	})
	if err != nil {
		return err
	}
	in.opt.Report("unpack: done", done)
	in.path = path
	return nil
}

// tracked reports progress and stops when the context does.
type tracked struct {
	r     io.Reader
	in    *Input
	stage string
	done  int64
	size  *int64 // set to done, where it is not nil
}

func (t *tracked) Read(b []byte) (int, error) {
	if err := t.in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := t.r.Read(b)
	t.done += int64(n)
	if t.size != nil {
		*t.size = t.done
	}
	t.in.opt.Report(t.stage, t.done)
	return n, err
}
