package tracetest

import (
	"maps"
	"math"
	"slices"
	"sort"
	"strings"
)

// ScaleKernels makes the kernels whose demangled name matches factor times as long, to within 1 ns, and moves what
// comes after them: time stretches by factor wherever a matching kernel runs and passes as before elsewhere. So gaps
// keep their length (but where one device idles while a matching kernel runs on another), launches keep preceding their
// kernels, and work that was ordered stays so. Ranges and blocking calls stretch with the time they span; other GPU
// work and other API calls keep their length, or, for a factor below 1, shrink with the time they span. factor is
// positive.
func ScaleKernels(match func(name string) bool, factor float64) Edit {
	return Edit{"scale kernels", func(e *editor) error {
		var spans [][2]int64
		scaled := map[int64]bool{}
		err := e.each(kernelTable, func(rowid int64, r Row) error {
			start, ok := r["start"].AsInt()
			end, ok2 := r["end"].AsInt()
			if ok && ok2 && end > start && match(e.kernelName(r)) {
				spans = append(spans, [2]int64{start, end})
				scaled[rowid] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
		m := newStretch(spans, factor)
		return e.mapTimes(m.at, scaled)
	}}
}

// ShiftTime moves every event by delta ns, which may be negative.
func ShiftTime(delta int64) Edit {
	return Edit{"shift time", func(e *editor) error {
		return e.mapTimes(func(t int64) int64 { return t + delta }, nil)
	}}
}

// InsertGaps lets length ns pass at each of the given times, in ns of the source's clock: what starts then or later
// moves. Ranges and blocking calls that span the time stretch; GPU work and other API calls that span it keep their
// length.
func InsertGaps(length int64, at ...int64) Edit {
	at = slices.Sorted(slices.Values(at))
	return Edit{"insert gaps", func(e *editor) error {
		return e.mapTimes(func(t int64) int64 {
			passed := sort.Search(len(at), func(i int) bool { return at[i] > t })
			return t + int64(passed)*length
		}, nil)
	}}
}

// Cut keeps only the events that start in [from, to), as a capture of that window would have: kernels can lose their
// API call, and ranges that span the window are gone. Tables about the system and processes stay.
func Cut(from, to int64) Edit {
	return Edit{"cut", func(e *editor) error {
		for _, table := range slices.Clone(e.tables) {
			if !e.has(table, "start") && !e.has(table, "timestamp") {
				continue
			}
			err := EditRows(table, func(r Row, _ func(Value) string) bool {
				t := startOf(r)
				return t >= from && t < to
			}).apply(e)
			if err != nil {
				return err
			}
		}
		return nil
	}}
}

// kernelName is a kernel's demangled name, or its short one where that is missing.
func (e *editor) kernelName(r Row) string {
	if s := e.text(r["demangledName"]); s != "" {
		return s
	}
	return e.text(r["shortName"])
}

// mapTimes moves every event through f, which never decreases. Rows of the kernel table in scaled take their length
// from f too, like ranges and blocking calls; other work and calls keep theirs where f gives them room.
func (e *editor) mapTimes(f func(int64) int64, scaled map[int64]bool) error {
	times := []string{"timestamp", "startedAt", "endedAt", "openedAt", "closedAt", "startTime", "stopTime", "start", "end"}
	asked := append([]string{"duration", "nameId"}, times...)
	for _, table := range e.tables {
		if !slices.ContainsFunc(times, func(c string) bool { return e.has(table, c) }) {
			continue
		}
		var changes []change
		has := slices.DeleteFunc(slices.Clone(asked), func(c string) bool { return !e.has(table, c) })
		err := e.some(table, has, func(rowid int64, r Row) error {
			set := Row{}
			for _, c := range times {
				if t, ok := r[c].AsInt(); ok {
					set[c] = Int(f(t))
				}
			}
			start, ok := r["start"].AsInt()
			end, ok2 := r["end"].AsInt()
			if ok && ok2 && (end < start || e.rigid(table, r) && (table != kernelTable || !scaled[rowid])) {
				set["end"] = Int(f(start) + min(end-start, f(max(end, start))-f(start)))
			}
			if first, ok := set["startTime"].AsInt(); ok && e.has(table, "duration") {
				last, _ := set["stopTime"].AsInt()
				set["duration"] = Int(last - first)
			}
			maps.DeleteFunc(set, func(c string, v Value) bool { return r[c] == v })
			if len(set) > 0 {
				changes = append(changes, change{rowid: rowid, set: set})
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := e.update(table, changes); err != nil {
			return err
		}
	}
	return nil
}

// rigid says whether a row's length is its own: GPU work, and API calls that wait for nothing.
func (e *editor) rigid(table string, r Row) bool {
	switch table {
	case kernelTable, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE":
		return true
	case "CUPTI_ACTIVITY_KIND_RUNTIME":
		name := e.text(r["nameId"])
		copies := strings.Contains(name, "Memcpy") && !strings.Contains(name, "Async")
		return !copies && !strings.Contains(name, "Synchronize")
	default:
		return false
	}
}

// stretch is a time map that runs factor times as long inside some spans of time and as before elsewhere.
type stretch struct {
	spans  [][2]int64 // disjoint, ascending
	before []int64    // ns covered by the spans before each
	factor float64
}

// newStretch makes the union of the spans.
func newStretch(spans [][2]int64, factor float64) *stretch {
	slices.SortFunc(spans, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })
	m := &stretch{factor: factor}
	covered := int64(0)
	for _, s := range spans {
		n := len(m.spans)
		if n > 0 && s[0] <= m.spans[n-1][1] {
			last := &m.spans[n-1]
			covered += max(0, s[1]-last[1])
			last[1] = max(last[1], s[1])
			continue
		}
		m.spans = append(m.spans, s)
		m.before = append(m.before, covered)
		covered += s[1] - s[0]
	}
	return m
}

// at is where t comes to lie.
func (m *stretch) at(t int64) int64 {
	i := sort.Search(len(m.spans), func(i int) bool { return m.spans[i][0] > t }) - 1
	if i < 0 {
		return t
	}
	covered := m.before[i] + min(t, m.spans[i][1]) - m.spans[i][0]
	return t + int64(math.Round(float64(covered)*(m.factor-1)))
}
