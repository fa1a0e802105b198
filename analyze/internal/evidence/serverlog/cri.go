package serverlog

import (
	"bytes"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// parts are the lines that the runtime of Kubernetes has begun to write, by stream: it splits long ones.
type parts map[string][]byte

// join adds a line, and returns it whole; ok is false while parts are missing.
//
//	2026-12-15T18:32:12.331095044Z stderr P the first part
//	2026-12-15T18:32:12.331095044Z stderr F  and the rest
func (p parts) join(line []byte) (whole []byte, ok bool) {
	for _, stream := range []string{"stdout ", "stderr "} {
		at := bytes.IndexByte(line, ' ') + 1 + len(stream)
		if len(line) < at+2 || string(line[at-len(stream):at]) != stream || line[at+1] != ' ' {
			continue
		}
		begun := p[stream]
		switch text := line[at+2:]; {
		case line[at] == 'P' && begun == nil:
			p[stream] = bytes.Clone(line)
			return nil, false
		case line[at] == 'P':
			p[stream] = append(begun, text[:min(len(text), file.MaxLine-len(begun))]...)
			return nil, false
		case line[at] == 'F' && begun != nil:
			delete(p, stream)
			return append(begun, text...), true
		}
	}
	return line, true
}
