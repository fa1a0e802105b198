package engine_test

import (
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/report"
)

func vllmTokens(n string) string {
	return "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{model_name=\"m\"} " + n + "\n"
}

func dcgm(watts0, watts1, joules0, joules1 string) string {
	return "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n" +
		"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} " + watts0 + "\n" +
		"DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\"} " + watts1 + "\n" +
		"DCGM_FI_DEV_POWER_USAGE{gpu=\"1\",UUID=\"GPU-b\",GPU_I_ID=\"3\"} " + watts1 + "\n" +
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\",UUID=\"GPU-a\"} " + joules0 + "000\n" +
		"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"1\",UUID=\"GPU-b\"} " + joules1 + "000\n"
}

// 300 + 500 W before and 400 + 600 W after: 900 W on average. The counters rise by 2,000 and 3,000 J while 10,000 tokens are
// generated: half a joule each. The order of the files does not matter.
func TestServerPower(t *testing.T) {
	before, after := dcgm("300", "500", "7000", "8000"), dcgm("400", "600", "9000", "11000")
	for name, texts := range map[string][]string{
		"files of their own":  {vllmTokens("5000"), vllmTokens("15000"), before, after},
		"the exporter first":  {before, after, vllmTokens("5000"), vllmTokens("15000")},
		"later dumps first":   {after, before, vllmTokens("15000"), vllmTokens("5000")},
		"both in one file":    {vllmTokens("5000") + before, vllmTokens("15000") + after},
		"with others between": {before, vllmTokens("5000"), vllmTokens("15000"), after},
	} {
		t.Run(name, func(t *testing.T) {
			r := dumpsOf(t, texts...)
			sectiontest.Metric(t, r, 900, "serve.power")
			sectiontest.Metric(t, r, 5000, "serve.energy")
			sectiontest.Metric(t, r, 0.5, "serve.energy_per_token")
			sectiontest.Metric(t, r, 10000, "serve.tokens", "kind", "generation")
			if w := sectiontest.Warning(r, "prometheus_reset") + sectiontest.Warning(r, "prometheus_dumps"); w != "" {
				t.Error(w)
			}
		})
	}
}

// 600,000 mW at 1,200 tokens per second are half a joule a token.
func TestServerPowerOfOneMoment(t *testing.T) {
	r := dumpsOf(t, "# TYPE sglang:gen_throughput gauge\nsglang:gen_throughput{model_name=\"m\"} 1200\n"+
		"nvidia_gpu_power_usage_milliwatts{minor_number=\"0\"} 600000\n")
	sectiontest.Metric(t, r, 600, "serve.power")
	sectiontest.Metric(t, r, 0.5, "serve.energy_per_token")
	if m := r.Find("serve.energy", nil); m == nil || m.Value != nil {
		t.Errorf("energy %+v of one moment, want it unknown", m)
	}
}

func TestServerPowerUnknown(t *testing.T) {
	sectiontest.WantStatus(t, dumpsOf(t, vllmTokens("1")), "server_power", report.NotApplicable, "state no power")
	// The driver of one GPU was loaded anew.
	r := dumpsOf(t, dcgm("300", "500", "7000", "8000"), dcgm("400", "600", "9000", "10"))
	if m := r.Find("serve.energy", nil); m == nil || m.Value != nil {
		t.Errorf("energy %+v, want it unknown", m)
	}
	sectiontest.Metric(t, r, 900, "serve.power")
}
