package serverlog

import (
	"bytes"
	"context"
	"io"
	"math"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// verdict is the result of reading one line.
type verdict int

const (
	unknown    verdict = iota // of no known form
	known                     // of a known form that holds no value
	understood                // something was taken
)

// reader is the state of reading one file.
type reader struct {
	d     *Data
	start *Start
	cal   calendar
	times written
	line  int64
	last  int64 // time of the last line that had one
	table bool  // inside a table of CUDA graph statistics
	steps int64 // iterations that generated so far
	vllm  bool  // a line was written by vLLM's own formatter

	// shipped: the levels of JSON records are those of a shipper, which takes what comes from stderr for an error. Lines
	// that state a lower level themselves, and progress bars, show it.
	shipped bool

	raw     []byte // the line, as it stands in the log
	source  []byte // what stands before the line's header; nil unknown
	origins origins

	trtClock int64 // of the last sample of TensorRT-LLM
}

// readFile reads one log to its end. Damage ends it early, with a warning.
func readFile(ctx context.Context, d *Data, in *file.Input, f io.Reader) error {
	r := &reader{d: d, last: NoClock, trtClock: NoClock, times: written{first: NoClock, last: NoClock},
		origins: origins{}}
	r.begin()
	l, begun, t := file.NewLines(f), parts{}, in.Tally
	counts := [...]*int64{unknown: &t.Unknown, known: &t.Known, understood: &t.Understood}
	for {
		line, cut, ok := l.Next()
		if !ok {
			break
		}
		if cut {
			d.long++
		}
		r.line++
		result := known // of a part of a line
		if line, ok = begun.join(line); ok {
			result = r.read(line)
		}
		*counts[result]++
		if r.line&0xffff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	r.stopped()
	r.times.year = r.cal.year
	d.written = append(d.written, r.times)
	d.replicas = max(d.replicas, r.origins.replicas())
	if l.Err != nil {
		d.damaged = append(d.damaged, in.Name)
	}
	t.Records, t.Format, t.Version = r.line, r.format(), r.start.Version
	return nil
}

// format is the exact kind of the log.
func (r *reader) format() string {
	switch {
	case r.start.Engine == "vLLM" && r.start.Generation != "":
		return "vLLM " + r.start.Generation
	case r.start.Engine != "":
		return r.start.Engine
	case r.vllm:
		return "vLLM"
	}
	return ""
}

func (r *reader) read(line []byte) verdict {
	r.raw, r.source = line, nil
	line = program(line)
	body := skipSpace(line)
	if len(body) == 0 {
		return known
	}
	if own, msg, ok := jsonRecord(body); ok {
		msg, more, _ := bytes.Cut(msg, []byte("\n"))
		defer r.moreLines(more)
		if h, rest, ok := findHeader(msg); ok {
			r.source = msg[:h.at]
			r.shipped = r.shipped || own.fails() && h.at == 0 && h.level != 0 && !h.fails()
			return r.record(h, rest, msg[:len(msg)-len(rest)])
		}
		_, bar := progress(msg[:min(len(msg), headReach)])
		if r.shipped = r.shipped || bar && own.fails(); r.shipped {
			own.level = 0
		}
		r.source = msg[:0]
		return r.record(own, msg, nil)
	}
	h, msg, ok := findHeader(line)
	if !ok {
		if rest, bar := progress(line); bar {
			if h, msg, ok = findHeader(rest); !ok {
				return known
			}
			return r.record(h, msg, rest[:len(rest)-len(msg)])
		}
		return r.bare(line)
	}
	r.source = line[:h.at]
	return r.record(h, msg, line[:len(line)-len(msg)])
}

// moreLines takes what stands in one record with its first line: the rows of a table, or the lines of a traceback.
func (r *reader) moreLines(more []byte) {
	for line := range bytes.Lines(more) {
		if r.table {
			r.d.Graphs.graphLine(plain(bytes.TrimSpace(line)))
			continue
		}
		r.d.Events.more(plain(bytes.TrimRight(line, "\r\n")))
	}
}

// record takes a log record: its header, its message, and the text before them.
func (r *reader) record(h header, msg, prefix []byte) verdict {
	clock := r.at(h.clock, h.year)
	r.vllm = r.vllm || h.vllm
	r.start.rank = h.tags
	m := plain(msg)
	if h.fails() || h.level == 0 && alarming(m) {
		r.d.Events.record(m, process(prefix), clock)
		return understood
	}
	r.d.Events.broken = true
	if stops(m) {
		r.d.Events.stop()
		return understood
	}
	if h.http {
		return r.server(m)
	}
	r.table = r.table && (len(m) == 0 || m[0] == '|')
	if r.message(m, engineOf(h, prefix)) {
		return understood
	}
	return known
}

// at is the time of a record, from which on the clock of the file continues; NoClock if it states none.
func (r *reader) at(clock int64, year bool) int64 {
	if clock = r.cal.at(clock, year); clock != NoClock {
		r.last, r.d.Year = clock, r.cal.year
		if r.times.first == NoClock {
			r.times.first = clock
		}
		r.times.first, r.times.last = min(r.times.first, clock), max(r.times.last, clock)
		if r.start.first == NoClock {
			r.start.first = clock
		}
	}
	return clock
}

// engineOf is the number of a line's engine: EngineCore_DP1, DP1 in SGLang's tags, or Engine 001 in LMDeploy's; -1 if
// unknown.
func engineOf(h header, prefix []byte) int32 {
	v, ok := wholeAfter(h.tags, "Engine ")
	if !ok {
		v, ok = wholeAfter(h.tags, "DP")
	}
	if !ok {
		v, ok = wholeAfter(prefix, "DP")
	}
	if !ok || v >= 1<<16 {
		return -1
	}
	return int32(v)
}

// server takes a record of uvicorn.
func (r *reader) server(m []byte) verdict {
	if generates, ok := r.d.Events.access(m); ok {
		if generates {
			r.start.ready = true
			r.d.Requests.responded(r.last, r.steps)
		}
		return understood
	}
	if r.start.Engine != "SGLang" && (hasPrefix(m, "Application startup complete") || hasPrefix(m, "Uvicorn running on")) && r.ready() {
		return understood
	}
	return known
}

// ready records that the server accepts requests from here on.
func (r *reader) ready() bool {
	r.start.ready = true
	if r.start.first != NoClock && r.last != NoClock && math.IsNaN(r.start.Ready) {
		r.start.Ready = float64(r.last - r.start.first)
	}
	for i := len(r.d.Samples) - 1; i >= 0 && r.d.Samples[i].Start == r.d.current(); i-- {
		r.d.Samples[i].early = true
	}
	return true
}

// bare takes a line without a header: a continuation, a line of another library, or a message whose formatter is not
// vLLM's.
func (r *reader) bare(line []byte) verdict {
	m := plain(line)
	if r.table {
		if r.d.Graphs.graphLine(m) {
			return understood
		}
		if t := bytes.TrimRight(m, " \t"); len(t) == 0 || t[len(t)-1] == '|' {
			return known
		}
	}
	reach := m[:min(len(m), headReach)]
	if rest, ok := trtMessage(m, reach); ok {
		r.source = m[:len(m)-len(rest)]
		return trt(r, rest)
	}
	if t, ok := tgiRequest(m, reach); ok {
		return tgi(r, t)
	}
	if r.tgiEvent(m, reach) {
		return understood
	}
	who := process(reach)
	switch {
	case alarming(m):
		r.d.Events.record(m, who, r.last)
		return understood
	case r.d.Events.more(m):
		return understood
	}
	for _, p := range phrases {
		i := bytes.Index(reach, []byte(p))
		if r.source = m[:max(i, 0)]; i >= 0 && r.message(m[i:], engineOf(header{}, m[:i])) {
			return understood
		}
	}
	if who != nil || hasPrefix(m, "[rank") || hasPrefix(m, "[transformers]") {
		return known
	}
	return unknown
}

// phrases begin the messages that are read even if the line has no known header.
var phrases = []string{"Avg prompt throughput: ", "Iteration(", "Decode batch", "Prefill batch",
	"SpecDecoding metrics: ", "CUDAGraph Stats:", "Initializing a V", "server_args=ServerArgs(", lmdeployStats}
