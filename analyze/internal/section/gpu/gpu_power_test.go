package gpu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// 24 decode steps of 1000 µs with 8 requests each; a value every 500 µs: 300 W for the first half of a step, 500 W for the
// second. A step takes 500 µs · 300 W + 500 µs · 500 W = 0.4 J, a token an eighth of it. The window is from the first work
// to the end of the last, 23.8 ms: 24 halves of 300 W and 23 of 500 W, and 300 µs of 500 W in the last step:
// 24 · 0.15 + 23 · 0.25 + 0.15 = 9.5 J.
func TestPower(t *testing.T) {
	const us = sectiontest.Us
	for name, event := range map[string]func(b *tracetest.Builder, at, watts int64){
		"field in watts": func(b *tracetest.Builder, at, watts int64) {
			b.Generic(tracetest.Generic{At: at, Type: 7, Data: fmt.Sprintf(`{"GPU":0,"Power [W]":%d,"Power Limit [W]":700}`, watts)})
		},
		"milliwatts as text, GPU in the name": func(b *tracetest.Builder, at, watts int64) {
			b.Generic(tracetest.Generic{At: at, Type: 7, Data: fmt.Sprintf(`{"gpu0_power_usage_mw":"%d"}`, watts*1000)})
		},
		"unit in the type's name, no GPU": func(b *tracetest.Builder, at, watts int64) {
			b.Generic(tracetest.Generic{At: at, Type: 9, Data: fmt.Sprintf(`{"Value":%d}`, watts*1000)})
		},
		"NVML's without a unit, in milliwatts": func(b *tracetest.Builder, at, watts int64) {
			b.Generic(tracetest.Generic{At: at, Type: 11, Data: fmt.Sprintf(`{"gpu":0,"power_usage":%d}`, watts*1000)})
			b.Generic(tracetest.Generic{At: at, Type: 11, Data: `{"gpu":0,"temperature":61}`}) // nothing about power
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := tracetest.New()
			th := b.Process(1, "p").Thread(1, "")
			for i := range int64(24) {
				at := i * 1000 * us
				th.Range("execute_context_0(0)_generation_8(8)", at, at+900*us)
				th.Launch("gemm", at, at, tracetest.Kernel{Start: at, End: at + 800*us})
			}
			b.Row("GENERIC_EVENT_TYPES", tracetest.Row{"typeId": tracetest.Int(9), "sourceId": tracetest.Int(1),
				"data": tracetest.Text(`{"Name":"Power usage (mW)"}`)})
			b.Row("GENERIC_EVENT_TYPES", tracetest.Row{"typeId": tracetest.Int(11), "sourceId": tracetest.Int(1),
				"data": tracetest.Text(`{"Name":"nvml_metrics"}`)})
			for i := range int64(49) {
				watts := int64(500) // of the half before
				if i%2 == 1 {
					watts = 300
				}
				event(b, i*500*us, watts)
			}
			b.Generic(tracetest.Generic{At: 5, Type: 3, Data: `{"power":12}`}) // in what?
			b.Generic(tracetest.Generic{At: 6, Type: 3, Data: `{"comm":"bash"}`})
			l := sectiontest.Look(t, b, analyze.Options{})
			l.Status("gpu_power", report.OK)
			sectiontest.Metric(t, l.Report, 9.5/0.0238, "gpu.power", "device", "0")
			sectiontest.Metric(t, l.Report, 9.5, "gpu.energy", "device", "0")
			sectiontest.Metric(t, l.Report, 0.4, "unit.energy", "device", "0")
			sectiontest.Metric(t, l.Report, 0.4, "unit.energy", "device", "0", "phase", "decode")
			sectiontest.Metric(t, l.Report, 0.05, "unit.energy_per_token", "device", "0", "phase", "decode")
			l.Row(l.Table("gpu_power", "gpu_power"), 0, "device_id", "0", "most", "500", "samples", "49")
			if n := strings.Join(l.Section("gpu_power").Notes, " "); !strings.Contains(n, "1 events about power state no value in watts") {
				t.Errorf("notes %q", n)
			}
		})
	}
}

// Values over half of the window say what the device drew then, and not what it took in all.
func TestPowerOfAPart(t *testing.T) {
	const us = sectiontest.Us
	b := tracetest.New()
	th := b.Process(1, "p").Thread(1, "")
	th.Launch("gemm", 0, 0, tracetest.Kernel{Start: 0, End: 1000 * us})
	for _, at := range []int64{0, 500 * us} {
		b.Generic(tracetest.Generic{At: at, Type: 1, Data: `{"Power [W]":250}`})
	}
	l := sectiontest.Look(t, b, analyze.Options{})
	sectiontest.Metric(t, l.Report, 250, "gpu.power", "device", "0")
	if m := l.Find("gpu.energy", report.Labels{"device": "0"}); m == nil || m.Value != nil {
		t.Errorf("energy %+v, want it unknown", m)
	}
}

func TestWithoutPower(t *testing.T) {
	l := sectiontest.Look(t, tracetest.Tiny(), analyze.Options{})
	l.Status("gpu_power", report.Unavailable)
	if got := l.Section("gpu_power").Reason; !strings.Contains(got, "--enable=nvml_metrics") {
		t.Errorf("reason %q does not name the flag", got)
	}
	b := tracetest.New()
	b.Process(1, "p").Thread(1, "").Launch("gemm", 0, 0, tracetest.Kernel{Start: 0, End: 10})
	b.Generic(tracetest.Generic{At: 1, Type: 1, Data: `{"Power [W]": "hot", "x": [`})
	l = sectiontest.Look(t, b, analyze.Options{})
	l.Status("gpu_power", report.NotApplicable)
}
