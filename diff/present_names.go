package diff

import (
	"strconv"

	"github.com/nsys-llm/explain/analyze/report"
)

// nameKernels fills in the display names of kernels, which the kernels section of each report has. Kernels of one side that
// share a display name are numbered in the order of the rows.
func (c *Comparison) nameKernels(base, head []*report.Report) {
	short := [2]map[string]string{displayNames(base), displayNames(head)}
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
	for i := range c.Kernels {
		k := &c.Kernels[i]
		k.BaseShort, k.HeadShort = name(0, k.BaseName), name(1, k.HeadName)
	}
}

// displayNames is the short name of each kernel of a side, by its full one.
func displayNames(side []*report.Report) map[string]string {
	names := map[string]string{}
	for _, r := range side {
		t := newCapture(r).table("kernels", "kernels")
		for i := range t.rows() {
			full, text := t.str(i, "kernel_name"), t.str(i, "short")
			if _, ok := names[full]; !ok && full != "" && text != "" {
				names[full] = text
			}
		}
	}
	return names
}
