package analyze

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// shared is the folder of real traces with known truths. The project stands without it.
func shared(tb testing.TB, elem ...string) string {
	tb.Helper()
	path := filepath.Join(append([]string{"..", "..", "shared"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("no %s: the real traces are not part of the project", filepath.Join(append([]string{"shared"}, elem...)...))
	}
	return path
}

func runReport(tb testing.TB, path string, opt Options) *report.Report {
	tb.Helper()
	res, err := Run(context.Background(), path, opt)
	if err != nil {
		tb.Fatalf("%s: %v", filepath.Base(path), err)
	}
	return res.Report
}

// once are the reports of reportOnce.
var once = map[string]*report.Report{}

// reportOnce is the report of a capture as it is, for tests that only read it: each capture is analysed once.
func reportOnce(tb testing.TB, path string) *report.Report {
	tb.Helper()
	path = filepath.Clean(path)
	if once[path] == nil {
		once[path] = runReport(tb, path, Options{})
	}
	return once[path]
}

// truth is one line of expected/numbers.jsonl.
type truth struct {
	Trace       string                     `json:"trace"`
	KernelCount int64                      `json:"kernel.count"`
	KernelTotal int64                      `json:"kernel.total_time"`
	Kernels     [][3]json.RawMessage       `json:"kernels"`
	ByPID       map[string]int64           `json:"kernel.total_time.pid"`
	LaunchCount int64                      `json:"launch.count"`
	LaunchTime  map[string]int64           `json:"launch.api_time"`
	Sync        map[string][2]int64        `json:"sync"`
	Window      *int64                     `json:"window"`
	Devices     map[string]json.RawMessage `json:"devices"`
	Memcpy      map[string][3]int64        `json:"memcpy"`
	NVTX        *struct {
		Attributed   int64   `json:"attributed"`
		Kernels      int64   `json:"kernels"`
		InclusiveSum int64   `json:"inclusive_sum"`
		Pairs        int64   `json:"pairs"`
		Coverage     float64 `json:"coverage"`
	} `json:"nvtx"`
}

type deviceTruth struct {
	Compute         int64            `json:"compute"`
	ExposedComm     int64            `json:"exposed_comm"`
	ExposedCopy     int64            `json:"exposed_copy"`
	Busy            int64            `json:"busy"`
	Idle            int64            `json:"idle"`
	KernelIdleRatio *float64         `json:"kernel_idle_ratio"`
	Causes          map[string]int64 `json:"causes"`
}

// checker compares metrics with truths.
type checker struct {
	*testing.T
	r *report.Report
}

func (c *checker) metric(want int64, id string, pairs ...string) {
	c.Helper()
	l := report.Labels{}
	for i := 0; i < len(pairs); i += 2 {
		l[pairs[i]] = pairs[i+1]
	}
	m := c.r.Find(id, l)
	switch {
	case m == nil && want == 0:
	case m == nil:
		c.Errorf("%s{%s}: missing, want %d", id, l, want)
	case m.Value == nil || *m.Value != float64(want):
		c.Errorf("%s{%s} = %s, want %d", id, l, number(m.Value), want)
	}
}

func number(v *float64) string {
	if v == nil {
		return "null"
	}
	return strconv.FormatFloat(*v, 'f', -1, 64)
}

// TestNumbers holds every number of expected/numbers.jsonl against the report of its trace, to the nanosecond.
func TestNumbers(t *testing.T) {
	f, err := os.Open(shared(t, "expected", "numbers.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var want truth
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(want.Trace, ".sqlite"), func(t *testing.T) {
			c := &checker{t, reportOnce(t, shared(t, "traces", want.Trace))}
			c.truth(&want)
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

func (c *checker) truth(want *truth) {
	c.Helper()
	c.metric(want.KernelCount, "kernel.count")
	c.metric(want.KernelTotal, "kernel.total_time")
	for _, k := range want.Kernels {
		var name string
		var count, total int64
		for i, p := range []interface{}{&name, &count, &total} {
			if err := json.Unmarshal(k[i], p); err != nil {
				c.Fatal(err)
			}
		}
		c.metric(total, "kernel.total_time", "kernel", name)
		c.metric(count, "kernel.count", "kernel", name)
	}
	for pid, total := range want.ByPID {
		if pid != "None" { // an export without globalPid has no process to label
			c.metric(total, "kernel.total_time", "pid", pid)
		}
	}
	c.metric(want.LaunchCount, "launch.count")
	for api, total := range want.LaunchTime {
		c.metric(total, "launch.api_time", "api", api)
	}
	for api, v := range want.Sync {
		c.metric(v[0], "sync.count", "api", api)
		c.metric(v[1], "sync.total_time", "api", api)
	}
	for id, raw := range want.Devices {
		var d deviceTruth
		if err := json.Unmarshal(raw, &d); err != nil {
			c.Fatal(err)
		}
		c.device(id, *want.Window, &d)
	}
	for direction, v := range want.Memcpy {
		c.metric(v[1], "memcpy.bytes", "direction", direction)
		c.metric(v[2], "memcpy.time", "direction", direction)
	}
	if n := want.NVTX; n != nil {
		m := c.r.Find("nvtx.coverage", nil)
		if m == nil || m.Value == nil || *m.Value != n.Coverage {
			c.Errorf("nvtx.coverage = %v, want %v", m, n.Coverage)
		}
		var inclusive, self, pairs int64
		for _, m := range c.r.Metrics {
			if _, ok := m.Labels["range"]; !ok || len(m.Labels) != 1 {
				continue
			}
			switch m.ID {
			case "nvtx.gpu_time":
				inclusive += int64(*m.Value)
				pairs += m.N
			case "nvtx.gpu_time_self":
				self += int64(*m.Value)
			}
		}
		if inclusive != n.InclusiveSum || self != n.Attributed || pairs != n.Pairs {
			c.Errorf("nvtx: inclusive %d self %d pairs %d, want %d %d %d", inclusive, self, pairs, n.InclusiveSum, n.Attributed, n.Pairs)
		}
	}
}

func (c *checker) device(id string, window int64, d *deviceTruth) {
	c.Helper()
	c.metric(window, "gpu.window", "device", id)
	c.metric(d.Compute, "gpu.compute_time", "device", id)
	c.metric(d.ExposedComm, "gpu.exposed_comm_time", "device", id)
	c.metric(d.ExposedCopy, "gpu.exposed_copy_time", "device", id)
	c.metric(d.Busy, "gpu.busy_time", "device", id)
	c.metric(d.Idle, "gpu.idle_time", "device", id)
	for _, cause := range []string{"sync", "host", "launch", "dependency", "unknown"} {
		c.metric(d.Causes[cause], "gpu.idle_cause_time", "device", id, "cause", cause)
	}
	if d.KernelIdleRatio != nil {
		m := c.r.Find("gpu.kernel_idle_ratio", report.Labels{"device": id})
		if m == nil || m.Value == nil || *m.Value != *d.KernelIdleRatio {
			c.Errorf("gpu.kernel_idle_ratio{device=%s} = %v, want %v", id, m, *d.KernelIdleRatio)
		}
	}
}
