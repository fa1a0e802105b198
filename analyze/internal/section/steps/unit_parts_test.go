package steps_test

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/internal/section/sectiontest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

// The units are those of TestUnitPositions: 200 µs each, the last 240 because the host is 40 late.
func TestUnitPartsByHand(t *testing.T) {
	res := sectiontest.Analyse(t, unitSteps(), analyze.Options{})
	u := &res.Report.Unit
	if len(u.Parts) != 1 || u.PartsOf(u.Groups[0].ID, u.Parts[0].Device) != u.Parts[0] {
		t.Fatalf("parts %+v", u.Parts)
	}
	got := map[string][]int64{}
	for i := range u.Parts[0].Parts {
		p := &u.Parts[0].Parts[i]
		times := p.Times()
		for k := range times {
			times[k] /= unitUS
		}
		got[p.Kind+" "+p.Name] = times
	}
	same := func(us ...int64) []int64 { return us }
	want := map[string][]int64{
		"compute unknown/gemm":     same(90, 90, 90, 90), // 50 and 40
		"compute unknown/softmax":  same(20, 20, 20, 20), // 30, of which 10 under the gemm
		"comm nccl/AllReduce/bf16": same(30, 30, 30, 30), // 40, of which 10 under the softmax
		"copy HtoD pinned":         same(10, 10, 10, 10),
		"idle sync":                same(10, 10, 10, 10),
		"idle host":                same(5, 5, 5, 45),
		"idle launch":              same(5, 5, 5, 5),     // 3 before the second gemm, 2 at the end
		"idle dependency":          same(30, 30, 30, 30), // 2 and 28
	}
	for name, list := range want {
		if !slices.Equal(got[name], list) {
			t.Errorf("%s: %v µs, want %v", name, got[name], list)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("more parts: %v", got)
	}
}

// Of every capture that is here, the parts of each unit sum to its duration to the nanosecond.
func TestUnitPartsClose(t *testing.T) {
	paths := longtest.Captures(t)
	if len(paths) == 0 {
		t.Skip("no shared/traces: the real traces are not part of the project")
	}
	for _, path := range paths {
		res, err := analyze.Run(t.Context(), path, analyze.Options{})
		if err != nil {
			continue
		}
		u := &res.Report.Unit
		if u.Series == nil {
			continue
		}
		points, err := u.Series.Decode()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range u.Parts {
			numbers, err := p.Numbers()
			if err != nil {
				t.Fatal(err)
			}
			sums := make([]int64, len(numbers))
			for i := range p.Parts {
				for k, ns := range p.Parts[i].Times() {
					sums[k] += ns
				}
			}
			next := 0
			for i := range points {
				x := &points[i]
				if x.State == 0 && x.Device == p.Device && u.Groups[x.Group].ID == p.Group && next < len(sums) && x.Number == numbers[next] {
					if x.Duration != sums[next] {
						t.Errorf("%s: unit %d of %s lasts %d ns, its parts %d", path, x.Number, p.Group, x.Duration, sums[next])
					}
					next++
				}
			}
			if next != len(numbers) {
				t.Errorf("%s: %d of %d units of %s are in the series", path, next, len(numbers), p.Group)
			}
		}
	}
}
