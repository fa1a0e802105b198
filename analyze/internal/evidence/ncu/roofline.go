package ncu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/nsys-llm/explain/analyze/internal/evidence/peaks"
	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Peak is the maximum of a device, and the source of that number.
type Peak struct {
	Value float64 // operations or bytes per second
	From  string
}

// Sources of a peak, other than the table of package peaks, which names its own.
const (
	fromAttributes = "device attributes in the file"
	fromRoofline   = "roofline section in the file"
)

// Roof is the set of peaks of a device.
type Roof struct {
	Device    int
	Name      string // empty if no page says
	Bandwidth *Peak
	flops     [numTypes]*Peak
}

// Roofs are the ceilings of the devices: from the attributes of the device if a raw page has them, else from the
// roofline section, else from the table of known devices. Unknown ceilings are nil.
func (d *Data) Roofs() []Roof {
	ids := lists.Set(d.Launches, func(l *Launch) int { return l.Device })
	if len(ids) > 1 {
		delete(ids, -1)
	}
	return lists.Map(slices.Sorted(maps.Keys(ids)), d.roof)
}

// roof is that of a device; -1 is the single one of pages that name none.
func (d *Data) roof(id int) Roof {
	r := Roof{Device: id}
	for _, dev := range d.Devices {
		if dev.ID != id && !(id < 0 && len(d.Devices) == 1) {
			continue
		}
		r.Name = dev.Name
		r.Bandwidth = peak(dev.Bandwidth(), fromAttributes)
		r.flops[fp32], r.flops[fp64] = peak(dev.FP32(), fromAttributes), peak(dev.FP64(), fromAttributes)
	}
	for _, l := range d.Launches {
		if l.Device == id && (r.Bandwidth == nil || r.flops[fp32] == nil) {
			r.Bandwidth = cmp.Or(r.Bandwidth, product(l.Get(DRAMBytesPerCycle), l.Get(DRAMClock), 1))
			r.flops[fp32] = cmp.Or(r.flops[fp32], product(l.Get(FFMAPerCycle), l.Get(SMClockPeak), 2))
		}
	}
	known := peaks.Lookup(r.Name)
	if known == nil {
		return r
	}
	r.Bandwidth = cmp.Or(r.Bandwidth, peak(known.Bandwidth, known.Source))
	for t := range r.flops {
		if v := known.Flops(ceiling[t]); v != nil && r.flops[t] == nil {
			r.flops[t] = peak(*v, known.Source)
		}
	}
	return r
}

// Limits are the ceilings of operations, by data type. A ceiling equal to that of half precision is not repeated.
func (r *Roof) Limits() []Limit {
	var list []Limit
	for t, p := range r.flops {
		if p == nil || t == tensorHalf16 && r.flops[tensorHalf] != nil && r.flops[tensorHalf].Value == p.Value {
			continue
		}
		list = append(list, Limit{typeNames[t], *p})
	}
	return list
}

// Limit is a ceiling of operations of one data type.
type Limit struct {
	Precision string
	Peak
}

func peak(v float64, from string) *Peak {
	if v <= 0 {
		return nil
	}
	return &Peak{v, from}
}

// product is a rate per cycle at a clock.
func product(perCycle, clock *float64, times float64) *Peak {
	if perCycle == nil || clock == nil {
		return nil
	}
	return peak(times**perCycle**clock, fromRoofline)
}

// Main is the data type in which the kernel does most of its operations; empty if they were not counted.
func (k *Kernel) Main() string {
	if k.Flops == nil || *k.Flops == 0 {
		return ""
	}
	return typeNames[k.most]
}

// Attainable is the rate of operations that the device allows at the kernel's intensity, and which limit holds: the
// lower of its peak and of intensity times bandwidth; nil if one of them is unknown.
func (r *Roof) Attainable(k *Kernel) (rate *float64, memory bool) {
	if k.Main() == "" {
		return nil, false
	}
	top := r.flops[k.most]
	if top == nil || r.Bandwidth == nil || k.Intensity == nil {
		return nil, false
	}
	v := *k.Intensity * r.Bandwidth.Value
	return new(min(v, top.Value)), v < top.Value
}
