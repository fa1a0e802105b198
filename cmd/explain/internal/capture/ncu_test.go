package capture

import (
	"regexp"
	"testing"
)

// The command is pasted into a shell, and names are spelled in two ways by different versions of ncu.
func TestTargetsAreQuoted(t *testing.T) {
	for s, want := range map[string]string{"a'b": `'a'\''b'`, "$(rm)": "'$(rm)'", "`x`": "'`x`'", `\`: `'\'`} {
		if got := shellQuote(s); got != want {
			t.Errorf("%s is quoted %s, want %s", s, got, want)
		}
	}
	expression := regexp.MustCompile("^" + nameExpression("void f<(int)128, (bool)1>(float *)") + "$")
	for _, spelling := range []string{"void f<(int)128, (bool)1>(float *)", "void f<128, 1>(float *)"} {
		if !expression.MatchString(spelling) {
			t.Errorf("%s does not match %s", expression, spelling)
		}
	}
}
