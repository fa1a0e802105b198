// Package merge makes one report of many captures of one run.
//
// A partial holds what a merged report needs of captures, and nothing more: explain.partial/1, some 100 kB per capture
// of any size. By capture identity, it holds the report without what depends on where the capture was cut, the
// durations as counts, and the collectives of each rank. Merging partials is the union of their captures: it is
// associative, commutative and idempotent, so any tree of merges gives the same bytes. Only [Report] computes: it goes
// through the captures in the order of their identities, one at a time.
//
// The package reads no traces: package analyze makes partials.
package merge

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

// schemaID names the format of a partial.
const schemaID = "explain.partial/1"

// Head describes a capture before its body is read.
type Head struct {
	Key     string `json:"key"`     // identity: hash of its events, session and processes
	Name    string `json:"name"`    // file name, without a path
	Host    string `json:"host"`    // hash of the machine's GPUs; empty: unknown
	Session int64  `json:"session"` // when it began, ns since 1970 by the host's clock; 0: unknown
	// From is [fromReport] if only the capture's report is available; empty: its trace was there.
	From string `json:"from,omitempty"`
	// These decide which captures of many are kept whole: the number of ranks, the median of its slowest main step in
	// ns, and the total time of its kernels in ns.
	Ranks   int64   `json:"ranks,omitempty"`
	Step    float64 `json:"step,omitempty"`
	Kernels int64   `json:"kernels,omitempty"`
	// Sampled: a sample precedes the capture. Left: the capture itself was left out.
	Sampled bool `json:"sampled,omitempty"`
	Left    bool `json:"left,omitempty"`
}

// Capture is what a merged report needs of one capture.
type Capture struct {
	Head   `json:"-"`
	Report *report.Report `json:"report"`
	Own    Own            `json:"own"`
	Counts []Counts       `json:"counts"`
	Tracks []*ranks.Track `json:"tracks"`

	rules *Rules // of its tables, if a sample is made from it
}

// Counts are the durations of one kind of event as distinct values, in ns, each with its number of occurrences.
type Counts struct {
	Family string // kernel, api, memcpy, memset
	Key    string // name of the kernel or call; direction and kind of the copy
	Coarse bool   // values are log-spaced bins
	Of     stat.Counted
}

// maxDistinct is how many distinct values of one kind of event are kept; beyond that, counts use log-spaced bins.
const maxDistinct = 4096

// NewCounts counts the values of a sorted sample, in ns.
func NewCounts(family, key string, sorted []int64) Counts {
	c := Counts{Family: family, Key: key, Of: stat.Count(sorted)}
	if len(c.Of.Values) > maxDistinct {
		c.Coarse, c.Of = true, c.Of.Coarse()
	}
	return c
}

// merge adds the occurrences of other events.
func (c *Counts) merge(x *Counts) { c.Of, c.Coarse = c.Of.Merge(x.Of), c.Coarse || x.Coarse }

type countsJSON struct {
	Family string  `json:"family"`
	Key    string  `json:"key"`
	Coarse bool    `json:"coarse,omitempty"`
	Ends   []int64 `json:"ends,omitempty"` // if coarse: minimum and maximum
	Values []int64 `json:"values"`         // as differences; if coarse, differences of bin numbers
	Counts []int64 `json:"counts"`
}

// MarshalJSON writes values as differences.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := countsJSON{Family: c.Family, Key: c.Key, Coarse: c.Coarse, Values: make([]int64, len(c.Of.Values)),
		Counts: append([]int64{}, c.Of.Counts...)}
	if n := len(c.Of.Values); c.Coarse && n > 0 {
		out.Ends = []int64{c.Of.Values[0], c.Of.Values[n-1]}
	}
	last := int64(0)
	for i, v := range c.Of.Values {
		if c.Coarse {
			v = stat.BinOf(v)
		}
		out.Values[i], last = v-last, v
	}
	return report.JSON(out, "")
}

// UnmarshalJSON reads what MarshalJSON wrote; values that do not ascend, or that occur less than once, are an error.
func (c *Counts) UnmarshalJSON(b []byte) error {
	var in countsJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	n := len(in.Values)
	if n != len(in.Counts) || n > 2*maxDistinct || in.Coarse && n > 0 && len(in.Ends) != 2 {
		return fmt.Errorf("%d values with %d counts", n, len(in.Counts))
	}
	change, before := int64(0), int64(-1)
	for i := range in.Values {
		change += in.Values[i]
		v := change
		switch {
		case change < 0 || change > 1<<62 || in.Coarse && change > 1<<16:
			v = -1
		case in.Coarse && i == 0:
			v = in.Ends[0]
		case in.Coarse && i == n-1:
			v = in.Ends[1]
		case in.Coarse:
			v = stat.MiddleOf(change)
		}
		if v <= before || in.Counts[i] <= 0 || in.Counts[i] > 1<<40 {
			return fmt.Errorf("value %d of %s does not follow the one before", i, in.Family)
		}
		in.Values[i], before = v, v
	}
	*c = Counts{in.Family, in.Key, in.Coarse, stat.Counted{Values: in.Values, Counts: in.Counts}}
	return nil
}

// errPartial is wrapped by errors about a file that is damaged or not a partial.
var errPartial = errors.New("not a partial")

// fileHead is the first line of a partial.
type fileHead struct {
	Schema string `json:"schema"`
	Heads  []Head `json:"heads,omitempty"` // of all captures
}

// writer writes a partial.
type writer struct {
	zip io.WriteCloser
	n   int
	err error
}

// begin writes what precedes the captures. Samples of many captures are alike, but too far apart for gzip to use that,
// so they are compressed with zstd.
func begin(to io.Writer, heads []Head, samples bool) *writer {
	p := &writer{}
	if samples {
		p.zip, p.err = zstd.NewWriter(to, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBestCompression),
			zstd.WithWindowSize(window))
	} else {
		p.zip, p.err = gzip.NewWriterLevel(to, gzip.BestCompression)
	}
	p.line(fileHead{schemaID, heads})
	return p
}

// window is the window size of zstd, in bytes.
const window = 4 << 20

func (p *writer) line(v any) {
	if p.err != nil {
		return
	}
	e := json.NewEncoder(p.zip)
	e.SetEscapeHTML(false)
	p.err = e.Encode(v)
}

// Partial returns the partial that holds this capture alone.
func (c *Capture) Partial() ([]byte, error) {
	sample, err := c.sample().encode()
	body, failed := c.encode()
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	h := c.head()
	p := begin(&b, []Head{h}, false)
	err = cmp.Or(p.raw(h, sample, body), p.close())
	return b.Bytes(), err
}

func (c *Capture) encode() ([]byte, error) {
	own := *c.Report
	own.Trace.Name = "" // a copy under another name is the same capture
	text, err := report.JSON(&Capture{c.Head, &own, c.Own, c.Counts, c.Tracks, nil}, "")
	return bytes.TrimRight(text, "\n"), err
}

// raw writes an encoded capture. If body is nil, the body is left out.
func (p *writer) raw(h Head, sample, body []byte) error {
	h.Sampled, h.Left = sample != nil, body == nil
	p.n++
	p.line(h)
	for _, b := range [][]byte{sample, body} {
		if b != nil && p.err == nil {
			_, p.err = p.zip.Write(append(b, '\n'))
		}
	}
	return p.err
}

// fileEnd is the last line: a file without it was cut off.
type fileEnd struct {
	Captures int `json:"captures"`
}

// close finishes the partial; it does not close the underlying writer.
func (p *writer) close() error {
	p.line(fileEnd{p.n})
	if p.err != nil {
		return p.err
	}
	return p.zip.Close()
}

// Reader reads a partial, capture by capture.
type Reader struct {
	name   string
	source io.Closer // nil if another closes it
	in     *bufio.Reader
	heads  []Head // of all captures
	n      int    // captures read
	sample []byte
	unread bool // the body of the current capture was not read yet
}

// maxBody bounds the body of one capture, in bytes of JSON.
const maxBody = 64 << 20

// NewReader begins to read a partial. name is the file's, for errors.
func NewReader(name string, r io.Reader) (*Reader, error) {
	p := &Reader{name: name}
	packed := bufio.NewReaderSize(r, 1<<14)
	var zip io.Reader
	var err error
	if magic, _ := packed.Peek(4); string(magic) == "\x28\xb5\x2f\xfd" {
		zip, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window))
	} else {
		zip, err = gzip.NewReader(packed)
	}
	if err != nil {
		return nil, p.bad(err, "it is not packed with gzip: name what explain partial wrote")
	}
	p.in = bufio.NewReaderSize(zip, 1<<14)
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	var head fileHead
	if err := json.Unmarshal(line, &head); err != nil || !strings.HasPrefix(head.Schema, "explain.partial/") {
		return nil, p.bad(nil, "it holds something else: name what explain partial wrote")
	}
	if head.Schema != schemaID {
		return nil, fmt.Errorf("%s has format %q, this version reads %s: make it again from its trace, or use the explain that wrote it",
			name, head.Schema[:min(len(head.Schema), 40)], schemaID)
	}
	p.heads = head.Heads
	return p, nil
}

// bad is the error of a file that is no whole partial, unless err says that it could not be read at all.
func (p *Reader) bad(err error, why string) error {
	if errors.As(err, new(*fs.PathError)) {
		return err
	}
	return fmt.Errorf("%s: %w: %s", p.name, errPartial, why)
}

// line returns the next line, without its end.
func (p *Reader) line() ([]byte, error) {
	var all []byte
	for {
		part, err := p.in.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case err == nil:
			return all[:len(all)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, p.bad(err, "it was cut off or is damaged: make it again from its trace")
		case len(all) > maxBody:
			return nil, p.bad(nil, fmt.Sprintf("a line is longer than %d MB", maxBody>>20))
		}
	}
}

// Next reads the head of the next capture, and its sample without decoding it; nil at the end.
func (p *Reader) Next() (*Head, error) {
	if _, err := p.body(); err != nil {
		return nil, err
	}
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	var end struct {
		Head
		Captures *int `json:"captures"`
	}
	if err := json.Unmarshal(line, &end); err != nil {
		return nil, p.bad(nil, "it is damaged: make it again from its trace")
	}
	if end.Captures != nil {
		if *end.Captures != p.n {
			return nil, p.bad(nil, fmt.Sprintf("it holds %d captures and says %d", p.n, *end.Captures))
		}
		return nil, nil
	}
	if p.n >= len(p.heads) || p.heads[p.n].Key != end.Key {
		return nil, p.bad(nil, "it holds captures that its first line does not name: make it again from its trace")
	}
	if p.sample = nil; end.Sampled {
		if p.sample, err = p.line(); err != nil {
			return nil, err
		}
	}
	p.n++
	p.unread = !end.Left
	return &end.Head, nil
}

// body reads the capture that follows its head; nil if it was left out.
func (p *Reader) body() ([]byte, error) {
	if !p.unread {
		return nil, nil
	}
	p.unread = false
	return p.line()
}

func decode(name string, h Head, body []byte) (*Capture, error) {
	c := &Capture{Head: h}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, errPartial, err)
	}
	if c.Report == nil || slices.Contains(c.Tracks, nil) {
		return nil, fmt.Errorf("%s: %w: it holds no report, or no track where one should be", name, errPartial)
	}
	c.Report.Fill()
	c.Report.Trace.Name = h.Name
	if err := c.Report.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return c, nil
}
