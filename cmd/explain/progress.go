package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/unit"
)

// progress shows on a terminal what a long analysis is doing. It stays silent for the first second, and always where
// standard error is not a terminal, unless --verbose asks for lines.
type progress struct {
	env     *env
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

const progressDelay = time.Second

func newProgress(e *env, quiet, verbose bool) *progress {
	p := &progress{env: e, verbose: verbose, live: !quiet && !verbose && isTerminal(e.Err), start: time.Now(),
		done: make(chan struct{}), began: map[string]time.Time{}}
	if p.live {
		p.ended.Add(1)
		go p.draw()
	}
	return p
}

// update is called by the analysis, from several goroutines.
func (p *progress) update(stage string, count int64) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.began[stage]; !known {
		p.began[stage] = now
		if p.verbose {
			fmt.Fprintf(p.env.Err, "%6.2f s  %s\n", now.Sub(p.start).Seconds(), p.line(stage, count, now))
		}
	}
	p.latest, p.count = stage, count
}

// line says how far a stage is: stages that read count bytes, and have a rate.
func (p *progress) line(stage string, count int64, now time.Time) string {
	name := strings.TrimSuffix(stage, ": done")
	switch {
	case count == 0:
		return clean(stage)
	case !strings.HasSuffix(name, "read") && !strings.HasSuffix(name, "unpack"):
		return fmt.Sprintf("%s, %s rows", clean(stage), unit.Int(count))
	}
	line := clean(stage) + ", " + unit.Format(float64(count), report.Bytes)
	if took := now.Sub(p.began[name]).Seconds(); took > 0 {
		line += " at " + unit.Format(float64(count)/took, report.BytesPerSec)
	}
	return line
}

func (p *progress) draw() {
	defer p.ended.Done()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			if p.shown {
				fmt.Fprint(p.env.Err, "\r\x1b[K")
			}
			return
		case now := <-tick.C:
			if now.Sub(p.start) < progressDelay {
				continue
			}
			p.mu.Lock()
			line := fmt.Sprintf("%s (%.0f s)", p.line(p.latest, p.count, now), now.Sub(p.start).Seconds())
			p.mu.Unlock()
			fmt.Fprintf(p.env.Err, "\r\x1b[K%.100s", line)
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
