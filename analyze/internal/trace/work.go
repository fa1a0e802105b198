package trace

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// workTable is what the tables of GPU activities share.
type workTable struct {
	eventTable
	l     *loader
	work  *Work
	pid   string // the column of the process
	corr  []uint32
	place []uint16
	works []*workSink
}

// rawPlace is where a GPU activity ran, as its row says.
type rawPlace struct {
	device, context int32
	stream          int64
	node, owned     bool
	graph           int64 // of the node; None
	owner           int64 // global pid, if owned
}

type workSink struct {
	*sink
	t     *workTable
	place dict[rawPlace]
	corr  []far
}

func (t *workTable) init(l *loader, w *Work, numeric []*[]uint32, coded ...*[]uint16) {
	t.l, t.work = l, w
	t.eventTable.init(l, &w.Span, append(numeric, &t.corr), append(coded, &t.place)...)
}

// workColumns is how many columns every GPU activity table has.
const workColumns = 7

// columns are those columns; the one of the process differs between exports.
func (t *workTable) columns(info source.Table) []string {
	t.pid = info.First("globalPid", "pid", "processId")
	t.plain = isPlain(t.pid)
	return []string{"start", "end", "deviceId", "streamId", "contextId", info.First("correlationId", "correlation_id"),
		t.pid}
}

func (t *workTable) newSink() *workSink {
	s := &workSink{t: t, sink: t.join()}
	t.works = append(t.works, s)
	return s
}

// add takes what all tables have of a row. Without times that make a sound event it returns false.
func (s *workSink) add(row []cell, node bool, graph int64) bool {
	if !s.times(&row[0], &row[1]) {
		return false
	}
	p := rawPlace{device: ident(&row[2]), stream: max(orNone(&row[3]), int64(None)), context: ident(&row[4]),
		node: node, graph: graph}
	var v int64
	if v, p.owned = row[6].Whole(); p.owned {
		p.owner = globalPid(s.t.pid, v)
	}
	s.place.put(s.t.place, s.at,
		s.place.code(uint64(p.device)<<40^uint64(p.stream)<<20^uint64(p.context)^uint64(p.owner>>24), p))
	s.number(s.t.corr, &s.corr, orNone(&row[5]))
	return true
}

func (t *workTable) settle() {
	w := t.work
	t.settleTimes()
	var raw []rawPlace
	w.place, raw = settleCodes(&t.store, t.place, each(t.works, func(s *workSink) *dict[rawPlace] { return &s.place }),
		itself[rawPlace])
	w.corr = t.settleNumbers(t.corr, each(t.works, func(s *workSink) []far { return s.corr })...)
	for _, p := range raw {
		if p.owned {
			t.ids = append(t.ids, p.owner)
		}
	}
	t.adopt = func(ids *idents) {
		w.places = make([]workPlace, len(raw))
		for i, p := range raw {
			w.places[i] = workPlace{device: p.device, stream: p.stream, context: p.context, node: p.node, graph: p.graph,
				proc: None}
			if p.owned {
				w.places[i].proc = ids.procs[p.owner&^tidBits]
			}
		}
	}
}

func (t *workTable) take(order []int32) {
	t.work.place.take(t.arena, order)
	t.work.corr.take(t.arena, order)
}

// kernelTable reads CUPTI_ACTIVITY_KIND_KERNEL.
type kernelTable struct {
	workTable
	name, config []uint16
	sinks        []*kernelSink
}

// kernelKey is a name as one goroutine meets it: the short name that counts is that of the first row with the name.
type kernelKey struct{ name, short string }

type kernelSink struct {
	*workSink
	t      *kernelTable
	name   dict[kernelKey]
	byID   idCodes
	config dict[LaunchConfig]
}

func newKernelTable(l *loader) *kernelTable {
	t := &kernelTable{}
	k := &l.trace.Kernels
	t.init(l, &k.Work, nil, &t.name, &t.config)
	t.reorder = func(order []int32) {
		t.take(order)
		k.name.take(t.arena, order)
		k.config.take(t.arena, order)
	}
	return t
}

func (t *kernelTable) columns(info source.Table) []string {
	names := t.workTable.columns(info)
	has := &t.l.trace.Has
	has.KernelPID, has.KernelDevice = t.pid != "", info.Column("deviceId") != ""
	has.KernelCorrelation, has.KernelGraphNode = names[5] != "", info.Column("graphNodeId") != ""
	return append(names, "demangledName", "shortName", "mangledName", "name", "graphNodeId",
		"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory",
		"dynamicSharedMemory", "graphId", "estimatedOccupancy")
}

func (t *kernelTable) sink() pages.Sink {
	s := &kernelSink{t: t, workSink: t.newSink()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *kernelSink) Row(row []cell) error {
	own := row[workColumns:]
	if !s.add(row, own[4].Kind == pages.Int && own[4].Bits != 0, max(orNone(&own[14]), int64(None))) {
		return nil
	}
	s.name.put(s.t.name, s.at, s.nameOf(own[:4]))
	c := LaunchConfig{
		Grid:      [3]int32{extent(&own[5]), extent(&own[6]), extent(&own[7])},
		Block:     [3]int32{extent(&own[8]), extent(&own[9]), extent(&own[10])},
		Registers: extent(&own[11]), SharedStatic: extent(&own[12]), SharedDynamic: extent(&own[13]),
		Occupancy: ident(&own[15]),
	}
	hint := uint64(c.Grid[0])<<32 ^ uint64(c.Grid[1])<<20 ^ uint64(c.Grid[2])<<10 ^
		uint64(c.Block[0])<<5 ^ uint64(c.SharedDynamic) ^ uint64(c.Registers)<<48
	s.config.put(s.t.config, s.at, s.config.code(hint, c))
	s.keep()
	return nil
}

// nameOf resolves demangledName, shortName, mangledName and name, in that order. An id without a string keeps its row,
// as #<id>.
func (s *kernelSink) nameOf(cells []cell) uint32 {
	first, second := &cells[0], &cells[1]
	ids := first.Kind == pages.Int && second.Kind == pages.Int // as in every export of nsys
	if ids {
		if code, ok := s.byID.get(first.Bits, second.Bits); ok {
			return code
		}
	}
	key, unresolved, direct := kernelKey{}, "", false
	for i := range cells {
		if text, ok := s.t.l.name(&cells[i]); ok && text != "" {
			key.name, direct = text, i == 0
			break
		}
		if cells[i].Kind == pages.Int && unresolved == "" {
			unresolved = "#" + strconv.FormatInt(cells[i].Bits, 10)
		}
	}
	if key.name == "" {
		key.name = unresolved
	}
	if key.name == "" {
		key.name = "#unnamed"
	}
	key.short, _ = s.t.l.name(second)
	code, ok := s.name.find(uint64(len(key.name)), key)
	if !ok {
		code = s.name.add(kernelKey{strings.Clone(key.name), strings.Clone(key.short)})
	}
	if ids && direct {
		s.byID.put(first.Bits, second.Bits, code)
	}
	return code
}

func (t *kernelTable) settle() {
	t.workTable.settle()
	k := &t.l.trace.Kernels
	var names []kernelKey
	k.name, names = settleCodes(&t.store, t.name,
		each(t.sinks, func(s *kernelSink) *dict[kernelKey] { return &s.name }),
		func(n kernelKey) string { return n.name })
	for _, n := range names {
		k.Names = append(k.Names, KernelName{Name: n.name, Short: n.short})
	}
	k.config, k.Configs = settleCodes(&t.store, t.config,
		each(t.sinks, func(s *kernelSink) *dict[LaunchConfig] { return &s.config }), itself[LaunchConfig])
}

// copyShape is what kind of copy a row is.
type copyShape struct{ kind, src, dst int16 }

// Directions between host and device, in the numbering of ENUM_CUDA_MEMCPY_OPER.
const copyHtoD, copyDtoH = 1, 2

// copyTable reads CUPTI_ACTIVITY_KIND_MEMCPY.
type copyTable struct {
	workTable
	bytes []uint32
	shape []uint16
	sinks []*copySink
}

type copySink struct {
	*workSink
	t     *copyTable
	bytes []far
	shape dict[copyShape]
}

func newCopyTable(l *loader) *copyTable {
	t := &copyTable{}
	c := &l.trace.Copies
	t.init(l, &c.Work, []*[]uint32{&t.bytes}, &t.shape)
	t.reorder = func(order []int32) {
		t.take(order)
		c.bytes.take(t.arena, order)
		c.shape.take(t.arena, order)
	}
	return t
}

func (t *copyTable) columns(info source.Table) []string {
	t.l.trace.Has.CopyKinds = info.Column("srcKind") != "" && info.Column("dstKind") != ""
	return append(t.workTable.columns(info), "bytes", "copyKind", "srcKind", "dstKind")
}

func (t *copyTable) sink() pages.Sink {
	s := &copySink{t: t, workSink: t.newSink()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *copySink) Row(row []cell) error {
	own := row[workColumns:]
	if !s.add(row, false, int64(None)) {
		return nil
	}
	s.number(s.t.bytes, &s.bytes, byteCount(&own[0]))
	shape := copyShape{small(&own[1]), small(&own[2]), small(&own[3])}
	rate := int64(maxMemoryRate)
	if shape.kind == copyHtoD || shape.kind == copyDtoH {
		rate = maxLinkRate
	}
	if oddSize(&own[0], s.st.dur[s.at], rate) || oddKind(&own[1], copyKinds) || oddKind(&own[2], memKinds) ||
		oddKind(&own[3], memKinds) {
		s.odd++
	}
	s.shape.put(s.t.shape, s.at, s.shape.code(uint64(shape.kind)<<8^uint64(shape.src)<<4^uint64(shape.dst), shape))
	s.keep()
	return nil
}

func (t *copyTable) settle() {
	t.workTable.settle()
	c := &t.l.trace.Copies
	c.bytes = t.settleNumbers(t.bytes, each(t.sinks, func(s *copySink) []far { return s.bytes })...)
	c.shape, c.shapes = settleCodes(&t.store, t.shape,
		each(t.sinks, func(s *copySink) *dict[copyShape] { return &s.shape }), itself[copyShape])
}

// setTable reads CUPTI_ACTIVITY_KIND_MEMSET.
type setTable struct {
	workTable
	bytes, kind []uint32
	sinks       []*setSink
}

type setSink struct {
	*workSink
	t     *setTable
	bytes []far
	kind  []far
}

func newSetTable(l *loader) *setTable {
	t := &setTable{}
	m := &l.trace.Sets
	t.init(l, &m.Work, []*[]uint32{&t.bytes, &t.kind})
	t.reorder = func(order []int32) {
		t.take(order)
		m.bytes.take(t.arena, order)
		m.kind.take(t.arena, order)
	}
	return t
}

func (t *setTable) columns(info source.Table) []string {
	return append(t.workTable.columns(info), "bytes", "memKind")
}

func (t *setTable) sink() pages.Sink {
	s := &setSink{t: t, workSink: t.newSink()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *setSink) Row(row []cell) error {
	own := row[workColumns:]
	if !s.add(row, false, int64(None)) {
		return nil
	}
	s.number(s.t.bytes, &s.bytes, byteCount(&own[0]))
	if oddSize(&own[0], s.st.dur[s.at], maxMemoryRate) || oddKind(&own[1], memKinds) {
		s.odd++
	}
	s.number(s.t.kind, &s.kind, int64(small(&own[1])))
	s.keep()
	return nil
}

func (t *setTable) settle() {
	t.workTable.settle()
	m := &t.l.trace.Sets
	m.bytes = t.settleNumbers(t.bytes, each(t.sinks, func(s *setSink) []far { return s.bytes })...)
	m.kind = t.settleNumbers(t.kind, each(t.sinks, func(s *setSink) []far { return s.kind })...)
}

// graphTable reads CUPTI_ACTIVITY_KIND_GRAPH_TRACE.
type graphTable struct {
	workTable
	graph, exec []uint32
	sinks       []*graphSink
}

type graphSink struct {
	*workSink
	t           *graphTable
	graph, exec []far
}

func newGraphTable(l *loader) *graphTable {
	t := &graphTable{}
	g := &l.trace.Graphs
	t.init(l, &g.Work, []*[]uint32{&t.graph, &t.exec})
	t.reorder = func(order []int32) {
		t.take(order)
		g.graph.take(t.arena, order)
		g.exec.take(t.arena, order)
	}
	return t
}

func (t *graphTable) columns(info source.Table) []string {
	return append(t.workTable.columns(info), "graphId", "graphExecId")
}

func (t *graphTable) sink() pages.Sink {
	s := &graphSink{t: t, workSink: t.newSink()}
	t.sinks = append(t.sinks, s)
	return s
}

func (s *graphSink) Row(row []cell) error {
	own := row[workColumns:]
	if !s.add(row, false, int64(None)) {
		return nil
	}
	s.number(s.t.graph, &s.graph, orNone(&own[0]))
	s.number(s.t.exec, &s.exec, orNone(&own[1]))
	s.keep()
	return nil
}

func (t *graphTable) settle() {
	t.workTable.settle()
	g := &t.l.trace.Graphs
	g.graph = t.settleNumbers(t.graph, each(t.sinks, func(s *graphSink) []far { return s.graph })...)
	g.exec = t.settleNumbers(t.exec, each(t.sinks, func(s *graphSink) []far { return s.exec })...)
}
