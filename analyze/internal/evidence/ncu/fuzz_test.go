package ncu

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/nsys-llm/explain/analyze/internal/evidence/file"
)

// FuzzRead: whatever a file holds, nothing panics, every record is counted once, and no number is one that a report cannot hold.
func FuzzRead(f *testing.F) {
	raw := rawHead + rawUnits + rawRow(0, "void f<(int)8>(int)") + rawRow(1, "g")
	for _, text := range []string{
		raw, longHead + longLaunch(0, "f", false), longHead + longLaunch(0, "f", true) + raw, "==PROF== x\n" + raw + "==ERROR== y\n", raw[:len(raw)-20],
		"\xff\xfe\"\x00I\x00D\x00", "ID;Kernel Name;gpu__time_duration.sum\n;;us\n0;f;1.234,5\n",
		onePage("f", [3]string{"sm__ops_path_tensor_src_fp16_bf16_dst_fp32.sum.per_second", "1/ns", "1e300"}, [3]string{"dram__bytes.sum", "Tbyte", "9e290"}),
	} {
		f.Add([]byte(text))
	}
	path := filepath.Join(f.TempDir(), "x.csv")
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		in, err := file.New(path, "x.csv")
		if err != nil {
			t.Fatal(err)
		}
		Is("x.csv", text)
		d, err := Read(context.Background(), []file.Input{in})
		if err != nil {
			return
		}
		if c := in.Tally; c.Records != c.Understood+c.Known+c.Unknown || c.Known < 0 || c.Unknown < 0 {
			t.Errorf("tally %+v", *c)
		}
		finite := func(what string, v *float64) {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				t.Errorf("%s is %v", what, *v)
			}
		}
		launches := 0
		roofs := d.Roofs()
		for i := range d.Kernels {
			k := d.Kernels[i]
			launches += len(k.Launches)
			for f := range Field(numFields) {
				finite(quantities[f].names[0], k.Get(f))
			}
			for _, v := range []*float64{k.Duration, k.Throughput, k.Flops, k.FlopRate, k.Intensity} {
				finite(k.Name, v)
			}
			for j := range roofs {
				v, _ := roofs[j].Attainable(k)
				finite("attainable", v)
			}
		}
		if launches != len(d.Launches) {
			t.Errorf("kernels have %d launches of %d", launches, len(d.Launches))
		}
	})
}
