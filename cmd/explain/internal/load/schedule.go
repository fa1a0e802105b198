package load

import (
	"context"
	"math/rand/v2"
	"time"
)

// arrivals generates the moments at which requests of an open loop are due: a Poisson process with exponential gaps of
// mean 1/rate. The first request is due at once. The same seed gives the same moments.
type arrivals struct {
	random *rand.Rand
	mean   float64 // ns
	at     float64 // of the next, ns
}

func newArrivals(rate float64, seed uint64) *arrivals {
	return &arrivals{random: rand.New(rand.NewPCG(seed, 0x10ad)), mean: 1e9 / rate}
}

func (a *arrivals) next() time.Duration {
	due := time.Duration(a.at)
	a.at += a.random.ExpFloat64() * a.mean
	return due
}

// sleepUntil waits until t; it returns false if ctx ends first.
func sleepUntil(ctx context.Context, t time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(t)):
		return ctx.Err() == nil
	}
}
