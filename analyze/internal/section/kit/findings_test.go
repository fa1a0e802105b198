package kit

import (
	"slices"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/timeline"
	"github.com/nsys-llm/explain/analyze/report"
)

// No finding is worth more than the time that there is, less than nothing, or a share of nothing.
func TestWorthIsPartOfWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		worth, want *report.Worth
	}{
		{&report.Worth{Time: 250, Of: 200}, &report.Worth{Time: 200, Of: 200}},
		{&report.Worth{Time: 50, Of: 200}, &report.Worth{Time: 50, Of: 200}},
		{&report.Worth{Time: -50, Of: 200}, nil}, {&report.Worth{Time: 5}, nil},
	} {
		f := &Finding{Finding: &report.Finding{ID: "x"}, def: &FindingDef{ID: "x"}}
		found, remarks := rankFindings(&Step{}, []*Finding{f.Costs(c.worth)})
		switch {
		case c.want == nil && (len(found) > 0 || len(remarks) != 1):
			t.Errorf("%+v: %+v", c.worth, found)
		case c.want != nil && (len(found) != 1 || *found[0].Worth != *c.want):
			t.Errorf("%+v: %+v, want %+v", c.worth, found, c.want)
		}
	}
}

// Of 1,000 ns a kernel takes 500, another 200, waiting for the host 250 and communication 50. The specific finding on the
// first kernel holds the time of the general one; a failure comes first; what is worth less than 1 % is a remark.
func TestFindingsHoldEachPieceOfTimeOnce(t *testing.T) {
	s := &Step{Of: 1000, Units: 10, Compute: 700, Comm: 50, Idle: 250, Kernels: []int64{500, 200, 0}}
	s.Cause[timeline.CauseHost], s.Cause[timeline.CauseSync] = 200, 50
	find := func(id string, def FindingDef) *Finding {
		return &Finding{Finding: &report.Finding{ID: id, Title: id, Evidence: []report.MetricRef{}, Advice: []string{}}, def: &def}
	}
	kernel := func(n int) []Claim {
		list, _ := s.KernelClaims(func(name int) bool { return name == n })
		return list
	}
	all, _ := s.KernelClaims(nil)
	found, remarks := rankFindings(s, []*Finding{
		find("no_worth", FindingDef{}),
		find("all_kernels", FindingDef{General: true}).Costs(s.Worth(700), all...),
		find("first_kernel", FindingDef{}).Costs(s.Worth(500), kernel(0)...),
		find("little", FindingDef{}).Costs(s.Worth(9), Claim{piece{"comm", 0}, 9}),
		find("broken", FindingDef{Failure: true}),
		find("some_comm", FindingDef{}).Costs(s.Worth(20), s.CommClaim(s.Comm)),
		find("waits", FindingDef{General: true}).OfIdle(s, 250, timeline.CauseSync, timeline.CauseHost),
		find("sync", FindingDef{}).OfIdle(s, 50, timeline.CauseSync),
		find("part", FindingDef{General: true, Part: true}).Costs(s.Worth(500), kernel(0)...),
	})
	var got []string
	for _, f := range found {
		share := ""
		if f.Worth != nil {
			share = string(rune('0'+f.Worth.Time/100)) + "."
		}
		got = append(got, share+f.ID+" "+string(f.Severity))
	}
	want := []string{"broken high", "5.first_kernel high", "2.waits high", "0.sync medium", "0.some_comm low"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	var told []string
	for _, r := range remarks {
		told = append(told, r.ID)
	}
	if want := []string{"little", "no_worth", "all_kernels"}; !slices.Equal(told, want) {
		t.Errorf("remarks %q, want %q", told, want)
	}
	var sum int64
	for _, f := range found {
		if f.Worth != nil {
			sum += f.Worth.Time
		}
	}
	if sum > s.Of {
		t.Errorf("findings hold %d of %d ns", sum, s.Of)
	}
}

// Of 1,000 ns the GPU idles 200 while the host waits, 150 for the host and 50 behind launches. A finding on waits holds
// the 200 and 60 for the host; what is said of the idle time is then said of the other 140, most of it for the host.
func TestIdleTimeThatAnotherFindingLeavesIsToldAnew(t *testing.T) {
	s := &Step{Of: 1000, Idle: 400, Kernels: []int64{0}}
	s.Cause[timeline.CauseSync], s.Cause[timeline.CauseHost], s.Cause[timeline.CauseDependency] = 200, 150, 50
	waits := &Finding{Finding: &report.Finding{ID: "sync"}, def: &FindingDef{}}
	idle := &Finding{Finding: &report.Finding{ID: "gpu_idle"}, def: &FindingDef{General: true}}
	var left [timeline.Causes]int64
	found, remarks := rankFindings(s, []*Finding{
		idle.OfIdle(s, 400, timeline.CauseSync, timeline.CauseHost, timeline.CauseDependency).
			Rest(func(l *[timeline.Causes]int64) { left = *l }),
		waits.OfIdle(s, 260, timeline.CauseSync, timeline.CauseHost),
	})
	if len(remarks) != 0 || len(found) != 2 || found[1].ID != "gpu_idle" {
		t.Fatalf("found %+v, remarks %+v", found, remarks)
	}
	if found[0].Worth.Time != 260 || found[1].Worth.Time != 140 {
		t.Errorf("worth %d and %d, want 260 and 140", found[0].Worth.Time, found[1].Worth.Time)
	}
	if left[timeline.CauseSync] != 0 || left[timeline.CauseHost] != 90 || left[timeline.CauseDependency] != 50 {
		t.Errorf("left %v", left)
	}
}

// A finding whose idle time others hold whole is a remark, and says what it said.
func TestIdleTimeWithoutARestIsNotToldAnew(t *testing.T) {
	s := &Step{Of: 1000, Idle: 400, Kernels: []int64{0}}
	s.Cause[timeline.CauseHost] = 400
	find := func(id string, general bool) *Finding {
		f := &Finding{Finding: &report.Finding{ID: id}, def: &FindingDef{General: general}}
		return f.OfIdle(s, 400, timeline.CauseHost)
	}
	again := func(left *[timeline.Causes]int64) { t.Errorf("told anew of %v", left) }
	_, remarks := rankFindings(s, []*Finding{find("gpu_idle", true).Rest(again), find("waits", false)})
	if len(remarks) != 1 || remarks[0].ID != "gpu_idle" {
		t.Errorf("remarks %+v", remarks)
	}
}

// Of 400 ns that the GPU idles, 150 are after read-backs. Where the finding on those is worth nothing in a replay, they are
// of the finding on idle time, by their causes; where it stands, they are not.
func TestIdleTimeAfterReadBacksIsNeverLost(t *testing.T) {
	for worth, want := range map[int64]int64{0: 400, 150: 250} {
		s := &Step{Of: 1000, Idle: 400, Kernels: []int64{0}}
		s.Cause[timeline.CauseSync], s.Cause[timeline.CauseHost] = 100, 300
		s.ReadBackBy[timeline.CauseSync], s.ReadBackBy[timeline.CauseHost] = 100, 50
		var left [timeline.Causes]int64
		idle := &Finding{Finding: &report.Finding{ID: "gpu_idle"}, def: &FindingDef{General: true}}
		backs := &Finding{Finding: &report.Finding{ID: "read_backs"}, def: &FindingDef{}}
		backs.OfIdle(s, 150, CauseReadBack).Worth.Time = worth
		found, _ := rankFindings(s, []*Finding{backs, idle.OfIdle(s, 400, timeline.CauseSync, timeline.CauseHost, CauseReadBack).
			Rest(func(l *[timeline.Causes]int64) { left = *l })})
		if at := slices.IndexFunc(found, func(f report.Finding) bool { return f.ID == "gpu_idle" }); at < 0 || found[at].Worth.Time != want {
			t.Errorf("read-backs worth %d: %+v", worth, found)
		}
		if worth == 0 && (left[timeline.CauseSync] != 100 || left[timeline.CauseHost] != 300) {
			t.Errorf("left %v", left)
		}
	}
}

func TestSeverityFollowsTheWorthAlone(t *testing.T) {
	s := &Step{Of: 10_000, Kernels: []int64{0}}
	for ns, want := range map[int64]report.Severity{1000: report.High, 999: report.Medium, 300: report.Medium, 299: report.Low, 100: report.Low, 99: ""} {
		f := &Finding{Finding: &report.Finding{ID: "f"}, def: &FindingDef{}}
		found, remarks := rankFindings(s, []*Finding{f.Costs(s.Worth(ns))})
		if want == "" && (len(found) != 0 || len(remarks) != 1) || want != "" && (len(found) != 1 || found[0].Severity != want) {
			t.Errorf("%d of 10,000: %+v, remarks %+v; want %q", ns, found, remarks, want)
		}
	}
}

// Of 1,000 ns the GPU idles for 300, for the host: 200 inside calls that allocate, 5 in copies, which is too little for a
// finding and takes nothing. A wait that could hide all of it leaves what was measured to the allocations.
func TestTimeInsideCallsComesFirst(t *testing.T) {
	s := &Step{Of: 1000, Units: 10, Idle: 300}
	s.Cause[timeline.CauseHost] = 300
	find := func(id string, def FindingDef) *Finding {
		return &Finding{Finding: &report.Finding{ID: id}, def: &def}
	}
	inside := func(id string, ns int64) *Finding {
		return find(id, FindingDef{Inside: true}).Costs(s.Worth(ns), s.IdleClaims(ns, timeline.CauseHost)...)
	}
	for _, c := range []struct {
		wait, waits, idle int64 // worth of the wait, and what is left to it and to the idle time
	}{{300, 0, 100}, {90, 90, 10}} {
		found, _ := rankFindings(s, []*Finding{
			find("idle", FindingDef{General: true}).OfIdle(s, 300, timeline.CauseHost).Rest(func(*[timeline.Causes]int64) {}),
			find("wait", FindingDef{}).OfIdle(s, c.wait, timeline.CauseHost),
			inside("copies", 5), inside("allocations", 200),
		})
		got := map[string]int64{}
		for _, f := range found {
			got[f.ID] = f.Worth.Time
		}
		if got["allocations"] != 200 || got["wait"] != c.waits || got["idle"] != c.idle || got["copies"] != 0 {
			t.Errorf("a wait worth %d: %v", c.wait, got)
		}
	}
}
