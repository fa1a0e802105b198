package serverlog

import "math"

// SteadyRule says which lines of statistics are steady. It is the same for every log.
const SteadyRule = "Steady is a line whose whole interval lies in serving: the line before it of the same engine and the line itself both have requests that run or wait, and both come after the server said it was ready. " +
	"That leaves out start-up, idle times, and the intervals in which load begins or ends. SGLang's line of a batch covers the time since the one before it of its kind: it is steady unless it is, or there came in between, a prefill that found nothing running. " +
	"Where no line is steady, those with work count, and the section says so."

// steady marks the steady samples.
func (d *Data) steady() {
	type key struct {
		start, engine int32
	}
	busyBefore := map[key]bool{}
	for i := range d.Samples {
		s := &d.Samples[i]
		if math.IsNaN(s.Running) {
			continue
		}
		k := key{s.Start, s.Engine}
		busy := !s.early && (s.Running > 0 || s.Waiting > 0)
		switch {
		case !s.sglang():
			s.Steady = busy && busyBefore[k]
			busyBefore[k] = busy
		case s.Prefilling:
			s.Steady = !s.early && s.Running > 0
			if s.Running == 0 {
				busyBefore[k] = false
			}
		default:
			s.Steady = busy && busyBefore[k]
			busyBefore[k] = busy
		}
	}
}

// sglang reports whether the sample is of one of SGLang's batches.
func (s *Sample) sglang() bool {
	return s.Prefilling || !math.IsNaN(s.Generation) && math.IsNaN(s.Prompt)
}

// Ready reports whether the server took requests when the line was written.
func (s *Sample) Ready() bool { return !s.early }
