package serverlog

import (
	"bytes"
	"cmp"
	"maps"
	"math"
	"slices"
)

// kindOf is the engine that lines of numbers are about, and whether they are iterations or statistics.
type kindOf struct {
	iterations bool
	engine     int32
}

// extent is the part of a log, in lines and in time, in which an origin wrote.
type extent struct{ n, first, last, begin, end int64 }

// podKeys are the fields in which log drivers name what wrote a line.
var podKeys = []string{`"pod_name"`, `"pod"`, `"container_name"`, `"_HOSTNAME"`, `"host"`}

// maxOrigins bounds how many of a kind are told apart.
const maxOrigins = 256

// origins are where each writer of such lines wrote, by the text before their headers, which names the process, the
// container or the host.
type origins map[kindOf]map[string]*extent

// wrote notes where the line of numbers comes from that r is at.
func (list origins) wrote(r *reader, iterations bool, engine int32) {
	if r.source == nil {
		return
	}
	of, name := kindOf{iterations, engine}, untimed(r.source)
	if r.raw[0] == '{' {
		pod, _ := anyField(r.raw, podKeys)
		name += string(pod)
	}
	if list[of] == nil {
		list[of] = map[string]*extent{}
	}
	e := list[of][name]
	if e == nil {
		if len(list[of]) >= maxOrigins {
			return
		}
		e = &extent{first: r.line, begin: math.MaxInt64, end: math.MinInt64}
		list[of][name] = e
	}
	e.n, e.last = e.n+1, r.line
	if r.last != NoClock {
		e.begin, e.end = min(e.begin, r.last), max(e.end, r.last)
	}
}

// replicas is how many origins wrote the same engine's numbers at once: several replicas. A server that is started
// again writes after the one before, by the lines and by their times. A single line may have a torn prefix.
func (list origins) replicas() (most int) {
	for _, by := range list {
		extents := slices.SortedFunc(maps.Values(by), func(a, b *extent) int { return cmp.Compare(a.first, b.first) })
		n, line, end := 0, int64(0), int64(math.MinInt64)
		for _, e := range extents {
			if e.n < 2 {
				continue
			}
			if e.first < line || e.begin < end {
				n++
			}
			line, end = max(line, e.last), max(end, e.end)
		}
		if n > 0 {
			most = max(most, n+1)
		}
	}
	return most
}

// untimed is the text before a header without the words that hold a time of day.
func untimed(prefix []byte) string {
	var name []byte
	for _, w := range bytes.Fields(prefix) {
		if i := bytes.IndexByte(w, ':'); i > 0 && i+1 < len(w) && isDigit(w[i-1]) && isDigit(w[i+1]) {
			continue
		}
		name = append(append(name, w...), ' ')
	}
	return string(name)
}
