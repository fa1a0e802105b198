package ncu

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

const shared = "../../../../../shared/ncu/"

// readShared reads real exports, which are not part of the project.
func readShared(t *testing.T, names ...string) *Data {
	t.Helper()
	var files []file.Input
	for _, n := range names {
		in, err := file.New(shared+n, n)
		if err != nil {
			t.Skip("no ../shared/ncu: the real exports are not part of the project")
		}
		files = append(files, in)
	}
	d, err := Read(context.Background(), files)
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range files {
		if in.Tally.Unknown != 0 || in.Tally.Understood == 0 {
			t.Errorf("%s: %+v", in.Name, *in.Tally)
		}
	}
	if c := d.codes(); c != "" {
		t.Errorf("%v: warnings %s", names, c)
	}
	return d
}

// Raw and details pages of one report, exported by 2022.3 and 2024.2, give the same launches and kernels, and equal values within the
// digits that a page prints.
func TestPagesAndVersionsAgree(t *testing.T) {
	for report, launches := range map[string]int{"gemm_263b2": 5, "gemm_26b45": 11} {
		first := readShared(t, report+".raw.22.csv")
		if len(first.Launches) != launches {
			t.Errorf("%s: %d launches, want %d", report, len(first.Launches), launches)
		}
		for _, page := range []string{".raw.24b.csv", ".details.22.csv", ".details.24b.csv"} {
			d := readShared(t, report+page)
			if len(d.Launches) != launches || len(d.Kernels) != len(first.Kernels) {
				t.Fatalf("%s%s: %d launches of %d kernels", report, page, len(d.Launches), len(d.Kernels))
			}
			shared := 0
			for i := range d.Launches {
				a, b := first.Launches[i], d.Launches[i]
				if a.ID != b.ID || a.Kernel.Name != b.Kernel.Name || !a.agrees(b) {
					t.Errorf("%s%s: launch %d differs", report, page, i)
				}
				for f := range a.value {
					if !math.IsNaN(a.value[f]) && !math.IsNaN(b.value[f]) {
						shared++
					}
				}
			}
			if shared < 14*launches {
				t.Errorf("%s%s: only %d values are on both pages", report, page, shared)
			}
			for i := range d.Kernels {
				a, b := first.Kernels[i], d.Kernels[i]
				if a.Name != b.Name || a.Bound() != b.Bound() || a.Classification() != b.Classification() {
					t.Errorf("%s%s: %s is %s, was %s", report, page, b.Name, b.Bound(), a.Bound())
				}
			}
		}
		all := readShared(t, report+".raw.22.csv", report+".raw.24b.csv", report+".details.22.csv", report+".details.24b.csv")
		if len(all.Launches) != launches || all.Pages != int64(3*launches) {
			t.Errorf("%s: four pages together are %d launches", report, len(all.Launches))
		}
		for i := range all.Kernels {
			if a, b := all.Kernels[i].Get(SMRatio), first.Kernels[i].Get(SMRatio); *a != *b {
				t.Errorf("%s: the raw page's digits are lost: %v, %v", report, *a, *b)
			}
		}
	}
}

// llm-perf-opt's own summary of its kernels, as far as their pages are there.
func TestAgainstLLMPerfOpt(t *testing.T) {
	f, err := os.Open(shared + "dsocr_expected.metrics_summary.csv")
	if err != nil {
		t.Skip("no ../shared/ncu: the real exports are not part of the project")
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, c := range rows[0] {
		column[c] = i
	}
	checked := 0
	for _, row := range rows[1:] {
		number := row[0][:len("kernel_0001")]
		if _, err := os.Stat(shared + "dsocr_" + number + ".details.csv"); err != nil {
			continue
		}
		checked++
		d := readShared(t, "dsocr_"+number+".details.csv")
		k := d.Kernels[0]
		if k.Name != row[column["kernel_name"]] || k.Classification() != row[column["classification"]] || k.Grid != row[column["grid_size"]] || k.Block != row[column["block_size"]] || !strings.HasPrefix(k.ID, number) {
			t.Errorf("%s: %+v", number, k)
		}
		for name, f := range map[string]Field{
			"sm_throughput_pct": SMRatio, "dram_throughput_pct": DRAMRatio, "mem_throughput_pct": MemoryRatio, "l1tex_throughput_pct": L1Ratio, "l2_throughput_pct": L2Ratio,
			"mem_busy_pct": MemBusy, "max_bandwidth_pct": MaxBandwidth, "l1tex_hit_rate_pct": L1Hits, "l2_hit_rate_pct": L2Hits, "achieved_occupancy_pct": Occupancy, "theoretical_occupancy_pct": OccupancyPossible,
		} {
			want, err := strconv.ParseFloat(row[column[name]], 64)
			if err != nil {
				t.Fatal(err)
			}
			wantValue(t, number+" "+name, k.Get(f), want/100)
		}
		us, err := strconv.ParseFloat(row[column["duration_us"]], 64)
		if err != nil {
			t.Fatal(err)
		}
		wantValue(t, number+" duration", k.Duration, us*1000)
	}
	if checked == 0 {
		t.Error("no page of a kernel")
	}
}

// The pages and sections of one kernel are one launch, and the roofline section's ceiling and share agree with what ncu prints: 19.66 % of
// the device memory's peak.
func TestSectionsOfOneLaunch(t *testing.T) {
	list, err := filepath.Glob(shared + "dsocr_kernel_0001.*.csv")
	if err != nil || len(list) == 0 {
		t.Skip("no ../shared/ncu: the real exports are not part of the project")
	}
	for i := range list {
		list[i] = filepath.Base(list[i])
	}
	d := readShared(t, list...)
	if len(d.Launches) != 1 || d.Pages != int64(len(list)-1) {
		t.Fatalf("%d launches", len(d.Launches))
	}
	rate, memory := d.Roofs()[0].Attainable(d.Kernels[0])
	if rate == nil || !memory {
		t.Fatal("no roof")
	}
	if share := *d.Kernels[0].FlopRate / *rate; math.Abs(share-0.1966) > 0.0001 {
		t.Errorf("%v of the roof, ncu says 0.1966 of peak bandwidth", share)
	}
}
