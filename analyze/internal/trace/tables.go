package trace

import (
	"slices"
	"strconv"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
)

// workColumns are the columns every GPU activity table has; the process column differs between exports.
func workColumns(t tableInfo) (names []string, pid string) {
	pid = t.first("globalPid", "pid", "processId")
	return []string{"start", "end", "deviceId", "streamId", "contextId", t.first("correlationId", "correlation_id"), pid}, pid
}

func (w *Work) add(row []cell, pid string, ids *idents, stat *eventTable) bool {
	s, e, ok := stat.times(&row[0], &row[1])
	if !ok {
		return false
	}
	w.start, w.end = append(w.start, s), append(w.end, e)
	w.device = append(w.device, ident(&row[2]))
	w.stream = append(w.stream, ident(&row[3]))
	w.context = append(w.context, ident(&row[4]))
	w.corr = append(w.corr, orNone(&row[5]))
	proc := None
	if v, ok := row[6].int(); ok {
		proc = ids.of(globalPid(pid, v))
	}
	w.proc = append(w.proc, proc)
	return true
}

func (w *Work) permute(order []int32) {
	permute(&w.device, order)
	permute(&w.stream, order)
	permute(&w.context, order)
	permute(&w.corr, order)
	permute(&w.proc, order)
}

func (l *loader) loadKernels(table tableInfo, ids *idents, stat *eventTable) error {
	k := &l.trace.Kernels
	names, pid := workColumns(table)
	base := len(names)
	names = append(names, "demangledName", "shortName", "mangledName", "name", "graphNodeId",
		"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ", "registersPerThread", "staticSharedMemory", "dynamicSharedMemory")
	has := &l.trace.Has
	has.KernelPID, has.KernelDevice = pid != "", table.column("deviceId") != ""
	has.KernelCorrelation, has.KernelGraphNode = names[5] != "", table.column("graphNodeId") != ""
	byID := map[int64]int32{}
	byText := map[string]int32{}
	configs := map[LaunchConfig]int32{}
	err := l.scan(table, names, stat, func(row []cell) error {
		if !k.add(row, pid, ids, stat) {
			return nil
		}
		k.name = append(k.name, l.kernelName(row[base:base+4], byID, byText))
		node := row[base+4].kind == isInt && row[base+4].i != 0
		k.node = append(k.node, node)
		var n [9]int32
		for i := range n {
			n[i] = extent(&row[base+5+i])
		}
		c := LaunchConfig{Grid: [3]int32(n[0:3]), Block: [3]int32(n[3:6]), Registers: n[6], SharedStatic: n[7], SharedDynamic: n[8]}
		at, ok := configs[c]
		if !ok {
			at = int32(len(k.Configs))
			configs[c] = at
			k.Configs = append(k.Configs, c)
		}
		k.config = append(k.config, at)
		return nil
	})
	stat.loaded(&k.Span, func(order []int32) {
		k.permute(order)
		permute(&k.name, order)
		permute(&k.node, order)
		permute(&k.config, order)
	})
	return err
}

// kernelName resolves demangledName, shortName, mangledName and name, in that order. An id without a string keeps its
// row, as #<id>.
func (l *loader) kernelName(cells []cell, byID map[int64]int32, byText map[string]int32) int32 {
	k := &l.trace.Kernels
	first := &cells[0]
	if first.kind == isInt {
		if i, ok := byID[first.i]; ok {
			return i
		}
	}
	text, unresolved, direct := "", "", false
	for i := range cells {
		if s, ok := l.text(&cells[i]); ok && s != "" {
			text, direct = s, i == 0
			break
		}
		if cells[i].kind == isInt && unresolved == "" {
			unresolved = "#" + strconv.FormatInt(cells[i].i, 10)
		}
	}
	if text == "" {
		text = unresolved
	}
	if text == "" {
		text = "#unnamed"
	}
	i, ok := byText[text]
	if !ok {
		i = int32(len(k.Names))
		byText[text] = i
		short, _ := l.text(&cells[1])
		k.Names = append(k.Names, KernelName{Name: text, Short: short})
	}
	if direct && first.kind == isInt {
		byID[first.i] = i
	}
	return i
}

func (l *loader) loadCopies(table tableInfo, ids *idents, stat *eventTable) error {
	c := &l.trace.Copies
	names, pid := workColumns(table)
	base := len(names)
	l.trace.Has.CopyKinds = table.column("srcKind") != "" && table.column("dstKind") != ""
	err := l.scan(table, append(names, "bytes", "copyKind", "srcKind", "dstKind"), stat, func(row []cell) error {
		if !c.add(row, pid, ids, stat) {
			return nil
		}
		c.bytes = append(c.bytes, byteCount(&row[base]))
		c.kind = append(c.kind, small(&row[base+1]))
		c.src = append(c.src, small(&row[base+2]))
		c.dst = append(c.dst, small(&row[base+3]))
		return nil
	})
	stat.loaded(&c.Span, func(order []int32) {
		c.permute(order)
		permute(&c.bytes, order)
		permute(&c.kind, order)
		permute(&c.src, order)
		permute(&c.dst, order)
	})
	return err
}

func (l *loader) loadSets(table tableInfo, ids *idents, stat *eventTable) error {
	m := &l.trace.Sets
	names, pid := workColumns(table)
	base := len(names)
	err := l.scan(table, append(names, "bytes", "memKind"), stat, func(row []cell) error {
		if !m.add(row, pid, ids, stat) {
			return nil
		}
		m.bytes = append(m.bytes, byteCount(&row[base]))
		m.kind = append(m.kind, small(&row[base+1]))
		return nil
	})
	stat.loaded(&m.Span, func(order []int32) {
		m.permute(order)
		permute(&m.bytes, order)
		permute(&m.kind, order)
	})
	return err
}

func (l *loader) loadGraphs(table tableInfo, ids *idents, stat *eventTable) error {
	g := &l.trace.Graphs
	names, pid := workColumns(table)
	base := len(names)
	err := l.scan(table, append(names, "graphId", "graphExecId"), stat, func(row []cell) error {
		if !g.add(row, pid, ids, stat) {
			return nil
		}
		g.graph = append(g.graph, orNone(&row[base]))
		g.exec = append(g.exec, orNone(&row[base+1]))
		return nil
	})
	stat.loaded(&g.Span, func(order []int32) {
		g.permute(order)
		permute(&g.graph, order)
		permute(&g.exec, order)
	})
	return err
}

func (l *loader) loadSyncs(table tableInfo, ids *idents, stat *eventTable) error {
	s := &l.trace.Syncs
	pid := table.first("globalPid", "pid", "processId")
	err := l.scan(table, []string{"start", "end", "syncType", pid, "correlationId"}, stat, func(row []cell) error {
		a, e, ok := stat.times(&row[0], &row[1])
		if !ok {
			return nil
		}
		s.start, s.end = append(s.start, a), append(s.end, e)
		s.kind = append(s.kind, small(&row[2]))
		proc := None
		if v, ok := row[3].int(); ok {
			proc = ids.of(globalPid(pid, v))
		}
		s.proc = append(s.proc, proc)
		s.corr = append(s.corr, orNone(&row[4]))
		return nil
	})
	stat.loaded(&s.Span, func(order []int32) {
		permute(&s.kind, order)
		permute(&s.proc, order)
		permute(&s.corr, order)
	})
	return err
}

func (l *loader) loadAPI(table tableInfo, ids *idents, stat *eventTable) error {
	a := &l.trace.API
	has := &l.trace.Has
	tid := table.first("globalTid", "global_tid")
	pid := ""
	if ids.tids = tid != ""; !ids.tids {
		pid = table.first("globalPid", "pid", "processId")
		ids.tids = true // a process without thread is thread 0 of it
	}
	corr := table.first("correlationId", "correlation_id")
	has.APIThread, has.APICorrelation, has.APIReturn = tid != "", corr != "", table.column("returnValue") != ""
	byID, byText := map[int64]int32{}, map[string]int32{}
	intern := func(c *cell) int32 {
		if c.kind == isInt {
			if i, ok := byID[c.i]; ok {
				return i
			}
		}
		raw, ok := l.text(c)
		if !ok {
			raw = "#unnamed"
			if c.kind == isInt {
				raw = "#" + strconv.FormatInt(c.i, 10)
			}
		}
		name := StripSuffix(raw)
		i, ok := byText[name]
		if !ok {
			i = int32(len(a.Names))
			byText[name] = i
			a.Names = append(a.Names, classifyAPI(name))
		}
		if c.kind == isInt {
			byID[c.i] = i
		}
		return i
	}
	err := l.scan(table, []string{"start", "end", tid + pid, corr, table.first("nameId", "name"), "returnValue"}, stat, func(row []cell) error {
		s, e, ok := stat.times(&row[0], &row[1])
		if !ok {
			return nil
		}
		a.start, a.end = append(a.start, s), append(a.end, e)
		thread := None
		if v, ok := row[2].int(); ok {
			if pid != "" {
				v = globalPid(pid, v)
			}
			thread = ids.of(v)
		}
		a.thread = append(a.thread, thread)
		a.corr = append(a.corr, orNone(&row[3]))
		a.name = append(a.name, intern(&row[4]))
		ret, _ := row[5].int()
		a.ret = append(a.ret, int32(ret))
		return nil
	})
	stat.loaded(&a.Span, func(order []int32) {
		permute(&a.thread, order)
		permute(&a.corr, order)
		permute(&a.name, order)
		permute(&a.ret, order)
	})
	return err
}

func (l *loader) loadOverhead(table tableInfo, ids *idents, stat *eventTable) error {
	ids.tids = true
	return l.scan(table, []string{"start", "end", "globalTid", "nameId"}, stat, func(row []cell) error {
		s, e, ok := stat.times(&row[0], &row[1])
		if !ok {
			return nil
		}
		thread := None
		if v, ok := row[2].int(); ok {
			thread = ids.of(v)
		}
		name, _ := l.text(&row[3])
		l.trace.Overhead = append(l.trace.Overhead, Overhead{Start: s, End: e, Thread: thread, Name: name})
		return nil
	})
}

// nvtx event types that are ranges (ENUM_NSYS_EVENT_TYPE): push/pop, start/end, and push/pop with a registered string.
const (
	nvtxMark     = 34
	nvtxPushPop  = 59
	nvtxStartEnd = 60
	nvtxPushPopT = 70
)

func (l *loader) loadRanges(table tableInfo, ids *idents, stat *eventTable) error {
	r := &l.trace.Ranges
	has := &l.trace.Has
	ids.tids = true
	tid := table.first("globalTid", "global_tid")
	has.RangeEnd, has.RangeThread, has.RangeType = table.column("end") != "", tid != "", table.column("eventType") != ""
	l.trace.raw = rangeText{table: table, strings: l.strings}
	rowid := "rowid"
	if table.View {
		rowid = ""
	}
	names := newRangeNames(l.opt.Tag)
	var line int64
	err := l.scan(table, []string{"start", "end", "eventType", tid, "text", "textId", rowid}, stat, func(row []cell) error {
		line++
		kind := int64(nvtxPushPop)
		if has.RangeType {
			kind = orNone(&row[2])
		}
		switch kind {
		case nvtxPushPop, nvtxStartEnd, nvtxPushPopT:
		case nvtxMark:
			l.trace.Marks++
			return nil
		default:
			return nil
		}
		s, ok := row[0].int()
		e, ended := row[1].int()
		if !ended && row[1].kind == isNull && has.RangeEnd {
			e = openEnd
		}
		open := e == openEnd
		if open {
			e = s
		}
		if !ok || !stat.sound(s, e) || (!ended && !open) {
			stat.Skipped++
			return nil
		}
		stat.total += e - s
		if open {
			e = openEnd
		}
		r.start, r.end = append(r.start, s), append(r.end, e)
		r.open = append(r.open, open)
		r.startEnd = append(r.startEnd, kind == nvtxStartEnd)
		thread := None
		if v, ok := row[3].int(); ok {
			thread = ids.of(v)
		}
		r.thread = append(r.thread, thread)
		id := line
		if v, ok := row[6].int(); ok {
			id = v
		}
		r.row = append(r.row, id)
		var at int32
		switch {
		case row[4].kind == isText || row[4].kind == isBlob:
			at = names.text(clip(row[4].s))
		case row[5].kind == isInt:
			at = names.id(row[5].i, l.strings)
		case row[5].kind == isText:
			at = names.text(clip(row[5].s))
		default:
			at = names.text("")
		}
		r.name = append(r.name, at)
		return nil
	})
	r.Names = names.list
	stat.loaded(&r.Span, func(order []int32) {
		permute(&r.open, order)
		permute(&r.startEnd, order)
		permute(&r.thread, order)
		permute(&r.row, order)
		permute(&r.name, order)
	})
	return err
}

// rangeNames interns canonical range names: 97 % of the raw ones are unique in a PyTorch trace, their canonical forms
// are a hundred.
type rangeNames struct {
	list  []RangeName
	index map[string]int32 // canonical text, then the tag if there is one
	byID  map[int64]int32
	tag   func(string) uint32
	buf   []byte
}

func newRangeNames(tag func(string) uint32) *rangeNames {
	return &rangeNames{index: map[string]int32{}, byID: map[int64]int32{}, tag: tag}
}

// unnamed stands for a range without text.
const unnamed = "(unnamed)"

func (n *rangeNames) text(raw string) int32 {
	if raw == "" {
		raw = unnamed
	}
	n.buf = kernelname.AppendRangeCanonical(n.buf[:0], raw)
	length := len(n.buf)
	var tag uint32
	if n.tag != nil {
		if tag = n.tag(raw); tag != 0 {
			n.buf = append(n.buf, 0)
			n.buf = strconv.AppendUint(n.buf, uint64(tag), 10)
		}
	}
	i, ok := n.index[string(n.buf)]
	if !ok {
		i = int32(len(n.list))
		n.index[string(slices.Clone(n.buf))] = i
		n.list = append(n.list, RangeName{Text: string(n.buf[:length]), Tag: tag})
	}
	return i
}

func (n *rangeNames) id(id int64, strings map[int64]string) int32 {
	if i, ok := n.byID[id]; ok {
		return i
	}
	s, ok := strings[id]
	if !ok {
		s = "#" + strconv.FormatInt(id, 10)
	}
	i := n.text(s)
	n.byID[id] = i
	return i
}

// rangeText remembers where raw range names are, to read again the few that are shown.
type rangeText struct {
	table   tableInfo
	strings map[int64]string
}
