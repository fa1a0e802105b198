package gate

import (
	"fmt"
	"strings"
)

// Subject is what is judged: a pull request, or a commit.
type Subject struct {
	Run    *Run
	Number int   // of the pull request; 0 if there is none
	Pull   *Pull // nil if there is none, or GitHub does not show it

	measured int64 // the run that measured this head, if its measurements are judged again; 0: this one
}

// HeadSHA is the commit that was measured; empty if it is not known.
func (s *Subject) HeadSHA() string {
	if sha := s.Run.HeadSHA(); sha != "" || s.Pull == nil {
		return sha
	}
	return s.Pull.Head.SHA
}

// Base is the ref at which deciding files are read: the commit, or the branch, at the base of the change. If no change
// is judged (a schedule, or the push that begins a repository), the checkout decides. If GitHub does not name the base
// of a change, ref is empty.
func (s *Subject) Base() (ref string, change bool) {
	r := s.Run
	aside := r.Ref != "" && r.DefaultBranch != "" && r.Ref != "refs/heads/"+r.DefaultBranch // a tag, or a branch
	switch {
	case s.Pull != nil:
		return s.Pull.Base.SHA, true
	case s.Number != 0 || r.Trigger != nil:
		return "", true
	case r.Event == "merge_group":
		if r.Push == nil {
			return "", true
		}
		return r.Push.Before, true
	case aside: // anybody who may push there could change the rules one commit earlier
		return r.DefaultBranch, true
	case r.Push != nil && r.Push.Before != "":
		return r.Push.Before, true
	}
	return "", false
}

// BaseBranch is the branch to compare with: the base of the pull request, or the branch of the run. It is empty if the
// event has neither.
func (s *Subject) BaseBranch() string {
	switch {
	case s.Pull != nil:
		return s.Pull.Base.Ref
	case s.Run.Push != nil:
		return s.Run.Push.Ref
	case s.Number != 0 || s.Run.Trigger != nil:
		return ""
	case strings.HasPrefix(s.Run.Ref, "refs/heads/"):
		return strings.TrimPrefix(s.Run.Ref, "refs/heads/")
	}
	return ""
}

// stamp of the numbers. It knows the head even if the event names a pull request by number only.
func (s *Subject) stamp() stamp {
	st := s.Run.stamp()
	st.HeadSHA = s.HeadSHA()
	if s.measured != 0 { // the gate of that run may still be to come, and counts as new as this
		st.RunID, st.Attempt = s.measured, 1
	}
	return st
}

// Measures is the run whose measurements are judged: this one, or on workflow_run the one that has finished.
func (s *Subject) Measures() int64 { return s.stamp().RunID }

// against names the base of a verdict: two pull requests with one head have two bases.
func (s *Subject) against() string {
	if s.Pull == nil {
		return ""
	}
	return fmt.Sprintf(" on #%d against %s at %s", s.Number, oneLine(s.Pull.Base.Ref, 40), ShortRef(s.Pull.Base.SHA))
}

// On switches to a pull request: one of those with the head that was measured.
func (s *Subject) On(pull *Pull) { s.Pull, s.Number = pull, pull.Number }
