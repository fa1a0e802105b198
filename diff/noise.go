package diff

import (
	"errors"
	"io"
	"slices"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/diff/internal/noise"
)

// Noise is how much metrics differ between captures if nothing changed.
type Noise = noise.Noise

// Calibration is the noise of several captures of one commit, and how the suggested thresholds would have judged them.
type Calibration = noise.Calibration

// MeasureRuns returns the noise between runs of one workload in one environment, at commits that changed nothing. It
// needs at least 2 runs.
func MeasureRuns(runs []*report.Report) (*Noise, error) {
	if len(runs) < 2 {
		return nil, errors.New("the noise between runs needs at least 2 of them")
	}
	first, others, _ := unify(runs[:1], runs[1:])
	return noise.MeasureRuns(slices.Concat(first, others)), nil
}

// ReadNoise reads a noise block, or the calibration that holds one, and validates it.
func ReadNoise(r io.Reader) (*Noise, error) { return noise.Read(r) }

// WriteCalibration writes a calibration as JSON, from which [ReadNoise] reads the noise.
func WriteCalibration(w io.Writer, c *Calibration) error { return noise.WriteCalibration(w, c) }

// ProposePolicy writes a policy file that extends a preset with thresholds beyond the measured noise.
// known are the metrics that exist.
func ProposePolicy(n *Noise, preset string, known []report.MetricDef) (string, error) {
	return noise.Propose(n, preset, known, DefaultMinShare)
}
