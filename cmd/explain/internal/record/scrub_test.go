package record

import (
	"strings"
	"testing"

	"github.com/nsys-llm/explain/analyze"
)

// A copy whose numbers differ is an error, unless names are hidden; a capture that cannot be analysed proves nothing.
func TestNumbersOfACopyAreProven(t *testing.T) {
	const base, head = "../../../../testdata/base.sqlite", "../../../../testdata/head.sqlite"
	hidden := analyze.Shown{Personal: strings.ToUpper}
	for _, c := range []struct {
		in, out   string
		shown     analyze.Shown
		want, err string
	}{
		{base, base, analyze.Shown{}, "Every number is equal: ", ""},
		{base, head, analyze.Shown{}, "", "these numbers would differ: "},
		{base, head, hidden, "Different, since hidden names say them: ", ""},
		{"scrub_test.go", base, analyze.Shown{}, "Not proven equal, since the capture cannot be analysed: ", ""},
		{base, "scrub_test.go", analyze.Shown{}, "", "scrub_test.go"},
	} {
		got, err := proven(t.Context(), c.in, c.out, c.shown, analyze.Options{})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s: %q, %v", c.in, c.out, got, err)
		}
	}
}
