package analyze

import (
	"database/sql"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/nsys-llm/explain/analyze/report"
)

// Numbers of the steady part, of load and of blocking, computed a second time by SQL on the real traces: at least 60 of
// them, each equal to the last digit.
func TestNumbersBySQL(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(shared(t, "traces"), "*.sqlite"))
	if err != nil || len(paths) == 0 {
		t.Skipf("no traces: %v", err)
	}
	compared := 0
	for _, path := range paths {
		db, err := sql.Open("sqlite", "file:"+path+"?mode=ro&immutable=1")
		if err != nil {
			t.Fatal(err)
		}
		x := &sqlNumbers{t: t, path: filepath.Base(path), db: db, r: reportOnce(t, path), compared: &compared}
		x.load()
		x.blocked()
		x.kernels("", x.r.Window.Start, x.r.Window.End)
		if m := x.r.Find("steady.window", report.Labels{}); m != nil {
			start := x.r.Window.Start + int64(*x.r.Find("steady.before_time", report.Labels{}).Value)
			end := start + int64(*m.Value)
			x.is("steady.after_time", nil, float64(x.r.Window.End-end))
			x.kernels("steady.", start, end)
		}
		db.Close()
	}
	t.Logf("%d numbers compared", compared)
	if compared < 60 {
		t.Errorf("compared %d numbers, want 60 and more", compared)
	}
}

type sqlNumbers struct {
	t        *testing.T
	path     string
	db       *sql.DB
	r        *report.Report
	compared *int
}

func (x *sqlNumbers) is(id string, l report.Labels, want float64) {
	x.t.Helper()
	if l == nil {
		l = report.Labels{}
	}
	*x.compared++
	if m := x.r.Find(id, l); m == nil || m.Value == nil || *m.Value != want {
		x.t.Errorf("%s: %s{%s} is %+v, by SQL %v", x.path, id, l, m, want)
	}
}

// ints is the first row of a query of whole numbers; ok is false where the trace lacks a table or the row is null.
func (x *sqlNumbers) ints(query string, n int, args ...any) (list []int64, ok bool) {
	values, into := make([]sql.NullInt64, n), make([]any, n)
	for i := range values {
		into[i] = &values[i]
	}
	if x.db.QueryRow(query, args...).Scan(into...) != nil {
		return nil, false
	}
	for _, v := range values {
		list, ok = append(list, v.Int64), v.Valid
		if !ok {
			return nil, false
		}
	}
	return list, true
}

// load adds up the copies that end before the first kernel or graph.
func (x *sqlNumbers) load() {
	first, ok := x.ints("select min(start) from CUPTI_ACTIVITY_KIND_KERNEL", 1)
	if graph, has := x.ints("select min(start) from CUPTI_ACTIVITY_KIND_GRAPH_TRACE", 1); has && ok {
		first[0] = min(first[0], graph[0])
	}
	if !ok {
		return
	}
	sums, ok := x.ints("select sum(end-start), sum(bytes) from CUPTI_ACTIVITY_KIND_MEMCPY where end <= ? and start < ?", 2, first[0], first[0])
	if ok {
		x.is("steady.load_copy_time", nil, float64(sums[0]))
		x.is("steady.load_copy_bytes", nil, float64(sums[1]))
	}
}

var blocking = regexp.MustCompile(`^(cuda|cu)(Device|Stream|Event|Ctx)Synchronize`)

// blocked unites the blocking calls of each thread within the window.
func (x *sqlNumbers) blocked() {
	rows, err := x.db.Query("select r.start, r.end, r.globalTid, s.value from CUPTI_ACTIVITY_KIND_RUNTIME r join StringIds s on s.id = r.nameId")
	if err != nil {
		return
	}
	defer rows.Close()
	calls := map[int64][][2]int64{}
	w := x.r.Window
	for rows.Next() {
		var start, end, thread int64
		var name string
		if err := rows.Scan(&start, &end, &thread, &name); err != nil {
			x.t.Fatal(err)
		}
		if blocking.MatchString(name) && start < w.End && end > w.Start {
			calls[thread] = append(calls[thread], [2]int64{max(start, w.Start), min(end, w.End)})
		}
	}
	var total int64
	byPID := map[int64]int64{}
	for thread, list := range calls {
		slices.SortFunc(list, func(a, b [2]int64) int { return int(a[0] - b[0]) })
		reached := w.Start
		for _, c := range list {
			if c[1] > reached {
				total += c[1] - max(c[0], reached)
				byPID[thread>>24&0xffffff] += c[1] - max(c[0], reached)
				reached = c[1]
			}
		}
	}
	if m := x.r.Find("sync.blocked_time", report.Labels{}); m != nil && x.r.Window.Mode == "capture" {
		x.is("sync.blocked_time", nil, float64(total))
	}
}

// kernels adds up the kernel that a finding is about, of those that start in the part.
func (x *sqlNumbers) kernels(prefix string, start, end int64) {
	for i := range x.r.Metrics {
		m := &x.r.Metrics[i]
		if m.ID != prefix+"kernel.window_share" {
			continue
		}
		name := m.Labels["kernel"]
		const of = " from CUPTI_ACTIVITY_KIND_KERNEL k join StringIds s on s.id = k.demangledName where s.value = ? and k.start >= ? and k.start < ?"
		most, ok := x.ints("select max(t) from (select sum(k.end-k.start) t"+of+" group by k.deviceId)", 1, name, start, end)
		all, ok2 := x.ints("select sum(k.end-k.start), count(*)"+of, 2, name, start, end)
		if !ok || !ok2 {
			continue
		}
		l := report.Labels{"kernel": name}
		x.is(m.ID, l, float64(most[0])/float64(end-start))
		if x.r.Find(prefix+"kernel.total_time", l) != nil {
			x.is(prefix+"kernel.total_time", l, float64(all[0]))
			x.is(prefix+"kernel.count", l, float64(all[1]))
		}
	}
}
