package cmdenv

import "fmt"

// Exit codes of every command.
const (
	OK           = 0
	Fail         = 1 // the verdict is fail
	Usage        = 2 // wrong usage or policy file
	Input        = 3 // input that cannot be analysed, or explain itself failed
	Inconclusive = 4 // not comparable
)

// Exit is the error of a command that did its work, and whose answer is this code and not 0.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }
