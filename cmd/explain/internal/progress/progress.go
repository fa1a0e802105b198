// Package progress shows the progress of long work on a terminal.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mattn/go-isatty"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/render"
	"github.com/nsys-llm/explain/analyze/report/unit"
	"github.com/nsys-llm/explain/cmd/explain/internal/load"
)

// Bar shows what a long analysis is doing. It stays silent for the first second, and always if standard error is not a
// terminal, unless --verbose asks for lines.
type Bar struct {
	err     io.Writer
	live    bool // redraw one line
	verbose bool
	start   time.Time
	done    chan struct{}
	ended   sync.WaitGroup

	mu     sync.Mutex
	began  map[string]time.Time // by stage
	latest string               // stage
	count  int64
	shown  bool
}

// Delay is how long nothing is shown on a terminal.
const Delay = time.Second

// New starts a Bar on standard error.
func New(err io.Writer, quiet, verbose bool) *Bar {
	p := &Bar{err: err, verbose: verbose, live: !quiet && !verbose && IsTerminal(err), start: time.Now(),
		done: make(chan struct{}), began: map[string]time.Time{}}
	if p.live {
		p.ended.Go(p.draw)
	}
	return p
}

// Update is called by the analysis, from several goroutines.
func (p *Bar) Update(stage string, count int64) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.began[stage]; !known {
		p.began[stage] = now
		if p.verbose {
			fmt.Fprintf(p.err, "%6.2f s  %s\n", now.Sub(p.start).Seconds(), p.line(stage, count, now))
		}
	}
	p.latest, p.count = stage, count
}

// line says how far a stage is: stages that read count bytes, and have a rate; others files or rows.
func (p *Bar) line(stage string, count int64, now time.Time) string {
	name := strings.TrimSuffix(stage, ": done")
	switch {
	case count == 0:
		return render.Visible(stage)
	case strings.HasSuffix(name, "evidence"):
		return fmt.Sprintf("%s, %s files", render.Visible(stage), unit.Int(count))
	case !strings.HasSuffix(name, "read") && !strings.HasSuffix(name, "unpack"):
		return fmt.Sprintf("%s, %s rows", render.Visible(stage), unit.Int(count))
	}
	line := render.Visible(stage) + ", " + unit.Format(float64(count), report.Bytes)
	if took := now.Sub(p.began[name]).Seconds(); took > 0 {
		line += " at " + unit.Format(float64(count)/took, report.BytesPerSec)
	}
	return line
}

func (p *Bar) draw() {
	for {
		select {
		case <-p.done:
			if p.shown {
				fmt.Fprint(p.err, "\r\x1b[K")
			}
			return
		case now := <-time.After(200 * time.Millisecond):
			if now.Sub(p.start) < Delay {
				continue
			}
			p.mu.Lock()
			line := fmt.Sprintf("%s (%.0f s)", p.line(p.latest, p.count, now), now.Sub(p.start).Seconds())
			p.mu.Unlock()
			fmt.Fprintf(p.err, "\r\x1b[K%.100s", line)
			p.shown = true
		}
	}
}

// Stop ends the display and clears its line.
func (p *Bar) Stop() {
	if p.live {
		close(p.done)
		p.ended.Wait()
		p.live = false
	}
}

// IsTerminal reports whether a stream is an interactive terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// Load shows how far a load is: one line that is redrawn on a terminal, a line every ten seconds with
// --verbose; in a pipe only that it waits for the server, once.
type Load struct {
	err           io.Writer
	live, verbose bool
	quiet, shown  bool
	stage         string
	next          time.Duration
}

const loadEvery = 10 * time.Second

// NewLoad starts a Load display on standard error.
func NewLoad(err io.Writer, quiet, verbose bool) *Load {
	return &Load{err: err, verbose: verbose, quiet: quiet, live: !quiet && !verbose && IsTerminal(err)}
}

// Update shows the progress of the load.
func (p *Load) Update(at load.Progress) {
	text := "waiting for the server (--health-timeout)"
	if at.Stage != "wait" {
		text = fmt.Sprintf("%s: %d", at.Stage, at.Done)
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
	case !p.live && !p.quiet && !p.shown && at.Stage == "wait" && at.Elapsed >= loadEvery:
		fmt.Fprintln(p.err, text)
		p.shown = true
	}
}

// Stop ends the display and clears its line.
func (p *Load) Stop() {
	if p.live && p.shown {
		fmt.Fprint(p.err, "\r\x1b[K")
	}
}
