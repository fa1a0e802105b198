package kit

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/workunit"
)

func TestGroupIDs(t *testing.T) {
	x := &workunit.Result{Groups: []workunit.Group{
		{Phase: "decode", Batch: 16, Tokens: -1}, {Phase: "prefill", Batch: 1, Tokens: 512}, {Phase: "context", Batch: -1, Tokens: 512},
		{Batch: -1, Tokens: -1}, {Batch: -1, Tokens: -1}, {Phase: "step", Batch: -1, Tokens: -1}, {Phase: OtherGroups, Batch: -1, Tokens: -1},
		{Phase: "step#4", Batch: -1, Tokens: -1}, {Batch: -1, Tokens: -1},
	}}
	want := []string{"decode/16", "prefill/1/512", "context/-/512", "step", "step#2", "step#3", "(others)#2", "step#4", "step#5"}
	if got := GroupIDs(x); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
