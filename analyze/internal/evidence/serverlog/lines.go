package serverlog

import (
	"bytes"
	"io"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// maxLine bounds the memory of one line, in bytes: what is longer is cut there and counted.
const maxLine = 1 << 20

// firstRead is the first size of the buffer: a folder holds thousands of small files.
const firstRead = 64 << 10

// lines reads lines of any length in bounded memory. A line ends at a newline; a carriage return before it is no part
// of it.
type lines struct {
	in    io.Reader
	buf   []byte
	start int // of what was not given out yet
	end   int // of what was read
	err   error
}

func newLines(in io.Reader) *lines {
	return &lines{in: file.UTF8(in), buf: make([]byte, firstRead)}
}

// next is the next line, without its end, valid until the following call; cut says that the rest of it was passed over.
// ok is false at the end of the input, and err is then set where it was not the end of the file.
func (l *lines) next() (line []byte, cut, ok bool) {
	searched := l.start
	for {
		if i := bytes.IndexByte(l.buf[searched:l.end], '\n'); i >= 0 {
			line, l.start = l.buf[l.start:searched+i], searched+i+1
			if len(line) > maxLine {
				return line[:maxLine], true, true
			}
			return trimReturns(line), false, true
		}
		searched = l.end
		switch {
		case l.end-l.start >= maxLine:
			return l.skip(), true, true
		case l.err != nil:
			if l.start == l.end {
				return nil, false, false
			}
			line, l.start = l.buf[l.start:l.end], l.end
			return trimReturns(line), false, true
		case l.start > 0 && l.end == len(l.buf):
			copy(l.buf, l.buf[l.start:l.end])
			l.end -= l.start
			searched -= l.start
			l.start = 0
		case l.end == len(l.buf):
			l.grow()
		}
		l.fill()
	}
}

// grow makes room for a longer line, and where the longest fits for something behind it.
func (l *lines) grow() {
	n := 2 * len(l.buf)
	if n >= maxLine {
		n = maxLine + firstRead
	}
	l.buf = append(make([]byte, 0, n), l.buf...)[:n]
}

func (l *lines) fill() {
	n, err := l.in.Read(l.buf[l.end:])
	l.end += n
	l.err = err
}

// skip passes over the rest of a line whose first maxLine bytes stand in the buffer, and returns these.
func (l *lines) skip() []byte {
	rest := l.start + maxLine
	for {
		line := l.buf[rest-maxLine : rest : rest]
		if i := bytes.IndexByte(l.buf[rest:l.end], '\n'); i >= 0 {
			l.start = rest + i + 1
			return line
		}
		l.end = rest
		if l.err != nil {
			l.start = l.end
			return line
		}
		if l.end == len(l.buf) { // no room behind the line: move it to the front of the buffer
			copy(l.buf, l.buf[l.start:l.end])
			l.end -= l.start
			l.start, rest = 0, l.end
		}
		l.fill()
	}
}

// failed is the error that ended the input, if it was not its end.
func (l *lines) failed() error {
	if l.err == io.EOF {
		return nil
	}
	return l.err
}

func trimReturns(line []byte) []byte {
	for len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	return line
}
