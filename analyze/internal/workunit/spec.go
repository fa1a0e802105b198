package workunit

import (
	"fmt"
	"regexp"
	"strings"
)

// Spec is what the user said a unit is. The zero value leaves it to Find.
type Spec struct {
	Kind    string // empty, nvtx, kernel, graph or none
	Pattern *regexp.Regexp
}

// ParseSpec reads the value of --unit: nvtx:REGEX, kernel:REGEX, graph, none, or auto.
func ParseSpec(text string) (Spec, error) {
	kind, expr, hasExpr := strings.Cut(text, ":")
	switch {
	case text == "" || text == "auto":
		return Spec{}, nil
	case text == KindGraph || text == KindNone:
		return Spec{Kind: text}, nil
	case hasExpr && (kind == KindNVTX || kind == KindKernel):
		if expr == "" {
			return Spec{}, fmt.Errorf("%s: is empty; write %s:REGEX", kind, kind)
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			return Spec{}, err
		}
		return Spec{Kind: kind, Pattern: re}, nil
	}
	return Spec{}, fmt.Errorf("%q is none of auto, nvtx:REGEX, kernel:REGEX, graph, none", text)
}
