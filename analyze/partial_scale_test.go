package analyze

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/merge"
	"github.com/nsys-llm/explain/analyze/tracetest"
)

var partials = flag.Int("partials", 60, "partials that TestManyPartials merges; the claim is about 1000")
var long = flag.Bool("long", false, "simulations at full length")

// Many partials of a capture with thousands of kernels and 2,000 collectives, each of a rank of its own, with 8 ranks on a
// host. `go test -run ManyPartials -partials 1000 -v ./analyze` under a memory limit shows what 1,000 cost.
func TestManyPartials(t *testing.T) {
	run := tracetest.Fleet{Ranks: 8, Steps: 500, Layers: 4, Jitter: 20_000, EndJitter: 2_000}.Run()
	var eight []*merge.Capture
	for i := range run {
		c, err := Digest(context.Background(), run[i].Build(tracetest.Schema("3.25.0")).WriteTB(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		eight = append(eight, c)
	}
	dir := t.TempDir()
	var list []merge.Source
	size := 0
	for n := range *partials {
		c := *eight[n%8]
		c.Key, c.Name, c.Host = fmt.Sprintf("%08d", n*7919%1_000_000), fmt.Sprintf("rank%d.sqlite", n), fmt.Sprintf("host%d", n/8)
		for _, tr := range c.Tracks {
			tr.Rank, tr.World, tr.From = int64(n), int64(*partials), "flag"
		}
		var b bytes.Buffer
		w := merge.NewWriter(&b)
		if err := w.Capture(&c); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.Name+".partial")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		size += b.Len()
		list = append(list, merge.Source{Name: path, Open: func() (io.ReadCloser, error) { return os.Open(path) }})
	}
	r, err := merge.Report(context.Background(), list, merge.Options{Rules: MergeRules()})
	if err != nil {
		t.Fatal(err)
	}
	if m := r.Find("ranks.collectives", nil); *m.Value != 2000 {
		t.Errorf("%v collectives", *m.Value)
	}
	if m := r.Find("ranks.count", nil); *m.Value != float64(*partials) {
		t.Errorf("%v ranks", *m.Value)
	}
	t.Logf("%d partials of %d bytes", *partials, size/max(1, *partials))
}
