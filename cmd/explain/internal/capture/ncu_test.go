package capture

import (
	"regexp"
	"testing"
)

// Names are spelled in two ways by different versions of ncu.
func TestTargetsMatchBothSpellings(t *testing.T) {
	expression := regexp.MustCompile("^" + nameExpression("void f<(int)128, (bool)1>(float *)") + "$")
	for _, spelling := range []string{"void f<(int)128, (bool)1>(float *)", "void f<128, 1>(float *)"} {
		if !expression.MatchString(spelling) {
			t.Errorf("%s does not match %s", expression, spelling)
		}
	}
}
