package ncu

import (
	"strconv"
	"strings"

	"github.com/nsys-llm/explain/analyze/report"
	"github.com/nsys-llm/explain/analyze/report/pattern"
)

// Device is the description of the GPU in a raw page. Unknown numbers are 0, unknown texts empty.
type Device struct {
	ID          int
	Name        string // as the device reports it
	CC          string // compute capability, 9.0
	SMs         int64
	MemoryBytes int64
	BusBits     int64   // width of the memory bus
	MemoryClock float64 // Hz
	Clock       float64 // Hz, highest
}

// Bandwidth is the peak of the memory, bytes per second: two bits per clock and wire; 0 if unknown.
//
// The formula is that of CUDA's device queries. It gives what data sheets state: 5,120 bits at 2,619 MHz, 3.35 TB/s,
// for an H100.
func (d *Device) Bandwidth() float64 { return 2 * d.MemoryClock * float64(d.BusBits) / 8 }

// lanes are the fused multiply-adds that an SM begins per clock, in single and double precision, by compute capability
// (CUDA C++ Programming Guide, throughput of arithmetic instructions).
var lanes = map[string]struct{ single, double float64 }{
	"6.0": {64, 32}, "6.1": {128, 4}, "7.0": {64, 32}, "7.2": {64, 32}, "7.5": {64, 2}, "8.0": {64, 32},
	"8.6": {128, 2}, "8.7": {128, 2}, "8.9": {128, 2},
	"9.0": {128, 64}, "10.0": {128, 64}, "10.3": {128, 2}, "12.0": {128, 2}, "12.1": {128, 2},
}

// FP32 is the peak of fused multiply-adds, operations per second; 0 if unknown.
func (d *Device) FP32() float64 { return 2 * lanes[d.CC].single * float64(d.SMs) * d.Clock }

// FP64 is the same in double precision.
func (d *Device) FP64() float64 { return 2 * lanes[d.CC].double * float64(d.SMs) * d.Clock }

// deviceName is what names of devices look like; anything else is not repeated.
var deviceName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9 ()+._-]{1,63}$`)

const attribute = "device__attribute_"

// describe takes the attributes of a device from a row of a raw page.
func (d *Device) describe(h *header, fields []string, s style) {
	major, minor := int64(-1), int64(-1)
	counts := map[string]*int64{"multiprocessor_count": &d.SMs, "total_memory": &d.MemoryBytes, "fb_bus_width": &d.BusBits,
		"global_memory_bus_width": &d.BusBits, "compute_capability_major": &major, "compute_capability_minor": &minor}
	clocks := map[string]*float64{"max_mem_frequency_khz": &d.MemoryClock, "memory_clock_rate": &d.MemoryClock,
		"max_gpu_frequency_khz": &d.Clock, "clock_rate": &d.Clock}
	for i, c := range h.columns {
		a, ok := strings.CutPrefix(c, attribute)
		if !ok {
			continue
		}
		text := cell(fields, i)
		if a == "display_name" && deviceName().MatchString(text) {
			d.Name = strings.Clone(text)
		}
		u := h.units[i]
		n, ok := s.parse(text, u)
		if !ok || n.value < 0 || n.value > 1e15 || u.dim == unreadable {
			continue
		}
		if to := counts[a]; to != nil {
			*to = int64(n.value)
		}
		if to := clocks[a]; to != nil {
			if *to = n.value; u.dim != frequency { // CUDA's attributes are in kHz, and have no unit
				*to *= 1e3
			}
		}
	}
	if d.CC == "" && major > 0 && minor >= 0 && major < 100 && minor < 10 {
		d.CC = strconv.FormatInt(major, 10) + "." + strconv.FormatInt(minor, 10)
	}
}

func (d *Device) model() report.GPU {
	return report.GPU{Device: d.ID, Name: report.Stated(d.Name), ComputeCap: report.Stated(d.CC), SMs: report.Stated(d.SMs),
		MemoryBytes: report.Stated(d.MemoryBytes), ClockHz: report.Stated(d.Clock), MemoryBandwidth: report.Stated(d.Bandwidth())}
}
