package workunit_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/workunit"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

// A misspelt --unit is answered with what the capture has.
func TestUnitThatMatchesNothing(t *testing.T) {
	b := tracetest.New()
	th := b.Process(1, "python").Thread(1, "python")
	at := int64(1000 * us)
	for i := range 4 {
		begin := at
		at = step(th, 0, at, "gemm", "softmax")
		th.Range(fmt.Sprintf("Warm-up Step %d", i), begin-10*us, at)
		th.Range(fmt.Sprintf("layer_%d_forward", i), begin-9*us, at-us)
		th.Range("tokenize", at, at+us)
		at += 20 * us
	}
	path := b.WriteTB(t)
	for spec, want := range map[string][]string{
		"nvtx:warm-?up":  {"Warm-up Step #", "layer_#_forward", "tokenize"},
		"nvtx:layer9_fw": {"layer_#_forward", "Warm-up Step #", "tokenize"},
		"nvtx:^T":        {"tokenize", "Warm-up Step #", "layer_#_forward"}, // it matches if case is ignored
		"kernel:gemn":    {"gemm", "softmax"},
	} {
		r := find(t, path, spec)
		if r.Unmatched == nil || !slices.Equal(r.Unmatched.Nearest, want) || r.Unmatched.Spec != spec {
			t.Errorf("%s: %+v, want %q", spec, r.Unmatched, want)
		}
	}
	r := find(t, tracetest.New().WriteTB(t), "nvtx:x")
	if r.Unmatched != nil || r.Kind != workunit.KindNone {
		t.Errorf("without GPU work: %+v", r.Unmatched)
	}
	// Numbers are folded: four ranges of one family are four units of one kind, the last of which nothing closes.
	if r := find(t, path, "nvtx:^layer_"); len(r.Groups) != 1 || r.Groups[0].Count != 3 || r.Groups[0].Phase != "step" {
		t.Errorf("%+v: %s", r.Groups, r.Why)
	}
}
