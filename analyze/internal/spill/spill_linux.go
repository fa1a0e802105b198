package spill

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

var pageSize = int64(os.Getpagesize())

// anonymous returns zeroed memory outside the Go heap, or nil: the race detector sees only the Go heap, so that tests
// with it get nil.
func anonymous(size int64) []byte {
	if raceEnabled {
		return nil
	}
	b, err := unix.Mmap(-1, 0, int(round(size)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil
	}
	_ = unix.Madvise(b, unix.MADV_HUGEPAGE) // columns are filled whole: fewer faults, and fewer misses at random rows
	return b
}

func unmap(b []byte) error { return unix.Munmap(b) }

// drop returns pages to the system. For pages of a file it drops only the mapping: their content stays in the file.
func drop(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }

func round(size int64) int64 { return (size + pageSize - 1) &^ (pageSize - 1) }

// disk is a file without a name that grows at its end. Each array has a stretch of its own.
type disk struct {
	f        *os.File
	reserved int64 // bytes that are there
	used     int64 // bytes given out
}

// newDisk makes the file in dir. A temporary folder that is itself in memory would not help: unless TMPDIR names one,
// /var/tmp is used instead.
func newDisk(dir string, expect int64) (*disk, error) {
	if dir == "" {
		dir = os.TempDir()
		if os.Getenv("TMPDIR") == "" && inMemory(dir) && !inMemory("/var/tmp") {
			dir = "/var/tmp"
		}
	}
	f, err := os.CreateTemp(dir, "explain-columns-")
	if err != nil {
		return nil, fmt.Errorf("the temporary folder cannot take the columns: %w", errors.Unwrap(err))
	}
	if err := os.Remove(f.Name()); err != nil { // unlinked at once: however the program ends, no file is left
		f.Close()
		return nil, fmt.Errorf("the temporary folder cannot free blocks of a file: %w", errors.Unwrap(err))
	}
	d := &disk{f: f}
	if err := d.reserve(round(expect)); err != nil {
		f.Close()
		return nil, fmt.Errorf("the temporary folder cannot take %d MB of columns: %w", expect>>20, err)
	}
	return d, nil
}

func inMemory(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && (uint32(s.Type) == unix.TMPFS_MAGIC || uint32(s.Type) == unix.RAMFS_MAGIC)
}

// reserve makes the file size bytes long with every block allocated: writing to a mapped page for which the disk has no
// room would end the program.
func (d *disk) reserve(size int64) error {
	if size <= d.reserved {
		return nil
	}
	for {
		err := unix.Fallocate(int(d.f.Fd()), 0, d.reserved, size-d.reserved)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if errors.Is(err, unix.EOPNOTSUPP) {
			err = d.fill(size)
		}
		if err != nil {
			return err
		}
		d.reserved = size
		return nil
	}
}

// fill is reserve for file systems that cannot reserve: it writes zeros.
func (d *disk) fill(size int64) error {
	zeros := make([]byte, 1<<20)
	for at := d.reserved; at < size; at += int64(len(zeros)) {
		if _, err := d.f.WriteAt(zeros[:min(int64(len(zeros)), size-at)], at); err != nil {
			return errors.Unwrap(err)
		}
	}
	return nil
}

// take returns a stretch of the file, mapped, and where it begins, or nil if the disk is full.
func (d *disk) take(size int64) (b []byte, at int64) {
	size = round(size)
	if err := d.reserve(d.used + size); err != nil {
		return nil, 0
	}
	b, err := unix.Mmap(int(d.f.Fd()), d.used, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, 0
	}
	at, d.used = d.used, d.used+size
	return b, at
}

// give returns a stretch's blocks to the disk, if the file system supports it.
func (d *disk) give(at, size int64) {
	_ = unix.Fallocate(int(d.f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at, size)
}

func (d *disk) close() error { return d.f.Close() }

// lookEvery is how often the governor looks at what the process holds.
const lookEvery = 10 * time.Millisecond

func (a *Arena) govern() {
	defer a.ended.Done()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-a.stop:
			return
		case <-tick.C:
			if a.over(resident()) {
				a.release()
			}
		}
	}
}

func (a *Arena) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.blocks {
		if b.at >= 0 {
			drop(b.bytes)
		}
	}
	releases.Add(1)
}

// releases counts releases of mapped pages, for a test.
var releases atomic.Int64

// resident is the memory of the process, in bytes; 0 if the system does not say.
func resident() int64 {
	var size, pages int64
	b, _ := os.ReadFile("/proc/self/statm")
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * pageSize
}
