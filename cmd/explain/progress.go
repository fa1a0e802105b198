package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mattn/go-isatty"
)

// progress shows on a terminal what a long analysis is doing. It stays silent for the first second, and always where
// standard error is not a terminal, unless --verbose asks for lines.
type progress struct {
	w       *world
	live    bool // redraw one line
	verbose bool
	start   time.Time
	done    chan struct{}
	ended   sync.WaitGroup

	mu    sync.Mutex
	stage string
	count int64
	shown bool
}

const progressDelay = time.Second

func newProgress(w *world, quiet, verbose bool) *progress {
	p := &progress{w: w, verbose: verbose, live: !quiet && !verbose && isTerminal(w.Err), start: time.Now(), done: make(chan struct{})}
	if p.live {
		p.ended.Add(1)
		go p.draw()
	}
	return p
}

// update is called by the analysis, from several goroutines.
func (p *progress) update(stage string, count int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verbose && stage != p.stage && count == 0 {
		fmt.Fprintf(p.w.Err, "%6.2f s  %s\n", time.Since(p.start).Seconds(), clean(stage))
	}
	p.stage, p.count = stage, count
}

func (p *progress) draw() {
	defer p.ended.Done()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			if p.shown {
				fmt.Fprint(p.w.Err, "\r\x1b[K")
			}
			return
		case <-tick.C:
			if time.Since(p.start) < progressDelay {
				continue
			}
			p.mu.Lock()
			line := fmt.Sprintf("%s: %d (%.0f s)", clean(p.stage), p.count, time.Since(p.start).Seconds())
			p.mu.Unlock()
			fmt.Fprintf(p.w.Err, "\r\x1b[K%.100s", line)
			p.shown = true
		}
	}
}

// stop ends the display and clears its line.
func (p *progress) stop() {
	if p.live {
		close(p.done)
		p.ended.Wait()
		p.live = false
	}
}

// isTerminal reports whether a stream is an interactive terminal.
func isTerminal(stream interface{}) bool {
	f, ok := stream.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}

// colour reports whether standard output may be coloured.
func (w *world) colour() bool {
	return isTerminal(w.Out) && w.Getenv("NO_COLOR") == "" && w.Getenv("TERM") != "dumb"
}
