package whatif

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/stepgraph"
	"github.com/nsys-llm/explain/analyze/internal/timeline"
)

// main are the sums of the units of the main kind, by device.
func (c *capture) main(change *stepgraph.Change) (was, gain []float64) {
	for _, g := range c.ceilings.gains(change, true) {
		was, gain = append(was, g.Time*float64(g.N)), append(gain, g.Gain*float64(g.N))
	}
	return was, gain
}

// byDevice sums what units of the main kind have of something, by device.
func (c *capture) byDevice(of []int64) []float64 {
	sum := make([]float64, len(c.units.Timeline.Devices))
	for _, u := range c.kept() {
		sum[c.units.Units[u].Index] += float64(of[u])
	}
	return sum
}

// hostIdle is, by unit, the idle time that is charged to the host.
func (c *capture) hostIdle() []int64 {
	sum := make([]int64, len(c.units.Units))
	for d := range c.graph.Timeline.Devices {
		var own []int32
		for _, u := range c.kept() {
			if int(c.units.Units[u].Index) == d {
				own = append(own, u)
			}
		}
		c.graph.Timeline.Devices[d].Visit(nil, &timeline.Visitor{Gap: func(g *timeline.Gap) {
			for _, u := range own {
				if x := &c.units.Units[u]; g.Start < x.End && g.End > x.Start {
					sum[u] += g.Within(x.Start, x.End)[timeline.CauseHost]
				}
			}
		}})
	}
	return sum
}

func (c *capture) streams(device int) int {
	seen := map[int64]bool{}
	d := c.graph.Timeline.Devices[device]
	for i := range d.Len() {
		seen[d.Stream(i)] = true
	}
	return len(seen)
}

// What must be true of every ceiling: on a device of which less than 2 % of the steps is idle, a kernel is worth the time
// that it runs alone, to 2 points, and on a single stream no less; a free host is worth the idle time that is charged to
// the host; calls and latencies of launches are worth no more than the idle time outside of other waits; and what lies on
// the host of a path is, to 10 points, what is gained without it.
func TestBoundsOfCeilings(t *testing.T) {
	for _, path := range shared(t) {
		c, name := open(t, path), strings.TrimSuffix(filepath.Base(path), ".sqlite")
		if c.ceilings == nil {
			continue
		}
		face := &facing{graph: c.graph, r: c.units, of: c.of, list: c.kept()}
		idle := make([]int64, len(c.units.Units))
		for u, ns := range face.covered(func(*timeline.Device, int) bool { return true }) {
			idle[u] = c.units.Units[u].Time() - ns
		}
		host, idles := c.byDevice(c.hostIdle()), c.byDevice(idle)
		was, free := c.main(&stepgraph.Change{HostFree: true})
		_, graph := c.main(&stepgraph.Change{Graph: true})
		x := c.ceilings
		t.Logf("%-28s resolved %v: path %.1f %%, bare %.1f %%, unknown %.1f %%", name, x.Fits, 100*x.OnHost, 100*x.Bare, 100*x.Unknown)
		if apart := math.Abs(x.OnHost - x.Bare); apart > 0.1 && x.Fits {
			t.Errorf("%s: %.1f points between path and gain", name, 100*apart)
		}
		for d := range was {
			if was[d] == 0 {
				continue
			}
			t.Logf("   device %d: idle %.2f %%, of the host %.2f %%; free host %.2f %%, graph %.2f %%, %d streams", d,
				100*idles[d]/was[d], 100*host[d]/was[d], 100*free[d]/was[d], 100*graph[d]/was[d], c.streams(d))
			if x.Fits && free[d] < host[d]-0.001*was[d] {
				t.Errorf("%s: a free host gains less than the idle time of the host", name)
			}
			if x.Fits && graph[d] > idles[d]+0.001*was[d] {
				t.Errorf("%s: graphs gain more than the idle time", name)
			}
		}
		families := c.families()
		for _, f := range families[:min(6, len(families))] {
			change := c.scaled(f, 0)
			alone := c.byDevice(face.exclusive(change.Work))
			_, gain := c.main(change)
			for d := range was {
				share, worth := alone[d]/was[d], gain[d]/was[d]
				if was[d] == 0 || idles[d] >= 0.02*was[d] || share < 0.02 {
					continue
				}
				t.Logf("   %-40.40s alone %.2f %%, worth %.2f %%", f, 100*share, 100*worth)
				if math.Abs(share-worth) > 0.02 || c.streams(d) == 1 && worth < share-0.001 {
					t.Errorf("%s: %s runs alone for %.2f %% of a step that is idle for %.2f %%, and is worth %.2f %%", name, f,
						100*share, 100*idles[d]/was[d], 100*worth)
				}
			}
		}
	}
}
