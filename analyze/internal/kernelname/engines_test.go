package kernelname

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNamesOfTodaysEngines reads the shared list of kernel names of public engines, whose categories a person decided
// ("a|b" where either is right), and holds the share of right answers. It names every miss.
func TestNamesOfTodaysEngines(t *testing.T) {
	const wantShare = 0.97
	text, err := os.ReadFile(filepath.Join(sharedDir, "facts", "engine-kernel-names.tsv"))
	if err != nil {
		t.Skip("../shared/facts/engine-kernel-names.tsv is not beside the module")
	}
	names, right := 0, 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(fields) < 2 || fields[0] == "name" {
			continue
		}
		names++
		if got := Classify(fields[0]).Category; slices.Contains(strings.Split(fields[1], "|"), string(got)) {
			right++
		} else {
			t.Logf("%s: %s, want %s", fields[0], got, fields[1])
		}
	}
	share := float64(right) / float64(names)
	t.Logf("%d of %d right (%.1f %%)", right, names, 100*share)
	if names < 300 || share < wantShare {
		t.Errorf("%d of %d names right, want %.0f %%", right, names, 100*wantShare)
	}
}
