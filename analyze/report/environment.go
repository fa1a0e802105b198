package report

import (
	"slices"
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// FieldClass says what a difference in a field of the environment means to a comparison.
type FieldClass string

const (
	HardField    FieldClass = "hard"    // two reports that differ in it are not comparable
	SoftField    FieldClass = "soft"    // named and warned of
	ResidueField FieldClass = "residue" // named only
	ExportField  FieldClass = "export"  // of the export and not of the workload: named only
)

// EnvironmentField is one field of [Environment], as everybody sees it who compares or lists environments.
type EnvironmentField struct {
	Name  string
	Class FieldClass                  // unless a policy moves it
	Get   func(e *Environment) string // the value as text; empty if it is not known
}

// EnvironmentFields are all fields of [Environment], in its order. It is the one list of them: what is comparable, what
// is residue, where a calibration applies and what a policy can move follow from it.
//
// Two values that are known and not equal differ; an unknown one differs from nothing.
func EnvironmentFields() []EnvironmentField {
	text := func(of func(e *Environment) *string) func(e *Environment) string {
		return func(e *Environment) string { return ValueOr(of(e), "") }
	}
	whole := func(of func(e *Environment) *int64) func(e *Environment) string {
		decimal := func(n int64) string { return strconv.FormatInt(n, 10) }
		return func(e *Environment) string { return Of(of(e), decimal, "") }
	}
	return []EnvironmentField{
		{"gpu", HardField, gpuModels},
		{"source", HardField, recorder},
		{"graph_trace", HardField, text(func(e *Environment) *string { return e.GraphTrace })},
		{"model", HardField, text(func(e *Environment) *string { return e.Model })},
		{"dtype", HardField, text(func(e *Environment) *string { return e.DType })},
		{"quantization", HardField, text(func(e *Environment) *string { return e.Quantization })},
		{"parallelism", HardField, text(func(e *Environment) *string { return e.Parallelism })},
		{"max_model_len", HardField, whole(func(e *Environment) *int64 { return e.MaxModelLen })},
		{"max_num_seqs", HardField, whole(func(e *Environment) *int64 { return e.MaxNumSeqs })},
		{"engine", SoftField, text(func(e *Environment) *string { return e.Engine })},
		{"engine_settings", SoftField, text(func(e *Environment) *string { return e.EngineSettings })},
		{"packages", SoftField, text(func(e *Environment) *string { return e.Packages })},
		{"load", HardField, text(func(e *Environment) *string { return e.Load })},
		{"driver", SoftField, text(func(e *Environment) *string { return e.Driver })},
		{"cuda", SoftField, text(func(e *Environment) *string { return e.CUDA })},
		{"capture_version", SoftField, text(func(e *Environment) *string { return e.CaptureVersion })},
		{"os", SoftField, text(func(e *Environment) *string { return e.OS })},
		{"cpu", SoftField, text(func(e *Environment) *string { return e.CPU })},
		{"clocks", SoftField, text(func(e *Environment) *string { return e.Clocks })},
		{"trace_set", SoftField, func(e *Environment) string { return strings.Join(e.TraceSet, ", ") }},
		{"exporter_version", ExportField, text(func(e *Environment) *string { return e.ExporterVersion })},
		{"schema_version", ExportField, text(func(e *Environment) *string { return e.SchemaVersion })},
	}
}

// Differ reports whether two values of the field, as Get gives them, are known and not the same.
func (f *EnvironmentField) Differ(a, b string) bool { return a != "" && b != "" && a != b }

// recorder is who recorded the capture; unknown if nothing was.
func recorder(e *Environment) string {
	switch {
	case e.Source != nil:
		return *e.Source
	case len(e.GPUs) > 0:
		return "nsys"
	}
	return ""
}

// gpuModels are the models of the GPUs, sorted: a device that has another number is no other device. Unknown where the
// capture does not state one of them. How many there are is for the list itself to say, which always knows.
func gpuModels(e *Environment) string {
	var list []string
	for i := range e.GPUs {
		if e.GPUs[i].Name == nil {
			return ""
		}
		list = append(list, *e.GPUs[i].Name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Software is who served and the packages, with their versions; empty if nothing states them.
func (e *Environment) Software() string {
	known := lists.Filter([]*string{e.Engine, e.Packages}, func(s *string) bool { return s != nil })
	return strings.Join(lists.Map(known, func(s *string) string { return *s }), ", ")
}
