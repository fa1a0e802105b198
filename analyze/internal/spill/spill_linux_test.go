package spill

import "testing"

// Arrays stay in memory up to their share of the limit, and what is given back makes room again. Those in memory keep
// their content when the pages of the file are let go.
func TestTheFirstArraysStayInMemory(t *testing.T) {
	const mb = 1 << 20
	a, err := NewOnDisk(t.TempDir(), elseMemory+7*mb, mb)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	first, second, third := Make[byte](a, 4*mb), Make[byte](a, 4*mb), Make[byte](a, 2*mb)
	if raceEnabled {
		t.Skip("the race detector sees only the Go heap: no array is in memory of the arena")
	}
	onDisk := func(x []byte) bool { return a.blocks[&x[0]].at >= 0 }
	if onDisk(first) || !onDisk(second) || onDisk(third) || a.held.Load() != 6*mb {
		t.Errorf("on disk: %v, %v, %v, want the second; %d bytes held",
			onDisk(first), onDisk(second), onDisk(third), a.held.Load())
	}
	for i := range first {
		first[i], second[i], third[i/2] = 1, 2, 3
	}
	a.release()
	for i := range first {
		if first[i] != 1 || second[i] != 2 || third[i/2] != 3 {
			t.Fatalf("element %d is %d, %d, %d", i, first[i], second[i], third[i/2])
		}
	}
	Cut(a, first, mb)
	if a.held.Load() != 3*mb {
		t.Errorf("%d bytes held after a cut to 1 MB, want 3 MB", a.held.Load())
	}
	Cut(a, first, 2*mb) // nothing comes back
	Free(a, first)
	Free(a, second)
	if a.held.Load() != 2*mb {
		t.Errorf("%d bytes held, want the 2 MB of the third", a.held.Load())
	}
	if all := heldByAll.Load(); all != a.held.Load() {
		t.Errorf("all arenas hold %d bytes, and the only one holds %d", all, a.held.Load())
	}
	if fourth := Make[byte](a, 4*mb); onDisk(fourth) || fourth[0] != 0 {
		t.Error("what was given back is not used again")
	}
}

// What another arena holds in memory is no reason to let go of pages.
func TestArenasHaveLimitsOfTheirOwn(t *testing.T) {
	const mb = 1 << 20
	a, err := NewOnDisk(t.TempDir(), elseMemory, mb)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	other := New()
	defer other.Close()
	x := Make[byte](other, 8*mb)
	if raceEnabled {
		t.Skip("the race detector sees only the Go heap: no array is in memory of the arena")
	}
	const most = 525 * mb // three quarters of 700 MB
	if a.over(most+8*mb) || !a.over(most+8*mb+1) {
		t.Errorf("with 8 MB of another: %v at the limit, %v above it", a.over(most+8*mb), a.over(most+8*mb+1))
	}
	Free(other, x)
	if a.over(most) || !a.over(most+1) {
		t.Errorf("alone: %v at the limit, %v above it", a.over(most), a.over(most+1))
	}
}

func TestSharesOfTheLimit(t *testing.T) {
	const mb = 1 << 20
	for _, x := range []struct{ limit, room, high int64 }{
		{128, 0, 96}, {1024, 324, 768}, {2048, 1348, 1792}, {3072, 2048, 2816},
	} {
		if room, most := roomOf(x.limit*mb), high(x.limit*mb); room != x.room*mb || most != x.high*mb {
			t.Errorf("%d MB: %d MB of arrays and %d MB in all, want %d and %d", x.limit, room/mb, most/mb, x.room, x.high)
		}
	}
}
