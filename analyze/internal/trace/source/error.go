package source

import "fmt"

// InputError says in one sentence what is wrong with an input file and what to do about it.
type InputError struct {
	File string // the file's own name
	What string // what it is
	Do   string // what to do
	Err  error  // the cause, if there is one
}

func (e *InputError) Error() string {
	s := e.File + ": " + e.What
	if e.Err != nil {
		s += fmt.Sprintf(" (%v)", e.Err)
	}
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

func (e *InputError) Unwrap() error { return e.Err }
