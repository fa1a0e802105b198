package analyze

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// TestPyTorchCounts holds the sums of real traces of the PyTorch profiler to counts that another program made of their
// JSON.
func TestPyTorchCounts(t *testing.T) {
	table, err := os.ReadFile(shared(t, "expected", "kineto.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	units := map[string]string{"a100_nccl": "ProfilerStep#N", "h100_qwen": "ProfilerStep#N", "mi300_qwen": "ProfilerStep#N",
		"hta_control": "ProfilerStep#N", "hta_test": "ProfilerStep#N", "b200_eager": "execute_context_N(M)_generation_K(L)",
		"vllm_decode_full": "execute_context_N(M)_generation_K(L)", "sglang_decode": "execute_context_N(M)_generation_K(L)"}
	files := 0
	for _, line := range strings.Split(strings.TrimSpace(string(table)), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 12 || f[0] == "file" {
			continue
		}
		files++
		t.Run(f[0], func(t *testing.T) {
			r := reportOnce(t, shared(t, "kineto", f[0]+".json.gz"))
			sum := func(id string) int64 {
				var sum float64
				for i := range r.Metrics {
					if m := &r.Metrics[i]; m.ID == id && m.Value != nil && (len(m.Labels) == 0 || strings.HasPrefix(id, "mem") && m.Labels["kind"] == "" && m.Labels["direction"] == "") {
						sum += *m.Value
					}
				}
				return int64(sum)
			}
			rows := func(table string) int64 {
				at := slices.IndexFunc(r.Trace.Tables, func(x report.TableCount) bool { return x.Name == table })
				if at < 0 {
					return 0
				}
				return r.Trace.Tables[at].Rows - r.Trace.Tables[at].Skipped
			}
			for _, x := range []struct {
				what string
				got  int64
				want string
			}{
				{"kernels", sum("kernel.count"), f[4]}, {"ns of kernels", sum("kernel.total_time"), f[5]},
				{"copies", rows("CUPTI_ACTIVITY_KIND_MEMCPY"), f[6]}, {"memsets", rows("CUPTI_ACTIVITY_KIND_MEMSET"), f[8]},
			} {
				if want, err := strconv.ParseInt(x.want, 10, 64); err != nil || x.got != want {
					t.Errorf("%s: %d, want %s", x.what, x.got, x.want)
				}
			}
			if want, err := strconv.ParseInt(f[10], 10, 64); err != nil || rows("CUPTI_ACTIVITY_KIND_RUNTIME") < want {
				t.Errorf("%d calls, want %s and those of the driver", rows("CUPTI_ACTIVITY_KIND_RUNTIME"), f[10])
			}
			if r.Unit.Name != units[f[0]] {
				t.Errorf("unit %q, want %q", r.Unit.Name, units[f[0]])
			}
		})
	}
	if files != 8 {
		t.Errorf("%d files", files)
	}
}

// TestPyTorchMessages: NCCL's sizes come from record_param_comms. By a count of the JSON the first allreduce of the file
// has 2,049,000 floats, 8,196,000 bytes.
func TestPyTorchMessages(t *testing.T) {
	r := runReport(t, filepath.Join(shared(t, "kineto"), "a100_nccl.json.gz"), Options{})
	found := false
	for _, s := range r.Sections {
		for _, table := range s.Tables {
			if table.ID != "comm_sizes" {
				continue
			}
			for _, row := range table.Rows {
				for _, c := range row {
					if v, ok := c.Int(); ok && v == 8_196_000 {
						found = true
					}
				}
			}
		}
	}
	if !found {
		t.Error("no message of 8,196,000 bytes in the report")
	}
}
