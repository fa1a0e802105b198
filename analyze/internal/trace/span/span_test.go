package span

import (
	"math/rand/v2"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/spill"
)

// Times of every size come back as they were put, in spans of thin times and of wide ones.
func TestSpanKeepsTimes(t *testing.T) {
	for _, c := range []struct {
		name   string
		n      int
		longs  int // one event of so many is 20 s long, one 20 ms, one open; and there is a pause of 30 ms and one of a day
		mask   uint32
		unlike bool // starts go back and forth
	}{
		{"few", 1000, 100, wideMask, false},
		{"dense", 1 << 17, 2000, thinMask, false},
		{"long ones", 1 << 17, 100, wideMask, false},
		{"not in order", 1 << 17, 2000, wideMask, true},
	} {
		rng := rand.New(rand.NewPCG(1, 2))
		want := make([]times, c.n)
		at := int64(5e18)
		for i := range want {
			at += rng.Int64N(100_000)
			length := rng.Int64N(200_000)
			switch i % c.longs {
			case 3:
				length = 20e9
			case 17:
				length = 20e6
			case 40:
				length = Open
			case 50:
				length = 1<<thinBits - 1 - int64(i/c.longs%2)
			}
			if i == c.n/2 {
				at += 30e6
			}
			if i == c.n/3 {
				at += 86_400e9
			}
			want[i] = times{at, length}
			if c.unlike && i%2 == 0 {
				want[i].start -= 1e9
			}
		}
		var f Fit
		for _, w := range want {
			f.Add(w.start, w.length)
		}
		b := f.Over(nil, nil, nil)
		for i, w := range want {
			b.Put(i, w.start, w.length)
		}
		s := b.Done(nil)
		check := func(when string) {
			t.Helper()
			if s.Len() != c.n || s.mask != c.mask {
				t.Fatalf("%s, %s: %d events, mask %x", c.name, when, s.Len(), s.mask)
			}
			for i, w := range want {
				if s.Start(i) != w.start || s.Dur(i) != w.length || s.End(i) != w.start+w.length {
					t.Fatalf("%s, %s: event %d is %d + %d until %d, want %+v", c.name, when, i, s.Start(i), s.Dur(i), s.End(i), w)
				}
			}
		}
		check("put")
		last := at + 100e9
		CloseOpen(&s, last)
		for i := range want {
			if want[i].length == Open {
				want[i].length = last - want[i].start
			}
		}
		check("closed")
		var order []int32 // every third, from the end
		for i := c.n - 1; i >= 0; i -= 3 {
			order = append(order, int32(i))
		}
		taken := Take(nil, &s, order)
		if taken.Len() != len(order) {
			t.Fatalf("%s: took %d events of %d", c.name, taken.Len(), len(order))
		}
		for i, from := range order {
			if w := want[from]; taken.Start(i) != w.start || taken.Dur(i) != w.length {
				t.Fatalf("%s, taken: event %d is %d + %d, want %+v", c.name, i, taken.Start(i), taken.Dur(i), w)
			}
		}
	}
}

// A span is made in the memory of the columns that it is read from, whose rows have gaps between them: none is
// overwritten before it is read.
func TestSpanOverItsColumns(t *testing.T) {
	for _, long := range []uint32{1000, 30_000_000} { // thin, wide
		memory := spill.New()
		n := 1 << 17
		slot := func(i int) int { return i + i/100 }
		starts, lengths := spill.Make[uint32](memory, slot(n)), spill.Make[uint32](memory, slot(n))
		var f Fit
		for i := range n {
			starts[slot(i)], lengths[slot(i)] = uint32(i*17), long+uint32(i%7)
			f.Add(int64(i*17), int64(long)+int64(i%7))
		}
		b := f.Over(memory, starts, lengths)
		for i := range n {
			b.Put(i, int64(starts[slot(i)]), int64(lengths[slot(i)]))
		}
		s := b.Done(memory)
		if thin := s.high != nil; thin != (long == 1000) {
			t.Errorf("events of %d ns are thin: %v", long, thin)
		}
		for i := range n {
			if s.Start(i) != int64(i*17) || s.End(i) != int64(i*17)+int64(long)+int64(i%7) {
				t.Fatalf("event %d of %d ns is %d until %d", i, long, s.Start(i), s.End(i))
			}
		}
		Free(memory, &s)
		if err := memory.Close(); err != nil {
			t.Error(err)
		}
	}
}
