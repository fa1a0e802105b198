package diff

import (
	"io"

	"github.com/nsys-llm/explain/diff/internal/noise"
	"github.com/nsys-llm/explain/diff/policy"
)

// Noise is how much metrics differ between captures when nothing changed.
type Noise = noise.Noise

// Calibration is the noise of several captures of one commit, and what the suggested thresholds would have
// made of them.
type Calibration = noise.Calibration

// ReadNoise reads a noise block, or the calibration that holds one, and validates it.
func ReadNoise(r io.Reader) (*Noise, error) { return noise.Read(r) }

// WriteCalibration writes a calibration as JSON, which [ReadNoise] reads the noise of.
func WriteCalibration(w io.Writer, c *Calibration) error { return noise.WriteCalibration(w, c) }

// ProposePolicy writes a policy file that goes on from a preset, with thresholds beyond the noise that was measured.
// known are the metrics that exist.
func ProposePolicy(n *Noise, preset string, known []policy.MetricFacts) (string, error) {
	return noise.Propose(n, preset, known)
}
