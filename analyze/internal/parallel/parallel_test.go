package parallel_test

import (
	"sync/atomic"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/parallel"
)

func TestEachRunsEveryOneOnce(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 100} {
		ran := make([]atomic.Int32, n)
		parallel.Each(n, func(i int) { ran[i].Add(1) })
		for i := range ran {
			if got := ran[i].Load(); got != 1 {
				t.Errorf("%d of %d ran %d times", i, n, got)
			}
		}
	}
}

func TestChunksCoverAll(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000, 1001} {
		seen := make([]atomic.Int32, n)
		parallel.Chunks(n, 10, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				seen[i].Add(1)
			}
		})
		for i := range seen {
			if seen[i].Load() != 1 {
				t.Fatalf("%d of %d was in %d chunks", i, n, seen[i].Load())
			}
		}
	}
}

// A panic reaches the caller, who can recover from it; in a goroutine of its own it would end the program.
func TestPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if p := recover(); p != "at seven" {
			t.Errorf("recovered %v", p)
		}
	}()
	parallel.Each(20, func(i int) {
		if i == 7 {
			panic("at seven")
		}
	})
	t.Error("the panic was lost")
}
