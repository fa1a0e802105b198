package peaks

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestTableIsWhole: every row has a cell for each column, every figure is a number or not stated, and every column of
// peaks is a type.
func TestTableIsWhole(t *testing.T) {
	rows := strings.Split(strings.TrimSpace(deviceText), "\n")
	head := strings.Split(rows[0], "\t")
	if want := []string{FP64, FP32, TF32, FP16, FP16Accumulated, FP8, FP4}; !slices.Equal(head[3:len(head)-1], want) {
		t.Errorf("columns of peaks %v, want %v", head[3:len(head)-1], want)
	}
	for _, row := range rows[1:] {
		cells := strings.Split(row, "\t")
		if len(cells) != len(head) {
			t.Errorf("%d cells, want %d: %s", len(cells), len(head), row)
			continue
		}
		for _, c := range cells[1 : len(cells)-1] {
			if v, err := strconv.ParseFloat(c, 64); c != "-" && (err != nil || v <= 0) {
				t.Errorf("%q is no figure: %s", c, row)
			}
		}
	}
}

// What NVIDIA states of the devices that people serve with, dense. In llm-perf-opt's table the H100, H200, RTX 4090 and RTX 3090 have
// the figures with sparsity, twice as high, and an H100 that says what it is ("NVIDIA H100 80GB HBM3") is not found at all.
func TestPeaksOfKnownDevices(t *testing.T) {
	for _, c := range []struct {
		name, dtype string
		flops       float64 // 10^12
		bandwidth   float64 // 10^9
	}{
		{"NVIDIA H100 80GB HBM3", BF16, 989.4, 3350},
		{"NVIDIA H100 80GB HBM3", FP8, 1978.9, 3350},
		{"NVIDIA H100 PCIe", FP16, 756, 2000},
		{"NVIDIA H200", BF16, 989.4, 4800},
		{"NVIDIA A100-SXM4-80GB", BF16, 312, 2039},
		{"NVIDIA A100-PCIE-40GB", TF32, 156, 1555},
		{"NVIDIA GeForce RTX 4090", BF16, 165.2, 1008},
		{"NVIDIA GeForce RTX 4090", FP16Accumulated, 330.3, 1008},
		{"NVIDIA L40S", FP8, 733, 864},
		{"Tesla T4", FP16, 65, 320},
		{"NVIDIA B200", FP4, 9000, 8000},
		{"nvidia  a10g ", FP32, 35, 600},
		{"Tesla V100-SXM2-16GB", FP16Accumulated, 125, 900},
	} {
		d := Lookup(c.name)
		if d == nil {
			t.Errorf("%s: not found", c.name)
			continue
		}
		if got := d.Flops(c.dtype); got == nil || *got != c.flops*1e12 || d.Bandwidth != c.bandwidth*1e9 {
			t.Errorf("%s: %s %v, bandwidth %v; want %v TFLOP/s, %v GB/s", c.name, c.dtype, got, d.Bandwidth, c.flops, c.bandwidth)
		}
	}
}

// What is not known is nil and never a near miss: laptops, slices, parts of names, types without tensor cores.
func TestUnknownIsNil(t *testing.T) {
	for _, name := range []string{"", "NVIDIA", "H100", "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA Graphics Device", "RTX"} {
		if d := Lookup(name); d != nil {
			t.Errorf("%q is taken for %s", name, d.Names[0])
		}
	}
	for _, c := range [][2]string{{"NVIDIA A100-SXM4-80GB", FP8}, {"Tesla V100-SXM2-16GB", BF16}, {"Tesla T4", TF32}, {"NVIDIA GB10", BF16}, {"NVIDIA H100 PCIe", "int8"}} {
		if v := Lookup(c[0]).Flops(c[1]); v != nil {
			t.Errorf("%s has %s of %v", c[0], c[1], *v)
		}
	}
	if v := Lookup("none").Flops(FP32); v != nil {
		t.Errorf("an unknown device computes %v", *v)
	}
}

// Dense figures keep proportions that sparse ones would break: each narrower type is at most about twice as fast as the next wider one
// (fp4 four times fp8 where fp8 is accumulated in fp32 at half rate; up to 32 times for tensor cores over the fp32 pipelines).
func TestProportions(t *testing.T) {
	seen := map[string]bool{}
	for i := range devices() {
		d := &devices()[i]
		for _, n := range d.Names {
			if seen[plain(n)] || strings.HasPrefix(n, "NVIDIA ") {
				t.Errorf("%s: twice, or with its maker's name", n)
			}
			seen[plain(n)] = true
		}
		if d.Bandwidth < 100e9 || d.Bandwidth > 10e12 || d.Source == "" {
			t.Errorf("%s: %v bytes per second, source %q", d.Names[0], d.Bandwidth, d.Source)
		}
		for _, p := range []struct {
			narrow, wide string
			most         float64
		}{{FP32, FP64, 70}, {BF16, TF32, 2.1}, {FP8, BF16, 2.1}, {FP4, FP8, 4.1}, {BF16, FP32, 32}} {
			a, b := d.Flops(p.narrow), d.Flops(p.wide)
			if a != nil && b != nil && (*a < *b*0.99 || *a > *b*p.most) {
				t.Errorf("%s: %s is %.2f times %s", d.Names[0], p.narrow, *a / *b, p.wide)
			}
		}
	}
}

// TestOverFP32: every GeForce RTX from the 30 series on in the table has the ratios that one outside it is given.
func TestOverFP32(t *testing.T) {
	seen := 0
	for _, d := range devices() {
		for _, name := range d.Names {
			if !strings.HasPrefix(name, "GeForce RTX") || d.tera[TF32] == 0 {
				continue
			}
			seen++
			if half, tf32 := OverFP32(name); half < 1.97 || half > 2.03 || tf32 < 0.99 || tf32 > 1.01 {
				t.Errorf("%s: FP16 %.3g times, TF32 %.3g times the rate of FP32", name, half, tf32)
			}
		}
	}
	if seen < 10 {
		t.Errorf("%d devices", seen)
	}
	for name, want := range map[string][2]float64{"NVIDIA GeForce RTX 3070 Ti": {2, 1}, "NVIDIA GeForce RTX 2060": {}, "GeForce GTX 1080": {}, "A GPU": {}} {
		if half, tf32 := OverFP32(name); half != want[0] || tf32 != want[1] {
			t.Errorf("%s: %v and %v, want %v", name, half, tf32, want)
		}
	}
}
