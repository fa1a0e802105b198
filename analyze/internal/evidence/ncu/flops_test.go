package ncu

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// page makes a raw page of one launch of kernel f of 2 µs with these metrics: name, unit, value.
func onePage(kernel string, metrics ...[3]string) string {
	var head, units, values strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&head, ",%q", m[0])
		fmt.Fprintf(&units, ",%q", m[1])
		fmt.Fprintf(&values, ",%q", m[2])
	}
	return `"ID","Kernel Name","gpu__time_duration.sum"` + head.String() + "\n" + `"","","us"` + units.String() + "\n" + `"0","` + kernel + `","2.0"` + values.String() + "\n"
}

func TestFlops(t *testing.T) {
	op := func(name, form, unit, value string) [3]string {
		return [3]string{"smsp__sass_thread_inst_executed_op_" + name + "_pred_on.sum" + form, unit, value}
	}
	tensor := func(path, value string) [3]string {
		return [3]string{"sm__ops_path_tensor_" + path + ".sum", "", value}
	}
	idle := [3]string{"sm__pipe_tensor_cycles_active" + pctOfPeak, "%", "0"}
	active := [3]string{"sm__pipe_tensor_cycles_active" + pctOfPeak, "%", "12.5"}
	plain := []([3]string){op("fadd", "", "inst", "100"), op("fmul", "", "inst", "20"), op("ffma", "", "inst", "1,000")} // 100 + 20 + 2·1000
	unknown := math.NaN()
	for _, c := range []struct {
		why, kernel string
		metrics     [][3]string
		want        float64
		main        string
	}{
		{"additions, multiplications, fused ones twice", "rms_norm", plain, 2120, "fp32"},
		{"per cycle, times clock, times 2 µs", "rms_norm", [][3]string{op("fadd", ".per_cycle_elapsed", "inst/cycle", "1"), op("fmul", ".per_cycle_elapsed", "inst/cycle", "0"), op("ffma", ".per_cycle_elapsed", "inst/cycle", "2"),
			{"smsp__cycles_elapsed.avg.per_second", "Ghz", "1.5"}}, 15000, "fp32"}, // 5 · 1.5e9 · 2e-6
		{"per second", "rms_norm", [][3]string{op("fadd", ".per_second", "inst/ns", "1"), op("fmul", ".per_second", "inst/ns", "1"), op("ffma", ".per_second", "inst/ns", "1")}, 8000, "fp32"},
		{"one of three is missing", "rms_norm", plain[:2], unknown, ""},
		{"a matrix product whose tensor cores were not counted", "nvjet_tst_64x8_TNT", plain, unknown, ""},
		{"the same, seen idle", "nvjet_tst_64x8_TNT", append([][3]string{idle}, plain...), 2120, "fp32"},
		{"seen active, and not counted", "rms_norm", append([][3]string{active}, plain...), unknown, ""},
		{"tensor cores", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_bf16_dst_fp32", "5,000")}, 5000, "tensor_fp16"},
		{"tensor cores that did nothing do not tell the rest", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_bf16_dst_fp32", "0")}, unknown, ""},
		{"a part is not added to its whole", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_bf16_dst_fp32", "5000"), tensor("src_bf16_dst_fp32_sparsity_off", "4000"), tensor("src_bf16_dst_fp32_sparsity_on", "1000"),
			tensor("src_fp16", "700"), tensor("src_fp16_dst_fp32", "700")}, 5700, "tensor_fp16"},
		{"parts without their whole are added", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_fp8_sparsity_off", "4000"), tensor("src_fp8_sparsity_on", "1000")}, 5000, "tensor_fp8"},
		{"of two wholes of the same types one counts", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_fp16_bf16_tf32_dst_fp32", "900"), tensor("src_bf16_dst_fp32", "400"), tensor("src_tf32_dst_fp32", "500")}, 900, "tensor_tf32"},
		{"integers are no floating point", "nvjet_tst_64x8_TNT", [][3]string{tensor("src_int8", "4000")}, unknown, ""},
		{"bytes are no operations", "nvjet_tst_64x8_TNT", [][3]string{{"sm__ops_path_tensor_src_fp8.sum", "byte", "5"}}, unknown, ""},
		{"both pipelines", "nvjet_tst_64x8_TNT", append([][3]string{tensor("src_fp16_dst_fp16", "5000")}, plain...), 7120, "tensor_fp16_fp16"},
	} {
		d, _ := read(t, onePage(c.kernel, c.metrics...))
		k := d.Kernels[0]
		wantValue(t, c.why, k.Flops, c.want)
		wantValue(t, c.why+", per second", k.FlopRate, c.want/2e-6)
		if k.Main() != c.main {
			t.Errorf("%s: mostly %q, want %q", c.why, k.Main(), c.main)
		}
	}
}

// A roofline's section on a details page gives operations and ceilings where another page gives the duration. Numbers of a launch: 79.06
// fused operations per cycle and 1.97 additions at 2.15 GHz, for 6.75 µs; 345.14 GB/s.
func TestRooflineSection(t *testing.T) {
	row := func(item, metric, unit, value string) string {
		return `"0","7","p","h","f","1","7","","","0","12.0","GPU Speed Of Light Roofline Chart","` + item + `","` + metric + `","` + unit + `","` + value + `",` + "\n"
	}
	chart := strings.ReplaceAll(longHead, `"Section Name",`, `"Section Name","Body Item Label",`) +
		row("", "Theoretical Predicated-On FFMA Thread Instructions Executed", "inst/cycle", "21,760") +
		row("", "Predicated-On FFMA Thread Instructions Executed Per Cycle", "inst/cycle", "79.06") +
		row("Single Precision Roofline", "SM Frequency", "Ghz", "2.16") +
		row("Single Precision Roofline", "Theoretical DRAM Bytes Accessible", "byte/cycle", "128") +
		row("Single Precision Roofline", "DRAM Frequency", "Ghz", "13.72") +
		row("Single Precision Achieved Value", "SM Frequency", "Ghz", "2.15") +
		row("Single Precision Achieved Value", "Predicated-On FADD Thread Instructions Executed Per Cycle", "inst/cycle", "1.97") +
		row("Single Precision Achieved Value", "Predicated-On FMUL Thread Instructions Executed Per Cycle", "inst/cycle", "0") +
		row("Single Precision Achieved Value", "DRAM Bandwidth", "Gbyte/s", "345.14")
	light := longHead + strings.ReplaceAll(longRow(0, "f", "Duration", "us", "6.75")+longRow(0, "f", "SM Frequency", "Ghz", "1.99"), `"(128, 1, 1)","(10, 2, 1)"`, `"",""`)
	d, _ := read(t, chart, light)
	if len(d.Launches) != 1 {
		t.Fatalf("%d launches", len(d.Launches))
	}
	k, rate := d.Kernels[0], (2*79.06+1.97)*2.15e9
	wantValue(t, "rate", k.FlopRate, rate)
	wantValue(t, "operations", k.Flops, rate*6.75e-6)
	wantValue(t, "intensity", k.Intensity, rate/345.14e9)
	roof := d.Roofs()[0]
	wantValue(t, "bandwidth", &roof.Bandwidth.Value, 128*13.72e9)
	wantValue(t, "fp32", limitOf(&roof, "fp32"), 2*21760*2.16e9)
	attainable, memory := roof.Attainable(k)
	wantValue(t, "attainable", attainable, rate/345.14e9*128*13.72e9)
	if !memory || d.Roofs()[0].Name != "" {
		t.Errorf("roof %+v", d.Roofs()[0])
	}
}
