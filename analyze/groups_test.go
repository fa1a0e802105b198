package analyze

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report/present"
)

// TestGroupsOfThePage: the page's groups name sections that there are.
func TestGroupsOfThePage(t *testing.T) {
	want := map[string][]string{"Step": {"unit", "critical_path", "unit_positions", "steady", "device_steps"},
		"Host": {"launches", "sync", "host_idle", "nvtx", "torch_ops", "regions", "phases", "processes"}}
	got := map[string][]string{}
	gpu := 0
	for _, s := range sections {
		switch g := present.GroupOf(s.ID); g {
		case "GPU":
			gpu++
		default:
			got[g] = append(got[g], s.ID)
		}
	}
	for g, ids := range want {
		if !slices.Equal(got[g], ids) {
			t.Errorf("%s has %q, want %q", g, got[g], ids)
		}
	}
	if gpu < 15 {
		t.Errorf("%d sections of the GPU, want 15 or more", gpu)
	}
}
