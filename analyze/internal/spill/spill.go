// Package spill allocates the large arrays of an analysis: columns with an element per event, and arrays derived from
// them. They live outside the Go heap, so that the garbage collector neither scans nor doubles them, and can be freed
// at once. If an analysis would not fit into the memory it may use, the arrays that do not fit live in a temporary file
// that is mapped into memory. Code that uses an array does not notice, and results are the same to the bit.
//
//	columns   []uint32 start   []uint32 length   []int32 name      what the analysis reads and writes
//	                |                 |                |
//	mapping   [ page page page | page page page | page page ]      resident: pages used lately
//	                |                 |                |
//	file      0 ... 4 MiB ......... 8 MiB ......... 12 MiB         unlinked, every block reserved
//
// Example: 10 million kernels at 40 bytes are 400 MB of columns, and --max-memory is 256MiB. NewOnDisk makes and
// unlinks a file and reserves its blocks, so that a full disk is an error before work begins and not a crash (SIGBUS)
// during it. Each Make maps the next stretch of the file. Every 10 ms the governor compares the resident size of the
// process with the limit; above three quarters of it (192 MiB), it drops the pages of the file from the mapping. Their
// content stays in the file: the next access reads a page back from the page cache or from disk. With 2 GiB, the first
// 1.3 GiB of arrays stay in memory, and only others are of the file.
package spill

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Arena allocates the arrays of one analysis. It is safe for use by several goroutines. A nil *Arena gives arrays on
// the Go heap.
type Arena struct {
	limit int64 // bytes the process may keep resident; 0: no limit, nothing goes to disk
	room  int64 // bytes of arrays that may stay in memory

	held   atomic.Int64 // bytes of the arrays in memory
	mu     sync.Mutex
	blocks map[*byte]block // by first byte
	disk   *disk           // nil: in memory
	stop   chan struct{}   // ends the governor
	ended  sync.WaitGroup
	closed atomic.Bool
}

// block is all of a mapping.
type block struct {
	bytes []byte
	held  int64 // bytes of it in memory, if it is not of the file
	at    int64 // in the file; -1: in memory
}

// New returns an arena in memory, without a limit.
func New() *Arena { return &Arena{blocks: map[*byte]block{}, room: math.MaxInt64} }

// ErrUnsupported says that this system cannot keep arrays on disk.
var ErrUnsupported = errors.New("keeping columns on disk is supported on Linux only")

// How the limit is kept: when the process holds more than highWater of it, and leaves less than spare, the governor
// releases the mapped pages of the file; those still needed come back from the system's page cache, or from disk, when
// they are touched. Arrays in memory take at most arrayShare of the limit, and leave elseMemory for the Go heap, the
// program, and pages of the file that are touched before the governor looks again.
const (
	highWater  = 0.75
	spare      = 256 << 20 // bytes
	arrayShare = 2.0 / 3
	elseMemory = 700 << 20 // bytes
)

// high is what the process may hold before pages are released, in bytes.
func high(limit int64) int64 { return max(int64(highWater*float64(limit)), limit-spare) }

// over reports whether a process that holds so many bytes holds too much for the arena. What others hold in memory has
// limits of its own.
func (a *Arena) over(resident int64) bool {
	return resident-(heldByAll.Load()-a.held.Load()) > high(a.limit)
}

// roomOf is how many bytes of arrays stay in memory.
func roomOf(limit int64) int64 {
	return max(0, min(int64(arrayShare*float64(limit)), limit-elseMemory))
}

// NewOnDisk returns an arena whose arrays, but the first, live in an unnamed file in the folder dir (empty: the
// system's temporary folder), of which no more than about limit bytes, with all else the process holds, stay in memory.
// The disk's part of expect bytes is reserved at once, so that a full disk is an error here and not a crash later.
func NewOnDisk(dir string, limit, expect int64) (*Arena, error) {
	d, err := newDisk(dir, max(0, expect-roomOf(limit)))
	if err != nil {
		return nil, err
	}
	a := New()
	a.limit, a.room, a.disk, a.stop = limit, roomOf(limit), d, make(chan struct{})
	a.ended.Add(1)
	go a.govern()
	return a, nil
}

// OnDisk reports whether arrays that do not fit into memory live in a file.
func (a *Arena) OnDisk() bool { return a != nil && a.disk != nil }

// small is the size in bytes below which an array is left to the Go heap.
const small = 256 << 10

// Make returns n zeroed elements. T must hold no pointers. The array is gone when the arena is closed or the array is
// given to Free. If the system gives no memory outside the heap, or the disk is full beyond the reserved part, the
// array is on the Go heap.
func Make[T any](a *Arena, n int) []T {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if a != nil && int64(n)*size >= small {
		if b := a.take(int64(n) * size); b != nil {
			return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
		}
	}
	return make([]T, n)
}

// Free releases an array that Make returned, whole or cut at its end. No other reference to it may be used afterwards.
func Free[T any](a *Arena, s []T) {
	if a != nil && cap(s) > 0 {
		a.give((*byte)(unsafe.Pointer(unsafe.SliceData(s))))
	}
}

// Cut releases the elements after the first n of an array that Make returned, and returns those n.
func Cut[T any](a *Arena, s []T, n int) []T {
	var zero T
	if a != nil && cap(s) > 0 {
		a.cut((*byte)(unsafe.Pointer(unsafe.SliceData(s))), int64(n)*int64(unsafe.Sizeof(zero)))
	}
	return s[:n:n]
}

// Close releases all arrays.
func (a *Arena) Close() error {
	if a == nil || a.closed.Swap(true) {
		return nil
	}
	if a.stop != nil {
		close(a.stop)
		a.ended.Wait()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold(-a.held.Load())
	var failed error
	for at, b := range a.blocks {
		if err := unmap(b.bytes); err != nil {
			failed = fmt.Errorf("giving memory back: %w", err)
		}
		delete(a.blocks, at)
	}
	if a.disk != nil {
		failed = errors.Join(failed, a.disk.close())
	}
	return failed
}

func (a *Arena) take(bytes int64) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed.Load() {
		return nil
	}
	b := block{at: -1}
	if a.held.Load()+bytes <= a.room {
		b.bytes = anonymous(bytes)
		b.held = int64(len(b.bytes))
		a.hold(b.held)
	} else {
		b.bytes, b.at = a.disk.take(bytes)
	}
	if b.bytes != nil {
		a.blocks[unsafe.SliceData(b.bytes)] = b
	}
	return b.bytes
}

// hold counts bytes that arrays in memory take more, or less.
func (a *Arena) hold(bytes int64) {
	a.held.Add(bytes)
	heldByAll.Add(bytes)
}

// heldByAll is held of all arenas together.
var heldByAll atomic.Int64

func (a *Arena) give(at *byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, ok := a.blocks[at]; ok {
		delete(a.blocks, at)
		a.hold(-b.held)
		if b.at >= 0 {
			a.disk.give(b.at, int64(len(b.bytes)))
		}
		unmap(b.bytes) //nolint:errcheck // the address was mapped before
	}
}

// cut returns the pages after the first keep bytes to the system; the addresses stay reserved.
func (a *Arena) cut(at *byte, keep int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if b, ok := a.blocks[at]; ok {
		keep = (keep + pageSize - 1) &^ (pageSize - 1)
		if keep < int64(len(b.bytes)) {
			drop(b.bytes[keep:])
		}
		if keep < b.held {
			a.hold(keep - b.held)
			b.held = keep
			a.blocks[at] = b
		}
	}
}

// Narrow returns n elements of a type that is as wide or narrower, in the memory of a column that Make returned, whose
// memory behind them goes back to the system once they are filled and [Cut]. Fill it from the front while reading the
// column: element i never lies after the column's element i. For a wider type, and for a column on the Go heap, it
// returns an array of its own.
func Narrow[T, C uint8 | uint16 | uint32](a *Arena, column []C, n int) []T {
	var to T
	var from C
	if unsafe.Sizeof(to) > unsafe.Sizeof(from) || a == nil ||
		!a.holds((*byte)(unsafe.Pointer(unsafe.SliceData(column)))) {
		return Make[T](a, n)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(column))), n)
}

func (a *Arena) holds(at *byte) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.blocks[at]
	return ok
}
