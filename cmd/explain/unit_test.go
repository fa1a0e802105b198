package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// TestUnitThatMatchesNothing: report, diff and gate alike call it wrong usage, and name what there is.
func TestUnitThatMatchesNothing(t *testing.T) {
	const trace = "../../testdata/serving.sqlite"
	for _, spec := range []string{"nvtx:no such range", "kernel:no_such_kernel"} {
		outputs := map[string]string{}
		for name, args := range map[string][]string{
			"report": {trace, "--unit", spec},
			"diff":   {"diff", trace, trace, "--unit", spec},
		} {
			var out, errs bytes.Buffer
			code := run(context.Background(), args, &env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
			outputs[name] = errs.String()
			if code != exitUsage {
				t.Errorf("%s --unit %s: exit %d", name, spec, code)
			}
		}
		g := gateInActions(t, pullServer(), "--head", trace, "--base", trace, "--unit", spec)
		if g.code != exitUsage {
			t.Errorf("gate --unit %s: exit %d", spec, g.code)
		}
		for name, errs := range outputs {
			if !strings.Contains(errs, "--unit "+spec+" matches no") || !strings.Contains(errs, "nearest") {
				t.Errorf("%s --unit %s: %s", name, spec, errs)
			}
		}
	}
}
