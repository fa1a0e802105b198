//go:build !linux

package load

// newPace is Go's timers, which are exact here.
func newPace() pace { return timers{} }
