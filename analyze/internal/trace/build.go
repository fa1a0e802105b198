package trace

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/nsys-llm/explain/analyze/internal/spill"
	"github.com/nsys-llm/explain/analyze/internal/trace/span"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Event tables are read in pieces, by several goroutines, in whatever order is fast. Each piece, a leaf of the table's
// tree, has slots for its rows in the columns; each goroutine has a sink with dictionaries of its own. After reading,
// settling closes the gaps between the pieces, in place, and merges the dictionaries, numbered in the order in which
// the table's rows mention their entries. The result does not depend on which goroutine read which piece.

// piece is where the rows of one leaf are.
type piece struct {
	base int64  // start of its first row; starts count from here
	slot uint32 // of the first row
	n    uint32 // rows kept
	by   uint32 // which sink read it
}

// far is a value that does not fit its column, by slot or, once settled, by row.
type far struct {
	at int32
	v  int64
}

func byIndex(list []far) map[int]int64 {
	m := make(map[int]int64, len(list))
	for _, f := range list {
		m[int(f.at)] = f.v
	}
	return m
}

// store holds the columns of an event table while it is being read.
type store struct {
	arena  *spill.Arena
	pieces []piece
	off    []uint32 // start minus that of the piece
	dur    []uint32
	wide   []*[]uint32 // the columns of numbers: these and the table's others
	coded  []*[]uint16 // those of codes
}

// reserve makes room for a table of known size.
func (s *store) reserve(leaves, slots int) {
	s.pieces = spill.Make[piece](s.arena, leaves)
	for _, c := range s.wide {
		*c = spill.Make[uint32](s.arena, slots)
	}
	for _, c := range s.coded {
		*c = spill.Make[uint16](s.arena, slots)
	}
}

// grow makes room for another piece of n rows of a table of unknown size.
func (s *store) grow(n int) (leaf, slot int) {
	leaf = len(s.pieces)
	slot = leaf * n
	s.pieces = append(s.pieces, piece{})
	if slot+n > len(s.off) {
		for _, c := range s.wide {
			*c = append(*c, make([]uint32, max(n, len(*c)))...)
		}
		for _, c := range s.coded {
			*c = append(*c, make([]uint16, max(n, len(*c)))...)
		}
	}
	return leaf, slot
}

// sink collects the rows that one goroutine adds to an event table.
type sink struct {
	t       *eventTable
	index   int
	piece   *piece
	at      uint32 // next slot
	rows    int64
	skipped int64
	odd     int64 // rows with an impossible value
	total   int64 // of the durations; maxTotal+1 means more than that
	starts  []far // by slot
	lengths []far // by slot
}

// Leaf begins a piece.
func (s *sink) Leaf(leaf, slot int) {
	s.piece, s.at = &s.t.pieces[leaf], uint32(slot)
	*s.piece = piece{slot: uint32(slot), by: uint32(s.index)}
}

// Row takes a row.
func (s *sink) Row(row []cell) error {
	s.t.row(s, row)
	return nil
}

// times adds the times of a row, or counts it as skipped and returns false.
func (s *sink) times(start, end *cell) bool {
	a, ok1 := start.Whole()
	e, ok2 := end.Whole()
	return s.span(a, e, ok1 && ok2 && e != openEnd)
}

// span adds the times of a row if they make a sound event; known says that the cells hold them at all. An end of
// openEnd is that of a range without end.
func (s *sink) span(start, end int64, known bool) bool {
	s.rows++
	open := end == openEnd
	if open {
		end = start
	}
	if !known || !sound(start, end) {
		s.skipped++
		return false
	}
	s.total = min(s.total+end-start, maxTotal+1)
	p := s.piece
	if p.n == 0 {
		p.base = start
	}
	at := s.at
	s.t.off[at], s.t.dur[at] = farAway, farAway
	if o := uint64(start - p.base); o < farAway {
		s.t.off[at] = uint32(o)
	} else {
		s.starts = append(s.starts, far{int32(at), start})
	}
	length := end - start
	if open {
		length = span.Open
	}
	if d := uint64(length); d < farAway {
		s.t.dur[at] = uint32(d)
	} else {
		s.lengths = append(s.lengths, far{int32(at), length})
	}
	return true
}

// keep ends a row.
func (s *sink) keep() {
	s.piece.n++
	s.at++
}

// dict numbers the distinct values a sink meets, in the order in which it meets them.
type dict[K comparable] struct {
	codesOf[K]
	far []far             // codes too large for their column, by slot
	ids codesOf[[2]int64] // that rows name values by, so that the text behind them is not read again
	of  []uint32          // by the code of the ids: that of their value
}

// codesOf numbers distinct values.
type codesOf[K comparable] struct {
	keys   []K
	index  map[K]uint32
	recent [1 << recentBits]struct {
		key  K
		code uint32 // plus 1
	}
}

const recentBits = 8

// farCode in a column marks a code that is stored apart.
const farCode = 1<<16 - 1

// put writes a code into a column.
func (d *dict[K]) put(column []uint16, at, code uint32) {
	if code < farCode {
		column[at] = uint16(code)
		return
	}
	column[at] = farCode
	d.far = append(d.far, far{int32(at), int64(code)})
}

// find returns the number of a value that was met before. hint is any hash of it, which may be poor.
func (d *codesOf[K]) find(hint uint64, key K) (code uint32, ok bool) {
	r := &d.recent[hint*0x9e3779b97f4a7c15>>(64-recentBits)]
	if r.code > 0 && r.key == key {
		return r.code - 1, true
	}
	if code, ok = d.index[key]; ok {
		r.key, r.code = d.keys[code], code+1
	}
	return code, ok
}

// add numbers a value that find did not know. The dictionary keeps it.
func (d *codesOf[K]) add(key K) uint32 {
	code := uint32(len(d.keys))
	if d.index == nil {
		d.index = map[K]uint32{}
	}
	d.index[key] = code
	d.keys = append(d.keys, key)
	return code
}

// code returns the number of a value that holds no text of a row.
func (d *codesOf[K]) code(hint uint64, key K) uint32 {
	if code, ok := d.find(hint, key); ok {
		return code
	}
	return d.add(key)
}

// byIDs is the code of the value that a pair of ids stands for, if that is known.
func (d *dict[K]) byIDs(a, b int64) (code uint32, ok bool) {
	i, ok := d.ids.find(uint64(a), [2]int64{a, b})
	if ok {
		code = d.of[i]
	}
	return code, ok
}

// stand notes the code of the value that a pair of ids stands for, which byIDs did not know.
func (d *dict[K]) stand(a, b int64, code uint32) {
	d.ids.add([2]int64{a, b})
	d.of = append(d.of, code)
}

// eachPiece calls f for each piece that holds rows, in order of row: to is the row its first slot becomes.
func (s *store) eachPiece(f func(p *piece, to int)) (rows int) {
	for i := range s.pieces {
		if p := &s.pieces[i]; p.n > 0 {
			f(p, rows)
			rows += int(p.n)
		}
	}
	return rows
}

func (s *store) kept() int { return s.eachPiece(func(*piece, int) {}) }

// byRow merges the values that sinks stored apart by slot, by row.
func (s *store) byRow(lists ...[]far) []far {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b far) int { return int(a.at) - int(b.at) })
	k := 0
	s.eachPiece(func(p *piece, to int) {
		for ; k < len(all) && all[k].at < int32(p.slot+p.n); k++ {
			all[k].at += int32(to) - int32(p.slot)
		}
	})
	return all
}

// settleSpan merges the times of the pieces. It reports whether rows are sorted by start, and the first and the last
// time.
func (s *store) settleSpan(sinks []*sink) (times Span, facts spanFacts) {
	var starts, lengths [][]far
	for _, k := range sinks {
		starts, lengths = append(starts, k.starts), append(lengths, k.lengths)
	}
	length, before := byIndex(s.byRow(lengths...)), byIndex(s.byRow(starts...))
	each := func(visit func(row int, start, length int64)) {
		s.eachPiece(func(p *piece, to int) {
			off, dur := s.off[p.slot:p.slot+p.n], s.dur[p.slot:p.slot+p.n]
			for k, o := range off {
				row := to + k
				start, d := p.base+int64(o), int64(dur[k])
				if o == farAway {
					start = before[row]
				}
				if d == farAway {
					d = length[row]
				}
				visit(row, start, d)
			}
		})
	}
	facts = newFacts()
	var fit span.Fit
	each(func(_ int, start, length int64) {
		facts.add(start, length)
		fit.Add(start, length)
	})
	b := fit.Over(s.arena, s.off, s.dur)
	each(b.Put)
	return b.Done(s.arena), facts
}

// spanFacts is collected about a table's times on the way.
type spanFacts struct {
	sorted      bool
	first, last int64 // first start; last end, or start if that is later
	lastStart   int64
}

func newFacts() spanFacts {
	return spanFacts{sorted: true, first: maxTime, last: minTime, lastStart: minTime}
}

func (f *spanFacts) add(start, length int64) {
	if start < f.lastStart {
		f.sorted = false
	}
	f.lastStart = max(f.lastStart, start)
	f.first = min(f.first, start)
	f.last = max(f.last, start+max(length, 0))
}

// settleCodes closes the gaps of a column of codes and merges the sinks' dictionaries: entries with equal groups become
// one entry, that of the first row.
func settleCodes[K comparable](s *store, column []uint16, dicts []*dict[K], group func(K) K) (codes, []K) {
	var groups lists.Numbering[K]
	to := make([][]int32, len(dicts))
	for i, d := range dicts {
		to[i] = make([]int32, len(d.keys))
		for k, key := range d.keys {
			if group != nil {
				key = group(key)
			}
			to[i][k] = groups.Of(key)
		}
	}
	m := merger{to: to, final: make([]int32, len(groups.Keys)),
		far: s.byRow(lists.Map(dicts, func(d *dict[K]) []far { return d.far })...)}
	for i := range m.final {
		m.final[i] = None
	}
	n := s.kept()
	var c codes
	switch {
	case n == 0:
	case len(groups.Keys) <= 1<<8:
		c.w8 = settled[uint8](s, &m, column, n)
	case len(groups.Keys) <= 1<<16:
		c.w16 = settled[uint16](s, &m, column, n)
	default:
		c.w32 = settled[uint32](s, &m, column, n)
	}
	keys := make([]K, len(m.firsts))
	for i, f := range m.firsts {
		keys[i] = dicts[f.by].keys[f.code]
	}
	return c, keys
}

// merger renumbers codes in order of first appearance.
type merger struct {
	to     [][]int32 // by sink and its code: number of the group
	final  []int32   // by number of the group: final code, or None so far
	firsts []struct{ by, code uint32 }
	far    []far // codes stored apart that are still to come, by row
}

func (m *merger) first(by, code uint32) int32 {
	n := int32(len(m.firsts))
	m.final[m.to[by][code]] = n
	m.firsts = append(m.firsts, struct{ by, code uint32 }{by, code})
	return n
}

// settled writes the final codes of n rows over those of the sinks.
func settled[T uint8 | uint16 | uint32](s *store, m *merger, from []uint16, n int) []T {
	out := spill.Narrow[T](s.arena, from, n)
	s.eachPiece(func(p *piece, at int) {
		to := m.to[p.by]
		for k, short := range from[p.slot : p.slot+p.n] {
			code := uint32(short)
			if short == farCode {
				code, m.far = uint32(m.far[0].v), m.far[1:]
			}
			c := m.final[to[code]]
			if c == None {
				c = m.first(p.by, code)
			}
			out[at+k] = T(c)
		}
	})
	var one T
	if size := unsafe.Sizeof(one); size > unsafe.Sizeof(from[0]) {
		spill.Free(s.arena, from)
	} else {
		spill.Cut(s.arena, from, (n*int(size)+1)/2)
	}
	return out
}

// orderOf is the rows in order of start, equal starts in order of row.
func orderOf(a *spill.Arena, s *Span) []int32 {
	type key struct {
		start int64
		row   int32
	}
	keys := spill.Make[key](a, s.Len())
	for i := range keys {
		keys[i] = key{s.Start(i), int32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.row, b.row))
	})
	order := spill.Make[int32](a, len(keys))
	for i := range keys {
		order[i] = keys[i].row
	}
	spill.Free(a, keys)
	return order
}
