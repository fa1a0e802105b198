package diff

import (
	"strconv"
)

// nameKernels fills in the display names of kernels, which the kernels section of each report has. Kernels of one side that
// share a display name are numbered in the order of the rows.
func (x *Sides) nameKernels() {
	short := [2]map[string]string{x.base.displayNames(), x.head.displayNames()}
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
	for i := range x.c.Kernels {
		k := &x.c.Kernels[i]
		k.BaseShort, k.HeadShort = name(0, k.BaseName), name(1, k.HeadName)
	}
}

// displayNames is the short name of each kernel of a side, by its full one.
func (s *side) displayNames() map[string]string {
	names := map[string]string{}
	for _, c := range s.captures {
		t := c.Table("kernels", "kernels")
		for i := range t.Len() {
			full, text := t.Str(i, "kernel_name"), t.Str(i, "short")
			if _, ok := names[full]; !ok && full != "" && text != "" {
				names[full] = text
			}
		}
	}
	return names
}
