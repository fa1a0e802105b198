package gate

import (
	"fmt"

	"github.com/nsys-llm/explain/diff/comparison"
)

// CommentLimit is the size of a comment's text, in bytes, that upsert asks for first. GitHub takes 65,536 characters; a
// text never has fewer bytes than characters, and the marker needs room.
const CommentLimit = 60_000

// Mode says when to comment.
type Mode string

// Modes. In every mode but never, a comment that exists is updated, so that a fixed pull request does not keep a red
// comment.
const (
	Always    Mode = "always"
	OnChange  Mode = "on-change"  // the first comment only when something changed, or the verdict is not pass
	OnFailure Mode = "on-failure" // the first comment only when the verdict is fail or error
	Never     Mode = "never"
)

// ParseMode reads a mode; "on-fail" is on-failure.
func ParseMode(s string) (Mode, error) {
	switch m := Mode(s); m {
	case Always, OnChange, OnFailure, Never:
		return m, nil
	case "on-fail":
		return OnFailure, nil
	}
	return "", fmt.Errorf("comment mode %q is not one of always, on-change, on-failure, never", s)
}

// comment is what should stand on a pull request.
type comment struct {
	Key     string // one comment for each key; see CleanKey
	Mode    Mode   // not Never
	Verdict comparison.Verdict
	Changed bool  // something is improved, regressed, added or removed; only OnChange asks
	Stamp   stamp // of the run that made the numbers: Run.stamp
	// Body renders the text in at most limit bytes, without marker. It is called with CommentLimit, and again with less if
	// GitHub finds the text too long.
	Body func(limit int) string
}

// commentAction says what upsert did with a comment.
type commentAction string

// Values of commentAction.
const (
	commentCreated   commentAction = "created"
	commentUpdated   commentAction = "updated"
	commentUnchanged commentAction = "unchanged" // it already says the same
	commentSilent    commentAction = "silent"    // the mode asks for none
	commentStale     commentAction = "stale"     // a newer run has commented
	commentRefused   commentAction = "refused"   // GitHub said no: Reason says what is missing
)

// posted is the outcome of upsert. There is no error: a comment never changes a verdict.
type posted struct {
	Action commentAction
	ID     int64  // 0 if there is no comment
	URL    string // of the comment; empty if there is none
	Reason string // one line for the log and the summary; empty for created, updated and unchanged
}

// opens says whether the mode wants a comment if there is none yet.
func (w *comment) opens() bool {
	switch w.Mode {
	case OnFailure:
		return w.Verdict == comparison.Fail || w.Verdict == comparison.Error
	case OnChange:
		return w.Changed || w.Verdict != comparison.Pass
	}
	return true
}
