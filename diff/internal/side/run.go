package side

// BetweenRuns reports whether base and head were recorded in different runs (on other machines, or at another hour)
// while all captures of base or of head are from one run. The difference between runs then shows in the change but not
// in the spread of a side's captures, so only a noise floor accounts for it. The result is false if a capture does not
// state its run.
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

// runs returns the runs of a side's captures; ok is false if one does not state its run.
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
