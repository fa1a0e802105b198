package comparison

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// Study is a comparison of sides that differ on purpose. It has no verdict, and no gate is asked.
type Study struct {
	Fields []StudyField `json:"fields"`
	Step   *float64     `json:"step"` // mean time of a unit, head over base; null if it is not known
	// Throughput is tokens per second if both sides have a batch size, else units per second, head over base.
	Throughput *float64 `json:"throughput"`
	BaseGPUs   int      `json:"base_gpus"` // that did work; 0 if unknown
	HeadGPUs   int      `json:"head_gpus"`
	// Efficiency is throughput per GPU, head over base; null if both sides have as many GPUs or do different work.
	Efficiency *float64 `json:"efficiency"`
	// Communication is the change of exposed communication, ns per unit, and Collective what it is if it is all of one
	// sort
	Communication *float64 `json:"communication"`
	Collective    string   `json:"collective"`
}

// What a study can be about beside fields of the environment that make sides not comparable.
const (
	StudyBatch  = "batch"
	StudyEngine = "engine"
	StudyWork   = "work"
)

// RequestsRunning ends the values of a load that is known only by how many requests ran at a time.
const RequestsRunning = " requests running"

// StudyFields returns the fields that a study can vary: the fields of the environment that make sides not comparable,
// and those that are not in the environment: the batch size, the engine (such as its version), and the work itself.
func StudyFields() []string {
	list := []string{StudyBatch, StudyEngine, StudyWork}
	for _, f := range report.EnvironmentFields() {
		if f.Class == report.HardField {
			list = append(list, f.Name)
		}
	}
	return list
}

// StudyField is what differs on purpose. Values are empty if they are not known or the field has none.
type StudyField struct {
	Name string `json:"name"`
	Base string `json:"base"`
	Head string `json:"head"`
}

// About names the fields with both values, separated by commas, and says which are not known.
func (s *Study) About() string {
	var list []string
	for _, f := range s.Fields {
		text := f.Name
		switch {
		case f.Name == StudyBatch || f.Name == StudyWork: // no field of the environment
		case f.Base == "" && f.Head == "" && f.Name == "parallelism" && s.BaseGPUs > 0 && s.HeadGPUs > 0:
			text += fmt.Sprintf(" (%d → %d GPUs; explain report --server-log reads the settings)", s.BaseGPUs, s.HeadGPUs)
		case f.Base == "" && f.Head == "":
			text += " (unknown on both sides, not checked" + known(f.Name) + ")"
		case f.Base == "":
			text += " (unknown on the base, not checked" + known(f.Name) + ")"
		case f.Head == "":
			text += " (unknown on the head, not checked" + known(f.Name) + ")"
		case f.Base == f.Head:
			text += " (the same on both sides: " + f.Base + ")"
		default:
			base := counted(f.Base)
			if strings.HasSuffix(f.Head, RequestsRunning) {
				base = strings.TrimSuffix(base, RequestsRunning)
			}
			text += " (" + base + " → " + counted(f.Head) + ")"
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// counted is a list of equal names, such as those of GPUs, as their number and one name.
func counted(list string) string {
	names := strings.Split(list, ", ")
	if n := len(names); n > 1 && len(slices.Compact(names)) == 1 {
		return fmt.Sprintf("%d × %s", n, names[0])
	}
	return list
}

// known says where the value of a field can be read; empty if it is not in the server's log.
func known(field string) string {
	if field == StudyEngine || field == "parallelism" || field == "model" {
		return ": explain report --server-log reads it"
	}
	return ""
}

// String is what a study comes to: step × 0.62, all-reduce +0.4 ms, 1 → 2 GPUs, efficiency 81 %.
func (s *Study) String() string {
	var parts []string
	if s.Step != nil {
		parts = append(parts, fmt.Sprintf("step × %.3g", Value(s.Step)))
	}
	if d := Value(s.Communication); d != 0 {
		what := cmp.Or(s.Collective, "exposed communication")
		parts = append(parts, what+" "+unit.Delta(d, report.Nanoseconds))
	}
	if s.Step != nil && s.Throughput != nil && Value(s.Throughput)*Value(s.Step) != 1 {
		parts = append(parts, fmt.Sprintf("tokens per second × %.3g", Value(s.Throughput)))
	}
	if s.Efficiency != nil {
		parts = append(parts, fmt.Sprintf("%d → %d GPUs, ", s.BaseGPUs, s.HeadGPUs)+s.perGPU())
	}
	return strings.Join(parts, ", ")
}

// perGPU states the throughput per GPU: as the efficiency of more GPUs, if it can be one.
func (s *Study) perGPU() string {
	percent, more := math.Round(100*Value(s.Efficiency)), s.HeadGPUs > s.BaseGPUs
	switch {
	case more && percent <= 100:
		return fmt.Sprintf("efficiency %.0f %%", percent)
	case !more && percent >= 100:
		return fmt.Sprintf("throughput per GPU × %.3g", Value(s.Efficiency))
	}
	return fmt.Sprintf("throughput per GPU × %.3g, which scaling does not explain: the work per GPU differs, or the side with fewer GPUs was held up",
		Value(s.Efficiency))
}

func (s *Study) validate(c *Comparison) error {
	switch {
	case s == nil && c.Verdict == None:
		return errors.New(`comparison: verdict is "none", and it is no study`)
	case s == nil:
		return nil
	}
	if c.Verdict != None || len(c.Gates) > 0 || len(c.Overrides) > 0 || len(s.Fields) == 0 || len(s.Fields) > maxFewRows {
		return errors.New("comparison: a study has fields that differ, no verdict, and no gates")
	}
	return nil
}
