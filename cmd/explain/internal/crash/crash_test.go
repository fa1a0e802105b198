package crash

import (
	"errors"
	"strings"
	"testing"
)

func TestCaught(t *testing.T) {
	t.Parallel()
	do := func(f func()) (err error) {
		defer Caught("a test", &err)
		f()
		return errors.New("returned")
	}
	if err := do(func() {}); err == nil || err.Error() != "returned" {
		t.Errorf("without a panic: %v", err)
	}
	var nobody *struct{ Text string }
	for want, f := range map[string]func(){
		"internal error in a test, please report: two lines (crash/crash_test.go:": func() { panic("two\n  lines") },
		"invalid memory address or nil pointer dereference (crash/crash_test.go:":  func() { _ = nobody.Text },
		strings.Repeat("x", mostText) + " (":                                       func() { panic(strings.Repeat("x", 9999)) },
	} {
		err := do(f)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
