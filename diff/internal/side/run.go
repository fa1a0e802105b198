package side

// BetweenRuns reports whether base and head were recorded in different runs (on other machines, or at another hour)
// while all captures of base or of head are of one run. What differs between runs is then in the change and not in the
// spread of a side's captures, so that it takes a noise floor to tell. If a capture does not say its run, nothing is
// known.
func BetweenRuns(base, head *Side) bool {
	b, ok := base.runs()
	h, ok2 := head.runs()
	if !ok || !ok2 || len(b) > 1 && len(h) > 1 {
		return false
	}
	for run := range b {
		if h[run] {
			return false
		}
	}
	return true
}

// runs of the captures of a side; ok is false if one does not say.
func (s *Side) runs() (runs map[string]bool, ok bool) {
	runs = map[string]bool{}
	for _, c := range s.Captures {
		if c.Report.Capture.Run == nil {
			return runs, false
		}
		runs[*c.Report.Capture.Run] = true
	}
	return runs, len(runs) > 0
}
