package load

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// garbage is how many bytes of it may lie about while a load runs.
const garbage = 256 << 20

// letGarbageLie makes the collector run when there are garbage bytes of it, instead of whenever the heap has doubled, until restore is
// called: while it runs it holds up reads, by milliseconds on two cores, which shows in the p99 of the times between tokens. Memory
// stays bounded: it is what is kept plus garbage, or twice what is kept where that is more, as always. Where the user has turned the
// collector off, it stays off.
func letGarbageLie() (restore func()) {
	before := debug.SetGCPercent(100)
	if before < 0 {
		debug.SetGCPercent(before)
		return func() {}
	}
	var over atomic.Bool
	var adjust func(struct{})
	adjust = func(struct{}) {
		if over.Load() {
			return
		}
		debug.SetGCPercent(percent())
		runtime.AddCleanup(new([16]byte), adjust, struct{}{}) // called after the next collection
	}
	runtime.GC()
	adjust(struct{}{})
	return func() {
		over.Store(true)
		debug.SetGCPercent(before)
	}
}

// percent of what is kept that garbage bytes are.
func percent() int {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	kept := uint64(1)
	if v := live[0].Value; v.Kind() == metrics.KindUint64 {
		kept = max(kept, v.Uint64())
	}
	return int(min(max(100, 100*garbage/kept), 100_000))
}
