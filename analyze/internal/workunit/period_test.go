package workunit

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// planted draws a period whose first name occurs nowhere else in it, so that it is no repetition of a shorter one.
func planted(t *rapid.T) (period []int32, symbols int) {
	symbols = rapid.IntRange(3, 40).Draw(t, "symbols")
	n := rapid.IntRange(2, 200).Draw(t, "length")
	period = make([]int32, n)
	for i := 1; i < n; i++ {
		period[i] = int32(rapid.IntRange(1, symbols-2).Draw(t, "name"))
	}
	return period, symbols
}

// mixed draws a period of names that are all about as frequent. One that is a single name but for a few places has that
// name as its period under noise, and rightly.
func mixed(t *rapid.T) (period []int32, symbols int) {
	symbols = rapid.IntRange(8, 40).Draw(t, "symbols")
	seed := rapid.Uint64().Draw(t, "seed")
	period = make([]int32, rapid.IntRange(10, 200).Draw(t, "length"))
	for i := 1; i < len(period); i++ {
		period[i] = 1 + int32(mix(seed+uint64(i)*0x9E3779B97F4A7C15)%uint64(symbols-2))
	}
	return period, symbols
}

// repeat is the period over and over, cut off at both ends.
func repeat(t *rapid.T, period []int32, least int) []int32 {
	times := max(rapid.IntRange(least, 40).Draw(t, "times"), 2*minSequence/len(period)+3)
	var seq []int32
	for range times {
		seq = append(seq, period...)
	}
	from := rapid.IntRange(0, len(period)-1).Draw(t, "cut before")
	to := rapid.IntRange(0, len(period)-1).Draw(t, "cut after")
	return seq[from : len(seq)-to]
}

func TestPlantedPeriodIsFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period, symbols := planted(t)
		seq := repeat(t, period, 5)
		x := findPeriod(seq, symbols)
		if x.lag != len(period) || x.share != 1 || x.coverage != 1 {
			t.Fatalf("found %d (%v, %v), planted %d", x.lag, x.share, x.coverage, len(period))
		}
	})
}

func TestPlantedPeriodIsFoundUnderNoise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period, symbols := mixed(t)
		seq := repeat(t, period, 20)
		// Every hundredth name, somewhere, is another one: what tuners and allocators do. Where is left to a hash: what is drawn may
		// be a disturbance that repeats, and is then part of a longer period.
		seed := rapid.Uint64().Draw(t, "noise")
		for i := range len(seq) / 100 {
			seq[mix(seed+uint64(i)*0x9E3779B97F4A7C15)%uint64(len(seq))] = int32(symbols - 1)
		}
		x := findPeriod(seq, symbols)
		if x.lag%len(period) == 0 && len(seq) < 4*x.lag {
			return // two disturbances that far apart look like a part of a longer period, of which there are too few to tell
		}
		if x.lag != len(period) {
			t.Fatalf("found %d (%v), planted %d", x.lag, x.share, len(period))
		}
	})
}

func TestPeriodIsFoundBehindALoadPhase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		period, symbols := mixed(t)
		steps := repeat(t, period, 5)
		load := rapid.SliceOfN(rapid.Int32Range(0, int32(symbols-1)), 0, len(steps)/5).Draw(t, "load")
		tail := rapid.SliceOfN(rapid.Int32Range(0, int32(symbols-1)), 0, len(steps)/20).Draw(t, "tail")
		seq := slices.Concat(load, steps, tail)
		x := findPeriod(seq, symbols)
		if x.lag != len(period) {
			t.Fatalf("found %d (%v, %v), planted %d", x.lag, x.share, x.coverage, len(period))
		}
	})
}

// A layer of 57 kernels, 32 times, and 8 others make one pass: the pass tiles the sequence, the layer only nearly.
func TestNestedPeriod(t *testing.T) {
	var seq []int32
	for range 4 {
		for range 32 {
			for k := range int32(57) {
				seq = append(seq, k%19) // no name occurs once per pass
			}
		}
		seq = append(seq, 3, 4, 3, 4, 3, 4, 3, 4)
	}
	x := findPeriod(seq, 19)
	if x.lag != 1832 || x.share != 1 {
		t.Errorf("found %d (%v), want 1832", x.lag, x.share)
	}
	if x.inner != 19 || x.innerShare < 0.9 { // 57 names are three times 19 here
		t.Errorf("inner %d (%v), want 19", x.inner, x.innerShare)
	}
}

func TestNoPeriod(t *testing.T) {
	for name, seq := range map[string][]int32{
		"empty":     nil,
		"too short": make([]int32, minSequence-1),
		"counting":  counting(1000),
	} {
		if x := findPeriod(seq, 2000); x.lag != 0 {
			t.Errorf("%s: found %d", name, x.lag)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		seq := make([]int32, 400)
		for i := range seq {
			seq[i] = rapid.Int32Range(0, 30).Draw(t, "name")
		}
		if x := findPeriod(seq, 31); x.lag > 1 && x.share < minShare {
			t.Fatalf("found %d with share %v", x.lag, x.share)
		}
	})
}

func counting(n int) []int32 {
	seq := make([]int32, n)
	for i := range seq {
		seq[i] = int32(i)
	}
	return seq
}

func TestLeastRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SliceOfN(rapid.Int32Range(0, 3), 1, 12).Draw(t, "s")
		turn := func(k int) []int32 { return slices.Concat(s[k:], s[:k]) }
		got := turn(leastRotation(s))
		for k := range s {
			if slices.Compare(turn(k), got) < 0 {
				t.Fatalf("%v: rotation by %d is less than %v", s, k, got)
			}
		}
	})
}

// The anchor of a pattern must not depend on where the capture was cut.
func TestAnchorIsTheSameForEveryRotation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seq, _ := planted(t)
		time := make([]int64, len(seq))
		for i := range time {
			time[i] = int64(rapid.IntRange(1, 1000).Draw(t, "time"))
		}
		anchor := func(turn int) []int32 {
			p := &pattern{seq: slices.Concat(seq[turn:], seq[:turn]), time: slices.Concat(time[turn:], time[:turn]), occurs: map[int32]int{}, periods: 1}
			for _, s := range seq {
				p.occurs[s]++
			}
			least := leastRotation(p.seq)
			p.seq, p.time = slices.Concat(p.seq[least:], p.seq[:least]), slices.Concat(p.time[least:], p.time[:least])
			return p.anchor()
		}
		want := anchor(0)
		if got := anchor(rapid.IntRange(0, len(seq)-1).Draw(t, "turn")); !slices.Equal(got, want) {
			t.Fatalf("anchor %v, unrotated %v", got, want)
		}
	})
}

func TestRunsLieApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var seq []int32
		for range rapid.IntRange(1, 4).Draw(t, "phases") {
			period, _ := planted(t)
			seq = append(seq, repeat(t, period, 5)...)
			seq = append(seq, rapid.SliceOfN(rapid.Int32Range(0, 40), 0, 100).Draw(t, "between")...)
		}
		lag := rapid.IntRange(1, 200).Draw(t, "lag")
		runs, _ := runsOf(seq, lag, new([]piece))
		end := 0
		for _, r := range runs {
			if r.lo < end || r.hi > len(seq) || r.hi-r.lo < lag {
				t.Fatalf("run %v after %d, of %d with lag %d", r, end, len(seq), lag)
			}
			end = r.hi
		}
	})
}

func FuzzFindPeriod(f *testing.F) {
	f.Add([]byte("abcabcabcabcabcabcabcabcabcabcabcabcabcabc"))
	f.Add([]byte("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"))
	f.Add([]byte("abbbbbbbbbbbbbbabbbbbbbbbbbbbbabbbbbbbbbbbbbbabbbbbbbbbbbbbbxxx"))
	f.Fuzz(func(t *testing.T, text []byte) {
		seq := make([]int32, len(text))
		for i, c := range text {
			seq[i] = int32(c)
		}
		x := findPeriod(seq, 256)
		if x.lag < 0 || x.lag > 0 && (x.share < 0.5 || len(x.runs) == 0 || x.lag > len(seq)/2) {
			t.Errorf("%+v of %d", x, len(seq))
		}
		if x.inner > 0 && x.inner*2 > x.lag {
			t.Errorf("inner %d of %d", x.inner, x.lag)
		}
	})
}

// Steadily falling sums were quadratic in a first version: every match looked back at all others.
func BenchmarkRunsOfNoise(b *testing.B) {
	seq := make([]int32, 1<<20)
	for i := range seq {
		seq[i] = int32(mix(uint64(i)) % 4)
	}
	for b.Loop() {
		runsOf(seq, 117, new([]piece))
	}
}

func BenchmarkFindPeriod(b *testing.B) {
	seq := make([]int32, 1<<20)
	for i := range seq {
		seq[i] = int32(mix(uint64(i%1832)) % 60)
	}
	b.ReportAllocs()
	for b.Loop() {
		if x := findPeriod(seq, 60); x.lag != 1832 {
			b.Fatal(x.lag)
		}
	}
}

// Of 12 kernels 17 times over, two that are 24 apart are disturbed. At a lag of 24 these two match each other, and 1 of 180 kernels
// differs; at 12 it is 4 of 192, in single periods: the period is 12. Where every other period has another kernel, it is 24.
func TestPeriodAndItsMultiple(t *testing.T) {
	var seq []int32
	for range 17 * 12 {
		seq = append(seq, 1+int32(len(seq)%12))
	}
	alternate := slices.Clone(seq)
	seq[13], seq[37] = 0, 0
	if x := findPeriod(seq, 13); x.lag != 12 || x.share != 1-4./192 {
		t.Errorf("disturbed: found %d (%v)", x.lag, x.share)
	}
	for i := 5; i < len(alternate); i += 24 {
		alternate[i] = 0
	}
	if x := findPeriod(alternate, 13); x.lag != 24 || x.share != 1 {
		t.Errorf("alternating: found %d (%v)", x.lag, x.share)
	}
}
