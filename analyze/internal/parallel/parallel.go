// Package parallel runs pieces of work side by side on the processors the program may use.
package parallel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Each runs f(0) to f(n-1), as many at a time as there are processors, and returns when all are done. They are started
// in order. A panic in one of them is raised again here, once the others have ended, so that the caller's recover sees
// it.
func Each(n int, f func(i int)) {
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f(i)
		}
		return
	}
	var (
		wg     sync.WaitGroup
		next   atomic.Int64
		once   sync.Once
		failed any // the value of the first panic
	)
	for range workers {
		wg.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					once.Do(func() { failed = p })
					next.Store(int64(n)) // the others take no more
				}
			}()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i))
			}
		})
	}
	wg.Wait()
	if failed != nil {
		panic(failed) // f's own panic, on the goroutine of the caller, who can recover it
	}
}

// Do runs some functions as Each does.
func Do(list ...func()) { Each(len(list), func(i int) { list[i]() }) }

// Chunks cuts the numbers 0 to n-1 into one part for each processor, of at least least numbers, and runs f on each.
func Chunks(n, least int, f func(lo, hi int)) {
	k := max(1, min(runtime.GOMAXPROCS(0), n/max(1, least)))
	Each(k, func(i int) { f(n*i/k, n*(i+1)/k) })
}
