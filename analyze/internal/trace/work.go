package trace

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
)

// workColumns is how many columns every table of GPU activities has.
const workColumns = 6

// newWork is a table of GPU activities that has more columns: own, which take reads.
func newWork(l *loader, w *Work, take func(s *sink, own []cell), own ...string) *eventTable {
	t := newTable(l, &w.Span)
	place, corr := coded(t, &w.place, &w.places), t.number(&w.corr)
	place.owner = func(p *workPlace) *owner { return &p.proc }
	pid := "" // the column of the process, which differs between exports
	t.names = func(info source.Table) []string {
		pid = info.First(pidColumns...)
		t.plain = isPlain(pid)
		shared := []string{"start", "end", "deviceId", "streamId", info.First(corrColumns...), pid}
		return append(shared, own...)
	}
	node, graph := slices.Index(own, graphNode), slices.Index(own, "graphId") // of kernels
	t.row = func(s *sink, row []cell) {
		if !s.times(&row[0], &row[1]) {
			return
		}
		p := workPlace{device: ident(&row[2]), stream: max(orNone(&row[3]), int64(None)),
			proc: ownerOf(pid, &row[5]), graph: int64(None)}
		own := row[workColumns:]
		if node >= 0 {
			p.node = own[node].Kind == pages.Int && own[node].Bits != 0
			p.graph = max(orNone(&own[graph]), int64(None))
		}
		place.put(s, uint64(p.device)<<40^uint64(p.stream)<<20^uint64(p.proc.id>>24), p)
		corr.put(s, orNone(&row[4]))
		take(s, own)
		s.keep()
	}
	return t
}

const graphNode = "graphNodeId"

// newKernelTable reads CUPTI_ACTIVITY_KIND_KERNEL.
func newKernelTable(l *loader) *eventTable {
	k := &l.trace.Kernels
	var name *codeColumn[KernelName]
	var config *codeColumn[LaunchConfig]
	t := newWork(l, &k.Work, func(s *sink, own []cell) {
		d := name.dicts[s.index]
		d.put(name.slots, s.at, l.kernelName(d, own[:4]))
		c := LaunchConfig{
			Grid:      [3]int32{extent(&own[5]), extent(&own[6]), extent(&own[7])},
			Block:     [3]int32{extent(&own[8]), extent(&own[9]), extent(&own[10])},
			Registers: extent(&own[11]), SharedStatic: extent(&own[12]), SharedDynamic: extent(&own[13]),
			Occupancy: ident(&own[15]),
		}
		config.put(s, uint64(c.Grid[0])<<32^uint64(c.Grid[1])<<20^uint64(c.Grid[2])<<10^
			uint64(c.Block[0])<<5^uint64(c.SharedDynamic)^uint64(c.Registers)<<48, c)
	}, "demangledName", "shortName", "mangledName", "name", graphNode, "gridX", "gridY", "gridZ", "blockX", "blockY",
		"blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory", "graphId", "estimatedOccupancy")
	name, config = coded(t, &k.name, &k.Names), coded(t, &k.config, &k.Configs)
	// The short name that counts is that of the first row with the name.
	name.group = func(n KernelName) KernelName { return KernelName{Name: n.Name} }
	return t
}

// kernelName resolves demangledName, shortName, mangledName and name, in that order. An id without a string keeps its
// row, as #<id>.
func (l texts) kernelName(d *dict[KernelName], cells []cell) uint32 {
	first, second := &cells[0], &cells[1]
	ids := first.Kind == pages.Int && second.Kind == pages.Int // as in every export of nsys
	if ids {
		if code, ok := d.byIDs(first.Bits, second.Bits); ok {
			return code
		}
	}
	key, unresolved, direct := KernelName{}, "", false
	for i := range cells {
		if text, ok := l.name(&cells[i]); ok && text != "" {
			key.Name, direct = text, i == 0
			break
		}
		if cells[i].Kind == pages.Int && unresolved == "" {
			unresolved = "#" + strconv.FormatInt(cells[i].Bits, 10)
		}
	}
	key.Name = cmp.Or(key.Name, unresolved, "#unnamed")
	key.Short, _ = l.name(second)
	code, ok := d.find(uint64(len(key.Name)), key)
	if !ok {
		code = d.add(KernelName{strings.Clone(key.Name), strings.Clone(key.Short)})
	}
	if ids && direct {
		d.stand(first.Bits, second.Bits, code)
	}
	return code
}

// copyShape is what kind of copy a row is.
type copyShape struct{ kind, src, dst int16 }

// Directions between host and device, in the numbering of ENUM_CUDA_MEMCPY_OPER.
const copyHtoD, copyDtoH = 1, 2

// newCopyTable reads CUPTI_ACTIVITY_KIND_MEMCPY.
func newCopyTable(l *loader) *eventTable {
	c := &l.trace.Copies
	var bytes *numberColumn
	var shapes *codeColumn[copyShape]
	t := newWork(l, &c.Work, func(s *sink, own []cell) {
		bytes.put(s, byteCount(&own[0]))
		shape := copyShape{small(&own[1]), small(&own[2]), small(&own[3])}
		rate := int64(maxMemoryRate)
		if shape.kind == copyHtoD || shape.kind == copyDtoH {
			rate = maxLinkRate
		}
		if oddSize(&own[0], s.t.dur[s.at], rate) || oddKind(&own[1], copyKinds) || oddKind(&own[2], memKinds) ||
			oddKind(&own[3], memKinds) {
			s.odd++
		}
		shapes.put(s, uint64(shape.kind)<<8^uint64(shape.src)<<4^uint64(shape.dst), shape)
	}, "bytes", "copyKind", "srcKind", "dstKind")
	bytes, shapes = t.number(&c.bytes), coded(t, &c.shape, &c.shapes)
	return t
}

// newSetTable reads CUPTI_ACTIVITY_KIND_MEMSET.
func newSetTable(l *loader) *eventTable {
	m := &l.trace.Sets
	var bytes, kind *numberColumn
	t := newWork(l, &m.Work, func(s *sink, own []cell) {
		bytes.put(s, byteCount(&own[0]))
		if oddSize(&own[0], s.t.dur[s.at], maxMemoryRate) || oddKind(&own[1], memKinds) {
			s.odd++
		}
		kind.put(s, int64(small(&own[1])))
	}, "bytes", "memKind")
	bytes, kind = t.number(&m.bytes), t.number(&m.kind)
	return t
}

// newNumbered is a table of GPU activities that has two columns of ids, which id reads.
func newNumbered(l *loader, w *Work, first, second *numbers, id func(*cell) int64, names ...string) *eventTable {
	var a, b *numberColumn
	t := newWork(l, w, func(s *sink, own []cell) {
		a.put(s, id(&own[0]))
		b.put(s, id(&own[1]))
	}, names...)
	a, b = t.number(first), t.number(second)
	return t
}
