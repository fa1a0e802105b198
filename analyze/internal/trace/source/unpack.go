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

// unpack writes what a packed file holds into a scratch copy.
func (in *Input) unpack(kind string) error {
	src, err := os.Open(in.path)
	if err != nil {
		return in.Fail("cannot be read", "", errors.Unwrap(err))
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
	dst, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return in.noScratch(err)
	}
	most := int64(math.MaxInt64)
	if info, err := src.Stat(); err == nil {
		most = limit.Packed(info.Size()).Bytes
	}
	if free, ok := limit.Free(in.temp); ok {
		left := int64(min(free, math.MaxInt64))
		most = min(most, max(left-keptFree, left/2, 1<<20)) // 1 MB: a full disk says so itself
	}
	done, err := io.Copy(dst, &tracked{r: limit.Limit{Bytes: most}.Reader(r), in: in, stage: "unpack"})
	if e := dst.Close(); err == nil {
		err = e
	}
	if err != nil {
		if e := in.ctx.Err(); e != nil {
			return e
		}
		switch beyond, is := errors.AsType[*limit.Error](err); {
		case is:
			return in.Fail("is not unpacked: it is "+beyond.Error(),
				"a capture of that size needs room in TMPDIR; unpack it yourself if it is one", nil)
		case unwritten(err):
			return in.noScratch(err)
		}
		return in.Fail("cannot be unpacked: it is truncated or not valid "+kind, "copy it again", err)
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
