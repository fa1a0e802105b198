package limit

import (
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

// LateError is of one that took longer than Wait. Nothing follows from it about what was asked.
type LateError struct {
	Who    string
	Waited time.Duration
}

func (e *LateError) Error() string {
	return fmt.Sprintf("%s did not end within %s; %s=%s in the environment allows more", e.Who, e.Waited, waitVariable, 2*e.Waited)
}

// Late is the error of one that took longer than Wait.
func Late(who string, waited time.Duration) error { return &LateError{who, waited} }
