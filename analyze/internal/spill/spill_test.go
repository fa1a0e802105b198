package spill

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

// arenas are one of each kind.
func arenas(t *testing.T) map[string]*Arena {
	t.Helper()
	list := map[string]*Arena{"heap": nil, "memory": New()}
	disk, err := NewOnDisk(t.TempDir(), elseMemory, 1<<20)
	switch {
	case err == nil:
		list["disk"] = disk
	case runtime.GOOS == "linux":
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name, a := range list {
			if err := a.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := a.Close(); err != nil {
				t.Errorf("%s: closed twice: %v", name, err)
			}
		}
	})
	return list
}

// Sizes on both sides of what is left to the Go heap, and of a page.
func TestArraysAreZeroAndTheirOwn(t *testing.T) {
	for name, a := range arenas(t) {
		for _, n := range []int{0, 1, small/8 - 1, small / 8, small/8 + 1, 300_000} {
			x, y := Make[int64](a, n), Make[int64](a, n)
			if len(x) != n || len(y) != n {
				t.Fatalf("%s: %d and %d elements, want %d", name, len(x), len(y), n)
			}
			for i := range x {
				if x[i] != 0 || y[i] != 0 {
					t.Fatalf("%s: element %d of %d is not zero", name, i, n)
				}
				x[i], y[i] = int64(i), -int64(i)
			}
			for i := range x {
				if x[i] != int64(i) || y[i] != -int64(i) {
					t.Fatalf("%s: element %d of %d was overwritten", name, i, n)
				}
			}
			Free(a, x)
			if again := Make[int64](a, n); n > 0 && again[n-1] != 0 {
				t.Errorf("%s: memory given back came back as it was", name)
			}
			if n > 0 && y[n-1] != -int64(n-1) {
				t.Errorf("%s: giving one array back changed another", name)
			}
		}
	}
}

func TestCutKeepsTheFront(t *testing.T) {
	for name, a := range arenas(t) {
		x := Make[uint32](a, 1<<20)
		for i := range x {
			x[i] = uint32(i)
		}
		for _, n := range []int{1 << 20, 700_001, 5, 0} {
			y := Cut(a, x, n)
			if len(y) != n || cap(y) != n {
				t.Fatalf("%s: cut to %d, want %d", name, len(y), n)
			}
			for i := range y {
				if y[i] != uint32(i) {
					t.Fatalf("%s: element %d changed when %d were kept", name, i, n)
				}
			}
		}
	}
}

// A column is narrowed in its own place, or in another array: both must come out the same.
func TestNarrow(t *testing.T) {
	for name, a := range arenas(t) {
		x := Make[uint16](a, 200_000)
		for i := range x {
			x[i] = uint16(i * 7)
		}
		wide := Narrow[uint32](a, x, len(x))
		for i := range wide {
			wide[i] = uint32(x[i]) * 3
		}
		same := Narrow[uint16](a, x, len(x))
		for i := range same {
			same[i] = x[i] + 1
		}
		narrow := Narrow[uint8](a, same, len(same))
		for i := range narrow {
			narrow[i] = uint8(same[i])
		}
		for i := range narrow {
			if w := uint16(i * 7); narrow[i] != uint8(w+1) || wide[i] != uint32(w)*3 {
				t.Fatalf("%s: element %d is %d and %d", name, i, narrow[i], wide[i])
			}
		}
		Free(a, wide)
	}
}

// Whatever ends the program, nothing is left: the file has no name from the start.
func TestTheFileHasNoName(t *testing.T) {
	dir := t.TempDir()
	a, err := NewOnDisk(dir, elseMemory, 64<<20)
	if err == ErrUnsupported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x := Make[byte](a, 8<<20)
	x[5] = 1
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if !a.OnDisk() || New().OnDisk() {
		t.Error("OnDisk is wrong")
	}
}

func TestADiskThatCannotTakeIt(t *testing.T) {
	if _, err := NewOnDisk(t.TempDir(), 1<<30, 1<<62); err == nil || runtime.GOOS == "linux" && !strings.Contains(err.Error(), "cannot take") {
		t.Errorf("error %v", err)
	}
	if _, err := NewOnDisk("/does/not/exist", 1<<30, 1<<20); err == nil {
		t.Error("a folder that is not there took the columns")
	}
}

// Pages let go come back as they were: the limit here is so low that the governor lets go all the time.
func TestPagesLetGoComeBack(t *testing.T) {
	a, err := NewOnDisk(t.TempDir(), 1, 32<<20)
	if err == ErrUnsupported {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	x := Make[uint64](a, 4<<20)
	before := releases.Load()
	for i := range x {
		x[i] = uint64(i) * 3
	}
	for end := time.Now().Add(10 * time.Second); releases.Load() < before+3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was let go")
		}
	}
	for i := range x {
		if x[i] != uint64(i)*3 {
			t.Fatalf("element %d is %d", i, x[i])
		}
	}
}

func TestMachine(t *testing.T) {
	if m := Machine(); runtime.GOOS == "linux" && (m < 64<<20 || m > 1<<50) {
		t.Errorf("the machine has %d bytes", m)
	}
}
