package workunit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lineOf lays out a sequence of names. Every kernel takes 10 µs, but for those whose time is given, by place.
func lineOf(seq []int32, symbols int, times map[int]int64) *line {
	l := &line{seq: seq, time: make([]uint32, len(seq)), idle: make([]uint32, len(seq)), hash: make([]uint64, symbols)}
	for i := range l.time {
		l.time[i] = 10_000
		if t, ok := times[i]; ok {
			l.time[i] = uint32(t)
		}
	}
	for name := range l.hash {
		l.hash[name] = hashText(fmt.Sprint("kernel", name))
	}
	l.weigh()
	return l
}

// found is the number of kernels in a unit, how often the anchor occurs, and the index; 0 where nothing is believed.
func found(l *line) (period, count int, index float64) {
	x, _ := l.search()
	if x == nil || !x.believed() {
		return 0, 0, 0
	}
	return x.period, len(x.pos), x.index
}

// step reports whether an anchor's units are steps of so many kernels, or, where it stands twice in a step, the two parts
// of one, which slicer.pairs joins.
func step(l *line, length int) (ok bool, found string) {
	x, _ := l.search()
	if x == nil || !x.believed() {
		return false, "nothing"
	}
	pairs := 0
	for i := 0; i+2 < len(x.pos); i++ {
		if int(x.pos[i+2]-x.pos[i]) == length {
			pairs++
		}
	}
	return alike(length, x.period) || 10*pairs >= 9*(len(x.pos)-2), fmt.Sprintf("%d kernels, %d times", x.period, len(x.pos))
}

// sequence is a period over and over, cut off at both ends.
type sequence struct {
	symbols int
	seed    uint64 // of the period's names
	length  int    // of the period
	times   int
	before  int    // kernels cut off
	after   int    // likewise
	noise   uint64 // seed
}

// period is one whose first name occurs nowhere else in it, so that it is no repetition of a shorter one.
func (s *sequence) period() []int32 {
	period := make([]int32, s.length)
	for i := 1; i < len(period); i++ {
		period[i] = 1 + int32(Mix(s.seed+uint64(i)*0x9E3779B97F4A7C15)%uint64(s.symbols-2))
	}
	return period
}

func (s *sequence) names() []int32 {
	seq := slices.Repeat(s.period(), max(s.times, 2*plainLine/s.length+3))
	return seq[s.before : len(seq)-s.after]
}

// noisy has another name, but for those that begin a unit, at every hundredth place: what tuners and allocators do.
func (s *sequence) noisy() []int32 {
	seq := s.names()
	for i := range len(seq) / 100 {
		if at := Mix(s.noise+uint64(i)*0x9E3779B97F4A7C15) % uint64(len(seq)); seq[at] != 0 {
			seq[at] = int32(s.symbols - 1)
		}
	}
	return seq
}

// planted draws a sequence of at least so many units.
func planted(t *rapid.T, least int) *sequence {
	s := &sequence{symbols: rapid.IntRange(30, 60).Draw(t, "symbols"), seed: rapid.Uint64().Draw(t, "seed"),
		length: rapid.IntRange(40, 200).Draw(t, "length"), times: rapid.IntRange(least, 40).Draw(t, "times")}
	s.before = rapid.IntRange(0, s.length-1).Draw(t, "cut before")
	s.after = rapid.IntRange(0, s.length-1).Draw(t, "cut after")
	return s
}

func TestPlantedUnitIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := planted(t, 6)
		if n, _, index := found(lineOf(s.names(), s.symbols, nil)); n != s.length || index != 1 {
			t.Fatalf("found %d (%v), planted %d", n, index, s.length)
		}
	})
}

func TestPlantedUnitIsFoundUnderNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := planted(t, 20)
		s.noise = rapid.Uint64().Draw(t, "noise")
		if ok, found := step(lineOf(s.noisy(), s.symbols, nil), s.length); !ok {
			t.Fatalf("found %s, planted %d", found, s.length)
		}
	})
}

// In the first three the noise hits a start at an end of the capture, which a unit of several steps may leave out. In the
// last one it takes five kernels from one step, and an anchor that stands twice in each wins.
func TestPlantedUnitsThatWereMissed(t *testing.T) {
	for _, s := range []sequence{
		{symbols: 31, seed: 0x14b2bacbb4e99, length: 142, times: 23, before: 2, after: 5, noise: 0x4fd5},
		{symbols: 32, seed: 0x33, length: 150, times: 29, before: 90, after: 3},
		{symbols: 40, seed: 0x8a, length: 146, times: 21, before: 92, after: 1, noise: 0x5ede},
		{symbols: 45, seed: 0x16, length: 47, times: 21, before: 12, after: 6, noise: 0xa78d},
	} {
		if ok, found := step(lineOf(s.noisy(), s.symbols, nil), s.length); !ok {
			t.Errorf("found %s, planted %+v", found, s)
		}
	}
}

// A prologue of any shape, runs of one kernel included, and a tail change nothing.
func TestUnitIsFoundBehindAnyPrologue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := planted(t, 6)
		steps, symbols := s.names(), s.symbols
		var load []int32
		if rapid.Bool().Draw(t, "monotone") {
			for name := int32(0); len(load) < len(steps)/5; name++ { // AAAABBBB…
				load = append(load, slices.Repeat([]int32{int32(symbols) + name}, max(1, len(steps)/10))...)
			}
		} else {
			load = rapid.SliceOfN(rapid.Int32Range(0, int32(symbols-1)), 0, len(steps)/5).Draw(t, "load")
		}
		tail := rapid.SliceOfN(rapid.Int32Range(0, int32(symbols-1)), 0, len(steps)/20).Draw(t, "tail")
		if ok, found := step(lineOf(slices.Concat(load, steps, tail), 2*symbols+10, nil), s.length); !ok {
			t.Fatalf("found %s, planted %d", found, s.length)
		}
	})
}

// A step of 71 kernels starts at a name of which the tail has eight more; another name stands at its third and at its last
// place, 68 and 3 kernels apart. Both explain the capture, and only the first one's units are alike.
func TestUnitIsNotTwoPartsOfAStep(t *testing.T) {
	const length, other = 71, 72
	period := make([]int32, length)
	for i := range period {
		period[i] = int32(i)
	}
	period[70], period[2] = other, other
	var load []int32
	for i := range int32(3) {
		load = append(load, slices.Repeat([]int32{80 + i}, 35)...)
	}
	seq := slices.Concat(load, slices.Repeat(period, 6)[1:6*len(period)-70], make([]int32, 8))
	if n, _, _ := found(lineOf(seq, 90, nil)); n != len(period) {
		t.Errorf("found %d, planted %d", n, len(period))
	}
}

// One kernel more anywhere, whatever it is, neither lengthens the units nor makes more or fewer of them. (Where it is the
// start once more, what lies between the two is no unit of the kind.)
func TestInsertedKernelChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := planted(t, 8)
		seq, symbols := s.names(), s.symbols
		x, _ := lineOf(seq, symbols, nil).search()
		at := rapid.IntRange(0, len(seq)).Draw(t, "at")
		name := rapid.Int32Range(0, int32(symbols-1)).Draw(t, "name")
		y, _ := lineOf(slices.Insert(slices.Clone(seq), at, name), symbols, nil).search()
		if !y.believed() || y.period != s.length || max(x.units, y.units)-min(x.units, y.units) > 1 {
			t.Fatalf("%d units of %d kernels, before %d of %d", y.units, y.period, x.units, s.length)
		}
	})
}

// A small kernel at every k-th step makes no step of k steps.
func TestKernelOfEveryKthStep(t *testing.T) {
	for _, length := range []int32{11, 53, 85} {
		for _, every := range []int{2, 3, 4, 10} {
			var seq []int32
			times := map[int]int64{}
			for step := range 40 {
				for k := range length {
					seq = append(seq, k)
				}
				if step%every == 0 {
					times[len(seq)] = 2_000
					seq = append(seq, length)
				}
			}
			if n, count, _ := found(lineOf(seq, int(length)+1, times)); n != int(length) && n != int(length)+1 || count < 39 {
				t.Errorf("%d kernels, one more at every %d: found %d, %d times", length, every, n, count)
			}
		}
	}
}

// Four steps of two halves each, the second of which every other step lacks, where the GPU waits for the host before each
// step: these are steps of two kinds, not pairs. Without the waits they are as good as a step of three parts.
func TestHalfOfTheStepsLoseTheirSecondHalf(t *testing.T) {
	var seq []int32
	var starts []int
	for step := range 40 {
		starts = append(starts, len(seq))
		for k := range int32(40) {
			if k < 20 || step%2 == 0 {
				seq = append(seq, k)
			}
		}
	}
	l := lineOf(seq, 40, nil)
	for _, at := range starts[1:] {
		l.idle[at] = 50_000
		l.all += 50_000
	}
	x, _ := l.search()
	if len(x.pos) != 40 || int(x.pos[1]) != starts[1] {
		t.Errorf("%d units, the second starts at %d; want 40, %d", len(x.pos), x.pos[1], starts[1])
	}
}

// A layer of 57 kernels, 32 times, and 8 others make one pass, and no name occurs once in it.
func TestLayersInAPass(t *testing.T) {
	var seq []int32
	for range 4 {
		for range 32 {
			for k := range int32(57) {
				seq = append(seq, k%19)
			}
		}
		seq = append(seq, 3, 4, 3, 4, 3, 4, 3, 4)
	}
	l := lineOf(seq, 19, nil)
	x, others := l.search()
	if x.period != 1832 || x.index != 1 || len(x.pos) != 4 {
		t.Errorf("found %d kernels (%v), %d times", x.period, x.index, len(x.pos))
	}
	if !slices.ContainsFunc(others, func(y *fit) bool { return y.period == 19 && y.main > 0.9 }) { // 57 names are three times 19 here
		t.Error("the layer is not among the others")
	}
}

// Of 4 units of 9 kernels, 3 starts enclose a whole one each; what the last starts is complete and equal to them. All four
// are one kind: index 1. A fifth unit of 9 other kernels occurs once: of 45 kernels 36 are in units that recur, so the index
// is 0.8 squared.
func TestIndexByHand(t *testing.T) {
	var seq []int32
	for range 4 {
		for k := range int32(9) {
			seq = append(seq, k)
		}
	}
	f := func(seq []int32) *fit {
		l := lineOf(seq, 20, nil)
		return newFitter(l).fit([]int32{0}, 0, l.occurrences([]int32{0}, 0))
	}
	if x := f(seq); x.index != 1 || x.covered != 1 || x.units != 4 || x.period != 9 {
		t.Errorf("%+v", x)
	}
	seq = append(seq, 0)
	for k := range int32(8) {
		seq = append(seq, 10+k)
	}
	if x := f(append(seq, 0)); x.units != 4 || x.covered != 0.8 || x.index < 0.6399 || x.index > 0.6401 {
		t.Errorf("%+v", x)
	}
}

func TestNothingRepeats(t *testing.T) {
	counting := make([]int32, 1000)
	var halves, few []int32
	for i := range counting {
		counting[i] = int32(i)
		halves = append(halves, int32(i/500)) // AAAA…BBBB…
	}
	for range 5 {
		few = append(few, 1, 2, 3, 4)
	}
	for name, seq := range map[string][]int32{"empty": nil, "counting": counting, "two halves": halves, "five times four kernels": few} {
		if n, count, index := found(lineOf(seq, 1000, nil)); n != 0 {
			t.Errorf("%s: found %d kernels %d times (%v)", name, n, count, index)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		seq := make([]int32, 400)
		for i := range seq {
			seq[i] = int32(Mix(seed+uint64(i)*0x9E3779B97F4A7C15) % 30)
		}
		if n, count, index := found(lineOf(seq, 30, nil)); n != 0 {
			t.Fatalf("found %d kernels %d times (%v) in noise", n, count, index)
		}
	})
}

// Eleven kernels of two names, ten repeats and more of the same few, are plain.
func TestShortButPlain(t *testing.T) {
	for _, c := range []struct{ kernels, times int }{{2, 11}, {2, 10}, {1, 12}, {1, 10}} {
		var seq []int32
		for range c.times {
			for k := range c.kernels {
				seq = append(seq, int32(k))
			}
		}
		if n, count, _ := found(lineOf(seq, 2, nil)); n != c.kernels || count != c.times {
			t.Errorf("%d kernels %d times: found %d, %d times", c.kernels, c.times, n, count)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabcabcabcabcabcabcabc"))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("abbbbbbbbbbbbbbabbbbbbbbbbbbbbabbbbbbbbbbbbbbabbbbbbbbbbbbbbxxx"))
	f.Fuzz(func(t *testing.T, text []byte) {
		seq := make([]int32, len(text))
		for i, c := range text {
			seq[i] = int32(c)
		}
		l := lineOf(seq, 256, nil)
		x, _ := l.search()
		if x == nil || !x.believed() {
			return
		}
		if x.period < 1 || x.period > len(seq) || x.index > 1.0001 || x.covered > 1.0001 || !slices.Equal(l.occurrences(x.names, x.skip), x.pos) {
			t.Errorf("%+v of %d", x, len(seq))
		}
	})
}

// BenchmarkSearch is for the cost of one kernel more: the time per kernel must not grow with their number.
func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			seq := make([]int32, n)
			for i := range seq {
				seq[i] = int32(Mix(uint64(i%1832)) % 60)
			}
			l := lineOf(seq, 60, nil)
			b.ReportAllocs()
			for b.Loop() {
				if x, _ := l.search(); x.period != 1832 {
					b.Fatal(x.period)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/kernel")
		})
	}
	b.Run("noise", func(b *testing.B) {
		seq := make([]int32, 1_000_000)
		for i := range seq {
			seq[i] = int32(Mix(uint64(i)) % 100)
		}
		l := lineOf(seq, 100, nil)
		for b.Loop() {
			l.search()
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(seq)), "ns/kernel")
	})
}

// An anchor that directly follows itself starts one unit, unless such anchors are half of all kernels or more.
func TestStarts(t *testing.T) {
	for _, c := range []struct {
		pos   []int32
		width int
		want  []int32
	}{
		{nil, 1, nil},
		{[]int32{0, 1, 6, 7, 12, 13}, 1, []int32{0, 6, 12}},   // E E N G N S
		{[]int32{0, 1, 3, 4, 6}, 1, []int32{0, 3, 6}},         // E E G: 2 of 6 kernels
		{[]int32{0, 1, 2, 6, 7, 8, 12}, 1, []int32{0, 6, 12}}, // E E E N G S: 4 of 12
		{[]int32{0, 2, 9, 11, 18}, 2, []int32{0, 9, 18}},      // A B A B and five more
		{[]int32{0, 1, 2, 3, 4}, 1, []int32{0, 1, 2, 3, 4}},   // each kernel is a unit
	} {
		if got := starts(c.pos, c.width); !slices.Equal(got, c.want) {
			t.Errorf("%v of %d: %v, want %v", c.pos, c.width, got, c.want)
		}
	}
}

// Comparing two small units costs no more in a capture with very many names of kernels.
func TestComparingUnitsAmongManyNames(t *testing.T) {
	const many = 1 << 22
	c := &comparer{span: []slice{{track: &track{}}, {track: &track{}}}, names: &symbols{}, count: make([]int32, many), runs: make([]int32, many)}
	began := time.Now()
	for range 2000 {
		if !c.alike(0, 1, sameWork, trifle) {
			t.Fatal("two units without work differ")
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("2000 comparisons of nothing took %v", took)
	}
}
