package policy

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// A rule, a waiver and ignore find a kernel by its full name and by the one that tables show; what is no kernel goes by
// its label alone.
func TestNamesAsShownOrInFull(t *testing.T) {
	const full, shown = "void flash::flash_fwd_kernel<(int)64>(T1)", "flash_fwd_kernel<64>"
	kernel := report.Labels{"kernel": full}
	for _, c := range []struct {
		rule Rule
		want bool
	}{
		{Rule{Match: Match{Regex: "^flash_fwd"}}, true},
		{Rule{Match: Match{Regex: "^void flash::"}}, true},
		{Rule{Match: Match{Glob: "flash_fwd_kernel<*"}}, true},
		{Rule{Labels: report.Labels{"kernel": "flash*"}}, true},
		{Rule{Labels: report.Labels{"kernel": "void*"}}, true},
		{Rule{Match: Match{Regex: "^fwd"}}, false},
		{Rule{Labels: report.Labels{"kernel": "fwd*"}}, false},
	} {
		if got := c.rule.Takes(kernel, shown); got != c.want {
			t.Errorf("%s takes the kernel: %v, want %v", c.rule.Selects(), got, c.want)
		}
	}
	r := Rule{Match: Match{Regex: "^flash"}}
	if r.Takes(kernel) || r.Takes(report.Labels{"range": "attention"}, shown) {
		t.Error("a rule takes a kernel that goes by no such name, or a range by the name of a kernel")
	}
	m := Match{Glob: "flash_fwd*"}.Compile()
	if m.Covers(kernel) || !m.Covers(kernel, shown) {
		t.Error("a waiver covers a kernel by a name that it does not have, or not by the one that is shown")
	}
	p := Policy{IgnoreKernels: []string{"flash_fwd*"}}
	if p.Ignores(full) || p.Ignores("") || !p.Ignores(full, shown) {
		t.Error("ignore.kernels does not hold of the names of a kernel")
	}
}

// flash and FlashAttnFwd have 5 letters in a row in common; of the others no name has more than 1 in common with flash or
// fmha, rope none; equals keep their order.
func TestNearest(t *testing.T) {
	names := []string{"rope", "gemm_a", "FlashAttnFwd", "softmax", "memset"}
	r := Rule{Match: Match{Regex: "^(flash|fmha)"}}
	if got := r.Nearest(names, 3); !slices.Equal(got, []string{"FlashAttnFwd", "gemm_a", "softmax"}) {
		t.Errorf("nearest %v", got)
	}
	labelled := Rule{Labels: report.Labels{"kernel": "ropes*"}}
	if got := labelled.Nearest(names, 1); !slices.Equal(got, []string{"rope"}) {
		t.Errorf("nearest %v", got)
	}
	if got := r.Nearest(nil, 3); len(got) > 0 {
		t.Errorf("nearest of none: %v", got)
	}
}
