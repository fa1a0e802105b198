package steps

// togetherShare is the share of the units of two GPUs, 0..1, that must overlap in pairs for them to run the same steps.
const togetherShare = 0.90

// tokenRate is tokens per second and GPU of a kind of unit, from its median time; nil if markers do not say how many
// tokens they compute.
func (r *unitRun) tokenRate(s *unitSet, p50 float64) *float64 {
	var tokens int64
	for _, u := range s.units {
		decode, prompt, _, ok := r.in.Units.Tokens(&r.in.Trace.Ranges, &r.in.Units.Units[u])
		if !ok {
			return nil
		}
		tokens += decode + prompt
	}
	if tokens == 0 || p50 <= 0 {
		return nil
	}
	rate := float64(tokens) / float64(len(s.units)) / (p50 / 1e9) / float64(r.gpusOf(s))
	return &rate
}

// gpusOf is how many GPUs run the units of a kind together: each has its own unit of a step.
func (r *unitRun) gpusOf(s *unitSet) int {
	n := 1
	for i := range r.sets {
		if o := &r.sets[i]; o.group == s.group && o.device != s.device && r.together(s, o) {
			n++
		}
	}
	return n
}

// together reports whether two GPUs run the same steps: they communicate, and their units overlap in pairs.
func (r *unitRun) together(a, b *unitSet) bool {
	if len(a.units) != len(b.units) {
		return false
	}
	for _, d := range r.in.Units.Timeline.Devices {
		if (d.ID == a.device || d.ID == b.device) && d.Comm == 0 {
			return false
		}
	}
	overlap, x := 0, r.in.Units.Units
	for i, u := range a.units {
		if v := b.units[i]; x[u].Start < x[v].End && x[v].Start < x[u].End {
			overlap++
		}
	}
	return float64(overlap) >= togetherShare*float64(len(a.units))
}
