// Package merge makes one report of many captures of one run.
//
// A partial is what a merged report needs of captures, and nothing more: explain.partial/1, some 100 kB of a capture of
// any size. It holds, by capture identity, the report without what depends on where a capture was cut, the durations as
// counts, and the collectives of each rank. Merging partials is the union of what they hold, so that it is associative,
// commutative and idempotent, and whatever tree of merges gives the same bytes. Only [Report] computes: it goes through
// the captures in the order of their identities, one at a time.
//
// The package reads no traces: package analyze makes partials.
package merge

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/stat"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
)

// schemaID names the format of a partial.
const schemaID = "explain.partial/1"

// Head is what is known of a capture before its body is read.
type Head struct {
	Key     string `json:"key"`     // identity: of its events, its session and its processes
	Name    string `json:"name"`    // of the file, without a path
	Host    string `json:"host"`    // hash of the machine's GPUs; empty: unknown
	Session int64  `json:"session"` // when it began, ns since 1970 by the host's clock; 0: unknown
	// From is [fromReport] where the capture's report is all that is known of it; empty: its trace was there.
	From string `json:"from,omitempty"`
}

// Capture is all that a merged report needs of one capture.
type Capture struct {
	Head   `json:"-"`
	Report *report.Report `json:"report"`
	Own    Own            `json:"own"`
	Counts []Counts       `json:"counts"`
	Tracks []*ranks.Track `json:"tracks"`
}

// Counts are the durations of one kind of event as distinct values, each with how often it occurs.
type Counts struct {
	Family string // kernel, api, memcpy, memset
	Key    string // name of the kernel or call; direction and kind of the copy
	Coarse bool   // values are those of log-spaced bins
	Of     stat.Counted
}

// maxDistinct is how many distinct values of one kind of event are kept; of more, log-spaced bins.
const maxDistinct = 4096

// NewCounts counts a sorted sample.
func NewCounts(family, key string, sorted []int64) Counts {
	c := Counts{Family: family, Key: key, Of: stat.Count(sorted)}
	if len(c.Of.Values) > maxDistinct {
		c.Coarse, c.Of = true, c.Of.Coarse()
	}
	return c
}

type countsJSON struct {
	Family string  `json:"family"`
	Key    string  `json:"key"`
	Coarse bool    `json:"coarse,omitempty"`
	Values []int64 `json:"values"` // changes
	Counts []int64 `json:"counts"`
}

// MarshalJSON writes values as changes.
func (c Counts) MarshalJSON() ([]byte, error) {
	out := countsJSON{c.Family, c.Key, c.Coarse, make([]int64, len(c.Of.Values)), c.Of.Counts}
	last := int64(0)
	for i, v := range c.Of.Values {
		out.Values[i], last = v-last, v
	}
	if out.Counts == nil {
		out.Counts = []int64{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(out)
	return b.Bytes(), err
}

// UnmarshalJSON reads what MarshalJSON wrote, and refuses values that do not ascend or occur less than once.
func (c *Counts) UnmarshalJSON(b []byte) error {
	var in countsJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	if len(in.Values) != len(in.Counts) || len(in.Values) > 2*maxDistinct {
		return fmt.Errorf("%d values with %d counts", len(in.Values), len(in.Counts))
	}
	last, n := int64(0), int64(0)
	for i := range in.Values {
		v := last + in.Values[i]
		if i > 0 && in.Values[i] <= 0 || v < last && in.Values[i] > 0 || in.Counts[i] <= 0 || in.Counts[i] > 1<<40 || v < 0 {
			return fmt.Errorf("value %d of %s does not follow the one before", i, in.Family)
		}
		in.Values[i], last = v, v
		n += in.Counts[i]
	}
	*c = Counts{in.Family, in.Key, in.Coarse, stat.Counted{Values: in.Values, Counts: in.Counts}}
	return nil
}

// errPartial is wrapped by errors about a file that is no partial, or is damaged.
var errPartial = errors.New("not a partial")

// fileHead is the first line of a partial.
type fileHead struct {
	Schema string `json:"schema"`
}

// Writer writes a partial: captures by key.
type Writer struct {
	zip  *gzip.Writer
	last string
	n    int
	err  error
}

// NewWriter begins a partial.
func NewWriter(w io.Writer) *Writer {
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	p := &Writer{zip: zip, err: err}
	p.line(fileHead{schemaID})
	return p
}

func (p *Writer) line(v any) {
	if p.err != nil {
		return
	}
	e := json.NewEncoder(p.zip)
	e.SetEscapeHTML(false)
	p.err = e.Encode(v)
}

// Capture writes a capture. Captures come by key.
func (p *Writer) Capture(c *Capture) error {
	own := *c.Report
	own.Trace.Name = "" // a copy under another name is the same capture
	c = &Capture{c.Head, &own, c.Own, c.Counts, c.Tracks}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		return err
	}
	return p.raw(&c.Head, bytes.TrimRight(b.Bytes(), "\n"))
}

// raw writes a capture whose body is encoded, on one line.
func (p *Writer) raw(h *Head, body []byte) error {
	if p.err == nil && p.n > 0 && h.Key <= p.last {
		p.err = fmt.Errorf("capture %s comes after %s", h.Key, p.last)
	}
	p.last = h.Key
	p.n++
	p.line(h)
	for _, b := range [][]byte{body, []byte("\n")} {
		if p.err == nil {
			_, p.err = p.zip.Write(b)
		}
	}
	return p.err
}

// end is the last line: a file without it was cut off.
type fileEnd struct {
	Captures int `json:"captures"`
}

// Close ends the partial; it does not close what it was written to.
func (p *Writer) Close() error {
	p.line(fileEnd{p.n})
	if p.err != nil {
		return p.err
	}
	return p.zip.Close()
}

// Reader reads a partial, capture by capture.
type Reader struct {
	name string
	in   *bufio.Reader
	n    int
	next *Head
	body []byte
}

// maxBody bounds the body of one capture, in bytes of JSON.
const maxBody = 64 << 20

// NewReader begins to read a partial. name is of the file, for errors.
func NewReader(name string, r io.Reader) (*Reader, error) {
	p := &Reader{name: name}
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, p.bad("it is not packed with gzip: name what explain partial wrote")
	}
	p.in = bufio.NewReaderSize(zip, 1<<16)
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	var head fileHead
	if err := json.Unmarshal(line, &head); err != nil || !strings.HasPrefix(head.Schema, "explain.partial/") {
		return nil, p.bad("it holds something else: name what explain partial wrote")
	}
	if head.Schema != schemaID {
		return nil, fmt.Errorf("%s has format %s, this version reads %s: make it again from its trace, or use the explain that wrote it",
			name, clip(head.Schema), schemaID)
	}
	return p, nil
}

func clip(s string) string { return fmt.Sprintf("%q", s[:min(len(s), 40)]) }

func (p *Reader) bad(why string) error { return fmt.Errorf("%s: %w: %s", p.name, errPartial, why) }

// line is the next line, without its end.
func (p *Reader) line() ([]byte, error) {
	var all []byte
	for {
		part, err := p.in.ReadSlice('\n')
		all = append(all, part...)
		switch {
		case err == nil:
			return all[:len(all)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, p.bad("it was cut off or is damaged: make it again from its trace")
		case len(all) > maxBody:
			return nil, p.bad(fmt.Sprintf("a line is longer than %d MB", maxBody>>20))
		}
	}
}

// Next reads the next capture without taking it apart; nil at the end.
func (p *Reader) Next() (*Head, error) {
	line, err := p.line()
	if err != nil {
		return nil, err
	}
	var end struct {
		Head
		Captures *int `json:"captures"`
	}
	if err := json.Unmarshal(line, &end); err != nil {
		return nil, p.bad("it is damaged: make it again from its trace")
	}
	if end.Captures != nil {
		if *end.Captures != p.n {
			return nil, p.bad(fmt.Sprintf("it holds %d captures and says %d", p.n, *end.Captures))
		}
		p.next = nil
		return nil, nil
	}
	if end.Key == "" || p.next != nil && end.Key <= p.next.Key {
		return nil, p.bad("its captures are not in order")
	}
	if p.body, err = p.line(); err != nil {
		return nil, err
	}
	p.n++
	p.next = &end.Head
	return p.next, nil
}

func decode(name string, h Head, body []byte) (*Capture, error) {
	c := &Capture{Head: h}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", name, errPartial, err)
	}
	if c.Report == nil {
		return nil, fmt.Errorf("%s: %w: it holds no report", name, errPartial)
	}
	c.Report.Fill()
	c.Report.Trace.Name = h.Name
	if err := c.Report.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, t := range c.Tracks {
		if t == nil {
			return nil, fmt.Errorf("%s: %w: a track is null", name, errPartial)
		}
	}
	return c, nil
}
