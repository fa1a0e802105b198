package kineto

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
)

// Names say how a copy writes the names that reports are made of.
type Names struct {
	Kernel   func(string) string
	Work     func(string) string // of calls
	Program  func(string) string // of processes, which may be paths and have arguments
	Personal func(string) string // of ranges, operators and threads
	Device   func(string) string // of GPUs
}

// Scrub writes a copy of a trace with only the parts that [Read] reads, by the same list of keys. It returns how many
// events were copied, and how many were dropped. An error is of rd or w, or [ErrForeign].
func Scrub(rd io.Reader, w io.Writer, names Names) (events, left int64, err error) {
	c := &copier{w: bufio.NewWriter(w), names: names}
	_, _ = c.w.WriteString(`{"schemaVersion":1,"traceEvents":[`)
	r := newReader(rd)
	r.each = c.event
	if err := r.all(); err != nil {
		return 0, 0, err
	}
	fmt.Fprintf(c.w, "\n],\"deviceProperties\":[")
	for i, g := range r.about.gpus {
		c.after(i > 0, map[string]any{"id": g[1].Bits, "name": names.Device(g[2].S), "numSms": g[3].Bits, "totalGlobalMem": g[4].Bits,
			"computeMajor": g[5].Bits, "computeMinor": g[6].Bits})
	}
	fmt.Fprintf(c.w, "],\"distributedInfo\":{\"rank\":%d,\"world_size\":%d},\"baseTimeNanoseconds\":%d}\n", r.about.rank, r.about.world, r.about.base)
	if c.err == nil {
		c.err = c.w.Flush()
	}
	return c.events, c.all - c.events, c.err
}

type copier struct {
	w      *bufio.Writer
	names  Names
	events int64
	all    int64 // events of the file
	err    error
}

// after writes a value, after a comma unless it is the first one.
func (c *copier) after(comma bool, v any) {
	b, err := json.Marshal(v)
	if comma {
		_, _ = c.w.WriteString(",")
	}
	_, _ = c.w.WriteString("\n")
	if _, failed := c.w.Write(b); c.err == nil {
		if c.err = err; err == nil {
			c.err = failed
		}
	}
}

// event writes an event that is read; c.err is the first error of writing.
func (c *copier) event(e *event) {
	c.all++
	out := map[string]any{"ph": e.phase, "pid": e.pid}
	args := map[string]any{}
	kind := kinds[e.category]
	switch {
	case e.phase == "M" && (e.name == "process_name" || e.name == "thread_name") && e.pid >= 0:
		out["name"] = e.name
		if args["name"] = c.names.Personal(e.args.text); e.name == "process_name" {
			args["name"] = c.names.Program(e.args.text)
		}
	case kind == other && e.phase != "i" || e.start == unknown:
		return
	case e.phase == "s" || e.phase == "f":
		if kind != flow || e.id < 0 {
			return
		}
		out["cat"], out["name"], out["ts"], out["id"] = e.category, "ac2g", micros(e.start), e.id
	case e.phase == "i":
		if e.pid < 0 || e.tid == unknown {
			return
		}
		out["cat"], out["name"], out["ts"], out["s"] = "cpu_instant_event", "mark", micros(e.start), "t"
		if e.name == allocation {
			out["name"] = allocation
		}
		c.args(e, args)
	case e.phase != "X" || e.length < 0:
		return
	default:
		out["cat"], out["name"], out["ts"], out["dur"] = e.category, "", micros(e.start), micros(e.length)
		switch kind {
		case kernel:
			out["name"] = c.names.Kernel(e.name)
		case memcpy, memset, call, overhead:
			out["name"] = c.names.Work(e.name)
		case annotation:
			out["name"] = c.names.Personal(e.name)
		case python:
			out["name"] = c.names.Personal(shortFile(withoutAddress(e.name)))
		case wait:
			if waitKinds[e.name] != 0 {
				out["name"] = e.name
			}
		}
		c.args(e, args)
	}
	if e.tid != unknown {
		out["tid"] = e.tid
	}
	if e.pid == unknown {
		delete(out, "pid")
	}
	out["args"] = args
	c.after(c.events > 0, out)
	c.events++
}

func (c *copier) args(e *event, out map[string]any) {
	a := &e.args
	for key, n := range numbers {
		if v := *n.of(a); v != n.none {
			out[key] = v
		}
	}
	if a.sizes != "" {
		out["Input Dims"] = json.RawMessage(a.sizes)
	}
	if a.grid != [3]int64{} {
		out["grid"], out["block"] = a.grid, a.block
	}
	if a.collective == "" {
		return
	}
	out["Collective name"] = "collective" // which one it is its kernel says
	if _, known := widths[a.dtype]; known {
		out["dtype"] = a.dtype
	}
	if strings.Trim(a.ranks, "[]0123456789, ") == "" {
		out["Process Group Ranks"] = a.ranks
	}
	h := fnv.New64a()
	h.Write([]byte(a.group))
	out["Process Group Name"] = fmt.Sprintf("%x", h.Sum64()) // the same in all ranks, whatever it is called
}

// micros is a time in microseconds, with as many decimals as it needs.
func micros(ns int64) json.Number {
	sign := ""
	if ns < 0 {
		sign, ns = "-", -ns
	}
	return json.Number(strings.TrimRight(strings.TrimRight(fmt.Sprintf("%s%d.%03d", sign, ns/1000, ns%1000), "0"), "."))
}

// shortFile is a function of Python with no more of its file's path than the folder it is in.
func shortFile(name string) string {
	file, function, ok := strings.Cut(name, "(")
	if !ok || strings.HasPrefix(name, "<") {
		return name
	}
	return payload.ShortPath(file) + "(" + function
}
