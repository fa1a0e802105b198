package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A request never goes out before it is due, and waiting ends with the context.
func TestSleepUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		for _, d := range []time.Duration{-time.Second, 0, 1, 300 * time.Microsecond, 2 * ms} {
			due := time.Now().Add(d)
			if !sleepUntil(ctx, due) || time.Since(due) != max(0, -d) {
				t.Errorf("%v from now: %v late", d, time.Since(due))
			}
		}
		start := time.Now()
		time.AfterFunc(5*ms, cancel)
		if sleepUntil(ctx, start.Add(time.Hour)) || time.Since(start) != 5*ms {
			t.Errorf("waited %v after its context ended", time.Since(start))
		}
		if sleepUntil(ctx, start.Add(-time.Hour)) {
			t.Error("goes on after its context ended")
		}
	})
}
