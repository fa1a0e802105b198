package analyze

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/merge/ranks"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/tracetest"
	"github.com/nsys-llm/explain/analyze/tracetest/longtest"
)

var partials = flag.Int("partials", 20, "partials that TestManyPartials merges; the claims are about 1000 and 10000")
var kept = flag.String("kept", "", "folder that keeps the partials of TestManyPartials; where it has them they are merged, and none is made")
var communicators = flag.Int("communicators", 1, "communicators that each rank of TestManyPartials is in")

// Many partials of a capture with thousands of kernels and 2,000 collectives, each of a rank of its own, with 8 ranks on a
// host: no two with the same times. `go test -run ManyPartials -partials 10000 -v ./analyze` under a memory limit shows what
// 10,000 cost; of more than 256 the report is made of samples.
func TestManyPartials(t *testing.T) {
	list, kernels := manyPartials(t)
	debug.FreeOSMemory()
	before := cpuTime()
	r, err := merge.Report(context.Background(), list, merge.Options{Rules: MergeRules()})
	if err != nil {
		t.Fatal(err)
	}
	took := cpuTime() - before
	if m := r.Find("ranks.collectives", nil); *m.Value != float64(4*manySteps()) || (m.Coverage != nil) != (*partials > merge.MaxExact) {
		t.Errorf("%+v collectives", m)
	}
	if m := r.Find("ranks.count", nil); *m.Value != float64(*partials) {
		t.Errorf("%v ranks", *m.Value)
	}
	if m := r.Find("kernel.total_time", nil); *kept == "" && *m.Value != kernels {
		t.Errorf("kernels take %v, want %v", *m.Value, kernels)
	}
	before = cpuTime()
	var union counter
	if err := merge.Union(context.Background(), &union, list); err != nil {
		t.Fatal(err)
	}
	if *partials > merge.MaxExact && int(union) > 4_000_000+2_000**partials {
		t.Errorf("the union has %d bytes", union)
	}
	t.Logf("%d partials: report in %v of CPU, union of %d bytes in %v", *partials, took, union, cpuTime()-before)
}

// manyPartials are partials of as many ranks, and the time of all their kernels.
// manySteps are the steps of a rank, of four collectives each.
func manySteps() int { return longtest.N(100, 500) }

func manyPartials(t *testing.T) (list []merge.Source, kernels float64) {
	dir := *kept
	if dir == "" {
		dir = t.TempDir()
	}
	paths, _ := filepath.Glob(filepath.Join(dir, "*.partial"))
	for _, path := range paths {
		list = append(list, merge.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	if len(list) > 0 {
		return list, 0
	}
	run := tracetest.Fleet{Ranks: 8, Steps: manySteps(), Layers: 4, Jitter: 20_000, EndJitter: 2_000}.Run()
	var eight []*merge.Capture
	for i := range run {
		c, err := Digest(context.Background(), run[i].Build(tracetest.Schema("3.25.0")).WriteTB(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		eight = append(eight, c)
	}
	size := 0
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range *partials {
		c := *eight[n%8]
		c.Key = fmt.Sprintf("%x", sha256.Sum256([]byte(strconv.Itoa(n))))[:32]
		c.Name, c.Host = fmt.Sprintf("rank%d.sqlite", n), fmt.Sprintf("host%d", n/8)
		kernels += changed(&c, rng)
		for _, tr := range c.Tracks {
			tr.Rank, tr.World, tr.From = int64(n), int64(*partials), "flag"
		}
		b, err := c.Partial()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.Name+".partial")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		size += len(b)
		list = append(list, merge.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	t.Logf("%d bytes a partial", size/max(1, *partials))
	return list, kernels
}

// changed gives a capture times of its own, as those of another rank are, and returns the sum of its kernels.
func changed(c *merge.Capture, rng *rand.Rand) (kernels float64) {
	r := *c.Report
	r.Metrics = slices.Clone(r.Metrics)
	for i := range r.Metrics {
		if m := &r.Metrics[i]; m.Value != nil && m.Unit == report.Nanoseconds {
			v := math.Round(*m.Value * (0.99 + 0.02*rng.Float64()))
			if m.Value = &v; m.ID == "kernel.total_time" && len(m.Labels) == 0 {
				kernels = v
			}
		}
	}
	c.Report = &r
	c.Counts = slices.Clone(c.Counts)
	for i := range c.Counts {
		of := &c.Counts[i].Of
		of.Counts = slices.Clone(of.Counts)
		for k := range of.Counts {
			of.Counts[k] += rng.Int64N(1 + of.Counts[k]/4)
		}
	}
	c.Tracks = slices.Clone(c.Tracks)
	for i, tr := range c.Tracks {
		own := &ranks.Track{PID: tr.PID, Device: tr.Device, Kinds: tr.Kinds, Comms: slices.Clone(tr.Comms), Acts: tr.Acts}
		for n := 1; n < *communicators; n++ {
			own.Comms = append(own.Comms, fmt.Sprint("group", n))
		}
		for k, call := range tr.Calls {
			own.Add(ranks.Call{Start: call.Start + rng.Int64N(2_000), End: call.End + rng.Int64N(2_000), Kind: call.Kind, Comm: int32(k % *communicators)}, tr.Parts(k))
		}
		c.Tracks[i] = own
	}
	return kernels
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// cpuTime is the time that this process has computed for, where that is known.
var cpuTime = func() time.Duration { return 0 }
