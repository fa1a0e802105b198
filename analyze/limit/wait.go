package limit

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// waitVariable names how long to wait for others, as a duration.
const waitVariable = "EXPLAIN_TIMEOUT"

// Wait is how long another program or a server may take: usual, or what EXPLAIN_TIMEOUT in the environment says.
func Wait(usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(os.Getenv(waitVariable)); err == nil && d > 0 {
		return d
	}
	return usual
}

// lateError is of one that took longer than Wait.
type lateError string

func (e lateError) Error() string { return string(e) }

// Late is the error of one that took longer than Wait.
func Late(who string, waited time.Duration) error {
	return lateError(fmt.Sprintf("%s did not end within %s; %s=%s in the environment allows more", who, waited, waitVariable, 2*waited))
}

// IsLate reports whether an error is from [Late]. Nothing follows from it about what was asked.
func IsLate(err error) bool {
	_, late := errors.AsType[lateError](err)
	return late
}
