package ranks

import (
	"math"
	"testing"

	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// stages is a pipeline of ranks on hosts of their own that only send to and receive from their neighbours: batches go down
// and, if both, back up. One of them copies for late ns in most batches.
func stages(seed uint64, n int, both bool, slow int, late int64) *play {
	p := newPlay(seed, n, true)
	for range 40 {
		for r := range n {
			p.do(r, actCompute, 400_000)
			if r == slow && p.rng.Float64() < 0.8 {
				p.do(r, actCopy, late)
			}
			if r+1 < n {
				p.send(r, r+1)
			}
		}
		for r := n - 1; both && r > 0; r-- {
			p.do(r, actCompute, 500_000)
			p.send(r, r-1)
		}
		p.do(0, actCompute, 100_000)
	}
	return p
}

// drifting gives each host a clock that is ahead by up to a second and runs apart by up to 50 ppm; ahead says what member i's
// is at a time of its own.
func drifting(p *play) (members []Member, ahead func(i int, own int64) float64) {
	offset, rate := make([]float64, len(p.tracks)), make([]float64, len(p.tracks))
	const begin = 1_000_000_000
	for i, t := range p.tracks {
		if i > 0 {
			offset[i], rate[i] = p.rng.Float64()*2e9-1e9, p.rng.Float64()*100e-6-50e-6
		}
		shown := func(at int64) int64 { return at + int64(offset[i]+rate[i]*float64(at-begin)) }
		for k := range t.Calls {
			t.Calls[k].Start, t.Calls[k].End = shown(t.Calls[k].Start), shown(t.Calls[k].End)
		}
		members = append(members, Member{Track: t, Host: string(rune('a' + i))})
	}
	return members, func(i int, own int64) float64 {
		at := (float64(own) - offset[i] + rate[i]*begin) / (1 + rate[i])
		return float64(own) - at
	}
}

// Hosts that share no collective are tied by their messages: the truth is within the residual that is said, which adds up
// from host to host, and the stage that copies is named.
func TestMessagesTieClocks(t *testing.T) {
	cases := 20
	if longtest.On() {
		cases = 200
	}
	right := 0
	for seed := range cases {
		n := 2 + seed%4
		slow := seed / 4 % n
		members, ahead := drifting(stages(uint64(seed), n, true, slow, 3_000_000))
		got, r := first(members)
		a := Align(members, nil)
		for i := range members {
			c := a.Clock(i)
			calls := members[i].Calls
			if !c.Known || c.P99 > 200_000*float64(i) || i > 0 && c.Messages != 80 {
				t.Errorf("seed %d: clock %d is %+v", seed, i, c)
				continue
			}
			for _, at := range []int64{calls[0].Start, calls[len(calls)/2].Start, calls[len(calls)-1].End} {
				if off := math.Abs(float64(c.Line.At(at)) - ahead(i, at)); off > c.P99+1 {
					t.Errorf("seed %d: clock %d is off by %.0f ns at %d, and says %.0f", seed, i, off, at, c.P99)
				}
			}
		}
		if got == slow && r.Chains[0].Causes[0].Act == "cudaMemcpy" {
			right++
		} else {
			t.Logf("seed %d: %d is named, %d of %d is late: %+v", seed, got, slow, n, r.Chains)
		}
	}
	if float64(right) < 0.95*float64(cases) {
		t.Errorf("%d of %d right", right, cases)
	}
	t.Logf("%d of %d right", right, cases)
}

// A rank that copies 9 µs before it sends, over clocks that messages leave some 4 µs open: of 12 µs of waiting nothing is told,
// which is less than three times that; of 90 µs all is.
func TestMessagesNameNobodyBelowTheResidual(t *testing.T) {
	for seed := range uint64(20) {
		for late, named := range map[int64]bool{5_000: false, 90_000: true} {
			p := newPlay(seed, 2, true)
			for range 40 {
				p.do(0, actCopy, late)
				p.send(0, 1)
				p.send(1, 0)
			}
			members, _ := drifting(p)
			got, r := first(members)
			if c := Align(members, nil).Clocks[1]; (got == 0) != named || !c.Known || c.P99 < 3_000 {
				t.Errorf("seed %d: %d is named, late by %d ns, clock %+v: %+v", seed, got, late, c, r.Chains)
			}
		}
	}
}

// Messages of one direction bound a clock on one side alone: it is not known, and nobody is named.
func TestOneWayMessagesTieNothing(t *testing.T) {
	members, _ := drifting(stages(3, 3, false, 1, 900_000))
	got, _ := first(members)
	if a := Align(members, nil); a.Clocks[1].Known || a.Clocks[2].Known || got >= 0 {
		t.Errorf("%d is named with clocks %+v", got, a.Clocks)
	}
}

// By hand: the clock is 100 ahead. A message to it is received 10 after it was sent, another 25 after; one from it 20 after.
// So it is at most 110 and at least 80 ahead: 95, give or take 15.
func TestBetweenByHand(t *testing.T) {
	line, open, ok := between([]point{{1000, 110}, {2000, 125}}, []point{{1500, 80}})
	if !ok || math.Abs(line.Offset-95) > 1 || math.Abs(open-15) > 1 {
		t.Errorf("%+v, give or take %v (%v)", line, open, ok)
	}
	if _, _, ok := between([]point{{1000, 110}, {2000, 125}}, []point{{1500, 119}}); ok {
		t.Error("110 at most and 119 at least")
	}
	if _, _, ok := between(nil, []point{{1500, 80}}); ok {
		t.Error("nothing bounds it from above")
	}
}

// Captures that begin some messages apart: the order is found where hosts' own clocks tell it, and doubted where they do not.
func TestMessagesOfCapturesThatBeginApart(t *testing.T) {
	for _, host := range []int64{200_000, 80_000_000} {
		p := stages(5, 2, true, 0, 900_000)
		for k := range p.tracks[1].Calls {
			c := &p.tracks[1].Calls[k]
			c.Start, c.End = c.Start+host, c.End+host
		}
		p.tracks[1].Calls = p.tracks[1].Calls[6:] // three there and back
		members := []Member{{Track: p.tracks[0], Host: "a"}, {Track: p.tracks[1], Host: "b"}}
		sets := Match(members)
		c := Align(members, sets).Clocks[1]
		if off := math.Abs(c.Line.Offset - float64(host)); c.Known && off > c.P99+1 {
			t.Errorf("ahead by %d it is %+v", host, c)
		} else if host == 200_000 && !c.Known {
			t.Errorf("ahead by %d it is not known", host)
		}
	}
}
