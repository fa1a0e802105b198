// Package peaks holds the peaks of NVIDIA devices: dense arithmetic per data type and memory bandwidth, as NVIDIA
// states them, looked up by the names that the devices report. A device that is not in the table is unknown.
package peaks

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Device holds the peaks of one model of device. Figures that NVIDIA does not state are 0 here and nil from Flops.
type Device struct {
	Names     []string // as the device reports them (CUDA's device name), without the leading "NVIDIA "
	Bandwidth float64  // bytes per second of device memory
	// tera is 10^12 floating point operations per second by data type, dense: the factor of two of sparsity does not
	// count. FP64 and FP32 are the ordinary pipelines, all others tensor cores.
	tera   map[string]float64
	Source string // where the figures were published
}

// devices.tsv has the figures of NVIDIA's data sheets and white papers, at https://www.nvidia.com and
// https://resources.nvidia.com; those that a data sheet states "with sparsity" are halved. "-" is not stated.
//
//go:embed devices.tsv
var deviceText string

// devices reads the table: names, streaming multiprocessors, 10^9 bytes per second, the peaks, and their source.
var devices = sync.OnceValue(func() (list []Device) {
	head, rows, _ := strings.Cut(deviceText, "\n")
	types := strings.Split(head, "\t")
	for line := range strings.Lines(rows) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		d := Device{Names: strings.Split(cells[0], ", "), tera: map[string]float64{}, Source: cells[len(cells)-1]}
		d.Bandwidth, _ = strconv.ParseFloat(cells[2]+"e9", 64)
		for i := 3; i < len(cells)-1; i++ {
			d.tera[types[i]], _ = strconv.ParseFloat(cells[i], 64)
		}
		list = append(list, d)
	}
	return list
})

// Data types of Flops.
const (
	FP64 = "fp64"
	FP32 = "fp32"
	TF32 = "tf32"
	BF16 = "bf16"
	FP16 = "fp16" // accumulated in fp32, as inference engines do
	// FP16Accumulated is fp16 accumulated in fp16: twice as fast on GeForce devices, equal on others.
	FP16Accumulated = "fp16_fp16"
	FP8             = "fp8"
	FP4             = "fp4"
)

// Lookup finds the device by the name the GPU reports; nil if it is not in the table. Part of a name does not match,
// nor does a slice of a device (MIG): their peaks differ.
func Lookup(name string) *Device {
	want := plain(name)
	for i := range devices() {
		d := &devices()[i]
		if slices.ContainsFunc(d.Names, func(n string) bool { return plain(n) == want }) {
			return d
		}
	}
	return nil
}

// plain is a name in lower case, without its maker's name, white space one way.
func plain(name string) string {
	name = strings.Join(strings.Fields(strings.ToLower(name)), " ")
	return strings.TrimPrefix(name, "nvidia ")
}

// Flops is the dense peak of a data type, floating point operations per second; nil if unknown, and if the tensor cores
// do not support the type: fp8 on an A100.
func (d *Device) Flops(dtype string) *float64 {
	if d == nil {
		return nil
	}
	v := d.tera[dtype]
	switch {
	case dtype == BF16 && (d.tera[TF32] != 0 || d.tera[FP8] != 0): // else its tensor cores are older than bf16
		v = d.tera[FP16]
	case dtype == FP16Accumulated:
		v = max(v, d.tera[FP16])
	}
	if v == 0 {
		return nil
	}
	v *= 1e12
	return &v
}

// OverFP32 is how many times faster than FP32 a GPU runs FP16 and TF32 on tensor cores; 0 if that is not known, for
// TF32 also if it has none. A GeForce RTX of the 30 series or later that is not in the table has the ratios of all
// that are: they run FP16 twice as fast, and TF32 as fast.
func OverFP32(name string) (half, tf32 float64) {
	d := Lookup(name)
	if d == nil || d.tera[FP32] == 0 {
		series := 0
		if _, err := fmt.Sscanf(plain(name), "geforce rtx %d", &series); err == nil && series >= 3000 {
			return 2, 1
		}
		return 0, 0
	}
	return d.tera[FP16] / d.tera[FP32], d.tera[TF32] / d.tera[FP32]
}
