package load

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
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
	var mu sync.Mutex // held while the collector is set: nothing sets it after restore
	over := false
	var adjust func(struct{})
	adjust = func(struct{}) {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		debug.SetGCPercent(percent())
		runtime.AddCleanup(new([16]byte), adjust, struct{}{}) // called after the next collection
	}
	runtime.GC()
	adjust(struct{}{})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		debug.SetGCPercent(before)
	}
}

// leastHeap is the size up to which a heap grows at 100 %, whatever is kept (heapMinimum in runtime/mgcpacer.go): at a percentage it is
// that much of this.
const leastHeap = 4 << 20

// percent of what the collector counts as kept, which is the heap, the stacks and the globals, that garbage bytes are.
func percent() int {
	counted := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(counted)
	var kept uint64
	for _, m := range counted {
		if m.Value.Kind() == metrics.KindUint64 {
			kept += m.Value.Uint64()
		}
	}
	return int(max(100, 100*garbage/max(kept, leastHeap)))
}
