package whatifcmd

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
)

// Several changes are shown together and one by one, in the order of the flags; one change is shown once.
func TestScenarios(t *testing.T) {
	for _, x := range []struct {
		flags flags
		want  []int // changes of each scenario
	}{
		{flags{}, nil},
		{flags{hostFree: true}, []int{1}},
		{flags{hostFree: true, graph: true, remove: []string{"kernel:*memset*"}}, []int{3, 1, 1, 1}},
	} {
		list, err := x.flags.scenarios()
		if err != nil || len(list) != len(x.want) {
			t.Fatalf("%+v: %d scenarios, %v", x.flags, len(list), err)
		}
		for i := range list {
			if len(list[i]) != x.want[i] {
				t.Errorf("%+v: scenario %d has %d changes, want %d", x.flags, i, len(list[i]), x.want[i])
			}
		}
	}
	_, err := (&flags{speedup: []string{"kernel:a", "kernel:b"}, remove: []string{"x"}}).scenarios()
	if err == nil || !strings.Contains(err.Error(), "--remove x") || strings.Contains(err.Error(), "\n") {
		t.Errorf("of three wrong changes, not the first alone is named: %v", err)
	}
}

func TestNamesOfSteps(t *testing.T) {
	batch, tokens := int64(8), int64(512)
	var marked, cut analyze.WhatIfResult
	marked.Unit.Kind, marked.Unit.Name, cut.Unit.Kind = "nvtx", "step", "kernel"
	for want, got := range map[string]string{
		"decode": kindOfSteps("decode", nil, nil), "decode bs=8": kindOfSteps("decode", &batch, nil),
		"prefill bs=8 tokens=512": kindOfSteps("prefill", &batch, &tokens),
		"nvtx step":               stepName(&marked),
		"kernel":                  stepName(&cut),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
