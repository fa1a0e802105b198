package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

func TestErrorsKeepTheirCause(t *testing.T) {
	err := fmt.Errorf("policy: %w", Errorf("--of: %w", fs.ErrNotExist))
	var wrong Error
	if !errors.As(err, &wrong) || !errors.Is(err, fs.ErrNotExist) || wrong.Error() != "--of: file does not exist" {
		t.Errorf("%v", err)
	}
}
