// Package crash turns a panic, which is a defect of explain, into an error that says so in one sentence.
package crash

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// Error is a panic that was caught.
type Error struct {
	What string // that explain was doing: "explain diff", "tool compare"
	Text string // what the panic said, one line of at most mostText runes
	At   string // where, kernels.go:139; empty if no frame of explain was found
}

func (e Error) Error() string {
	text := "internal error in " + e.What + ", please report: " + e.Text
	if e.At != "" {
		text += " (" + e.At + ")"
	}
	return text
}

const mostText = 200

// Caught is deferred by what may panic, and makes a panic the error of that function.
func Caught(what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	text := []rune(strings.Join(strings.Fields(fmt.Sprint(p)), " "))
	*err = Error{What: what, Text: string(text[:min(len(text), mostText)]), At: where()}
}

// where is the place of the panic: the first frame above it that is of explain's own code.
func where() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])]) // without Callers, where and Caught
	for panicked := false; ; {
		f, more := frames.Next()
		if panicked && !strings.HasPrefix(f.Function, "runtime.") {
			return path.Join(path.Base(path.Dir(filepath.ToSlash(f.File))), fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line))
		}
		panicked = panicked || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}
