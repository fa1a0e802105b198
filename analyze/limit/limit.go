// Package limit bounds what reading one input may cost: bytes, time, and room for a scratch copy. Every file that is
// opened is held to one of its limits, so that /dev/zero, a bomb of a few kilobytes or a sparse terabyte ends in a
// sentence rather than in a full memory or disk.
package limit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Limit of one input.
type Limit struct {
	Bytes int64         // that are read, at most
	Time  time.Duration // that reading takes, at most; 0: no limit
}

// The limits of inputs.
var (
	// Text is of files that people or explain write and that are read whole: policies, phase maps, noise floors,
	// reports, comparisons. A report is under 2 MB.
	Text = Limit{Bytes: 64 << 20, Time: 10 * time.Second}
	// Evidence is of logs and tables, which are read as they come. The longest that is known is a log of 2 GB.
	Evidence = Limit{Bytes: 16 << 30}
	// Search is of the beginning of a file in which evidence is looked for that does not start with it.
	Search = Limit{Bytes: 256 << 20, Time: 5 * time.Second}
)

// Most that a compressed file may hold for each byte of its own, and what it may hold in any case. Zeros pack to less
// than a two-hundredth, logs that repeat themselves to nearly that. Traces pack to a twentieth at best: small ones,
// whose pages are mostly empty.
const (
	packedRatio = 200
	traceRatio  = 64
	packedRoom  = 256 << 20
)

// Unpacked is the limit of what is unpacked from a file of so many bytes.
func (l Limit) Unpacked(packed int64) Limit {
	l.Bytes = min(l.Bytes, max(packedRoom, packed*packedRatio))
	return l
}

// Packed is the limit of a trace that is unpacked from a file of so many bytes.
func Packed(bytes int64) Limit { return Limit{Bytes: max(packedRoom, bytes*traceRatio)} }

// Error says which limit an input is beyond.
type Error struct{ text string }

func (e *Error) Error() string { return e.text }

// Size refuses what is larger than the limit; nil if it is not.
func (l Limit) Size(bytes int64) error {
	if bytes > l.Bytes {
		return &Error{"larger than " + size(l.Bytes) + ", the most that explain reads"}
	}
	return nil
}

// Reader passes on what r reads, and fails with an *Error beyond the limit.
func (l Limit) Reader(r io.Reader) io.Reader {
	return &reader{r: r, limit: l, left: l.Bytes, begun: time.Now()}
}

type reader struct {
	r     io.Reader
	limit Limit
	left  int64
	begun time.Time
}

func (r *reader) Read(b []byte) (int, error) {
	if r.limit.Time > 0 && time.Since(r.begun) > r.limit.Time {
		return 0, &Error{fmt.Sprintf("not read to its end within %v", r.limit.Time)}
	}
	n, err := r.r.Read(b[:min(int64(len(b)), r.left+1)])
	if r.left -= int64(n); r.left < 0 {
		return n - 1, r.limit.Size(r.limit.Bytes + 1)
	}
	return n, err
}

// ReadFile reads a file whole, without a byte order mark.
func (l Limit) ReadFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(l.Reader(f))
	if beyond, is := errors.AsType[*Error](err); is {
		return nil, fmt.Errorf("%s is %w", path, beyond)
	}
	return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), err
}

// Room refuses a scratch copy of so many bytes for which a folder has no room; nil if that cannot be found out.
func Room(dir string, bytes int64) error {
	if free, ok := Free(dir); ok && uint64(max(bytes, 0)) > free {
		return &Error{fmt.Sprintf("needs %s in %s, which has %s", size(bytes), dir, size(int64(free)))}
	}
	return nil
}

func size(bytes int64) string { return unit.Format(float64(bytes), report.Bytes) }

// fullText is how programs and libraries say that the disk is full.
var fullText = regexp.MustCompile(`(?i)no space left on device|disk is full|disk quota exceeded`)

// Full reports whether an error is of a full disk.
func Full(err error) bool {
	return err != nil && (errors.Is(err, syscall.ENOSPC) || fullText.MatchString(err.Error()))
}

// FullText says of an error of a full disk that it is one, and what to do.
func FullText(err error) error {
	if !Full(err) || strings.Contains(err.Error(), "the disk is full: ") {
		return err
	}
	return fmt.Errorf("the disk is full: free some space, or name another place with --out or TMPDIR (%w)", err)
}
