// Package peaks holds the peaks of NVIDIA devices: dense arithmetic per data type and memory bandwidth, as NVIDIA
// states them, looked up by the names that the devices report. A device that is not in the table is unknown.
package peaks

import (
	"fmt"
	"strings"
)

// Device holds the peaks of one model of device. Figures that NVIDIA does not state are 0 here and nil from Flops.
type Device struct {
	Names     []string // as the device reports them (CUDA's device name), without the leading "NVIDIA "
	SMs       int      // streaming multiprocessors
	Bandwidth float64  // bytes per second of device memory
	tera      tera
	Source    string // where the figures were published
}

// tera is 10^12 floating point operations per second by data type, dense: the factor of two of sparsity does not count.
// FP64 and FP32 are the ordinary pipelines, all others tensor cores.
type tera struct {
	fp64, fp32 float64
	tf32       float64
	half       float64 // bf16, and fp16 that is accumulated in fp32
	half16     float64 // fp16 that is accumulated in fp16, if that is faster: GeForce
	fp8        float64
	fp4        float64
}

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
	for i := range devices {
		for _, n := range devices[i].Names {
			if plain(n) == want {
				return &devices[i]
			}
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
	var v float64
	switch dtype {
	case FP64:
		v = d.tera.fp64
	case FP32:
		v = d.tera.fp32
	case TF32:
		v = d.tera.tf32
	case FP16:
		v = d.tera.half
	case BF16:
		if !d.noBF16() {
			v = d.tera.half
		}
	case FP16Accumulated:
		v = max(d.tera.half, d.tera.half16)
	case FP8:
		v = d.tera.fp8
	case FP4:
		v = d.tera.fp4
	}
	if v == 0 {
		return nil
	}
	v *= 1e12
	return &v
}

// noBF16 reports whether the tensor cores are older than bf16, which came with tf32.
func (d *Device) noBF16() bool { return d.tera.tf32 == 0 && d.tera.fp8 == 0 }

// OverFP32 is how many times faster than FP32 a GPU runs FP16 and TF32 on tensor cores; 0 if that is not known, for
// TF32 also if it has none. A GeForce RTX of the 30 series or later that is not in the table has the ratios of all
// that are: they run FP16 twice as fast, and TF32 as fast.
func OverFP32(name string) (half, tf32 float64) {
	d := Lookup(name)
	if d == nil || d.tera.fp32 == 0 {
		series := 0
		if _, err := fmt.Sscanf(plain(name), "geforce rtx %d", &series); err == nil && series >= 3000 {
			return 2, 1
		}
		return 0, 0
	}
	return d.tera.half / d.tera.fp32, d.tera.tf32 / d.tera.fp32
}
