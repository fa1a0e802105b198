package cpu_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

// What the launching threads of real captures did, worked out by another program, moment by moment.
func TestHostCausesOfRealCaptures(t *testing.T) {
	dir := filepath.FromSlash("../../../../../shared/traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no shared/traces: the real traces are not part of the project")
	}
	for _, x := range []struct {
		trace, device string
		host          float64
		causes        map[string]float64
		call          string
		time          float64
	}{
		{"sglang_baseline_report", "0", 519_537_563, map[string]float64{"api": 1_361_719, "profiler": 590_531,
			"os_call": 110_538_796, "not_scheduled": 523_874, "running": 406_522_643, "unknown": 0}, "read", 108_735_080},
		{"cs336_hoponga_exp2023_4", "0", 206_247_699, map[string]float64{"api": 23_788_480, "profiler": 46_577_202,
			"os_call": 76_061_302, "not_scheduled": 0, "running": 0, "unknown": 59_820_715}, "ioctl", 68_964_247},
		{"cs336zx_2_7B", "0", 1_135_851_625, map[string]float64{"api": 64_869_861, "profiler": 125_972_706,
			"os_call": 6_231_204, "not_scheduled": 0, "running": 0, "unknown": 938_777_854}, "cudaMalloc", 42_053_213},
		{"nsysai_mfu_2gpu_before", "1", 24_161_771, map[string]float64{"api": 1_611_899, "profiler": 0, "os_call": 0,
			"not_scheduled": 0, "running": 0, "unknown": 22_549_872}, "", 0},
	} {
		t.Run(x.trace, func(t *testing.T) {
			r := sectiontest.AnalyseFile(t, filepath.Join(dir, x.trace+".sqlite"), analyze.Options{}).Report
			sectiontest.Metric(t, r, x.host, "gpu.idle_cause_time", "device", x.device, "cause", "host")
			for cause, want := range x.causes {
				sectiontest.Metric(t, r, want, "gpu.host_cause_time", "device", x.device, "cause", cause)
			}
			if x.call == "" {
				return
			}
			cause := "os_call"
			if x.call == "cudaMalloc" {
				cause = "api"
			}
			sectiontest.Metric(t, r, x.time, "host.call_time", "call", x.call, "cause", cause)
		})
	}
}

// sumsClose checks, of every device and kind of unit, that the parts of host time sum to it.
func sumsClose(t *testing.T, r *report.Report) {
	t.Helper()
	total, per := map[string]float64{}, map[string]float64{}
	for i := range r.Metrics {
		m := &r.Metrics[i]
		switch {
		case m.Value == nil:
		case m.ID == "gpu.idle_cause_time" && m.Labels["cause"] == "host":
			total[m.Labels["device"]] += *m.Value
		case m.ID == "gpu.host_cause_time":
			total[m.Labels["device"]] -= *m.Value
		case m.ID == "unit.idle_cause_time" && m.Labels["cause"] == "host":
			per[unitKey(m)] += m.Summary.Mean * float64(m.Summary.N)
		case m.ID == "unit.host_cause_time":
			per[unitKey(m)] -= m.Summary.Mean * float64(m.Summary.N)
		}
	}
	for device, left := range total {
		if left != 0 {
			t.Errorf("device %s: %s ns of host time have no cause", device, strconv.FormatFloat(left, 'f', -1, 64))
		}
	}
	for unit, left := range per {
		if left > 0.5 || left < -0.5 { // the sums are whole, their means are not
			t.Errorf("units %s: %v ns of host time have no cause", unit, left)
		}
	}
}

func unitKey(m *report.Metric) string {
	l := report.Labels{}
	for k, v := range m.Labels {
		if k != "cause" {
			l[k] = v
		}
	}
	return l.String()
}
