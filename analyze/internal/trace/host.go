package trace

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// newAPITable reads CUPTI_ACTIVITY_KIND_RUNTIME.
func newAPITable(l *loader) *eventTable {
	a := &l.trace.API
	t := newTable(l, &a.Span)
	t.tids = true // a process without a thread has thread 0
	var names []string
	place, corr, name := coded(t, &a.place, &a.places), t.number(&a.corr), coded(t, &a.name, &names)
	place.owner = func(p *callPlace) *owner { return &p.thread }
	pid := "" // the column of the process, if the thread has none
	t.names = func(info source.Table) []string {
		tid := info.First(tidColumns...)
		if tid == "" {
			pid = info.First(pidColumns...)
			t.plain = isPlain(pid)
		}
		return []string{"start", "end", tid + pid, info.First(corrColumns...), info.First("nameId", "name"), "returnValue"}
	}
	t.row = func(s *sink, row []cell) {
		if !s.times(&row[0], &row[1]) {
			return
		}
		var c callPlace
		if c.thread.id, c.thread.known = row[2].Whole(); c.thread.known && pid != "" {
			c.thread.id = globalPid(pid, c.thread.id)
		}
		ret, _ := row[5].Whole()
		c.ret = int32(ret)
		place.put(s, uint64(c.thread.id)^uint64(c.ret)<<48, c)
		corr.put(s, orNone(&row[3]))
		d := name.dicts[s.index]
		d.put(name.slots, s.at, l.apiName(d, &row[4]))
		s.keep()
	}
	t.settled = func() { a.Names = lists.Map(names, classifyAPI) }
	return t
}

func (l texts) apiName(d *dict[string], c *cell) uint32 {
	if c.Kind == pages.Int {
		if code, ok := d.byIDs(c.Bits, 0); ok {
			return code
		}
	}
	raw, ok := l.name(c)
	if !ok {
		raw = "#unnamed"
		if c.Kind == pages.Int {
			raw = "#" + strconv.FormatInt(c.Bits, 10)
		}
	}
	name := stripSuffix(raw)
	code, ok := d.find(uint64(len(name)), name)
	if !ok {
		code = d.add(strings.Clone(name))
	}
	if c.Kind == pages.Int {
		d.stand(c.Bits, 0, code)
	}
	return code
}
