package noise

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/policy"
)

// schemaID names the format of a noise block.
const schemaID = "explain.noise/1"

// maxNoiseBytes is the largest size that Read accepts. A noise block of a real serving trace has about 100 kB.
const maxNoiseBytes = 16 << 20

// Noise says how much metrics differ between captures when nothing changed. Ratios are changes: 0.05 is 5 %.
type Noise struct {
	Schema   string      `json:"schema"`
	Tool     report.Tool `json:"tool"`
	Captures int64       `json:"captures"` // of one commit, at least 2
	Names    []string    `json:"names"`    // of their files, without path
	Env      Env         `json:"env"`
	Level    float64     `json:"level"`   // share of comparisons of one capture a side that stay below a floor
	Power    float64     `json:"power"`   // probability to find a change of size MDE
	Metrics  []Metric    `json:"metrics"` // by metric, then labels
	Unsteady []Unsteady  `json:"unsteady"`
	Skipped  []Skip      `json:"skipped"`
}

// Env is the environment in which the noise was measured, and the unit of work.
type Env struct {
	GPUs        []string `json:"gpus"` // model of each device that did work; "" if unknown
	GraphTrace  *string  `json:"graph_trace"`
	Model       *string  `json:"model"`
	DType       *string  `json:"dtype"`
	Parallelism *string  `json:"parallelism"`
	Driver      *string  `json:"driver"`
	CUDA        *string  `json:"cuda"`
	UnitKind    string   `json:"unit_kind"`
	UnitName    string   `json:"unit_name"`
	// all known fields of the environment, by the names of report.EnvironmentFields
	Fields map[string]string `json:"fields"`
}

// Metric is the noise of one metric. Floor and MDE follow from the other fields by the formulae on the page
// "statistics".
type Metric struct {
	Metric string        `json:"metric"`
	Labels report.Labels `json:"labels"`
	Unit   string        `json:"unit"`
	Scale  report.Scale  `json:"scale"`
	Values []float64     `json:"values"` // of each capture, in Unit
	Noise  float64       `json:"noise"`  // standard deviation of ln between captures
	DF     float64       `json:"df"`     // captures - 1
	MAD    float64       `json:"mad"`    // median absolute deviation of ln from its median
	// coefficient of variation between units inside a capture, mean over captures
	Within *float64 `json:"within"`
	// a rise between two single captures that noise exceeds in 1-Level of all comparisons; at most 10
	Floor     float64 `json:"floor"`
	Threshold float64 `json:"threshold"` // suggested: the larger of 3 % and 3·1.4826·MAD; at most 10
	// smallest rise found with Power at 1, 2 and 3 captures a side under Threshold; at most 10
	MDE []float64 `json:"mde"`
}

// Unsteady is a number that should repeat exactly but did not.
type Unsteady struct {
	Metric string        `json:"metric"`
	Labels report.Labels `json:"labels"`
	Min    float64       `json:"min"`
	Max    float64       `json:"max"`
}

// Skip is a metric without a floor, and the reason.
type Skip struct {
	Metric string        `json:"metric"`
	Labels report.Labels `json:"labels"`
	Reason string        `json:"reason"`
}

// Find returns the noise of a metric, nil if it was not calibrated, and for a nil Noise. The value of a metric per unit
// of work is its p50; for a single kernel's kernel.time_per_unit only the mean is known, under either name.
func (n *Noise) Find(metric string, labels report.Labels) *Metric {
	if n == nil {
		return nil
	}
	if m := n.entry(metric, labels); m != nil {
		return m
	}
	id, stat := policy.SplitStat(metric)
	m := n.entry(id, labels)
	if m == nil {
		return nil
	}
	switch {
	case policy.OfKernel(id, labels):
		if stat == "mean" {
			return m
		}
	case stat == "p50" && (m.Scale == report.PerUnit || m.Scale == report.Event):
		return m
	}
	return nil
}

func (n *Noise) entry(metric string, labels report.Labels) *Metric {
	at, ok := slices.BinarySearchFunc(n.Metrics, &Metric{Metric: metric, Labels: labels},
		func(a Metric, b *Metric) int { return compareMetric(&a, b) })
	if !ok {
		return nil
	}
	return &n.Metrics[at]
}

// Applies reports whether the noise was measured in the environment of r; if not, why says what differs. It does not
// apply to r if the GPUs, the kind of unit of work or any hard field of the environment differ. moved holds the fields
// that a policy put into another class. A nil Noise never applies.
func (n *Noise) Applies(r *report.Report, moved policy.Environment) (ok bool, why string) {
	if n == nil {
		return false, "nothing was calibrated"
	}
	if gpus := gpuNames(r); moved.Class("gpu") == report.HardField && !slices.Equal(n.Env.GPUs, gpus) {
		return false, fmt.Sprintf("calibrated on GPUs %q, captured on %q", n.Env.GPUs, gpus)
	}
	for _, f := range report.EnvironmentFields() {
		a, b := n.Env.Fields[f.Name], f.Get(&r.Environment)
		if f.Name != "gpu" && moved.Class(f.Name) == report.HardField && f.Differ(a, b) {
			return false, fmt.Sprintf("calibrated with %s %q, captured with %q", f.Name, a, b)
		}
	}
	if n.Env.UnitKind != r.Unit.Kind {
		return false, fmt.Sprintf("calibrated per unit of kind %q, captured with %q", n.Env.UnitKind, r.Unit.Kind)
	}
	return true, ""
}

// EnvOf returns the environment of a report as a noise block stores it.
func EnvOf(r *report.Report) Env {
	e := Env{
		GPUs: gpuNames(r), GraphTrace: r.Environment.GraphTrace, Model: r.Environment.Model, DType: r.Environment.DType,
		Parallelism: r.Environment.Parallelism, Driver: r.Environment.Driver, CUDA: r.Environment.CUDA,
		UnitKind: r.Unit.Kind, UnitName: r.Unit.Name, Fields: map[string]string{},
	}
	for _, f := range report.EnvironmentFields() {
		if v := f.Get(&r.Environment); v != "" {
			e.Fields[f.Name] = v
		}
	}
	return e
}

// gpuNames returns the models of the devices in order, "" if one is unknown.
func gpuNames(r *report.Report) []string {
	names := make([]string, len(r.Environment.GPUs))
	for i, g := range r.Environment.GPUs {
		if g.Name != nil {
			names[i] = *g.Name
		}
	}
	return names
}

// Read reads and validates a noise block or a calibration that holds one, see [report.ReadVersioned].
func Read(rd io.Reader) (*Noise, error) {
	n, err := report.ReadVersioned[Noise](rd, "noise block", schemaID, maxNoiseBytes)
	if err != nil {
		return nil, err
	}
	report.Complete(n)
	if err := n.Validate(); err != nil {
		return nil, err
	}
	return n, nil
}

// Validate returns the first error that makes n unusable as a noise block.
func (n *Noise) Validate() error {
	switch {
	case n.Schema != schemaID: // a file may name several, of which the first was looked at
		return fmt.Errorf("noise: schema is %q, expected %q", n.Schema, schemaID)
	case n.Captures < 2:
		return fmt.Errorf("noise: %d captures do not show how much captures differ", n.Captures)
	case !(n.Level > 0 && n.Level < 1) || !(n.Power > 0 && n.Power < 1):
		return errors.New("noise: level and power are shares between 0 and 1")
	}
	if err := report.Sound(n); err != nil {
		return fmt.Errorf("noise: %w", err)
	}
	for i := range n.Metrics {
		m := &n.Metrics[i]
		if err := m.validate(n.Captures); err != nil {
			return fmt.Errorf("noise: metric %s{%s}: %w", m.Metric, m.Labels, err)
		}
		if i > 0 && compareMetric(&n.Metrics[i-1], m) >= 0 {
			return fmt.Errorf("noise: metric %s{%s} is there twice or out of order", m.Metric, m.Labels)
		}
	}
	return nil
}

func (m *Metric) validate(captures int64) error {
	switch {
	case int64(len(m.Values)) != captures:
		return fmt.Errorf("needs one value of each of the %d captures", captures)
	case len(m.MDE) != 3 || !sizes(m.MDE...):
		return errors.New("needs a smallest detectable change at 1, 2 and 3 captures a side")
	case !sizes(m.Noise, m.MAD, m.Floor, m.Threshold),
		m.Within != nil && !sizes(*m.Within):
		return errors.New("has a size that is negative or not finite")
	case !(m.DF >= 1) || m.DF > float64(captures-1):
		return fmt.Errorf("has %v degrees of freedom, expected 1 to %d", m.DF, captures-1)
	}
	return nil
}

func compareMetric(a, b *Metric) int {
	return cmp.Or(strings.Compare(a.Metric, b.Metric), strings.Compare(a.Labels.String(), b.Labels.String()))
}

// sizes reports whether all values are finite and not negative.
func sizes(values ...float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return !(v >= 0) || math.IsInf(v, 0) })
}
