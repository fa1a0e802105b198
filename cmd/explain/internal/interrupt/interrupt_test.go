package interrupt

import (
	"context"
	"errors"
	"testing"
)

// The end of the parent asks once: what runs may finish. Done ends both.
func TestTheParentAsksOnce(t *testing.T) {
	cause := errors.New("interrupted")
	parent, end := context.WithCancel(t.Context())
	soft, hard, done := Contexts(parent, cause)
	end()
	<-soft.Done()
	if !errors.Is(context.Cause(soft), cause) || hard.Err() != nil {
		t.Errorf("soft %v, hard %v", context.Cause(soft), hard.Err())
	}
	done()
	if hard.Err() == nil {
		t.Error("done did not end the second context")
	}
}
