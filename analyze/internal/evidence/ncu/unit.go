package ncu

import (
	"slices"
	"strings"
)

// dim is the quantity that a unit measures.
type dim byte

const (
	none       dim = iota // no unit: a count, or a metric that ncu prints without one
	ratio                 // a share
	duration              // time, in ns
	byteCount             // bytes
	byteRate              // bytes per second
	frequency             // per second
	perCycle              // instructions or operations per clock cycle
	byteCycle             // bytes per clock cycle
	perSecond             // instructions or operations per second
	thing                 // a count of something: instructions, blocks, registers per thread
	unreadable            // a unit that explain does not know
)

// scale is a unit: its dimension, and the factor binary · 10^exp that turns a value into ns, bytes, per second or a
// ratio. The power of ten is kept apart so that 2.33 Mbyte is 2,330,000 bytes to the last digit.
type scale struct {
	dim    dim
	exp    int
	binary float64 // 0 stands for 1
}

// parseUnit reads a unit as ncu prints it. Versions spell the same unit differently: usecond and us, cycle/nsecond and
// Ghz, byte/second and byte/s.
func parseUnit(text string) scale {
	text = strings.ToLower(strings.Join(strings.Fields(text), ""))
	switch text {
	case "":
		return scale{}
	case "%":
		return scale{dim: ratio, exp: -2}
	}
	over, under, isRate := strings.Cut(text, "/")
	a := atom(over)
	if !isRate {
		return a
	}
	b := atom(under)
	switch {
	case a.dim == unreadable || b.dim == unreadable:
		return scale{dim: unreadable}
	case b.dim == duration: // times are in ns, rates per second
		rate := scale{perSecond, a.exp - (b.exp - 9), a.binary}
		switch {
		case a.dim == byteCount:
			rate.dim = byteRate
		case over == "cycle" || over == "cycles":
			rate.dim = frequency
		}
		return rate
	case strings.HasPrefix(under, "cycle"):
		a.dim = map[bool]dim{true: byteCycle, false: perCycle}[a.dim == byteCount]
		return a
	case a.dim == byteCount:
		return a // byte/block
	}
	a.dim = thing
	return a
}

// prefixes of units. Times are the only ones that come in parts.
var (
	larger = map[byte]int{'k': 3, 'm': 6, 'g': 9, 't': 12, 'p': 15}
	parts  = map[string]int{"": 9, "m": 6, "u": 3, "µ": 3, "μ": 3, "n": 0, "p": -3} // to ns
)

// units that may have a prefix, but for times.
var units = []struct {
	dim   dim
	names string
}{
	{frequency, "hz"}, {byteCount, "bytes byte b"},
	{thing, "inst insts cycle cycles register registers block blocks thread threads warp warps sector sectors request " +
		"requests pass op ops flop flops sm sms cluster clusters wavefront wavefronts bank banks bit bits access " +
		"transaction transactions 1"},
}

// atom reads a unit without "/".
func atom(s string) scale {
	for _, name := range []string{"seconds", "second", "sec", "s"} {
		if p, ok := strings.CutSuffix(s, name); ok {
			if exp, ok := parts[p]; ok {
				return scale{dim: duration, exp: exp}
			}
		}
	}
	for _, u := range units {
		for name := range strings.FieldsSeq(u.names) {
			if p, ok := strings.CutSuffix(s, name); ok {
				if s, ok := prefix(p, u.dim); ok {
					return s
				}
			}
		}
	}
	return scale{dim: unreadable}
}

// prefix is the scale of k, m, g, …; of ki, mi, … too for bytes.
func prefix(p string, d dim) (scale, bool) {
	if p == "" {
		return scale{dim: d}, true
	}
	exp, ok := larger[p[0]]
	switch {
	case !ok:
		return scale{}, false
	case len(p) == 1:
		return scale{dim: d, exp: exp}, true
	case d == byteCount && p[1:] == "i":
		return scale{dim: d, binary: float64(int64(1) << (10 * exp / 3))}, true
	}
	return scale{}, false
}

// counts reports whether the unit is one of counted things, over the launch, per cycle or per second.
func (s scale) counts() bool {
	return slices.Contains([]dim{none, thing, perCycle, perSecond, frequency}, s.dim)
}
