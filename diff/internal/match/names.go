package match

import (
	"strconv"
)

// NameKernels fills in the display names of kernels, which the kernels section of each report has. Kernels of one side
// that share a display name are numbered in the order of the rows.
func (x *Sides) NameKernels() {
	short := [2]map[string]string{x.Base.DisplayNames(), x.Head.DisplayNames()}
	var seen [2]map[string]int
	for i := range seen {
		seen[i] = map[string]int{}
	}
	name := func(side int, full *string) *string {
		if full == nil {
			return nil
		}
		text, ok := short[side][*full]
		if !ok {
			text = *full
		}
		seen[side][text]++
		if n := seen[side][text]; n > 1 {
			text += " (" + strconv.Itoa(n) + ")"
		}
		return &text
	}
	for i := range x.C.Kernels {
		k := &x.C.Kernels[i]
		k.BaseShort, k.HeadShort = name(0, k.BaseName), name(1, k.HeadName)
	}
}
