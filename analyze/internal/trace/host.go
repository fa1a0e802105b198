package trace

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// apiTable reads CUPTI_ACTIVITY_KIND_RUNTIME.
type apiTable struct {
	eventTable
	l           *loader
	pid         string // the column of the process, where there is none of the thread
	corr        []uint32
	place, name []uint16
	sinks       []*apiSink
}

// rawCall is what dictionaries hold of an API call: its thread, as the row says, and its return value.
type rawCall struct {
	thread int64
	known  bool
	ret    int32
}

type apiSink struct {
	*sink
	t     *apiTable
	place dict[rawCall]
	corr  []far
	name  dict[string]
	byID  idCodes
}

func newAPITable(l *loader) *apiTable {
	t := &apiTable{l: l}
	a := &l.trace.API
	t.init(l, &a.Span, []*[]uint32{&t.corr}, &t.place, &t.name)
	t.tids = true // a process without thread is thread 0 of it
	t.reorder = func(order []int32) {
		a.place.take(t.arena, order)
		a.corr.take(t.arena, order)
		a.name.take(t.arena, order)
	}
	return t
}

func (t *apiTable) columns(info source.Table) []string {
	tid := info.First("globalTid", "global_tid")
	if tid == "" {
		t.pid = info.First("globalPid", "pid", "processId")
		t.plain = isPlain(t.pid)
	}
	corr := info.First("correlationId", "correlation_id")
	has := &t.l.trace.Has
	has.APIThread, has.APICorrelation, has.APIReturn = tid != "", corr != "", info.Column("returnValue") != ""
	return []string{"start", "end", tid + t.pid, corr, info.First("nameId", "name"), "returnValue"}
}

func (t *apiTable) sink() pages.Sink {
	s := &apiSink{t: t, sink: t.join()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *apiSink) Row(row []cell) error {
	if !s.times(&row[0], &row[1]) {
		return nil
	}
	var c rawCall
	if c.thread, c.known = row[2].Whole(); c.known && s.t.pid != "" {
		c.thread = globalPid(s.t.pid, c.thread)
	}
	ret, _ := row[5].Whole()
	c.ret = int32(ret)
	s.place.put(s.t.place, s.at, s.place.code(uint64(c.thread)^uint64(c.ret)<<48, c))
	s.number(s.t.corr, &s.corr, orNone(&row[3]))
	s.name.put(s.t.name, s.at, s.nameOf(&row[4]))
	s.keep()
	return nil
}

func (s *apiSink) nameOf(c *cell) uint32 {
	if c.Kind == pages.Int {
		if code, ok := s.byID.get(c.Bits, 0); ok {
			return code
		}
	}
	raw, ok := s.t.l.name(c)
	if !ok {
		raw = "#unnamed"
		if c.Kind == pages.Int {
			raw = "#" + strconv.FormatInt(c.Bits, 10)
		}
	}
	name := stripSuffix(raw)
	code, ok := s.name.find(uint64(len(name)), name)
	if !ok {
		code = s.name.add(strings.Clone(name))
	}
	if c.Kind == pages.Int {
		s.byID.put(c.Bits, 0, code)
	}
	return code
}

func (t *apiTable) settle() {
	a := &t.l.trace.API
	t.settleTimes()
	var raw []rawCall
	a.place, raw = settleCodes(&t.store, t.place, each(t.sinks, func(s *apiSink) *dict[rawCall] { return &s.place }),
		itself[rawCall])
	a.corr = t.settleNumbers(t.corr, each(t.sinks, func(s *apiSink) []far { return s.corr })...)
	var names []string
	a.name, names = settleCodes(&t.store, t.name, each(t.sinks, func(s *apiSink) *dict[string] { return &s.name }),
		itself[string])
	for _, n := range names {
		a.Names = append(a.Names, classifyAPI(n))
	}
	for _, c := range raw {
		if c.known {
			t.ids = append(t.ids, c.thread)
		}
	}
	t.adopt = func(ids *idents) {
		a.places = make([]callPlace, len(raw))
		for i, c := range raw {
			a.places[i] = callPlace{thread: ids.thread(c.thread, c.known), ret: c.ret}
		}
	}
}

// syncTable reads CUPTI_ACTIVITY_KIND_SYNCHRONIZATION.
type syncTable struct {
	eventTable
	l     *loader
	pid   string
	corr  []uint32
	event []uint32
	epoch []uint32
	place []uint16
	sinks []*syncSink
}

// rawSync is what dictionaries hold of a synchronization.
type rawSync struct {
	kind   int16
	owned  bool
	device int32
	stream int64
	owner  int64 // global pid, if owned
}

type syncSink struct {
	*sink
	t     *syncTable
	place dict[rawSync]
	corr  []far
	event []far
	epoch []far
}

func newSyncTable(l *loader) *syncTable {
	t := &syncTable{l: l}
	s := &l.trace.Syncs
	t.init(l, &s.Span, []*[]uint32{&t.corr, &t.event, &t.epoch}, &t.place)
	t.reorder = func(order []int32) {
		s.place.take(t.arena, order)
		s.corr.take(t.arena, order)
		s.event.take(t.arena, order)
		s.epoch.take(t.arena, order)
	}
	return t
}

func (t *syncTable) columns(info source.Table) []string {
	t.pid = info.First("globalPid", "pid", "processId")
	t.plain = isPlain(t.pid)
	return []string{"start", "end", "syncType", t.pid, "correlationId", "deviceId", "streamId", "eventId", "eventSyncId"}
}

func (t *syncTable) sink() pages.Sink {
	s := &syncSink{t: t, sink: t.join()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *syncSink) Row(row []cell) error {
	if !s.times(&row[0], &row[1]) {
		return nil
	}
	p := rawSync{kind: small(&row[2]), device: ident(&row[5]), stream: orNobody(&row[6])}
	var v int64
	if v, p.owned = row[3].Whole(); p.owned {
		p.owner = globalPid(s.t.pid, v)
	}
	s.place.put(s.t.place, s.at, s.place.code(uint64(p.owner>>24)^uint64(p.kind)<<48^uint64(p.stream)<<20, p))
	s.number(s.t.corr, &s.corr, orNone(&row[4]))
	s.number(s.t.event, &s.event, orNobody(&row[7]))
	s.number(s.t.epoch, &s.epoch, orNobody(&row[8]))
	s.keep()
	return nil
}

func (t *syncTable) settle() {
	y := &t.l.trace.Syncs
	t.settleTimes()
	var raw []rawSync
	y.place, raw = settleCodes(&t.store, t.place, each(t.sinks, func(s *syncSink) *dict[rawSync] { return &s.place }),
		itself[rawSync])
	y.corr = t.settleNumbers(t.corr, each(t.sinks, func(s *syncSink) []far { return s.corr })...)
	y.event = t.settleNumbers(t.event, each(t.sinks, func(s *syncSink) []far { return s.event })...)
	y.epoch = t.settleNumbers(t.epoch, each(t.sinks, func(s *syncSink) []far { return s.epoch })...)
	for _, p := range raw {
		if p.owned {
			t.ids = append(t.ids, p.owner)
		}
	}
	t.adopt = func(ids *idents) {
		y.places = make([]syncPlace, len(raw))
		for i, p := range raw {
			y.places[i] = syncPlace{kind: p.kind, proc: None, device: p.device, stream: p.stream}
			if p.owned {
				y.places[i].proc = ids.procs[p.owner&^tidBits]
			}
		}
	}
}
