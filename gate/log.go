package gate

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/sethvargo/go-githubactions"

	"github.com/nsys-llm/explain/analyze/report/pattern"
)

const (
	// summaryLimit is the size of a step summary in bytes: GitHub drops a summary over 1 MiB whole.
	summaryLimit = 900_000
	// maxAnnotations of a step: they have no source line, and the summary says more than a list of them.
	maxAnnotations = 3
	maxOutput      = 4096 // bytes of an output's value
)

// stepLog writes what the runner reads: workflow commands on standard output, and the files of GITHUB_OUTPUT and
// GITHUB_STEP_SUMMARY. Outside of GitHub Actions it writes nothing: a mask would print the secret itself, and a file
// whose variable is not set cannot be written.
type stepLog struct {
	action      *githubactions.Action
	getenv      func(string) string
	say         func(string) // writes a line to the log of the step
	annotations int
}

// newStepLog writes commands to w, which must be the standard output of the step.
func newStepLog(w io.Writer, getenv func(string) string, say func(string)) *stepLog {
	return &stepLog{action: githubactions.New(githubactions.WithWriter(w), githubactions.WithGetenv(getenv)),
		getenv: getenv, say: say}
}

// output sets an output, and says if it could not.
func (l *stepLog) output(name, value string) {
	if err := l.Output(name, value); err != nil {
		l.say("output " + name + ": " + err.Error())
	}
}

// summary appends to the summary, and says if it could not.
func (l *stepLog) summary(markdown string) {
	if err := l.Summary(markdown); err != nil {
		l.say("summary: " + err.Error())
	}
}

// Mask asks the runner to hide a secret in everything that follows. Call it before anything else.
func (l *stepLog) Mask(secret string) error {
	if secret == "" || !l.inActions() {
		return nil
	}
	return guard(func() { l.action.AddMask(secret) })
}

func (l *stepLog) inActions() bool { return l.getenv("GITHUB_ACTIONS") == "true" }

var outputName = pattern.New(`^[a-z][a-z0-9_-]{0,60}$`)

// Output sets an output of the step. It refuses a name or value with a newline or another control character: a newline
// in a value could set other outputs. Callers pass verdicts, numbers, paths, commits; never a kernel or range name.
func (l *stepLog) Output(name, value string) error {
	if !outputName().MatchString(name) {
		return fmt.Errorf("output name %q is not of lower-case letters, digits, - and _", name)
	}
	if len(value) > maxOutput || strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return fmt.Errorf("output %s is longer than %d bytes, or holds a newline or another character that is not printable: it is not set", name, maxOutput)
	}
	if _, err := l.appendable("GITHUB_OUTPUT"); err != nil || l.getenv("GITHUB_OUTPUT") == "" {
		return err
	}
	return guard(func() { l.action.SetOutput(name, value) })
}

// Summary appends markdown to the step's summary. More than summaryLimit in all is refused: render it smaller.
func (l *stepLog) Summary(markdown string) error {
	size, err := l.appendable("GITHUB_STEP_SUMMARY")
	if err != nil || l.getenv("GITHUB_STEP_SUMMARY") == "" {
		return err
	}
	if size+int64(len(markdown)) > summaryLimit {
		return fmt.Errorf("the step's summary would have %d bytes, more than the %d that GitHub shows for sure",
			size+int64(len(markdown)), summaryLimit)
	}
	return guard(func() { l.action.AddStepSummary(markdown) })
}

// appendable checks a file that the runner named, since the package panics on a bad one, and returns its size in bytes.
func (l *stepLog) appendable(variable string) (size int64, err error) {
	path := l.getenv(variable)
	if path == "" {
		return 0, nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	return info.Size(), nil
}

type level func(a *githubactions.Action, format string, args ...any)

var (
	noticeLevel  level = (*githubactions.Action).Noticef
	warningLevel level = (*githubactions.Action).Warningf
	failureLevel level = (*githubactions.Action).Errorf
)

// Annotate writes an annotation and reports whether it did: only the first three are written. Title and text are one
// line each, escaped for the runner, cut at 200 and 1,000 characters. The text reaches the runner's log: pass no name
// out of a capture.
func (l *stepLog) Annotate(at level, title, text string) bool {
	if l.annotations == maxAnnotations || !l.inActions() {
		return false
	}
	l.annotations++
	a := l.action.WithFieldsMap(map[string]string{"title": oneLine(title, 200)})
	text = strings.ReplaceAll(oneLine(text, 1000), "##[", "## [") // a command of the runner's older kind, see Defuse
	return guard(func() { at(a, "%s", text) }) == nil
}

// guard turns the package's panics on failed writes into errors.
func guard(write func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("GitHub's runner: %v", p)
		}
	}()
	write()
	return nil
}

// Defuse makes text safe to print where the runner reads: the runner takes no line of it for a workflow command. The
// runner looks behind blanks for "::", and anywhere in a line for "##[".
func Defuse(text string) string {
	return command().ReplaceAllString(strings.ReplaceAll(text, "##[", "## ["), "${1}: :")
}

// command is the beginning of a line with a workflow command: :: behind anything that is blank or not shown.
var command = pattern.New(`((?:^|[\r\n])[^\pL\pM\pN\pP\pS]*)::`)
