package comparison

import (
	"cmp"
	"slices"
	"strings"

	"github.com/nsys-llm/explain/analyze/report/lists"
)

// Lacks returns the side that lacks evidence which the other one has, and the flags of explain report that add it;
// empty if both have the same kinds, or neither side has all.
func (c *Comparison) Lacks() (side string, flags []string) {
	r := lists.Find(c.Residue, func(r *Residue) bool { return r.Field == "evidence" })
	if r == nil {
		return "", nil
	}
	base, head := flagsWithout(r.Head, r.Base), flagsWithout(r.Base, r.Head)
	switch {
	case len(base) > 0 && len(head) == 0:
		return "base", base
	case len(head) > 0 && len(base) == 0:
		return "head", head
	}
	return "", nil
}

// flagsWithout returns the flags that add what one side has and another one lacks.
func flagsWithout(has, lacks string) (flags []string) {
	named := map[string]string{"server-log": "--server-log", "prometheus": "--prometheus", "ncu-csv": "--ncu"}
	for _, kind := range strings.Split(strings.ReplaceAll(has, " | ", ", "), ", ") {
		flag := cmp.Or(named[kind], "--evidence")
		if kind != "none" && !strings.Contains(lacks, kind) && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	return flags
}
