package file

import (
	"slices"
	"testing"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"":                  {""},
		"a":                 {"a"},
		"a,,b":              {"a", "", "b"},
		`"a,b",c`:           {"a,b", "c"},
		`"a""b",c`:          {`a"b`, "c"},
		`"a`:                {"a"},
		`a,"b"`:             {"a", "b"},
		`"a"x,b`:            {"ax", "b"},
		`a"b,c`:             {`a"b`, "c"},
		`"",""`:             {"", ""},
		`x,"F:B(n=1, r=2)"`: {"x", "F:B(n=1, r=2)"},
	} {
		got, open := Split(line, ',', nil)
		if !slices.Equal(got, want) || open != (line == `"a`) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
