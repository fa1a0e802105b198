package report

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
)

// Capture tells a capture from its copy, two windows of one session from two captures, and captures of one run from
// those of another. All but ranks are hashes: no name of a host, path or user, and no time of day. Null is unknown: no
// trace, or an export that does not say it.
type Capture struct {
	// Content is of the events in the window, in a canonical form: two exports of one capture have the same, whatever
	// version of nsys wrote them. Counted are the kernels (name, launch configuration, device), copies, memsets, graph
	// launches, calls and ranges, with the time of each since the start of the window and its duration.
	Content *string `json:"content"`
	// SessionStart is of the moment, in ns, at which nsys began the session: all captures and windows of it share it.
	SessionStart *string `json:"session_start"`
	// Host is of the UUIDs of all GPUs of the machine.
	Host *string `json:"host"`
	// Processes is of the ids of all processes with events in the session.
	Processes *string `json:"processes"`
	// Ranks are those of the processes in the session, ascending; none: unknown.
	Ranks []int64 `json:"ranks,omitempty"`
	// Run is of the host and the hour of the session: what differs between runs (node, clocks, driver, neighbours) is
	// the same within one.
	Run *string `json:"run"`
	// Overhead is what profiling cost the program, if that was measured.
	Overhead *Overhead `json:"overhead,omitempty"`
}

// Overhead compares the same load on the same machine with the profiler and without it.
type Overhead struct {
	Of        string  `json:"of"`         // what took the time: request, or client, the user's own load as a whole
	Profiled  float64 `json:"profiled"`   // mean, ns
	Plain     float64 `json:"plain"`      // mean without the profiler, ns
	ProfiledN int64   `json:"profiled_n"` // observations
	PlainN    int64   `json:"plain_n"`
	Ratio     float64 `json:"ratio"` // profiled ÷ plain - 1: 0.33 is a third slower
	// Low and High bound the ratio at 95 %, as if the observations were independent; null if there is one of each.
	Low  *float64 `json:"low"`
	High *float64 `json:"high"`
}

// NewOverhead compares the times of two samples. The interval of the ratio of their means goes by the logarithm, whose
// variance is the sum of the squared relative standard errors (delta method). Nil where a sample has no time.
func NewOverhead(of string, profiled, plain Summary) *Overhead {
	if !(profiled.Mean > 0 && plain.Mean > 0) || math.IsInf(profiled.Mean/plain.Mean, 0) {
		return nil
	}
	o := &Overhead{Of: of, Profiled: profiled.Mean, Plain: plain.Mean, ProfiledN: profiled.N, PlainN: plain.N,
		Ratio: profiled.Mean/plain.Mean - 1}
	if profiled.N < 2 || plain.N < 2 {
		return o
	}
	relative := func(s Summary) float64 { return s.Stddev * s.Stddev / (s.Mean * s.Mean * float64(s.N)) }
	const normal95 = 1.959963984540054
	width := math.Exp(normal95 * math.Sqrt(relative(profiled)+relative(plain)))
	if math.IsInf(width, 0) {
		return o
	}
	low, high := (1+o.Ratio)/width-1, (1+o.Ratio)*width-1
	o.Low, o.High = &low, &high
	return o
}

// Hash is the first half of the SHA-256 of parts, in hexadecimal digits.
func Hash(parts ...string) *string {
	s := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return new(hex.EncodeToString(s[:16]))
}
