package load

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// percentNow is how the collector is set.
func percentNow() int {
	p := debug.SetGCPercent(100)
	debug.SetGCPercent(p)
	return p
}

// goalNow is how far the heap grows until garbage is collected, in bytes.
func goalNow() uint64 {
	m := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64()
}

// Garbage may lie while a load runs; what is kept counts twice at most where it is large; afterwards everything is as it was.
func TestGarbageIsBounded(t *testing.T) {
	before := percentNow()
	restore := letGarbageLie()
	if p := percentNow(); p < 1000 {
		t.Errorf("%d %% with hardly anything kept", p)
	}
	if goal := goalNow(); goal < garbage/2 || goal > garbage+garbage/4 {
		t.Errorf("the heap grows to %d MB with hardly anything kept", goal>>20)
	}
	kept := make([]byte, garbage+garbage/4)
	for range 100 { // what adjusts the collector runs some time after a collection
		runtime.GC()
		runtime.Gosched()
		if percentNow() == 100 {
			break
		}
	}
	if p := percentNow(); p != 100 {
		t.Errorf("%d %% with %d MB kept", p, len(kept)>>20)
	}
	runtime.KeepAlive(kept)
	restore()
	runtime.GC()
	if p := percentNow(); p != before {
		t.Errorf("%d %% afterwards, %d before", p, before)
	}
	debug.SetGCPercent(-1)
	letGarbageLie()()
	if p := percentNow(); p != -1 {
		t.Errorf("%d %%, and the user had it off", p)
	}
	debug.SetGCPercent(before)
}
