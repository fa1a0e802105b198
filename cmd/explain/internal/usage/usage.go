// Package usage is the error of a call that was wrong, as opposed to work that went wrong.
package usage

import "fmt"

// Error is an error in how explain was called.
type Error struct{ Err error }

func (e Error) Error() string { return e.Err.Error() }
func (e Error) Unwrap() error { return e.Err }

// Errorf makes one, as fmt.Errorf does.
func Errorf(format string, args ...any) error { return Error{fmt.Errorf(format, args...)} }
