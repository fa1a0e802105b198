package output_test

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze"
	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/cmd/explain/internal/output"
	"github.com/nsys-llm/explain/diff"
	diffrender "github.com/nsys-llm/explain/diff/diffdoc"
)

// Most bytes of what people open and keep.
const (
	mostPage     = 800_000
	mostReport   = 2_000_000
	mostDiffPage = 400_000
)

// TestWeight holds pages and reports of real traces to their weight, the step with its 119 to 1,832 kernels among it.
func TestWeight(t *testing.T) {
	reports := map[string]*report.Report{}
	for _, name := range []string{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after", "nsysai_h100_2gpu_1s", "cs336zx_2_7B",
		"cs336zx_2_7B_clean", "cs336_hoponga_exp2024_2"} {
		path := filepath.Join("..", "..", "..", "..", "..", "shared", "traces", name+".sqlite")
		res, err := analyze.Run(context.Background(), path, analyze.Options{})
		if err != nil {
			t.Skipf("the real traces are not part of the project: %v", err)
		}
		reports[name] = res.Report
		var page, data bytes.Buffer
		if err := output.HTML(&page, res.Report, ""); err != nil {
			t.Fatal(err)
		}
		if err := report.Write(&data, res.Report); err != nil {
			t.Fatal(err)
		}
		if page.Len() > mostPage || data.Len() > mostReport {
			t.Errorf("%s: the page has %d bytes, the report %d", name, page.Len(), data.Len())
		}
		t.Logf("%s: page %d kB, report %d kB", name, page.Len()/1000, data.Len()/1000)
	}
	for _, x := range [][2]string{{"nsysai_mfu_2gpu_before", "nsysai_mfu_2gpu_after"}, {"cs336zx_2_7B", "cs336zx_2_7B_clean"}} {
		c, err := diff.Compare([]*report.Report{reports[x[0]]}, []*report.Report{reports[x[1]]}, diff.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := diffrender.WriteHTML(&page, c, diffrender.Links{}); err != nil {
			t.Fatal(err)
		}
		if page.Len() > mostDiffPage {
			t.Errorf("%s: the page of the comparison has %d bytes", x[0], page.Len())
		}
		t.Logf("%s: page of the comparison %d kB", x[0], page.Len()/1000)
	}
}
