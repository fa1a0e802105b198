package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Window selects the part of the run to record. The zero value is all of it.
type Window struct {
	Delay    time.Duration // after the start of the program; whole seconds
	Duration time.Duration // whole seconds with nsys's own timer; 0: to the end
	NVTX     string        // the first range of this name, as nsys takes it: range@domain

	// A trigger: the program is started, explain waits until it is ready, and only then nsys begins to record. This
	// works for servers, in which nobody calls cudaProfilerStart.
	Ready        string        // http(s):// address that answers 200, or a file that exists
	ReadyTimeout time.Duration // 0: DefaultReadyTimeout
	Warmup       time.Duration // from ready, with Client from its start, to the window
	Client       []string      // sends the load; the window ends with it, or after Duration; empty: after Duration
}

// DefaultReadyTimeout bounds the wait for a program to be ready. Loading a large model takes minutes.
const DefaultReadyTimeout = 10 * time.Minute

// Triggered reports whether explain opens the window, not nsys.
func (w *Window) Triggered() bool { return w.Ready != "" }

// Check returns an error for windows that record nothing, or that nsys reads in another sense.
func (w *Window) Check() error {
	switch {
	case w.Delay < 0 || w.Duration < 0 || w.Warmup < 0 || w.ReadyTimeout < 0:
		return errors.New("a time cannot be negative")
	case w.NVTX != "" && (w.Delay > 0 || w.Duration > 0 || w.Triggered()):
		return errors.New("--nvtx opens and ends the window: leave out --delay, --duration and --ready, which together with it record nothing")
	case w.Triggered() && w.Delay > 0:
		return errors.New("--ready opens the window: use --warmup, not --delay, for the time between")
	case w.Triggered() && len(w.Client) == 0 && w.Duration == 0:
		return errors.New("--ready opens the window, and nothing ends it: add --duration, or --client with the command that sends the load")
	case !w.Triggered() && (w.Warmup > 0 || len(w.Client) > 0):
		return errors.New(
			"--warmup and --client need --ready: the address or file that says when the program can be used")
	case !w.Triggered() && (w.Delay%time.Second != 0 || w.Duration%time.Second != 0):
		return errors.New(
			"nsys counts --delay and --duration in whole seconds and ignores fractions: round them, or use --ready")
	}
	return nil
}

// begun reports whether nsys surely records by now a program that it started then.
func (w *Window) begun(start time.Time) bool { return w.NVTX == "" && time.Since(start) >= w.Delay }

// describe returns the window in words.
func (w *Window) describe() string {
	switch {
	case w.NVTX != "":
		return "NVTX range " + w.NVTX
	case w.Triggered() && len(w.Client) > 0 && w.Duration > 0:
		return fmt.Sprintf("at most %s while the client runs", w.Duration)
	case w.Triggered() && len(w.Client) > 0:
		return "while the client runs"
	case w.Triggered():
		return fmt.Sprintf("%s from readiness on", w.Duration)
	case w.Duration > 0:
		return fmt.Sprintf("%s, after %s", w.Duration, w.Delay)
	case w.Delay > 0:
		return fmt.Sprintf("from %s on", w.Delay)
	}
	return "the whole run"
}

// pollEvery is the interval between checks for readiness.
const pollEvery = 200 * time.Millisecond

// waitReady waits until the address answers, or until the file exists and is not old.
func waitReady(ctx context.Context, c *child, ready string, old os.FileInfo, limit time.Duration) error {
	limit = cmp.Or(limit, DefaultReadyTimeout)
	for deadline := time.After(limit); ; {
		ok, said, err := isReady(ctx, ready, old)
		if ok || err != nil {
			c.ready.Store(true)
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-deadline:
			return withWords(fmt.Errorf("%s was not ready within %s (%s): raise --ready-timeout, or see its log",
				c.name, limit, said), c.log)
		case <-time.After(pollEvery):
		}
	}
}

// isReady asks once. An error means that waiting cannot help.
func isReady(ctx context.Context, ready string, old os.FileInfo) (ok bool, said string, err error) {
	if !strings.Contains(ready, "://") {
		info, err := os.Stat(ready)
		if err != nil {
			return false, "the file does not exist", nil
		}
		renewed := old == nil || !os.SameFile(old, info) || !old.ModTime().Equal(info.ModTime()) || old.Size() != info.Size()
		return renewed, "the file is that of the run before", nil
	}
	if _, err := url.Parse(ready); err != nil {
		return false, "", errors.New("--ready is not a valid address")
	}
	res, _, _ := get(ctx, ready, 5*time.Second, 1<<20)
	if res == nil {
		return false, "no answer", nil
	}
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return false, "", fmt.Errorf("the server wants a key before it says whether it is ready (%s): it needs an address that is open, like /health of vLLM", res.Status)
	}
	return res.StatusCode == http.StatusOK, "it answers " + res.Status, nil
}

// begun is when this explain process started.
var begun = time.Now()

// notYet makes sure that nothing is ready before the program starts: an old server on the same port, or a file from the
// last run, would open the window at once, and the load would go to the wrong program. It returns a file that an
// earlier run of this capture left: the program has to write it again.
func notYet(ctx context.Context, ready string) (old os.FileInfo, err error) {
	ok, _, err := isReady(ctx, ready, nil)
	switch {
	case !ok && err == nil:
		return nil, nil
	case strings.Contains(ready, "://"):
		return nil, fmt.Errorf("%s answers before the program is started: another server has its port; end that one, or take another port", RedactText(ready))
	}
	if old, err = os.Stat(ready); err == nil && old.ModTime().After(begun) {
		return old, nil
	}
	return nil, fmt.Errorf(
		"%s is there before the program is started: remove it: it has to appear when the program is ready", ready)
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
