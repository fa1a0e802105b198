package trace

import (
	"slices"
	"strings"
	"sync"
	"unsafe"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/internal/trace/pages"
	"github.com/nsys-llm/explain/analyze/internal/trace/payload"
	"github.com/nsys-llm/explain/analyze/internal/trace/source"
	"github.com/nsys-llm/explain/analyze/report/lists"
	"github.com/nsys-llm/explain/analyze/report/secret"
)

// Event types that are marks and ranges (ENUM_NSYS_EVENT_TYPE). Those with a t come from an annotation file (.nvtxt)
// that was imported.
const (
	nvtxMark      = 34
	nvtxThread    = 39 // a thread gets a name
	nvtxPushPop   = 59
	nvtxDomain    = 75 // a domain gets a name
	nvtxStartEnd  = 60
	nvtxtMark     = 65
	nvtxtPushPop  = 70
	nvtxtStartEnd = 71
)

func isRange(kind int64) bool {
	return kind == nvtxPushPop || kind == nvtxStartEnd || kind == nvtxtPushPop || kind == nvtxtStartEnd
}

// rangeTable reads NVTX_EVENTS.
type rangeTable struct {
	*eventTable
	l        *loader
	place    *codeColumn[rangePlace]
	name     *codeColumn[RangeName]
	rowids   *rowColumn
	sequence *numberColumn // nil if the table has none
	sinks    []*rangeSink
	python   []rawPython // settled
}

type rangeSink struct {
	*sink
	t     *rangeTable
	name  rangeNames
	next  int64 // the rowid that would follow that of the slot before
	calls []NCCLCall

	python        []rawPython
	pythonFrames  dict[payload.PythonFrame]
	pythonDomains [][2]int64
	unread        map[[2]int64]int64 // marks without a stack, by domain
}

func newRangeTable(l *loader) *eventTable {
	r := &l.trace.Ranges
	e := newTable(l, &r.Span)
	t := &rangeTable{eventTable: e, l: l, place: coded(e, &r.place, &r.places),
		name: coded(e, &r.name, &r.Names), rowids: &rowColumn{steps: &r.row}}
	t.columns = append(t.columns, t.rowids)
	t.place.owner = func(p *rangePlace) *owner { return &p.thread }
	t.tids = true
	t.names, t.settled = t.asks, t.after
	t.sinkOf = func(s *sink) pages.Sink {
		own := &rangeSink{t: t, sink: s, name: newRangeNames(l.opt, &l.tagging), next: minTime,
			unread: map[[2]int64]int64{}}
		own.name.dict = t.name.dicts[s.index]
		t.sinks = append(t.sinks, own)
		return own
	}
	return e
}

func (t *rangeTable) asks(info source.Table) []string {
	t.l.trace.ranges = info
	rowid := "rowid"
	if info.Rowless {
		rowid = ""
	}
	names := []string{"start", "end", "eventType", info.First(tidColumns...), "text", "textId", rowid, "sequenceNumber", "sizesId", "isBackward"}
	if info.Column("sequenceNumber") != "" {
		t.sequence = t.number(&t.l.trace.Ranges.number)
	}
	return append(names, payloadColumns(info)...)
}

// rangeColumns is how many columns come before those of payloads.
const rangeColumns = 10

// nameThread takes the rank of a process from the name that MPI gives its thread.
func (s *rangeSink) nameThread(row []cell) {
	thread, known := row[3].Whole()
	if rank, ok := namedRank(textOfRange(s.t.l.texts, row)); ok && known {
		s.t.l.tagging.Lock()
		defer s.t.l.tagging.Unlock()
		s.t.l.rangeRanks[thread&^tidBits] = rank
	}
}

// Leaf begins a piece.
func (s *rangeSink) Leaf(leaf, slot int) {
	if uint32(slot) != s.at {
		s.next = minTime // the slot before is another sink's
	}
	s.sink.Leaf(leaf, slot)
}

func (s *rangeSink) Row(row []cell) error {
	id := s.rows + 1 // of a table without rowids
	if v, ok := row[6].Whole(); ok {
		id = v
	}
	own := row[rangeColumns:]
	if len(own) > 0 && own[1].Kind != pages.Null { // few ranges have a payload
		if c, ok := s.t.l.ncclCall(s.t.l.payloads, row, own, id); ok {
			s.calls = append(s.calls, c)
		}
	}
	kind := int64(nvtxPushPop)
	if s.t.l.trace.Has.RangeType {
		kind = orNone(&row[2])
	}
	if isRange(kind) {
		s.add(row, id)
		return nil
	}
	s.rows++
	switch {
	case kind == nvtxThread:
		s.nameThread(row)
	case len(own) > 0 && (kind == nvtxMark || kind == nvtxtMark):
		s.pythonMark(row, own, id)
	case len(own) > 0 && kind == nvtxDomain:
		s.domainName(row, own)
	}
	return nil
}

// add takes the row of a range.
func (s *rangeSink) add(row []cell, id int64) {
	start, ok := row[0].Whole()
	end, ended := row[1].Whole()
	if !ended && row[1].Kind == pages.Null && s.t.l.trace.Has.RangeEnd {
		end, ended = openEnd, true
	}
	name := s.nameOf(&row[4], &row[5])
	if name+1 == s.name.holding {
		s.rows++
		return
	}
	if !s.span(start, end, ok && ended) {
		return
	}
	p := rangePlace{open: end == openEnd, text: orNone(&row[8]),
		backward: orNone(&row[9]) == 1}
	p.thread.id, p.thread.known = row[3].Whole()
	s.t.place.put(s.sink, uint64(p.thread.id)^uint64(p.text)<<32, p)
	if id != s.next {
		s.t.rowids.ids[s.index] = append(s.t.rowids.ids[s.index], far{int32(s.at), id})
	}
	s.next = id + 1
	if s.t.sequence != nil {
		s.t.sequence.put(s.sink, max(orNone(&row[7]), int64(None)))
	}
	s.name.dict.put(s.t.name.slots, s.at, name)
	s.keep()
}

func (s *rangeSink) nameOf(text, id *cell) uint32 {
	if t := textOf(text); t != "" {
		return s.name.text(clip(t))
	}
	if v, ok := textID(text, id); ok {
		return s.name.id(v, s.t.l.texts)
	}
	return s.name.text(clip(textOf(id)))
}

// textOfRange is the text of a row of NVTX_EVENTS, its own or that of its id; empty if there is none.
func textOfRange(l texts, row []cell) string {
	text := textOf(&row[4])
	if text == "" {
		text, _ = l.text(&row[5])
	}
	return text
}

// textID is the id of a range's name, which it has where it has no text of its own. Exports that write a default in
// place of what is missing have an empty text beside the id, or the id 0 beside an empty text.
func textID(text, id *cell) (int64, bool) {
	v, ok := id.Whole()
	return v, ok && (text.Kind == pages.Null || v != 0)
}

// after settles what is not in columns.
func (t *rangeTable) after() {
	t.settlePython()
	t.l.trace.NCCL = inOrder(lists.Map(t.sinks, func(s *rangeSink) []NCCLCall { return s.calls })...)
	r := &t.l.trace.Ranges
	var sizes lists.Numbering[int64] // by id
	for i := range r.places {
		p := &r.places[i]
		if p.sizes = None; p.text != int64(None) {
			p.sizes = sizes.Of(p.text)
		}
	}
	r.Sizes = lists.Map(sizes.Keys, func(id int64) string { return t.l.texts[id] })
	ranges := t.adopt
	t.adopt = func(ids *idents) {
		ranges(ids)
		t.adoptPython(ids)
	}
}

// rangeNames interns canonical range names: 97 % of the raw ones are unique in a PyTorch trace, their canonical forms
// are a hundred. It is for one goroutine.
type rangeNames struct {
	dict    *dict[RangeName]
	holding uint32 // the code of the name of ranges that are left out, plus one
	byID    map[int64]uint32
	tag     func(string) uint32
	lock    *sync.Mutex // of tag
	exact   bool        // the tag may depend on what the key leaves out
	key     []byte
	buf     []byte
	recent  [1 << nameBits]struct {
		key  string
		code uint32
	}
}

const nameBits = 11

func newRangeNames(opt *Options, lock *sync.Mutex) rangeNames {
	return rangeNames{byID: map[int64]uint32{}, tag: opt.Tag, exact: opt.Tag != nil && !opt.CoarseTag, lock: lock}
}

// unnamed stands for a range without text.
const unnamed = "(unnamed)"

// longestKey is the length of the longest text that is looked for among recent ones.
const longestKey = 256

// text returns the code of a raw name. Most differ from one seen lately in counters only that neither the canonical
// name nor the tag depends on.
func (n *rangeNames) text(raw string) uint32 {
	if raw == "" {
		raw = unnamed
	}
	if len(raw) > longestKey {
		return n.find(raw)
	}
	key := raw
	if !n.exact {
		cut, ok := kernelname.CutCounters(raw)
		if key = cut; !ok {
			n.key = kernelname.AppendRangeKey(n.key[:0], raw)
			key = unsafe.String(unsafe.SliceData(n.key), len(n.key))
		}
	}
	r := &n.recent[pages.Hash(unsafe.Slice(unsafe.StringData(key), len(key)))>>(64-nameBits)]
	if r.key == key {
		return r.code
	}
	code := n.find(raw)
	r.key, r.code = strings.Clone(key), code
	return code
}

func (n *rangeNames) find(raw string) uint32 {
	raw = secret.Tokens(raw) // a name's length is bounded already
	n.buf = kernelname.AppendRangeCanonical(n.buf[:0], raw)
	var tag uint32
	if n.tag != nil {
		n.lock.Lock()
		tag = n.tag(raw)
		n.lock.Unlock()
	}
	hint := uint64(len(n.buf))
	code, ok := n.dict.find(hint, RangeName{Text: unsafe.String(unsafe.SliceData(n.buf), len(n.buf)), Tag: tag})
	if !ok {
		code = n.dict.add(RangeName{Text: string(n.buf), Tag: tag})
	}
	if raw == payload.HoldingGIL {
		n.holding = code + 1
	}
	return code
}

func (n *rangeNames) id(id int64, texts texts) uint32 {
	code, ok := n.byID[id]
	if !ok {
		code = n.text(texts.label(id))
		n.byID[id] = code
	}
	return code
}

// WaitsForGIL recognises the ranges that --trace=python-gil writes while a thread waits for Python's lock.
func WaitsForGIL(name string) bool { return strings.EqualFold(name, "Waiting for GIL") }

// RangeText returns the raw text of the given ranges (indexes into Ranges), in their order. Raw texts are mostly
// unique, so they are not kept in memory: the few that are shown are read again.
func (t *Trace) RangeText(ranges []int) ([]string, error) {
	rows := make([]int64, len(ranges))
	for i, r := range ranges {
		rows[i] = t.Ranges.row.get(r)
	}
	found := make(map[int64]string, len(rows))
	if !t.ranges.Rowless {
		err := t.source.Fetch(t.ranges.Name, []string{t.ranges.Column("text"), t.ranges.Column("textId")},
			slices.Sorted(slices.Values(rows)), // so that a source goes forward only
			func(row int64, cells []cell) error {
				text, id := &cells[0], &cells[1]
				if s := textOf(text); s != "" {
					found[row] = public(s)
				} else if v, ok := textID(text, id); ok {
					found[row] = t.texts.label(v)
				} else if text.Kind != pages.Null || id.Kind != pages.Null {
					found[row] = public(textOf(id))
				}
				return nil
			})
		if err != nil {
			return nil, err
		}
	}
	texts := make([]string, len(ranges))
	for i, r := range ranges {
		text, ok := found[rows[i]]
		if !ok {
			text = t.Ranges.Names[t.Ranges.Name(r)].Text
		}
		texts[i] = text
	}
	return texts, nil
}
