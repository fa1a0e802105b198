package tracetest

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// recipes are all ready-made traces and the sizes they must stay under, in bytes.
var recipes = []struct {
	file  string
	build func(...Option) *Builder
	limit int64
}{
	{"tiny", Tiny, 300_000},
	{"twoprocs", TwoProcs, 300_000},
	{"oldest", Oldest, 300_000},
	{"graph_hidden", GraphHidden, 300_000},
	{"hostile", Hostile, 300_000},
	{"serving", Serving, 1_500_000},
	{"serving_graph", ServingGraphMode, 1_500_000},
	{"base", Base, 500_000},
	{"head", Head, 500_000},
}

func TestRecipesInEverySchema(t *testing.T) {
	schemas := longtest.Some([]string{OldestSchema, "3.0.0", "3.11.1", "3.16.1", "3.25.0"}, 2)
	for _, r := range recipes {
		for _, schema := range schemas {
			path := r.build(Schema(schema)).WriteTB(t)
			open(t, path)
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > r.limit {
				t.Errorf("%s in %s has %d bytes, more than %d", r.file, schema, info.Size(), r.limit)
			}
		}
	}
}

// sweep accounts for every µs of a device's window, slowly and plainly: an independent count of what the recipes document.
type sweep struct {
	window, compute, comm, copies, idle int64
	cause                               map[string]int64
}

type event struct{ start, end, tid, correlation int64 } // µs

func sweepDevice(t *testing.T, path string, device int64) sweep {
	t.Helper()
	db := open(t, path)
	spans := func(query string, args ...any) []event {
		var out []event
		for _, line := range texts(t, db, query, args...) {
			var s event
			if _, err := fmt.Sscan(line, &s.start, &s.end, &s.tid, &s.correlation); err != nil {
				t.Fatal(err)
			}
			out = append(out, event{s.start / us, s.end / us, s.tid, s.correlation})
		}
		return out
	}
	const cols = `SELECT start || ' ' || "end" || ' ' || %s || ' ' || ifnull(correlationId, 0) FROM %s x `
	work := func(table, where string) []event {
		if text(t, db, "SELECT count(*) FROM sqlite_master WHERE name = ?", table) == "0" {
			return nil
		}
		return spans(fmt.Sprintf(cols, "globalPid", table)+where, device)
	}
	const kernel, named = "CUPTI_ACTIVITY_KIND_KERNEL", "JOIN StringIds s ON s.id = x.demangledName WHERE deviceId = ? AND s.value "
	compute := slices.Concat(work(kernel, named+"NOT LIKE 'nccl%'"), work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "WHERE deviceId = ?"))
	comm := work(kernel, named+"LIKE 'nccl%'")
	copies := slices.Concat(work("CUPTI_ACTIVITY_KIND_MEMCPY", "WHERE deviceId = ?"), work("CUPTI_ACTIVITY_KIND_MEMSET", "WHERE deviceId = ?"))
	all := slices.Concat(compute, comm, copies)
	slices.SortFunc(all, func(a, b event) int { return int(a.start - b.start) })
	const runtime = "CUPTI_ACTIVITY_KIND_RUNTIME"
	calls := spans(fmt.Sprintf(cols, "globalTid", runtime))
	waits := spans(fmt.Sprintf(cols, "globalTid", runtime) + "JOIN StringIds s ON s.id = x.nameId WHERE s.value LIKE '%Synchronize%'")

	var lo, hi int64
	if _, err := fmt.Sscan(text(t, db, "SELECT min(start) || ' ' || max(\"end\") FROM (SELECT start, \"end\" FROM "+kernel+
		tail(t, path, "CUPTI_ACTIVITY_KIND_MEMSET")+tail(t, path, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE")+")"), &lo, &hi); err != nil {
		t.Fatal(err)
	}
	s := sweep{window: hi/us - lo/us, cause: map[string]int64{}}
	during := func(list []event, at int64) bool {
		return slices.ContainsFunc(list, func(x event) bool { return x.start <= at && at < x.end })
	}
	for at := lo / us; at < hi/us; at++ {
		switch {
		case during(compute, at):
			s.compute++
			continue
		case during(comm, at):
			s.comm++
			continue
		case during(copies, at):
			s.copies++
			continue
		}
		s.idle++
		next := slices.IndexFunc(all, func(x event) bool { return x.start > at })
		call := -1
		if next >= 0 {
			call = slices.IndexFunc(calls, func(c event) bool { return c.correlation == all[next].correlation && c.tid>>24 == all[next].tid>>24 })
		}
		switch {
		case call < 0:
			s.cause["unknown"]++
		case at >= calls[call].end:
			s.cause["dependency"]++
		case at >= calls[call].start:
			s.cause["launch"]++
		case slices.ContainsFunc(waits, func(w event) bool { return w.tid == calls[call].tid && w.start <= at && at < w.end }):
			s.cause["sync"]++
		default:
			s.cause["host"]++
		}
	}
	return s
}

func tail(t *testing.T, path, table string) string {
	t.Helper()
	if text(t, open(t, path), "SELECT count(*) FROM sqlite_master WHERE name = ?", table) == "0" {
		return ""
	}
	return ` UNION ALL SELECT start, "end" FROM ` + table
}

// The numbers in the recipes' comments hold.
func TestDocumentedNumbers(t *testing.T) {
	tiny := sweep{1000, 685, 50, 40, 225, map[string]int64{"sync": 50, "host": 40, "launch": 45, "dependency": 40, "unknown": 50}}
	tests := []struct {
		name   string
		b      *Builder
		device int64
		want   sweep
	}{
		{"Tiny", Tiny(), 0, tiny},
		{"Oldest", Oldest(), 0, tiny},
		{"TwoProcs device 0", TwoProcs(), 0, sweep{40, 40, 0, 0, 0, map[string]int64{}}},
		{"TwoProcs device 1", TwoProcs(), 1, sweep{40, 20, 0, 0, 20, map[string]int64{"launch": 8, "host": 9, "unknown": 3}}},
		{"GraphHidden", GraphHidden(), 0, sweep{9920, 9100, 0, 0, 820, map[string]int64{"dependency": 820}}},
	}
	for _, tt := range tests {
		got := sweepDevice(t, tt.b.WriteTB(t), tt.device)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(sweep{})); diff != "" {
			t.Errorf("%s (-documented +counted):\n%s", tt.name, diff)
		}
	}
	db := open(t, Tiny().WriteTB(t))
	check := func(query, want string) {
		t.Helper()
		if got := strings.Join(texts(t, db, query), ","); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	check(`SELECT s.value || ' ' || (sum("end" - start) / 1000) || ' ' || count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = shortName GROUP BY s.value ORDER BY sum("end" - start) DESC`,
		"gemm 325 5,softmax 260 4,norm 100 3,ncclDevKernel_AllReduce_Sum_bf16_RING_LL 70 1")
	const calls = "SELECT count(*) || ' ' || (sum(\"end\" - start) / 1000) FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds s ON s.id = nameId WHERE s.value LIKE "
	check(calls+"'cudaLaunchKernel%'", "12 95")
	check(calls+"'%Synchronize%'", "2 289")
	const under = "SELECT sum(k.\"end\" - k.start) / 1000 FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId) JOIN NVTX_EVENTS e ON e.start <= r.start AND r.start < e.\"end\" WHERE e.text = "
	check(under+"'step 1'", "385")
	check(under+"'attention'", "200")
	check(under+"'mlp'", "40")
	check(under+"'step 2'", "320")
}

func TestServing(t *testing.T) {
	plain, whole := open(t, Serving().WriteTB(t)), open(t, ServingGraphMode().WriteTB(t))
	one := func(query, want string) {
		t.Helper()
		if got := text(t, plain, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	// Every step is marked on both ranks, and the schedule is the documented one.
	var markers []string
	for _, s := range servingSteps() {
		markers = append(markers, s.marker())
	}
	for _, pid := range []int{4101, 4102} {
		got := texts(t, plain, "SELECT text FROM NVTX_EVENTS WHERE text LIKE 'execute_context%' AND globalTid >> 24 & 0xFFFFFF = ? ORDER BY start", pid)
		if diff := cmp.Diff(markers, got); diff != "" {
			t.Errorf("pid %d (-schedule +trace):\n%s", pid, diff)
		}
	}
	if len(markers) != 66 {
		t.Errorf("%d steps, 66 documented", len(markers))
	}
	// All work is launched before it starts, streams run one thing at a time, all-reduces end together.
	const work = `(SELECT start, "end", deviceId, streamId, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_KERNEL
		UNION ALL SELECT start, "end", deviceId, streamId, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMCPY
		UNION ALL SELECT start, "end", deviceId, streamId, correlationId, globalPid FROM CUPTI_ACTIVITY_KIND_MEMSET)`
	one("SELECT count(*) FROM "+work+" w LEFT JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = w.correlationId AND r.globalTid >> 24 = w.globalPid >> 24 WHERE r.start IS NULL OR r.start > w.start", "0")
	one(`SELECT count(*) FROM (SELECT start, lag("end") OVER (PARTITION BY deviceId, streamId ORDER BY start) AS before FROM `+work+`) WHERE start < before`, "0")
	one(`SELECT count(*) FROM (SELECT count(*) n FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = shortName WHERE s.value LIKE 'nccl%' OR s.value LIKE 'cross_device%' GROUP BY "end") WHERE n <> 2`, "0")
	one("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME a JOIN CUPTI_ACTIVITY_KIND_RUNTIME b ON a.globalTid = b.globalTid AND a.rowid < b.rowid AND a.\"end\" > b.start", "0")
	// Graph nodes carry their graph launch's correlation id and a node id; other kernels no node id.
	one("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24 JOIN StringIds s ON s.id = r.nameId WHERE (s.value = 'cudaGraphLaunch_v10000') <> (k.graphNodeId IS NOT NULL)", "0")
	one("SELECT value FROM META_DATA_CAPTURE WHERE name = 'CUDA_GRAPH_TRACE_OPTIONS:MODE'", "Node")
	one("SELECT count(*) FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_GRAPH_TRACE'", "0")

	// Graph mode hides exactly the nodes, and covers their time.
	const nodes = `SELECT count(DISTINCT correlationId * 10 + deviceId) || ' ' || min(start) || ' ' || max("end") FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId IS NOT NULL`
	const graphs = `SELECT count(*) || ' ' || min(start) || ' ' || max("end") FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE`
	if n, g := text(t, plain, nodes), text(t, whole, graphs); n != g || !strings.HasPrefix(g, "104 ") {
		t.Errorf("nodes %s, graphs %s; want the same for 104 launches", n, g)
	}
	const eager = "SELECT count(*) || ' ' || sum(start) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId IS NULL"
	if p, w := text(t, plain, eager), text(t, whole, eager); p != w {
		t.Errorf("other kernels differ: %s, %s", p, w)
	}
	if n := text(t, whole, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE graphNodeId IS NOT NULL"); n != "0" {
		t.Errorf("%s nodes in graph mode", n)
	}
	// A load gap takes over a fifth of the window.
	gap := text(t, plain, `SELECT max(start - before) * 1.0 / (SELECT max("end") - min(start) FROM `+work+`) FROM (SELECT start, max("end") OVER (PARTITION BY deviceId ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM `+work+`)`)
	if share, err := strconv.ParseFloat(gap, 64); err != nil || share < 0.2 || share > 0.5 {
		t.Errorf("longest gap is %s of the window", gap)
	}
}

// TestPair: what Head does to a step of Base is what its comment says.
func TestPair(t *testing.T) {
	base, head := open(t, Base().WriteTB(t)), open(t, Head().WriteTB(t))
	const (
		step      = `SELECT (max(start) - min(start)) / 1000 / 29 FROM NVTX_EVENTS WHERE text = 'execute_context_0(0)_generation_16(16)'`
		attention = `SELECT sum("end" - start) / 1000 / 30 FROM CUPTI_ACTIVITY_KIND_KERNEL JOIN StringIds s ON s.id = demangledName WHERE s.value LIKE '%flash::%' AND s.value NOT LIKE '%Combine%'`
		calls     = `SELECT count(*) / 30 FROM CUPTI_ACTIVITY_KIND_RUNTIME JOIN StringIds s ON s.id = nameId WHERE s.value LIKE 'cudaStreamSynchronize%'`
		pageable  = `SELECT count(*) / 30 FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind = 2 AND dstKind = 0`
		kernels   = `SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL`
	)
	number := func(query string, side int) int {
		t.Helper()
		n, err := strconv.Atoi(text(t, []*sql.DB{base, head}[side], query))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tt := range []struct {
		what, query    string
		base, head, by int // by: how far off a side may be
	}{
		{"µs from one step to the next", step, 2400, 2680, 10},
		{"µs of attention a step", attention, 300, 450, 1}, // 4 x 75, 4 x 112.5
		{"cudaStreamSynchronize a step", calls, 0, 1, 0},
		{"copies to pageable memory a step", pageable, 0, 1, 0},
		{"kernels", kernels, 30 * 62, 30 * 62, 0},
	} {
		for side, want := range []int{tt.base, tt.head} {
			if got := number(tt.query, side); got < want-tt.by || got > want+tt.by {
				t.Errorf("%s, side %d: %d, want %d give or take %d", tt.what, side, got, want, tt.by)
			}
		}
	}
}

func TestHostileHoldsEveryName(t *testing.T) {
	db := open(t, Hostile().WriteTB(t))
	names := HostileNames()
	for query, want := range map[string][]string{
		"SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName ORDER BY start":        names,
		"SELECT s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName ORDER BY start":            names,
		"SELECT text FROM NVTX_EVENTS WHERE eventType = 59 AND text IS NOT NULL ORDER BY start":                             names,
		"SELECT s.value FROM NVTX_EVENTS e JOIN StringIds s ON s.id = e.textId ORDER BY start":                              names,
		"SELECT name FROM PROCESSES WHERE pid >= 1000 ORDER BY pid":                                                         names,
		"SELECT text FROM DIAGNOSTIC_EVENT ORDER BY timestamp":                                                              names,
		"SELECT s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId WHERE correlationId IS NULL": names,
	} {
		if diff := cmp.Diff(want, texts(t, db, query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}
