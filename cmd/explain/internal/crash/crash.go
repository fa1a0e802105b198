// Package crash turns a panic, which is a defect of explain, into an error that says so in one sentence.
package crash

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// mostText is how many runes of what a panic said are told, in one line.
const mostText = 200

// Caught is deferred by what may panic, and makes a panic the error of that function. what is what explain was doing:
// "explain diff", "tool compare".
func Caught(what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	text := []rune(strings.Join(strings.Fields(fmt.Sprint(p)), " "))
	text = text[:min(len(text), mostText)]
	*err = fmt.Errorf("internal error in %s, please report: %s%s", what, string(text), where())
}

// where is the place of the panic, in brackets: the first frame above it that is of explain's own code. It is empty if
// there is none.
func where() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // without Callers, where and Caught
	for panicked := false; ; {
		f, more := frames.Next()
		if panicked && !strings.HasPrefix(f.Function, "runtime.") {
			file := filepath.ToSlash(f.File)
			return fmt.Sprintf(" (%s:%d)", path.Join(path.Base(path.Dir(file)), path.Base(file)), f.Line)
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
