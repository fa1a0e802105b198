package capture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// Unprofiled runs the same load once more, without nsys, and leaves what the sender measured in overhead/. Without a
// server the job's own program runs, and the client of its window sends the load.
func (r *Run) Unprofiled(ctx, hard context.Context, j *Job, s *Server, send Sender) error {
	dir := filepath.Join(r.Dir, overheadDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if s != nil {
		r.say("Starting the server again, without nsys, to measure what profiling costs")
		return r.plain(ctx, hard, &phase{name: "unprofiled", job: j, server: s, env: s.Env(), send: send, dir: dir})
	}
	r.say("Starting the program again, without nsys, to measure what profiling costs")
	w := &j.Window
	old, err := notYet(ctx, w.Ready)
	if err != nil {
		return err
	}
	c, err := r.book.run("unprofiled", j.Program, j.Env...)
	if err != nil {
		return err
	}
	defer c.kill()
	err = r.watched(ctx, c, func(ctx context.Context) error {
		if err := waitReady(ctx, c, w.Ready, old, w.ReadyTimeout); err != nil {
			return err
		}
		if err := sleep(ctx, c, w.Warmup); err != nil {
			return err
		}
		return r.client(ctx, w.Client)
	})
	if hard.Err() != nil {
		return context.Cause(hard)
	}
	c.stop(j.Grace)
	return err
}

const overheadDir = "overhead"

// OverheadLoad is the file in which Unprofiled leaves the result of explain's own load.
func (r *Run) OverheadLoad() string { return filepath.Join(r.Dir, overheadDir, "load.json") }

// ClientTimes returns how long the client ran while nsys recorded, and without nsys.
func (r *Run) ClientTimes() (profiled, plain time.Duration, err error) {
	var times []time.Duration
	for _, rec := range r.book.copies() {
		if rec.Name == "client" && rec.ExitCode != nil && *rec.ExitCode == 0 {
			times = append(times, time.Duration(rec.Seconds*float64(time.Second)))
		}
	}
	if len(times) < 2 {
		return 0, 0, errors.New("the client did not run twice")
	}
	return times[0], times[len(times)-1], nil
}
