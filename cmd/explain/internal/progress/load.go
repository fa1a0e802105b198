package progress

import (
	"fmt"
	"io"
	"time"

	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Load shows how far a load is: one line that is redrawn on a terminal, a line every ten seconds with
// --verbose, nothing in a pipe.
type Load struct {
	err           io.Writer
	live, verbose bool
	shown         bool
	stage         string
	next          time.Duration
}

const loadEvery = 10 * time.Second

// NewLoad begins to show, on standard error.
func NewLoad(err io.Writer, quiet, verbose bool) *Load {
	return &Load{err: err, verbose: verbose, live: !quiet && !verbose && IsTerminal(err)}
}

// Update takes how far the load is.
func (p *Load) Update(at load.Progress) {
	text := map[string]string{"wait": "waiting for the server", "warm-up": "warm-up", "load": "load"}[at.Stage]
	if at.Stage != "wait" {
		text += fmt.Sprintf(": %d", at.Done)
		if at.Total > 0 {
			text += fmt.Sprintf(" of %d", at.Total)
		}
		text += fmt.Sprintf(" requests, %d in flight, %d failed", max(0, at.Sent-at.Done), at.Failed)
	}
	switch {
	case p.live && at.Elapsed >= Delay:
		fmt.Fprintf(p.err, "\r\x1b[K%.100s (%.0f s)", text, at.Elapsed.Seconds())
		p.shown = true
	case p.verbose && (at.Stage != p.stage || at.Elapsed >= p.next):
		fmt.Fprintf(p.err, "%6.2f s  %s\n", at.Elapsed.Seconds(), text)
		p.stage, p.next = at.Stage, at.Elapsed+loadEvery
	}
}

// Stop ends the display and clears its line.
func (p *Load) Stop() {
	if p.shown {
		fmt.Fprint(p.err, "\r\x1b[K")
	}
}
