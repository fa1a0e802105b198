package ncu

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"unique"

	"github.com/nsys-llm/explain/analyze/internal/kernelname"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Launch is one kernel launch that ncu measured, combined from all pages that hold it.
type Launch struct {
	Kernel  *Kernel
	ID      int64 // of the launch in its report
	PID     int64 // of its process; 0 if the page does not say
	Device  int   // -1 if the page does not say
	Process string
	Grid    string // (x, y, z); empty if the page does not say
	Block   string
	CC      string // compute capability, 9.0
	Flops   Flops
	counts  counters
	name    string // as the file spells it
	folder  string // the kernel's name in the path of the file: kernel_0001_67bdb7e2…

	value [numFields]float64 // NaN if unknown
	digit [numFields]float64 // one unit of the last printed digit
	rank  [numFields]uint8   // of the name that the value has on its page
	seen  map[string]bool    // metrics, on a page without IDs
	page  *header            // the last one it was found on
}

// Get is the value of a field; nil if no page has it.
func (l *Launch) Get(f Field) *float64 {
	if v := l.value[f]; !math.IsNaN(v) {
		return &v
	}
	return nil
}

// DRAMThroughput is bytes per second over device memory, in both directions: bytes over time if both were measured,
// else the value that ncu prints; nil if neither is known.
func (l *Launch) DRAMThroughput() *float64 {
	if b, d := l.Bytes(), l.Get(Duration); b != nil && d != nil && *d > 0 {
		return new(*b / *d * 1e9)
	}
	return cmp.Or(l.Get(DRAMRate), l.both(DRAMReadRate, DRAMWriteRate))
}

// Bytes are the bytes read from and written to device memory, as counted; nil if they were not.
func (l *Launch) Bytes() *float64 { return cmp.Or(l.Get(DRAMBytes), l.both(DRAMRead, DRAMWrite)) }

// both is the sum of two fields; nil if one is not known.
func (l *Launch) both(f, g Field) *float64 {
	v, w := l.Get(f), l.Get(g)
	if v == nil || w == nil {
		return nil
	}
	return new(*v + *w)
}

func newLaunch(h *header, fields []string, id int64, folder string) *Launch {
	keep := func(s string) string { return unique.Make(s).Value() } // a substring would keep its whole line in memory
	b := &Launch{ID: id, PID: h.process(fields), Device: -1, folder: folder, name: keep(cell(fields, h.kernel)),
		page: h, counts: counters{}}
	if h.id < 0 {
		b.seen = map[string]bool{}
	}
	for f := range b.value {
		b.value[f] = math.NaN()
	}
	if d, err := strconv.Atoi(cell(fields, h.device)); err == nil && d >= 0 && d < 1<<16 {
		b.Device = d
	}
	b.Process = keep(programs().FindString(cell(fields, h.program)))
	b.Grid, b.Block = keep(triple(cell(fields, h.grid))), keep(triple(cell(fields, h.block)))
	b.CC = keep(capability().FindString(cell(fields, h.cc)))
	return b
}

var (
	capability = pattern.New(`^[0-9]{1,2}\.[0-9]$`)
	dimensions = pattern.New(`^\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)$`)
	// programs are the names of processes that do not identify their user.
	programs = pattern.New(`^(python[0-9.]{0,8}|vllm|sglang|tritonserver|trtllm-serve|a\.out)$`)
)

// triple is a grid or a block in ncu's notation, if the text is one.
func triple(s string) string {
	m := dimensions().FindStringSubmatch(s)
	if m == nil {
		return ""
	}
	return "(" + m[1] + ", " + m[2] + ", " + m[3] + ")"
}

// set takes the value of one metric, if it belongs to a field or a counter. It reports whether a value was taken, and
// whether one was dropped because of its unit.
func (b *Launch) set(metric string, s scale, cell string, st style) (taken, badUnit bool) {
	v, ok := st.parse(cell, s)
	if !ok || v.value != 0 && !(v.value > tiniest && v.value < largest) { // n/a; or a value that no GPU can reach
		return false, false
	}
	if c := counterOf(metric); c.name != "" {
		if s.counts() {
			b.counts[c] = v.value
		}
		return s.counts(), !s.counts()
	}
	for _, n := range named[metric] {
		fit, fits := n.field.fit(s, metric)
		if !fits {
			badUnit = true
			continue
		}
		if fit != s {
			v, _ = st.parse(cell, fit) // it was a number before
		}
		if quantities[n.field].want == ratio && v.value > mostRatio {
			continue
		}
		taken = true
		if math.IsNaN(b.value[n.field]) || n.rank < b.rank[n.field] {
			b.value[n.field], b.digit[n.field], b.rank[n.field] = v.value, v.digit, n.rank
		}
	}
	return taken, badUnit && !taken
}

// Values outside these bounds are damage: sums and quotients of values inside are finite.
const (
	tiniest = 1e-12
	largest = 1e24
)

// mostRatio is a share that cannot occur. ncu's passes differ, so shares slightly over 1 do occur.
const mostRatio = 10

// agrees reports whether two pages may describe one launch: the values that both hold are equal, or equal after
// rounding to the page with fewer digits.
func (l *Launch) agrees(o *Launch) bool {
	if l.Device >= 0 && o.Device >= 0 && l.Device != o.Device || l.Grid != "" && o.Grid != "" && l.Grid != o.Grid ||
		l.Block != "" && o.Block != "" && l.Block != o.Block {
		return false
	}
	for f := range l.value {
		a, b := l.value[f], o.value[f]
		if math.IsNaN(a) || math.IsNaN(b) {
			continue
		}
		rounding := 1e-9 * math.Abs(a)
		if l.digit[f] != o.digit[f] {
			rounding += (l.digit[f] + o.digit[f]) / 2 * 1.001
		}
		if math.Abs(a-b) > rounding {
			return false
		}
	}
	return true
}

// merge adds the values of another page for this launch. Of two values the one with more digits is kept.
func (l *Launch) merge(o *Launch) {
	for f := range l.value {
		if math.IsNaN(l.value[f]) || o.digit[f] < l.digit[f] && !math.IsNaN(o.value[f]) {
			l.value[f], l.digit[f] = o.value[f], o.digit[f]
		}
	}
	for c, v := range o.counts {
		if _, ok := l.counts[c]; !ok {
			l.counts[c] = v
		}
	}
	l.Grid, l.Block, l.CC = cmp.Or(l.Grid, o.Grid), cmp.Or(l.Block, o.Block), cmp.Or(l.CC, o.CC)
	l.Process, l.folder = cmp.Or(l.Process, o.Process), cmp.Or(l.folder, o.folder)
	if l.Device < 0 {
		l.Device = o.Device
	}
}

// folderOf is llm-perf-opt's name for the folders and files of a kernel: kernel_0001, or kernel_0001_ and a hash.
func folderOf(path string) string {
	list := inPath().FindAllStringSubmatch(path, -1)
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1][1]
}

var inPath = pattern.New(`(?:^|[^A-Za-z0-9])(kernel_[0-9]{4}(?:_[0-9a-f]{32})?)(?:[^A-Za-z0-9]|$)`)

// merger combines launches that several pages hold: raw and details pages of one report, its sections one by one,
// exports by two versions.
type merger struct {
	launches  []*Launch
	at        map[key][]*Launch
	canonical map[string]string // of the names met
	pages     int64
}

// key is equal for the same launch on several pages of one report.
type key struct {
	id, pid int64
	kernel  string
}

// maxSame bounds how many launches of one key are compared with a new one: in a folder of many runs each may have a
// launch 0 of the same process number.
const maxSame = 64

// add takes the launches of a file. A launch that another page holds with the same values is the same one: two runs
// never agree to the last digit.
func (m *merger) add(launches []*Launch) {
	for _, l := range launches {
		if l.PID == 0 {
			m.launches = append(m.launches, l)
			continue
		}
		name, ok := m.canonical[l.name]
		if !ok {
			name = kernelname.Canonical(l.name)
			m.canonical[l.name] = name
		}
		k := key{l.ID, l.PID, name}
		met := m.at[k]
		same := func(h *Launch) bool { return h.page != l.page && h.agrees(l) }
		if i := slices.IndexFunc(met[:min(len(met), maxSame)], same); i >= 0 {
			h := met[i]
			h.merge(l)
			h.page = l.page
			m.pages++
			continue
		}
		m.launches = append(m.launches, l)
		m.at[k] = append(met, l)
	}
}

// finish computes the values that need all pages of a launch.
func (m *merger) finish() ([]*Launch, int64) {
	for _, l := range m.launches {
		l.Flops = l.counts.flops(l)
		l.counts, l.seen, l.page = nil, nil, nil
	}
	return m.launches, m.pages
}
