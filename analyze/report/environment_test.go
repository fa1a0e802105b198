package report_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/report"
)

// Every field of the model is in the table, under its JSON name and in its order: a field that is added to one and not to
// the other would be compared by nobody.
func TestEveryFieldOfTheEnvironmentIsInTheTable(t *testing.T) {
	var want []string
	for f := range reflect.TypeFor[report.Environment]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		want = append(want, strings.TrimSuffix(name, "s")) // gpus: gpu; no other name ends so, but for os
	}
	fields := report.EnvironmentFields()
	if len(fields) != len(want) {
		t.Fatalf("%d fields in the table, %d in the model", len(fields), len(want))
	}
	for i, f := range fields {
		if strings.TrimSuffix(f.Name, "s") != want[i] {
			t.Errorf("field %d is %s, want %s", i, f.Name, want[i])
		}
		if got := f.Get(&report.Environment{}); got != "" {
			t.Errorf("%s of nothing is %q", f.Name, got)
		}
	}
}

func TestEnvironmentFieldsAsText(t *testing.T) {
	s := func(v string) *string { return &v }
	n := int64(256)
	e := report.Environment{
		GPUs:       []report.GPU{{Device: 0, Name: s("H100")}, {Device: 1, Name: s("A100")}},
		MaxNumSeqs: &n, Quantization: s("fp8"), TraceSet: []string{"cuda", "nvtx"},
	}
	want := map[string]string{"gpu": "A100, H100", "max_num_seqs": "256", "quantization": "fp8", "trace_set": "cuda, nvtx",
		"source": "nsys"} // where a capture has GPUs, and says nothing else
	for _, f := range report.EnvironmentFields() {
		if got := f.Get(&e); got != want[f.Name] {
			t.Errorf("%s: got %q, want %q", f.Name, got, want[f.Name])
		}
	}
	e.GPUs[1].Name = nil
	if got := report.EnvironmentFields()[0].Get(&e); got != "" {
		t.Errorf("one model of two is known: got %q, want none", got)
	}
}
