package report

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Two devices. On the first three units that follow each other, of 100, 110 and 95 ns, with 20, 20 and 30 of them without
// work; on the second one, numbered from 0 again.
func TestUnitSeries(t *testing.T) {
	units := []UnitPoint{
		{Device: 0, Process: 7, Number: 0, Group: 0, State: 2, Signature: "aa", Start: 1000, Duration: 100, Busy: 80, Compute: 80, Launches: 9, Kernels: 9},
		{Device: 0, Process: 7, Number: 1, Group: 0, State: 0, Signature: "bb", Start: 1100, Duration: 110, Busy: 90, Compute: 85, Launches: 9, Kernels: 9},
		{Device: 0, Process: 7, Number: 2, Group: 0, State: 0, Signature: "bb", Start: 1210, Duration: 95, Busy: 65, Compute: 65, Launches: 9, Kernels: 10},
		{Device: 1, Process: 7, Number: 0, Group: -1, State: 1, Signature: "", Start: 1005, Duration: 95, Busy: 95, Compute: 0, Launches: 0, Kernels: 2},
	}
	s := NewUnitSeries(units)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"count":4,"every":1,"signatures":["aa","bb"],"device":[0,3,1,1],"process":[7,4],"number":[0,1,1,2,-2,1],` +
		`"group":[0,3,-1,1],"state":[2,1,0,2,1,1],"signature":[0,1,1,2,-1,1],"start":[1000,1,0,2,-300,1],` +
		`"duration":[100,10,-15,0],"idle":[20,0,10,-30],"not_compute":[0,5,-5,95],"launches":[9,3,0,1],"kernels":[9,2,10,1,2,1]}`
	if string(text) != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	got, err := s.Decode()
	if err != nil || !slices.Equal(got, units) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

// Steps 17, 18 and 20 of one device and 17 of another, numbered from 0: the numbers less their places are 17, 17, 18 and 17.
func TestStepsOfUnits(t *testing.T) {
	units := []UnitPoint{
		{Number: 0, Duration: 5, Busy: 5, Step: 17}, {Number: 1, Start: 5, Duration: 5, Busy: 5, Step: 18},
		{Number: 2, Start: 10, Duration: 5, Busy: 5, Step: 20}, {Device: 1, Number: 0, Duration: 5, Busy: 5, Step: 17},
	}
	s := NewUnitSeries(units)
	if want := []int64{17, 2, 18, 1, 17, 1}; !slices.Equal(s.Step, want) {
		t.Errorf("%v, want %v", s.Step, want)
	}
	if got, err := s.Decode(); err != nil || !slices.Equal(got, units) {
		t.Errorf("decoded %+v, %v", got, err)
	}
	s.Step = []int64{17, 2, -3, 1, 17, 1} // unit 2 would be step -1
	if _, err := s.Decode(); err == nil {
		t.Error("a negative step")
	}
}

// randomUnits are n units of up to three devices with whatever a capture may hold.
func randomUnits(rng *rand.Rand, n int) []UnitPoint {
	units := make([]UnitPoint, n)
	for i := range units {
		d := rng.Int64N(1 << rng.IntN(40))
		units[i] = UnitPoint{
			Device: rng.Int64N(3), Process: rng.Int64N(3) - 1, Number: int64(i), Group: rng.Int64N(4) - 1, State: rng.Int64N(5),
			Signature: []string{"", "a", "b", "c"}[rng.IntN(4)], Start: rng.Int64N(1<<50) - 1<<49, Duration: d,
			Busy: rng.Int64N(d + 1), Launches: rng.Int64N(3), Kernels: rng.Int64N(1 << 40),
		}
		units[i].Compute = rng.Int64N(units[i].Busy + 1)
		if n%2 == 0 {
			units[i].Step = rng.Int64N(1 << 50)
		}
	}
	return units
}

func TestUnitSeriesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		units := randomUnits(rng, rng.IntN(50))
		got, err := NewUnitSeries(units).Decode()
		if err != nil || !slices.Equal(got, units) {
			t.Fatalf("%+v became %+v, %v", units, got, err)
		}
	}
}

// Of more units than a series holds every second one is in it, and of more hashes than it holds the rest is unknown.
func TestUnitSeriesIsBounded(t *testing.T) {
	units := randomUnits(rand.New(rand.NewPCG(3, 4)), MaxSeriesUnits+10)
	for i := range units {
		units[i].Signature = string(rune('a'+i%26)) + strings.Repeat("x", i%2000/26)
	}
	s := NewUnitSeries(units)
	got, err := s.Decode()
	if err != nil {
		t.Fatal(err)
	}
	if s.Every != 2 || s.Count != (MaxSeriesUnits+10)/2 || got[1].Start != units[2].Start || got[1].Number != 2 {
		t.Errorf("%d units, every %d-th, the second %+v", s.Count, s.Every, got[1])
	}
	if len(s.Signatures) > maxSeriesHashes {
		t.Errorf("%d signatures", len(s.Signatures))
	}
}

func TestUnitSeriesRefuses(t *testing.T) {
	good := func() *UnitSeries {
		return NewUnitSeries([]UnitPoint{{Duration: 10, Busy: 5, Signature: "a"}, {Number: 1, Start: 10, Duration: 10, Busy: 5, Signature: "a"}})
	}
	for name, spoil := range map[string]func(s *UnitSeries){
		"more units than columns":   func(s *UnitSeries) { s.Count = 3 },
		"as many units as it likes": func(s *UnitSeries) { s.Count = 1 << 40 },
		"negative count":            func(s *UnitSeries) { s.Count = -1 },
		"every 0-th":                func(s *UnitSeries) { s.Every = 0 },
		"a run too long":            func(s *UnitSeries) { s.Device = []int64{0, 1 << 60} },
		"a run too short":           func(s *UnitSeries) { s.Device = []int64{0, 1} },
		"an empty run":              func(s *UnitSeries) { s.Group = []int64{0, 0, 0, 2} },
		"a value alone":             func(s *UnitSeries) { s.Group = []int64{0, 2, 1} },
		"a state that is none":      func(s *UnitSeries) { s.State = []int64{5, 2} },
		"a signature that is none":  func(s *UnitSeries) { s.Signature = []int64{1, 2} },
		"more idle than time":       func(s *UnitSeries) { s.Idle[0] = 11 },
		"negative time":             func(s *UnitSeries) { s.Duration[1] = -11 },
		"time out of range":         func(s *UnitSeries) { s.Duration[1] = 1<<63 - 1 },
		"start out of range":        func(s *UnitSeries) { s.Start = []int64{1<<63 - 5, 1, 0, 1} },
		"launches of some units":    func(s *UnitSeries) { s.Launches = []int64{1, 1} },
		"no kernels":                func(s *UnitSeries) { s.Kernels = nil },
		"negative kernels":          func(s *UnitSeries) { s.Kernels = []int64{-1, 2} },
		"compute of one unit":       func(s *UnitSeries) { s.NotCompute = s.NotCompute[:1] },
		"more compute than busy":    func(s *UnitSeries) { s.NotCompute = []int64{-1, 0} },
		"less compute than none":    func(s *UnitSeries) { s.NotCompute = []int64{6, 0} },
		"number out of range":       func(s *UnitSeries) { s.Number = []int64{-1, 2} },
	} {
		s := good()
		spoil(s)
		if units, err := s.Decode(); err == nil {
			t.Errorf("%s: %+v", name, units)
		}
		r := small()
		r.Unit.Series = s
		if r.Validate() == nil {
			t.Errorf("%s: the report is valid", name)
		}
	}
	r := small()
	r.Unit.Series = NewUnitSeries([]UnitPoint{{Group: 0}})
	if r.Validate() == nil {
		t.Error("a unit of a group that is not listed is valid")
	}
}
