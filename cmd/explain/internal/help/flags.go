package help

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/nsys-llm/explain/analyze/report/wording"
	"github.com/nsys-llm/explain/cmd/explain/internal/usage"
)

// flagError returns a clear error about a flag: for an unknown one the nearest name, for an invalid value the expected
// form.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := unknown.GetSpecifiedName()
		if side, own, ok := strings.Cut(name, "-"); ok && (side == "base" || side == "head") && strings.HasSuffix(own, "log") {
			name = "server-log"
		}
		if report, _, err2 := cmd.Root().Find([]string{"report"}); err2 == nil && report.Flags().Lookup(name) != nil &&
			(cmd.Name() == "diff" || cmd.Name() == "gate") {
			return usage.Errorf("%w; --%[3]s is a flag of explain report, and %[2]s takes its folders, one a side: explain TRACE --%[3]s … --out DIR", err, cmd.Name(), name)
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := Nearest(name, names); near != "" {
			return usage.Errorf("%w; did you mean --%s?", err, near)
		}
	}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name := "--" + value.GetFlag().Name + " " + value.GetValue()
		if unknown, ok := errors.AsType[usage.Error](value.Unwrap()); ok { // one of a few words is wanted
			return usage.Errorf("%s %w", name, unknown.Err)
		}
		if text := wrongValue[value.GetFlag().Value.Type()]; text != "" {
			return usage.Errorf("%s: %s", name, text)
		}
		return usage.Errorf("%s: %w", name, value.Unwrap())
	}
	return usage.Error{Err: err}
}

// wrongValue says, by the type of a flag, what is wrong with its value.
var wrongValue = map[string]string{
	"int": "not a whole number", "int64": "not a whole number", "uint64": "not a whole number",
	"float64": "not a number", "bool": "true or false",
	"duration": "not a time; write it with its unit, such as 1.5s or 200ms",
}

// Nearest returns the name of a list with the fewest edits from a name: at most two, or it contains the name. It
// returns "" if there is none.
func Nearest(name string, list []string) string {
	best, least := "", 3
	for _, other := range list {
		n := wording.Edits(name, other)
		if len(name) > 3 && strings.Contains(other, name) {
			n = min(n, 2)
		}
		if n < least && n < len(other) {
			best, least = other, n
		}
	}
	return best
}

// Corrected is the nearest word of a list if few letters of a word are wrong, one in four at most; else the word itself.
func Corrected(word string, list []string) string {
	if near := Nearest(word, list); wording.Edits(word, near) <= len(word)/4 {
		return near
	}
	return word
}

// Renamed lets a command take flags under older names too, which help does not show.
func Renamed(cmd *cobra.Command, names map[string]string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if now, ok := names[name]; ok {
			name = now
		}
		return pflag.NormalizedName(name)
	})
}
